//! The content of a document's public page.

use engine::call::Content;
use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use engine::record::{Record, When};
use engine::records;
use serde_json::{Value, json};
use store::Tx;

use super::pdf::{self, Style};
use super::request::Request;
use super::{Document, DocumentKind, InvoiceKind, PaymentStatus, QuoteKind, Which, WorkorderKind, quote};
use crate::files::{self, File};
use crate::typesetting;

/// A function on the document with this id.
pub type Verb<T> = fn(&mut Tx, &Ctx, &str) -> Result<T>;
/// Returns the account and the id of the document with this token.
pub type Find = fn(&mut Tx, &str) -> Result<Option<(i64, String)>>;

/// The public page of one kind of document.
pub struct Kind {
    /// The kind.
    pub which: Which,
    /// Finds a document by its token.
    pub find: Find,
    /// Returns the content of the page.
    pub view: Verb<Value>,
    /// Records a view.
    pub note_view: Verb<()>,
    /// Returns the PDF.
    pub pdf: Verb<Content>,
    /// Returns the logo.
    pub logo: Verb<Content>,
}

/// The pages of all three kinds.
pub static KINDS: [Kind; 3] = [Kind::of::<InvoiceKind>(), Kind::of::<QuoteKind>(), Kind::of::<WorkorderKind>()];

impl Kind {
    const fn of<K: DocumentKind>() -> Kind {
        Kind {
            which: K::WHICH,
            find: find::<K>,
            view: view::<K>,
            note_view: note_view::<K>,
            pdf: |tx, ctx, id| {
                let document: Document<K> = final_one(tx, ctx, id)?;
                pdf::content_of(tx, ctx, &document)
            },
            logo: |tx, ctx, id| {
                let document: Document<K> = final_one(tx, ctx, id)?;
                logo_of(tx, ctx, &document).map(|file| files::kept(&file)).ok_or_else(missing)
            },
        }
    }
}

fn find<K: DocumentKind>(tx: &mut Tx, token: &str) -> Result<Option<(i64, String)>> {
    let sql = format!("SELECT account_id, id FROM {} WHERE token = $1", Document::<K>::shape().table);
    tx.first(&sql, &[token.into()], |row| Ok((row.int(0)?, row.text(1)?.to_string())))
}

/// Returns the document, unless it is a draft.
pub fn final_one<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<Document<K>> {
    let document: Document<K> = records::find(tx, ctx, id)?;
    if document.is_final() { Ok(document) } else { Err(missing()) }
}

/// Records a view; only the first counts.
pub fn note_view<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<()> {
    let before: Document<K> = final_one(tx, ctx, id)?;
    if before.viewed_at.0.is_some() {
        return Ok(());
    }
    let mut document = before.clone();
    document.viewed_at = When(Some(ctx.now));
    records::change(tx, ctx, &before, &mut document, "updated")?;
    if K::WHICH == Which::Quote {
        records::happened(tx, ctx, &document, "viewed")?;
    }
    Ok(())
}

/// Returns the logo at the time of finalization, if it still exists.
pub(super) fn logo_of<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, document: &Document<K>) -> Option<File> {
    let sender = document.sender.json();
    let id = sender["meta"]["logo_file_id"].as_str().filter(|id| !id.is_empty())?;
    let file: File = records::find(tx, ctx, id).ok()?;
    matches!(file.content_type.as_str(), "image/png" | "image/jpeg").then_some(file)
}

/// Returns the content of the page.
fn view<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<Value> {
    let document: Document<K> = final_one(tx, ctx, id)?;
    let mut data = printed(tx, ctx, &document)?;
    let style = Style(document.language);
    let labels = typesetting::labels();
    let mut words = labels[document.language.wire()]["common"].clone();
    let own = &labels[document.language.wire()][data["kind"].as_str().unwrap_or_default()];
    for (key, word) in own.as_object().into_iter().flatten() {
        words[key.as_str()] = word.clone();
    }
    let day = |date: Option<jiff::civil::Date>| date.map(|date| style.date(date));
    data["words"] = words;
    data["date_words"] = json!(day(document.invoice_date.0));
    // As printed: a workorder has no payment term.
    data["due_date_words"] = json!(day(document.due_date.0.filter(|_| !data["due_date"].is_null())));
    data["supply_date_words"] = json!(day(document.shown_supply_date()));
    data["has_logo"] = json!(logo_of(tx, ctx, &document).is_some());
    data["website"] = json!(website(&data["sender"]["website"]));
    data["colors"] = colors(&data["colors"]);
    data["state"] = state(ctx, &document);
    data["pay"] = how_to_pay(&document, &data);
    data["can_transfer"] = json!(document.request() == Request::Transfer);
    data["can_answer"] = json!(can_answer(ctx, &document));
    let open = document.unpaid_amount().scaled() != document.total_incl_vat.scaled() && !document.is_credit;
    for (name, amount) in
        [("paid", document.paid_amount), ("credited", document.credited_amount), ("open", document.unpaid_amount())]
    {
        let shown = open && (amount.scaled() != 0 || name == "open");
        data["totals"][name] = if shown { json!(style.money(amount)) } else { json!("") };
    }
    Ok(data)
}

/// Returns the content of the PDF.
fn printed<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, document: &Document<K>) -> Result<Value> {
    Ok(pdf::print(tx, ctx, document)?.data)
}

/// Returns a web address that can be a link.
fn website(address: &Value) -> Option<&str> {
    address.as_str().filter(|address| address.starts_with("https://") || address.starts_with("http://"))
}

/// Whether a quote can still be accepted or rejected.
fn can_answer<K: DocumentKind>(ctx: &Ctx, document: &Document<K>) -> bool {
    K::WHICH == Which::Quote && quote::is_open(ctx, document)
}

fn is_late<K: DocumentKind>(ctx: &Ctx, document: &Document<K>) -> bool {
    document.due_date.0.is_some_and(|due| due < ctx.now.date(&ctx.zone)) && !document.is_collected()
}

/// Whether an amount is still due.
fn is_owed<K: DocumentKind>(document: &Document<K>) -> bool {
    matches!(document.request(), Request::Transfer | Request::Collection(..))
}

fn how_to_pay<K: DocumentKind>(document: &Document<K>, data: &Value) -> Value {
    let text = |key: &str| data["sender"][key].as_str().unwrap_or_default();
    if document.request() != Request::Transfer || text("iban").is_empty() {
        return Value::Null;
    }
    let amount = document.unpaid_amount();
    let iban = text("iban").replace(' ', "");
    let code = pdf::transfer_code(amount, &document.number, &iban, text("bic"), text("name"));
    json!({
        "amount": Style(document.language).money(amount),
        "qr": code.and_then(|code| ::pdf::qr_svg(&code).ok()),
    })
}

/// Returns the state of the document: the key of the page's text for it, and the values in that text.
fn state<K: DocumentKind>(ctx: &Ctx, document: &Document<K>) -> Value {
    let style = Style(document.language);
    let never = When(None);
    let (status, late) = (&document.payment_status, is_late(ctx, document));
    let (tone, key, when) = match K::WHICH {
        Which::Invoice if document.is_credit => match status {
            PaymentStatus::Paid => ("good", "paid_out", document.paid_at),
            PaymentStatus::Credited => ("calm", "settled", never),
            _ => ("wait", "owing", never),
        },
        Which::Invoice => match status {
            PaymentStatus::Paid if document.total_incl_vat.scaled() == 0 => ("calm", "nothing", never),
            PaymentStatus::Paid => ("good", "paid", document.paid_at),
            PaymentStatus::Credited => ("calm", "credited", never),
            _ if !is_owed(document) => ("calm", "nothing", never),
            _ if document.is_collected() => ("calm", "collected", never),
            PaymentStatus::Partial if late => ("bad", "partial_late", never),
            PaymentStatus::Partial => ("wait", "partial", never),
            _ if late || *status == PaymentStatus::Overdue => ("bad", "overdue", never),
            _ => ("wait", "open", never),
        },
        Which::Quote => match status {
            PaymentStatus::Accepted | PaymentStatus::Invoiced if !document.accepted_by.is_empty() => {
                ("good", "accepted_by", document.accepted_at)
            }
            PaymentStatus::Accepted => ("good", "accepted", document.accepted_at),
            PaymentStatus::Invoiced if document.accepted_at.0.is_some() => ("good", "accepted", document.accepted_at),
            PaymentStatus::Invoiced => ("good", "invoiced", never),
            PaymentStatus::Rejected => ("bad", "rejected", document.rejected_at),
            _ if late || *status == PaymentStatus::Expired => ("bad", "expired", never),
            _ => ("wait", "asked", never),
        },
        Which::Workorder => match status {
            PaymentStatus::Completed => ("good", "completed", never),
            PaymentStatus::Invoiced => ("good", "invoiced", never),
            _ => ("wait", "planned", never),
        },
    };
    // A custom status is shown as it is.
    let own_word = if let PaymentStatus::Other(word) = status { word } else { "" };
    json!({
        "tone": tone, "key": key, "own_word": own_word,
        "day": when.0.map(|moment| style.date(moment.date(&ctx.zone))),
        "terms": style.terms(ctx, document),
        "paid": style.money(document.paid_amount), "open": style.money(document.unpaid_amount()),
        // Directional isolates keep a right-to-left name from reordering the sentence.
        "by": format!("\u{2068}{}\u{2069}", document.accepted_by),
    })
}

/// Returns the colours of the identity, with variants that are readable on light and on dark.
pub fn colors(of: &Value) -> Value {
    let primary = color(&of["primary"]).unwrap_or([0x1f, 0x4e, 0x79]);
    let secondary = color(&of["secondary"]).unwrap_or([0x5b, 0x70, 0x83]);
    let hex = |[red, green, blue]: [u32; 3]| format!("#{red:02x}{green:02x}{blue:02x}");
    json!({
        "primary": hex(primary), "secondary": hex(secondary),
        "on_light": hex(darkened(primary)), "on_dark": hex(lightened(primary)),
    })
}

fn color(text: &Value) -> Option<[u32; 3]> {
    let digits = text.as_str()?.strip_prefix('#').filter(|digits| digits.len() == 6 && digits.is_ascii())?;
    let part = |start: usize| u32::from_str_radix(&digits[start..start + 2], 16).ok();
    Some([part(0)?, part(2)?, part(4)?])
}

/// Returns the lightness of a colour, from 0 to 10,000, close enough to WCAG for this choice.
fn lightness([red, green, blue]: [u32; 3]) -> u32 {
    (2126 * red * red + 7152 * green * green + 722 * blue * blue) / (255 * 255)
}

/// Darkens a colour until white is readable on it.
fn darkened(mut color: [u32; 3]) -> [u32; 3] {
    while lightness(color) > 1600 {
        color = color.map(|part| part * 95 / 100);
    }
    color
}

/// Lightens a colour until it is readable on black.
fn lightened(mut color: [u32; 3]) -> [u32; 3] {
    while lightness(color) < 3800 {
        color = color.map(|part| (part + (255 - part) / 20 + 1).min(255));
    }
    color
}

/// The error for a page that does not exist, or not yet.
pub fn missing() -> Error {
    Error::new(Code::NotFound, "This path does not exist.")
}

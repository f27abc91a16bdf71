//! The PDF of a document: created by a job after the commit, or immediately when it is requested first. A final document
//! is locked, and the job has what a later revision may change, so a revision has the same bytes whenever it is created.

use std::borrow::Cow;
use std::sync::Arc;

use engine::app::App;
use engine::call::{Answer, Call, Content, Outcome};
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use engine::jobs::{self, Claimed, Ending, Job, Lane, NewJob};
use engine::json::write_text;
use engine::record::{Day, Record, When};
use engine::records::{self, Work};
use engine::resource::Part;
use jiff::ToSpan;
use jiff::civil::Date;
use money::{Amount, Price};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{Migration, Tx};

use super::request::{Request, grouped};
pub use super::style::Style;
use super::{Document, DocumentKind, InvoiceKind, PaymentStatus, QuoteKind, Which, WorkorderKind};
use crate::files::{self, File};
use crate::settings::Settings;
use crate::typesetting::{self, Print};

/// The table of created PDFs.
pub const MIGRATION: Migration = Migration {
    number: 50,
    name: "document PDFs",
    sql: "
CREATE TABLE document_pdfs (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    document_id TEXT NOT NULL,
    revision BIGINT NOT NULL,
    file_id TEXT NOT NULL,
    PRIMARY KEY (account_id, document_id, revision)
) STRICT, WITHOUT ROWID;
CREATE INDEX document_pdfs_file ON document_pdfs (account_id, file_id);
",
};

/// Fields of the response of `GET …/pdf`.
pub const PARTS: &[Part] = &[
    Part("id", "string", "The document."),
    Part("pdf_url", "string", "URL of the PDF, valid for a day without a key."),
];

/// `GET /v1/{invoices,quotes,workorders}/{id}/pdf`
pub fn address<K: DocumentKind>(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let document: Document<K> = records::find(tx, ctx, call.id())?;
        let url = url_of(ctx, &document);
        let data = json!({"id": document.base.id, "pdf_url": url}).to_string();
        Ok(Answer::data(Outcome::Done, data.into_bytes()))
    }))
}

/// `GET …/pdf/content`
pub fn content<K: DocumentKind>(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let document: Document<K> = records::find(tx, ctx, call.id())?;
        Ok(Answer::content(content_of(tx, ctx, &document)?))
    }))
}

/// Returns the PDF, or what is needed to create it.
pub fn content_of<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, document: &Document<K>) -> Result<Content> {
    if !document.is_final() {
        let draft = document.with_parties(tx, ctx)?;
        return Ok(Content::Made(Arc::new(print(tx, ctx, &draft)?)));
    }
    Ok(match made(tx, ctx, &document.base.id, document.revision)? {
        Some(file) => files::kept(&file),
        None => Content::Made(Arc::new(print(tx, ctx, document)?)),
    })
}

/// Returns the file name of the PDF.
pub fn file_name<K: DocumentKind>(document: &Document<K>) -> String {
    format!("{}.pdf", document.number.replace(['/', '\\'], "-"))
}

impl<K: DocumentKind> Document<K> {
    /// Returns the date of supply, if it is not that of the document itself.
    pub(super) fn shown_supply_date(&self) -> Option<Date> {
        self.supply_date.0.filter(|date| self.invoice_date.0 != Some(*date))
    }
}

/// Fields of the response of `GET …/revisions`, for each revision.
pub const REVISIONS: &[Part] = &[
    Part("revision", "integer", "Revision number, starting at 1."),
    Part("file_id", "string", "The file with the PDF."),
    Part("pdf_url", "string", "URL of that PDF, valid for a day without a key."),
];

/// `GET …/{id}/revisions`: every revision of a final document that has a PDF.
pub fn revisions<K: DocumentKind>(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let document: Document<K> = records::find(tx, ctx, call.id())?;
        let sql =
            "SELECT revision, file_id FROM document_pdfs WHERE account_id = $1 AND document_id = $2 ORDER BY revision";
        let found = tx.all(sql, &[ctx.account.into(), (&document.base.id).into()], |row| {
            let (revision, file) = (row.int(0)?, row.text(1)?);
            let url = ctx.signed(&format!("/v1/files/{file}/content"));
            Ok::<_, store::Error>(json!({"revision": revision, "file_id": file, "pdf_url": url}))
        })?;
        let total = found.len();
        let mut answer = Answer::data(Outcome::Done, Value::from(found).to_string().into_bytes());
        answer.meta.push(format!("\"total\":{total}"));
        Ok(answer)
    }))
}

fn made(tx: &mut Tx, ctx: &Ctx, document: &str, revision: i64) -> Result<Option<File>> {
    let sql = "SELECT file_id FROM document_pdfs WHERE account_id = $1 AND document_id = $2 AND revision = $3";
    let values = [ctx.account.into(), document.into(), revision.into()];
    let file = tx.first(sql, &values, |row| Ok::<_, store::Error>(row.text(0)?.to_string()))?;
    file.map(|id| records::find(tx, ctx, &id)).transpose()
}

fn url_of<K: DocumentKind>(ctx: &Ctx, document: &Document<K>) -> String {
    ctx.signed(&format!("/v1/{}/{}/pdf/content", Document::<K>::shape().table, document.base.id))
}

/// Returns the object `pdf` in the response of a create, as JSON.
pub fn state_when_made<K: DocumentKind>(ctx: &Ctx, document: &Document<K>) -> String {
    if document.is_final() {
        let message = "The PDF is being created; requesting the URL creates it immediately.";
        let mut url = Vec::new();
        write_text(&mut url, &url_of(ctx, document));
        let url = String::from_utf8(url).unwrap_or_default();
        format!("{{\"generated\":false,\"status\":\"pending\",\"message\":\"{message}\",\"url\":{url}}}")
    } else {
        r#"{"generated":false,"status":"skipped","message":null,"url":null}"#.to_string()
    }
}

/// Enqueues the PDF of this revision.
pub fn enqueue<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, document: &Document<K>) -> Result<()> {
    let key = format!("document_pdf {} {}", document.base.id, document.revision);
    let job = NewJob::of(ctx, &DocumentPdf(Revision::of(document)))?.keyed(key);
    jobs::enqueue(tx, ctx, &job)
}

/// Bytes that are printed for a row besides its name and description: amounts and their labels.
const PRINTED_ROW: usize = 100;

/// The job that creates and stores a PDF.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub struct DocumentPdf(Revision);

impl Job for DocumentPdf {
    const KIND: &'static str = "document_pdf";
    const LANE: Lane = Lane::Printing;

    fn run(&self, app: &App, claimed: &Claimed) -> Result<Ending> {
        let (account, own) = (claimed.account, self.0.clone());
        if app.store.read_now(move |tx| typesetting::is_made(tx, account, &own.document, own.revision))? {
            return Ok(Ending::Done);
        }
        let (caller, revision) = (app.acting_in(account, "printing")?, self.0.clone());
        let print = app.store.read_now(move |tx| {
            let ctx = caller.reading(tx)?;
            revision.print(tx, &ctx)
        })?;
        match typesetting::print_and_keep(app, &print) {
            Ok(_) => Ok(Ending::Done),
            Err(error) => Ok(Ending::Failed(error.to_string())),
        }
    }
}

/// A revision of a final document: what the next revision may change. Everything else that is printed is locked, so the
/// job reads it from the document, and nobody waits while it is formatted.
#[derive(Clone, Serialize, Deserialize)]
pub struct Revision {
    /// The kind of document.
    kind: Cow<'static, str>,
    document: String,
    revision: i64,
    title: String,
    invoice_date: String,
    due_date: String,
    /// Roughly how many bytes are printed; mail waits for a large PDF.
    size: usize,
    /// What an invoice asks for depends on these.
    payment: Option<PaymentState>,
    /// What a quote says about its answer depends on these.
    answer: Option<AnswerState>,
}

/// The answer to a quote.
#[derive(Clone, Serialize, Deserialize)]
struct AnswerState {
    status: String,
    accepted_at: Option<i64>,
    accepted_by: String,
    rejected_at: Option<i64>,
}

/// How the payment of an invoice stands.
#[derive(Clone, Serialize, Deserialize)]
struct PaymentState {
    status: String,
    paid_at: Option<i64>,
    paid: i64,
    credited: i64,
    collection_date: String,
    collection_account: String,
}

impl Revision {
    fn of<K: DocumentKind>(document: &Document<K>) -> Revision {
        Revision {
            kind: Document::<K>::shape().name.into(),
            document: document.base.id.clone(),
            revision: document.revision,
            title: document.title.clone(),
            invoice_date: document.invoice_date.text(),
            due_date: document.due_date.text(),
            size: document.rows.0.iter().map(|row| PRINTED_ROW + row.name.len() + row.description.len()).sum(),
            payment: (K::WHICH == Which::Invoice).then(|| PaymentState::of(document)),
            answer: (K::WHICH == Which::Quote).then(|| AnswerState::of(document)),
        }
    }

    /// Returns everything that is needed to create its PDF.
    fn print(&self, tx: &mut Tx, ctx: &Ctx) -> Result<Print> {
        match &*self.kind {
            "invoice" => self.print_of::<InvoiceKind>(tx, ctx),
            "quote" => self.print_of::<QuoteKind>(tx, ctx),
            "workorder" => self.print_of::<WorkorderKind>(tx, ctx),
            other => Err(Error::internal(format!("a job is to print a document of the unknown kind {other}"))),
        }
    }

    fn print_of<K: DocumentKind>(&self, tx: &mut Tx, ctx: &Ctx) -> Result<Print> {
        let mut document: Document<K> = records::find(tx, ctx, &self.document)?;
        document.revision = self.revision;
        document.title.clone_from(&self.title);
        document.invoice_date = Day(self.invoice_date.parse().ok());
        document.due_date = Day(self.due_date.parse().ok());
        if let Some(payment) = &self.payment {
            payment.put_into(&mut document);
        }
        if let Some(answer) = &self.answer {
            answer.put_into(&mut document);
        }
        print(tx, ctx, &document)
    }
}

impl AnswerState {
    fn of<K: DocumentKind>(document: &Document<K>) -> AnswerState {
        AnswerState {
            status: document.payment_status.wire().to_string(),
            accepted_at: document.accepted_at.0.map(|moment| moment.0),
            accepted_by: document.accepted_by.clone(),
            rejected_at: document.rejected_at.0.map(|moment| moment.0),
        }
    }

    fn put_into<K: DocumentKind>(&self, document: &mut Document<K>) {
        document.payment_status = PaymentStatus::from(self.status.as_str());
        document.accepted_at = When(self.accepted_at.map(Moment));
        document.accepted_by.clone_from(&self.accepted_by);
        document.rejected_at = When(self.rejected_at.map(Moment));
    }
}

impl PaymentState {
    fn of<K: DocumentKind>(document: &Document<K>) -> PaymentState {
        PaymentState {
            status: document.payment_status.wire().to_string(),
            paid_at: document.paid_at.0.map(|moment| moment.0),
            paid: document.paid_amount.scaled(),
            credited: document.credited_amount.scaled(),
            collection_date: document.collection_date.text(),
            collection_account: document.collection_account.clone(),
        }
    }

    fn put_into<K: DocumentKind>(&self, document: &mut Document<K>) {
        document.payment_status = PaymentStatus::from(self.status.as_str());
        document.paid_at = When(self.paid_at.map(Moment));
        document.paid_amount = Amount::from_scaled(self.paid);
        document.credited_amount = Amount::from_scaled(self.credited);
        document.collection_date = Day(self.collection_date.parse().ok());
        document.collection_account.clone_from(&self.collection_account);
    }
}

/// Returns everything that is needed to create the PDF of a document.
pub fn print<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, document: &Document<K>) -> Result<Print> {
    document.check_copies()?;
    let sender = document.sender.json();
    let logo = match sender["meta"]["logo_file_id"].as_str().unwrap_or_default() {
        "" => String::new(),
        id => match records::find::<File>(tx, ctx, id) {
            // The compiler only gets images that the program wrote.
            Ok(file) if file.redrawn => file.content,
            Ok(_) => String::new(),
            Err(error) if error.code == Code::NotFound => String::new(),
            Err(error) => return Err(error),
        },
    };
    let original = match document.credited_invoice_id.0.as_str() {
        "" => String::new(),
        // Its number alone: it may have a thousand rows.
        id => {
            let sql = "SELECT number FROM invoices WHERE account_id = $1 AND id = $2";
            let found =
                tx.first(sql, &[ctx.account.into(), id.into()], |row| Ok::<_, store::Error>(row.text(0)?.to_string()));
            found?.unwrap_or_default()
        }
    };
    Ok(Print {
        account: ctx.account,
        document: document.base.id.clone(),
        revision: if document.is_final() { document.revision } else { 0 },
        name: file_name(document),
        created: document.finalized_at.0.unwrap_or(document.base.updated_at).0 / 1000,
        logo,
        qr: payment_code(document, &sender).unwrap_or_default(),
        data: printed(ctx, document, &sender, &original, due_date(tx, ctx, document)?),
    })
}

/// Returns the due date if it is printed. A credit has none, and a workorder has no payment term: its date is printed if
/// somebody chose it.
fn due_date<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, document: &Document<K>) -> Result<Option<Date>> {
    if document.is_credit {
        return Ok(None);
    }
    let (Which::Workorder, Some(date)) = (K::WHICH, document.invoice_date.0) else { return Ok(document.due_date.0) };
    let term = match document.client.json()["payment_term"].as_i64() {
        Some(days) => days,
        None => Settings::of(tx, ctx)?.payment_term,
    };
    let usual = date.checked_add(term.days()).ok();
    Ok(document.due_date.0.filter(|due| Some(*due) != usual))
}

/// Returns the payment QR code for the open amount of an invoice.
fn payment_code<K: DocumentKind>(document: &Document<K>, sender: &Value) -> Option<String> {
    let text = |key: &str| sender["meta"][key].as_str().unwrap_or_default().to_string();
    if document.request() != Request::Transfer {
        return None;
    }
    transfer_code(document.unpaid_amount(), &document.number, &text("iban"), &text("bic"), sender["name"].as_str()?)
}

/// Returns the text of a payment QR code (EPC069-12), when there is an amount to transfer.
pub fn transfer_code(amount: Amount, number: &str, iban: &str, bic: &str, name: &str) -> Option<String> {
    let cents = amount.scaled();
    if iban.is_empty() || !(1..=99_999_999_999).contains(&cents) {
        return None;
    }
    let name: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).take(70).collect();
    let reference: String = number.chars().take(140).collect();
    let amount = format!("EUR{}.{:02}", cents / 100, cents % 100);
    Some(format!("BCD\n002\n1\nSCT\n{bic}\n{name}\n{iban}\n{amount}\n\n\n{reference}"))
}

/// Returns the document as input of the template.
fn printed<K: DocumentKind>(
    ctx: &Ctx,
    document: &Document<K>,
    sender: &Value,
    original: &str,
    due_date: Option<Date>,
) -> Value {
    let style = &Style(document.language);
    let client = document.client.json();
    let of = |from: &Value, key: &str| from[key].as_str().unwrap_or_default().trim().to_string();
    let meta = &sender["meta"];
    let kind = match K::WHICH {
        Which::Invoice if document.is_credit => "credit",
        Which::Invoice => "invoice",
        Which::Quote => "quote",
        Which::Workorder => "workorder",
    };
    let (rows, vat) = (rows(style, document), vat(style, document));
    let town = |from: &Value| [of(from, "zipcode"), of(from, "city")].join(" ").trim().to_string();
    let lines = |lines: Vec<String>| lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>();
    let person = [of(&client, "firstname"), of(&client, "lastname")].join(" ").trim().to_string();
    let (request, part) = (document.request(), document.asks_for_part());
    let money = |amount: Amount| if part && amount.scaled() != 0 { style.money(amount) } else { String::new() };
    let country = style.country(&of(&client, "country"), &of(meta, "country"));
    let mut data = json!({
        "kind": kind,
        "language": document.language.wire(),
        "draft": !document.is_final(),
        "number": document.number,
        "title": document.title,
        "date": document.invoice_date.0.map(|date| date.to_string()),
        "due_date": due_date.map(|date| date.to_string()),
        "supply_date": document.shown_supply_date().map(|date| date.to_string()),
        "reference": document.reference,
        "original_number": original,
        "sender": {
            "name": sender["name"], "lines": lines(vec![of(meta, "address"), town(meta)]), "email": of(meta, "email"),
            "phone": of(meta, "phone"), "website": of(meta, "website"),
            "registration_number": of(meta, "company_registration_number"), "vat_number": of(meta, "vat_number"),
            "iban": grouped(&of(meta, "iban")), "bic": of(meta, "bic"),
        },
        "colors": {"primary": sender["primary_color"], "secondary": sender["secondary_color"]},
        "recipient": lines(vec![of(&client, "company_name"), person, of(&client, "address"), town(&client), country]),
        "recipient_vat_number": of(&client, "vat_number"),
        "rows": rows,
        "vat": vat,
        "totals": {
            "excl": style.money(document.total_excl_vat), "vat": style.money(document.vat_amount),
            "incl": style.money(document.total_incl_vat), "paid": money(document.paid_amount),
            "credited": money(document.credited_amount), "open": money(document.unpaid_amount()),
            "collected": matches!(request, Request::Collection(..)),
        },
        "notes": document.notes.trim(),
        "footer": of(meta, "footer"),
    });
    if K::WHICH == Which::Quote {
        data["accept"] = match style.answered(ctx, document) {
            Some(answer) => json!({"answer": answer}),
            None => json!({"url": ctx.site.address(&format!("/d/{}", document.token))}),
        };
    }
    // Without a bank account there is no payment request.
    let asks = request == Request::Transfer && !of(meta, "iban").is_empty();
    if K::WHICH == Which::Invoice && !document.is_credit && !asks {
        data["terms"] = json!(style.printed_terms(ctx, document));
    }
    data
}

/// Returns the rows for the template.
fn rows<K: DocumentKind>(style: &Style, document: &Document<K>) -> Vec<Value> {
    let printed = document.rows.0.iter().map(|row| {
        json!({
            "name": row.name, "description": row.description, "unit": row.unit,
            "quantity": style.number(&Price::from_scaled(row.quantity).to_string(), 0),
            "unit_price": style.number(&Price::from_scaled(row.unit_price).to_string(), 2),
            "vat_rate": style.rate(&row.rate(), &row.category),
            "vat_phrase": style.vat("phrase", &row.category),
            "total": style.amount(row.net),
        })
    });
    printed.collect()
}

/// Returns the VAT per rate for the template.
fn vat<K: DocumentKind>(style: &Style, document: &Document<K>) -> Vec<Value> {
    let groups = document.rows.totals().map(|totals| totals.groups).unwrap_or_default();
    let printed = groups.iter().map(|group| {
        json!({
            "rate": format!("{}%", style.number(&group.rate.to_string(), 0)), "base": style.money(group.net),
            "amount": style.money(group.tax), "line": style.vat("line", &group.key),
            "note": style.vat("note", &group.key),
        })
    });
    printed.collect()
}

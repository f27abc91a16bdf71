//! Creating documents: what a caller can send, and how the rest is filled in.

use std::sync::Arc;

use engine::call::{Answer, Call};
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Code, FieldCode, FieldErrors, Result, violation};
use engine::input::Input;
use engine::input::pending::Pending;
use engine::record::{CREATED, Day, Link, When};
use engine::records::{self, Image, Work};
use jiff::ToSpan;
use money::{Amount, Percent, Price};
use store::Tx;

use super::complete::{NO_CLIENT, NO_ROWS, warned};
use super::faults;
use super::rows::{self, ROWS, Row, Rows, check_total};
use super::timers::STILL_DRAFT;
use super::{Document, DocumentKind, Language, Mode, PaymentStatus, Which, check_dates, numbering, pdf};
use crate::relations::client::{self, Client};
use crate::settings::corporate_identity::{self, CorporateIdentity};
use crate::settings::tax_rate::{self, TaxContext, TaxRate};
use crate::settings::{Settings, custom_field};
use crate::work::project::Project;

/// What happened to a document in an earlier program.
#[derive(Clone, Copy)]
pub struct Past {
    /// When an invoice was paid.
    pub paid_at: When,
    /// When it was sent.
    pub sent_at: When,
}

/// `POST /v1/{invoices,quotes,workorders}`
pub fn create<K: DocumentKind>(call: Call) -> Result<Work> {
    create_with::<K>(call, check_new, None)
}

/// Creates a document of an earlier program, which keeps its number and its times as they are.
pub fn create_old<K: DocumentKind>(call: Call, past: Past) -> Result<Work> {
    create_with::<K>(call, check_old, Some(past))
}

fn create_with<K: DocumentKind>(
    call: Call,
    rules: fn(&Input<Document<K>>, &mut FieldErrors),
    old: Option<Past>,
) -> Result<Work> {
    let pending: Pending<Document<K>> = Pending::create_with(&call, rules, true)?;
    let unread = faults::unread(&call, &pending, &ROWS);
    Ok(Box::new(move |tx, ctx| {
        let created = pending.valid().and_then(|input| create_now(tx, ctx, input, old));
        created.map_err(|error| faults::complete(tx, ctx, &pending, unread.as_ref(), None, error))
    }))
}

/// `old` is what happened to a document of an earlier program.
fn create_now<K: DocumentKind>(
    tx: &mut Tx,
    ctx: &Ctx,
    input: &Input<Document<K>>,
    old: Option<Past>,
) -> Result<Answer> {
    let new = input.values();
    // Read here so that it is cached below. A missing one is reported together with the other errors.
    if !new.client_id.0.is_empty() {
        match records::known::<Client>(tx, ctx, &new.client_id.0) {
            Err(error) if error.code != Code::NotFound => return Err(error),
            _ => {}
        }
    }
    records::check_references(tx, ctx, new, input)?;
    let mut warnings = input.warnings.clone();
    let client = client::named(tx, ctx, &new.client_id.0, &new.client_external_id)?;
    if client.is_none() {
        warnings.push(NO_CLIENT.to_string());
    }
    let (document, image) = make(tx, ctx, input, client.as_deref(), old)?;
    if document.rows.0.is_empty() {
        warnings.push(NO_ROWS.to_string());
    }
    let warnings = warned(&document, document.is_final(), &warnings);
    let answer = image.created(ctx, &document, CREATED).with_texts("warnings", &warnings);
    Ok(with_pdf(ctx, answer, &document))
}

/// Validates a new document; a changed one is validated in `before_save`.
fn check<K: DocumentKind>(input: &Input<Document<K>>, faults: &mut FieldErrors) {
    let new = input.values();
    check_dates(new.invoice_date.0, new.due_date.0, "due_date", faults);
    check_number(new, faults);
}

fn check_number<K: DocumentKind>(new: &Document<K>, faults: &mut FieldErrors) {
    if new.number.starts_with("DRAFT-") {
        faults.add("number", violation(FieldCode::InvalidFormat, "cannot start with DRAFT-"));
    }
}

/// Validates a document of an earlier program. If it is final, it was sent as it is, also with a due date before its own.
fn check_old<K: DocumentKind>(input: &Input<Document<K>>, faults: &mut FieldErrors) {
    if is_sent_final(input.values()) { check_number(input.values(), faults) } else { check(input, faults) }
}

/// Whether the caller sends a document that is final.
fn is_sent_final<K: DocumentKind>(new: &Document<K>) -> bool {
    new.generate || new.generation_mode == Mode::Final
}

/// Validates a document whose number the caller chooses now.
fn check_new<K: DocumentKind>(input: &Input<Document<K>>, faults: &mut FieldErrors) {
    check(input, faults);
    if !faults.has("number") && input.values().number.contains(char::is_whitespace) {
        faults.add("number", violation(FieldCode::InvalidFormat, "cannot contain spaces"));
    }
}

/// Creates a document from the input: checks the amounts that were sent and computes the others.
fn make<K: DocumentKind>(
    tx: &mut Tx,
    ctx: &Ctx,
    input: &Input<Document<K>>,
    client: Option<&Client>,
    old: Option<Past>,
) -> Result<(Document<K>, Image)> {
    let (new, paid_at) = (input.values(), old.map(|past| past.paid_at).unwrap_or_default());
    let mut document = input.record();
    document.generation_mode = Mode::Draft;
    document.client_id = Link(client.map(|client| client.base.id.clone()).unwrap_or_default());
    if !input.has("language") {
        document.language = language_of(client);
    }
    let assumed = input.has("vat_rate").then_some(new.vat_rate);
    if document.rows.0.is_empty() {
        let usual = match assumed {
            Some(rate) => Some(rate),
            None => rows::default_rate(tx, ctx)?.map(|rate| Percent::from_scaled(rate.amount.scaled())),
        };
        document.rows = row_of_total(tx, ctx, input, new, usual.unwrap_or(Percent::ZERO))?;
    }
    document.work_out(tx, ctx, assumed)?;
    check_totals(input, new, &document)?;
    match old {
        Some(_) if is_sent_final(new) => document.begin(tx, ctx, false)?,
        _ => document.start(tx, ctx)?,
    }
    if K::WHICH == Which::Invoice {
        document.paid_at = paid_at;
    }
    if !new.payment_status.wire().trim().is_empty() {
        document.payment_status.clone_from(&new.payment_status);
    }
    document.note_status(ctx);
    if is_sent_final(new) {
        document.check_complete(tx, ctx)?;
        // What an earlier program invoiced with a negative total is what we call a credit invoice.
        document.is_credit = old.is_some() && K::WHICH == Which::Invoice && document.total_incl_vat.scaled() < 0;
        // One that owes nothing is paid as soon as it is final.
        if K::WHICH == Which::Invoice
            && (document.payment_status.is_unpaid() || document.payment_status == PaymentStatus::Draft)
        {
            document.paid_at = paid_at;
        }
        document.become_final(tx, ctx)?;
        // An old document keeps its status and its times.
        match old {
            Some(past) => document.take_past(ctx, past),
            None => document.lapse(ctx),
        }
    }
    let image = save(tx, ctx, &mut document)?;
    Ok((document, image))
}

/// Saves a new document and emits its events.
pub fn save<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, document: &mut Document<K>) -> Result<Image> {
    save_as(tx, ctx, document, "created")
}

/// Saves a new document under an event other than `created`.
pub fn save_as<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, document: &mut Document<K>, event: &str) -> Result<Image> {
    let image = records::add_as(tx, ctx, document, event)?;
    if !document.is_final() {
        image.tell(tx, ctx, document, STILL_DRAFT.cause)?;
    }
    Ok(image)
}

/// Creates one row, named after the title, for a document with a total but without rows.
fn row_of_total<K: DocumentKind>(
    tx: &mut Tx,
    ctx: &Ctx,
    input: &Input<Document<K>>,
    new: &Document<K>,
    rate: Percent,
) -> Result<Rows> {
    let sent = |name: &str, amount: Amount| input.has(name).then_some(amount);
    let (tax, gross) = (sent("vat_amount", new.vat_amount), sent("total_incl_vat", new.total_incl_vat));
    let net = sent("total_excl_vat", new.total_excl_vat).or(sent("subtotal", new.subtotal));
    let minus = |one: Amount, other: Amount| Amount::from_scaled(one.scaled() - other.scaled());
    let net = net.or_else(|| Some(minus(gross?, tax?)));
    let tax = tax.or_else(|| Some(minus(gross?, net?)));
    let vat_code = match (net, tax) {
        (Some(net), Some(tax)) if !input.has("vat_rate") => {
            implied(&tax_rate::all(tx, ctx)?, net, tax).map(|rate| rate.code.clone()).unwrap_or_default()
        }
        _ => String::new(),
    };
    let Some(net) = net.or_else(|| gross.map(|gross| without_tax(gross, rate))) else { return Ok(Rows::default()) };
    let Some(unit_price) = net.rounded::<6>() else { return Ok(Rows::default()) };
    let quantity = Price::from_scaled(1_000_000).scaled();
    let name = new.title.clone();
    let row = Row { name, quantity, unit_price: unit_price.scaled(), vat_code, ..Row::default() };
    // Totals with and without VAT that are equal say that there is none.
    let says_none = tax.is_some_and(|tax| tax.scaled() == 0) && !input.has("vat_rate");
    Ok(Rows(vec![if says_none { row.stated() } else { row }]))
}

/// Returns the sales rate that matches this tax on `net` most closely, within a cent.
fn implied(rates: &[TaxRate], net: Amount, tax: Amount) -> Option<&TaxRate> {
    if tax.scaled() == 0 {
        // Several rates are zero, and the input does not say which one applies.
        return None;
    }
    // The difference between the tax at a rate and `tax`, in hundredths of a percent of a cent, so that small amounts
    // match correctly.
    let off = |rate: &&TaxRate| {
        let exact = i128::from(net.scaled()) * i128::from(rate.amount.scaled());
        (exact - i128::from(tax.scaled()) * 10_000).abs()
    };
    let sold = rates.iter().filter(|rate| rate.context == TaxContext::Sales);
    sold.filter(|rate| off(rate) <= 15_000).min_by_key(off)
}

/// Returns the net amount that comes to `gross` with tax.
fn without_tax(gross: Amount, rate: Percent) -> Amount {
    let (gross, whole) = (i128::from(gross.scaled()) * 10_000, i128::from(10_000 + rate.scaled()));
    let half = if gross < 0 { -whole / 2 } else { whole / 2 };
    Amount::from_scaled(i64::try_from((gross + half) / whole).unwrap_or_default())
}

fn check_totals<K: DocumentKind>(input: &Input<Document<K>>, new: &Document<K>, document: &Document<K>) -> Result<()> {
    let mut faults = FieldErrors::default();
    for (name, sent, own) in [
        ("subtotal", new.subtotal, document.subtotal),
        ("vat_amount", new.vat_amount, document.vat_amount),
        ("total_excl_vat", new.total_excl_vat, document.total_excl_vat),
        ("total_incl_vat", new.total_incl_vat, document.total_incl_vat),
    ] {
        check_total(name, input.has(name).then_some(sent), own.scaled(), &mut faults);
    }
    faults.into_result()
}

/// Dutch for the Netherlands, Belgium and an unknown country; otherwise English.
pub fn language_of(client: Option<&Client>) -> Language {
    match client.map_or("", |client| client.country.0.as_str()) {
        "" | "NL" | "BE" | "SR" | "CW" | "AW" | "SX" => Language::Dutch,
        _ => Language::English,
    }
}

impl<K: DocumentKind> Document<K> {
    /// Completes a new document: id, token, dates, names and a draft number.
    pub fn start(&mut self, tx: &mut Tx, ctx: &Ctx) -> Result<()> {
        self.begin(tx, ctx, true)
    }

    /// An old document was finalized when it was sent, or else on its own date.
    fn take_past(&mut self, ctx: &Ctx, past: Past) {
        let dated = self.invoice_date.0.and_then(|date| Moment::parse(&format!("{date}T12:00:00Z")));
        let then = past.sent_at.0.or(dated).filter(|then| *then < ctx.now);
        self.finalized_at = When(then.or(self.finalized_at.0));
        self.sent_at = past.sent_at;
    }

    /// Completes a new document; `orders_dates` tells whether it cannot be due before its own date.
    fn begin(&mut self, tx: &mut Tx, ctx: &Ctx, orders_dates: bool) -> Result<()> {
        self.base.id = ctx.new_id();
        self.token = ctx.ids.token_for(&self.base.id);
        if self.number.is_empty() {
            self.number = numbering::of_draft(&self.base.id);
        }
        self.payment_status = PaymentStatus::Draft;
        self.take_names(tx, ctx)?;
        self.resolve_dates(tx, ctx)?;
        let mut faults = FieldErrors::default();
        if orders_dates {
            check_dates(self.invoice_date.0, self.due_date.0, "due_date", &mut faults);
        }
        faults.into_result()?;
        self.take_project(tx, ctx)?;
        custom_field::resolve(tx, ctx, K::WHICH.entity(), &mut self.custom_fields, None)
    }

    /// Fills missing dates: today, and today plus the payment term of the client or of the account.
    pub fn resolve_dates(&mut self, tx: &mut Tx, ctx: &Ctx) -> Result<()> {
        let date = self.invoice_date.0.unwrap_or_else(|| ctx.now.date(&ctx.zone));
        self.invoice_date = Day(Some(date));
        if self.due_date.0.is_some() {
            return Ok(());
        }
        let (payment, quote) = match self.client_id.0.as_str() {
            "" => {
                let settings = Settings::of(tx, ctx)?;
                (settings.payment_term, settings.quote_expiration_days)
            }
            id => {
                let client = records::known::<Client>(tx, ctx, id)?;
                (client.payment_term.0, client.quote_expiration_days.0)
            }
        };
        let days = if K::WHICH == Which::Quote { quote } else { payment };
        self.due_date = Day(Some(date.checked_add(days.days()).unwrap_or(date)));
        Ok(())
    }

    /// Copies the names of the current client, and the default identity if it has none. A draft stores no more of them: it is
    /// printed with what they are then.
    pub(super) fn take_names(&mut self, tx: &mut Tx, ctx: &Ctx) -> Result<()> {
        let (client, identity) = self.parties(tx, ctx)?;
        self.name_parties(client.as_deref(), &identity);
        (self.client, self.sender) = Default::default();
        Ok(())
    }

    /// Copies the current client and corporate identity, as a final document keeps them.
    pub fn take_snapshots(&mut self, tx: &mut Tx, ctx: &Ctx) -> Result<()> {
        let (client, identity) = self.parties(tx, ctx)?;
        self.name_parties(client.as_deref(), &identity);
        self.sender = records::known_snapshot(tx, ctx, &*identity);
        self.client = client.map(|client| records::known_snapshot(tx, ctx, &*client)).unwrap_or_default();
        Ok(())
    }

    fn parties(&self, tx: &mut Tx, ctx: &Ctx) -> Result<(Option<Arc<Client>>, Arc<CorporateIdentity>)> {
        let client = match self.client_id.0.as_str() {
            "" => None,
            id => Some(records::known::<Client>(tx, ctx, id)?),
        };
        let identity = match self.corporate_identity_id.0.as_str() {
            "" => corporate_identity::default_one(tx, ctx)?,
            id => records::known::<CorporateIdentity>(tx, ctx, id)?,
        };
        Ok((client, identity))
    }

    fn name_parties(&mut self, client: Option<&Client>, identity: &CorporateIdentity) {
        self.corporate_identity_id = Link(identity.base.id.clone());
        match client {
            Some(client) => self.take_client(client),
            None => self.take_client(&Client::default()),
        }
    }

    /// Copies the number of its project.
    pub fn take_project(&mut self, tx: &mut Tx, ctx: &Ctx) -> Result<()> {
        self.project_number = match self.project_id.0.as_str() {
            "" => String::new(),
            id => records::find::<Project>(tx, ctx, id)?.number,
        };
        Ok(())
    }
}

/// Adds `generation_mode` and `pdf` to the response of a create, both next to `meta` and inside it.
fn with_pdf<K: DocumentKind>(ctx: &Ctx, mut answer: Answer, document: &Document<K>) -> Answer {
    let pdf = pdf::state_when_made(ctx, document);
    let mode = document.generation_mode.wire();
    // The record ends with its meta, and so with two braces.
    answer.data.truncate(answer.data.len() - 2);
    answer
        .data
        .extend_from_slice(format!(",\"pdf\":{pdf}}},\"generation_mode\":\"{mode}\",\"pdf\":{pdf}}}").as_bytes());
    answer
}

//! New documents: what a caller may send, and what is filled in.

use jiff::ToSpan;
use money::{Amount, Percent, Price};
use store::Tx;

use super::rows::{Row, Rows, check_total};
use super::{Document, DocumentKind, Language, Mode, Which, check_dates, numbering, pdf};
use crate::call::{Answer, Call};
use crate::context::Ctx;
use crate::error::{Faults, FieldCode, Result, wrong};
use crate::input::{self, Input};
use crate::record;
use crate::record::{CREATED, Checks, Custom, DETAIL, Day, INPUT, Link, REQUIRED, Record};
use crate::records::{self, Work};
use crate::resources::client::{self, Client};
use crate::resources::corporate_identity::{self, CorporateIdentity};
use crate::resources::custom_field;
use crate::resources::project::Project;

/// The largest total that a caller can send.
const TOTAL: record::Rules = INPUT.create_only();

record! {
    /// What is sent to make a document.
    pub struct NewDocument = "document" in "documents";

    /// What it is about.
    title: String = REQUIRED.example("\"Boiler, with installation\"");
    /// The client.
    client_id: Link = INPUT.refers("clients");
    /// The client, by your own reference.
    client_external_id: String = INPUT.example("\"\"");
    /// The date on it; today when nothing is sent.
    invoice_date: Day = INPUT.example("\"2026-05-04\"");
    /// When it is to be paid, or until when a quote is valid; by the terms of the client when nothing is sent.
    due_date: Day = INPUT.example("\"2026-06-03\"");
    /// Your own reference; no two have the same.
    external_id: String = INPUT.example("\"\"");
    /// `draft`, or `final` to make it final at once.
    generation_mode: Mode = INPUT.example("\"draft\"");
    /// The same as `generation_mode: "final"`.
    generate: bool = INPUT.example("false");
    /// What is sold: `name` or `title`, `quantity`, `unit`, `unit_price`, and `vat_code` or `vat_rate`.
    rows: Rows = INPUT.example("[{\"name\": \"Boiler\", \"quantity\": 1, \"unit_price\": 1250, \"vat_rate\": \"21\"}]");
    /// Checked against the rows; without rows the one row that is made of it.
    subtotal: Amount = TOTAL.example("1250");
    /// The VAT percentage of rows that have none.
    vat_rate: Percent = INPUT.between(0, 100).example("21");
    /// Checked against the rows.
    vat_amount: Amount = TOTAL.example("262.5");
    /// Checked against the rows; without rows the one row that is made of it.
    total_excl_vat: Amount = TOTAL.example("1250");
    /// Checked against the rows; without rows the one row that is made of it.
    total_incl_vat: Amount = TOTAL.example("1512.5");
    /// A number of your own, for documents from elsewhere.
    number: String = INPUT.at_most(64).example("\"\"");
    /// A word of your own for how it stands.
    payment_status: String = INPUT.at_most(64).example("\"\"");
    /// The language of the PDF, the page and the mail; by the client's country when nothing is sent.
    language: Language = INPUT.example("\"nl\"");
    /// A reference of the client, printed on it.
    reference: String = INPUT.example("\"PO-2026-17\"");
    /// Words below the rows.
    notes: String = INPUT.at_most(4096).example("\"Thank you for your order.\"");
    /// The corporate identity; the default one when nothing is sent.
    corporate_identity_id: Link = INPUT.refers("corporate_identities");
    /// The project it belongs to.
    project_id: Link = INPUT.refers("projects");
    /// The deal it belongs to.
    deal_id: Link = INPUT.refers("deals");
    /// Values of your own fields, by their key.
    custom_fields: Custom = INPUT.example("{}");
}

impl Checks for NewDocument {
    fn check(&self, faults: &mut Faults) {
        check_dates(self.invoice_date.0, self.due_date.0, faults);
        if self.number.starts_with("DRAFT-") || self.number.contains(char::is_whitespace) {
            faults.add("number", wrong(FieldCode::InvalidFormat, "cannot have spaces or start with DRAFT-"));
        }
    }
}

/// `POST /v1/{invoices,quotes,workorders}`
pub fn create<K: DocumentKind>(call: Call) -> Result<Work> {
    let input: Input<NewDocument> = input::create(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let new = input.record();
        records::check_references(tx, ctx, &new, &input)?;
        let mut warnings = input.warnings.clone();
        let client = client::named(tx, ctx, &new.client_id.0, &new.client_external_id)?;
        if client.is_none() {
            warnings.push("The document has no client.".to_string());
        }
        let document = make::<K>(tx, ctx, &input, &new, client)?;
        let answer = Answer::created(ctx, &document, CREATED).with_texts("warnings", &warnings);
        Ok(with_pdf(ctx, answer, &document))
    }))
}

fn make<K: DocumentKind>(
    tx: &mut Tx,
    ctx: &Ctx,
    input: &Input<NewDocument>,
    new: &NewDocument,
    client: Option<Client>,
) -> Result<Document<K>> {
    let mut document = Document::<K> {
        title: new.title.clone(),
        client_id: Link(client.as_ref().map(|client| client.base.id.clone()).unwrap_or_default()),
        invoice_date: new.invoice_date.clone(),
        due_date: new.due_date.clone(),
        external_id: new.external_id.clone(),
        rows: new.rows.clone(),
        number: new.number.clone(),
        language: if input.has("language") { new.language } else { language_of(client.as_ref()) },
        reference: new.reference.clone(),
        notes: new.notes.clone(),
        corporate_identity_id: new.corporate_identity_id.clone(),
        project_id: new.project_id.clone(),
        deal_id: new.deal_id.clone(),
        custom_fields: new.custom_fields.clone(),
        ..Document::default()
    };
    let assumed = if input.has("vat_rate") { new.vat_rate } else { Percent::ZERO };
    if document.rows.0.is_empty() {
        document.rows = row_of_total(input, new, assumed);
    }
    document.work_out(tx, ctx, assumed)?;
    check_totals(input, new, &document)?;
    document.start(tx, ctx)?;
    if !new.payment_status.is_empty() {
        document.payment_status.clone_from(&new.payment_status);
    }
    if new.generate || new.generation_mode == Mode::Final {
        document.become_final(tx, ctx)?;
        if !new.payment_status.is_empty() {
            document.payment_status.clone_from(&new.payment_status);
        }
    }
    save(tx, ctx, &mut document)?;
    Ok(document)
}

/// Saves a new document with its events, and has its PDF made.
pub fn save<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, document: &mut Document<K>) -> Result<()> {
    records::add(tx, ctx, document)?;
    if document.is_final() {
        return pdf::enqueue(tx, ctx, document);
    }
    records::emit(tx, ctx, document, "document.draft")
}

/// Without rows but with a total there is one row, named after the title.
fn row_of_total(input: &Input<NewDocument>, new: &NewDocument, rate: Percent) -> Rows {
    let net = match (input.has("total_excl_vat"), input.has("subtotal"), input.has("total_incl_vat")) {
        (true, _, _) => new.total_excl_vat,
        (_, true, _) => new.subtotal,
        (_, _, true) => without_tax(new.total_incl_vat, rate),
        _ => return Rows::default(),
    };
    let Some(unit_price) = net.rounded::<6>() else { return Rows::default() };
    let quantity = Price::from_scaled(1_000_000).scaled();
    Rows(vec![Row { name: new.title.clone(), quantity, unit_price: unit_price.scaled(), ..Row::default() }])
}

/// What comes to `gross` when the tax is put on it.
fn without_tax(gross: Amount, rate: Percent) -> Amount {
    let (gross, whole) = (i128::from(gross.scaled()) * 10_000, i128::from(10_000 + rate.scaled()));
    let half = if gross < 0 { -whole / 2 } else { whole / 2 };
    Amount::from_scaled(i64::try_from((gross + half) / whole).unwrap_or_default())
}

fn check_totals<K: DocumentKind>(input: &Input<NewDocument>, new: &NewDocument, document: &Document<K>) -> Result<()> {
    let mut faults = Faults::default();
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

/// Dutch in the Low Countries and where nothing is known, else English.
pub fn language_of(client: Option<&Client>) -> Language {
    match client.map_or("", |client| client.country.0.as_str()) {
        "" | "NL" | "BE" | "SR" | "CW" | "AW" | "SX" => Language::Dutch,
        _ => Language::English,
    }
}

impl<K: DocumentKind> Document<K> {
    /// What every new document gets: an id, a token, dates, snapshots and a number of a draft.
    pub fn start(&mut self, tx: &mut Tx, ctx: &Ctx) -> Result<()> {
        self.base.id = ctx.new_id();
        self.token = ctx.ids.token();
        if self.number.is_empty() {
            self.number = numbering::of_draft(&self.base.id);
        }
        self.payment_status = "draft".to_string();
        let client = self.take_snapshots(tx, ctx)?;
        let today = ctx.now.date(&ctx.zone);
        let date = self.invoice_date.0.unwrap_or(today);
        self.invoice_date = Day(Some(date));
        if self.due_date.0.is_none() {
            let (own, usual) = match K::WHICH {
                Which::Quote => (client.as_ref().map_or(0, |client| client.quote_expiration_days), 30),
                _ => (client.as_ref().map_or(0, |client| client.payment_term), 14),
            };
            let days = if own > 0 { own } else { usual };
            self.due_date = Day(Some(date.checked_add(days.days()).unwrap_or(date)));
        }
        let mut faults = Faults::default();
        check_dates(self.invoice_date.0, self.due_date.0, &mut faults);
        faults.into_result()?;
        self.take_project(tx, ctx)?;
        custom_field::settle(tx, ctx, K::WHICH.entity(), &mut self.custom_fields, None)
    }

    /// Takes over the client and the corporate identity as they are now.
    pub fn take_snapshots(&mut self, tx: &mut Tx, ctx: &Ctx) -> Result<Option<Client>> {
        let client = match self.client_id.0.as_str() {
            "" => None,
            id => Some(records::find::<Client>(tx, ctx, id)?),
        };
        let identity = match self.corporate_identity_id.0.as_str() {
            "" => corporate_identity::default_one(tx, ctx)?,
            id => records::find::<CorporateIdentity>(tx, ctx, id)?,
        };
        self.corporate_identity_id = Link(identity.base.id.clone());
        self.sender = as_json(ctx, &identity);
        let blank = Client::default();
        let shown = client.as_ref().unwrap_or(&blank);
        self.client_company_name.clone_from(&shown.company_name);
        self.client_firstname.clone_from(&shown.firstname);
        self.client_lastname.clone_from(&shown.lastname);
        self.client_email.clone_from(&shown.email.0);
        self.client = client.as_ref().map(|client| as_json(ctx, client)).unwrap_or_default();
        Ok(client)
    }

    /// Shows the number of its project.
    pub fn take_project(&mut self, tx: &mut Tx, ctx: &Ctx) -> Result<()> {
        self.project_number = match self.project_id.0.as_str() {
            "" => String::new(),
            id => records::find::<Project>(tx, ctx, id)?.number,
        };
        Ok(())
    }
}

fn as_json<R: Record>(ctx: &Ctx, record: &R) -> String {
    let mut out = Vec::new();
    record.write_json(DETAIL, ctx, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// `generation_mode` and `pdf` beside `meta` and in it, as the answer to a create has them.
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

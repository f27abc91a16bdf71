//! Documents: invoices, quotes and workorders, one shape for all three. A draft can be changed; when
//! it becomes final it gets its number, and its rows, client and totals are locked.

pub mod credit;
pub mod kind;
pub mod mail;
pub mod money_due;
pub mod new;
pub mod numbering;
pub mod page;
pub mod pdf;
pub mod quote;
pub mod rows;
mod sound;
mod tables;
pub mod workorder;

use jiff::civil::Date;
use money::{Amount, Percent};
use store::{Migration, Tx};

use super::custom_field;
use super::payment;
use super::{Gives, Resource};
use crate::call::{Answer, Call};
use crate::context::Ctx;
use crate::error::{Code, Error, Faults, FieldCode, Result, wrong};
use crate::input;
use crate::record::{
    ACTED, COMPUTED, CREATED, Checks, Custom, DETAIL, Day, GIVEN, INPUT, Link, NOWHERE, REQUIRED, Record, UPDATED,
    Views, When,
};
use crate::records::{self, Work};
use crate::{choice, record};
pub use kind::{DocumentKind, Invoice, InvoiceKind, Quote, QuoteKind, Which, Workorder, WorkorderKind};
use rows::Rows;
pub use tables::MIGRATIONS;
use tables::{INVOICES, QUOTES, WORKORDERS};

choice! {
    /// Whether a document can still be changed.
    pub enum Mode {
        /// It can.
        #[default]
        Draft = "draft",
        /// It cannot.
        Final = "final",
    }
}

choice! {
    /// The language of a document.
    pub enum Language {
        /// Dutch.
        #[default]
        Dutch = "nl",
        /// English.
        English = "en",
    }
}

/// Everywhere but in lists.
pub const WHOLE: Views = DETAIL.and(CREATED).and(UPDATED).and(ACTED);

record! {
    /// An invoice, a quote or a workorder.
    pub struct Document<K: DocumentKind>;

    /// Given when it becomes final, without gaps; a draft has one that starts with DRAFT. A document from elsewhere can
    /// be sent with a number of its own.
    number: String = GIVEN.at_most(64).search().filter().sort().unique(&[]).example("\"\"");
    /// What it is about.
    title: String = REQUIRED.revises().copied().search().sort().example("\"Boiler, with installation\"");
    /// The date on it; today when nothing is sent.
    invoice_date: Day = INPUT.kept().revises().sort().range("date_from", "date_to").example("\"2026-05-04\"");
    /// When it is to be paid, or until when a quote is valid; by the terms of the client when nothing is sent.
    due_date: Day = INPUT.kept().revises().sort().range("due_date_from", "due_date_to").example("\"2026-06-03\"");
    /// The sum of the rows. When sent, it is checked against the rows; without rows it makes the one row.
    subtotal: Amount = GIVEN.example("1250");
    /// The VAT percentage; with several rates, what it comes to. When sent, the percentage of rows that have none.
    vat_rate: Percent = GIVEN.between(0, 100).example("21");
    /// The VAT. When sent, it is checked against the rows.
    vat_amount: Amount = GIVEN.example("262.5");
    /// The total without VAT. When sent, it is checked against the rows; without rows it makes the one row.
    total_excl_vat: Amount = GIVEN.sort().example("1250");
    /// The total with VAT. When sent, it is checked against the rows; without rows it makes the one row.
    total_incl_vat: Amount = GIVEN.sort().example("1512.5");
    /// The client.
    client_id: Link = INPUT.refers("clients").locked_when_final().copied().filter().sort();
    /// The client, by your own reference.
    client_external_id: String = INPUT.create_only().sent_only().example("\"\"");
    /// How it stands: draft, open, partial, paid, overdue, credited, accepted …, or your own word.
    payment_status: String = INPUT.kept().at_most(64).filter().sort().example("\"draft\"");
    /// When it was paid.
    paid_at: When = COMPUTED.nullable().sort();
    /// When it was first sent.
    sent_at: When = COMPUTED.nullable().sort();
    /// The number of the project it belongs to.
    project_number: String = COMPUTED.nullable();
    /// Whether it is a credit.
    is_credit: bool = COMPUTED;
    /// Your own reference; no two have the same.
    external_id: String = GIVEN.nullable_once_made().search().filter().unique(&[]).example("\"\"");
    /// What is sold: `name` or `title`, `quantity`, `unit`, `unit_price`, and `vat_code` or `vat_rate`. Can be changed as
    /// long as it is a draft.
    rows: Rows = INPUT.locked_when_final().copied().heavy().shown(WHOLE).example("[{\"name\": \"Boiler\", \"quantity\": 1, \"unit_price\": 1250, \"vat_rate\": \"21\"}]");
    /// The client's company, as it was.
    client_company_name: String = COMPUTED.search().shown(WHOLE);
    /// The client's first name, as it was.
    client_firstname: String = COMPUTED.search().shown(WHOLE);
    /// The client's last name, as it was.
    client_lastname: String = COMPUTED.search().shown(WHOLE);
    /// Values of your own fields, by their key; null takes one away.
    custom_fields: Custom = INPUT.shown(WHOLE).example("{}");
    /// `draft` or `final`; sending `final` makes a draft final.
    generation_mode: Mode = INPUT.locked_when_final().in_meta().example("\"draft\"");
    /// The same as `generation_mode: "final"`.
    generate: bool = INPUT.create_only().sent_only().example("false");
    /// When it became final.
    finalized_at: When = COMPUTED.nullable().in_meta();
    /// Grows with every change of a final document.
    revision: i64 = COMPUTED.in_meta();
    /// The language of the PDF, the page and the mail; by the client's country when nothing is sent.
    language: Language = INPUT.locked_when_final().copied().in_meta().example("\"nl\"");
    /// A reference of the client, printed on it.
    reference: String = INPUT.locked_when_final().copied().in_meta().example("\"PO-2026-17\"");
    /// Words below the rows.
    notes: String = INPUT.at_most(4096).locked_when_final().in_meta().example("\"Thank you for your order.\"");
    /// Where mail about it goes, as it was.
    client_email: String = COMPUTED.search().in_meta();
    /// The corporate identity it has; the default one when nothing is sent.
    corporate_identity_id: Link = INPUT.refers("corporate_identities").locked_when_final().copied().in_meta();
    /// The project it belongs to.
    project_id: Link = INPUT.nullable_once_made().refers("projects").revises().copied().in_meta();
    /// The deal it belongs to.
    deal_id: Link = INPUT.nullable_once_made().refers("deals").copied().in_meta();
    /// The invoice that this one credits.
    credited_invoice_id: Link = COMPUTED.nullable().refers("invoices").in_meta();
    /// The invoice that was made of it.
    invoice_id: Link = COMPUTED.nullable().refers("invoices").in_meta();
    /// The quote it was made of.
    quote_id: Link = COMPUTED.nullable().refers("quotes").in_meta();
    /// The subscription that made it.
    subscription_id: Link = COMPUTED.nullable().refers("subscriptions").in_meta();
    /// The first day of the subscription's period that it is for.
    period_start: Day = COMPUTED.nullable().in_meta();
    /// The last day of that.
    period_end: Day = COMPUTED.nullable().in_meta();
    /// What was paid.
    paid_amount: Amount = COMPUTED.in_meta();
    /// What was credited, with VAT.
    credited_amount: Amount = COMPUTED.in_meta();
    /// When the client accepted it.
    accepted_at: When = COMPUTED.nullable().in_meta();
    /// Who accepted it.
    accepted_by: String = COMPUTED.in_meta();
    /// When the client rejected it.
    rejected_at: When = COMPUTED.nullable().in_meta();
    /// When the client first saw its page.
    viewed_at: When = COMPUTED.nullable().in_meta();
    /// Opens its page.
    token: String = COMPUTED.shown(NOWHERE);
    /// The client as it was, as JSON.
    client: String = COMPUTED.heavy().shown(NOWHERE);
    /// The corporate identity as it was, as JSON.
    sender: String = COMPUTED.heavy().shown(NOWHERE);

    // A field of each kind, for the tests in `declared.rs`.
    /// A text.
    #[cfg(test)] test_text: String = INPUT.locked_when_final().copied().filter().example("\"red\"");
    /// An amount.
    #[cfg(test)] test_amount: Amount = INPUT.copied().filter().example("12.5");
    /// A number.
    #[cfg(test)] test_number: i64 = INPUT.revises().copied().filter().example("1");
    /// A switch.
    #[cfg(test)] test_switch: bool = INPUT.copied().filter().example("true");
    /// A day.
    #[cfg(test)] test_day: Day = INPUT.copied().filter().example("\"2026-05-04\"");
    /// A moment.
    #[cfg(test)] test_moment: When = INPUT.copied().filter().example("\"2026-05-04T09:30:00Z\"");
    /// A choice.
    #[cfg(test)] test_choice: Language = INPUT.copied().filter().example("\"en\"");
    /// A link.
    #[cfg(test)] test_link: Link = INPUT.refers("clients").copied().filter();
    /// A list.
    #[cfg(test)] test_list: record::Texts = INPUT.copied().example("[]");
    /// In the body alone.
    #[cfg(test)] test_hint: String = INPUT.sent_only().example("\"x\"");
}

impl<K: DocumentKind> Checks for Document<K> {
    fn settle(&mut self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        // A new one comes settled from `new`.
        let Some(before) = before else { return Ok(()) };
        if self.project_id != before.project_id {
            self.take_project(tx, ctx)?;
        }
        self.settle_dates(tx, ctx)?;
        if before.is_final() { self.settle_final(before) } else { self.settle_draft(tx, ctx, before) }?;
        let moved = (self.invoice_date != before.invoice_date, self.due_date != before.due_date);
        if moved != (false, false) {
            let mut faults = Faults::default();
            let field = if moved.1 { "due_date" } else { "invoice_date" };
            check_dates(self.invoice_date.0, self.due_date.0, field, &mut faults);
            faults.into_result()?;
        }
        let custom = Some(&before.custom_fields);
        custom_field::settle(tx, ctx, K::WHICH.entity(), &mut self.custom_fields, custom)?;
        self.settle_status(ctx, before);
        Ok(())
    }

    fn events(&self, before: Option<&Self>) -> Vec<&'static str> {
        let moved = before.is_some_and(|before| before.payment_status != self.payment_status);
        let mut events = Vec::new();
        if K::WHICH == Which::Quote && moved {
            events.push("phase_changed");
        }
        match K::WHICH {
            Which::Invoice if self.comes_to("paid", before) => events.push("paid"),
            Which::Quote if self.comes_to("accepted", before) => events.push("accepted"),
            Which::Workorder if self.comes_to("completed", before) => events.push("completed"),
            _ => {}
        }
        events
    }

    fn saved(&self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        match K::WHICH {
            Which::Invoice => money_due::follow(tx, ctx, before, self),
            Which::Quote if self.comes_to("accepted", before) => quote::tell_deal(tx, ctx, &self.deal_id.0),
            _ => Ok(()),
        }
    }
}

/// A due date before the date itself is wrong; `field` is the one of them to name.
fn check_dates(date: Option<Date>, due: Option<Date>, field: &str, faults: &mut Faults) {
    if let (Some(date), Some(due)) = (date, due)
        && due < date
    {
        let message = if field == "due_date" { "cannot be before invoice_date" } else { "cannot be after due_date" };
        faults.add(field, wrong(FieldCode::OutOfRange, message));
    }
}

/// How an invoice stands on which something is left to pay.
const UNPAID: [&str; 3] = ["open", "partial", "overdue"];

impl<K: DocumentKind> Document<K> {
    /// Whether it can no longer be changed.
    pub fn is_final(&self) -> bool {
        self.generation_mode == Mode::Final
    }

    /// Whether it has this status now and had not before. What is said of a draft is told when it becomes final.
    fn comes_to(&self, status: &str, before: Option<&Self>) -> bool {
        let stands = |document: &Self| document.is_final() && document.payment_status == status;
        stands(self) && !before.is_some_and(stands)
    }

    /// The total that is still to be paid.
    pub fn open_amount(&self) -> Amount {
        let left = self.total_incl_vat.scaled() - self.credited_amount.scaled() - self.paid_amount.scaled();
        Amount::from_scaled(left)
    }

    fn settle_final(&mut self, before: &Self) -> Result<()> {
        if self.differs(before, |rules| rules.locked_when_final) {
            let message = "The document is final: title, dates and payment_status can be changed, the rest is locked.";
            return Err(Error::new(Code::Locked, message));
        }
        if self.differs(before, |rules| rules.revises) {
            self.revision += 1;
        }
        Ok(())
    }

    fn settle_draft(&mut self, tx: &mut Tx, ctx: &Ctx, before: &Self) -> Result<()> {
        let becomes_final = self.generation_mode == Mode::Final;
        self.generation_mode = Mode::Draft;
        if self.client_id != before.client_id || self.corporate_identity_id != before.corporate_identity_id {
            self.take_snapshots(tx, ctx)?;
        }
        if self.rows != before.rows {
            self.work_out(tx, ctx, Percent::ZERO)?;
        }
        if becomes_final {
            self.become_final(tx, ctx)?;
        }
        Ok(())
    }

    /// A status that the caller sets by hand.
    fn settle_status(&mut self, ctx: &Ctx, before: &Self) {
        if self.payment_status == before.payment_status {
            return self.settle_due_date(ctx, before);
        }
        self.note_status(ctx);
    }

    /// Writes down when it came to stand as it does.
    pub fn note_status(&mut self, ctx: &Ctx) {
        // Where nothing is to be paid, nobody has to wait for it, and nobody is late.
        let owes_nothing = self.is_final() && !self.is_credit && self.total_incl_vat.scaled() == 0;
        if K::WHICH == Which::Invoice && owes_nothing && UNPAID.contains(&self.payment_status.as_str()) {
            self.payment_status = "paid".to_string();
        }
        match (K::WHICH, self.payment_status.as_str()) {
            (Which::Invoice, "paid") => self.paid_at = When(self.paid_at.0.or(Some(ctx.now))),
            (Which::Invoice, _) => self.paid_at = When(None),
            (Which::Quote, "accepted") => self.accepted_at = When(Some(ctx.now)),
            (Which::Quote, "rejected") => self.rejected_at = When(Some(ctx.now)),
            _ => {}
        }
    }

    /// What was late or no longer valid is so no more when it has more time.
    fn settle_due_date(&mut self, ctx: &Ctx, before: &Self) {
        let today = ctx.now.date(&ctx.zone);
        if self.due_date == before.due_date || self.due_date.0.is_none_or(|due| due < today) {
            return;
        }
        match (K::WHICH, self.payment_status.as_str()) {
            (Which::Invoice, "overdue") => self.settle_payments(ctx),
            (Which::Quote, "expired") => self.payment_status = "open".to_string(),
            _ => {}
        }
    }

    /// Works out the totals of its rows.
    pub fn work_out(&mut self, tx: &mut Tx, ctx: &Ctx, assumed: Percent) -> Result<()> {
        let totals = self.rows.settle(tx, ctx, assumed)?;
        self.take_totals(&totals);
        Ok(())
    }

    /// Stands for these totals.
    pub fn take_totals(&mut self, totals: &money::Totals<String>) {
        self.subtotal = totals.net;
        self.total_excl_vat = totals.net;
        self.vat_amount = totals.tax;
        self.total_incl_vat = totals.gross;
        let mut rates = totals.groups.iter().map(|group| group.rate);
        self.vat_rate = match (rates.next(), rates.all(|rate| Some(rate) == totals.groups.first().map(|one| one.rate)))
        {
            (Some(only), true) => only,
            _ => money::percentage(totals.tax, totals.net),
        };
    }
}

/// Finalises the document in the path.
fn finalize<K: DocumentKind>(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let mut document: Document<K> = records::find_to_change(tx, ctx, &call)?;
        make_final(tx, ctx, &mut document)?;
        Ok(Answer::record(ctx, &document, DETAIL).with_texts("warnings", &warnings))
    }))
}

/// Makes a draft final and saves it; answers whether it was a draft.
pub fn make_final<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, document: &mut Document<K>) -> Result<bool> {
    if document.is_final() {
        return Ok(false);
    }
    let before = document.clone();
    change_to_final(tx, ctx, &before, document)
}

/// Saves a change of a document that is final from here on, as one change; answers whether it was a draft.
pub fn change_to_final<K: DocumentKind>(
    tx: &mut Tx,
    ctx: &Ctx,
    before: &Document<K>,
    document: &mut Document<K>,
) -> Result<bool> {
    document.generation_mode = Mode::Final;
    records::change(tx, ctx, before, document, "updated")?;
    if before.is_final() {
        return Ok(false);
    }
    pdf::enqueue(tx, ctx, document)?;
    Ok(true)
}

/// Says in `meta` that a draft became final on the way.
pub fn with_finalized(mut answer: Answer, finalized: bool) -> Answer {
    if finalized {
        answer.meta.push("\"finalized\":true".to_string());
    }
    answer
}

fn patch<K: DocumentKind>(call: Call) -> Result<Work> {
    let write = records::patch::<Document<K>>(call.clone())?;
    Ok(Box::new(move |tx, ctx| {
        let before: Document<K> = records::find(tx, ctx, call.id())?;
        let answer = write(tx, ctx)?;
        let document: Document<K> = records::find(tx, ctx, call.id())?;
        if document.is_final() && document.revision != before.revision {
            pdf::enqueue(tx, ctx, &document)?;
        }
        Ok(answer)
    }))
}

/// Drafts alone can be deleted.
fn delete<K: DocumentKind>(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let document: Document<K> = records::find_to_change(tx, ctx, &call)?;
        if document.is_final() {
            let way = match K::WHICH {
                Which::Invoice => "credit it instead",
                Which::Quote => "reject it instead",
                Which::Workorder => "complete it instead",
            };
            let message = format!("{} is final and cannot be deleted; {way}.", document.number);
            return Err(Error::new(Code::DocumentNotDraft, message));
        }
        records::remove(tx, ctx, &document)?;
        Ok(match K::WHICH {
            Which::Workorder => Answer::empty(),
            _ => Answer::record(ctx, &document, DETAIL),
        })
    }))
}

/// Rows of drafts that name a product which goes forget it.
pub fn forget_product<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, product: &str) -> Result<()> {
    let drafts = "generation_mode = 'draft' AND rows LIKE $2";
    let sql = format!("{} WHERE account_id = $1 AND {drafts} ORDER BY created_at, id", K::sql().select);
    let pattern = format!("%\"{product}\"%");
    for before in tx.all(&sql, &[ctx.account.into(), pattern.into()], Document::<K>::from_row)? {
        let mut document = before.clone();
        for row in document.rows.0.iter_mut().filter(|row| row.product_id == product) {
            row.product_id.clear();
        }
        records::update(tx, ctx, &before, &mut document, "updated")?;
    }
    Ok(())
}

/// The routes that all three have.
fn shared<K: DocumentKind>(title: &'static str, migrations: &'static [Migration]) -> Resource {
    let resource = Resource::of::<Document<K>>(title, "invoices", migrations)
        .inspected::<Document<K>>(sound::faults)
        .list::<Document<K>>()
        .create_with(new::create::<K>)
        .get::<Document<K>>()
        .patch_with::<Document<K>>(patch::<K>);
    let resource = match K::WHICH {
        Which::Workorder => resource.delete_with(delete::<K>),
        _ => resource.delete_shown_with(delete::<K>),
    };
    resource
        .action("finalize", "Make a draft final", DETAIL, finalize::<K>)
        .extension()
        .part("pdf", "Where the PDF is", pdf::PARTS, pdf::address::<K>)
        .content("pdf/content", "Download the PDF", pdf::content::<K>)
        .extension()
        .parts("revisions", "The revisions of a final document with their PDFs", pdf::REVISIONS, pdf::revisions::<K>)
        .extension()
        .action_parts::<mail::Send>("send", "Send it by mail", mail::SENT, mail::send::<K>)
        .part("send-preview", "A subject and words to send it with", mail::PREVIEW, mail::preview::<K>)
        .extension()
        .parts("deliveries", "What became of each mail about it", mail::DELIVERIES, mail::deliveries::<K>)
        .extension()
}

/// Invoices and their routes.
pub fn invoices() -> Resource {
    shared::<InvoiceKind>("Invoices", INVOICES)
        .action_made::<credit::Credit>("credit", "Credit an invoice, all of it or some rows", credit::credit)
        .action_elsewhere("collect", "Collect an invoice by the mandate of its client", payment::collect)
        .gives(Gives::MadeParts(payment::BOTH))
        .extension()
}

/// Quotes and their routes.
pub fn quotes() -> Resource {
    shared::<QuoteKind>("Quotes", QUOTES)
        .action("accept", "Accept a quote", DETAIL, quote::accept)
        .action("reject", "Reject a quote", DETAIL, quote::reject)
        .extension()
        .action_elsewhere("invoice", "Make the invoice of a quote", quote::invoice)
        .extension()
        .action_elsewhere("project", "Make the project of a quote", quote::project)
        .gives(Gives::MadeOf("projects"))
        .also_needs("projects.write")
        .extension()
}

/// Workorders and their routes.
pub fn workorders() -> Resource {
    shared::<WorkorderKind>("Workorders", WORKORDERS)
        .action("complete", "Say that the work is done", DETAIL, workorder::complete)
        .extension()
        .action_elsewhere("invoice", "Make the invoice of a workorder", workorder::invoice)
        .extension()
}

//! Documents: invoices, quotes and workorders share one record. A draft can be changed; finalization assigns the number
//! and locks the rows, client and totals.

mod addressed;
pub(crate) mod complete;
pub(crate) mod credit;
pub(crate) mod faults;
pub(crate) mod hours;
pub(crate) mod kind;
pub(crate) mod leaving;
pub(crate) mod mail;
mod mail_html;
pub(crate) mod mail_preview;
mod mail_source;
mod mail_template;
mod mail_text;
pub(crate) mod money_due;
pub(crate) mod new;
pub(crate) mod numbering;
pub(crate) mod old;
pub(crate) mod page;
pub(crate) mod pdf;
mod placeholders;
pub(crate) mod quote;
pub(crate) mod request;
pub(crate) mod revenue;
pub(crate) mod row_schema;
pub(crate) mod rows;
pub(crate) mod send_type;
mod sound;
pub mod status;
mod style;
mod tables;
pub(crate) mod timers;
pub(crate) mod workorder;

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Code, Error, FieldCode, FieldErrors, Result, violation};
use engine::input;
use engine::record::{
    ACTED, COMPUTED, CREATED, Custom, DETAIL, Day, GIVEN, INPUT, Link, Model, NOWHERE, REQUIRED, Record, Snapshot,
    UPDATED, Views, When,
};
use engine::records::{self, Image, Work};
use engine::resource::{Method, RequestBody, Resource, Returns, Verb};
use engine::{choice, error_codes, record};
use jiff::civil::Date;
use money::{Amount, Percent};
use store::{Migration, Tx};

use crate::settings::custom_field;
use kind::document_kind;
pub use kind::{DocumentKind, Which};
use rows::Rows;
pub use status::PaymentStatus;
pub use tables::REVENUE;
use tables::{INVOICES, QUOTES, WORKORDERS};

choice! {
    /// Whether a document is a draft or final.
    pub enum Mode {
        /// Can be changed.
        #[default]
        Draft = "draft",
        /// Locked.
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

error_codes! {
    /// The document is final: it can be credited, but not deleted.
    DOCUMENT_NOT_DRAFT = "document_not_draft", Conflict, retry: false;
    /// The rows have already been credited.
    ALREADY_CREDITED = "already_credited", Conflict, retry: false;
}

/// All views except lists.
pub(crate) const WHOLE: Views = DETAIL.and(CREATED).and(UPDATED).and(ACTED);

document_kind!(
    /// An amount that a client owes you or, for a credit invoice, that you owe a client.
    InvoiceKind = Invoice, "invoice" in "invoices");
document_kind!(
    /// An offer that a client can accept.
    QuoteKind = Quote, "quote" in "quotes");
document_kind!(
    /// Work that is to be done, or has been done, for a client.
    WorkorderKind = Workorder, "workorder" in "workorders");

record! {
    /// An invoice, a quote or a workorder.
    pub struct Document<K: DocumentKind>;

    /// Number without gaps, assigned on finalization; the number of a draft starts with DRAFT. A document from elsewhere can
    /// be sent with its own number.
    number: String = GIVEN.names().at_most(64).search().filter().sort().unique(&[]).example("\"\"");
    /// Title.
    title: String = REQUIRED.revises().copied().search().sort().example("\"Boiler, with installation\"");
    /// Document date; defaults to today.
    invoice_date: Day = INPUT.kept().revises().sort().range("date_from", "date_to").example("\"2026-05-04\"");
    /// Due date, or the last day that a quote is valid; defaults to the terms of the client.
    due_date: Day = INPUT.kept().revises().sort().range("due_date_from", "due_date_to").filter_when_few("late", status::late, "unpaid", "Whether something is open after the due date and not being collected.").example("\"2026-06-03\"");
    /// Sum of the rows. If sent, it is checked against the rows; without rows, it creates one row.
    subtotal: Amount = GIVEN.example("1250");
    /// VAT percentage; with several rates, the effective percentage. If sent, the percentage of rows without a rate.
    vat_rate: Percent = GIVEN.percent().between(0, 100).example("21");
    /// VAT amount. If sent, it is checked against the rows.
    vat_amount: Amount = GIVEN.example("262.5");
    /// Total excluding VAT. If sent, it is checked against the rows; without rows, it creates one row.
    total_excl_vat: Amount = GIVEN.sort().example("1250");
    /// Total including VAT. If sent, it is checked against the rows; without rows, it creates one row.
    total_incl_vat: Amount = GIVEN.sort().example("1512.5");
    /// The client.
    client_id: Link = INPUT.refers("clients").locked_when_final().copied().filter().sort();
    /// The client, by your own `external_id`.
    client_external_id: String = INPUT.create_only().sent_only().example("\"\"");
    /// Status: draft, open, partial, paid, overdue, credited, accepted …, or a custom value.
    payment_status: PaymentStatus = INPUT.kept().at_most(64).filter().choices_of(status::usual).sort().example("\"draft\"");
    /// When the document was paid.
    paid_at: When = COMPUTED.nullable().sort();
    /// When the document was first sent.
    sent_at: When = COMPUTED.nullable().sort().filter_when("sent", status::sent, "Whether the document was sent.");
    /// The number of the project.
    project_number: String = COMPUTED.nullable();
    /// Whether the invoice is a credit invoice.
    is_credit: bool = COMPUTED.filter();
    /// Your own reference; must be unique.
    external_id: String = GIVEN.nullable_once_made().search().filter().unique(&[]).example("\"\"");
    /// Rows: `name` or `title`, `quantity`, `unit`, `unit_price`, and `vat_code` or `vat_rate`. Can be changed while the document
    /// is a draft.
    rows: Rows = INPUT.locked_when_final().copied().shown(WHOLE).example("[{\"name\": \"Boiler\", \"quantity\": 1, \"unit_price\": 1250, \"vat_rate\": \"21\"}]");
    /// The client's company at the time of the document.
    client_company_name: String = COMPUTED.search().shown(WHOLE);
    /// The client's first name at the time of the document.
    client_firstname: String = COMPUTED.search().shown(WHOLE);
    /// The client's last name at the time of the document.
    client_lastname: String = COMPUTED.search_after().shown(WHOLE);
    /// Values of custom fields, by key; null removes a value.
    custom_fields: Custom = INPUT.shown(WHOLE).example("{}");
    /// `draft` or `final`; sending `final` finalizes a draft.
    generation_mode: Mode = INPUT.locked_when_final().in_meta().example("\"draft\"");
    /// The same as `generation_mode: "final"`.
    generate: bool = INPUT.create_only().sent_only().example("false");
    /// When the document was finalized.
    finalized_at: When = COMPUTED.nullable().in_meta();
    /// Revision number, incremented with every change of a final document.
    revision: i64 = COMPUTED.in_meta();
    /// Language of the PDF, the page and the mail; defaults to the language of the client's country.
    language: Language = INPUT.locked_when_final().copied().in_meta().example("\"nl\"");
    /// Date of supply, printed on the document; send it if it differs from the document date.
    supply_date: Day = INPUT.nullable().locked_when_final().copied().in_meta().example("\"2026-05-02\"");
    /// The client's reference, printed on the document.
    reference: String = INPUT.locked_when_final().copied().in_meta().example("\"PO-2026-17\"");
    /// Text below the rows.
    notes: String = INPUT.at_most(4096).locked_when_final().in_meta().example("\"Thank you for your order.\"");
    /// The client's e-mail address at the time of the document.
    client_email: String = COMPUTED.search().in_meta();
    /// The corporate identity; defaults to the default identity.
    corporate_identity_id: Link = INPUT.refers("corporate_identities").locked_when_final().copied().in_meta();
    /// The project it belongs to.
    project_id: Link = INPUT.nullable_once_made().refers("projects").revises().copied().in_meta();
    /// The deal.
    deal_id: Link = INPUT.nullable_once_made().refers("deals").copied().in_meta();
    /// The invoice that this one credits.
    credited_invoice_id: Link = COMPUTED.nullable().refers("invoices").in_meta();
    /// The invoice created from this document.
    invoice_id: Link = COMPUTED.nullable().refers("invoices").in_meta();
    /// The quote that this document was created from.
    quote_id: Link = COMPUTED.nullable().refers("quotes").in_meta();
    /// The subscription that created the invoice.
    subscription_id: Link = COMPUTED.nullable().refers("subscriptions").in_meta();
    /// First day of the invoiced period of the subscription.
    period_start: Day = COMPUTED.nullable().in_meta();
    /// Last day of that period.
    period_end: Day = COMPUTED.nullable().in_meta();
    /// Amount paid.
    paid_amount: Amount = COMPUTED.filter_when_few("outstanding", status::outstanding, "unpaid", "Whether something is still to be paid or refunded.").in_meta();
    /// Amount credited, including VAT.
    credited_amount: Amount = COMPUTED.in_meta();
    /// Amount that is still to be paid: of a final invoice that is neither paid nor credited, otherwise 0. A negative amount is
    /// to be refunded.
    open_amount: Amount = COMPUTED.filter_when_few("owed", status::owed, "unpaid", "Whether something is still to be paid.").in_meta();
    /// The day on which the open amount is collected by direct debit, while a collection is in progress.
    collection_date: Day = COMPUTED.nullable().filter_filled("collected").in_meta();
    /// The bank account that your bank collects it from, with most of its digits hidden.
    collection_account: String = COMPUTED.in_meta();
    /// When the client accepted the quote.
    accepted_at: When = COMPUTED.nullable().in_meta();
    /// Name of the person who accepted the quote.
    accepted_by: String = COMPUTED.in_meta();
    /// When the client rejected the quote.
    rejected_at: When = COMPUTED.nullable().in_meta();
    /// When the client first viewed the page.
    viewed_at: When = COMPUTED.nullable().in_meta();
    /// The token in the URL of the public page.
    token: String = COMPUTED.shown(NOWHERE);
    /// The client at the time of the document, as JSON.
    client: Snapshot = COMPUTED.shown(NOWHERE);
    /// The corporate identity at the time of the document, as JSON.
    sender: Snapshot = COMPUTED.shown(NOWHERE);

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
    /// Only in the request body.
    #[cfg(test)] test_hint: String = INPUT.sent_only().example("\"x\"");
}

impl<K: DocumentKind> Model for Document<K> {
    fn before_save(&mut self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        // A new document is completed in `new.rs`.
        let Some(before) = before else {
            self.take_open_amount();
            return Ok(());
        };
        before.check_copies()?;
        if self.project_id != before.project_id {
            self.take_project(tx, ctx)?;
        }
        self.resolve_dates(tx, ctx)?;
        if before.is_final() { self.resolve_final(before) } else { self.resolve_draft(tx, ctx, before) }?;
        let moved = (self.invoice_date != before.invoice_date, self.due_date != before.due_date);
        if moved != (false, false) {
            let mut faults = FieldErrors::default();
            let field = if moved.1 { "due_date" } else { "invoice_date" };
            check_dates(self.invoice_date.0, self.due_date.0, field, &mut faults);
            faults.into_result()?;
        }
        let custom = Some(&before.custom_fields);
        custom_field::resolve(tx, ctx, K::WHICH.entity(), &mut self.custom_fields, custom)?;
        self.update_status(ctx, before);
        self.take_open_amount();
        self.revise_request(before);
        Ok(())
    }

    fn events(&self, before: Option<&Self>) -> Vec<&'static str> {
        let moved = before.is_some_and(|before| before.payment_status != self.payment_status);
        let mut events = Vec::new();
        if K::WHICH == Which::Quote && moved {
            events.push("phase_changed");
        }
        match K::WHICH {
            Which::Invoice if self.comes_to(&PaymentStatus::Paid, before) => events.push("paid"),
            Which::Quote if self.comes_to(&PaymentStatus::Accepted, before) => events.push("accepted"),
            Which::Workorder if self.comes_to(&PaymentStatus::Completed, before) => events.push("completed"),
            _ => {}
        }
        events
    }

    fn after_save(&self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        match K::WHICH {
            Which::Invoice => {
                revenue::follow(tx, ctx, before, self)?;
                money_due::follow(tx, ctx, before, self)?;
            }
            Which::Quote if self.comes_to(&PaymentStatus::Accepted, before) => {
                quote::tell_deal(tx, ctx, &self.deal_id.0)?;
            }
            _ => {}
        }
        // Every revision of a final document is printed. One that only a payment caused is printed when somebody asks for it.
        let is_printed =
            |before: &Self| before.is_final() && (before.revision == self.revision || before.asked() != self.asked());
        if self.is_final() && !before.is_some_and(is_printed) {
            pdf::enqueue(tx, ctx, self)?;
        }
        Ok(())
    }
}

/// Rejects a due date before the document date; `field` is the field that gets the error.
fn check_dates(date: Option<Date>, due: Option<Date>, field: &str, faults: &mut FieldErrors) {
    if let (Some(date), Some(due)) = (date, due)
        && due < date
    {
        let message = if field == "due_date" { "cannot be before invoice_date" } else { "cannot be after due_date" };
        faults.add(field, violation(FieldCode::OutOfRange, message));
    }
}

impl<K: DocumentKind> Document<K> {
    /// Checks a verb against the table of transitions; returns whether it changes anything, or an error.
    pub fn may(&self, verb: status::Verb) -> Result<bool> {
        match verb.effect(&self.payment_status) {
            status::Effect::Allowed => Ok(true),
            status::Effect::Done => Ok(false),
            status::Effect::Refused(why) => Err(Error::new(Code::InvalidTransition, format!("{} {why}.", self.number))),
        }
    }

    /// Whether the document is final.
    pub(crate) fn is_final(&self) -> bool {
        self.generation_mode == Mode::Final
    }

    /// Whether the document has this status now and had another before. A status set on a draft counts when the draft
    /// becomes final.
    fn comes_to(&self, status: &PaymentStatus, before: Option<&Self>) -> bool {
        let stands = |document: &Self| document.is_final() && document.payment_status == *status;
        stands(self) && !before.is_some_and(stands)
    }

    /// The total less what was credited and paid, whatever the status.
    pub(crate) fn unpaid_amount(&self) -> Amount {
        let left = self.total_incl_vat.scaled() - self.credited_amount.scaled() - self.paid_amount.scaled();
        Amount::from_scaled(left)
    }

    /// Sets the amount that is still to be paid. Every change of the status or of an amount ends with this.
    pub(crate) fn take_open_amount(&mut self) {
        let settled = matches!(self.payment_status, PaymentStatus::Paid | PaymentStatus::Credited);
        let owes = K::WHICH == Which::Invoice && self.is_final() && !settled;
        self.open_amount = if owes { self.unpaid_amount() } else { Amount::ZERO };
    }

    fn resolve_final(&mut self, before: &Self) -> Result<()> {
        if self.differs(before, |rules| rules.locked_when_final) {
            let message = "The document is final: only its title, dates and payment_status can be changed.";
            return Err(Error::new(Code::Locked, message));
        }
        if self.differs(before, |rules| rules.revises) {
            self.revision += 1;
        }
        Ok(())
    }

    fn resolve_draft(&mut self, tx: &mut Tx, ctx: &Ctx, before: &Self) -> Result<()> {
        let becomes_final = self.generation_mode == Mode::Final;
        self.generation_mode = Mode::Draft;
        if self.client_id != before.client_id || self.corporate_identity_id != before.corporate_identity_id {
            self.take_names(tx, ctx)?;
        }
        if self.rows != before.rows {
            self.work_out(tx, ctx, None)?;
        }
        if becomes_final {
            self.check_complete(tx, ctx)?;
            self.become_final(tx, ctx)?;
            self.lapse(ctx);
        }
        Ok(())
    }

    /// Applies a status that the caller sets.
    fn update_status(&mut self, ctx: &Ctx, before: &Self) {
        if self.payment_status == before.payment_status {
            return self.update_for_due_date(ctx, before);
        }
        self.note_status(ctx);
    }

    /// Records when the document reached its status.
    pub(crate) fn note_status(&mut self, ctx: &Ctx) {
        // An invoice with nothing to pay is paid, and never overdue.
        let owes_nothing = self.is_final() && !self.is_credit && self.total_incl_vat.scaled() == 0;
        if K::WHICH == Which::Invoice && owes_nothing && self.payment_status.is_unpaid() {
            self.payment_status = PaymentStatus::Paid;
        }
        let is_paid_back = self.is_final() && self.due_amount() < 0;
        if K::WHICH == Which::Invoice && is_paid_back && self.payment_status == PaymentStatus::Overdue {
            self.update_payment_status(ctx);
        }
        match (K::WHICH, &self.payment_status) {
            (Which::Invoice, PaymentStatus::Paid) => self.paid_at = When(self.paid_at.0.or(Some(ctx.now))),
            (Which::Invoice, _) => self.paid_at = When(None),
            (Which::Quote, PaymentStatus::Accepted) => self.accepted_at = When(Some(ctx.now)),
            (Which::Quote, PaymentStatus::Rejected) => self.rejected_at = When(Some(ctx.now)),
            _ => {}
        }
    }

    /// Reopens an overdue invoice or an expired quote when its due date is moved.
    fn update_for_due_date(&mut self, ctx: &Ctx, before: &Self) {
        let today = ctx.now.date(&ctx.zone);
        if self.due_date == before.due_date || self.due_date.0.is_none_or(|due| due < today) {
            return;
        }
        match (K::WHICH, &self.payment_status) {
            (Which::Invoice, PaymentStatus::Overdue) => self.update_payment_status(ctx),
            (Which::Quote, PaymentStatus::Expired) => self.payment_status = PaymentStatus::Open,
            _ => {}
        }
    }

    /// Computes the totals from the rows.
    pub(crate) fn work_out(&mut self, tx: &mut Tx, ctx: &Ctx, assumed: Option<Percent>) -> Result<()> {
        let totals = self.rows.resolve(tx, ctx, assumed)?;
        self.take_totals(&totals);
        Ok(())
    }

    /// Sets the totals.
    pub(crate) fn take_totals(&mut self, totals: &money::Totals<String>) {
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

/// Finalizes the document in the path.
fn finalize<K: DocumentKind>(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let mut document: Document<K> = records::find_to_change(tx, ctx, &call)?;
        let (finalized, image) = make_final(tx, ctx, &mut document)?;
        let warnings = complete::warned(&document, finalized, &warnings);
        Ok(Image::answer(image, ctx, &document, DETAIL).with_texts("warnings", &warnings))
    }))
}

/// Whether a document was a draft until now, and the image that its change left.
pub type MadeFinal = (bool, Option<Image>);

/// Finalizes and saves a draft; returns whether it was a draft.
pub(crate) fn make_final<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, document: &mut Document<K>) -> Result<MadeFinal> {
    if document.is_final() {
        return Ok((false, None));
    }
    let before = document.clone();
    change_to_final(tx, ctx, &before, document)
}

/// Saves a document that is final after this change, as a single change; returns whether it was a draft.
pub(crate) fn change_to_final<K: DocumentKind>(
    tx: &mut Tx,
    ctx: &Ctx,
    before: &Document<K>,
    document: &mut Document<K>,
) -> Result<MadeFinal> {
    document.generation_mode = Mode::Final;
    let image = records::change_as(tx, ctx, before, document, "updated")?;
    Ok((!before.is_final(), image))
}

/// Sets the flag in `meta` that says whether the request finalized a draft.
pub(crate) fn with_finalized(mut answer: Answer, finalized: bool) -> Answer {
    if finalized {
        answer.meta.push("\"finalized\":true".to_string());
    }
    answer
}

/// Deletes a draft; a final document cannot be deleted.
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
            return Err(Error::new(DOCUMENT_NOT_DRAFT, message));
        }
        if let Some(more) = records::loosen(tx, ctx, &document, delete::<K>, &call)? {
            return Ok(more);
        }
        records::remove(tx, ctx, &document)?;
        Ok(match K::WHICH {
            Which::Workorder => Answer::empty(),
            _ => Answer::record(ctx, &document, DETAIL),
        })
    }))
}

/// The routes that all three kinds share.
fn shared<K: DocumentKind>(title: &'static str, migrations: &'static [Migration]) -> Resource {
    let resource = Resource::of::<Document<K>>(title, "invoices", migrations)
        .inspected::<Document<K>>(sound::faults)
        .relinked(leaving::relink::<K>)
        .list::<Document<K>>()
        .verb(Verb::Create, new::create::<K>)
        .get::<Document<K>>()
        .verb(Verb::Patch, complete::patch::<K>);
    let resource = match K::WHICH {
        Which::Workorder => resource.verb(Verb::Delete, delete::<K>),
        _ => resource.verb(Verb::Delete, delete::<K>).returns(Returns::Item(DETAIL)),
    };
    resource
        .route(
            Method::Get,
            "/next-number",
            "Retrieve the number that the next document will get",
            numbering::ahead::<K>,
        )
        .returns(Returns::Report(numbering::AHEAD, numbering::QUERY))
        .extension()
        .route(Method::Post, "/{id}/finalize", "Finalize a draft", finalize::<K>)
        .extension()
        .route(Method::Get, "/{id}/pdf", "Retrieve the URL of the PDF", pdf::address::<K>)
        .returns(Returns::Parts(pdf::PARTS))
        .route(Method::Get, "/{id}/pdf/content", "Download the PDF", pdf::content::<K>)
        .returns(Returns::Content)
        .extension()
        .route(
            Method::Get,
            "/{id}/revisions",
            "List the revisions of a final document with their PDFs",
            pdf::revisions::<K>,
        )
        .returns(Returns::ListOfParts(pdf::REVISIONS))
        .extension()
        .route(Method::Post, "/{id}/send", "Send the document by mail", mail::send::<K>)
        .body::<mail::Send>(RequestBody::Body)
        .returns(Returns::Parts(mail::SENT))
        .route(Method::Get, "/{id}/send-preview", "Retrieve a default subject and message", mail::preview::<K>)
        .returns(Returns::Report(mail::PREVIEW, mail::PREVIEW_QUERY))
        .extension()
        .route(Method::Get, "/{id}/send-preview/html", "Preview the mail as HTML", mail::preview_page::<K>)
        .returns(Returns::Content)
        .with(|route| route.query = mail::PREVIEW_QUERY)
        .extension()
        .route(Method::Get, "/{id}/deliveries", "List the mail deliveries of the document", mail::deliveries::<K>)
        .returns(Returns::ListOfParts(mail::DELIVERIES))
        .extension()
}

/// The resource of invoices.
pub(crate) fn invoices() -> Resource {
    shared::<InvoiceKind>("Invoices", INVOICES)
        .route(Method::Post, "/{id}/credit", "Credit an invoice, fully or by row", credit::credit)
        .body::<credit::Credit>(RequestBody::Maybe)
        .returns(Returns::Made(CREATED))
}

/// The resource of quotes.
pub(crate) fn quotes() -> Resource {
    shared::<QuoteKind>("Quotes", QUOTES)
        .route(Method::Post, "/{id}/accept", "Accept a quote", quote::accept)
        .route(Method::Post, "/{id}/reject", "Reject a quote", quote::reject)
        .extension()
        .route(Method::Post, "/{id}/invoice", "Create the invoice of a quote", quote::invoice)
        .returns(Returns::Made(CREATED))
        .extension()
        .route(Method::Post, "/{id}/project", "Create a project from a quote", quote::project)
        .returns(Returns::CreatedOf("projects"))
        .with(|route| route.also_needs = Some("projects.write"))
        .extension()
}

/// The resource of workorders.
pub(crate) fn workorders() -> Resource {
    shared::<WorkorderKind>("Workorders", WORKORDERS)
        .route(Method::Post, "/{id}/complete", "Complete a workorder", workorder::complete)
        .extension()
        .route(Method::Post, "/{id}/invoice", "Create the invoice of a workorder", workorder::invoice)
        .returns(Returns::Made(CREATED))
        .extension()
}

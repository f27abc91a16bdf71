//! The routes of mail templates, with a preview of a text about a document or a sample.

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Code, Error, FieldCode, FieldErrors, Result, violation};
use engine::input;
use engine::input::pending::Pending;
use engine::record::{Body, Day, INPUT, REQUIRED, Record};
use engine::records::{self, Work};
use engine::resource::{Method, Part, RequestBody, Resource, Returns};
use jiff::ToSpan;
use money::Amount;
use serde_json::json;
use store::Tx;

use super::mail_html::in_html;
use super::mail_template::{MIGRATIONS, MailTemplate, check_text, warning};
use super::mail_text::{Facts, Text, built_in};
use super::send_type::SendType;
use super::{Document, DocumentKind, InvoiceKind, Language, Mode, PaymentStatus, QuoteKind, Which, WorkorderKind};
use crate::mail;

/// The resource of mail templates.
pub(crate) fn resource() -> Resource {
    Resource::of::<MailTemplate>("Mail templates", "settings", MIGRATIONS)
        .all::<MailTemplate>()
        .extension()
        .managed::<MailTemplate>()
        .delete::<MailTemplate>()
        .extension()
        .route(Method::Post, "/preview", "Preview a mail", preview)
        .body::<Preview>(RequestBody::Body)
        .returns(Returns::Parts(SHOWN))
        .extension()
}

input! {
    /// A text to preview.
    pub struct Preview;

    /// Type of mail.
    send_type: SendType = REQUIRED.example("\"invoice\"");
    /// Language of the mail; defaults to that of the document, or Dutch.
    language: Language = INPUT.example("\"nl\"");
    /// Subject; defaults to that of the template in use.
    subject: String = INPUT.at_most(998).unbroken().example("\"Factuur {number} van {sender}\"");
    /// Message; defaults to that of the template in use.
    message: String = INPUT.long().example("\"{salutation},\\n\\nHierbij factuur {number}.\"");
    /// The id of an invoice, quote or workorder that the mail would be about; defaults to a sample.
    document_id: String = INPUT.example("\"\"");
}

impl Body for Preview {
    fn check(&self, faults: &mut FieldErrors) {
        check_text(&self.subject, &self.message, faults);
    }
}

const SHOWN: &[Part] = &[
    Part("subject", "string", "The subject."),
    Part("message", "string", "The message as plain text."),
    Part("html", "string", "The mail as HTML."),
    Part("template", "object", "The template in use: `subject` and `message` with their placeholders."),
];

/// `POST /v1/mail-templates/preview`
fn preview(call: Call) -> Result<Work> {
    let pending: Pending<Preview> = Pending::create_with(&call, |_, _| {}, true)?;
    Ok(Box::new(move |tx, ctx| {
        let wish = pending.values();
        if !pending.is_valid() {
            return Err(refused(tx, ctx, &pending)?);
        }
        let input = pending.valid()?;
        let language = input.has("language").then_some(wish.language);
        let (answer, warning) = match wish.send_type.family() {
            Which::Invoice => previewed::<InvoiceKind>(tx, ctx, wish, language),
            Which::Quote => previewed::<QuoteKind>(tx, ctx, wish, language),
            Which::Workorder => previewed::<WorkorderKind>(tx, ctx, wish, language),
        }?;
        let warnings: Vec<String> = input.warnings.iter().cloned().chain(warning).collect();
        Ok(answer.with_texts("warnings", &warnings))
    }))
}

/// Returns the errors of an invalid body, with that of a document which does not exist.
fn refused(tx: &mut Tx, ctx: &Ctx, pending: &Pending<Preview>) -> Result<Error> {
    let (wish, mut faults) = (pending.values(), pending.missing(tx, ctx)?);
    // Without a type of mail it is not known which kind of document is meant.
    if !wish.document_id.is_empty() && !faults.has("send_type") {
        faults.join(match wish.send_type.family() {
            Which::Invoice => about::<InvoiceKind>(tx, ctx, &wish.document_id).map(drop),
            Which::Quote => about::<QuoteKind>(tx, ctx, &wish.document_id).map(drop),
            Which::Workorder => about::<WorkorderKind>(tx, ctx, &wish.document_id).map(drop),
        })?;
    }
    Ok(Error::invalid(faults))
}

/// The preview, and a warning about its text.
type Previewed = Result<(Answer, Option<String>)>;

fn previewed<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, wish: &Preview, language: Option<Language>) -> Previewed {
    let mut document: Document<K> = match wish.document_id.as_str() {
        "" => sample(tx, ctx, wish.send_type, language.unwrap_or_default())?,
        id => about(tx, ctx, id)?.addressed(tx, ctx)?,
    };
    document.language = language.unwrap_or(document.language);
    let template = Text::template(tx, ctx, wish.send_type, document.language)?;
    let own = |sent: &String, usual: &String| if sent.is_empty() { usual.clone() } else { sent.clone() };
    let text = Text { subject: own(&wish.subject, &template.subject), message: own(&wish.message, &template.message) };
    let (sender, _) = mail::identity_of(tx, ctx, &document.corporate_identity_id.0)?;
    // As it would be sent.
    let warning = warning(wish.send_type, &text.subject, &text.message);
    let text = text.fitting(ctx, &document, wish.send_type).filled(&Facts::of(ctx, &document, &sender));
    let html = in_html(tx, ctx, &document, &text.message);
    let shown = Answer::json(&json!({
        "subject": text.subject, "message": text.message, "html": html,
        "template": {"subject": template.subject, "message": template.message},
    }));
    Ok((shown, warning))
}

/// Returns the document that a preview is about, if the caller may read it.
fn about<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<Document<K>> {
    if !ctx.may("invoices.read") {
        let message = "A preview about a document requires the scope 'invoices.read'.";
        return Err(Error::new(Code::Forbidden, message));
    }
    records::find(tx, ctx, id).map_err(|error| match error.code {
        Code::NotFound => {
            let message = format!("does not match a record in {}", Document::<K>::shape().table);
            Error::field("document_id", violation(FieldCode::ReferenceNotFound, message))
        }
        _ => error,
    })
}

/// Returns a document that is not stored, with the facts of a usual one.
fn sample<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, kind: SendType, language: Language) -> Result<Document<K>> {
    let words = &built_in(language)["sample"];
    let word = |name: &str| words[name].as_str().unwrap_or_default().to_string();
    let today = ctx.now.date(&ctx.zone);
    let mut document = Document::<K> { language, ..Document::default() };
    document.take_snapshots(tx, ctx)?;
    document.number = format!("{}{}-0001", K::WHICH.letter(), today.year());
    document.title = word("title");
    // There is no such page, but a link that shows what it will look like.
    document.token = "example".to_string();
    document.reference = word("reference");
    document.client_company_name = word("client");
    document.client_firstname = word("firstname");
    document.generation_mode = Mode::Final;
    document.payment_status = PaymentStatus::Open;
    document.is_credit = kind == SendType::Credit;
    document.total_incl_vat = Amount::from_scaled(if document.is_credit { -12_100 } else { 12_100 });
    document.invoice_date = Day(Some(today));
    if kind.is_reminder() && K::WHICH == Which::Invoice {
        // It says that the invoice is late.
        let ago = |days: i64| Day(Some(today.checked_sub(days.days()).unwrap_or(today)));
        (document.invoice_date, document.due_date) = (ago(21), ago(7));
    }
    document.resolve_dates(tx, ctx)?;
    Ok(document)
}

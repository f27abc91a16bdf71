//! Sending documents by mail, with the PDF and the URL of the public page.

use engine::call::{Answer, Call, Content, Outcome};
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Error, FieldCode, FieldErrors, Result, violation};
use engine::input;
use engine::input::Input;
use engine::record::{Body, Emails, INPUT, REQUIRED, When};
use engine::records::{self, Work};
use engine::resource::Part;
use engine::text::not_allowed;
use serde_json::{Value, json};
use store::Tx;

use super::complete::warned;
use super::mail_html::{self, in_html};
use super::mail_source::Source;
use super::mail_template::check_line;
use super::mail_text::{Facts, Text};
use super::placeholders::NUMBER;
pub use super::placeholders::{check_placeholders, first_placeholder};
use super::request::Request;
pub use super::send_type::SendType;
use super::{Document, DocumentKind, Which, make_final, pdf, quote, with_finalized};
use crate::mail::from::MailFrom;
use crate::mail::hours::{self, Timing};
use crate::mail::outcome::{Follower, Rewritten, Words};
use crate::mail::{self, Letter};

input! {
    /// What to send, and to whom.
    pub struct Send;

    /// Recipients, separated by commas; at most fifty, including `cc`.
    to: Emails = REQUIRED.at_most(8192).example("\"anna@bakkerij-de-ster.example\"");
    /// The subject. It can have the placeholders of mail templates, such as `{number}`.
    subject: String = REQUIRED.at_most(998).unbroken().example("\"Your invoice\"");
    /// The message. It can have the placeholders of mail templates, such as `{number}`.
    message: String = REQUIRED.long().example("\"Please find the document attached.\"");
    /// Recipients of a copy, separated by commas.
    cc: Emails = INPUT.at_most(8192).example("\"\"");
    /// Type of mail; defaults to the document itself.
    send_type: SendType = INPUT;
    /// Whether to attach the PDF.
    include_pdf: bool = INPUT.default("true").example("true");
}

impl Body for Send {
    fn check(&self, faults: &mut FieldErrors) {
        check_line(&self.subject, faults);
        let (to, cc) = self.recipients();
        if to.len() + cc.len() > 50 {
            faults.add("to", violation(FieldCode::TooLong, "may have at most 50 addresses, including cc"));
        }
    }
}

impl Send {
    fn recipients(&self) -> (Vec<String>, Vec<String>) {
        mail::distinct(&split(&self.to.0), &split(&self.cc.0))
    }
}

fn split(emails: &str) -> Vec<String> {
    emails.split(", ").filter(|one| !one.is_empty()).map(str::to_string).collect()
}

/// Fields of the response to a send.
pub const SENT: &[Part] = &[
    Part("success", "boolean", "Whether the mail was queued."),
    Part("recipients", "array", "Recipients: `to`, then `cc`, without duplicates."),
    Part("recipients_list", "string", "The recipients as one string, separated by commas."),
    Part("leaves_at", "date-time", "When the mail leaves: now, or later if it waits for office hours."),
];

/// `POST /v1/{invoices,quotes,workorders}/{id}/send`
pub fn send<K: DocumentKind>(call: Call) -> Result<Work> {
    let input = input::create_with(&call, |input: &Input<Send>, faults| {
        let kind = input.record().send_type;
        if input.has("send_type") && kind.family() != K::WHICH {
            let message = format!("{} does not apply to this type of document", kind.wire());
            faults.add("send_type", violation(FieldCode::InvalidChoice, message));
        }
        // Braces may come from the document, so placeholders alone are checked where it is known.
        if !faults.0.is_empty() {
            faults.take("subject", check_placeholders(&input.record().subject));
            faults.take("message", check_placeholders(&input.record().message));
        }
    })?;
    let wish = input.record();
    Ok(Box::new(move |tx, ctx| {
        let mut document: Document<K> = records::find_to_change(tx, ctx, &call)?;
        let draft = (!document.is_final()).then(|| document.number.clone());
        let (finalized, _) = make_final(tx, ctx, &mut document)?;
        let warnings = warned(&document, finalized, &input.warnings);
        let mut wish = wish.clone();
        if !input.has("send_type") {
            wish.send_type = default_type(&document);
        }
        let written = Text { subject: wish.subject.clone(), message: wish.message.clone() };
        let source = Source {
            text: written.of_draft(draft.as_deref()),
            is_usual: false,
            was_late: false,
            was_settled: false,
            to_client: false,
        };
        let Posted { recipients, leaves_at, doubt } = post(tx, ctx, document, &wish, source)?;
        let warnings: Vec<String> = warnings.into_iter().chain(doubt).collect();
        let data = json!({
            "success": true, "recipients": recipients, "recipients_list": recipients.join(", "),
            "leaves_at": leaves_at.to_string(),
        });
        let answer = Answer::data(Outcome::Done, data.to_string().into_bytes());
        Ok(with_finalized(answer.with_texts("warnings", &warnings), finalized))
    }))
}

fn default_type<K: DocumentKind>(document: &Document<K>) -> SendType {
    match K::WHICH {
        Which::Invoice if document.is_credit => SendType::Credit,
        Which::Invoice => SendType::Invoice,
        Which::Quote => SendType::Quote,
        Which::Workorder => SendType::Workorder,
    }
}

/// A mail in the outbox.
struct Posted {
    recipients: Vec<String>,
    leaves_at: Moment,
    /// A warning about a text that somebody wrote.
    doubt: Option<String>,
}

/// Enqueues the mail and emits the event.
fn post<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, before: Document<K>, wish: &Send, source: Source) -> Result<Posted> {
    let (to, cc) = wish.recipients();
    let (from_name, reply_to) = mail::identity_of(tx, ctx, &before.corporate_identity_id.0)?;
    let timing = if wish.send_type.is_reminder() { Timing::OfficeHours } else { Timing::BySender };
    let addressed = before.addressed(tx, ctx)?;
    let facts = Facts::of(ctx, &addressed, &from_name);
    source.check(&facts)?;
    let doubt = if source.is_usual { None } else { facts.doubt(&addressed, &source.filled(&facts)) };
    let leaves_at = hours::leaves_at(tx, ctx, timing)?;
    let to_client = wish.to.0.eq_ignore_ascii_case(&addressed.addressee(wish.send_type));
    // Braces in a value are told from placeholders by where the template has that value.
    let source = match leaves_at > ctx.now || (!source.is_usual && facts.have_braces()) {
        true => Source { to_client, ..source.with_placeholders(tx, ctx, &addressed, wish.send_type, &from_name)? },
        false => source,
    };
    let Words { subject, body, html } = words(tx, ctx, &addressed, &source, &from_name);
    let letter = Letter {
        about: K::shape().name,
        about_id: before.base.id.clone(),
        kind: wish.send_type.wire().to_string(),
        subject,
        body,
        html,
        source: serde_json::to_string(&source).map_err(|error| Error::internal(error.to_string()))?,
        attach_pdf: wish.include_pdf,
        from_name,
        reply_to,
        to: to.clone(),
        cc: cc.clone(),
        to_client,
        timing,
        ..Letter::default()
    };
    let is_awaited = mail::put(tx, ctx, &letter)?;
    let mut document = before.clone();
    if !is_awaited {
        document.note_sent(ctx);
    }
    records::change(tx, ctx, &before, &mut document, "updated")?;
    records::emit(tx, ctx, &document, "sales.document_sent")?;
    Ok(Posted { recipients: to.into_iter().chain(cc).collect(), leaves_at, doubt })
}

/// Returns the mail about a document: its text, and the URL of the page if the text does not have it.
fn words<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, document: &Document<K>, source: &Source, sender: &str) -> Words {
    let Text { subject, message } = source.filled(&Facts::of(ctx, document, sender));
    let link = ctx.site.address(&format!("/d/{}", document.token));
    let body = match message.trim_end() {
        linked if linked.contains(&link) => format!("{linked}\n"),
        text => format!("{text}\n\n{link}\n"),
    };
    Words { subject, body, html: in_html(tx, ctx, document, &message) }
}

impl<K: DocumentKind> Document<K> {
    /// Whether the client still has to pay or to respond.
    pub(super) fn awaits_client(&self, ctx: &Ctx) -> bool {
        match K::WHICH {
            Which::Invoice => self.request() == Request::Transfer,
            Which::Quote => quote::is_open(ctx, self),
            Which::Workorder => true,
        }
    }

    /// Records when the document was first sent, with whichever mail: a reminder has its link and its PDF too.
    fn note_sent(&mut self, ctx: &Ctx) {
        self.sent_at = When(self.sent_at.0.or(Some(ctx.now)));
    }
}

/// Why a reminder is canceled whose client was given more time.
const MOVED: &str = "Not sent: the due date was moved before the reminder was due to leave.";

/// Returns why a reminder is canceled: there is nothing to ask the client for.
fn why_settled<K: DocumentKind>(document: &Document<K>) -> &'static str {
    match document.request() {
        Request::Paid => "Not sent: the invoice was paid before the reminder was due to leave.",
        Request::Credited => "Not sent: the invoice was credited before the reminder was due to leave.",
        Request::Collection(..) => "Not sent: the invoice was being collected when the reminder was due to leave.",
        Request::Accepted(..) | Request::Rejected(_) => {
            "Not sent: the quote was answered before the reminder was due to leave."
        }
        Request::Invoiced => "Not sent: the quote was invoiced before the reminder was due to leave.",
        // A quote that may still be answered by its status alone is past its last day.
        Request::Expired | Request::Answer => "Not sent: the quote had expired when the reminder was due to leave.",
        Request::Transfer | Request::Nothing => "Not sent: nothing was left to pay when the reminder was due to leave.",
    }
}

/// A document is sent when a mail server accepts it for one recipient.
pub(crate) const fn follower<K: DocumentKind>() -> Follower {
    Follower {
        about: K::NAME,
        unwanted: |tx, ctx, id, kind, source| {
            if !SendType::from_wire(kind).is_some_and(SendType::is_reminder) {
                return Ok(None);
            }
            let document: Document<K> = records::find(tx, ctx, id)?;
            let source = serde_json::from_str::<Source>(source).ok();
            // The client may have been given more time.
            let was_late = source.as_ref().is_some_and(|source| source.was_late);
            // Whoever sends a reminder although there is nothing to ask for gets what the preview shows.
            let asked = source.is_none_or(|source| !source.was_settled);
            Ok(match document.awaits_client(ctx) {
                _ if !asked => None,
                false => Some(why_settled(&document)),
                true => (was_late && !document.is_past_due(ctx)).then_some(MOVED),
            })
        },
        accepted: |tx, ctx, id, kind| {
            // Flows also send mail about documents that is none of these.
            if SendType::from_wire(kind).is_none() {
                return Ok(());
            }
            let before: Document<K> = records::find(tx, ctx, id)?;
            let mut document = before.clone();
            document.note_sent(ctx);
            records::change(tx, ctx, &before, &mut document, "updated")
        },
        given_up: |tx, ctx, id, event, mail| {
            let document: Document<K> = records::find(tx, ctx, id)?;
            records::emit_with(tx, ctx, &document, event, mail)
        },
        rewrite: |tx, ctx, id, kind, source| {
            let mut source: Source = serde_json::from_str(source)
                .map_err(|error| Error::internal(format!("the source of a mail about {id}: {error}")))?;
            let document = records::find::<Document<K>>(tx, ctx, id)?.addressed(tx, ctx)?;
            let (sender, _) = mail::identity_of(tx, ctx, &document.corporate_identity_id.0)?;
            let kind = SendType::from_wire(kind).unwrap_or_default();
            if source.text.is_early(document.language) {
                // It may be late by now.
                source.text = Text::usual(tx, ctx, &document, kind)?;
            } else if source.is_usual {
                // It may be paid or answered by now.
                source.text = source.text.fitting(ctx, &document, kind);
            }
            let to = source.to_client.then(|| split(&document.addressee(kind)));
            Ok(Rewritten { words: words(tx, ctx, &document, &source, &sender), to })
        },
        addresses: |tx, ctx, id, kind| {
            let document = records::find::<Document<K>>(tx, ctx, id)?.addressed(tx, ctx)?;
            Ok(split(&document.addressee(SendType::from_wire(kind).unwrap_or_default())))
        },
    }
}

/// Mails a document to its client with the default texts, if there is an address.
pub fn post_usual<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, document: Document<K>, kind: SendType) -> Result<()> {
    let to = document.addressed(tx, ctx)?.addressee(kind);
    if to.is_empty() {
        return Ok(());
    }
    let source = Source::usual(tx, ctx, &document, kind)?;
    let wish = Send { to: Emails(to), send_type: kind, include_pdf: true, ..Send::default() };
    post(tx, ctx, document, &wish, source).map(drop)
}

/// Fields of the response of `GET …/send-preview`.
pub const PREVIEW: &[Part] = &[
    Part("send_type", "string", "Type of mail."),
    Part("to", "string", "Default recipient."),
    Part("subject", "string", "Default subject; of a draft with `{number}`, which sending fills in."),
    Part("message", "string", "Default message; of a draft with `{number}`, which sending fills in."),
    Part(
        "from",
        "string",
        "Name of the sender: that of the corporate identity if its domain is verified, or of the account.",
    ),
    Part(
        "reply_to",
        "string",
        "Address that replies go to: that of the corporate identity if its domain is verified, or of a user of the account, or empty.",
    ),
    Part(
        "from_email",
        "string",
        "Address of the sender: that of the corporate identity if its domain is verified, or empty for the address of the server.",
    ),
    Part("language", "string", "Language of the default texts: that of the document."),
    Part("attachment", "string", "File name of the PDF."),
];

/// Parameters of `GET …/send-preview` and `GET …/send-preview/html`.
pub const PREVIEW_QUERY: &[Part] =
    &[Part("send_type", "string", "Type of mail; by default that of the document itself.")];

/// `GET …/{id}/send-preview?send_type=`: a subject and a message that can be sent unchanged. Sending finalizes a draft, so its
/// texts are those of the final document, with the placeholder `{number}` where its number will be.
pub fn preview<K: DocumentKind>(call: Call) -> Result<Work> {
    let wanted = wanted_type::<K>(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let document: Document<K> = records::find(tx, ctx, call.id())?;
        let kind = wanted.unwrap_or_else(|| default_type(&document));
        let document = document.foreseen(tx, ctx)?.addressed(tx, ctx)?;
        let (name, reply_to) = mail::identity_of(tx, ctx, &document.corporate_identity_id.0)?;
        let from = MailFrom::of(tx, ctx, &name, &reply_to)?;
        let Text { subject, message } = Text::of(tx, ctx, &document, kind, &name)?;
        let data = json!({
            "send_type": kind.wire(), "to": document.addressee(kind), "subject": subject, "message": message,
            "from": from.name, "reply_to": from.reply_to, "from_email": from.email, "language": document.language.wire(),
            "attachment": pdf::file_name(&document),
        });
        Ok(Answer::data(Outcome::Done, data.to_string().into_bytes()))
    }))
}

/// Returns the type of mail that a preview is for, if the caller names one.
fn wanted_type<K: DocumentKind>(call: &Call) -> Result<Option<SendType>> {
    let Some(text) = call.query.get("send_type") else { return Ok(None) };
    let fits = |kind: &SendType| kind.family() == K::WHICH;
    SendType::from_wire(text).filter(fits).map(Some).ok_or_else(|| {
        let own = SendType::ALL.iter().filter(|kind| fits(kind)).map(|kind| kind.wire());
        Error::field("send_type", not_allowed(text, &own.collect::<Vec<_>>()))
    })
}

/// `GET …/{id}/send-preview/html?send_type=`: the mail with its default message, as a page to look at. Mails of another type
/// differ in the message alone, which has the id `message`.
pub fn preview_page<K: DocumentKind>(call: Call) -> Result<Work> {
    let wanted = wanted_type::<K>(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let document: Document<K> = records::find(tx, ctx, call.id())?;
        let kind = wanted.unwrap_or_else(|| default_type(&document));
        let mut document = document.foreseen(tx, ctx)?.addressed(tx, ctx)?;
        let (name, _) = mail::identity_of(tx, ctx, &document.corporate_identity_id.0)?;
        let text = Text::of(tx, ctx, &document, kind, &name)?;
        if document.number == NUMBER {
            document.number.clear();
        }
        Ok(Answer::content(Content::Page(mail_html::preview(tx, ctx, &document, &text.message))))
    }))
}

/// `GET …/{id}/deliveries`
pub fn deliveries<K: DocumentKind>(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let document: Document<K> = records::find(tx, ctx, call.id())?;
        let found = mail::deliveries(tx, ctx, &document.base.id)?;
        let mut answer = Answer::data(Outcome::Done, Value::from(found.clone()).to_string().into_bytes());
        answer.meta.push(format!("\"total\":{}", found.len()));
        Ok(answer)
    }))
}

/// Fields of the response of `GET …/deliveries`, for each recipient.
pub const DELIVERIES: &[Part] = &[
    Part("id", "string", "The delivery."),
    Part("send_type", "string", "Type of mail."),
    Part("subject", "string", "Subject."),
    Part("recipient", "string", "Recipient."),
    Part("status", "string", "Status: queued, sending, retrying, sent, failed, stored, recorded or canceled."),
    Part("attempts", "integer", "Number of attempts."),
    Part("reason", "string", "The last reply of the mail server."),
    Part(
        "maybe_twice",
        "boolean",
        "Whether an attempt was interrupted after the mail was handed over, so that it may have arrived twice.",
    ),
    Part("created_at", "date-time", "When the delivery was queued."),
    Part("updated_at", "date-time", "When the record was last changed."),
    Part("leaves_at", "date-time", "When the mail leaves: after `created_at` if it waits for office hours."),
    Part("next_attempt_at", "date-time or null", "When the next attempt is made, after one that failed."),
];

//! Sending documents by mail, with the PDF and the URL of the public page.

use engine::call::{Answer, Call, Outcome};
use engine::context::Ctx;
use engine::error::{Error, FieldCode, FieldErrors, Result, violation};
use engine::input::Input;
use engine::record::{Body, Emails, INPUT, REQUIRED, When};
use engine::records::{self, Work};
use engine::resource::Part;
use engine::{choice, input};
use serde_json::{Value, json};
use store::Tx;

use super::pdf::Style;
use super::{Document, DocumentKind, Language, Which, make_final, with_finalized};
use crate::mail::{self, Letter};

choice! {
    /// The type of a mail.
    pub enum SendType {
        /// The invoice.
        #[default]
        Invoice = "invoice",
        /// The quote.
        Quote = "quote",
        /// A credit.
        Credit = "credit",
        /// The first reminder of an invoice.
        InvoiceRem1 = "invoice_rem1",
        /// The second reminder of an invoice.
        InvoiceRem2 = "invoice_rem2",
        /// The third reminder of an invoice.
        InvoiceRem3 = "invoice_rem3",
        /// The first reminder of a quote.
        QuoteRem1 = "quote_rem1",
        /// The second reminder of a quote.
        QuoteRem2 = "quote_rem2",
        /// The third reminder of a quote.
        QuoteRem3 = "quote_rem3",
        /// The confirmation of an order.
        OrderConfirmation = "order_confirmation",
        /// An invoice of a subscription.
        Subscription = "subscription",
        /// The workorder.
        Workorder = "workorder",
    }
}

impl SendType {
    /// The kind of document that it applies to.
    const fn family(self) -> Which {
        use SendType::{
            Credit, Invoice, InvoiceRem1, InvoiceRem2, InvoiceRem3, OrderConfirmation, Quote, QuoteRem1, QuoteRem2,
            QuoteRem3, Subscription, Workorder,
        };
        match self {
            Invoice | Credit | InvoiceRem1 | InvoiceRem2 | InvoiceRem3 | Subscription => Which::Invoice,
            Quote | QuoteRem1 | QuoteRem2 | QuoteRem3 | OrderConfirmation => Which::Quote,
            Workorder => Which::Workorder,
        }
    }

    /// Whether it is a reminder.
    fn is_reminder(self) -> bool {
        self.wire().contains("_rem")
    }
}

input! {
    /// What to send, and to whom.
    pub struct Send;

    /// Recipients, separated by commas; at most fifty, including `cc`.
    to: Emails = REQUIRED.at_most(8192).example("\"anna@bakkerij-de-ster.example\"");
    /// The subject.
    subject: String = REQUIRED.at_most(998).example("\"Your invoice\"");
    /// The message.
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
        if self.subject.contains(['\n', '\r']) {
            faults.add("subject", violation(FieldCode::InvalidCharacters, "must be one line"));
        }
        let (to, cc) = self.recipients();
        if to.len() + cc.len() > 50 {
            faults.add("to", violation(FieldCode::TooLong, "may have at most 50 addresses, including cc"));
        }
    }
}

impl Send {
    fn recipients(&self) -> (Vec<String>, Vec<String>) {
        let split = |emails: &Emails| -> Vec<String> {
            emails.0.split(", ").filter(|one| !one.is_empty()).map(str::to_string).collect()
        };
        mail::distinct(&split(&self.to), &split(&self.cc))
    }
}

/// Fields of the response to a send.
pub const SENT: &[Part] = &[
    Part("success", "boolean", "Whether the mail was queued."),
    Part("recipients", "array", "Recipients: `to`, then `cc`, without duplicates."),
    Part("recipients_list", "string", "The recipients as one string, separated by commas."),
];

/// `POST /v1/{invoices,quotes,workorders}/{id}/send`
pub fn send<K: DocumentKind>(call: Call) -> Result<Work> {
    let input = input::create_with(&call, |input: &Input<Send>, faults| {
        let kind = input.record().send_type;
        if input.has("send_type") && kind.family() != K::WHICH {
            let message = format!("{} does not apply to this type of document", kind.wire());
            faults.add("send_type", violation(FieldCode::InvalidChoice, message));
        }
    })?;
    let wish = input.record();
    Ok(Box::new(move |tx, ctx| {
        let mut document: Document<K> = records::find_to_change(tx, ctx, &call)?;
        let (finalized, _) = make_final(tx, ctx, &mut document)?;
        let mut wish = wish.clone();
        if !input.has("send_type") {
            wish.send_type = default_type(&document);
        }
        let recipients = post(tx, ctx, document, &wish)?;
        let data = json!({"success": true, "recipients": recipients, "recipients_list": recipients.join(", ")});
        let answer = Answer::data(Outcome::Done, data.to_string().into_bytes());
        Ok(with_finalized(answer.with_texts("warnings", &input.warnings), finalized))
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

/// Enqueues the mail and emits the event; returns the recipients.
pub fn post<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, before: Document<K>, wish: &Send) -> Result<Vec<String>> {
    let (to, cc) = wish.recipients();
    let (from_name, reply_to) = mail::identity_of(tx, ctx, &before.corporate_identity_id.0)?;
    let link = ctx.site.address(&format!("/d/{}", before.token));
    let letter = Letter {
        about: K::shape().name,
        about_id: before.base.id.clone(),
        kind: wish.send_type.wire().to_string(),
        subject: wish.subject.clone(),
        body: format!("{}\n\n{link}\n", wish.message.trim_end()),
        html: in_html(&before, &wish.message, &link),
        attach_pdf: wish.include_pdf,
        from_name,
        reply_to,
        to: to.clone(),
        cc: cc.clone(),
    };
    mail::put(tx, ctx, &letter)?;
    let mut document = before.clone();
    if !wish.send_type.is_reminder() {
        document.sent_at = When(document.sent_at.0.or(Some(ctx.now)));
    }
    records::change(tx, ctx, &before, &mut document, "updated")?;
    records::emit(tx, ctx, &document, "sales.document_sent")?;
    Ok(to.into_iter().chain(cc).collect())
}

/// Mails a document to its client with the default texts, if there is an address.
pub fn post_usual<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, document: Document<K>, kind: SendType) -> Result<()> {
    let to = addressee(&document, kind);
    if to.is_empty() {
        return Ok(());
    }
    let (name, _) = mail::identity_of(tx, ctx, &document.corporate_identity_id.0)?;
    let (subject, message) = words(&document, kind, &name);
    let wish = Send { to: Emails(to), subject, message, send_type: kind, include_pdf: true, ..Send::default() };
    post(tx, ctx, document, &wish).map(drop)
}

/// Formats the message as a plain HTML mail with a button.
fn in_html<K: DocumentKind>(document: &Document<K>, message: &str, link: &str) -> String {
    let sender = document.sender.json();
    let color = sender["primary_color"].as_str().unwrap_or("#1f4e79");
    let button = match (document.language, K::WHICH) {
        (Language::Dutch, Which::Invoice) => "Factuur bekijken",
        (Language::Dutch, Which::Quote) => "Offerte bekijken",
        (Language::Dutch, Which::Workorder) => "Werkbon bekijken",
        (Language::English, Which::Invoice) => "View the invoice",
        (Language::English, Which::Quote) => "View the quote",
        (Language::English, Which::Workorder) => "View the work order",
    };
    let words = escape(message.trim()).replace("\r\n", "\n").replace('\n', "<br>\n");
    let (link, language) = (escape(link), document.language.wire());
    format!(
        "<!doctype html>\n<html lang=\"{language}\"><body style=\"margin:0;padding:24px;\
         font:16px/1.5 -apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;color:#1c2126\">\n\
         <div style=\"max-width:600px\">\n<p>{words}</p>\n\
         <p style=\"margin:28px 0\"><a href=\"{link}\" style=\"background:{color};color:#ffffff;padding:12px 20px;\
         border-radius:6px;text-decoration:none;display:inline-block\">{button}</a></p>\n</div></body></html>\n"
    )
}

/// Escapes text for HTML.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Fields of the response of `GET …/send-preview`.
pub const PREVIEW: &[Part] = &[
    Part("send_type", "string", "Type of mail."),
    Part("to", "string", "Default recipient."),
    Part("subject", "string", "Default subject."),
    Part("message", "string", "Default message."),
];

/// `GET …/{id}/send-preview?send_type=`: a subject and a message that can be sent unchanged.
pub fn preview<K: DocumentKind>(call: Call) -> Result<Work> {
    let wanted = match call.query.get("send_type") {
        None => None,
        Some(text) => Some(SendType::from_wire(text).filter(|kind| kind.family() == K::WHICH).ok_or_else(|| {
            let message = "must be a send_type for this type of document";
            Error::field("send_type", violation(FieldCode::InvalidChoice, message))
        })?),
    };
    Ok(Box::new(move |tx, ctx| {
        let document: Document<K> = records::find(tx, ctx, call.id())?;
        let kind = wanted.unwrap_or_else(|| default_type(&document));
        let (name, _) = mail::identity_of(tx, ctx, &document.corporate_identity_id.0)?;
        let (subject, message) = words(&document, kind, &name);
        let data =
            json!({"send_type": kind.wire(), "to": addressee(&document, kind), "subject": subject, "message": message});
        Ok(Answer::data(Outcome::Done, data.to_string().into_bytes()))
    }))
}

/// Returns the client's address for this type of mail.
fn addressee<K: DocumentKind>(document: &Document<K>, kind: SendType) -> String {
    let client = document.client.json();
    let own = match kind {
        _ if kind.is_reminder() => client["email_reminders"].as_str(),
        _ if K::WHICH == Which::Invoice => client["email_invoices"].as_str(),
        _ => None,
    };
    own.filter(|own| !own.is_empty()).unwrap_or(&document.client_email).to_string()
}

/// Returns the default subject and message, in the language of the document.
pub fn words<K: DocumentKind>(document: &Document<K>, kind: SendType, sender: &str) -> (String, String) {
    let style = Style(document.language);
    let facts = Facts {
        number: &document.number,
        title: &document.title,
        amount: style.money(document.unpaid_amount()),
        due: document.due_date.0.map(|date| style.date(date)).unwrap_or_default(),
    };
    let ((subject, body), end) = match document.language {
        Language::Dutch => (in_dutch(kind, &facts), "Met vriendelijke groet"),
        Language::English => (in_english(kind, &facts), "Kind regards"),
    };
    (subject, format!("{},\n\n{body}\n\n{end},\n{sender}", salutation(document)))
}

/// The values in the default texts.
struct Facts<'a> {
    number: &'a str,
    title: &'a str,
    amount: String,
    due: String,
}

/// Returns the salutation: the client's own, or one with the first name, or a general one.
fn salutation<K: DocumentKind>(document: &Document<K>) -> String {
    let (dear, in_general) = match document.language {
        Language::Dutch => ("Beste", "Beste relatie"),
        Language::English => ("Dear", "Dear customer"),
    };
    match document.client.json()["mail_salutation"].as_str().unwrap_or_default() {
        "" if document.client_firstname.is_empty() => in_general.to_string(),
        "" => format!("{dear} {}", document.client_firstname),
        own => own.to_string(),
    }
}

/// Returns the Dutch subject and body.
fn in_dutch(kind: SendType, facts: &Facts) -> (String, String) {
    use SendType::{
        Credit, Invoice, InvoiceRem1, InvoiceRem2, InvoiceRem3, OrderConfirmation, Quote, QuoteRem1, QuoteRem2,
        QuoteRem3, Subscription, Workorder,
    };
    let Facts { number, title, amount, due } = facts;
    match kind {
        Invoice => (
            format!("Factuur {number}"),
            format!(
                "Hierbij ontvangt u factuur {number} voor {title}. Wij verzoeken u {amount} uiterlijk op {due} over te maken."
            ),
        ),
        Subscription => (
            format!("Factuur {number} voor uw abonnement"),
            format!(
                "Hierbij ontvangt u factuur {number} voor uw abonnement {title}. Wij verzoeken u {amount} uiterlijk op {due} over te maken."
            ),
        ),
        Credit => {
            (format!("Creditfactuur {number}"), format!("Hierbij ontvangt u creditfactuur {number} voor {title}."))
        }
        InvoiceRem1 => (
            format!("Betalingsherinnering: factuur {number}"),
            format!(
                "Wellicht is het aan uw aandacht ontsnapt: de betalingstermijn van factuur {number} is op {due} verstreken. Wij verzoeken u het openstaande bedrag van {amount} alsnog over te maken. Heeft u al betaald, dan kunt u dit bericht als niet verzonden beschouwen."
            ),
        ),
        InvoiceRem2 => (
            format!("Tweede betalingsherinnering: factuur {number}"),
            format!(
                "Van factuur {number}, met vervaldatum {due}, staat nog {amount} open. Wij verzoeken u dit bedrag binnen zeven dagen over te maken."
            ),
        ),
        InvoiceRem3 => (
            format!("Laatste betalingsherinnering: factuur {number}"),
            format!(
                "Ondanks eerdere herinneringen hebben wij nog geen volledige betaling van factuur {number} ontvangen. Wij verzoeken u het openstaande bedrag van {amount} binnen zeven dagen over te maken. Bij uitblijven van betaling zien wij ons genoodzaakt verdere stappen te nemen."
            ),
        ),
        Quote => (
            format!("Offerte {number}"),
            format!(
                "Hierbij ontvangt u onze offerte {number} voor {title}. De offerte is geldig tot en met {due}; u kunt deze online bekijken en accepteren."
            ),
        ),
        QuoteRem1 | QuoteRem2 | QuoteRem3 => (
            format!("Onze offerte {number}"),
            format!(
                "Heeft u onze offerte {number} voor {title} al kunnen bekijken? De offerte is geldig tot en met {due}. Wij zien uw reactie graag tegemoet."
            ),
        ),
        OrderConfirmation => (
            format!("Opdrachtbevestiging {number}"),
            format!("Hartelijk dank voor uw opdracht. Hierbij bevestigen wij opdracht {number}: {title}."),
        ),
        Workorder => (format!("Werkbon {number}"), format!("Hierbij ontvangt u werkbon {number} voor {title}.")),
    }
}

/// Returns the English subject and body.
fn in_english(kind: SendType, facts: &Facts) -> (String, String) {
    use SendType::{
        Credit, Invoice, InvoiceRem1, InvoiceRem2, InvoiceRem3, OrderConfirmation, Quote, QuoteRem1, QuoteRem2,
        QuoteRem3, Subscription, Workorder,
    };
    let Facts { number, title, amount, due } = facts;
    match kind {
        Invoice => (
            format!("Invoice {number}"),
            format!("Here is invoice {number} for {title}. Please transfer {amount} by {due}."),
        ),
        Subscription => (
            format!("Invoice {number} for your subscription"),
            format!("Here is invoice {number} for your subscription {title}. Please transfer {amount} by {due}."),
        ),
        Credit => (format!("Credit note {number}"), format!("Here is credit note {number} for {title}.")),
        InvoiceRem1 => (
            format!("Payment reminder: invoice {number}"),
            format!(
                "This may have escaped your attention: invoice {number} was due on {due}. Please transfer the outstanding amount of {amount}. If you have already paid, please disregard this message."
            ),
        ),
        InvoiceRem2 => (
            format!("Second payment reminder: invoice {number}"),
            format!(
                "Invoice {number}, which was due on {due}, still has an outstanding amount of {amount}. Please transfer this amount within seven days."
            ),
        ),
        InvoiceRem3 => (
            format!("Final payment reminder: invoice {number}"),
            format!(
                "Despite earlier reminders, we have not received full payment of invoice {number}. Please transfer the outstanding amount of {amount} within seven days. Otherwise we will be obliged to take further action."
            ),
        ),
        Quote => (
            format!("Quote {number}"),
            format!(
                "Here is our quote {number} for {title}. It is valid until {due}; you can view and accept it online."
            ),
        ),
        QuoteRem1 | QuoteRem2 | QuoteRem3 => (
            format!("Our quote {number}"),
            format!(
                "Have you had a chance to look at our quote {number} for {title}? It is valid until {due}. We look forward to hearing from you."
            ),
        ),
        OrderConfirmation => (
            format!("Order confirmation {number}"),
            format!("Thank you for your order. We hereby confirm order {number}: {title}."),
        ),
        Workorder => (format!("Work order {number}"), format!("Here is work order {number} for {title}.")),
    }
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
    Part("status", "string", "Status: queued, sending, retrying, sent or failed."),
    Part("attempts", "integer", "Number of attempts."),
    Part("reason", "string", "The last reply of the mail server."),
    Part(
        "maybe_twice",
        "boolean",
        "Whether an attempt was interrupted after the mail was handed over, so that it may have arrived twice.",
    ),
    Part("created_at", "string", "When the delivery was queued."),
    Part("updated_at", "string", "When the record was last changed."),
];

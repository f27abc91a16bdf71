//! The texts of mail about documents: templates with placeholders, built in or the account's own, filled with the facts of a
//! document.

use std::sync::LazyLock;

use engine::context::Ctx;
use engine::error::Result;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::Tx;

use super::mail_template::MailTemplate;
use super::pdf::Style;
use super::placeholders::{DUE_DATE, NUMBER, PAYMENT, PLACEHOLDERS, asks, fill, restore};
use super::request::Request;
use super::send_type::SendType;
use super::{Document, DocumentKind, Language, PaymentStatus, Which, quote};

/// The built-in texts, by language and send type.
pub fn built_in(language: Language) -> &'static Value {
    static TEXTS: LazyLock<Value> =
        LazyLock::new(|| serde_json::from_str(include_str!("../../templates/mail.json")).unwrap_or_default());
    &TEXTS[language.wire()]
}

/// The name of the text of a reminder of an invoice that is not due yet.
const EARLY: &str = "invoice_early";

/// The names of the texts about a quote that nobody can answer any more.
const QUOTE_ACCEPTED: &str = "quote_accepted";
const QUOTE_INVOICED: &str = "quote_invoiced";
const QUOTE_REJECTED: &str = "quote_rejected";
const QUOTE_EXPIRED: &str = "quote_expired";

/// The subject and the message of a mail.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// The subject, on one line.
    pub subject: String,
    /// The message.
    pub message: String,
}

impl Text {
    /// Returns the template of the account, or else the built-in one.
    pub fn template(tx: &mut Tx, ctx: &Ctx, kind: SendType, language: Language) -> Result<Text> {
        if let Some(own) = MailTemplate::of(tx, ctx, kind, language)? {
            return Ok(Text { subject: own.subject, message: own.message });
        }
        Ok(Text::built_in(kind.wire(), language))
    }

    /// Returns the text of a mail about a document.
    pub fn of<K: DocumentKind>(
        tx: &mut Tx,
        ctx: &Ctx,
        document: &Document<K>,
        kind: SendType,
        sender: &str,
    ) -> Result<Text> {
        Ok(Text::usual(tx, ctx, document, kind)?.filled(&Facts::of(ctx, document, sender)))
    }

    /// Returns the template of a mail about a document.
    pub fn usual<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, document: &Document<K>, kind: SendType) -> Result<Text> {
        let kind = kind_to_say(document, kind);
        let usual = usual_name(ctx, document, kind);
        // A reminder of a quote asks for an answer, whoever wrote its template.
        let own = match K::WHICH == Which::Quote && kind.is_reminder() && !quote::is_open(ctx, document) {
            true => None,
            false => MailTemplate::of(tx, ctx, kind, document.language)?,
        };
        Ok(match own {
            Some(own) => Text { subject: own.subject, message: own.message }.fitting(ctx, document, kind),
            None => Text::built_in(usual, document.language),
        })
    }

    /// Returns the built-in text instead of one that asks for what is settled, or that says nothing about this document.
    #[must_use]
    pub fn fitting<K: DocumentKind>(self, ctx: &Ctx, document: &Document<K>, kind: SendType) -> Text {
        let kind = kind_to_say(document, kind);
        let asks_in_vain = match kind {
            SendType::Invoice | SendType::Subscription => {
                document.request() != Request::Transfer && asks(&self.subject, &self.message)
            }
            SendType::Quote => {
                !quote::is_open(ctx, document) && (self.subject.contains(DUE_DATE) || self.message.contains(DUE_DATE))
            }
            _ => false,
        };
        let says_nothing = self.message.replace(PAYMENT, "").trim().is_empty()
            && document.request() != Request::Transfer
            && Style(document.language).terms(ctx, document).is_empty();
        match asks_in_vain || says_nothing {
            true => Text::built_in(usual_name(ctx, document, kind), document.language),
            false => self,
        }
    }

    fn built_in(name: &str, language: Language) -> Text {
        let text = &built_in(language)[name];
        let part = |name: &str| text[name].as_str().unwrap_or_default().to_string();
        Text { subject: part("subject"), message: part("message") }
    }

    /// Whether it is the reminder of an invoice before its due date, and not one that somebody wrote.
    pub fn is_early(&self, language: Language) -> bool {
        *self == Text::built_in(EARLY, language)
    }

    /// Returns a text that somebody wrote with `{number}` where it has the number of the draft that the document was.
    #[must_use]
    pub fn of_draft(self, draft: Option<&str>) -> Text {
        let written = |text: String| draft.map_or_else(|| text.clone(), |draft| text.replace(draft, NUMBER));
        Text { subject: written(self.subject), message: written(self.message) }
    }

    /// Fills the placeholders of a text that somebody wrote, and changes nothing else.
    pub fn sent(&self, facts: &Facts) -> Text {
        let filled = |text: &str| facts.fill_written(text);
        Text { subject: on_one_line(&filled(&self.subject)), message: filled(&self.message) }
    }

    /// Fills the placeholders.
    pub fn filled(&self, facts: &Facts) -> Text {
        // A sentence that is left out leaves no space behind.
        let message = fill(&self.message, |name| facts.value(name)).replace(" \n", "\n").trim_end().to_string();
        Text { subject: on_one_line(&fill(&self.subject, |name| facts.value(name))).trim().to_string(), message }
    }
}

/// The header of a mail has no line breaks and no tabs, which a subject and the names in it may have.
fn on_one_line(text: &str) -> String {
    text.replace(['\n', '\r', '\t', '\u{2028}', '\u{2029}'], " ")
}

/// The values of the placeholders.
pub struct Facts([(&'static str, String); PLACEHOLDERS.len()]);

impl Facts {
    /// Of a document.
    pub fn of<K: DocumentKind>(ctx: &Ctx, document: &Document<K>, sender: &str) -> Facts {
        let style = Style(document.language);
        let day = |date: Option<jiff::civil::Date>| date.map(|date| style.date(date)).unwrap_or_default();
        let person = format!("{} {}", document.client_firstname, document.client_lastname);
        let client = match document.client_company_name.as_str() {
            "" => person.trim().to_string(),
            company => company.to_string(),
        };
        let (amount, due_date) = (style.money(document.unpaid_amount()), day(document.due_date.0));
        let payment = match document.request() {
            Request::Transfer => {
                let name = if document.is_past_due(ctx) { "transfer_late" } else { "transfer" };
                let sentence = built_in(document.language)[name].as_str().unwrap_or_default();
                sentence.replace("{amount}", &amount).replace("{due_date}", &due_date)
            }
            _ => style.terms(ctx, document),
        };
        Facts([
            ("salutation", salutation(document)),
            ("number", document.number.clone()),
            ("title", document.title.clone()),
            ("amount", amount),
            ("total", style.money(document.total_incl_vat)),
            ("date", day(document.invoice_date.0)),
            ("due_date", due_date),
            ("reference", document.reference.clone()),
            ("client", client),
            ("sender", sender.to_string()),
            ("payment", payment),
            ("link", ctx.site.address(&format!("/d/{}", document.token))),
        ])
    }

    /// Returns a text without what the values put into it.
    pub fn without(&self, text: &str) -> String {
        let with_braces = self.0.iter().filter(|(_, value)| value.contains('{'));
        with_braces.fold(text.to_string(), |text, (_, value)| text.replace(value.as_str(), ""))
    }

    /// Whether a value has braces, which would be read as a placeholder in a text that has this value.
    pub fn have_braces(&self) -> bool {
        self.0.iter().any(|(_, value)| value.contains('{'))
    }

    /// Fills the placeholders of a text that somebody wrote. It may have values of the document, as a preview has, and braces in
    /// these are text.
    fn fill_written(&self, text: &str) -> String {
        let placeholders = PLACEHOLDERS.map(|name| format!("{{{name}}}"));
        let is_ambiguous = |value: &&str| {
            placeholders.iter().any(|one| value.contains(one)) && placeholders.iter().all(|one| one != value)
        };
        let values = self.0.iter().map(|(_, value)| value.as_str()).filter(is_ambiguous);
        let mut found: Vec<(usize, usize)> =
            values.flat_map(|value| text.match_indices(value).map(|(start, own)| (start, start + own.len()))).collect();
        found.sort_by_key(|(start, end)| (*start, std::cmp::Reverse(*end)));
        let (mut out, mut done) = (String::with_capacity(text.len() + 64), 0);
        for (start, end) in found {
            if start >= done {
                out.push_str(&fill(&text[done..start], |name| self.value(name)));
                out.push_str(&text[start..end]);
                done = end;
            }
        }
        out + &fill(&text[done..], |name| self.value(name))
    }

    /// Returns a text with the placeholders of the template that it was filled from, around what somebody changed.
    pub fn restore(&self, template: &str, text: &str) -> String {
        restore(template, text, |name| self.value(name))
    }

    /// Returns a warning about a text that somebody wrote and that asks for money which is not due, as does a preview from
    /// before a payment. It cannot be refused: a program does not know what a text asks.
    pub fn doubt<K: DocumentKind>(&self, document: &Document<K>, text: &Text) -> Option<String> {
        if K::WHICH != Which::Invoice || document.is_credit {
            return None;
        }
        let fact = |name: &str| self.value(name).filter(|value| !value.is_empty());
        // Somebody who types an amount uses an ordinary space, or none.
        let plain = |text: &str| text.replace(['\u{a0}', '\u{202f}'], " ").replace("€ ", "€");
        let (subject, message) = (plain(&text.subject), plain(&text.message));
        let is_named = |value: &str| subject.contains(&plain(value)) || message.contains(&plain(value));
        let (number, amount) = (&document.number, self.value("amount").unwrap_or_default());
        match document.request() {
            Request::Transfer => {
                let total =
                    fact("total").filter(|total| document.asks_for_part() && is_named(total) && !is_named(amount))?;
                Some(format!("The text names {total}, but {amount} of {number} is still to be paid."))
            }
            // The sentence that fits every status may name an amount itself.
            _ if fact("payment").is_some_and(is_named) => None,
            _ => {
                let named =
                    ["amount", "total", "due_date"].into_iter().filter_map(fact).find(|value| is_named(value))?;
                Some(format!(
                    "The client has nothing to transfer for {number}, but the text names {named} and does not say so. It may be a preview from before a payment; retrieve a new one."
                ))
            }
        }
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| *own == name).map(|(_, value)| value.as_str())
    }
}

/// Returns the type of mail whose text a mail has: an invoice that is settled or collected is never asked for, so its reminder
/// says what its invoice says.
fn kind_to_say<K: DocumentKind>(document: &Document<K>, kind: SendType) -> SendType {
    let is_settled = K::WHICH == Which::Invoice && document.request() != Request::Transfer;
    match kind.is_reminder() && is_settled {
        true if document.is_credit => SendType::Credit,
        true => SendType::Invoice,
        false => kind,
    }
}

/// Returns the name of the built-in text of a mail about a document.
fn usual_name<K: DocumentKind>(ctx: &Ctx, document: &Document<K>, kind: SendType) -> &'static str {
    let is_plain = matches!(kind, SendType::Invoice | SendType::Subscription);
    match answered(ctx, document).filter(|_| kind.is_reminder() || kind == SendType::Quote) {
        Some(answered) => answered,
        None if document.is_credit && is_plain => SendType::Credit.wire(),
        None if K::WHICH == Which::Invoice && kind.is_reminder() && !document.is_past_due(ctx) => EARLY,
        None => kind.wire(),
    }
}

/// Returns the name of the text about a quote that nobody can answer any more: it asks for nothing that was done.
fn answered<K: DocumentKind>(ctx: &Ctx, document: &Document<K>) -> Option<&'static str> {
    if K::WHICH != Which::Quote || quote::is_open(ctx, document) {
        return None;
    }
    Some(match document.payment_status {
        PaymentStatus::Accepted => QUOTE_ACCEPTED,
        PaymentStatus::Invoiced if document.accepted_at.0.is_some() => QUOTE_ACCEPTED,
        PaymentStatus::Invoiced => QUOTE_INVOICED,
        PaymentStatus::Rejected => QUOTE_REJECTED,
        _ => QUOTE_EXPIRED,
    })
}

/// Returns the salutation: the client's own, or one with the first name, or a general one.
fn salutation<K: DocumentKind>(document: &Document<K>) -> String {
    let texts = built_in(document.language);
    let text = |key: &str| texts[key].as_str().unwrap_or_default();
    match document.client.json()["mail_salutation"].as_str().unwrap_or_default() {
        "" if document.client_firstname.is_empty() => text("dear_client").to_string(),
        "" => text("dear").replace("{name}", &document.client_firstname),
        own => own.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::placeholders::check_placeholders;
    use super::*;

    #[test]
    fn built_in_texts_have_known_placeholders() {
        for language in Language::ALL {
            let others = [EARLY, QUOTE_ACCEPTED, QUOTE_INVOICED, QUOTE_REJECTED, QUOTE_EXPIRED];
            for kind in SendType::WIRE.iter().chain(&others) {
                let text = &built_in(*language)[*kind];
                for part in ["subject", "message"] {
                    let template = text[part].as_str().unwrap();
                    assert!(!template.is_empty(), "{language:?} {kind:?} {part}");
                    check_placeholders(template).unwrap();
                }
            }
        }
    }
}

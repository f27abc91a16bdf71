//! Mail templates: the account's own texts of mail about documents, per send type and language.

use engine::context::Ctx;
use engine::error::{FieldCode, FieldErrors, Result, violation};
use engine::record;
use engine::record::{ALL, Model, NOWHERE, REQUIRED, Record};
use store::{Migration, Tx};

use super::Language;
use super::placeholders::{AMOUNT, DUE_DATE, PAYMENT, TOTAL, asks, check_placeholders};
use super::send_type::SendType;

record! {
    /// Your own text of one type of mail, in one language. Without one, the built-in text is used; of several, the newest.
    pub struct MailTemplate = "mail_template" in "mail_templates", created_at: ALL, updated_at: ALL, meta: NOWHERE;

    /// Type of mail.
    send_type: SendType = REQUIRED.create_only().filter().example("\"invoice\"");
    /// Language of the mail: that of the document.
    language: Language = REQUIRED.create_only().filter().example("\"nl\"");
    /// Subject, with placeholders such as `{number}`.
    subject: String = REQUIRED.names().at_most(998).unbroken().example("\"Factuur {number} van {sender}\"");
    /// Message, with placeholders: `{salutation}`, `{number}`, `{title}`, `{amount}` (still to be paid), `{total}`, `{date}`,
    /// `{due_date}`, `{reference}`, `{client}`, `{sender}`, `{link}`, and `{payment}`, the sentence that asks for a transfer or
    /// says that the amount is collected or paid. A text that names `{amount}` or `{due_date}`, or `{total}` without `{payment}`, is
    /// replaced by the built-in one when there is nothing to transfer.
    message: String = REQUIRED.long().example("\"{salutation},\\n\\nHierbij factuur {number}. {payment}\\n\\n{sender}\"");
}

impl Model for MailTemplate {
    const MOST: i64 = 1000;

    fn check(&self, faults: &mut FieldErrors) {
        check_text(&self.subject, &self.message, faults);
    }

    fn warnings(&self) -> Vec<String> {
        warning(self.send_type, &self.subject, &self.message).into_iter().collect()
    }
}

impl MailTemplate {
    /// Returns the template of the account, if it has one.
    pub fn of(tx: &mut Tx, ctx: &Ctx, kind: SendType, language: Language) -> Result<Option<MailTemplate>> {
        let sql = format!(
            "{} WHERE account_id = $1 AND send_type = $2 AND language = $3
             ORDER BY created_at DESC, id DESC LIMIT 1",
            MailTemplate::sql().select
        );
        let values = [ctx.account.into(), kind.wire().into(), language.wire().into()];
        Ok(tx.first(&sql, &values, MailTemplate::from_row)?)
    }
}

/// Returns a warning about a text that can only be used while its invoice is to be paid.
pub fn warning(kind: SendType, subject: &str, message: &str) -> Option<String> {
    let is_invoice = matches!(kind, SendType::Invoice | SendType::Subscription);
    (is_invoice && asks(subject, message)).then(|| {
        format!(
            "The text names {AMOUNT} or {DUE_DATE}, or {TOTAL} without {PAYMENT}, so mail about an invoice that is paid or collected by direct debit has the built-in text. Use {PAYMENT}, which asks for the transfer only if there is something to pay, and {TOTAL} beside it for the amount of the invoice."
        )
    })
}

/// Checks that a subject is one line.
pub fn check_line(subject: &str, faults: &mut FieldErrors) {
    if subject.contains(['\n', '\r']) {
        faults.add("subject", violation(FieldCode::InvalidCharacters, "must be one line"));
    }
}

/// Checks the placeholders of a text.
pub fn check_text(subject: &str, message: &str, faults: &mut FieldErrors) {
    check_line(subject, faults);
    faults.take("subject", check_placeholders(subject));
    faults.take("message", check_placeholders(message));
}

/// The table of mail templates.
pub const MIGRATIONS: &[Migration] = &[Migration {
    number: 51,
    name: "mail templates",
    sql: "
CREATE TABLE mail_templates (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    send_type TEXT NOT NULL,
    language TEXT NOT NULL,
    subject TEXT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX mail_templates_created ON mail_templates (account_id, created_at, id);
CREATE INDEX mail_templates_type ON mail_templates (account_id, send_type, created_at, id);
CREATE INDEX mail_templates_used ON mail_templates (account_id, send_type, language, created_at, id);
CREATE INDEX mail_templates_language ON mail_templates (account_id, language, created_at, id);
",
}];

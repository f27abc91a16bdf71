//! What a mail about a document is written from: a text with placeholders. A mail that waits is written when it is queued, and
//! again when it leaves, since the amount may have changed.

use engine::context::Ctx;
use engine::error::{FieldCode, FieldErrors, Result, violation};
use serde::{Deserialize, Serialize};
use store::Tx;

use super::mail_template::check_text;
use super::mail_text::{Facts, Text};
use super::send_type::SendType;
use super::{Document, DocumentKind};

/// A text with placeholders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The text.
    pub text: Text,
    /// Whether the message is that of a template, and not one that somebody wrote for this mail.
    pub is_usual: bool,
    /// Whether the due date had passed when the mail was queued.
    pub was_late: bool,
    /// Whether there was nothing to ask the client for then.
    pub was_settled: bool,
    /// Whether the mail goes to the address that the client has for such mail, and follows it when it changes.
    pub to_client: bool,
}

impl Source {
    /// The template of a mail about a document.
    pub fn usual<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, document: &Document<K>, kind: SendType) -> Result<Source> {
        let text = Text::usual(tx, ctx, document, kind)?;
        Ok(Source { text, is_usual: true, was_late: false, was_settled: false, to_client: false })
    }

    /// Rejects unknown placeholders in a text that somebody wrote, and a message that they leave empty. Braces that come from
    /// the document are text: whoever sends the preview unchanged has them too.
    pub fn check(&self, facts: &Facts) -> Result<()> {
        let mut faults = FieldErrors::default();
        if !self.is_usual {
            check_text(&facts.without(&self.text.subject), &facts.without(&self.text.message), &mut faults);
            if self.filled(facts).message.trim().is_empty() {
                let message = "would be empty: its placeholders have no value for this document";
                faults.add("message", violation(FieldCode::Required, message));
            }
        }
        faults.into_result()
    }

    /// Returns the text with its placeholders where it equals that of the template, as does a preview that is sent unchanged.
    pub fn with_placeholders<K: DocumentKind>(
        self,
        tx: &mut Tx,
        ctx: &Ctx,
        document: &Document<K>,
        kind: SendType,
        sender: &str,
    ) -> Result<Source> {
        let (usual, facts) = (Text::usual(tx, ctx, document, kind)?, Facts::of(ctx, document, sender));
        let (expected, own) = (usual.filled(&facts), self.filled(&facts));
        let Source { mut text, mut is_usual, .. } = self;
        text.subject = match own.subject.trim() == expected.subject {
            true => usual.subject,
            false => facts.restore(&usual.subject, &text.subject),
        };
        if own.message.replace("\r\n", "\n").trim_end() == expected.message {
            text.message = usual.message;
            is_usual = true;
        } else {
            // What somebody changed in it stays; the rest, such as the amount, is as it is when the mail leaves.
            text.message = facts.restore(&usual.message, &text.message.replace("\r\n", "\n"));
        }
        let (was_late, was_settled) = (document.is_past_due(ctx), !document.awaits_client(ctx));
        Ok(Source { text, is_usual, was_late, was_settled, to_client: false })
    }

    /// Fills the placeholders.
    pub fn filled(&self, facts: &Facts) -> Text {
        if self.is_usual { self.text.filled(facts) } else { self.text.sent(facts) }
    }
}

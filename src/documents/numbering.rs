//! Numbers of final documents: without gaps per account, kind and year, assigned in the transaction that finalizes the
//! document.

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::counters;
use engine::error::{Error, FieldCode, Result, violation};
use engine::record::{Day, Record, When};
use engine::records::Work;
use engine::resource::Part;
use jiff::civil::Date;
use serde_json::json;
use store::Tx;

use super::placeholders::NUMBER;
use super::{Document, DocumentKind, Mode, PaymentStatus, Which};

/// Returns the number of a draft, from its id: the time of its creation and a counter within the millisecond. New numbers
/// are next to each other in their index, so that a commit writes few pages of it. The part of the time repeats after
/// 50 days: the unique index rejects a number that is taken, and the write is repeated with another id.
pub fn of_draft(id: &str) -> String {
    let part = |from: usize, to: usize| id.get(from..to).unwrap_or_default();
    format!("DRAFT-{}{}{}", part(4, 8), part(9, 13), part(24, 28)).to_uppercase()
}

impl<K: DocumentKind> Document<K> {
    /// Finalizes the document: assigns its number and copies the current client and identity.
    pub fn become_final(&mut self, tx: &mut Tx, ctx: &Ctx) -> Result<()> {
        self.take_snapshots(tx, ctx)?;
        let date = self.invoice_date.0.unwrap_or_else(|| ctx.now.date(&ctx.zone));
        self.invoice_date = Day(Some(date));
        if self.number.starts_with("DRAFT-") {
            self.number = next::<K>(tx, ctx, date.year())?;
        }
        self.open();
        self.finalized_at = When(Some(ctx.now));
        self.revision = 1;
        if self.payment_status.is_unpaid() {
            self.note_status(ctx);
        }
        Ok(())
    }

    /// A quote whose last valid day has passed asks for no answer, not even for an hour.
    pub fn lapse(&mut self, ctx: &Ctx) {
        if K::WHICH == Which::Quote && self.payment_status == PaymentStatus::Open && self.is_past_due(ctx) {
            self.payment_status = PaymentStatus::Expired;
        }
    }

    fn open(&mut self) {
        self.generation_mode = Mode::Final;
        if self.payment_status == PaymentStatus::Draft {
            self.payment_status = PaymentStatus::Open;
        }
    }

    /// Returns the document as it will be when it is final, as far as that is known: a draft has the placeholder of its
    /// number.
    pub fn foreseen(mut self, tx: &mut Tx, ctx: &Ctx) -> Result<Self> {
        if !self.is_final() {
            self.take_snapshots(tx, ctx)?;
            self.resolve_dates(tx, ctx)?;
            self.open();
            self.number = NUMBER.to_string();
        }
        Ok(self)
    }
}

/// The counter of the numbers of a year.
fn series<K: DocumentKind>(year: i16) -> String {
    let kind = match K::WHICH {
        Which::Invoice => "invoice",
        Which::Quote => "quote",
        Which::Workorder => "workorder",
    };
    format!("{kind} {year}")
}

/// Returns the next unused number: skips one that a document was created with. A unique index refuses such a number, so
/// this only looks after it has.
fn next<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, year: i16) -> Result<String> {
    let series = series::<K>(year);
    loop {
        let next = counters::next(tx, ctx, &series)?;
        let number = format!("{}{year}-{next:04}", K::WHICH.letter());
        if !tx.asks_first() || !is_taken::<K>(tx, ctx, &number)? {
            return Ok(number);
        }
    }
}

fn is_taken<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, number: &str) -> Result<bool> {
    let taken = format!("SELECT count(*) FROM {} WHERE account_id = $1 AND number = $2", Document::<K>::shape().table);
    Ok(tx.int(&taken, &[ctx.account.into(), number.into()])? > 0)
}

/// The parameters of the number ahead.
pub const QUERY: &[Part] =
    &[Part("date", "string", "The date of the document (YYYY-MM-DD), whose year counts; today by default.")];

/// The members of the number ahead.
pub const AHEAD: &[Part] = &[Part(
    "number",
    "string",
    "The number that a document of that year gets if it is the next one that is finalized. It is not reserved.",
)];

/// How many numbers that documents were created with are skipped.
const MAX_SKIPPED: i64 = 100;

/// `GET …/next-number`
pub fn ahead<K: DocumentKind>(call: Call) -> Result<Work> {
    let date = match call.query.get("date") {
        None => None,
        Some(text) => match text.parse::<Date>().ok().filter(|date| text.len() == 10 && date.year() > 0) {
            Some(date) => Some(date),
            None => {
                return Err(Error::field("date", violation(FieldCode::InvalidFormat, "must be a date (YYYY-MM-DD)")));
            }
        },
    };
    Ok(Box::new(move |tx, ctx| {
        let year = date.unwrap_or_else(|| ctx.now.date(&ctx.zone)).year();
        let last = counters::last(tx, ctx, &series::<K>(year))?;
        let numbers = (last + 1..=last + MAX_SKIPPED).map(|next| format!("{}{year}-{next:04}", K::WHICH.letter()));
        for number in numbers {
            if !is_taken::<K>(tx, ctx, &number)? {
                return Ok(Answer::json(&json!({"number": number})));
            }
        }
        Ok(Answer::json(&json!({"number": ""})))
    }))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use engine::clock::Ids;

    use super::of_draft;

    #[test]
    fn drafts_have_numbers_of_their_own() {
        let numbers: HashSet<String> = (0..50_000).map(|_| of_draft(&Ids::SYSTEM.next())).collect();
        assert_eq!(numbers.len(), 50_000);
        assert_eq!(of_draft("019a8c5f-2b7d-7abc-8def-0123456789ab"), "DRAFT-8C5F2B7D0123");
    }
}

//! What an invoice asks of its client: a transfer, nothing while the amount is collected by direct debit, and nothing
//! once it is settled. A quote asks for an answer until it has one. The PDF, the page and the mail all say the same.

use engine::clock::Moment;
use engine::record::Day;
use jiff::civil::Date;

use super::{Document, DocumentKind, PaymentStatus, Which};

/// What a document asks of its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// To pay the open amount.
    Transfer,
    /// Nothing: the open amount is collected on this day, from this account.
    Collection(Date, String),
    /// Nothing: it was paid.
    Paid,
    /// Nothing: it was credited.
    Credited,
    /// To accept or reject the quote.
    Answer,
    /// Nothing: the quote was accepted then, by this person.
    Accepted(Option<Moment>, String),
    /// Nothing: the quote was rejected then.
    Rejected(Option<Moment>),
    /// Nothing: the quote was invoiced without an answer.
    Invoiced,
    /// Nothing: the quote is no longer valid.
    Expired,
    /// Nothing: it is a draft or a workorder, or nothing is owed.
    Nothing,
}

impl<K: DocumentKind> Document<K> {
    /// Returns what the document asks of its client.
    pub fn request(&self) -> Request {
        if K::WHICH == Which::Quote {
            return self.wanted_answer();
        }
        if K::WHICH != Which::Invoice || self.is_credit || !self.is_final() {
            return Request::Nothing;
        }
        match &self.payment_status {
            PaymentStatus::Paid if self.total_incl_vat.scaled() != 0 => Request::Paid,
            PaymentStatus::Credited => Request::Credited,
            _ if self.unpaid_amount().scaled() <= 0 => Request::Nothing,
            _ => match self.collection_date.0 {
                Some(day) => Request::Collection(day, self.collection_account.clone()),
                None => Request::Transfer,
            },
        }
    }

    fn wanted_answer(&self) -> Request {
        let accepted = || Request::Accepted(self.accepted_at.0, self.accepted_by.clone());
        match &self.payment_status {
            PaymentStatus::Accepted => accepted(),
            PaymentStatus::Invoiced if self.accepted_at.0.is_some() => accepted(),
            PaymentStatus::Invoiced => Request::Invoiced,
            PaymentStatus::Rejected => Request::Rejected(self.rejected_at.0),
            PaymentStatus::Expired => Request::Expired,
            _ => Request::Answer,
        }
    }

    /// Gives an invoice that asks something else or another amount than before a revision of its own: the PDF of one that is
    /// paid or collected must not ask for a transfer, nor that of one that is partly paid for the total. That of a quote which
    /// was answered must not ask for an answer.
    pub fn revise_request(&mut self, before: &Self) {
        if before.is_final() && self.revision == before.revision && self.asked() != before.asked() {
            self.revision += 1;
        }
    }

    /// Returns what is asked, and how much.
    pub fn asked(&self) -> (Request, i64) {
        match self.request() {
            request @ (Request::Transfer | Request::Collection(..)) => (request, self.unpaid_amount().scaled()),
            request => (request, 0),
        }
    }

    /// Whether less than the total is asked for, since some of it was paid or credited.
    pub fn asks_for_part(&self) -> bool {
        let (request, amount) = self.asked();
        request != Request::Nothing && amount != 0 && amount != self.total_incl_vat.scaled()
    }

    /// Whether the open amount is being collected.
    pub fn is_collected(&self) -> bool {
        self.collection_date.0.is_some()
    }

    /// Records that the open amount is collected from a bank account on this day.
    pub fn begin_collection(&mut self, day: Date, iban: &str) {
        self.collection_date = Day(Some(day));
        self.collection_account = masked(iban);
    }

    /// Records that the collection is over, whatever its outcome.
    pub fn end_collection(&mut self) {
        self.collection_date = Day(None);
        self.collection_account.clear();
    }
}

/// Hides the middle of an IBAN, as banks do: the owner recognizes it, and nobody else learns it.
/// `NL91ABNA0417164300` becomes `NL** ABNA **** **43 00`.
fn masked(iban: &str) -> String {
    let length = iban.chars().count();
    let shown = |place: usize| place < 2 || (4..8).contains(&place) || place + 4 >= length;
    let hidden: String =
        iban.chars().enumerate().map(|(place, letter)| if shown(place) { letter } else { '*' }).collect();
    grouped(&hidden)
}

/// `NL91 ABNA 0417 1643 00`
pub fn grouped(iban: &str) -> String {
    let letters: Vec<char> = iban.chars().collect();
    letters.chunks(4).map(|part| part.iter().collect::<String>()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::masked;

    #[test]
    fn an_account_is_recognizable_but_hidden() {
        assert_eq!(masked("NL91ABNA0417164300"), "NL** ABNA **** **43 00");
        assert_eq!(masked("BE68539007547034"), "BE** 5390 **** 7034");
        assert_eq!(masked(""), "");
    }
}

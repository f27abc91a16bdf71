//! How a document stands, and what can be done with it in each status.

use engine::open_choice;

open_choice! {
    /// How a document stands. A business may use words of its own; to the server these mean that it is open.
    pub enum PaymentStatus {
        /// It can still be changed.
        Draft = "draft",
        /// It awaits payment, an answer or the work.
        Open = "open",
        /// A part of the invoice is paid.
        Partial = "partial",
        /// The invoice is paid.
        Paid = "paid",
        /// The invoice is due and not paid.
        Overdue = "overdue",
        /// The invoice is credited.
        Credited = "credited",
        /// The client accepted the quote.
        Accepted = "accepted",
        /// The client rejected the quote.
        Rejected = "rejected",
        /// The quote is no longer valid.
        Expired = "expired",
        /// An invoice was made of it.
        Invoiced = "invoiced",
        /// The work is done.
        Completed = "completed",
    }
}

impl PaymentStatus {
    /// Whether something is left to pay on an invoice that stands so.
    pub(crate) fn is_unpaid(&self) -> bool {
        matches!(self, PaymentStatus::Open | PaymentStatus::Partial | PaymentStatus::Overdue)
    }
}

/// What can be done with a quote or a workorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// The client accepts a quote.
    Accept,
    /// The client rejects a quote.
    Reject,
    /// A quote becomes an invoice.
    Invoice,
    /// A quote becomes a project.
    MakeProject,
    /// The work of a workorder is done.
    Complete,
}

/// What comes of a verb in a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It is done.
    Allowed,
    /// It was done before: nothing changes.
    Done,
    /// It is refused; words that follow the number of the document.
    Refused(&'static str),
}

/// The effect of each verb in the statuses in which it is not simply allowed. The set of statuses is open, so these are
/// the exceptions: in every other status, and in a word of the business' own, the verb is allowed.
pub(crate) const TRANSITIONS: &[(Verb, PaymentStatus, Effect)] = &[
    (Verb::Accept, PaymentStatus::Accepted, Effect::Done),
    (Verb::Accept, PaymentStatus::Invoiced, Effect::Done),
    (Verb::Accept, PaymentStatus::Rejected, Effect::Refused("was rejected")),
    (Verb::Accept, PaymentStatus::Expired, Effect::Refused("is no longer valid")),
    (Verb::Reject, PaymentStatus::Rejected, Effect::Done),
    (Verb::Reject, PaymentStatus::Accepted, Effect::Refused("was accepted already")),
    (Verb::Reject, PaymentStatus::Invoiced, Effect::Refused("was accepted already")),
    (Verb::Reject, PaymentStatus::Expired, Effect::Refused("is no longer valid")),
    (Verb::Invoice, PaymentStatus::Rejected, Effect::Refused("is rejected; it cannot be invoiced")),
    (Verb::Invoice, PaymentStatus::Expired, Effect::Refused("is expired; it cannot be invoiced")),
    (Verb::MakeProject, PaymentStatus::Rejected, Effect::Refused("is rejected; it cannot be made into a project")),
    (Verb::MakeProject, PaymentStatus::Expired, Effect::Refused("is expired; it cannot be made into a project")),
    (Verb::Complete, PaymentStatus::Completed, Effect::Done),
    (Verb::Complete, PaymentStatus::Invoiced, Effect::Refused("has its invoice already")),
];

impl Verb {
    /// What comes of it in a status.
    pub fn effect(self, status: &PaymentStatus) -> Effect {
        let listed = TRANSITIONS.iter().find(|(verb, own, _)| *verb == self && own == status);
        listed.map_or(Effect::Allowed, |(_, _, effect)| *effect)
    }
}

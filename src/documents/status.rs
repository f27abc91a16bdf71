//! The status of a document, and the actions that each status allows.

use engine::open_choice;

open_choice! {
    /// The status of a document. A business may use custom values, which the server treats as open.
    pub enum PaymentStatus {
        /// Can still be changed.
        Draft = "draft",
        /// Awaits payment, a response or the work.
        Open = "open",
        /// Partly paid.
        Partial = "partial",
        /// Paid.
        Paid = "paid",
        /// Past the due date and unpaid.
        Overdue = "overdue",
        /// Credited.
        Credited = "credited",
        /// The client accepted the quote.
        Accepted = "accepted",
        /// The client rejected the quote.
        Rejected = "rejected",
        /// Past the last valid day.
        Expired = "expired",
        /// An invoice was created from the document.
        Invoiced = "invoiced",
        /// The work is done.
        Completed = "completed",
    }
}

impl PaymentStatus {
    /// Whether an invoice with this status has an amount left to pay.
    pub(crate) fn is_unpaid(&self) -> bool {
        matches!(self, PaymentStatus::Open | PaymentStatus::Partial | PaymentStatus::Overdue)
    }
}

/// Returns the statuses that a type of document can have without custom values, by the name of its record.
pub(crate) fn usual(document: &str) -> Option<&'static [&'static str]> {
    match document {
        "invoice" => Some(&["draft", "open", "partial", "paid", "overdue", "credited"]),
        "quote" => Some(&["draft", "open", "accepted", "rejected", "expired", "invoiced"]),
        "workorder" => Some(&["draft", "open", "completed", "invoiced"]),
        _ => None,
    }
}

/// The actions on a quote or a workorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// The client accepts a quote.
    Accept,
    /// The client rejects a quote.
    Reject,
    /// Creates an invoice from it.
    Invoice,
    /// Creates a project from it.
    MakeProject,
    /// Completes a workorder.
    Complete,
}

/// The effect of an action in a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The action is performed.
    Allowed,
    /// The action was already performed: nothing changes.
    Done,
    /// The action is rejected, with a message that follows the number of the document.
    Refused(&'static str),
}

/// The effect of each action in the statuses in which it is not simply allowed. The set of statuses is open, so these
/// are the exceptions: in every other status, custom values included, the action is allowed.
pub(crate) const TRANSITIONS: &[(Verb, PaymentStatus, Effect)] = &[
    (Verb::Accept, PaymentStatus::Accepted, Effect::Done),
    (Verb::Accept, PaymentStatus::Invoiced, Effect::Done),
    (Verb::Accept, PaymentStatus::Rejected, Effect::Refused("was rejected")),
    (Verb::Accept, PaymentStatus::Expired, Effect::Refused("is no longer valid")),
    (Verb::Reject, PaymentStatus::Rejected, Effect::Done),
    (Verb::Reject, PaymentStatus::Accepted, Effect::Refused("has already been accepted")),
    (Verb::Reject, PaymentStatus::Invoiced, Effect::Refused("has already been accepted")),
    (Verb::Reject, PaymentStatus::Expired, Effect::Refused("is no longer valid")),
    (Verb::Invoice, PaymentStatus::Rejected, Effect::Refused("is rejected; it cannot be invoiced")),
    (Verb::Invoice, PaymentStatus::Expired, Effect::Refused("is expired; it cannot be invoiced")),
    (Verb::MakeProject, PaymentStatus::Rejected, Effect::Refused("is rejected; it cannot be made into a project")),
    (Verb::MakeProject, PaymentStatus::Expired, Effect::Refused("is expired; it cannot be made into a project")),
    (Verb::Complete, PaymentStatus::Completed, Effect::Done),
    (Verb::Complete, PaymentStatus::Invoiced, Effect::Refused("already has an invoice")),
];

impl Verb {
    /// Returns the effect of the action in a status.
    pub fn effect(self, status: &PaymentStatus) -> Effect {
        let listed = TRANSITIONS.iter().find(|(verb, own, _)| *verb == self && own == status);
        listed.map_or(Effect::Allowed, |(_, _, effect)| *effect)
    }
}

/// The condition that a document was sent.
pub(super) fn sent() -> String {
    "sent_at > 0".to_string()
}

/// The condition that something is open after the due date, and not being collected.
pub(super) fn late() -> String {
    format!("{} AND due_date < {{today}} AND collection_date = ''", outstanding())
}

/// The condition that something is still to be paid, or to be refunded.
pub(super) fn outstanding() -> String {
    "open_amount <> 0".to_string()
}

/// The condition that something is still to be paid; first that of the index `…_unpaid`, as it is.
pub(super) fn owed() -> String {
    "open_amount <> 0 AND open_amount > 0".to_string()
}

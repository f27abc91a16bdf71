//! The statuses of runs and their steps.

use engine::error::Violation;
use engine::json::Json;
use engine::record::{Kind, Rules, choose};
use engine::words;
use serde_json::Value;
use store::Row;

words! {
    /// The status of a run, or of one of its steps.
    pub enum Status {
        /// Waiting for its turn.
        #[default]
        Queued = "queued",
        /// An outgoing call is in progress.
        Running = "running",
        /// Waiting until a given time.
        Waiting = "waiting",
        /// An attempt failed and will be retried.
        Retrying = "retrying",
        /// Waiting for approval.
        PendingApproval = "pending_approval",
        /// Every step succeeded.
        Success = "success",
        /// Completed, but some steps failed.
        Partial = "partial",
        /// A step failed.
        Failed = "failed",
        /// Cancelled by a user.
        Cancelled = "cancelled",
    }
}

/// Stored as its name. Lists may be filtered by any text: one that is not a status finds nothing.
impl Kind for Status {
    const NAME: &'static str = "choice";
    const CHOICES: &'static [&'static str] = Status::WIRE;

    fn to_db(&self) -> store::Value<'_> {
        self.wire().into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        let found = Status::from_wire(row.text(column)?);
        found.ok_or_else(|| store::Error::unreadable(format!("it is not one of: {}", Status::WIRE.join(", "))))
    }

    fn from_json(json: &Json, _: &Rules) -> Result<Self, Violation> {
        choose(json, Status::WIRE, Status::from_wire)
    }

    fn to_json(&self, rules: &Rules, out: &mut Vec<u8>) {
        self.wire().to_string().to_json(rules, out);
    }

    fn schema(rules: &Rules) -> Value {
        String::schema(rules)
    }

    fn filter(text: &str, rules: &Rules) -> Result<store::Value<'static>, Violation> {
        String::filter(text, rules)
    }
}

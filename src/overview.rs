//! What people look at first: a search over all records, what needs attention, reports about money, and whether the log is intact.

pub(crate) mod attention;
mod balances;
pub(crate) mod related;
pub(crate) mod reports;
pub mod search;
pub(crate) mod verification;

use money::Amount;
use serde_json::Value;

/// Returns an amount in cents as a number.
fn in_euros(cents: i64) -> Value {
    serde_json::from_str(&Amount::from_scaled(cents).to_string()).unwrap_or_default()
}

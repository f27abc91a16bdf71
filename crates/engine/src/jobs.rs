//! Jobs: deferred work, enqueued in the transaction of its cause and claimed by a worker of any process under a lease.
//! When a worker dies, its lease expires and another worker takes the job over; each claim has a number, and a result
//! under an old number is discarded.
//!
//! Jobs are queued in lanes, each with its own workers, so that printing does not delay mail. Within a lane the
//! accounts take turns: an account with ten thousand jobs delays the first job of another by one job.

pub mod claims;
mod closed;
pub mod housekeeping;
pub mod kind;
mod lost;
pub mod marks;
pub mod queue;
mod shown;
pub mod worker;

pub use crate::accounts::SHARED;
pub use claims::{Claimant, any_due, explain_turn};
pub use closed::{any_to_resume, resume};
pub use housekeeping::Housekeeping;
pub use kind::{Job, JobKind, Purge, enqueue};
pub use lost::{Lost, any_ahead, any_lost, give_back, pull_back, take_back};
pub use queue::{
    Claimed, Ending, FOREVER, FURTHEST, LEASE_SECONDS, LEASES, Lane, MIGRATION, NewJob, call_off, count, hasten,
    is_running, is_under_way, oldest_due, purge,
};
pub use shown::{QueueState, Shown, list, parked, queued, retry, state};

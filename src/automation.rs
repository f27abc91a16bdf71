//! Flows: what is done by itself when something happens.
//!
//! Whatever the log takes down is matched with the active flows (`matching.rs`), and a run is written in
//! the same transaction. The engine (`runner.rs`) goes on with the runs that are due: what only touches the
//! database is one transaction with its result and the move to the next step; a call to the outside is
//! announced first, made outside any transaction, and its end written under the claim that announced it.

pub(crate) mod backtest;
pub mod conditions;
pub mod cron;
pub(crate) mod definition;
pub(crate) mod events;
pub mod flow;
pub mod late;
pub(crate) mod library;
pub(crate) mod lint;
pub(crate) mod matching;
pub(crate) mod metrics;
pub(crate) mod report;
pub mod run;
pub mod runner;
pub(crate) mod schedules;
pub(crate) mod secret;
pub(crate) mod steps;
pub mod template;
pub(crate) mod trigger;
pub(crate) mod validate;
pub mod worker;

use std::sync::Arc;

use engine::config::Config;
use engine::error::Result;
use engine::log::Listener;
use engine::services::Services;

pub use runner::Runner;

/// Starts runs of the flows that listen to an event.
pub const LISTENER: Listener = Listener {
    count: "SELECT count(*) FROM flows WHERE account_id = $1 AND listens_to = $2 AND active = 1",
    key: events::canonical,
    fired: matching::TRIGGERED,
    start: |tx, ctx, event, seq| matching::start_runs(tx, ctx, event, seq).map(drop),
};

/// Opens what the runs of all accounts share.
pub fn open(_: &Config, node: &str, services: &mut Services) -> Result<()> {
    services.add(Arc::new(Runner::on(node)));
    Ok(())
}

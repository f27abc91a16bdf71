//! Flows: automations that run when something happens.
//!
//! Every event of the log is matched with the active flows (`matching.rs`), and the runs are written in the same
//! transaction. The runner (`runner.rs`) advances the runs that are due. A step that only touches the database commits
//! together with its result and the move to the next step. An outgoing call is recorded first, made outside any
//! transaction, and its result is saved under the claim that recorded it.

pub(crate) mod about;
pub(crate) mod addresses;
pub(crate) mod author;
pub(crate) mod authority;
pub(crate) mod backtest;
pub mod calls;
pub(crate) mod catalogue;
pub mod conditions;
pub mod cron;
pub(crate) mod definition;
mod described;
pub(crate) mod events;
pub mod flow;
pub mod late;
pub mod late_runs;
pub(crate) mod library;
pub(crate) mod lint;
pub mod listening;
pub(crate) mod matching;
pub(crate) mod metrics;
pub(crate) mod needs;
pub(crate) mod report;
pub mod run;
pub mod runner;
pub mod schedules;
pub(crate) mod secret;
pub(crate) mod status;
pub(crate) mod steps;
pub mod template;
pub(crate) mod trigger;
pub(crate) mod validate;
pub(crate) mod versions;
pub(crate) mod vocabulary;
pub mod worker;

use std::sync::Arc;

use engine::config::Config;
use engine::error::Result;
use engine::log::Listener;
use engine::services::Services;
use engine::turns;

pub use runner::Runner;

/// Starts runs of the flows that an event triggers.
pub(crate) const LISTENER: Listener = Listener {
    table: "flows",
    keys: "SELECT coalesce(string_agg(listens_to, ' '), '') FROM flows WHERE account_id = $1 AND active = 1",
    key: events::canonical,
    fired: events::TRIGGERED,
    start: |tx, ctx, event, seq| matching::start_runs(tx, ctx, event, seq).map(drop),
};

/// Opens the state that the runs of all accounts share.
pub(crate) fn open(_: &Config, node: &str, services: &mut Services) -> Result<()> {
    let runner = Runner::on(node);
    services.pool(runner.calls.clone());
    services.pool(runner.accounts.clone());
    services.add(Arc::new(runner));
    let backtests = services.pool(turns::of_processors("backtests"));
    services.add(backtest::BacktestTurns(backtests));
    Ok(())
}

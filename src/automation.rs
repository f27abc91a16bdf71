//! Flows: what is done by itself when something happens.
//!
//! Whatever the log takes down is matched with the active flows (`matching.rs`), and a run is written in
//! the same transaction. The engine (`engine.rs`) goes on with the runs that are due: what only touches the
//! database is one transaction with its result and the move to the next step; a call to the outside is
//! announced first, made outside any transaction, and its end written under the claim that announced it.

pub mod backtest;
mod bell;
pub mod conditions;
pub mod cron;
pub mod definition;
pub mod doubts;
pub mod engine;
pub mod events;
pub mod library;
pub mod limits;
pub mod matching;
pub mod outside;
pub mod rehearsal;
pub mod report;
pub mod schedules;
pub mod secret;
pub mod steps;
pub mod template;
pub mod trigger;

pub use bell::Bell;
pub use engine::Engine;
pub use limits::MIGRATION;

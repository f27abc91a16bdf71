//! Black-box tests: HTTP on both databases, and the binary itself. One program, so that it links
//! once.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod automation;
mod cli;
mod closures;
mod conventions;
mod crash;
mod demo;
mod direct_debit;
mod documents;
mod documents_contract;
mod documents_flow;
mod events;
mod failover;
mod files;
mod generation;
mod jobs;
mod mail;
mod metrics;
mod plans;
mod proxy;
mod public;
mod records;
mod relations;
mod server;
mod settings;
mod silence;
mod statements;
mod store;
mod subscriptions;
mod support;
mod timers;
mod visitors;
mod walk;

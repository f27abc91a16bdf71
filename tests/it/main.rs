//! Black-box tests: HTTP on both databases, and the binary itself. One program, so that it links
//! once.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod automation;
mod backups;
mod cli;
mod conventions;
mod crash;
mod demo;
mod direct_debit;
mod documents;
mod documents_flow;
mod events;
mod files;
mod generation;
mod integrity;
mod jobs;
mod mail;
mod metrics;
mod plans;
mod public;
mod quotas;
mod records;
mod relations;
mod server;
mod settings;
mod store;
mod subscriptions;
mod support;
mod timers;
mod visitors;
mod walk;

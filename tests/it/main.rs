//! Black-box tests: HTTP on both databases, and the binary itself. One program, so that it links
//! once.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod automation;
mod cli;
mod connections;
mod conventions;
mod crash;
mod demo;
mod direct_debit;
mod documents;
mod documents_flow;
mod events;
mod files;
mod generation;
mod jobs;
mod mail;
mod metrics;
mod plans;
mod public;
mod records;
mod relations;
mod server;
mod settings;
mod store;
mod subscriptions;
mod support;
mod timers;
mod typesetting;
mod visitors;
mod walk;

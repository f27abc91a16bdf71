//! Black-box tests: HTTP on both databases, and the binary itself. One program, so that it links
//! once.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod cli;
mod conventions;
mod crash;
mod documents;
mod files;
mod jobs;
mod plans;
mod records;
mod relations;
mod server;
mod settings;
mod store;
mod support;
mod walk;

//! Black-box tests: HTTP on both databases, and the binary itself. One program, so that it links
//! once.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod cli;
mod conventions;
mod crash;
mod documents;
mod jobs;
mod plans;
mod records;
mod relations;
mod server;
mod store;
mod support;
mod walk;

//! Kantoor: the records of a small business, behind an HTTP JSON API. See ARCHITECTURE.md for
//! the map.

pub mod accounts;
pub mod app;
pub mod call;
pub mod cli;
pub mod clock;
pub mod config;
pub mod context;
pub mod counters;
pub mod error;
pub mod http;
pub mod idempotency;
pub mod input;
pub mod jobs;
pub mod json;
pub mod list;
pub mod log;
pub mod perform;
pub mod record;
pub mod records;
pub mod resources;
pub mod search;
pub mod site;
pub mod worker;

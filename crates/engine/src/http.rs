//! The HTTP server: conventions that every route shares, independent of the business.

pub mod authentication;
pub mod bodies;
pub mod busy;
pub mod decoding;
pub mod dispatch;
mod docs;
pub mod fixed;
pub mod key_use;
pub mod keys;
pub mod metrics;
pub mod openapi;
pub mod pace;
pub mod pages;
mod pouring;
pub mod reads;
pub mod receiving;
pub mod reply;
pub mod responses;
pub mod seats;
pub mod server;
pub mod session;
mod span;
pub mod stream;
pub mod upload;
pub mod visitors;

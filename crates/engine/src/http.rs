//! HTTP: the conventions of every route, and no business word.

pub mod authentication;
pub mod bodies;
pub mod busy;
pub mod dispatch;
pub mod fixed;
pub mod key_use;
pub mod keys;
pub mod metrics;
pub mod openapi;
pub mod pace;
pub mod pages;
pub mod reply;
pub mod seats;
pub mod server;
pub mod stream;
pub mod upload;
pub mod visitors;

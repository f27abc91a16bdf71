//! HTTP: the conventions of every route, and no business word.

pub mod bodies;
pub mod busy;
pub mod dispatch;
pub mod fixed;
pub mod hooks;
pub mod keys;
pub mod metrics;
pub mod openapi;
pub mod pace;
pub mod pages;
pub mod public;
pub mod reply;
pub mod sandbox;
pub mod seats;
pub mod server;
pub mod stream;
pub mod upload;
pub mod visitors;

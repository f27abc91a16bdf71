//! Relations: clients and suppliers, the links between them, and notes.

pub mod client;
pub mod client_link;
mod contact;
pub mod note;
pub mod supplier;

//! Relations: clients and suppliers, the links between them, and notes.

pub mod client;
pub mod client_link;
mod contact;
mod merging;
pub mod note;
pub mod supplier;

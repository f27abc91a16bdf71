//! Relations: clients and suppliers, the links between them, and notes.

pub mod client;
pub mod client_link;
pub mod note;
pub mod supplier;

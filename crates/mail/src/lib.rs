//! Builds mail ([`Mail`]) and hands it to an SMTP server or a folder ([`Sender`]).
//!
//! Everything blocks: it is meant for worker threads. A message goes to one recipient at a time, and the outcome is one
//! of five: taken ([`Receipt`]), not taken now, not taken ever, not taken until somebody changes the settings, or
//! perhaps taken ([`Failure`]). So a caller that keeps the outcome per recipient loses nothing and doubles nothing in
//! silence.

mod address;
mod connection;
mod failure;
mod folder;
mod message;
mod sender;
mod settings;
#[cfg(feature = "sink")]
pub mod sink;
mod smtp;
mod tls;

pub use failure::Failure;
pub use message::{Address, Attachment, Invalid, Mail};
pub use sender::{Receipt, Sender};
pub use settings::{Route, Security, SmtpSettings};

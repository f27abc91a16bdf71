//! Builds mail ([`Mail`]) and hands it to an SMTP server or a folder ([`Sender`]).
//!
//! Everything blocks and is meant for worker threads. A message goes to one recipient at a time, with one of five
//! outcomes: accepted ([`Receipt`]), temporarily rejected, permanently rejected, rejected until the settings change, or
//! unknown ([`Failure`]). A caller that stores the outcome per recipient loses no mail, and knows which mail may have
//! been sent twice.

mod address;
mod connection;
mod folder;
mod message;
mod sender;
#[cfg(feature = "sink")]
pub mod sink;
mod smtp;
mod tls;

pub use message::{Address, Attachment, Invalid, Mail};
pub use sender::{Failure, Receipt, Route, Security, Sender, SmtpSettings};

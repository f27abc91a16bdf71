//! Builds mail ([`Mail`]) and hands it to an SMTP server or a folder ([`Sender`]).
//!
//! Everything blocks and is meant for worker threads. A message goes to one recipient at a time, with one of five
//! outcomes: accepted ([`Receipt`]), temporarily rejected, permanently rejected, rejected until the settings change, or
//! unknown ([`Failure`]). A caller that stores the outcome per recipient loses no mail, and knows which mail may have
//! been sent twice.

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
pub use message::{Attachment, Invalid, Mail, NamedAddress};
pub use sender::{Receipt, Sender};
pub use settings::{Route, Security, SmtpSettings};
pub use tls::check_certificates;

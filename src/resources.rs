//! The resources, a file each.

pub mod batch;
pub mod change;
pub mod client;
pub mod client_link;
pub mod corporate_identity;
pub mod custom_field;
pub mod deal;
pub mod deal_source;
#[cfg(test)]
pub(crate) mod declared;
pub mod document;
pub mod email_domain;
pub mod file;
pub mod flow;
pub mod hour;
pub mod mandate;
pub mod note;
pub mod payment;
pub mod payment_term;
pub mod phase;
pub mod pipeline;
pub mod product;
pub mod project;
pub mod run;
pub mod settings;
pub mod subscription;
pub mod supplier;
pub mod task;
pub mod tax_rate;
pub mod ticket;
pub mod ticket_channel;
pub mod ticket_message;
pub mod ticket_status;
pub mod verification;
pub mod webhook_delivery;
pub mod webhook_endpoint;

pub use crate::resource::{Gives, Handler, List, Method, Part, Resource, Route, Takes};

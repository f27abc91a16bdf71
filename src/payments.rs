//! Payments, mandates, verifications, direct debit batches, and the payment providers.

pub(crate) mod awaiting_file;
pub(crate) mod batch;
pub mod collecting;
pub(crate) mod handing_over;
pub(crate) mod mandate;
mod next_file;
pub mod payment;
pub(crate) mod providers;
pub(crate) mod verification;

//! Payments: what clients paid, mandates, verifications, batches for the bank, and the providers that collect.

pub(crate) mod batch;
pub mod collecting;
pub(crate) mod handing_over;
pub(crate) mod mandate;
pub mod payment;
pub(crate) mod providers;
pub(crate) mod verification;

//! Payments: what clients paid, mandates, verifications, batches for the bank, and the providers that collect.

pub mod batch;
pub mod collecting;
pub mod mandate;
pub mod payment;
pub mod providers;
pub mod verification;

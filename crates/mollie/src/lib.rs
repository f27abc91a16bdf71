//! Payments through [Mollie](https://docs.mollie.com): version 2 of its API, as far as invoices need it.
//!
//! A customer pays once on Mollie's page (a first payment), which creates a mandate; later payments (recurring ones)
//! are collected with it. Mollie announces a change of a payment by calling a webhook with only the payment's id:
//! [`Mollie::payment`] then retrieves the payment.
//!
//! Nothing is retried here. A failed call says whether a retry makes sense ([`Failure`]), and a call that creates
//! something takes an idempotency key: Mollie creates it once per key, and repeats the first response for the same key
//! **within an hour**. After that hour it would create another, so check [`Mollie::payments_of`] first.

mod api;
mod failure;
mod records;
#[cfg(feature = "scripted")]
pub mod scripted;

pub use api::{BASE, Mollie};
pub use failure::Failure;
pub use records::{
    Amount, Chargeback, Customer, Mandate, MandateStatus, NewCustomer, NewPayment, Payment, Sequence, Status,
};

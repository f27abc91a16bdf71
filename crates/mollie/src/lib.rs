//! Payments through [Mollie](https://docs.mollie.com): version 2 of its API, as far as invoices need it.
//!
//! A customer pays once on Mollie's page (a first payment), which makes a mandate; later payments (recurring ones) take
//! the money without asking again. Mollie tells that something happened with a payment by calling a webhook with the
//! payment's id and nothing else: [`Mollie::payment`] then says what.
//!
//! Nothing is tried twice here. A call that failed says whether another try makes sense ([`Failure`]), and one that
//! makes something takes a key: Mollie makes it once per key, and gives the first answer again to whoever comes with
//! the same key **within an hour**. After that hour it would make another, so look with [`Mollie::payments_of`] first.

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

//! Kantoor: the records of a small business, behind an HTTP JSON API. See ARCHITECTURE.md for an overview.

pub mod automation;
pub mod calendar;
pub mod cli;
mod console;
#[cfg(test)]
mod declared;
mod demo;
pub mod documents;
mod files;
pub mod keys;
pub mod mail;
pub mod opening;
pub mod overview;
mod pages;
pub mod payments;
pub mod people;
mod reading;
pub mod registry;
mod relations;
mod sales;
mod settings;
pub mod subscriptions;
mod support;
pub mod transfer;
mod typesetting;
pub mod upkeep;
pub mod webhooks;
pub mod work;

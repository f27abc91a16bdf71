//! Kantoor: the records of a small business, behind an HTTP JSON API. See ARCHITECTURE.md for
//! the map.

pub mod automation;
pub mod calendar;
pub mod cli;
#[cfg(test)]
mod declared;
pub mod demo;
pub mod documents;
pub mod files;
pub mod mail;
pub mod opening;
pub mod pages;
pub mod payments;
pub mod registry;
pub mod relations;
pub mod sales;
pub mod settings;
pub mod subscriptions;
pub mod support;
pub mod typesetting;
pub mod upkeep;
pub mod webhooks;
pub mod work;

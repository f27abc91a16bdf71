//! Importing and exporting records as CSV, Excel and JSON Lines.

pub mod check;
mod checking;
pub mod convert;
pub mod export;
pub mod import;
pub mod lines;
pub mod mapping;
pub mod old;
pub mod operator;
pub mod routes;
pub mod run;
pub mod sources;
pub mod subject;
pub mod undo;

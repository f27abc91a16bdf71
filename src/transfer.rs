//! Importing and exporting records as CSV, Excel and JSON Lines.

mod again;
mod built;
pub mod check;
mod checking;
pub mod convert;
pub mod export;
pub mod import;
pub mod lines;
mod make;
pub mod mapping;
mod moved;
mod names;
pub mod old;
pub mod operator;
pub mod routes;
pub mod run;
pub mod sources;
pub mod subject;
mod sums;
pub mod undo;

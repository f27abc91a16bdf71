//! What people look at first: a search over all records, what needs attention, and reports about money.

pub mod search;

//! What people look at first: the search over all records, what needs attention, reports about money.

mod search;

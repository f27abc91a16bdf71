//! What people look at first: the search over all records, what needs attention, reports about money; and lists across rooms.

mod attention;
mod hours;
mod mails;
mod reports;
mod search;
mod sums;
mod verification;

//! Support: tickets, their messages, statuses and channels.

pub mod renaming;
pub mod ticket;
pub mod ticket_channel;
pub mod ticket_message;
pub mod ticket_status;

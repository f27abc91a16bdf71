//! Upkeep: whether everything that is kept is as it must be, and a copy of it.

pub mod backup;
pub mod integrity;

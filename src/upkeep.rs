//! Maintenance: integrity checks and backups.

pub mod anchor;
pub mod backup;
pub mod integrity;

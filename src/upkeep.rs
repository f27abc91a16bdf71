//! Maintenance: integrity checks and backups.

pub mod backup;
pub mod integrity;

//! Maintenance: integrity checks, backups, and what the operator should look at.

pub mod anchor;
pub mod backup;
pub mod disk;
pub mod doctor;
pub mod integrity;
pub mod restore;
pub mod scheduled;

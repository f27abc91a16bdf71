//! Work: projects, hours and tasks.

pub mod hour;
pub(crate) mod project;
pub(crate) mod task;

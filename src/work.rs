//! Work: projects, hours and tasks.

pub(crate) mod all_hours;
pub mod hour;
pub(crate) mod project;
pub(crate) mod task;

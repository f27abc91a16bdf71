//! Work: projects, hours and tasks.

pub mod hour;
pub mod project;
pub mod task;

//! All migrations: those of the engine's own tables, and those of the registry.

use store::Migration;

use crate::registry::registry;
use crate::{accounts, contents, counters, heads, idempotency, jobs, limits, log, nodes, once, search, site};

/// The migrations of the engine's own tables.
const OWN: &[Migration] = &[
    accounts::MIGRATION,
    search::MIGRATION,
    log::MIGRATION,
    heads::MIGRATION,
    idempotency::MIGRATION,
    jobs::MIGRATION,
    nodes::MIGRATION,
    counters::MIGRATION,
    site::MIGRATION,
    once::MIGRATION,
    contents::holds::MIGRATION,
    limits::MIGRATION,
];

/// Returns all migrations, in order.
pub fn all() -> Vec<Migration> {
    let of_resources = registry().resources.iter().flat_map(|resource| resource.migrations);
    let mut all: Vec<Migration> = OWN.iter().chain(&registry().migrations).chain(of_resources).copied().collect();
    all.sort_by_key(|migration| migration.number);
    all
}

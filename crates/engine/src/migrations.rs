//! All migrations: those of the engine's own tables, and those of the registry.

use store::Migration;

use crate::registry::registry;
use crate::{accounts, contents, counters, heads, idempotency, jobs, limits, log, nodes, once, search, site};

/// The migrations of the engine's own tables.
const OWN: &[Migration] = &[
    accounts::MIGRATION,
    accounts::KEYS,
    accounts::CLOSING,
    search::MIGRATION,
    search::PENDING,
    search::MERGING,
    log::MIGRATION,
    log::ORDINARY,
    log::SHARED_DATA,
    log::ACTORS,
    log::SALTED,
    log::INDEXES,
    log::KINDS,
    log::MARKED,
    heads::MIGRATION,
    idempotency::MIGRATION,
    jobs::MIGRATION,
    jobs::LANES,
    jobs::READY,
    jobs::marks::MIGRATION,
    jobs::READING,
    nodes::MIGRATION,
    counters::MIGRATION,
    site::MIGRATION,
    once::MIGRATION,
    contents::holds::MIGRATION,
    limits::MIGRATION,
];

/// Returns all migrations, in order. A migration of the registry replaces one of the engine with the same number: a
/// program whose databases are older than the engine has its own SQL for it.
pub fn all() -> Vec<Migration> {
    let of_resources = registry().resources.iter().flat_map(|resource| resource.migrations);
    let mut all: Vec<Migration> = registry().migrations.iter().chain(of_resources).copied().collect();
    all.extend(OWN.iter().filter(|own| !registry().migrations.iter().any(|other| other.number == own.number)));
    all.sort_by_key(|migration| migration.number);
    all
}

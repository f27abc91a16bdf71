use crate::{Error, Result, Store, Tx};

/// A step of the schema. Once released its text never changes.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// Its place in the list, from 1 on without gaps.
    pub number: u32,
    /// A word or two for people.
    pub name: &'static str,
    /// The statements, in the form that `Dialect::schema` describes.
    pub sql: &'static str,
}

const LEDGER: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
    number BIGINT PRIMARY KEY, name TEXT NOT NULL) STRICT";

/// The table that a database has while another one is copied to it: its schema is complete, its rows are not.
pub(crate) const COPYING: &str = "copy_progress";

/// What a database says about its schema.
struct Standing {
    /// Whether it is the target of a copy that has not finished.
    is_copying: bool,
    /// The last migration; 0 without a schema.
    version: u32,
}

impl Standing {
    fn of(store: &Store) -> Result<Standing> {
        store.read_now(|tx: &mut Tx| {
            let version = if has(tx, "schema_migrations")? { version(tx)? } else { 0 };
            Ok(Standing { is_copying: has(tx, COPYING)?, version })
        })
    }

    /// Rejects the target of a copy that has not finished.
    fn complete(self) -> Result<Standing> {
        if self.is_copying {
            return Err(Error::Unavailable(
                "another database is being copied to it; run `kantoor copy` again until it has finished".to_string(),
            ));
        }
        Ok(self)
    }
}

fn has(tx: &mut Tx, table: &str) -> Result<bool> {
    let sql = tx.dialect().has_table();
    Ok(tx.int(sql, &[table.into()])? > 0)
}

/// Whether the database is the target of a copy that has not finished.
pub(crate) fn is_copying(store: &Store) -> Result<bool> {
    Ok(Standing::of(store)?.is_copying)
}

pub(crate) fn apply(store: &Store, migrations: &[Migration]) -> Result<Vec<u32>> {
    apply_after(store, migrations, Standing::of(store)?.complete()?.version)
}

/// Applies the missing migrations, also to the target of a copy.
pub(crate) fn apply_while_copying(store: &Store, migrations: &[Migration]) -> Result<Vec<u32>> {
    apply_after(store, migrations, Standing::of(store)?.version)
}

/// Applies the migrations after this one. A start on a current database writes nothing.
fn apply_after(store: &Store, migrations: &[Migration], database: u32) -> Result<Vec<u32>> {
    let program = newest(migrations);
    must_not_be_newer(database, program)?;
    let missing: Vec<Migration> = migrations.iter().filter(|migration| migration.number > database).copied().collect();
    // A new database has nothing that others wait for: one commit, instead of one and its sync for each.
    let at_once = if database == 0 { missing.len().max(1) } else { 1 };
    let mut applied = Vec::new();
    for some in missing.chunks(at_once) {
        let some = some.to_vec();
        applied.extend(store.write_now(0, move |tx: &mut Tx| apply_some(tx, &some, program))?);
    }
    Ok(applied)
}

fn must_not_be_newer(database: u32, program: u32) -> Result<()> {
    if database > program { Err(Error::NewerSchema { database, program }) } else { Ok(()) }
}

/// Applies those of `migrations` that the database lacks, and returns their numbers.
fn apply_some(tx: &mut Tx, migrations: &[Migration], program: u32) -> Result<Vec<u32>> {
    tx.hold_all()?;
    let ledger = tx.dialect().schema(LEDGER);
    tx.script(&ledger)?;
    // Another process may have been faster.
    let database = version(tx)?;
    must_not_be_newer(database, program)?;
    let mut applied = Vec::new();
    for migration in migrations.iter().filter(|migration| migration.number > database) {
        let sql = tx.dialect().schema(migration.sql);
        tx.script(&sql).map_err(|error| of_migration(error, migration))?;
        let values = [i64::from(migration.number).into(), migration.name.into()];
        tx.execute("INSERT INTO schema_migrations (number, name) VALUES ($1, $2)", &values)?;
        applied.push(migration.number);
    }
    Ok(applied)
}

/// Names the migration that the database rejects. It has dozens of statements, which SQLite repeats in the error.
fn of_migration(error: Error, migration: &Migration) -> Error {
    match error {
        Error::Database(why) => {
            let why = why.lines().next().unwrap_or_default().trim_end();
            let why = why.strip_suffix(" in").unwrap_or(why);
            Error::Database(format!("migration {} ({}): {why}", migration.number, migration.name))
        }
        other => other,
    }
}

pub(crate) fn is_current(store: &Store, migrations: &[Migration]) -> Result<bool> {
    Ok(Standing::of(store)?.complete()?.version == newest(migrations))
}

/// The last migration of the database and of the program, if the database has a schema and lacks migrations.
pub(crate) fn pending(store: &Store, migrations: &[Migration]) -> Result<Option<(u32, u32)>> {
    let (database, program) = (Standing::of(store)?.complete()?.version, newest(migrations));
    Ok(Some((database, program)).filter(|(database, program)| (1..*program).contains(database)))
}

/// The last migration of the database; 0 without a schema.
pub(crate) fn database(store: &Store) -> Result<u32> {
    Ok(Standing::of(store)?.version)
}

pub(crate) fn has_ledger(store: &Store) -> Result<bool> {
    store.read_now(|tx: &mut Tx| has(tx, "schema_migrations"))
}

pub(crate) fn newest(migrations: &[Migration]) -> u32 {
    migrations.iter().map(|migration| migration.number).max().unwrap_or(0)
}

pub(crate) fn version(tx: &mut Tx) -> Result<u32> {
    let newest = tx.int("SELECT coalesce(max(number), 0) FROM schema_migrations", &[])?;
    u32::try_from(newest).map_err(|_| Error::Database(format!("migration {newest} is not a version")))
}

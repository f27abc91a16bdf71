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

pub(crate) fn apply(store: &Store, migrations: &[Migration]) -> Result<Vec<u32>> {
    store.write_now(0, move |tx: &mut Tx| {
        tx.hold_all()?;
        let ledger = tx.dialect().schema(LEDGER);
        tx.script(&ledger)
    })?;
    let program = newest(migrations);
    let mut applied = Vec::new();
    for migration in migrations.iter().copied() {
        let fresh = store.write_now(0, move |tx: &mut Tx| {
            tx.hold_all()?;
            let database = version(tx)?;
            if database > program {
                return Err(Error::NewerSchema { database, program });
            }
            if migration.number <= database {
                return Ok(false);
            }
            let sql = tx.dialect().schema(migration.sql);
            tx.script(&sql)?;
            let values = [i64::from(migration.number).into(), migration.name.into()];
            tx.execute("INSERT INTO schema_migrations (number, name) VALUES ($1, $2)", &values)?;
            Ok(true)
        })?;
        applied.extend(fresh.then_some(migration.number));
    }
    Ok(applied)
}

pub(crate) fn is_current(store: &Store, migrations: &[Migration]) -> Result<bool> {
    let database = store.read_now(version)?;
    Ok(database == newest(migrations))
}

pub(crate) fn has_ledger(store: &Store) -> Result<bool> {
    store.read_now(|tx: &mut Tx| {
        let sql = tx.dialect().has_table();
        Ok(tx.int(sql, &["schema_migrations".into()])? > 0)
    })
}

fn newest(migrations: &[Migration]) -> u32 {
    migrations.iter().map(|migration| migration.number).max().unwrap_or(0)
}

fn version(tx: &mut Tx) -> Result<u32> {
    let newest = tx.int("SELECT coalesce(max(number), 0) FROM schema_migrations", &[])?;
    u32::try_from(newest).map_err(|_| Error::Database(format!("migration {newest} is not a version")))
}

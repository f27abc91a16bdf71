//! Loads a dump into an empty PostgreSQL database, and creates databases that exist for a moment.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::address::Address;
use crate::copy::run;
use crate::{Database, Error, Result, Tx, postgres, sqlite};

/// Time limit of a statement; nothing waits for it.
const TIMEOUT: Duration = Duration::from_secs(3600);
/// What the names of temporary databases start with.
const TEMPORARY: &str = "kantoor_check_";
/// After how many milliseconds a temporary database that nobody uses was left by a process that was killed. A new one is
/// not used for a moment.
const UNUSED_MS: u64 = 10 * 60 * 1000;
/// How long a temporary database may be in use, in milliseconds.
const LONGEST_MS: u64 = 24 * 3600 * 1000;

/// Loads a dump into an empty database, all of it or nothing.
pub fn load_dump(url: &str, dump: &Path) -> Result<()> {
    let address = Address::parse(url)?;
    let mut restore = Command::new("pg_restore");
    restore.args(["--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges", "--no-comments"]);
    restore.arg("--dbname").arg(address.database()).arg(dump);
    // It outlives a restore that is killed; the next one looks for it.
    restore.env("PGAPPNAME", "pg_restore");
    run(&mut restore, "pg_restore", &address)
}

/// Deletes all tables of a database that was empty before.
pub fn empty(url: &str) -> Result<()> {
    let mut conn = postgres::Connection::open(&Address::parse(url)?, TIMEOUT, TIMEOUT)?;
    conn.script(
        "DO $$ DECLARE own RECORD; BEGIN
            FOR own IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() LOOP
                EXECUTE format('DROP TABLE IF EXISTS %I CASCADE', own.tablename);
            END LOOP;
         END $$",
    )
}

/// Deletes all rows of some tables of a database that nobody uses; those that it does not have yet are left out.
pub fn clear(database: &Database, tables: &[&str]) -> Result<()> {
    match database {
        Database::Sqlite(path) => {
            let conn = sqlite::open(path)?;
            clear_in(&mut Tx::sqlite(&conn), tables)?;
            // The file is moved without its WAL.
            Ok(conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
        }
        Database::Postgres(url) => {
            let mut conn = postgres::Connection::open(&Address::parse(url)?, TIMEOUT, TIMEOUT)?;
            clear_in(&mut Tx::postgres(&mut conn), tables)
        }
    }
}

fn clear_in(tx: &mut Tx, tables: &[&str]) -> Result<()> {
    let present = tx.tables()?;
    let own = tables.iter().filter(|table| present.iter().any(|one| one == *table));
    own.map(|table| format!("DELETE FROM {table}")).try_for_each(|sql| tx.script(&sql))
}

/// A database that is deleted with this value.
pub struct TemporaryDatabase {
    server: Address,
    name: String,
    url: String,
    /// Shows others that the database is in use.
    used: Option<postgres::Connection>,
}

impl TemporaryDatabase {
    /// Creates a database on the server of `url`, and deletes those that were left there. `now` is the time in
    /// milliseconds.
    pub fn create(url: &str, now: u64) -> Result<TemporaryDatabase> {
        let server = Address::parse(url)?;
        let mut conn = postgres::Connection::open(&server, TIMEOUT, TIMEOUT)?;
        let sql =
            "SELECT datname::TEXT, (SELECT count(*) FROM pg_stat_activity AS own WHERE own.datname = all_of.datname)
                   FROM pg_database AS all_of WHERE starts_with(datname::TEXT, $1)";
        for row in conn.query(sql, &[TEMPORARY.into()])? {
            let (name, users): (String, i64) = (row.get(0), row.get(1));
            let made = name.strip_prefix(TEMPORARY).and_then(|rest| rest.split('_').next()?.parse::<u64>().ok());
            let longest = if users == 0 { UNUSED_MS } else { LONGEST_MS };
            if made.is_some_and(|made| made + longest < now) {
                // Another user may own it.
                let _ = conn.script(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
            }
        }
        let name = format!("{TEMPORARY}{now}_{}", std::process::id());
        conn.script(&format!("CREATE DATABASE {name} TEMPLATE template0")).map_err(|error| {
            Error::Copy(format!(
                "a temporary database cannot be created: {error}; give the user the right with ALTER ROLE … CREATEDB"
            ))
        })?;
        let url = with_database(url, &name);
        let mut own = TemporaryDatabase { server, name, url, used: None };
        own.used = Some(postgres::Connection::open(&Address::parse(&own.url)?, TIMEOUT, TIMEOUT)?);
        Ok(own)
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for TemporaryDatabase {
    fn drop(&mut self) {
        self.used = None;
        let dropped = postgres::Connection::open(&self.server, TIMEOUT, TIMEOUT)
            .and_then(|mut conn| conn.script(&format!("DROP DATABASE {} WITH (FORCE)", self.name)));
        if let Err(error) = dropped {
            tracing::warn!(name = self.name, cause = %error, "A temporary database was not deleted; the next check does it.");
        }
    }
}

/// The same URL with another database.
fn with_database(url: &str, name: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        // The last of several values counts.
        return format!("{url} dbname={name}");
    };
    // A password may contain a question mark or a slash.
    let user = rest.rfind('@').map_or(0, |at| at + 1);
    let (user, rest) = rest.split_at(user);
    let (place, options) = rest.split_once('?').map_or((rest, None), |(place, options)| (place, Some(options)));
    let host = place.split('/').next().unwrap_or_default();
    let options = options.into_iter().flat_map(|options| options.split('&'));
    let options: Vec<&str> = options.filter(|option| !option.starts_with("dbname=")).collect();
    let end = if options.is_empty() { String::new() } else { format!("?{}", options.join("&")) };
    format!("{scheme}://{user}{host}/{name}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_of_the_database_changes() {
        for (url, expected) in [
            ("postgres://a:b@db:5432/k?sslmode=disable", "postgres://a:b@db:5432/x?sslmode=disable"),
            ("postgres://a:b?/c@db,eb", "postgres://a:b?/c@db,eb/x"),
            ("postgresql:///k?host=/run/p&dbname=k", "postgresql:///x?host=/run/p"),
            ("host=db dbname=k", "host=db dbname=k dbname=x"),
        ] {
            assert_eq!(with_database(url, "x"), expected);
        }
    }
}

//! The migrated databases that the tests copy: migrating each of a thousand would take a third of the time of all tests.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use engine::config::Config;
use engine::migrations;
use engine::open::open_store;

/// Copies the template to a file.
pub fn copy_sqlite(to: &Path) {
    static TEMPLATE: OnceLock<PathBuf> = OnceLock::new();
    std::fs::copy(TEMPLATE.get_or_init(sqlite), to).unwrap();
}

/// Returns the template file. Tests run in many processes, each of which may create it: the first one to rename it wins.
fn sqlite() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let template = folder.join(format!("{}.db", name()));
    if !template.exists() {
        let own = tempfile::tempdir_in(folder).unwrap();
        migrate(own.path(), "");
        let made = own.path().join("kantoor.db");
        // Into the file itself: the write-ahead log is not copied.
        let database = rusqlite::Connection::open(&made).unwrap();
        database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        let tables: i64 = database.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
        assert!(tables > 100, "the template has {tables} tables and indexes");
        drop(database);
        std::fs::rename(made, &template).unwrap();
    }
    template
}

/// Copies the template to a new database of PostgreSQL: by its files, which takes half of what writing each page to the log does.
pub fn copy_postgres(admin: &str, to: &str) {
    let sql = format!("CREATE DATABASE {to} TEMPLATE {}", postgres(admin));
    let mut client = postgres::Client::connect(admin, postgres::NoTls).unwrap();
    // Before version 15, this was the only way, and had no name.
    if client.batch_execute(&format!("{sql} STRATEGY FILE_COPY")).is_err() {
        client.batch_execute(&sql).unwrap();
    }
}

/// Returns the name of the template in PostgreSQL, which the first process creates while the others wait.
fn postgres(admin: &str) -> String {
    let name = name();
    let mut client = postgres::Client::connect(admin, postgres::NoTls).unwrap();
    let exists = |client: &mut postgres::Client| {
        !client.query("SELECT FROM pg_database WHERE datname = $1", &[&name]).unwrap().is_empty()
    };
    if exists(&mut client) {
        return name;
    }
    client.batch_execute("SELECT pg_advisory_lock(1)").unwrap();
    if !exists(&mut client) {
        let unfinished = format!("{name}_unfinished");
        client.batch_execute(&format!("DROP DATABASE IF EXISTS {unfinished}")).unwrap();
        client.batch_execute(&format!("CREATE DATABASE {unfinished}")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        migrate(folder.path(), &format!("{}/{unfinished}?sslmode=disable", admin.rsplit_once('/').unwrap().0));
        rename(&mut client, &unfinished, &name);
    }
    name
}

/// Renames a database once its connections are closed.
fn rename(client: &mut postgres::Client, from: &str, to: &str) {
    let ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = $1";
    client.query(ended, &[&from]).unwrap();
    while client.batch_execute(&format!("ALTER DATABASE {from} RENAME TO {to}")).is_err() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Returns a name that changes with the migrations.
fn name() -> String {
    kantoor::registry::install();
    let mut hasher = DefaultHasher::new();
    migrations::all().iter().for_each(|migration| migration.sql.hash(&mut hasher));
    format!("template_{:016x}", hasher.finish())
}

fn migrate(folder: &Path, url: &str) {
    let flags = [("data", folder.to_str().unwrap()), ("database_url", url)];
    let flags: Vec<_> = flags.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
    let config = Config::load(None, std::iter::empty(), &flags).unwrap();
    open_store(&config).unwrap().migrate(&migrations::all()).unwrap();
}

//! A database and its server. The database is seeded once, and copied for every round.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::Connection;
use serde_json::Value;

use super::load::{Feed, client_body, invoice_body};
use super::postgres::Postgres;
use crate::bare;
use crate::server::{self, Server};

pub const ACCOUNTS: usize = 16;
/// The number of clients of each account; the last one has the invoices.
const CLIENTS: u64 = 30;
/// The number of invoices of each account; lists show the first 25.
const INVOICES: usize = 40;

#[derive(Clone, Copy)]
pub enum Database<'p> {
    Sqlite,
    Postgres(&'p Postgres),
}

impl Database<'_> {
    pub fn name(self) -> &'static str {
        match self {
            Database::Sqlite => "SQLite",
            Database::Postgres(_) => "PostgreSQL",
        }
    }
}

#[derive(Clone, Copy)]
pub enum Program<'b> {
    Kantoor(&'b Path),
    Bare,
}

impl Program<'_> {
    pub fn name(self) -> &'static str {
        match self {
            Program::Kantoor(_) => "kantoor",
            Program::Bare => "bare",
        }
    }
}

/// A seeded database, which is copied for every round.
pub struct Seed<'b> {
    program: Program<'b>,
    database: Database<'b>,
    place: DatabaseLocation,
    feed: Feed,
}

/// A folder with `kantoor.db`, and the name of a database on PostgreSQL.
struct DatabaseLocation {
    folder: PathBuf,
    name: String,
}

impl DatabaseLocation {
    fn file(&self) -> PathBuf {
        self.folder.join("kantoor.db")
    }

    fn url(&self, database: Database) -> Option<String> {
        match database {
            Database::Sqlite => None,
            Database::Postgres(postgres) => Some(postgres.url(&self.name)),
        }
    }
}

impl<'b> Seed<'b> {
    /// Creates accounts with clients and invoices through the API.
    pub fn make(program: Program<'b>, database: Database<'b>, folder: &Path) -> Seed<'b> {
        fs::create_dir_all(folder).unwrap();
        let place = DatabaseLocation { folder: folder.to_path_buf(), name: format!("seed_{}", program.name()) };
        if let Database::Postgres(postgres) = database {
            postgres.create(&place.name, "template1");
        }
        let url = place.url(database);
        let keys: Vec<String> = match (program, database) {
            (Program::Kantoor(binary), _) => {
                (0..ACCOUNTS).map(|_| server::create_account(binary, folder, url.as_deref())).collect()
            }
            (Program::Bare, Database::Postgres(postgres)) => {
                postgres.run(&place.name, &bare::schema());
                (1..=ACCOUNTS as i64).map(bare::key).collect()
            }
            (Program::Bare, Database::Sqlite) => {
                Connection::open(place.file()).unwrap().execute_batch(&bare::schema()).unwrap();
                (1..=ACCOUNTS as i64).map(bare::key).collect()
            }
        };
        let mut seed = Seed { program, database, place, feed: Feed { keys, ..Feed::default() } };
        let mut server = seed.serve(&seed.place);
        for key in seed.feed.keys.clone() {
            server.key = key;
            let text = |made: Value| made["data"]["id"].as_str().expect("an id").to_string();
            let made = (0..CLIENTS).map(|n| text(server.post("/v1/clients", &client_body(n))));
            let client = made.collect::<Vec<_>>().pop().expect("a client");
            let invoice = |n: usize| text(server.post("/v1/invoices", &invoice_body(n as u64, &client, "draft")));
            seed.feed.seeded.push((0..INVOICES).map(invoice).collect());
            seed.feed.clients.push(client);
        }
        server.stop();
        if let Database::Sqlite = database {
            crate::seed::checkpoint(&seed.place.file());
        }
        seed
    }

    /// Starts a server on a fresh copy in `folder`.
    pub fn start(&self, folder: &Path) -> Side<'b> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("run_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let place = DatabaseLocation { folder: folder.to_path_buf(), name };
        fs::create_dir_all(folder).unwrap();
        match self.database {
            Database::Sqlite => drop(server::copy(&self.place.file(), &place.file())),
            Database::Postgres(postgres) => postgres.create(&place.name, &self.place.name),
        }
        let mut server = self.serve(&place);
        server.key = self.feed.keys[0].clone();
        Side { server, database: self.database, place, feed: self.feed.clone() }
    }

    fn serve(&self, place: &DatabaseLocation) -> Server {
        let url = place.url(self.database);
        match self.program {
            Program::Kantoor(binary) => Server::kantoor_alone(binary, &place.folder, url.as_deref()),
            Program::Bare => {
                let file = place.file().to_string_lossy().to_string();
                Server::bare(url.as_deref().unwrap_or(&file), &place.folder.join("bare.log"))
            }
        }
    }
}

/// A server and its database during a round.
pub struct Side<'b> {
    pub server: Server,
    pub feed: Feed,
    database: Database<'b>,
    place: DatabaseLocation,
}

/// Counters that increase with the work.
pub struct Standing {
    /// `None` if the server does not count them.
    pub statements: Option<u64>,
    /// The size of the database in bytes.
    pub stored: u64,
    /// Bytes written: to PostgreSQL's write-ahead log, or to the disk by the process with SQLite.
    pub written: u64,
}

impl Side<'_> {
    pub fn standing(&self) -> Standing {
        let (stored, written) = match self.database {
            Database::Sqlite => {
                let conn = Connection::open(self.place.file()).unwrap();
                let pragma =
                    |name: &str| conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap() as u64;
                (pragma("page_count") * pragma("page_size"), self.server.written())
            }
            Database::Postgres(postgres) => {
                let size = format!("SELECT pg_database_size('{}')", self.place.name);
                (postgres.number(&size), postgres.number("SELECT (pg_current_wal_insert_lsn() - '0/0')::BIGINT"))
            }
        };
        Standing { statements: self.server.metric("kantoor_store_statements_total"), stored, written }
    }

    pub fn stop(self) {
        self.server.stop();
        if let Database::Postgres(postgres) = self.database {
            postgres.drop(&self.place.name);
        }
    }
}

/// Collects the names of all fields of a response, sorted.
pub fn fields(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(name, value)| fields(value, &format!("{path}.{name}"), found)),
        Value::Array(items) => items.iter().take(1).for_each(|item| fields(item, &format!("{path}[]"), found)),
        _ => found.push(path.to_string()),
    }
    found.sort();
}

//! A server in this process on a fresh database, the server that tests share, and a client that speaks HTTP to both.

mod client;
mod office;
pub mod shared;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use engine::accounts;
use engine::app::App;
use engine::config::Config;
use engine::http::server;

pub use self::client::{Client, Reply, multipart};
pub use self::office::Office;
pub use self::shared::Shared;
use crate::template;

/// Runs each listed test on SQLite and on PostgreSQL. A function that is not listed is dead code, which the lints
/// report.
#[macro_export]
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        $( mod $name {
            #[test]
            fn sqlite() {
                super::$name($crate::support::Given::sqlite());
            }
            #[test]
            fn postgres() {
                if let Some(given) = $crate::support::Given::postgres() {
                    super::$name(given);
                }
            }
        } )+
    };
}

/// What a test of both databases gets: a database of its own, or a place on the server that tests share.
pub trait Given: Sized {
    fn sqlite() -> Self;

    /// Returns `None` if PostgreSQL is to be skipped.
    fn postgres() -> Option<Self>;
}

impl Given for Db {
    fn sqlite() -> Db {
        Db::sqlite()
    }

    fn postgres() -> Option<Db> {
        Db::postgres()
    }
}

/// A new database, deleted at the end.
pub struct Db {
    pub folder: tempfile::TempDir,
    /// The data folder, unless a test sets another.
    pub data: std::path::PathBuf,
    pub url: String,
    admin: String,
}

impl Db {
    /// A new database with all tables, as of a program that has not started yet.
    pub fn sqlite() -> Db {
        let db = Db::at(String::new(), String::new());
        template::copy_sqlite(&db.data.join("kantoor.db"));
        db
    }

    /// Returns `None` if PostgreSQL is to be skipped.
    pub fn postgres() -> Option<Db> {
        let admin = postgres_server()?;
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("t{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        template::copy_postgres(&admin, &name);
        // Encrypted connections have their own tests; here they would take half of the time.
        let url = format!("{}/{name}?sslmode=disable", admin.rsplit_once('/').unwrap().0);
        Some(Db::at(url, admin))
    }

    /// A separate database at this URL.
    pub fn at_address(url: String) -> Db {
        Db::at(url, String::new())
    }

    fn at(url: String, admin: String) -> Db {
        let folder = tempfile::tempdir().unwrap();
        Db { data: folder.path().to_path_buf(), folder, url, admin }
    }

    /// The same without any tables: for tests of migrations, and of a store with tables of its own.
    pub fn emptied(self) -> Db {
        if self.admin.is_empty() {
            std::fs::remove_file(self.data.join("kantoor.db")).unwrap();
        } else {
            execute(&self.admin, &format!("DROP DATABASE {}", self.name()));
            execute(&self.admin, &format!("CREATE DATABASE {}", self.name()));
        }
        self
    }

    /// Returns its name in PostgreSQL.
    pub fn name(&self) -> String {
        let name = self.url.rsplit('/').next().and_then(|rest| rest.split('?').next());
        name.unwrap_or_default().to_string()
    }

    /// Returns the settings for it.
    pub fn config(&self) -> Config {
        let flags = [
            ("data", self.data.to_str().unwrap()),
            ("database_url", &self.url),
            ("database_writers", "2"),
            ("rate_limit_per_minute", "0"),
            ("trigger_limit_per_minute", "0"),
            ("quota_endpoints_per_host", "0"),
            // The program that typesets and reads is not the one that runs the tests.
            ("typeset_apart", "false"),
            ("read_apart", "false"),
            // Nothing listens there; a test of domains has its own.
            ("dns_server", "127.0.0.1:9"),
        ];
        let flags: Vec<_> = flags.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
        Config::load(None, std::iter::empty(), &flags).unwrap()
    }
}

impl Drop for Db {
    fn drop(&mut self) {
        if !self.admin.is_empty() {
            execute(&self.admin, &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name()));
        }
    }
}

/// Returns the URL of the PostgreSQL server of the tests, or `None` if it is to be skipped.
fn postgres_server() -> Option<String> {
    let admin = std::env::var("KANTOOR_TEST_POSTGRES")
        .unwrap_or_else(|_| panic!("these tests need a PostgreSQL: run ./check, or scripts/with-postgres cargo test"));
    if admin == "skip" {
        eprintln!("skipped: KANTOOR_TEST_POSTGRES=skip");
        return None;
    }
    Some(admin)
}

/// Runs a statement on PostgreSQL, outside the program under test.
pub fn execute(url: &str, sql: &str) {
    let mut client = postgres::Client::connect(url, postgres::NoTls).unwrap();
    client.batch_execute(sql).unwrap();
}

/// A server in this process.
pub struct Server {
    pub app: Arc<App>,
    office: Office,
    runtime: tokio::runtime::Runtime,
    /// Last, so that it is dropped last.
    _db: Db,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.office.close();
    }
}

/// What a test asks of the server besides HTTP.
impl std::ops::Deref for Server {
    type Target = Office;

    fn deref(&self) -> &Office {
        &self.office
    }
}

impl Server {
    pub fn start(db: Db) -> Server {
        Server::with(db, |_| {})
    }

    pub fn with(db: Db, change: impl FnOnce(&mut Config)) -> Server {
        Server::listening(db, listener(), change)
    }

    /// Starts a server at a URL that browsers trust as they trust HTTPS.
    pub fn on_localhost(db: Db) -> Server {
        let listener = listener();
        let port = listener.local_addr().unwrap().port();
        Server::listening(db, listener, |config| config.public_url = format!("http://localhost:{port}"))
    }

    fn listening(db: Db, listener: TcpListener, change: impl FnOnce(&mut Config)) -> Server {
        let mut config = db.config();
        change(&mut config);
        let app = kantoor::opening::open(config).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let address = serve(&runtime, &app, listener);
        Server { office: Office::own(app.clone(), address, runtime.handle()), app, runtime, _db: db }
    }

    /// Starts a second node on the same database.
    pub fn another_node(&self, config: Config) -> SocketAddr {
        serve(&self.runtime, &kantoor::opening::open(config).unwrap(), listener())
    }

    /// Executes a statement that changes sessions, links or jobs, as the program would: with their marks.
    pub fn rewrite(&self, sql: &str) {
        self.execute(sql);
        let vault = &self.app.site.vault;
        kantoor::people::entrances::sign_all(&self.app, vault, true).unwrap();
        engine::jobs::marks::sign_all(&self.app.store, vault, true).unwrap();
    }

    /// Returns the value of a metric, with its labels if any.
    #[track_caller]
    pub fn metric(&self, name: &str) -> u64 {
        let text = self.block_on(engine::http::metrics::text(&self.app));
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        value.unwrap_or_else(|| panic!("no {name} in\n{text}"))
    }

    /// Does the due work of an account.
    pub fn pass_days(&self, account: accounts::Account) {
        let app = self.app.clone();
        let passed = self.apart(move || kantoor::calendar::days::bring_up_to_date(&app, &app.acting(account, "days")));
        self.runtime.block_on(passed).unwrap().unwrap();
    }

    /// Starts blocking work, as a worker would.
    pub fn apart<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> tokio::task::JoinHandle<T> {
        self.runtime.spawn_blocking(work)
    }

    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }
}

fn listener() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    listener
}

fn serve(runtime: &tokio::runtime::Runtime, app: &Arc<App>, listener: TcpListener) -> SocketAddr {
    let listener = runtime.block_on(async { tokio::net::TcpListener::from_std(listener) }).unwrap();
    let address = listener.local_addr().unwrap();
    app.site.serves_at(&address.to_string());
    runtime.spawn(server::serve(app.clone(), listener, std::future::pending()));
    address
}

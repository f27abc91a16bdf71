//! A server in this process on a fresh database, and a client that speaks HTTP to it.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use engine::accounts::{self, NewKey};
use engine::app::App;
use engine::clock::Moment;
use engine::config::Config;
use engine::http::server;
use kantoor::keys::operator;
use serde_json::Value;

use crate::template;

/// Runs each listed test on SQLite and on PostgreSQL. A function that is not listed is dead code, which the lints
/// report.
#[macro_export]
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        $( mod $name {
            #[test]
            fn sqlite() {
                super::$name($crate::support::Db::sqlite());
            }
            #[test]
            fn postgres() {
                if let Some(db) = $crate::support::Db::postgres() {
                    super::$name(db);
                }
            }
        } )+
    };
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
        let admin = std::env::var("KANTOOR_TEST_POSTGRES").unwrap_or_else(|_| {
            panic!("these tests need a PostgreSQL: run ./check, or scripts/with-postgres cargo test")
        });
        if admin == "skip" {
            eprintln!("skipped: KANTOOR_TEST_POSTGRES=skip");
            return None;
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("t{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        execute(&admin, &format!("CREATE DATABASE {name} TEMPLATE {}", template::postgres(&admin)));
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

/// Runs a statement on PostgreSQL, outside the program under test.
pub fn execute(url: &str, sql: &str) {
    let mut client = postgres::Client::connect(url, postgres::NoTls).unwrap();
    client.batch_execute(sql).unwrap();
}

/// A server in this process.
pub struct Server {
    pub app: Arc<App>,
    pub address: SocketAddr,
    runtime: tokio::runtime::Runtime,
    leaves_jobs: AtomicBool,
    /// Last, so that it is dropped last.
    _db: Db,
}

/// A test that ends with a job that failed, was parked or is still running has not seen its outcome.
impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() || self.leaves_jobs.load(Ordering::Relaxed) {
            return;
        }
        let started = std::time::Instant::now();
        loop {
            let left = self.jobs_left();
            // Workers of the server may be running one.
            if left.iter().any(|job| job.contains("running")) && started.elapsed() < Duration::from_secs(10) {
                std::thread::sleep(Duration::from_millis(50));
                continue;
            }
            assert!(left.is_empty(), "the test leaves jobs behind; see `Server::leaves_jobs`: {left:#?}");
            return;
        }
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
        Server { app, address, runtime, leaves_jobs: AtomicBool::new(false), _db: db }
    }

    /// Starts a second node on the same database.
    pub fn another_node(&self, config: Config) -> SocketAddr {
        serve(&self.runtime, &kantoor::opening::open(config).unwrap(), listener())
    }

    /// A client of a new account with full access, whose clock stands still at noon of 4 May 2026.
    pub fn client(&self) -> Client {
        let clock = Moment::parse("2026-05-04T10:00:00Z");
        let client = self.recorded_client(clock);
        // These tests have receivers of their own.
        self.execute(&format!("UPDATE settings SET outside = 'live' WHERE account_id = {}", client.account));
        client
    }

    /// A client of a new account that sends nothing.
    pub fn recorded_client(&self, clock: Option<Moment>) -> Client {
        let (account, key) = kantoor::opening::create_account(&self.app, "Test", clock).unwrap();
        Client::new(self.address, key, account.number)
    }

    /// Executes a statement on the database.
    pub fn execute(&self, sql: &str) {
        let sql = sql.to_string();
        self.app.store.write_now(0, move |tx| tx.execute(&sql, &[]).map(drop)).unwrap();
    }

    /// Executes a statement that changes sessions, links or jobs, as the program would: with their marks.
    pub fn rewrite(&self, sql: &str) {
        self.execute(sql);
        let vault = &self.app.site.vault;
        kantoor::people::entrances::sign_all(&self.app, vault, true).unwrap();
        engine::jobs::marks::sign_all(&self.app.store, vault, true).unwrap();
    }

    /// Declares that unsuccessful jobs are part of this test.
    pub fn leaves_jobs(&self) {
        self.leaves_jobs.store(true, Ordering::Relaxed);
    }

    /// Returns the jobs that were started and did not succeed; none if the database is unavailable.
    pub fn jobs_left(&self) -> Vec<String> {
        let sql = "SELECT kind, state, last_error FROM jobs WHERE state IN ('running', 'failed', 'parked') ORDER BY id";
        let read = move |tx: &mut store::Tx| {
            tx.all(sql, &[], |row| {
                Ok::<_, store::Error>(format!("{} is {}: {}", row.text(0)?, row.text(1)?, row.text(2)?))
            })
        };
        self.app.store.read_now(read).unwrap_or_default()
    }

    /// Returns the names of the account's events since `seq`, in order.
    pub fn events(&self, client: &Client, seq: i64) -> Vec<String> {
        let account = client.account;
        let sql = "SELECT type FROM log WHERE account_id = $1 AND seq > $2 ORDER BY seq";
        let read = move |tx: &mut store::Tx| {
            tx.all(sql, &[account.into(), seq.into()], |row| Ok::<_, store::Error>(row.text(0)?.to_string()))
        };
        self.app.store.read_now(read).unwrap()
    }

    /// Returns the last sequence number of the account's log.
    pub fn last_seq(&self, client: &Client) -> i64 {
        let account = client.account;
        let read =
            move |tx: &mut store::Tx| tx.int("SELECT max(seq) FROM log WHERE account_id = $1", &[account.into()]);
        self.app.store.read_now(read).unwrap()
    }

    /// Returns the value of a metric, with its labels if any.
    #[track_caller]
    pub fn metric(&self, name: &str) -> u64 {
        let text = self.block_on(engine::http::metrics::text(&self.app));
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        value.unwrap_or_else(|| panic!("no {name} in\n{text}"))
    }

    /// Creates a key of the same account with these scopes.
    pub fn with_scopes(&self, client: &Client, scopes: &[&str]) -> Client {
        let new = NewKey {
            name: "scoped".into(),
            scopes: scopes.iter().map(ToString::to_string).collect(),
            expires_at: None,
        };
        let (secret, _) = self.add_key(client, new);
        Client::new(self.address, secret, client.account)
    }

    /// Creates a key of the same account; returns the secret and its id.
    pub fn add_key(&self, client: &Client, new: NewKey) -> (String, String) {
        let secret = accounts::new_secret().unwrap();
        let number = client.account;
        let account = self.app.store.read_now(move |tx| accounts::Account::numbered(tx, number)).unwrap();
        let id = operator::create(&self.app, account, &secret, &new, &[]).unwrap();
        (secret, id)
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

/// An HTTP client with a key.
#[derive(Clone)]
pub struct Client {
    pub key: String,
    pub account: i64,
    pub base: String,
    pub agent: ureq::Agent,
}

/// A response.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: ureq::http::HeaderMap,
    pub text: String,
    pub bytes: Vec<u8>,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn data(&self) -> Value {
        self.json()["data"].clone()
    }

    pub fn id(&self) -> String {
        let data = self.data();
        let last = self.header("location").rsplit('/').next().filter(|id| !id.is_empty());
        data["id"].as_str().or(last).unwrap_or_else(|| panic!("no id: {self:?}")).to_string()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Returns the error code.
    pub fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_string()
    }

    /// Returns `field: code` of each field error, in order.
    pub fn faults(&self) -> Vec<String> {
        let details = self.json()["error"]["details"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        details.iter().map(|fault| format!("{}: {}", text(&fault["field"]), text(&fault["code"]))).collect()
    }

    /// Returns the response, if it has this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Reply {
        assert_eq!(self.status, status, "{self:?}");
        self
    }
}

impl Client {
    pub fn new(address: SocketAddr, key: String, account: i64) -> Client {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            .timeout_global(Some(Duration::from_secs(60)))
            .build();
        Client { key, account, base: format!("http://{address}"), agent: config.into() }
    }

    pub fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], "")
    }

    pub fn post(&self, path: &str, body: Value) -> Reply {
        self.send("POST", path, &[], &body.to_string())
    }

    pub fn patch(&self, path: &str, body: Value) -> Reply {
        self.send("PATCH", path, &[], &body.to_string())
    }

    pub fn delete(&self, path: &str) -> Reply {
        self.send("DELETE", path, &[], "")
    }

    /// Uploads a file.
    pub fn upload(&self, name: &str, content: &[u8]) -> Reply {
        self.upload_with(&[], name, content)
    }

    /// Uploads a file with headers.
    pub fn upload_with(&self, headers: &[(&str, &str)], name: &str, content: &[u8]) -> Reply {
        let (kind, body) = multipart(&[("file", Some(name), content)]);
        let mut all = vec![("content-type", kind.as_str())];
        all.extend(headers);
        self.try_send_bytes("POST", "/v1/files", &all, body).unwrap_or_else(|error| panic!("upload: {error}"))
    }

    /// An action without a body.
    pub fn act(&self, path: &str) -> Reply {
        self.send("POST", path, &[], "")
    }

    /// Sends any request. A given header replaces the default one; an empty value removes it.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        self.try_send(method, path, headers, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    pub fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Reply, ureq::Error> {
        self.try_send_bytes(method, path, headers, body.as_bytes().to_vec())
    }

    pub fn try_send_bytes(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<Reply, ureq::Error> {
        let mut request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.base));
        let bearer = format!("Bearer {}", self.key);
        let usual = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        let given = |name: &str| headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        for (name, value) in usual.iter().filter(|(name, _)| !given(name)).chain(headers) {
            if !value.is_empty() {
                request = request.header(*name, *value);
            }
        }
        let mut response = self.agent.run(request.body(body).unwrap())?;
        let bytes = response.body_mut().with_config().limit(64 * 1024 * 1024).read_to_vec()?;
        Ok(Reply {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: String::from_utf8_lossy(&bytes).to_string(),
            bytes,
        })
    }
}

/// Returns the content type and the bytes of a multipart body: name, file name and content of each part.
pub fn multipart(parts: &[(&str, Option<&str>, &[u8])]) -> (String, Vec<u8>) {
    let mut body = Vec::new();
    for (name, file_name, content) in parts {
        let file_name = file_name.map(|name| format!("; filename=\"{name}\"")).unwrap_or_default();
        let head = format!("--bOuNdArY\r\nContent-Disposition: form-data; name=\"{name}\"{file_name}\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--bOuNdArY--\r\n");
    ("multipart/form-data; boundary=bOuNdArY".to_string(), body)
}

//! What tests ask of a server besides HTTP: accounts and keys, and a look at its database.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use engine::accounts::{self, NewKey};
use engine::app::App;
use engine::clock::Moment;
use kantoor::automation::worker;
use kantoor::keys::operator;
use tokio::runtime::Handle;

use super::Client;
use super::shared::Line;

/// The way to a server: its own, or the one that all tests share.
pub struct Office {
    pub address: SocketAddr,
    way: Way,
    /// The accounts that the test opened.
    accounts: Mutex<Vec<i64>>,
    leaves_jobs: AtomicBool,
}

enum Way {
    Own(Arc<App>, Handle),
    Shared(Line),
}

impl Office {
    pub fn own(app: Arc<App>, address: SocketAddr, runtime: &Handle) -> Office {
        Office::at(address, Way::Own(app, runtime.clone()))
    }

    pub fn shared(address: SocketAddr, line: Line) -> Office {
        Office::at(address, Way::Shared(line))
    }

    fn at(address: SocketAddr, way: Way) -> Office {
        Office { address, way, accounts: Mutex::default(), leaves_jobs: AtomicBool::new(false) }
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
        let (account, key) = match &self.way {
            Way::Own(app, _) => open_account(app, clock),
            Way::Shared(line) => line.open_account(clock),
        };
        self.accounts.lock().unwrap().push(account);
        Client::new(self.address, key, account)
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
        match &self.way {
            Way::Own(app, _) => add_key(app, client.account, &new),
            Way::Shared(line) => line.add_key(client.account, &new),
        }
    }

    /// Does the due work of the account's flows, as a worker would.
    pub fn automate(&self, client: &Client) {
        match &self.way {
            Way::Own(app, runtime) => automate(app, runtime, client.account),
            Way::Shared(line) => line.automate(client.account),
        }
    }

    /// Returns the time of the machine.
    #[expect(clippy::disallowed_methods, reason = "as the server does without a test clock")]
    pub fn now(&self) -> Moment {
        Moment(jiff::Timestamp::now().as_millisecond())
    }

    /// Executes a statement on the database.
    pub fn execute(&self, sql: &str) {
        match &self.way {
            Way::Own(app, _) => execute(app, sql),
            Way::Shared(line) => line.execute(sql),
        }
    }

    /// Returns the rows of a query whose columns are texts.
    pub fn texts(&self, sql: &str) -> Vec<Vec<String>> {
        match &self.way {
            Way::Own(app, _) => texts(app, sql).unwrap(),
            Way::Shared(line) => line.texts(sql),
        }
    }

    /// Returns the names of the account's events since `seq`, in order.
    pub fn events(&self, client: &Client, seq: i64) -> Vec<String> {
        let sql = format!("SELECT type FROM log WHERE account_id = {} AND seq > {seq} ORDER BY seq", client.account);
        self.texts(&sql).into_iter().flatten().collect()
    }

    /// Returns the last sequence number of the account's log.
    pub fn last_seq(&self, client: &Client) -> i64 {
        let sql = format!("SELECT CAST(max(seq) AS TEXT) FROM log WHERE account_id = {}", client.account);
        self.texts(&sql)[0][0].parse().unwrap()
    }

    /// Declares that unsuccessful jobs are part of this test.
    pub fn leaves_jobs(&self) {
        self.leaves_jobs.store(true, Ordering::Relaxed);
    }

    /// Returns the jobs that were started and did not succeed; none if the database is unavailable. On the shared server,
    /// those of the accounts of this test.
    pub fn jobs_left(&self) -> Vec<String> {
        let sql = |which: &str| {
            format!(
                "SELECT kind, state, last_error FROM jobs WHERE state IN ('running', 'failed', 'parked'){which} ORDER BY id"
            )
        };
        let rows = match &self.way {
            Way::Own(app, _) => texts(app, &sql("")).unwrap_or_default(),
            Way::Shared(line) => {
                let accounts: Vec<_> = self.accounts.lock().unwrap().iter().map(i64::to_string).collect();
                if accounts.is_empty() {
                    Vec::new()
                } else {
                    line.texts(&sql(&format!(" AND account_id IN ({})", accounts.join(", "))))
                }
            }
        };
        rows.iter().map(|row| format!("{} is {}: {}", row[0], row[1], row[2])).collect()
    }

    /// A test that ends with a job that failed, was parked or is still running has not seen its outcome.
    pub fn close(&self) {
        if std::thread::panicking() || self.leaves_jobs.load(Ordering::Relaxed) {
            return;
        }
        let started = Instant::now();
        loop {
            let left = self.jobs_left();
            // Workers of the server may be running one.
            if left.iter().any(|job| job.contains("running")) && started.elapsed() < Duration::from_secs(10) {
                std::thread::sleep(Duration::from_millis(50));
                continue;
            }
            assert!(left.is_empty(), "the test leaves jobs behind; see `Office::leaves_jobs`: {left:#?}");
            return;
        }
    }
}

pub(super) fn open_account(app: &App, clock: Option<Moment>) -> (i64, String) {
    let (account, key) = kantoor::opening::create_account(app, "Test", clock).unwrap();
    (account.number, key)
}

pub(super) fn add_key(app: &App, number: i64, new: &NewKey) -> (String, String) {
    let secret = accounts::new_secret().unwrap();
    let account = app.store.read_now(move |tx| accounts::Account::numbered(tx, number)).unwrap();
    let id = operator::create(app, account, &secret, new, &[]).unwrap();
    (secret, id)
}

pub(super) fn automate(app: &Arc<App>, runtime: &Handle, number: i64) {
    let app = app.clone();
    let work = move || {
        let account = app.store.read_now(move |tx| accounts::Account::numbered(tx, number))?;
        (worker::DUE.follow)(&app, &app.acting(account, "automation"))
    };
    runtime.block_on(runtime.spawn_blocking(work)).unwrap().unwrap();
}

pub(super) fn execute(app: &App, sql: &str) {
    let sql = sql.to_string();
    app.store.write_now(0, move |tx| tx.execute(&sql, &[]).map(drop)).unwrap();
}

pub(super) fn texts(app: &App, sql: &str) -> store::Result<Vec<Vec<String>>> {
    let sql = sql.to_string();
    app.store.read_now(move |tx| {
        let texts = |row: &store::Row| (0..).map_while(|column| row.text(column).ok().map(str::to_string)).collect();
        tx.all(&sql, &[], |row| Ok::<Vec<String>, store::Error>(texts(row)))
    })
}

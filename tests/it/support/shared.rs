//! One server per database that all tests share which need nothing but an account of their own: accounts cannot see each other.
//!
//! The first test that asks for it starts it, as a process of its own, and writes its addresses to a file. It ends when the
//! run of the tests does.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::{CommandExt, parent_id};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use engine::accounts::NewKey;
use engine::app::App;
use engine::clock::Moment;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::office::{self, Office};
use super::{Db, Given, Server, postgres_server};

/// A place on the shared server: what a test opens there is its own.
pub struct Shared(Office);

impl Given for Shared {
    fn sqlite() -> Shared {
        Shared::on("sqlite")
    }

    fn postgres() -> Option<Shared> {
        postgres_server()?;
        Some(Shared::on("postgres"))
    }
}

impl Shared {
    fn on(database: &str) -> Shared {
        kantoor::registry::install();
        let running = find(database);
        Shared(Office::shared(running.address, Line(running.control)))
    }
}

impl std::ops::Deref for Shared {
    type Target = Office;

    fn deref(&self) -> &Office {
        &self.0
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// What the file of a shared server says.
#[derive(Serialize, Deserialize)]
struct Running {
    address: SocketAddr,
    control: SocketAddr,
}

/// Returns the shared server of this run, which the first test starts while the others wait.
#[expect(clippy::zombie_processes, reason = "it outlives the test")]
fn find(database: &str) -> Running {
    let file = folder().join(format!("{database}.json"));
    let read = || serde_json::from_slice(&std::fs::read(&file).ok()?).ok();
    if let Some(running) = read() {
        return running;
    }
    let turn = File::create(folder().join(format!("{database}.turn"))).unwrap();
    turn.lock().unwrap();
    if let Some(running) = read() {
        return running;
    }
    let log = File::create(folder().join(format!("{database}.log"))).unwrap();
    let mut started = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "support::shared::serve", "--nocapture"])
        .env(DATABASE, database)
        .env(RUN, parent_id().to_string())
        // The run waits for whoever holds its pipes, and ends the group of a test with the test.
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .process_group(0)
        .spawn()
        .unwrap();
    loop {
        if let Some(running) = read() {
            return running;
        }
        assert!(started.try_wait().unwrap().is_none(), "the shared server ended; see {}", folder().display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

const DATABASE: &str = "KANTOOR_SHARED_DATABASE";
const RUN: &str = "KANTOOR_SHARED_RUN";

/// The folder of this run of the tests: the process that started all of them.
fn folder() -> PathBuf {
    let run = std::env::var(RUN).unwrap_or_else(|_| parent_id().to_string());
    // A process may have the number of an earlier one, but not its start, the 20th field after the name.
    let stat = std::fs::read_to_string(format!("/proc/{run}/stat")).unwrap_or_default();
    let started = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(19)).unwrap_or_default();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("shared-{run}-{started}"));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The shared server itself; as a test, it does nothing.
#[test]
#[ignore = "the server that the tests share"]
fn serve() {
    let Ok(database) = std::env::var(DATABASE) else { return };
    let db = if database == "sqlite" { Db::sqlite() } else { Db::postgres().unwrap() };
    let server = Server::start(db);
    server.leaves_jobs();
    let control = TcpListener::bind("127.0.0.1:0").unwrap();
    let running = Running { address: server.address, control: control.local_addr().unwrap() };
    let (app, runtime) = (server.app.clone(), server.runtime.handle().clone());
    std::thread::spawn(move || {
        for caller in control.incoming() {
            let (app, runtime) = (app.clone(), runtime.clone());
            std::thread::spawn(move || serve_line(&app, &runtime, caller.unwrap()));
        }
    });
    let unfinished = folder().join(format!("{database}.unfinished"));
    std::fs::write(&unfinished, serde_json::to_vec(&running).unwrap()).unwrap();
    std::fs::rename(unfinished, folder().join(format!("{database}.json"))).unwrap();
    wait_for_the_end();
    std::fs::remove_dir_all(folder()).unwrap();
}

/// Waits until the run has ended.
fn wait_for_the_end() {
    let run = std::env::var(RUN).unwrap().parse().ok().and_then(rustix::process::Pid::from_raw).unwrap();
    while rustix::process::test_kill_process(run).is_ok() {
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// The line to the shared server for what has no route: a request and an answer per connection.
pub struct Line(SocketAddr);

#[derive(Serialize, Deserialize)]
enum Request {
    OpenAccount { clock: Option<i64> },
    AddKey { account: i64, name: String, scopes: Vec<String>, expires_at: Option<i64> },
    Automate { account: i64 },
    Execute { sql: String },
    Texts { sql: String },
}

impl Line {
    pub fn open_account(&self, clock: Option<Moment>) -> (i64, String) {
        self.ask(&Request::OpenAccount { clock: clock.map(|moment| moment.0) })
    }

    pub fn add_key(&self, account: i64, new: &NewKey) -> (String, String) {
        let expires_at = new.expires_at.map(|moment| moment.0);
        self.ask(&Request::AddKey { account, name: new.name.clone(), scopes: new.scopes.clone(), expires_at })
    }

    pub fn automate(&self, account: i64) {
        self.ask(&Request::Automate { account })
    }

    pub fn execute(&self, sql: &str) {
        self.ask(&Request::Execute { sql: sql.to_string() })
    }

    pub fn texts(&self, sql: &str) -> Vec<Vec<String>> {
        self.ask(&Request::Texts { sql: sql.to_string() })
    }

    fn ask<T: serde::de::DeserializeOwned>(&self, request: &Request) -> T {
        let mut stream = TcpStream::connect(self.0).unwrap();
        writeln!(stream, "{}", serde_json::to_string(request).unwrap()).unwrap();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        let answer: Result<T, String> = serde_json::from_str(&answer).unwrap();
        answer.unwrap_or_else(|error| panic!("the shared server says: {error}"))
    }
}

/// Answers a request; the test that asked fails with what went wrong here.
fn serve_line(app: &Arc<App>, runtime: &Handle, mut stream: TcpStream) {
    let mut line = String::new();
    BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
    let request: Request = serde_json::from_str(&line).unwrap();
    let answer = catch_unwind(AssertUnwindSafe(|| answer(app, runtime, request)))
        .map_err(|panic| panic.downcast_ref::<String>().cloned().unwrap_or_else(|| format!("a panic at {line}")));
    writeln!(stream, "{}", json!(answer)).unwrap();
}

fn answer(app: &Arc<App>, runtime: &Handle, request: Request) -> Value {
    match request {
        Request::OpenAccount { clock } => json!(office::open_account(app, clock.map(Moment))),
        Request::AddKey { account, name, scopes, expires_at } => {
            json!(office::add_key(app, account, &NewKey { name, scopes, expires_at: expires_at.map(Moment) }))
        }
        Request::Automate { account } => json!(office::automate(app, runtime, account)),
        Request::Execute { sql } => json!(office::execute(app, &sql)),
        Request::Texts { sql } => json!(office::texts(app, &sql).unwrap()),
    }
}

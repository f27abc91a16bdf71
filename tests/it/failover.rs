//! A PostgreSQL primary with a synchronous standby is killed and replaced by it, repeatedly, while invoices are
//! created: every acknowledged invoice exists once, with its number.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use engine::open::open_store;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use store::Tx;

use crate::proxy::Proxy;
use crate::support::{Client, Db, Server, execute};

/// The number of failovers, unless `KANTOOR_TEST_FAILOVERS` sets it: one of each kind.
const ROUNDS: usize = 4;

/// Waits for a condition on the other side.
#[track_caller]
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_secs(90), "{what}: it does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A PostgreSQL server.
pub struct Node {
    folder: PathBuf,
    pub port: u16,
}

impl Node {
    pub fn url(&self) -> String {
        format!("postgres://kantoor@127.0.0.1:{}/postgres", self.port)
    }

    /// Returns the integer result of a query.
    pub fn ask(&self, sql: &str) -> i64 {
        let asked =
            postgres::Client::connect(&self.url(), postgres::NoTls).and_then(|mut client| client.query_one(sql, &[]));
        asked.map_or(-1, |row| row.get(0))
    }

    /// Simulates a power failure: all of its processes stop.
    fn kill(&self) {
        let text = std::fs::read_to_string(self.folder.join("postmaster.pid")).unwrap();
        let first: u32 = text.lines().next().unwrap().parse().unwrap();
        // While it is stopped it starts no new process.
        send(first, Signal::STOP);
        for child in children(first) {
            send(child, Signal::KILL);
        }
        send(first, Signal::KILL);
    }
}

fn send(process: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    let _ = kill_process(pid, signal);
}

fn children(parent: u32) -> Vec<u32> {
    let of = |process: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    let all = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    all.filter(|process| of(*process) == Some(parent)).collect()
}

/// A primary and its standby, with a proxy between them.
pub struct Pair {
    programs: PathBuf,
    /// The user that runs PostgreSQL when we are root.
    owner: Option<String>,
    pub primary: Node,
    pub standby: Node,
    pub between: Proxy,
    made: usize,
    /// Last, so that it is dropped last.
    folder: tempfile::TempDir,
}

impl Pair {
    /// Returns `None` where PostgreSQL is not installed.
    pub fn start() -> Option<Pair> {
        let Some(programs) = std::env::var_os("KANTOOR_TEST_POSTGRES_BIN") else {
            eprintln!("skipped: KANTOOR_TEST_POSTGRES_BIN names no folder with initdb and pg_basebackup");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("kantoor-pair").tempdir_in("/tmp").unwrap();
        let owner = rustix::process::getuid().is_root().then(|| {
            let known = Command::new("id").arg("postgres").output().unwrap().status.success();
            if known { "postgres" } else { "nobody" }.to_string()
        });
        if let Some(owner) = &owner {
            assert!(Command::new("chown").arg(owner).arg(folder.path()).status().unwrap().success());
        }
        let (none, between) = (|| Node { folder: PathBuf::new(), port: 0 }, Proxy::to(0));
        let mut pair =
            Pair { programs: programs.into(), owner, primary: none(), standby: none(), between, made: 0, folder };
        let first = pair.place();
        pair.run("initdb", &["-U", "kantoor", "--auth=trust", "--encoding=UTF8", "--no-sync", "-D"], &first.folder);
        let settings = "listen_addresses = '127.0.0.1'\nunix_socket_directories = ''\nmax_connections = 60\n\
            shared_buffers = 16MB\nfsync = on\nsynchronous_commit = on\nwal_keep_size = 64MB\n\
            wal_retrieve_retry_interval = 100\nautovacuum = off\n";
        append(&first.folder.join("postgresql.conf"), settings);
        pair.start_node(&first);
        pair.primary = first;
        pair.add_standby();
        Some(pair)
    }

    /// Returns the folder of the next server.
    fn place(&mut self) -> Node {
        self.made += 1;
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Node { folder: self.folder.path().join(self.made.to_string()), port }
    }

    #[track_caller]
    fn run(&self, program: &str, arguments: &[&str], folder: &Path) {
        let path = self.programs.join(program);
        let mut command = match &self.owner {
            Some(owner) => {
                let mut command = Command::new("setpriv");
                command.args([&format!("--reuid={owner}"), "--clear-groups"]).arg(path);
                command
            }
            None => Command::new(path),
        };
        // The output goes to a file: a running server would keep a pipe open.
        let log = self.folder.path().join("said");
        let file = std::fs::File::options().create(true).append(true).open(&log).unwrap();
        command.current_dir(self.folder.path()).args(arguments).arg(folder);
        let done = command.stdout(file.try_clone().unwrap()).stderr(file).status().unwrap();
        assert!(done.success(), "{program}: {}", std::fs::read_to_string(&log).unwrap());
    }

    fn start_node(&self, node: &Node) {
        let log = node.folder.join("log");
        let port = format!("-p {}", node.port);
        self.run(
            "pg_ctl",
            &["start", "-w", "-t", "60", "-s", "-o", &port, "-l", log.to_str().unwrap(), "-D"],
            &node.folder,
        );
    }

    /// Gives the primary a new standby, and waits for it with every commit from then on.
    fn add_standby(&mut self) {
        self.between.lead_to(self.primary.port);
        let standby = self.place();
        let port = self.between.port.to_string();
        let from = ["-h", "127.0.0.1", "-p", &port, "-U", "kantoor", "-R", "-c", "fast", "--no-sync", "-D"];
        self.run("pg_basebackup", &from, &standby.folder);
        // Until it has its own standby.
        append(&standby.folder.join("postgresql.auto.conf"), "synchronous_standby_names = ''\n");
        self.start_node(&standby);
        self.standby = standby;
        execute(&self.primary.url(), "ALTER SYSTEM SET synchronous_standby_names = '*'");
        execute(&self.primary.url(), "SELECT pg_reload_conf()");
        let synced = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'";
        until("a standby", || self.primary.ask(synced) == 1);
    }

    /// The standby replaces the lost primary.
    fn fail_over(&mut self) {
        self.between.cut();
        self.run("pg_ctl", &["promote", "-w", "-t", "60", "-s", "-D"], &self.standby.folder);
        let none = Node { folder: PathBuf::new(), port: 0 };
        self.primary = std::mem::replace(&mut self.standby, none);
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for node in [&self.primary, &self.standby] {
            if node.folder.join("postmaster.pid").exists() {
                node.kill();
            }
        }
    }
}

pub fn append(file: &Path, text: &str) {
    let old = std::fs::read_to_string(file).unwrap();
    std::fs::write(file, old + text).unwrap();
}

/// The responses about the invoices of an account, by title.
#[derive(Default)]
struct Said {
    /// Id and number.
    acknowledged: HashMap<String, (String, String)>,
    /// Rejected: nothing was changed.
    refused: Vec<String>,
    unknown: usize,
}

/// Creates invoices one after the other until it is stopped.
fn make_invoices(client: &Client, name: &str, said: &Mutex<Said>, done: &AtomicUsize, stop: &AtomicBool) {
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let title = format!("{name}-{number}");
        let body = json!({"title": title, "generate": true, "rows": [{"name": "x", "unit_price": 1}]}).to_string();
        let reply = client.try_send("POST", "/v1/invoices", &[], &body);
        let mut said = said.lock().unwrap();
        match reply {
            Ok(reply) if reply.status == 201 => {
                let number = reply.data()["number"].as_str().unwrap().to_string();
                said.acknowledged.insert(title, (reply.id(), number));
                done.fetch_add(1, Ordering::Relaxed);
            }
            Ok(reply) if reply.status == 503 && reply.text.contains("nothing was changed") => said.refused.push(title),
            Ok(reply) if reply.status == 503 => said.unknown += 1,
            Ok(reply) => panic!("{reply:?}"),
            Err(_) => said.unknown += 1,
        }
        drop(said);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns how many were lost, and how many exist although they were rejected, or twice.
fn audit(client: &Client, said: &Said) -> (usize, usize) {
    let mut found: HashMap<String, Vec<(String, String)>> = HashMap::new();
    let mut numbers: Vec<usize> = Vec::new();
    for page in 1.. {
        let list = client.get(&format!("/v1/invoices?per_page=100&page={page}")).expect(200).data();
        let items = list.as_array().unwrap();
        if items.is_empty() {
            break;
        }
        for item in items {
            let text = |name: &str| item[name].as_str().unwrap().to_string();
            numbers.push(text("number").rsplit('-').next().unwrap().parse().unwrap());
            found.entry(text("title")).or_default().push((text("id"), text("number")));
        }
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=numbers.len()).collect::<Vec<_>>(), "a number is missing or given twice");
    let lost = said.acknowledged.iter().filter(|(title, own)| !found.get(*title).is_some_and(|all| all.contains(own)));
    let there = said.refused.iter().filter(|title| found.contains_key(*title)).count();
    (lost.count(), there + found.values().filter(|all| all.len() > 1).count())
}

/// What happens before the primary is killed.
fn prepare(round: usize, pair: &Pair) {
    const WAITING: &str = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    if round.is_multiple_of(4) {
        return;
    }
    // The standby is disconnected first: a commit then waits for it, on the primary only.
    pair.between.cut();
    until("a commit that waits", || pair.primary.ask(&format!("SELECT count(*) {WAITING}")) > 0);
    let end = match round % 4 {
        1 => return,
        // COMMIT then succeeds, with a warning.
        2 => "pg_cancel_backend",
        // The connection is lost; the transaction exists on the primary only.
        _ => "pg_terminate_backend",
    };
    pair.primary.ask(&format!("SELECT count({end}(pid)) {WAITING}"));
    // Gives the clients time to act on it.
    std::thread::sleep(Duration::from_millis(300));
}

/// Of two servers the one that accepts writes is used, whatever the order.
fn takes_the_primary(pair: &Pair) {
    let places = [pair.standby.port, pair.primary.port].map(|port| format!("127.0.0.1:{port}"));
    let db = Db::at_address(format!("postgres://kantoor@{}/postgres?sslmode=disable", places.join(",")));
    let store = open_store(&db.config()).unwrap();
    let standby = |tx: &mut Tx| tx.int("SELECT pg_is_in_recovery()::INT::BIGINT", &[]);
    assert_eq!((store.read_now(standby).unwrap(), store.write_now(0, standby).unwrap()), (0, 0));
}

#[test]
fn a_failover_loses_and_duplicates_nothing() {
    let rounds = std::env::var("KANTOOR_TEST_FAILOVERS").map_or(ROUNDS, |text| text.parse().unwrap());
    let Some(mut pair) = Pair::start() else { return };
    takes_the_primary(&pair);
    let way = Proxy::to(pair.primary.port);
    let db = Db::at_address(format!("postgres://kantoor@127.0.0.1:{}/postgres?sslmode=disable", way.port));
    let server = Server::start(db);
    let accounts: Vec<(Client, Mutex<Said>)> = (0..3).map(|_| (server.client(), Mutex::default())).collect();
    let (stop, done) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for (account, (client, said)) in accounts.iter().enumerate() {
            for thread in 0..2 {
                let (done, stop) = (&done, &stop);
                scope.spawn(move || make_invoices(client, &format!("{account}-{thread}"), said, done, stop));
            }
        }
        // A failure here must not leave the others running.
        let all = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for round in 0..rounds {
                let before = done.load(Ordering::Relaxed);
                until("load", || done.load(Ordering::Relaxed) > before + 15);
                prepare(round, &pair);
                pair.primary.kill();
                way.cut();
                pair.fail_over();
                way.lead_to(pair.primary.port);
                let before = done.load(Ordering::Relaxed);
                until("load after the failover", || done.load(Ordering::Relaxed) > before + 5);
                pair.add_standby();
            }
        }));
        stop.store(true, Ordering::Relaxed);
        if let Err(panic) = all {
            std::panic::resume_unwind(panic);
        }
    });
    let (mut acknowledged, mut refused, mut unknown, mut lost, mut doubled) = (0, 0, 0, 0, 0);
    for (client, said) in &accounts {
        let said = said.lock().unwrap();
        let (away, twice) = audit(client, &said);
        (lost, doubled) = (lost + away, doubled + twice);
        acknowledged += said.acknowledged.len();
        (refused, unknown) = (refused + said.refused.len(), unknown + said.unknown);
    }
    eprintln!(
        "{rounds} failovers: {acknowledged} acknowledged, {refused} refused, {unknown} unknown; {lost} lost, {doubled} doubled"
    );
    assert_eq!((lost, doubled), (0, 0), "of {acknowledged} acknowledged");
}

//! Parts of a cluster between the nodes and the primary: a pooler that gives each transaction another session, and a
//! standby that answers reads.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::cli::{complained, kantoor};
use crate::failover::{Pair, append, until};
use crate::proxy::Proxy;
use crate::support::{Client, Db, Server, execute};

/// PgBouncer in transaction mode, with fewer sessions than one node has connections.
struct Pooler {
    process: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Pooler {
    /// Returns `None` where PgBouncer is not installed.
    fn start(db: &Db) -> Option<Pooler> {
        let Some(program) =
            ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].into_iter().find(|path| std::path::Path::new(path).exists())
        else {
            assert!(std::env::var_os("CI").is_none(), "PgBouncer is not installed");
            eprintln!("skipped: PgBouncer is not installed");
            return None;
        };
        let config: postgres::Config = db.url.parse().unwrap();
        let postgres::config::Host::Tcp(host) = &config.get_hosts()[0] else { panic!("{config:?}") };
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = tempfile::Builder::new().prefix("kantoor-pooler").tempdir_in("/tmp").unwrap();
        let file = folder.path().join("pgbouncer.ini");
        let text = format!(
            "[databases]\n{name} = host={host} port={theirs} user={user}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 4\nserver_login_retry = 1\n\
             unix_socket_dir =\n",
            name = db.name(),
            theirs = config.get_ports()[0],
            user = config.get_user().unwrap(),
        );
        std::fs::write(&file, "").unwrap();
        append(&file, &text);
        let mut command = Command::new(program);
        if rustix::process::getuid().is_root() {
            // It does not run as root.
            let status = Command::new("chmod").args(["-R", "a+rX"]).arg(folder.path()).status().unwrap();
            assert!(status.success());
            command = Command::new("setpriv");
            command.args(["--reuid=nobody", "--clear-groups"]).arg(program);
        }
        let process = command.arg(&file).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("the pooler", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(Pooler { process, port, _folder: folder })
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Creates and finalizes invoices, and reads each; returns their numbers.
fn invoices(client: &Client, count: usize) -> Vec<String> {
    let rows = json!([{"name": "x", "unit_price": "12.50", "quantity": 2}]);
    (0..count)
        .map(|number| {
            let made = client.post("/v1/invoices", json!({"title": format!("{number}"), "rows": rows})).expect(201);
            client
                .patch(&format!("/v1/invoices/{}", made.id()), json!({"title": format!("Order {number}")}))
                .expect(200);
            client.act(&format!("/v1/invoices/{}/finalize", made.id())).expect(200);
            let read = client.get(&format!("/v1/invoices/{}", made.id())).expect(200).data();
            client.get("/v1/invoices?per_page=5&payment_status=open").expect(200);
            read["number"].as_str().unwrap().to_string()
        })
        .collect()
}

#[test]
fn nodes_share_the_sessions_of_a_pooler() {
    let Some(db) = Db::postgres() else { return };
    let Some(pooler) = Pooler::start(&db) else { return };
    let direct = db.url.clone();
    let name = db.name();
    let user = direct.split("//").nth(1).unwrap().split('@').next().unwrap().to_string();
    let url = format!("postgres://{user}@127.0.0.1:{}/{name}?sslmode=disable&pool_mode=transaction", pooler.port);
    let server = Server::with(db, |config| config.database_url = url.clone());
    let mut config = server.app.config.clone();
    config.database_url.clone_from(&url);
    let other = server.another_node(config);
    let one = server.client();
    let two = server.client();
    let elsewhere = Client::new(other, one.key.clone(), one.account);
    let mut numbers = std::thread::scope(|scope| {
        let threads = [&one, &elsewhere, &two].map(|client| scope.spawn(move || invoices(client, 8)));
        let [first, second, third] = threads.map(|thread| thread.join().unwrap());
        assert_eq!(third.len(), 8);
        [first, second].concat()
    });
    numbers.sort();
    numbers.dedup();
    assert_eq!(numbers.len(), 16, "{numbers:?}");
    let list = one.get("/v1/invoices?per_page=100").expect(200).data();
    assert_eq!(list.as_array().unwrap().len(), 16);
    let sessions =
        format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}' AND application_name = 'kantoor'");
    let mut client = postgres::Client::connect(&direct, postgres::NoTls).unwrap();
    let count: i64 = client.query_one(&sessions, &[]).unwrap().get(0);
    assert!((1..=4).contains(&count), "{count} sessions");
}

/// PostgreSQL disappears after a commit is in its log and before it is acknowledged: PgBouncer then sends an error of its own.
#[test]
fn a_commit_that_a_pooler_lost_is_looked_up() {
    let Some(pair) = Pair::start() else { return };
    let Some(pooler) = Pooler::start(&Db::at_address(pair.primary.url())) else { return };
    let url = format!("postgres://kantoor@127.0.0.1:{}/postgres?sslmode=disable&pool_mode=transaction", pooler.port);
    let server = Server::start(Db::at_address(url));
    let client = server.client();
    client.post("/v1/products", json!({"name": "First"})).expect(201);
    pair.between.silence(true);
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| client.post("/v1/products", json!({"name": "Once"})));
        let waits = "FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%COMMIT'";
        until("a commit that waits for the standby", || pair.primary.ask(&format!("SELECT count(*) {waits}")) > 0);
        let process = pair.primary.ask(&format!("SELECT min(pid)::BIGINT {waits}"));
        // All sessions end with it, and the server recovers from its log.
        let killed = Command::new("kill").args(["-9", &process.to_string()]).status().unwrap();
        assert!(killed.success());
        let alone = || {
            let mut session = postgres::Client::connect(&pair.primary.url(), postgres::NoTls)?;
            session.batch_execute("ALTER SYSTEM SET synchronous_standby_names = ''")?;
            session.batch_execute("SELECT pg_reload_conf()")
        };
        until("the server", || alone().is_ok());
        asked.join().unwrap().expect(201);
    });
    let names = client.get("/v1/products?search=Once").expect(200).data();
    assert_eq!(names.as_array().unwrap().len(), 1, "{names}");
}

#[test]
fn pg_dump_does_not_run_through_a_pooler() {
    let Some(db) = Db::postgres() else { return };
    let file = db.folder.path().join("backup");
    let backup = |mode: &str| {
        let url = format!("{}&pool_mode={mode}", db.url);
        kantoor(&db, &["backup", file.to_str().unwrap(), "--database-url", &url])
    };
    let refused = complained(&backup("transaction"));
    assert!(refused.contains("pg_dump does not work with pool_mode=transaction"), "{refused}");
    let refused = complained(&backup("statement"));
    assert!(refused.contains("pool_mode must be session or transaction, not 'statement'"), "{refused}");
    assert!(!file.exists());
}

/// Changes a record on one node and reads it on the other, again and again.
fn follows(writer: &Client, reader: &Client, path: &str, rounds: usize, what: &str) {
    for round in 0..rounds {
        let name = format!("{what} {round}");
        writer.patch(path, json!({"name": name})).expect(200);
        assert_eq!(reader.get(path).expect(200).data()["name"], json!(name), "{what}: round {round}");
    }
}

#[test]
fn reads_from_a_standby_see_every_acknowledged_write() {
    let Some(pair) = Pair::start() else { return };
    // Commits do not wait for the standby, so that it may be behind.
    execute(&pair.primary.url(), "ALTER SYSTEM SET synchronous_standby_names = ''");
    execute(&pair.primary.url(), "SELECT pg_reload_conf()");
    let way = Proxy::to(pair.standby.port);
    let db = Db::at_address(format!("{}?sslmode=disable", pair.primary.url()));
    let mut config = db.config();
    config.database_standby = format!("postgres://kantoor@127.0.0.1:{}/postgres?sslmode=disable", way.port);
    let standby = config.database_standby.clone();
    let server = Server::with(db, |own| own.database_standby = standby);
    let mut second = server.app.config.clone();
    second.database_standby.clear();
    let writer_address = server.another_node(second);
    let reader = server.client();
    let writer = Client::new(writer_address, reader.key.clone(), reader.account);
    let reads = || server.metric("kantoor_store_standby_reads_total");
    let missed = || server.metric("kantoor_store_standby_missed_total");
    let path = format!("/v1/products/{}", writer.post("/v1/products", json!({"name": "Chair"})).expect(201).id());

    follows(&writer, &reader, &path, 40, "streaming");
    until("reads from the standby", || {
        reader.get(&path).expect(200);
        reads() > 10
    });

    // It receives the log but does not replay it.
    execute(&pair.standby.url(), "SELECT pg_wal_replay_pause()");
    let before = missed();
    follows(&writer, &reader, &path, 10, "paused");
    assert!(missed() > before, "the primary answers for a standby that is behind");
    execute(&pair.standby.url(), "SELECT pg_wal_replay_resume()");
    let before = reads();
    until("reads from the standby again", || {
        reader.get(&path).expect(200);
        reads() > before
    });

    let doctor = || {
        let mut program = Command::new(env!("CARGO_BIN_EXE_kantoor"));
        program.env("KANTOOR_DATABASE_URL", &server.app.config.database_url);
        program.env("KANTOOR_DATABASE_STANDBY", &server.app.config.database_standby);
        let done = program.env("KANTOOR_DATA", &server.app.config.data).arg("doctor").output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    until("a standby that is not behind", || doctor().contains("The standby answers reads."));

    // It no longer receives the log: it may have been left behind by a failover.
    pair.between.cut();
    follows(&writer, &reader, &path, 10, "cut");
    assert!(doctor().contains("The standby does not answer reads, or is behind."), "{}", doctor());
    // It does not respond, and then it is gone.
    way.silence(true);
    follows(&writer, &reader, &path, 5, "silent");
    way.cut();
    follows(&writer, &reader, &path, 5, "gone");
}

#[test]
fn reads_from_a_standby_see_writes_that_are_not_on_disk_yet() {
    let Some(pair) = Pair::start() else { return };
    // Commits are acknowledged long before their log is on disk, and sent.
    for setting in ["synchronous_standby_names = ''", "synchronous_commit = off", "wal_writer_delay = '10s'"] {
        execute(&pair.primary.url(), &format!("ALTER SYSTEM SET {setting}"));
    }
    execute(&pair.primary.url(), "SELECT pg_reload_conf()");
    let db = Db::at_address(format!("{}?sslmode=disable", pair.primary.url()));
    let standby = format!("{}?sslmode=disable", pair.standby.url());
    let server = Server::with(db, |config| config.database_standby = standby);
    let client = server.client();
    let path = format!("/v1/products/{}", client.post("/v1/products", json!({"name": "Chair"})).expect(201).id());
    for round in 0..5 {
        // It rests for a second after a read that it was behind for.
        std::thread::sleep(Duration::from_millis(1100));
        follows(&client, &client, &path, 1, &format!("round {round}"));
    }
}

#[test]
fn concurrent_reads_from_a_standby_are_never_stale() {
    let Some(pair) = Pair::start() else { return };
    execute(&pair.primary.url(), "ALTER SYSTEM SET synchronous_standby_names = ''");
    execute(&pair.primary.url(), "SELECT pg_reload_conf()");
    let db = Db::at_address(format!("{}?sslmode=disable", pair.primary.url()));
    let standby = format!("{}?sslmode=disable", pair.standby.url());
    let server = Server::with(db, |config| config.database_standby = standby);
    let clients: Vec<Client> = (0..4).map(|_| server.client()).collect();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Load that keeps the log moving.
        for _ in 0..2 {
            scope.spawn(|| {
                let busy = server.client();
                while !stop.load(Ordering::Relaxed) {
                    busy.post("/v1/products", json!({"name": "x"})).expect(201);
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
        }
        let readers = clients.iter().map(|client| {
            scope.spawn(move || {
                let made = client.post("/v1/products", json!({"name": "Chair"})).expect(201).id();
                follows(client, client, &format!("/v1/products/{made}"), 30, "own writes");
            })
        });
        let readers: Vec<_> = readers.collect();
        let ended: Vec<_> = readers.into_iter().map(|reader| reader.join()).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
    });
    assert!(server.metric("kantoor_store_standby_reads_total") > 0);
}

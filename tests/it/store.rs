//! The store under the business code: group commit, retries, migrations.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use engine::open::open_store;
use proptest::prelude::*;
use store::{Error, Gathered, Merge, Migration, Store, Tx};

use crate::on_both;
use crate::support::{Db, execute};

const TABLE: Migration =
    Migration { number: 1, name: "t", sql: "CREATE TABLE t (id BIGINT PRIMARY KEY, word TEXT NOT NULL) STRICT;" };

fn open(db: &Db) -> Store {
    let store = open_store(&db.config()).unwrap();
    store.migrate(&[TABLE]).unwrap();
    store
}

fn rows(store: &Store) -> Vec<(i64, String)> {
    store
        .read_now(|tx| {
            tx.all("SELECT id, word FROM t ORDER BY id", &[], |row| {
                Ok::<_, Error>((row.int(0)?, row.text(1)?.to_string()))
            })
        })
        .unwrap()
}

/// A generated write.
#[derive(Clone, Debug)]
enum Write {
    Put(i64, &'static str),
    PutThenFail(i64),
    PutThenPanic(i64),
    Twice(i64),
    Partly(i64, i64),
    PutThenPanicInside(i64, i64),
    Gather(i64, &'static str),
    GatherThenFail(i64),
    GatherThenLook(i64),
    GatherNew(i64),
    GatherPartly(i64, i64),
    Remember(i64),
    Send(i64, &'static str),
    SendTwice(i64),
    SendTwiceThenRead(i64),
}

/// Rows that replace those with the same id.
static REPLACED: Gathered = Gathered {
    table: "t",
    columns: &["id", "word"],
    key: 1,
    merge: Merge::Last,
    conflict: "ON CONFLICT (id) DO UPDATE SET word = excluded.word",
};

/// Rows that must be new; a conflict is detected when they are written.
static NEW: Gathered = Gathered { table: "t", columns: &["id", "word"], key: 0, merge: Merge::Last, conflict: "" };

/// Gathers a row, and discards the cached ids, which gathering itself does not.
fn gather(tx: &mut Tx, gathered: &'static Gathered, id: i64, word: &str) -> Result<(), Error> {
    tx.gather(gathered, &[id.into(), word.into()])?;
    tx.memory::<Ids>("t", 7).0 = None;
    Ok(())
}

/// The cached ids of the table.
#[derive(Default)]
struct Ids(Option<Vec<i64>>);

fn ids(tx: &mut Tx) -> Result<Vec<i64>, Error> {
    if let Some(known) = &tx.memory::<Ids>("t", 7).0 {
        return Ok(known.clone());
    }
    let read = tx.all("SELECT id FROM t ORDER BY id", &[], |row| row.int(0))?;
    tx.memory::<Ids>("t", 7).0 = Some(read.clone());
    Ok(read)
}

fn put(tx: &mut Tx, id: i64, word: &str) -> Result<(), Error> {
    let sql = "INSERT INTO t (id, word) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET word = excluded.word";
    tx.execute(sql, &[id.into(), word.into()]).map(drop)
}

fn send(tx: &mut Tx, id: i64, word: &str) -> Result<(), Error> {
    let sql = "INSERT INTO t (id, word) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET word = excluded.word";
    tx.send(sql, &[id.into(), word.into()])
}

fn perform(tx: &mut Tx, write: &Write) -> Result<(), Error> {
    match write {
        Write::Put(id, word) => put(tx, *id, word),
        Write::PutThenFail(id) => {
            put(tx, *id, "failed")?;
            Err(Error::Database("on purpose".into()))
        }
        Write::PutThenPanic(id) => {
            put(tx, *id, "panicked")?;
            panic!("on purpose");
        }
        // A statement that the database rejects, after one that it accepts.
        Write::Twice(id) => {
            put(tx, *id, "twice")?;
            tx.execute("INSERT INTO t (id, word) VALUES ($1, $2)", &[(*id).into(), "again".into()]).map(drop)
        }
        Write::Send(id, word) => send(tx, *id, word),
        // An error that is detected after the closure has ended still belongs to that closure.
        Write::SendTwice(id) => {
            send(tx, *id, "twice")?;
            tx.send("INSERT INTO t (id, word) VALUES ($1, $2)", &[(*id).into(), "again".into()])
        }
        Write::SendTwiceThenRead(id) => {
            send(tx, *id, "twice")?;
            tx.send("INSERT INTO t (id, word) VALUES ($1, $2)", &[(*id).into(), "again".into()])?;
            tx.int("SELECT count(*) FROM t", &[]).map(drop)
        }
        Write::PutThenPanicInside(outer, inner) => {
            put(tx, *outer, "outer")?;
            tx.savepoint(|tx| {
                put(tx, *inner, "inner")?;
                panic!("on purpose");
            })
        }
        Write::Gather(id, word) => gather(tx, &REPLACED, *id, word),
        Write::GatherThenFail(id) => {
            gather(tx, &REPLACED, *id, "failed")?;
            Err(Error::Database("on purpose".into()))
        }
        // Gathered rows are visible.
        Write::GatherThenLook(id) => {
            gather(tx, &REPLACED, *id, "looked")?;
            assert_eq!(tx.int("SELECT count(*) FROM t WHERE id = $1 AND word = 'looked'", &[(*id).into()])?, 1);
            Ok(())
        }
        // Fails at the end if a row with this id exists.
        Write::GatherNew(id) => gather(tx, &NEW, *id, "new"),
        Write::GatherPartly(kept, undone) => {
            gather(tx, &REPLACED, *kept, "kept")?;
            let inner: Result<(), Error> = tx.savepoint(|tx| {
                gather(tx, &REPLACED, *undone, "undone")?;
                Err(Error::Database("on purpose".into()))
            });
            assert!(inner.is_err());
            Ok(())
        }
        // The cache stays correct, whatever other closures do in the same transaction.
        Write::Remember(id) => {
            let before = ids(tx)?;
            assert_eq!(before.len() as i64, tx.int("SELECT count(*) FROM t", &[])?);
            put(tx, *id, "remembered")?;
            assert!(ids(tx)?.contains(id));
            Ok(())
        }
        Write::Partly(kept, undone) => {
            put(tx, *kept, "kept")?;
            let inner: Result<(), Error> = tx.savepoint(|tx| {
                put(tx, *undone, "undone")?;
                Err(Error::Database("on purpose".into()))
            });
            assert!(inner.is_err());
            Ok(())
        }
    }
}

fn any_write() -> impl Strategy<Value = Write> {
    prop_oneof![
        (0..8_i64, prop_oneof![Just("a"), Just("b")]).prop_map(|(id, word)| Write::Put(id, word)),
        (0..8_i64).prop_map(Write::PutThenFail),
        (0..8_i64).prop_map(Write::PutThenPanic),
        (0..8_i64).prop_map(Write::Twice),
        (0..8_i64, prop_oneof![Just("c"), Just("d")]).prop_map(|(id, word)| Write::Send(id, word)),
        (0..8_i64).prop_map(Write::SendTwice),
        (0..8_i64).prop_map(Write::SendTwiceThenRead),
        (0..8_i64, 0..8_i64).prop_map(|(kept, undone)| Write::Partly(kept, undone)),
        (0..8_i64, 0..8_i64).prop_map(|(outer, inner)| Write::PutThenPanicInside(outer, inner)),
        (0..8_i64, prop_oneof![Just("c"), Just("d")]).prop_map(|(id, word)| Write::Gather(id, word)),
        (0..8_i64).prop_map(Write::GatherThenFail),
        (0..8_i64).prop_map(Write::GatherThenLook),
        (0..16_i64).prop_map(Write::GatherNew),
        (0..8_i64, 0..8_i64).prop_map(|(kept, undone)| Write::GatherPartly(kept, undone)),
        (0..8_i64).prop_map(Write::Remember),
    ]
}

/// Grouped and one by one: the same responses and the same rows.
fn group_equals_single(together: &Store, single: &Store, writes: &[Write]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let perform_in = |store: &Store, write: Write| {
        let store = store.clone();
        async move { store.write(7, move |tx| perform(tx, &write)).await.is_ok() }
    };
    let all: Vec<bool> = runtime.block_on(async {
        let futures: Vec<_> = writes.iter().map(|write| Box::pin(perform_in(together, write.clone()))).collect();
        futures_util::future::join_all(futures).await
    });
    let one: Vec<bool> = writes.iter().map(|write| runtime.block_on(perform_in(single, write.clone()))).collect();
    assert_eq!(all, one);
    assert_eq!(rows(together), rows(single));
    for store in [together, single] {
        store.write_now(7, |tx| tx.execute("DELETE FROM t", &[])).unwrap();
    }
}

fn group_commit_holds(one: Db, other: Db, cases: u32) {
    std::panic::set_hook(Box::new(|_| {}));
    let (together, single) = (open(&one), open(&other));
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    proptest::test_runner::TestRunner::new(config)
        .run(&prop::collection::vec(any_write(), 1..40), |writes| {
            group_equals_single(&together, &single, &writes);
            Ok(())
        })
        .unwrap();
    let stats = together.stats();
    assert!(
        stats.commits.load(Ordering::Relaxed) < stats.writes.load(Ordering::Relaxed),
        "writes that wait together share commits"
    );
}

#[test]
fn group_commit_equals_one_by_one_on_sqlite() {
    group_commit_holds(Db::sqlite().emptied(), Db::sqlite().emptied(), 60);
}

#[test]
fn group_commit_equals_one_by_one_on_postgres() {
    if let (Some(one), Some(other)) = (Db::postgres().map(Db::emptied), Db::postgres().map(Db::emptied)) {
        group_commit_holds(one, other, 25);
    }
}

on_both![
    the_database_rejects_wrong_types,
    reads_do_not_write,
    many_nodes_can_migrate_concurrently,
    the_rows_of_an_older_database_are_kept,
    a_current_database_is_not_written_to,
    a_failed_migration_leaves_nothing,
    rejects_a_newer_schema,
    rejects_writes_beyond_the_queue,
    expensive_writes_of_an_account_do_not_delay_others,
    looks_up_conflicts_after_the_first,
];

fn the_database_rejects_wrong_types(db: Db) {
    let db = db.emptied();
    let store = open(&db);
    let done = store.write_now(0, |tx| tx.execute("INSERT INTO t (id, word) VALUES ($1, $2)", &["x".into(), 1.into()]));
    assert!(done.is_err());
    assert_eq!(rows(&store), []);
}

fn reads_do_not_write(db: Db) {
    let db = db.emptied();
    let store = open(&db);
    assert!(store.read_now(|tx| put(tx, 1, "x")).is_err());
    assert_eq!(rows(&store), []);
}

fn many_nodes_can_migrate_concurrently(db: Db) {
    let db = db.emptied();
    kantoor::registry::install();
    let config = db.config();
    let applied: usize = std::thread::scope(|scope| {
        let nodes: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| open_store(&config).unwrap().migrate(&engine::migrations::all()).unwrap()))
            .collect();
        nodes.into_iter().map(|node| node.join().unwrap().len()).sum()
    });
    assert_eq!(applied, engine::migrations::all().len());
}

fn the_rows_of_an_older_database_are_kept(db: Db) {
    let db = db.emptied();
    let store = open(&db);
    store.write_now(0, |tx| put(tx, 1, "x")).unwrap();
    let column = Migration { number: 2, name: "c", sql: "ALTER TABLE t ADD COLUMN c TEXT NOT NULL DEFAULT 'y';" };
    let index = Migration { number: 3, name: "i", sql: "CREATE UNIQUE INDEX t_word ON t (word);" };
    assert_eq!(store.pending_migrations(&[TABLE, column, index]).unwrap(), Some((1, 3)));
    assert_eq!(store.migrate(&[TABLE, column, index]).unwrap(), [2, 3]);
    assert_eq!(rows(&store), [(1, "x".to_string())]);
    let kept = store.read_now(|tx| tx.first("SELECT c FROM t", &[], |row| Ok::<_, Error>(row.text(0)?.to_string())));
    assert_eq!(kept.unwrap().as_deref(), Some("y"));
    assert!(store.write_now(0, |tx| put(tx, 2, "x")).is_err(), "a word is there once");
}

/// A start of the program on a database that has everything is only a check.
fn a_current_database_is_not_written_to(db: Db) {
    kantoor::registry::install();
    let all = engine::migrations::all();
    open_store(&db.config()).unwrap().migrate(&all).unwrap();
    let store = Store::open_to_read(&store::Options::new(engine::open::database(&db.config()))).unwrap();
    assert!(store.migrate(&all).unwrap().is_empty());
    assert!(store.migrate(&[&all[..], &[Migration { number: 9000, ..TABLE }]].concat()).is_err(), "it cannot write");
}

fn a_failed_migration_leaves_nothing(db: Db) {
    let db = db.emptied();
    let store = open(&db);
    let broken = Migration {
        number: 2,
        name: "broken",
        sql: "CREATE TABLE half (id BIGINT PRIMARY KEY) STRICT; CREATE TABLE half (id BIGINT) STRICT;",
    };
    assert!(store.migrate(&[TABLE, broken]).is_err());
    let mended = Migration { sql: "CREATE TABLE half (id BIGINT PRIMARY KEY) STRICT;", ..broken };
    assert_eq!(store.migrate(&[TABLE, mended]).unwrap(), [2]);
}

fn rejects_a_newer_schema(db: Db) {
    let db = db.emptied();
    let store = open(&db);
    let newer = Migration { number: 2, name: "newer", sql: "CREATE TABLE n (id BIGINT PRIMARY KEY) STRICT;" };
    store.migrate(&[TABLE, newer]).unwrap();
    let refused = store.migrate(&[TABLE]).unwrap_err();
    assert_eq!(refused, Error::NewerSchema { database: 2, program: 1 });
    assert!(refused.to_string().contains("a newer kantoor has migrated it"));
    assert_eq!((store.is_migrated(&[TABLE]).unwrap(), store.is_migrated(&[TABLE, newer]).unwrap()), (false, true));
}

fn rejects_writes_beyond_the_queue(db: Db) {
    let db = db.emptied();
    let mut config = db.config();
    config.write_queue = 2;
    config.database_writers = 1;
    let store = open_store(&config).unwrap();
    store.migrate(&[TABLE]).unwrap();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    std::thread::scope(|scope| {
        let first = wait.clone();
        let own = &store;
        scope.spawn(move || {
            own.write_now(0, move |_| {
                let _ = first.lock().unwrap().recv();
                Ok::<_, Error>(())
            })
        });
        std::thread::sleep(std::time::Duration::from_millis(100));
        let refused = AtomicU32::new(0);
        std::thread::scope(|inner| {
            for id in 0..6 {
                let refused = &refused;
                inner.spawn(move || {
                    if own.write_now(0, move |tx| put(tx, id, "x")) == Err(Error::Overloaded) {
                        refused.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
            go.send(()).unwrap();
        });
        assert_eq!(refused.load(Ordering::Relaxed), 4);
    });
    assert_eq!(rows(&store).len(), 2);
}

fn expensive_writes_of_an_account_do_not_delay_others(db: Db) {
    let db = db.emptied();
    const DEAR: i64 = 1;
    const CHEAP: i64 = 3;
    let store = open(&db);
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    let order = Arc::new(Mutex::new(Vec::new()));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let writes = [DEAR; 30].into_iter().chain([CHEAP]).enumerate().map(|(number, key)| {
        let (store, wait, order) = (store.clone(), wait.clone(), order.clone());
        Box::pin(async move {
            let write = move |tx: &mut Tx| {
                if number == 0 {
                    let _ = wait.lock().unwrap().recv();
                }
                if key == DEAR {
                    std::thread::sleep(std::time::Duration::from_millis(30));
                }
                order.lock().unwrap().push(key);
                put(tx, i64::try_from(number).unwrap(), "x")
            };
            store.write(key, write).await
        })
    });
    let all = async {
        let writes = futures_util::future::join_all(writes);
        let freed = async { go.send(()).unwrap() };
        // The first holds the writer until all others are queued.
        futures_util::future::join(writes, freed).await.0
    };
    assert!(runtime.block_on(all).iter().all(Result::is_ok));
    let order = order.lock().unwrap();
    let passed = order.iter().position(|key| *key == CHEAP).unwrap();
    assert!(passed <= 2, "{passed} dear writes came first");
    assert_eq!(store.waiting(), 0);
    assert!(store.stats().longest_closure.load(Ordering::Relaxed) >= 30_000_000);
}

fn looks_up_conflicts_after_the_first(db: Db) {
    let db = db.emptied();
    let store = open(&db);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let insert = |key: i64| {
        let own = asked.clone();
        let done = store.write_now(key, move |tx| {
            own.lock().unwrap().push(tx.asks_first());
            tx.send("INSERT INTO t (id, word) VALUES ($1, $2)", &[1.into(), "x".into()])
        });
        (done, std::mem::take(&mut *asked.lock().unwrap()))
    };
    assert_eq!(insert(1), (Ok(()), vec![false]));
    let (refused, asked) = insert(1);
    assert!(matches!(refused, Err(Error::Unique(_))), "{refused:?}");
    assert_eq!(asked, [false, true], "it runs again, and asks");
    assert!(insert(1).1[0], "so does the next one of the account");
    assert!(!insert(2).1[0], "but not others");
}

/// Two nodes write to the same accounts: each write sees the one before it, none is lost, and none is retried.
#[test]
fn nodes_that_share_accounts_never_wait_for_each_other() {
    const ACCOUNTS: i64 = 6;
    const EACH: usize = 30;
    fn append(tx: &mut Tx, account: i64) -> Result<(), Error> {
        tx.hold("t", account)?;
        let sql = "SELECT coalesce(max(seq), 0) + 1 FROM chain WHERE account = $1";
        let seq = tx.int(sql, &[account.into()])?;
        tx.send("INSERT INTO chain (account, seq) VALUES ($1, $2)", &[account.into(), seq.into()])
    }
    let Some(db) = Db::postgres().map(Db::emptied) else { return };
    let mut config = db.config();
    config.database_writers = 2;
    let nodes = [open_store(&config).unwrap(), open_store(&config).unwrap()];
    nodes[0].migrate(&[TABLE]).unwrap();
    execute(&db.url, "CREATE TABLE chain (account BIGINT, seq BIGINT, PRIMARY KEY (account, seq))");
    nodes[0].write_now(0, |tx| (0..ACCOUNTS).try_for_each(|id| put(tx, id, "account"))).unwrap();
    let before: u64 = nodes.iter().map(|node| node.stats().commits.load(Ordering::Relaxed)).sum();
    std::thread::scope(|scope| {
        for node in &nodes {
            for account in (0..ACCOUNTS).chain(0..ACCOUNTS) {
                scope.spawn(move || {
                    for _ in 0..EACH {
                        node.write_now(account, move |tx| append(tx, account)).unwrap();
                    }
                });
            }
        }
    });
    let sql = "SELECT count(*), max(seq) FROM chain GROUP BY account";
    let read = |tx: &mut Tx| tx.all(sql, &[], |row| Ok::<_, Error>((row.int(0)?, row.int(1)?)));
    let length = i64::try_from(4 * EACH).unwrap();
    assert_eq!(nodes[0].read_now(read).unwrap(), vec![(length, length); usize::try_from(ACCOUNTS).unwrap()]);
    let count = |stat: fn(&store::Stats) -> u64| nodes.iter().map(|node| stat(node.stats())).sum::<u64>();
    let commits = count(|stats| stats.commits.load(Ordering::Relaxed)) - before;
    let writes = u64::try_from(ACCOUNTS).unwrap() * u64::try_from(4 * EACH).unwrap();
    assert!(commits < writes, "{commits} commits for {writes} writes");
    assert_eq!(count(|stats| stats.retries.load(Ordering::Relaxed)), 0);
}

/// While a table is empty, all indexes of an account look equally good, and PostgreSQL keeps the plan.
#[test]
fn plans_follow_a_database_that_grows() {
    const COLUMNS: [&str; 5] = ["a", "b", "c", "d", "e"];
    fn find(tx: &mut Tx, column: &str, id: i64) -> Result<i64, Error> {
        let sql = format!("SELECT count(*) FROM grows WHERE account = $1 AND {column} = $2 AND id <> $3");
        tx.int(&sql, &[1.into(), format!("{column}{id}").into(), (-1).into()])
    }
    fn grow(tx: &mut Tx, id: i64) -> Result<(), Error> {
        for column in COLUMNS {
            find(tx, column, id)?;
        }
        let [a, b, c, d, e] = &COLUMNS.map(|column| format!("{column}{id}"));
        let sql = "INSERT INTO grows (account, id, a, b, c, d, e) VALUES ($1, $2, $3, $4, $5, $6, $7)";
        tx.send(sql, &[1.into(), id.into(), a.into(), b.into(), c.into(), d.into(), e.into()])
    }
    let Some(db) = Db::postgres().map(Db::emptied) else { return };
    let mut config = db.config();
    config.database_writers = 1;
    let store = open_store(&config).unwrap();
    let declared: Vec<String> = COLUMNS.iter().map(|name| format!("{name} TEXT NOT NULL DEFAULT ''")).collect();
    let indexes: Vec<String> =
        COLUMNS.iter().map(|name| format!("CREATE INDEX grows_{name} ON grows (account, {name}, id)")).collect();
    let sql = format!(
        "CREATE TABLE grows (account BIGINT, id BIGINT, {}, PRIMARY KEY (account, id)) WITH (autovacuum_enabled = off);
         {}",
        declared.join(", "),
        indexes.join(";")
    );
    execute(&db.url, &sql);
    for id in 0..2000 {
        store.write_now(1, move |tx| grow(tx, id)).unwrap();
    }
    let read = |tx: &mut Tx| {
        for column in COLUMNS {
            assert_eq!(find(tx, column, 77)?, 1);
        }
        // The pages that this transaction has read so far.
        tx.int("SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = 'grows'", &[])
    };
    let rows = store.write_now(1, read).unwrap();
    assert!(rows < 100, "{rows} rows were read to find five");
}

#[test]
fn reconnects_after_a_lost_connection() {
    let Some(db) = Db::postgres().map(Db::emptied) else { return };
    let store = open(&db);
    let admin = std::env::var("KANTOOR_TEST_POSTGRES").unwrap();
    let name = db.name();
    let cut = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'");
    for id in 0..5 {
        assert_eq!(rows(&store).len(), usize::try_from(id).unwrap());
        execute(&admin, &cut);
        store.write_now(0, move |tx| put(tx, id, "after a cut")).unwrap();
        execute(&admin, &cut);
    }
    assert_eq!(rows(&store).len(), 5);
    // Interrupted in the middle of a transaction: it runs again from its start, once.
    let tries = Arc::new(AtomicU32::new(0));
    let (own, admin_url, sql) = (tries.clone(), admin, cut);
    store
        .write_now(0, move |tx| {
            put(tx, 100, "once")?;
            if own.fetch_add(1, Ordering::Relaxed) == 0 {
                execute(&admin_url, &sql);
            }
            put(tx, 101, "once")
        })
        .unwrap();
    assert_eq!(tries.load(Ordering::Relaxed), 2);
    assert_eq!(rows(&store).len(), 7);
    assert!(store.stats().retries.load(Ordering::Relaxed) >= 1);
}

#[test]
fn a_commit_whose_response_is_lost_is_applied_once() {
    let Some(db) = Db::postgres().map(Db::emptied) else { return };
    let store = open(&db);
    // A deferred constraint makes the commit slow, so that it can be interrupted.
    let sql = "CREATE TABLE slow (id BIGINT PRIMARY KEY);
        CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.7); RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER late AFTER INSERT ON slow DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait();";
    execute(&db.url, sql);
    let admin = std::env::var("KANTOOR_TEST_POSTGRES").unwrap();
    let name = db.name();
    let cutter = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        execute(
            &admin,
            &format!(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}' AND query LIKE '%COMMIT%'"
            ),
        );
    });
    let tries = Arc::new(AtomicU32::new(0));
    let own = tries.clone();
    store
        .write_now(0, move |tx| {
            own.fetch_add(1, Ordering::Relaxed);
            tx.execute("INSERT INTO slow (id) VALUES ($1)", &[i64::from(own.load(Ordering::Relaxed)).into()]).map(drop)
        })
        .unwrap();
    cutter.join().unwrap();
    let kept = store.read_now(|tx| tx.int("SELECT count(*) FROM slow", &[])).unwrap();
    assert_eq!(
        (kept, tries.load(Ordering::Relaxed)),
        (1, 2),
        "interrupted before the commit: repeated, and applied once"
    );
}

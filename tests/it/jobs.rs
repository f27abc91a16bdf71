//! Jobs: claimed once, taken over from dead workers, with late results discarded, and accounts taking turns. Tests of
//! whole nodes are in `jobs/nodes.rs` and `jobs/pauses.rs`.

mod nodes;
mod pauses;

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::clock::{Clock, Ids, Moment};
use engine::jobs::{self, Claimant, Claimed, Ending, FURTHEST, JobKind, LEASE_SECONDS, Lane, NewJob};
use engine::leases::LOST_AT_MOST;
use engine::loops;
use kantoor::calendar::days::Days;
use kantoor::registry::JOBS;
use store::Tx;

use crate::on_both;
use crate::support::{Db, Server};

const START: Moment = Moment(1_700_000_000_000);

fn new_job(kind: &'static str) -> NewJob {
    let lane = JOBS.iter().find(|known| known.kind == kind).map_or(Lane::Other, |known| known.lane);
    NewJob { account: 1, kind, lane, payload: "{}".into(), run_at: START, max_attempts: 3, unique_key: None }
}

fn write<T: Send + 'static>(server: &Server, work: impl Fn(&mut Tx) -> engine::error::Result<T> + Send + 'static) -> T {
    server.app.store.write_now(0, work).unwrap()
}

fn enqueue(server: &Server, job: NewJob) {
    let vault = server.app.site.vault.clone();
    write(server, move |tx| job.enqueue(tx, &Ids::SYSTEM, &vault, START));
}

/// The claimant of another node.
fn claimant(server: &Server) -> Claimant {
    Claimant::new("x".to_string(), server.app.site.vault.clone())
}

const KINDS: &[&str] = &["a", "b", "housekeeping"];

fn claim(server: &Server, now: Moment) -> Vec<Claimed> {
    let claimant = server.app.claimant.clone();
    write(server, move |tx| {
        jobs::take_back(tx, now)?;
        claimant.claim(tx, now, Lane::Other, KINDS, 100)
    })
}

/// Claims one job; returns its account.
fn next(server: &Server, claimant: &Arc<Claimant>, now: Moment) -> Option<Claimed> {
    let claimant = claimant.clone();
    write(server, move |tx| claimant.claim(tx, now, Lane::Other, KINDS, 1)).pop()
}

/// Inserts `count` ready jobs of an account.
fn enqueue_many(server: &Server, account: i64, count: i64, run_at: Moment) {
    let vault = server.app.site.vault.clone();
    let job = NewJob { account, run_at, ..new_job("a") };
    write(server, move |tx| (0..count).try_for_each(|_| job.enqueue(tx, &Ids::SYSTEM, &vault, START)));
}

/// Inserts `count` ready jobs of an account that are not run, so they need no mark.
fn fill(server: &Server, account: i64, count: i64, run_at: Moment) {
    write(server, move |tx| {
        Ok(tx.execute(
            "WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $1)
             INSERT INTO jobs (id, account_id, kind, unique_key, payload, state, run_at, attempts, max_attempts, claim,
                               lease_until, last_error, created_at)
             SELECT CAST($2 AS TEXT) || i, CAST($3 AS BIGINT), 'a', CAST($2 AS TEXT) || i, '{}', 'ready', CAST($4 AS BIGINT), 0,
                    3, 0, 0, '', 0 FROM n",
            &[count.into(), format!("{account}-{}-", run_at.0).into(), account.into(), run_at.0.into()],
        )?)
    });
}

fn state(server: &Server, sql: &'static str) -> i64 {
    server.app.store.read_now(move |tx| tx.int(sql, &[])).unwrap()
}

fn finish(server: &Server, job: &Claimed, ending: Ending, now: Moment) -> bool {
    let own = job.clone();
    write(server, move |tx| own.finish(tx, &ending, now))
}

on_both![
    a_job_is_claimed_once_by_many_workers,
    takes_over_the_job_of_a_dead_worker_and_discards_its_late_result,
    retries_failures_until_the_limit,
    a_job_that_kills_its_workers_is_parked,
    an_outcome_resets_the_lost_count,
    a_repeating_job_is_never_parked,
    accounts_take_turns,
    lanes_do_not_wait_for_each_other,
    a_turn_is_found_by_an_index,
    sets_aside_an_account_whose_daily_work_kills_the_process,
    reschedules_jobs_that_a_wrong_clock_put_far_ahead,
    restarts_a_loop_that_panics,
    queued_jobs_of_older_versions_are_readable,
    a_unique_job_exists_once,
    housekeeping_deletes_expired_rows,
    a_forged_job_keeps_no_other_from_its_turn,
];

fn a_job_is_claimed_once_by_many_workers(db: Db) {
    let server = Server::start(db);
    server.leaves_jobs();
    for _ in 0..50 {
        enqueue(&server, new_job("a"));
    }
    let claimed: Vec<Claimed> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let (mut mine, claimant) = (Vec::new(), Arc::new(claimant(&server)));
                    loop {
                        let claimant = claimant.clone();
                        let some = write(&server, move |tx| claimant.claim(tx, START, Lane::Other, &["a"], 3));
                        if some.is_empty() {
                            return mine;
                        }
                        mine.extend(some);
                    }
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let ids: std::collections::HashSet<&str> = claimed.iter().map(|job| job.id.as_str()).collect();
    assert_eq!((claimed.len(), ids.len()), (50, 50));
}

fn takes_over_the_job_of_a_dead_worker_and_discards_its_late_result(db: Db) {
    let server = Server::start(db);
    enqueue(&server, new_job("a"));
    let first = claim(&server, START).remove(0);
    assert!(claim(&server, START.plus_seconds(LEASE_SECONDS - 1)).is_empty());
    let later = START.plus_seconds(LEASE_SECONDS);
    let second = claim(&server, later).remove(0);
    assert_eq!((second.id.as_str(), second.claim, second.attempts), (first.id.as_str(), 2, 2));
    let own = first.clone();
    assert!(!write(&server, move |tx| own.renew(tx, later)), "a lost lease cannot be renewed");
    assert!(!finish(&server, &first, Ending::Done, later));
    assert!(finish(&server, &second, Ending::Done, later));
    assert!(!finish(&server, &second, Ending::Done, later), "a completed job is not completed again");
    assert!(claim(&server, later.plus_seconds(86_400)).is_empty());
}

fn retries_failures_until_the_limit(db: Db) {
    let server = Server::start(db);
    server.leaves_jobs();
    enqueue(&server, new_job("a"));
    let mut now = START;
    for attempt in 1..=3 {
        let job = claim(&server, now).remove(0);
        assert_eq!(job.attempts, attempt);
        assert!(finish(&server, &job, Ending::Failed("no luck".into()), now));
        assert!(claim(&server, now.plus_seconds(5)).is_empty(), "the retry is delayed");
        now = now.plus_seconds(3600);
    }
    assert!(claim(&server, now).is_empty());
    let state = server
        .app
        .store
        .read_now(|tx| {
            tx.first("SELECT state, last_error FROM jobs", &[], |row| {
                Ok::<_, store::Error>((row.text(0)?.to_string(), row.text(1)?.to_string()))
            })
        })
        .unwrap();
    assert_eq!(state, Some(("failed".to_string(), "no luck".to_string())));
}

fn a_job_that_kills_its_workers_is_parked(db: Db) {
    let server = Server::start(db);
    enqueue(&server, NewJob { unique_key: Some("only".into()), ..new_job("a") });
    enqueue(&server, new_job("unknown here"));
    let (mut now, mut pauses) = (START, Vec::new());
    for begun in 1..=LOST_AT_MOST {
        let job = claim(&server, now).pop().unwrap_or_else(|| panic!("it is not begun for the {begun}th time"));
        assert_eq!(job.attempts, begun);
        assert!(job.attempts < job.max_attempts, "a worker that died is none of its tries: {job:?}");
        let died = now.plus_seconds(LEASE_SECONDS);
        now = died;
        write(&server, move |tx| jobs::take_back(tx, died));
        while begun < LOST_AT_MOST
            && !server.app.store.read_now(move |tx| jobs::any_due(tx, now, Lane::Other, KINDS)).unwrap()
        {
            now = now.plus_seconds(1);
        }
        pauses.push((now.0 - died.0) / 1000);
    }
    assert!(pauses[0] == 0 && pauses[1..4].is_sorted() && (10..=20).contains(&pauses[1]), "{pauses:?}");
    let far = now.plus_seconds(1_000_000);
    assert!(claim(&server, far).is_empty());
    assert_eq!(state(&server, "SELECT count(*) FROM jobs WHERE state = 'parked'"), 1);
    assert_eq!(
        state(&server, "SELECT count(*) FROM jobs WHERE state = 'ready'"),
        1,
        "the other kind is left to a node that knows it"
    );
    assert_eq!(server.metric("kantoor_jobs_parked"), 1);
    enqueue(&server, NewJob { unique_key: Some("only".into()), ..new_job("a") });
    assert!(claim(&server, far).is_empty(), "it is not claimed again");

    let parked = server.app.store.read_now(|tx| jobs::list(tx, &["parked"])).unwrap().remove(0);
    assert_eq!((parked.kind.as_str(), parked.lost), ("a", LOST_AT_MOST));
    assert_eq!(parked.last_error, "it was started 5 times in a row and never completed");
    let id = parked.id.clone();
    assert!(write(&server, move |tx| jobs::retry(tx, &id, far)));
    let job = claim(&server, far).remove(0);
    assert!(job.attempts < job.max_attempts, "{job:?}");
    assert!(finish(&server, &job, Ending::Done, far));
    assert!(!write(&server, move |tx| jobs::retry(tx, &parked.id, far)), "a completed job is not claimed");
}

fn an_outcome_resets_the_lost_count(db: Db) {
    let server = Server::start(db);
    enqueue(&server, NewJob { max_attempts: 100, ..new_job("a") });
    let mut now = START;
    for _ in 0..3 {
        for _ in 1..LOST_AT_MOST {
            assert_eq!(claim(&server, now).len(), 1);
            let died = now.plus_seconds(LEASE_SECONDS);
            write(&server, move |tx| jobs::take_back(tx, died));
            now = died.plus_seconds(7200);
        }
        let job = claim(&server, now).remove(0);
        assert!(finish(&server, &job, Ending::Failed("no luck".into()), now));
        now = now.plus_seconds(7200);
    }
    assert_eq!(state(&server, "SELECT count(*) FROM jobs WHERE state = 'parked'"), 0);
}

fn a_repeating_job_is_never_parked(db: Db) {
    let server = Server::start(db);
    enqueue(&server, NewJob { unique_key: Some("days".into()), max_attempts: i64::MAX, ..new_job("a") });
    let mut now = START;
    for _ in 0..20 {
        let died = now.plus_seconds(LEASE_SECONDS);
        assert_eq!(claim(&server, now).len(), 1);
        write(&server, move |tx| jobs::take_back(tx, died));
        let run_at = state(&server, "SELECT run_at FROM jobs");
        assert!(run_at <= died.plus_seconds(3600).0, "it is retried within an hour");
        now = Moment(run_at.max(died.0));
    }
}

/// An account with many jobs delays the first job of another by one job, and none is skipped.
fn accounts_take_turns(db: Db) {
    let server = Server::start(db);
    server.leaves_jobs();
    let claimant = Arc::new(claimant(&server));
    enqueue_many(&server, 7, 10_000, START);
    let order = |count: usize| -> Vec<i64> {
        (0..count).map(|_| next(&server, &claimant, START.plus_seconds(5)).map_or(-1, |job| job.account)).collect()
    };
    assert_eq!(order(3), [7, 7, 7]);
    enqueue_many(&server, 3, 2, START.plus_seconds(1));
    enqueue_many(&server, 9, 2, START.plus_seconds(2));
    // These are not due yet.
    enqueue_many(&server, 8, 1000, START.plus_seconds(1000));
    assert_eq!(order(6), [9, 3, 7, 9, 3, 7]);
    assert_eq!(order(2), [7, 7]);
    let ids: Vec<String> = (0..3).map(|_| next(&server, &claimant, START).unwrap().id).collect();
    assert!(ids.is_sorted(), "within an account by their time: {ids:?}");
    // An account with its share of the workers is passed over.
    enqueue_many(&server, 9, 2, START.plus_seconds(3));
    let others = || {
        let claimant = claimant.clone();
        let claimed = write(&server, move |tx| {
            claimant.claim_if(tx, START.plus_seconds(5), Lane::Other, KINDS, 1, &mut |account| account != 7)
        });
        claimed.first().map(|job| job.account)
    };
    assert_eq!([others(), others(), others()], [Some(9), Some(9), None]);
}

/// Each lane has its own workers: printing delays no mail.
fn lanes_do_not_wait_for_each_other(db: Db) {
    let server = Server::start(db);
    server.leaves_jobs();
    for (account, kind) in [(1, "document_pdf"), (1, "document_pdf"), (2, "deliver"), (1, "days"), (2, "collect")] {
        enqueue(&server, NewJob { account, ..new_job(kind) });
    }
    let claimed = |lane: Lane| {
        let claimant = server.app.claimant.clone();
        let all: &[&str] = &["document_pdf", "deliver", "days", "collect"];
        let jobs = write(&server, move |tx| claimant.claim(tx, START, lane, all, 100));
        jobs.into_iter().map(|job| job.kind).collect::<Vec<_>>()
    };
    assert_eq!(claimed(Lane::Outside), ["deliver", "collect"]);
    assert_eq!(claimed(Lane::Other), ["days"]);
    assert_eq!(claimed(Lane::Printing), ["document_pdf", "document_pdf"]);
}

/// Uses only the index: the cost does not grow with the number of queued jobs.
fn a_turn_is_found_by_an_index(db: Db) {
    let server = Server::start(db);
    server.leaves_jobs();
    for account in 1..=5 {
        fill(&server, account, 20_000, START.plus_seconds(1000));
    }
    enqueue_many(&server, 9, 1, START);
    write(&server, |tx| Ok(tx.execute("ANALYZE", &[])?));
    let plan = server.app.store.read_now(|tx| jobs::explain_turn(tx, START, Lane::Other, KINDS)).unwrap();
    let touched: Vec<&String> = plan.iter().filter(|line| line.contains(" jobs")).collect();
    assert!(!touched.is_empty() && touched.iter().all(|line| line.contains("jobs_turns")), "{plan:#?}");
    let claimant = Arc::new(claimant(&server));
    assert_eq!(next(&server, &claimant, START).unwrap().account, 9);
    assert!(next(&server, &claimant, START).is_none());
}

/// If the process repeatedly dies during the daily work of an account, the other accounts are still processed.
fn sets_aside_an_account_whose_daily_work_kills_the_process(db: Db) {
    let server = Server::start(db);
    let accounts: Vec<_> =
        (0..3).map(|n| kantoor::opening::create_account(&server.app, &format!("{n}"), None).unwrap().0).collect();
    let ill = accounts[1].number;
    let job = |lost: i64, payload: String| Claimed {
        id: "days".into(),
        account: 0,
        kind: "days".into(),
        payload,
        claim: 0,
        attempts: 1,
        max_attempts: i64::MAX,
        lost,
    };
    enqueue(&server, NewJob { unique_key: Some("days".into()), max_attempts: i64::MAX, ..new_job("a") });
    server.rewrite("UPDATE jobs SET id = 'days'");
    let payload = || {
        server
            .app
            .store
            .read_now(|tx| {
                tx.first("SELECT payload FROM jobs", &[], |row| Ok::<_, store::Error>(row.text(0)?.to_string()))
            })
            .unwrap()
            .unwrap()
    };
    let day = |job: Claimed| {
        let app = server.app.clone();
        server.block_on(server.apart(move || (JobKind::of::<Days>().run)(&app, &job))).unwrap().unwrap();
    };
    day(job(0, "{}".into()));
    assert_eq!(payload(), "{}", "a normal run writes nothing");
    day(job(2, format!("{{\"at\":{ill},\"deaths\":{{\"{ill}\":1}}}}")));
    let kept: serde_json::Value = serde_json::from_str(&payload()).unwrap();
    assert!(kept["set_aside"][ill.to_string()].is_i64() && kept["at"] == 0, "{kept}");
    let before = payload();
    day(job(0, before.clone()));
    assert_eq!(payload(), before, "it is skipped for a day");
    day(job(0, format!("{{\"set_aside\":{{\"{ill}\":1}}}}")));
    let kept: serde_json::Value = serde_json::from_str(&payload()).unwrap();
    assert_eq!(kept["set_aside"], serde_json::json!({}));
}

fn reschedules_jobs_that_a_wrong_clock_put_far_ahead(db: Db) {
    let server = Server::with(db, |config| config.workers = 1);
    let app = server.app.clone();
    let far = app.clock.now().plus_seconds(FURTHEST + 3600).0;
    for kind in ["housekeeping", "days"] {
        let max_attempts = i64::MAX;
        enqueue(
            &server,
            NewJob { account: 0, run_at: Moment(far), max_attempts, unique_key: Some(kind.into()), ..new_job(kind) },
        );
    }
    enqueue(&server, NewJob { run_at: Moment(far), ..new_job("drop_content") });
    server.block_on(async move {
        tokio::task::spawn_blocking(move || jobs::worker::start(&app)).await.unwrap().unwrap();
    });
    let started = Instant::now();
    // Both run, and are then scheduled an hour ahead.
    while state(&server, "SELECT count(*) FROM jobs WHERE claim > 0 AND state = 'ready'") < 2 {
        assert!(started.elapsed() < Duration::from_secs(30), "they are still scheduled far ahead");
        std::thread::sleep(Duration::from_millis(50));
    }
    let furthest = server.now().plus_seconds(FURTHEST).0;
    assert!(state(&server, "SELECT max(run_at) FROM jobs") < furthest);
}

fn restarts_a_loop_that_panics(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let begun = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let count = begun.clone();
    server.block_on(async {
        loops::keep(&server.app, "shaky", loops::STALL_TIMEOUT, move |_, pulse| {
            let n = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            async move {
                pulse.turn();
                match n {
                    0 => panic!("on purpose"),
                    1 => {}
                    _ => std::future::pending::<()>().await,
                }
            }
        });
    });
    let started = Instant::now();
    while begun.load(std::sync::atomic::Ordering::SeqCst) < 3 {
        assert!(started.elapsed() < Duration::from_secs(30), "it is not restarted");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(server.metric("kantoor_loop_restarts_total{loop=\"shaky\"}"), 2);
    assert!(server.metric("kantoor_loop_last_turn_seconds{loop=\"shaky\"}") < 60);
    let ready = client.get("/ready").expect(200).json();
    assert_eq!(ready["checks"]["loops"], "ok");
    server.block_on(async {
        loops::keep(&server.app, "stuck", Duration::ZERO, |_, _| std::future::pending());
    });
    // The response is cached for a second.
    std::thread::sleep(Duration::from_millis(1100));
    let ready = client.get("/ready").expect(503).json();
    assert_eq!(ready["checks"]["loops"], "failed: stuck", "{ready}");
}

/// The payloads of all published versions, from the first on: jobs that are queued during an upgrade run on the new version.
fn queued_jobs_of_older_versions_are_readable(db: Db) {
    let server = Server::start(db);
    let account = server.client().account;
    let payloads = [
        ("housekeeping", "{}"),
        ("days", "{}"),
        ("days", r#"{"at":1,"deaths":{"1":1},"set_aside":{}}"#),
        ("drop_content", r#"{"content":"x"}"#),
        (
            "document_pdf",
            r#"{"kind":"workorder","document":"x","revision":1,"title":"x","invoice_date":"2026-05-04","due_date":"","size":0,
                "payment":null,"answer":null}"#,
        ),
        (
            "document_pdf",
            r#"{"kind":"invoice","document":"x","revision":1,"title":"x","invoice_date":"2026-05-04","due_date":"","size":100,
                "payment":{"status":"open","paid_at":null,"paid":0,"credited":0,"collection_date":"","collection_account":""},
                "answer":null}"#,
        ),
        (
            "document_pdf",
            r#"{"kind":"quote","document":"x","revision":1,"title":"x","invoice_date":"2026-05-04","due_date":"","size":100,
                "payment":null,"answer":{"status":"open","accepted_at":null,"accepted_by":"","rejected_at":null}}"#,
        ),
        ("deliver", r#"{"delivery":"x"}"#),
        ("import_run", r#"{"import":"x"}"#),
        ("import_undo", r#"{"import":"x"}"#),
        ("verify_log", "{}"),
        ("subscriptions", "{}"),
        ("collect", r#"{"id":"x"}"#),
        ("provider_news", r#"{"id":"x","kind":"payment"}"#),
        ("provider_news", r#"{"id":"x","kind":"verification"}"#),
        ("verification", r#"{"id":"x"}"#),
        ("provider_cancel", r#"{"provider":"sandbox","external_id":"x"}"#),
        ("rename_ticket_status", r#"{"status":"x","old":"y"}"#),
        ("hand_over", r#"{"batch":"x","message_id":"x","date":"2026-05-04","collections":[["x","y"]]}"#),
        ("follow_client", r#"{"client":"x","after":[0,""]}"#),
        ("mail_reset", r#"{"email":"x","is_known":true}"#),
        ("send_heads", "{}"),
        ("check_domain", r#"{"id":"x"}"#),
        (
            "match_flows",
            r#"{"seq":1,"event":"x","entity_type":"","entity_id":"","depth":0,"chain":"","fired":false,"flows":[["x",1]]}"#,
        ),
        ("end_webhook_deliveries", r#"{"endpoint":"x"}"#),
    ];
    let run = |kind: &'static JobKind, payload: &str| {
        let (app, payload) = (server.app.clone(), payload.to_string());
        let claimed = Claimed {
            id: "x".into(),
            account,
            kind: kind.kind.into(),
            payload,
            claim: 0,
            attempts: 1,
            max_attempts: 2,
            lost: 0,
        };
        server.block_on(server.apart(move || (kind.run)(&app, &claimed))).unwrap()
    };
    for kind in JOBS {
        let own: Vec<&str> =
            payloads.iter().filter(|(name, _)| *name == kind.kind).map(|(_, payload)| *payload).collect();
        assert!(!own.is_empty(), "add a payload of {}", kind.kind);
        for payload in own {
            if let Ok(Ending::Failed(why)) = run(kind, payload) {
                assert!(!why.contains("cannot be read:"), "{}: {payload}: {why}", kind.kind);
            }
        }
        let Ok(Ending::Failed(why)) = run(kind, "7") else { panic!("{}", kind.kind) };
        assert!(why.starts_with("the payload of the job cannot be read:"), "{}: {why}", kind.kind);
    }
}

fn a_unique_job_exists_once(db: Db) {
    let server = Server::start(db);
    server.leaves_jobs();
    for _ in 0..3 {
        enqueue(&server, NewJob { unique_key: Some("only".into()), ..new_job("a") });
    }
    let job = claim(&server, START).remove(0);
    assert!(finish(&server, &job, Ending::Again(START.plus_seconds(60)), START));
    assert!(claim(&server, START).is_empty());
    let job = claim(&server, START.plus_seconds(60)).remove(0);
    assert!(finish(&server, &job, Ending::Done, START));
    enqueue(&server, NewJob { unique_key: Some("only".into()), ..new_job("a") });
    assert_eq!(claim(&server, START).len(), 1, "an ended job does not block a new one");
}

fn housekeeping_deletes_expired_rows(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let headers = [("idempotency-key", "old")];
    client.send("POST", "/v1/products", &headers, "{\"name\":\"x\"}").expect(201);
    let stored = || server.app.store.read_now(|tx| tx.int("SELECT count(*) FROM stored_answers", &[])).unwrap();
    assert_eq!(stored(), 1);
    let account = client.account;
    let later = Clock::System.now().plus_seconds(365 * 86_400).0;
    write(&server, move |tx| {
        Ok(tx.execute("UPDATE accounts SET test_clock = $1 WHERE id = $2", &[later.into(), account.into()])?)
    });
    let app = server.app.clone();
    server.block_on(async move {
        tokio::task::spawn_blocking(move || jobs::worker::start(&app)).await.unwrap().unwrap();
    });
    let started = Instant::now();
    while stored() > 0 {
        assert!(started.elapsed() < Duration::from_secs(20), "housekeeping does not run");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Jobs without a mark are parked as they are found, and give their unique key back.
fn a_forged_job_keeps_no_other_from_its_turn(db: Db) {
    let server = Server::start(db);
    server.leaves_jobs();
    fill(&server, 1, 10, START.plus_seconds(-1));
    server.execute("UPDATE jobs SET unique_key = 'only' WHERE id LIKE '%-5'");
    enqueue(&server, NewJob { unique_key: Some("only".into()), ..new_job("b") });
    enqueue(&server, new_job("b"));
    let claimed = claim(&server, START);
    assert_eq!(claimed.iter().map(|job| job.kind.as_str()).collect::<Vec<_>>(), ["b"]);
    assert_eq!(state(&server, "SELECT count(*) FROM jobs WHERE state = 'parked'"), 10);
    enqueue(&server, NewJob { unique_key: Some("only".into()), ..new_job("b") });
    assert_eq!(claim(&server, START).len(), 1, "its place is free");
}

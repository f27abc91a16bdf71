//! Jobs: claimed once, taken over from the dead, safe from the late.

use kantoor::clock::{Clock, Ids, Moment};
use kantoor::jobs::{self, Ending, Job, LEASE_SECONDS, NewJob};
use store::Tx;

use crate::on_both;
use crate::support::Server;

const START: Moment = Moment(1_700_000_000_000);

fn new_job(kind: &'static str) -> NewJob {
    NewJob { account: 1, kind, payload: "{}".into(), run_at: START, max_attempts: 3, unique_key: None }
}

fn write<T: Send + 'static>(
    server: &Server,
    work: impl Fn(&mut Tx) -> kantoor::error::Result<T> + Send + 'static,
) -> T {
    server.app.store.write_now(0, work).unwrap()
}

fn enqueue(server: &Server, job: NewJob) {
    write(server, move |tx| jobs::enqueue(tx, &Ids::SYSTEM, &job, START));
}

fn claim(server: &Server, now: Moment) -> Vec<Job> {
    jobs::claim_due(&server.app.store, now, &["a", "b"], 100).unwrap()
}

fn finish(server: &Server, job: &Job, ending: Ending, now: Moment) -> bool {
    let own = job.clone();
    write(server, move |tx| own.finish(tx, &ending, now))
}

on_both! {
    fn a_job_is_claimed_once_by_many_workers(db) {
        let server = Server::start(db);
        for _ in 0..50 {
            enqueue(&server, new_job("a"));
        }
        let claimed: Vec<Job> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..8).map(|_| scope.spawn(|| {
                let mut mine = Vec::new();
                loop {
                    let some = jobs::claim_due(&server.app.store, START, &["a"], 3).unwrap();
                    if some.is_empty() {
                        return mine;
                    }
                    mine.extend(some);
                }
            })).collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
        });
        let ids: std::collections::HashSet<&str> = claimed.iter().map(|job| job.id.as_str()).collect();
        assert_eq!((claimed.len(), ids.len()), (50, 50));
    }

    fn a_dead_workers_job_is_taken_over_and_its_late_result_changes_nothing(db) {
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
        assert!(!finish(&server, &second, Ending::Done, later), "done is done");
        assert!(claim(&server, later.plus_seconds(86_400)).is_empty());
    }

    fn failures_come_back_later_and_end(db) {
        let server = Server::start(db);
        enqueue(&server, new_job("a"));
        let mut now = START;
        for attempt in 1..=3 {
            let job = claim(&server, now).remove(0);
            assert_eq!(job.attempts, attempt);
            assert!(finish(&server, &job, Ending::Failed("no luck".into()), now));
            assert!(claim(&server, now.plus_seconds(5)).is_empty(), "there is a pause");
            now = now.plus_seconds(3600);
        }
        assert!(claim(&server, now).is_empty());
        let state = server.app.store.read_now(|tx| {
            tx.first("SELECT state, last_error FROM jobs", &[], |row| {
                Ok::<_, store::Error>((row.text(0)?.to_string(), row.text(1)?.to_string()))
            })
        }).unwrap();
        assert_eq!(state, Some(("failed".to_string(), "no luck".to_string())));
    }

    fn a_job_that_kills_its_workers_ends(db) {
        let server = Server::start(db);
        enqueue(&server, new_job("a"));
        enqueue(&server, new_job("unknown here"));
        for turn in 0..3 {
            assert_eq!(claim(&server, START.plus_seconds(turn * LEASE_SECONDS)).len(), 1);
        }
        assert!(claim(&server, START.plus_seconds(10 * LEASE_SECONDS)).is_empty());
        let failed = server.app.store.read_now(|tx| tx.int("SELECT count(*) FROM jobs WHERE state = 'failed'", &[])).unwrap();
        assert_eq!(failed, 1, "the other kind is left to a node that knows it");
        let due = server.app.store.read_now(|tx| jobs::is_due(tx, START.plus_seconds(99_999), &["a"])).unwrap();
        assert!(!due, "and does not keep this one busy");
    }

    fn a_unique_job_is_there_once(db) {
        let server = Server::start(db);
        for _ in 0..3 {
            enqueue(&server, NewJob { unique_key: Some("only".into()), ..new_job("a") });
        }
        let job = claim(&server, START).remove(0);
        assert!(finish(&server, &job, Ending::Again(START.plus_seconds(60)), START));
        assert!(claim(&server, START).is_empty());
        let job = claim(&server, START.plus_seconds(60)).remove(0);
        assert!(finish(&server, &job, Ending::Done, START));
        enqueue(&server, NewJob { unique_key: Some("only".into()), ..new_job("a") });
        assert_eq!(claim(&server, START).len(), 1, "what has ended does not stand in the way");
    }

    fn housekeeping_drops_what_is_too_old(db) {
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
            tokio::task::spawn_blocking(move || kantoor::worker::start(&app)).await.unwrap().unwrap();
        });
        let started = std::time::Instant::now();
        while stored() > 0 {
            assert!(started.elapsed() < std::time::Duration::from_secs(20), "housekeeping does not run");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

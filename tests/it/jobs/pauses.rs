//! Nodes whose clocks differ, and nodes that are paused just before they send: nothing is sent twice. A test that waits for
//! another node to take over waits for the heartbeats that it has to miss.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mail::sink::{Act, Rule, Sink, Verb};
use rustix::process::Signal;
use serde_json::json;
use web::scripted::{Reply, Scripted};

use super::nodes::{LONG, SOON, ask, flow, mail, until};
use super::*;
use crate::server::Binary;
use crate::support::{Client, Db};

/// What nodes send to.
struct Outside {
    sink: Sink,
    receiver: Scripted,
    /// Whether a receiver takes its time.
    is_slow: Arc<AtomicBool>,
}

impl Outside {
    fn start() -> Outside {
        let is_slow = Arc::new(AtomicBool::new(false));
        let slow = is_slow.clone();
        let answer = move |_: &_| match slow.load(Ordering::Relaxed) {
            true => Reply::new(200).after(Duration::from_millis(700)),
            false => Reply::new(200),
        };
        Outside { sink: Sink::start().unwrap(), receiver: Scripted::start(answer).unwrap(), is_slow }
    }

    /// Starts a node whose clock is wrong by this many seconds, and which is paused at this point.
    fn node(&self, db: &Db, key: &str, clock: i64, pause: &str) -> Binary {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kantoor"));
        command.env("KANTOOR_TEST_CLOCK", clock.to_string()).env("KANTOOR_TEST_PAUSE", pause);
        let port = format!("smtp_port={}", self.sink.port());
        let settings = ["smtp_host=127.0.0.1", &port, "smtp_security=none", "allow_private_addresses=127.0.0.1"];
        let settings: Vec<&str> = settings.iter().flat_map(|one| ["--set", one]).collect();
        Binary::start_with(command, db, key, &settings)
    }

    fn calls(&self, path: &str) -> usize {
        self.receiver.received().iter().filter(|received| received.path == path).count()
    }

    fn webhook(&self, client: &Client) {
        let endpoint = json!({"url": self.receiver.url("/hook"), "events": ["product.created"]});
        client.post("/v1/webhook-endpoints", endpoint).expect(201);
    }
}

/// One clock is ten minutes ahead, the other as much behind. Leases of the one would have expired for the other, and retries of
/// the one would be due much later for the other.
#[test]
fn nodes_with_different_clocks_send_once() {
    let Some(db) = Db::postgres() else { return };
    let outside = Outside::start();
    outside.is_slow.store(true, Ordering::Relaxed);
    outside.sink.rule(Rule::new(Verb::Rcpt, Act::answer("451 4.3.0 Later")).times(1));
    outside.sink.rule(Rule::new(Verb::End, Act::Wait(Duration::from_millis(700))));
    let ahead = outside.node(&db, "", 600, "");
    let behind = outside.node(&db, &ahead.client.key, -600, "");
    until("it is told", LONG, || behind.said().matches("differs from that of the database").count() == 2);
    let client = &ahead.client;
    let made = client.post("/v1/products", json!({"name": "x"})).expect(201).data();
    let created = Moment::parse(made["meta"]["created_at"].as_str().unwrap()).unwrap();
    let apart = (created.0 - Clock::System.now().0).abs();
    assert!(apart < 300_000, "records have the time of the database: {created}");
    outside.webhook(client);
    for _ in 0..4 {
        mail(client);
        flow(&behind.client, json!([{"type": "http", "url": outside.receiver.url("/flow")}]));
        client.post("/v1/products", json!({"name": "x"})).expect(201);
    }
    // The first mail is refused; its next attempt is due in ten seconds and not in ten minutes.
    let retried = "SELECT count(*) FROM deliveries WHERE status = 'retrying' AND attempts = 1";
    until("a refused mail", LONG, || ask(&db, retried) == 1);
    let due = "run_at <= CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) + 15000";
    let soon = format!("SELECT count(*) FROM jobs WHERE kind = 'deliver' AND state = 'ready' AND NOT {due}");
    assert_eq!(ask(&db, &soon), 0, "every retry is due soon");
    until("all work", LONG, || {
        let mails = ask(&db, "SELECT count(*) FROM deliveries WHERE status = 'sent'") == 4;
        let calls = ask(&db, "SELECT count(*) FROM runs WHERE status <> 'success'") == 0;
        let webhooks = ask(&db, "SELECT count(*) FROM webhook_deliveries WHERE status = 'delivered'") == 4;
        mails && calls && webhooks
    });
    // Every flow answers the event of each later one.
    let runs = ask(&db, "SELECT count(*) FROM runs");
    assert_eq!((outside.sink.mails().len(), outside.calls("/flow"), outside.calls("/hook")), (4, runs as usize, 4));
    assert_eq!(ask(&db, "SELECT count(*) FROM deliveries WHERE maybe_twice = 1"), 0);
    assert_eq!(ask(&db, "SELECT count(*) FROM webhook_deliveries WHERE attempts > 1"), 0);
}

/// A node is stopped at this point, another takes over, and the first goes on.
fn paused_before(
    point: &str,
    begin: impl Fn(&Outside, &Client),
    count: impl Fn(&Outside) -> usize,
    warning: &str,
) -> Db {
    let db = Db::postgres().unwrap();
    let outside = Outside::start();
    let first = outside.node(&db, "", 600, point);
    begin(&outside, &first.client);
    until("the pause", LONG, || is_stopped(&first));
    assert_eq!(count(&outside), 0);
    let second = outside.node(&db, &first.client.key, -600, "");
    until("another takes over", SOON, || count(&outside) == 1);
    first.signal(Signal::CONT);
    until("it has seen that it lost its lease", LONG, || second.said().contains(warning));
    let alive = "SELECT count(*) FROM nodes";
    until("it comes back", LONG, || ask(&db, alive) == 2);
    assert_eq!(count(&outside), 1, "sent twice");
    drop((first, second));
    db
}

fn is_stopped(node: &Binary) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", node.child.id())).unwrap();
    stat.rsplit(')').next().unwrap().trim().starts_with('T')
}

#[test]
fn a_node_that_was_paused_before_the_end_of_a_mail_does_not_send_it() {
    if Db::postgres().is_none() {
        return;
    }
    let sent = |outside: &Outside| outside.sink.mails().len();
    let db = paused_before("mail", |_, client| mail(client), sent, "it is not certain that no other server");
    // Nobody would try again a mail that a late outcome called `retrying`.
    let marked = "SELECT count(*) FROM deliveries WHERE status = 'sent' AND attempts = 2 AND maybe_twice = 1";
    assert_eq!(ask(&db, marked), 1);
}

#[test]
fn a_node_that_was_paused_before_a_call_does_not_make_it() {
    if Db::postgres().is_none() {
        return;
    }
    let begin = |outside: &Outside, client: &Client| {
        flow(client, json!([{"type": "http", "url": outside.receiver.url("/flow")}]));
    };
    let db = paused_before("call", begin, |outside| outside.calls("/flow"), "A call was not made");
    until("the run ends", LONG, || ask(&db, "SELECT count(*) FROM runs WHERE status = 'success'") == 1);
}

#[test]
fn a_node_that_was_paused_before_a_webhook_does_not_send_it() {
    if Db::postgres().is_none() {
        return;
    }
    let begin = |outside: &Outside, client: &Client| {
        outside.webhook(client);
        client.post("/v1/products", json!({"name": "x"})).expect(201);
    };
    let db = paused_before("webhook", begin, |outside| outside.calls("/hook"), "A webhook was not sent");
    let delivered = "SELECT count(*) FROM webhook_deliveries WHERE status = 'delivered' AND attempts = 2";
    assert_eq!(ask(&db, delivered), 1);
}

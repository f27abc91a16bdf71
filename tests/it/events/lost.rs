//! Webhooks when something fails between the database and the receiver: none is lost or sent twice.

use super::*;

/// A slow receiver.
fn slow() -> Scripted {
    receiver(|_| Reply::new(200).after(Duration::from_millis(1500)))
}

/// Prevents deliveries from reaching this state.
fn jam(server: &Server, condition: &str) {
    let when = |verb: &str| {
        format!(
            "CREATE TRIGGER jam_{verb} BEFORE {verb} ON webhook_deliveries WHEN NEW.{condition}
             BEGIN SELECT RAISE(ABORT, 'jammed'); END"
        )
    };
    let check = format!("ALTER TABLE webhook_deliveries ADD CONSTRAINT jam CHECK (NOT {condition}) NOT VALID");
    both(server, &[when("INSERT"), when("UPDATE")], &[check]);
}

fn mend(server: &Server) {
    let drops = ["INSERT", "UPDATE"].map(|verb| format!("DROP TRIGGER jam_{verb}"));
    both(server, &drops, &["ALTER TABLE webhook_deliveries DROP CONSTRAINT jam".to_string()]);
}

/// Runs the statements for the database.
pub(super) fn both(server: &Server, sqlite: &[String], postgres: &[String]) {
    let statements = if server.app.store.dialect() == store::Dialect::Sqlite { sqlite } else { postgres };
    for sql in statements {
        change(server, sql);
    }
}

fn change(server: &Server, sql: &str) {
    let sql = sql.to_string();
    server.app.store.write_now(0, move |tx| tx.execute(&sql, &[]).map(drop)).unwrap();
}

on_both![
    retries_recording_an_outcome,
    completes_deliveries_in_progress_when_the_next_cannot_start,
    disabling_an_endpoint_ends_its_deliveries,
    gives_up_a_delivery_that_always_kills_its_sender,
    gives_up_a_delivery_after_five_lost_senders,
    a_shutdown_completes_calls_in_progress,
    the_debug_log_contains_no_webhook_secret,
];

fn retries_recording_an_outcome(db: Db) {
    let receiver = receiver(|_| Reply::new(200));
    let server = sending(db);
    let client = server.client();
    let (path, _) = endpoint(&client, &receiver.url("/"), &["product.*"]);
    jam(&server, "status = 'delivered'");
    product(&client, "a");
    received(&receiver, 1);
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(deliveries(&client, &path, "")[0]["status"], "sending");
    mend(&server);
    settled(&client, &path, "delivered", 1);
    assert_eq!(receiver.received().len(), 1, "none twice");
    assert_eq!(server.metric("kantoor_webhook_deliveries_total{outcome=\"delivered\"}"), 1);
}

fn completes_deliveries_in_progress_when_the_next_cannot_start(db: Db) {
    let receiver = slow();
    let server = sending(db);
    let client = server.client();
    let (path, _) = endpoint(&client, &receiver.url("/"), &["product.*", "note.*"]);
    product(&client, "a");
    received(&receiver, 1);
    jam(&server, "event = 'note.created'");
    client.post("/v1/notes", json!({"body": "x"})).expect(201);
    until("the first", || deliveries(&client, &path, "status=delivered").pop());
    mend(&server);
    until("both", || deliveries(&client, &path, "status=delivered").get(1).cloned());
    assert!(deliveries(&client, &path, "").iter().all(|one| one["attempts"] == 1));
    assert_eq!(names(&receiver.received()), ["product.created", "note.created"]);
}

fn disabling_an_endpoint_ends_its_deliveries(db: Db) {
    let receiver = slow();
    let server = sending(db);
    let client = server.client();
    let (path, _) = endpoint(&client, &receiver.url("/"), &["product.*"]);
    product(&client, "a");
    received(&receiver, 1);
    client.patch(&path, json!({"active": false})).expect(200);
    let off = deliveries(&client, &path, "").remove(0);
    assert_eq!((&off["status"], &off["reason"]), (&json!("failed"), &json!("The endpoint was switched off.")));
    // The worker still records the outcome.
    let taken = settled(&client, &path, "delivered", 1);
    assert_eq!((&taken["response_status"], &taken["reason"]), (&json!(200), &json!("")));
    client.patch(&path, json!({"active": true})).expect(200);
    product(&client, "b");
    until("the second", || deliveries(&client, &path, "status=delivered").get(1).cloned());
    assert_eq!(receiver.received().len(), 2);
}

fn gives_up_a_delivery_that_always_kills_its_sender(db: Db) {
    let receiver = receiver(|_| Reply::new(200));
    let server = Server::with(db, |config| config.allow_private_addresses = "127.0.0.1".to_string());
    let client = server.client();
    let (path, _) = endpoint(&client, &receiver.url("/"), &["product.*"]);
    for _ in 0..2 {
        client.act(&format!("{path}/test")).expect(200);
    }
    change(&server, "UPDATE webhook_deliveries SET status = 'sending', attempts = 10, due_at = 1");
    change(&server, "UPDATE webhook_deliveries SET attempts = 9 WHERE id = (SELECT min(id) FROM webhook_deliveries)");
    server.block_on(async { webhooks::start(&server.app) });
    let given_up = settled(&client, &path, "failed", 10);
    assert_eq!(given_up["reason"], "It was tried ten times, and no attempt completed.");
    until("the other", || deliveries(&client, &path, "status=delivered").pop());
    assert_eq!(receiver.received().len(), 1);
}

fn gives_up_a_delivery_after_five_lost_senders(db: Db) {
    let receiver = receiver(|_| Reply::new(200));
    let server = Server::with(db, |config| config.allow_private_addresses = "127.0.0.1".to_string());
    let client = server.client();
    let (path, _) = endpoint(&client, &receiver.url("/"), &["product.*"]);
    for _ in 0..3 {
        client.act(&format!("{path}/test")).expect(200);
    }
    let mut ids: Vec<String> =
        deliveries(&client, &path, "").iter().map(|one| one["id"].as_str().unwrap().to_string()).collect();
    ids.sort();
    // The worker of each died: for the fifth time, the second time and the first time.
    for (id, lost) in ids.iter().zip([4, 1, 0]) {
        change(
            &server,
            &format!(
                "UPDATE webhook_deliveries SET status = 'sending', attempts = 1, due_at = 1, lost = {lost} WHERE id = '{id}'"
            ),
        );
    }
    server.block_on(async { webhooks::start(&server.app) });
    let one = |id: &str| deliveries(&client, &path, "").into_iter().find(|one| one["id"] == id).unwrap();
    until("the third", || (one(&ids[2])["status"] == "delivered").then_some(()));
    assert_eq!(one(&ids[0])["reason"], "It was started five times in a row, and no attempt completed.");
    assert_eq!((&one(&ids[0])["status"], &one(&ids[1])["status"]), (&json!("failed"), &json!("retrying")));
    assert_eq!(receiver.received().len(), 1);
    hurry(&server);
    until("the second", || (one(&ids[1])["status"] == "delivered").then_some(()));
    let sum = server.app.store.read_now(|tx| {
        tx.int("SELECT lost FROM webhook_deliveries WHERE status = 'delivered' ORDER BY lost DESC LIMIT 1", &[])
    });
    assert_eq!(sum.unwrap(), 0, "an outcome resets the lost count");
}

fn a_shutdown_completes_calls_in_progress(db: Db) {
    let receiver = slow();
    let arguments = ["--set", "allow_private_addresses=127.0.0.1"];
    let mut binary = Binary::start(&db, "", &arguments);
    endpoint(&binary.client, &receiver.url("/webhook"), &["product.*"]);
    let flow = json!({"name": "x", "trigger_type": "custom", "trigger_key": "a.b", "steps": [{"type": "http", "url": receiver.url("/flow")}]});
    binary.client.post("/v1/automation/flows", flow).expect(201);
    binary.client.post("/v1/automation/trigger", json!({"event": "a.b"})).expect(200);
    for name in ["a", "b", "c"] {
        product(&binary.client, name);
    }
    received(&receiver, 3);
    binary.signal(rustix::process::Signal::TERM);
    assert!(binary.child.wait().unwrap().success(), "{}", binary.said());
    let store = engine::open::open_store(&db.config()).unwrap();
    let count = |sql: &'static str| store.read_now(move |tx| tx.int(sql, &[])).unwrap();
    assert_eq!(count("SELECT count(*) FROM webhook_deliveries WHERE status = 'sending'"), 0);
    assert_eq!(count("SELECT count(*) FROM webhook_deliveries WHERE status = 'delivered' AND attempts = 1"), 2);
    assert_eq!(count("SELECT count(*) FROM runs WHERE status = 'success'"), 1);
    assert_eq!(receiver.received().len(), 3, "and nothing new starts");
    let binary = Binary::start(&db, &binary.client.key.clone(), &arguments);
    received(&receiver, 4);
    until("the third", || {
        let sql = "SELECT count(*) FROM webhook_deliveries WHERE status = 'delivered' AND attempts = 1";
        (count(sql) == 3).then_some(())
    });
    drop(binary);
    assert_eq!(receiver.received().len(), 4, "none twice");
}

fn the_debug_log_contains_no_webhook_secret(db: Db) {
    let receiver =
        receiver(
            |received| if received.path.ends_with("bad") { Reply::json(500, "answer-hush") } else { Reply::new(200) },
        );
    let binary = Binary::start(&db, "", &["--set", "allow_private_addresses=127.0.0.1", "--set", "log_level=trace"]);
    let (path, secret) = endpoint(&binary.client, &receiver.url("/url-hush"), &["note.*"]);
    let (bad, other) = endpoint(&binary.client, &receiver.url("/url-hush/bad"), &["note.*"]);
    let rotated =
        binary.client.act(&format!("{path}/rotate-secret")).expect(200).data()["secret"].as_str().unwrap().to_string();
    binary.client.post("/v1/notes", json!({"body": "body-hush"})).expect(201);
    settled(&binary.client, &path, "delivered", 1);
    settled(&binary.client, &bad, "retrying", 1);
    let said = binary.said();
    let logged: Vec<&str> = said
        .lines()
        .filter(|line| {
            line.contains("TRACE") || line.contains("DEBUG") || line.contains("INFO") || line.contains("WARN")
        })
        .collect();
    assert!(!logged.is_empty());
    let signed = receiver.received()[0].header("webhook-signature").unwrap().split(' ').next().unwrap().to_string();
    for hush in ["hush", "whsec_", &secret[6..], &other[6..], &rotated[6..], &signed, &binary.client.key] {
        let found: Vec<_> = logged.iter().filter(|line| line.contains(hush)).take(3).collect();
        assert!(found.is_empty(), "{hush}: {found:#?}");
    }
}

//! Work of unbounded size is done in small transactions, and exactly once, even if the process dies in the middle.

use std::sync::Arc;

use engine::accounts::Account;
use engine::call::{Answer, Work};
use engine::error::Code;
use engine::jobs::worker;
use engine::perform::{perform, prepare};
use serde_json::{Value, json};
use store::seen;

use crate::on_both;
use crate::support::{Client, Db, Server};

on_both![
    a_status_of_many_tickets_is_renamed_in_small_steps,
    a_rename_that_was_cut_off_is_finished_by_a_job,
    a_file_of_many_collections_is_written_in_small_steps,
    a_collection_in_a_file_is_pending_before_it_is_marked,
    a_collection_in_a_file_outlives_its_mandate,
    many_collections_follow_their_client_in_small_steps,
    a_file_has_no_collection_that_was_settled_before_it_was_written,
    conditions_that_take_long_are_evaluated_outside,
    long_conditions_are_read_outside,
    an_endpoint_with_many_deliveries_is_disabled_in_small_steps,
    an_endpoint_with_many_deliveries_is_deleted_in_small_steps,
    deliveries_from_before_an_endpoint_was_disabled_are_never_sent,
    a_draft_with_many_notes_is_deleted_in_small_steps,
    a_pipeline_with_many_phases_is_deleted_in_small_steps,
];

/// SQLite's search index consists of parts, one for each addition. They are merged a few pages at a time.
#[test]
fn the_search_index_is_merged_in_small_steps() {
    let server = Server::start(Db::sqlite());
    let account = server.client().account;
    for part in 0..6 {
        server.execute(&format!(
            "INSERT INTO search_texts (account_id, kind, record_id, folded)
             WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 250)
             SELECT {account}, 'client', '{part}-' || n, lower(hex(randomblob(40))) FROM n"
        ));
        let before = parts_of_the_index(&server);
        server.execute("UPDATE search_texts SET pending = 0 WHERE pending = 1");
        assert_eq!(parts_of_the_index(&server), before + 1, "adding does not merge");
    }
    let step = || {
        let merging = |tx: &mut store::Tx| {
            let before = tx.int("SELECT total_changes()", &[])?;
            let more = tx.merge_index("search_index", 16)?;
            Ok::<_, store::Error>((more, tx.int("SELECT total_changes()", &[])? - before))
        };
        server.app.store.write_now(0, merging).unwrap()
    };
    let steps: Vec<(bool, i64)> = std::iter::repeat_with(step).take_while(|(more, _)| *more).collect();
    let most = steps.iter().map(|(_, changes)| *changes).max().unwrap_or(0);
    assert!(steps.len() > 1 && most < 100, "{steps:?}");
    assert_eq!(parts_of_the_index(&server), 1);
    let found = "SELECT count(*) FROM search_index WHERE search_index MATCH '\"abc\"'";
    assert_eq!(ask(&server, found), ask(&server, "SELECT count(*) FROM search_texts WHERE folded LIKE '%abc%'"));
}

fn ask(server: &Server, sql: &'static str) -> i64 {
    server.app.store.read_now(move |tx| tx.int(sql, &[])).unwrap()
}

fn parts_of_the_index(server: &Server) -> i64 {
    ask(server, "SELECT count(DISTINCT segid) FROM search_index_idx")
}

/// Returns the maximum number of statements in one transaction, and the number of transactions.
fn most_statements() -> (usize, u64) {
    let closures = seen::closures();
    (closures.len(), closures.iter().map(|one| one.statements).max().unwrap_or(0))
}

/// Returns the number of queued jobs of this kind.
fn waiting(server: &Server, kind: &'static str) -> i64 {
    let sql = "SELECT count(*) FROM jobs WHERE kind = $1 AND state = 'ready'";
    server.app.store.read_now(move |tx| tx.int(sql, &[kind.into()])).unwrap()
}

/// Runs all jobs, including those that are scheduled for later.
fn work_off(server: &Server) {
    let now = "UPDATE jobs SET run_at = 0 WHERE state = 'ready'";
    server.app.store.write_now(0, move |tx| tx.execute(now, &[]).map(drop)).unwrap();
    server.block_on(async { while worker::turn(&server.app).await {} });
}

/// The same without typesetting, which takes longer than anything else.
fn work_off_without_pdfs(server: &Server) {
    server.execute("DELETE FROM jobs WHERE kind = 'document_pdf'");
    work_off(server);
}

fn tickets(client: &Client, count: usize) {
    for _ in 0..count {
        client.post("/v1/tickets", json!({"subject": "x", "status": "Open"})).expect(201);
    }
}

fn status_named(client: &Client, name: &str) -> String {
    let all = client.get("/v1/ticket-statuses").data();
    let found = all.as_array().unwrap().iter().find(|status| status["name"] == name).unwrap();
    format!("/v1/ticket-statuses/{}", found["id"].as_str().unwrap())
}

fn total(client: &Client, path: &str) -> Value {
    client.get(path).expect(200).json()["meta"]["total"].clone()
}

fn a_status_of_many_tickets_is_renamed_in_small_steps(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    tickets(&client, 250);
    let (open, seq) = (status_named(&client, "Open"), server.last_seq(&client));
    seen::closures();
    let renamed = client.patch(&open, json!({"name": "In progress"})).expect(200);
    assert_eq!((renamed.data()["name"].clone(), renamed.header("etag").is_empty()), (json!("In progress"), false));
    // Each ticket takes about four statements, and a transaction handles at most a hundred tickets.
    let (closures, statements) = most_statements();
    assert!(closures > 2 && statements < 700, "{closures} transactions, of {statements} statements");
    assert_eq!(total(&client, "/v1/tickets?status=In%20progress"), 250);
    assert_eq!(total(&client, "/v1/tickets?status=Open"), 0);
    let events = server.events(&client, seq);
    assert_eq!(events.iter().filter(|name| *name == "ticket.updated").count(), 250);
    assert!(!events.contains(&"ticket.status_changed".to_string()));
    assert_eq!(waiting(&server, "rename_ticket_status"), 0);
    client.post("/v1/ticket-statuses", json!({"name": "Open"})).expect(201);
}

fn a_rename_that_was_cut_off_is_finished_by_a_job(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    tickets(&client, 150);
    let open = status_named(&client, "Open");
    // Only the first transaction, as if the process died after it.
    let (number, path) = (client.account, open.clone());
    let account = server.app.store.read_now(move |tx| Account::numbered(tx, number)).unwrap();
    let caller = server.app.acting(account, "test");
    let renamed = server.app.store.write_now(number, move |tx| {
        let ctx = caller.writing(tx)?;
        perform(tx, &ctx, "PATCH", &path, Some(&json!({"name": "In progress"})))
    });
    assert_eq!(renamed.unwrap()["name"], "In progress");
    assert_eq!(waiting(&server, "rename_ticket_status"), 1);
    let refused = client.post("/v1/ticket-statuses", json!({"name": "OPEN"})).expect(409);
    assert_eq!(refused.code(), "invalid_transition");
    assert_eq!(client.patch(&open, json!({"name": "Other"})).expect(409).code(), "invalid_transition");
    assert_eq!(client.delete(&open).expect(409).code(), "in_use");
    work_off(&server);
    assert_eq!(total(&client, "/v1/tickets?status=In%20progress"), 150);
    client.post("/v1/ticket-statuses", json!({"name": "OPEN"})).expect(201);
    client.patch(&open, json!({"name": "Other"})).expect(200);
}

/// A client with a mandate and this many collections; returns the client, and the path of each invoice's payments.
fn collections(client: &Client, count: usize) -> (String, Vec<String>) {
    client.patch("/v1/settings", json!({"provider": "manual"})).expect(200);
    let body = json!({"company_name": "De Ster", "iban": "NL91ABNA0417164300"});
    let firm = client.post("/v1/clients", body).expect(201).id();
    client.post(&format!("/v1/clients/{firm}/direct-debit/mandate"), json!({"mandate_id": "M-1"})).expect(201);
    let invoice = json!({"client_id": firm, "title": "x", "rows": [{"name": "x", "unit_price": 1}], "generate": true});
    let payments = (0..count).map(|_| {
        let id = client.post("/v1/invoices", invoice.clone()).expect(201).id();
        client.act(&format!("/v1/invoices/{id}/collect")).expect(201);
        format!("/v1/invoices/{id}/payments")
    });
    (firm, payments.collect())
}

/// The account can create bank files.
fn creditor(client: &Client) {
    client.patch("/v1/settings", json!({"creditor_id": "NL69ZZZ123456780000"})).expect(200);
    let identity = client.get("/v1/corporate-identities").data()[0]["id"].as_str().unwrap().to_string();
    client.patch(&format!("/v1/corporate-identities/{identity}"), json!({"iban": "NL02ABNA0123456789"})).expect(200);
}

fn a_file_of_many_collections_is_written_in_small_steps(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let (firm, payments) = collections(&client, 150);
    seen::closures();
    let refused = client.post("/v1/direct-debit/batches", json!({})).expect(409);
    assert!(refused.text.contains("creditor_id"), "{}", refused.text);
    let (_, statements) = most_statements();
    assert!(statements < 20, "{statements} statements to refuse it");
    creditor(&client);
    seen::closures();
    let key = [("idempotency-key", "k")];
    let made = client.send("POST", "/v1/direct-debit/batches", &key, "{}").expect(201);
    assert_eq!((made.data()["count"].clone(), made.data()["amount"].clone()), (json!(150), json!(150)));
    // Each collection takes about ten statements, and a transaction handles at most a hundred.
    let (_, statements) = most_statements();
    assert!(statements < 1300, "{statements} statements");
    assert_eq!(waiting(&server, "hand_over"), 1);
    // Another file contains none of them, and repeating the request returns the same response.
    let none = client.post("/v1/direct-debit/batches", json!({})).expect(409);
    assert!(none.text.contains("No collections are pending"), "{}", none.text);
    assert_eq!(waiting(&server, "hand_over"), 0);
    assert_eq!(client.send("POST", "/v1/direct-debit/batches", &key, "{}").expect(201).data(), made.data());
    assert_eq!(total(&client, "/v1/direct-debit/batches"), 1);
    for path in payments.iter().step_by(10) {
        let payment = client.get(path).data()[0].clone();
        assert_eq!(payment["status"], "pending");
        assert_eq!(payment["meta"]["feedback_data"]["batch_id"], made.data()["id"]);
    }
    let mandate = client.get(&format!("/v1/clients/{firm}/direct-debit/mandate")).data();
    assert_eq!(mandate["mandate_status"], "active");
}

fn a_collection_in_a_file_is_pending_before_it_is_marked(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let (_, payments) = collections(&client, 150);
    creditor(&client);
    let next = || client.get("/v1/direct-debit/batches/waiting").expect(200).data();
    assert_eq!((&next()["count"], &next()["amount"]), (&json!(150), &json!(150)));
    assert_eq!(next()["collections"].as_array().unwrap().len(), 100);
    let batch = client.post("/v1/direct-debit/batches", json!({})).expect(201).data();
    assert_eq!(waiting(&server, "hand_over"), 1);
    assert_eq!((&next()["count"], &next()["left_out"]), (&json!(0), &json!([])), "the file has them all");
    let last = |n: usize| {
        let path = &payments[payments.len() - n];
        let payment = client.get(path).data()[0].clone();
        (format!("{path}/{}", payment["id"].as_str().unwrap()), payment["status"].clone())
    };
    let ((first, status), (second, _), (third, _)) = (last(1), last(2), last(3));
    assert_eq!(status, "created", "the job has not reached it");
    // The same as for a collection that is marked: the bank has it.
    let refused = client.patch(&first, json!({"status": "open"})).expect(409);
    assert!(refused.text.contains("cannot move from pending to open"), "{}", refused.text);
    let changed = client.patch(&first, json!({"payment_data": {"note": "called"}})).expect(200).data();
    assert_eq!(changed["payment"]["status"], "pending");
    assert_eq!(changed["payment"]["meta"]["feedback_data"]["batch_id"], batch["id"]);
    let paid = client.patch(&second, json!({"status": "paid"})).expect(200).data();
    assert_eq!(paid["payment"]["meta"]["feedback_data"]["batch_id"], batch["id"]);
    client.delete(&third).expect(204);
    // The next file first marks the others.
    client.post("/v1/direct-debit/batches", json!({})).expect(409);
    assert_eq!(client.get(&first).data()["status"], "pending");
    assert_eq!(client.get(&second).data()["status"], "paid");
    client.get(&third).expect(404);
    assert_eq!(last(4).1, "pending");
}

fn a_collection_in_a_file_outlives_its_mandate(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let (firm, payments) = collections(&client, 110);
    creditor(&client);
    client.post("/v1/direct-debit/batches", json!({})).expect(201);
    assert_eq!(waiting(&server, "hand_over"), 1);
    client.patch(&format!("/v1/clients/{firm}"), json!({"iban": ""})).expect(200);
    client.delete(&format!("/v1/clients/{firm}/direct-debit/mandate")).expect(204);
    work_off_without_pdfs(&server);
    for path in [&payments[0], &payments[109]] {
        assert_eq!(client.get(path).data()[0]["status"], "pending", "the bank has it");
    }
}

fn many_collections_follow_their_client_in_small_steps(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let (firm, payments) = collections(&client, 150);
    creditor(&client);
    let number = client.account;
    let named = |account: &str| {
        let account = account.to_string();
        let sql = "SELECT count(*) FROM invoices WHERE account_id = $1 AND collection_account = $2";
        server.app.store.read_now(move |tx| tx.int(sql, &[number.into(), (&account).into()])).unwrap()
    };
    assert_eq!(named("NL** ABNA **** **43 00"), 150);
    seen::closures();
    client.patch(&format!("/v1/clients/{firm}"), json!({"iban": "NL02ABNA0123456789"})).expect(200);
    // Each takes about ten statements, and a transaction handles at most a hundred.
    let (_, statements) = most_statements();
    assert!(statements < 1300, "{statements} statements");
    assert_eq!(waiting(&server, "follow_client"), 1);
    // A file waits for the others.
    seen::closures();
    assert_eq!(client.post("/v1/direct-debit/batches", json!({})).expect(201).data()["count"], 150);
    let (_, statements) = most_statements();
    assert!(statements < 1300, "{statements} statements");
    assert_eq!(named("NL** ABNA **** **67 89"), 150);
    work_off_without_pdfs(&server);
    assert_eq!((waiting(&server, "follow_client"), waiting(&server, "hand_over")), (0, 0));
    assert_eq!(client.get(&payments[149]).data()[0]["status"], "pending");

    // What no file can collect is canceled.
    let (firm, payments) = collections(&client, 150);
    seen::closures();
    client.delete(&format!("/v1/clients/{firm}/direct-debit/mandate")).expect(204);
    let (_, statements) = most_statements();
    assert!(statements < 1300, "{statements} statements");
    work_off_without_pdfs(&server);
    for path in payments.iter().step_by(50) {
        assert_eq!(client.get(path).data()[0]["status"], "canceled");
    }
}

fn a_file_has_no_collection_that_was_settled_before_it_was_written(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let (_, payments) = collections(&client, 3);
    creditor(&client);
    let number = client.account;
    let account = server.app.store.read_now(move |tx| Account::numbered(tx, number)).unwrap();
    let caller = server.app.acting(account, "test");
    let write = |work: Arc<Work>| {
        let own = caller.clone();
        server.app.store.write_now(number, move |tx| {
            let ctx = own.writing(tx)?;
            work(tx, &ctx)
        })
    };
    let build = |answer: Answer| {
        let (app, caller, after) = (server.app.clone(), caller.clone(), answer.after.unwrap().0);
        let built = server.block_on(server.apart(move || after(&app, &caller))).unwrap();
        Arc::new(built.unwrap())
    };
    let start = || Arc::new(prepare("POST", "/v1/direct-debit/batches", Some(&json!({}))).unwrap());
    let path_of = |payments: &String| {
        let payment = client.get(payments).data()[0]["id"].as_str().unwrap().to_string();
        format!("{payments}/{payment}")
    };
    // If they never stop changing, the request is rejected.
    let changing = path_of(&payments[1]);
    let mut answer = write(start()).unwrap();
    let refused = (0..100).find_map(|n| {
        let keep = build(answer.clone());
        client.patch(&changing, json!({"payment_data": {"n": n}})).expect(200);
        match write(keep) {
            Ok(outdated) => {
                answer = write(build(outdated)).unwrap();
                None
            }
            Err(refused) => Some(refused),
        }
    });
    let refused = refused.unwrap();
    assert_eq!((refused.code, refused.retry_after), (Code::Overloaded, Some(1)));
    let keep = build(write(start()).unwrap());
    // The file has been built, and is to be written.
    let path = path_of(&payments[0]);
    client.patch(&path, json!({"status": "open"})).expect(200);
    client.patch(&path, json!({"status": "canceled"})).expect(200);
    let outdated = write(keep).unwrap();
    assert!(outdated.data.is_empty() && outdated.after.is_some(), "it is built again");
    let keep = build(write(build(outdated)).unwrap());
    let made: Value = serde_json::from_slice(&write(keep).unwrap().data).unwrap();
    assert_eq!((made["count"].clone(), made["amount"].clone()), (json!(2), json!(2)));
    assert_eq!(client.get(&path).data()["status"], "canceled");
}

fn conditions_that_take_long_are_evaluated_outside(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let flow = |name: &str, kind: &str, key: &str, field: &str, part: &str| {
        let condition = json!({"field": field, "op": "contains", "value": part});
        let body = json!({"name": name, "trigger_type": kind, "trigger_key": key,
            "conditions": vec![condition; 50], "steps": [{"type": "approval"}]});
        client.post("/v1/automation/flows", body).expect(201).id()
    };
    for n in 0..5 {
        flow(&format!("holds {n}"), "custom", "order", "data.text", "end");
        flow(&format!("does not {n}"), "custom", "order", "data.text", "nowhere");
    }
    flow("holds", "event", "note.created", "data.body", "end");
    flow("does not", "event", "note.created", "data.body", "nowhere");
    let text = format!("{}end", "\u{e9}".repeat(60_000));
    let fire = |key: &str, text: &str| {
        let body = json!({"event": "order", "data": {"text": text}}).to_string();
        client.send("POST", "/v1/automation/trigger", &[("idempotency-key", key)], &body).expect(200).data()
    };
    assert_eq!(fire("small", "the end")["matched"], 5);
    let fired = fire("large", &text);
    assert_eq!((fired["matched"].clone(), fired["runs"].as_array().unwrap().len()), (json!(5), 5));
    assert_eq!(waiting(&server, "match_flows"), 0, "the request evaluated them before it fired the event");
    assert_eq!(fire("large", &text), fired);
    assert_eq!(total(&client, "/v1/automation/runs"), 10);
    // For an event without a waiting caller, a job evaluates them.
    let firm = client.post("/v1/clients", json!({"company_name": "x"})).expect(201).id();
    let note = client.post("/v1/notes", json!({"body": text, "client_id": firm})).expect(201).id();
    assert_eq!(waiting(&server, "match_flows"), 1);
    work_off(&server);
    assert_eq!(total(&client, "/v1/automation/runs"), 11);
    let last = client.get("/v1/automation/runs?status=queued").data();
    let last = last.as_array().unwrap().iter().find(|run| run["trigger_key"] == "note.created").unwrap().clone();
    let id = last["id"].as_str().unwrap();
    let run = client.get(&format!("/v1/automation/runs/{id}")).expect(200).data();
    assert!(run.to_string().contains(&note), "{run}");
}

fn long_conditions_are_read_outside(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    for (kind, key, field) in [("custom", "order", "data.text"), ("event", "note.created", "data.body")] {
        for last in ["other", "the text"] {
            let mut conditions = vec![json!({"field": field, "op": "ne", "value": "y".repeat(1000)}); 49];
            conditions.push(json!({"field": field, "op": "ne", "value": last}));
            let body = json!({"name": last, "trigger_type": kind, "trigger_key": key, "conditions": conditions,
                "steps": [{"type": "approval"}]});
            client.post("/v1/automation/flows", body).expect(201);
        }
    }
    let fired = json!({"event": "order", "data": {"text": "the text"}});
    assert_eq!(client.post("/v1/automation/trigger", fired).expect(200).data()["matched"], 1);
    let firm = client.post("/v1/clients", json!({"company_name": "x"})).expect(201).id();
    client.post("/v1/notes", json!({"body": "the text", "client_id": firm})).expect(201);
    assert_eq!(waiting(&server, "match_flows"), 1);
    assert_eq!(total(&client, "/v1/automation/runs"), 1);
    work_off(&server);
    assert_eq!(total(&client, "/v1/automation/runs"), 2);
}

/// An endpoint with this many open deliveries, none of which is due.
fn endpoint_with_deliveries(server: &Server, client: &Client, count: i64) -> String {
    let url = "https://example.com/in";
    let endpoint = client.post("/v1/webhook-endpoints", json!({"url": url})).expect(201).id();
    let (account, id) = (client.account, endpoint.clone());
    let sql = "WITH RECURSIVE numbers (n) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 1 FROM numbers WHERE n < $1)
         INSERT INTO webhook_deliveries (account_id, id, created_at, updated_at, version, endpoint_id, event, seq, status,
                attempts, response_status, response_body, reason, duration_ms, next_attempt_at, resend_of, happened_at,
                due_at, claim)
         SELECT CAST($2 AS BIGINT), 'd' || n, n, n, 1, CAST($3 AS TEXT), 'product.created', 1,
                CASE n % 3 WHEN 0 THEN 'queued' WHEN 1 THEN 'retrying' ELSE 'sending' END,
                1, 0, '', '', 0, 4000000000000, '', 0, 4000000000000, 0
         FROM numbers";
    let values = move || [count.into(), account.into(), id.clone().into()];
    server.app.store.write_now(0, move |tx| tx.execute(sql, &values()).map(drop)).unwrap();
    endpoint
}

fn open_deliveries(server: &Server) -> i64 {
    let sql = "SELECT count(*) FROM webhook_deliveries WHERE status NOT IN ('failed', 'delivered') OR due_at > 0";
    server.app.store.read_now(move |tx| tx.int(sql, &[])).unwrap()
}

/// The most rows in one transaction.
fn most_rows() -> u64 {
    seen::closures().iter().map(|one| one.rows).max().unwrap_or(0)
}

const DELIVERIES: i64 = 20_000;

fn an_endpoint_with_many_deliveries_is_disabled_in_small_steps(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let endpoint = endpoint_with_deliveries(&server, &client, DELIVERIES);
    let path = format!("/v1/webhook-endpoints/{endpoint}");
    seen::closures();
    client.patch(&path, json!({"active": false})).expect(200);
    let (rows, left) = (most_rows(), open_deliveries(&server));
    assert!(rows < 5000 && left > 0, "{rows} rows in a transaction, {left} left");
    assert_eq!(waiting(&server, "end_webhook_deliveries"), 1);
    work_off(&server);
    assert_eq!((open_deliveries(&server), most_rows() < 5000), (0, true));
    let failed = client.get(&format!("{path}/deliveries?status=failed")).expect(200);
    assert_eq!(failed.json()["meta"]["total"], DELIVERIES);
    assert_eq!(failed.data()[0]["reason"], "The endpoint was switched off.");
}

fn an_endpoint_with_many_deliveries_is_deleted_in_small_steps(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let endpoint = endpoint_with_deliveries(&server, &client, DELIVERIES);
    seen::closures();
    client.delete(&format!("/v1/webhook-endpoints/{endpoint}")).expect(204);
    let (rows, left) = (most_rows(), open_deliveries(&server));
    assert!(rows < 5000 && left > 0, "{rows} rows in a transaction, {left} left");
    work_off(&server);
    assert_eq!((open_deliveries(&server), most_rows() < 5000), (0, true));
}

fn deliveries_from_before_an_endpoint_was_disabled_are_never_sent(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let endpoint = endpoint_with_deliveries(&server, &client, DELIVERIES);
    let path = format!("/v1/webhook-endpoints/{endpoint}");
    client.patch(&path, json!({"active": false})).expect(200);
    assert!(open_deliveries(&server) > 0);
    assert_eq!(client.patch(&path, json!({"active": true})).expect(200).data()["active"], true);
    assert_eq!(open_deliveries(&server), 0);
    // The job of the first time ends nothing that belongs to the second.
    client.act(&format!("{path}/test")).expect(200);
    work_off(&server);
    assert_eq!(open_deliveries(&server), 1);
}

fn a_draft_with_many_notes_is_deleted_in_small_steps(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let draft = client.post("/v1/invoices", json!({"title": "x"})).expect(201).id();
    for _ in 0..250 {
        client.post("/v1/notes", json!({"body": "x", "invoice_id": draft})).expect(201);
    }
    seen::closures();
    client.delete(&format!("/v1/invoices/{draft}")).expect(200);
    let (closures, statements) = most_statements();
    assert!(closures > 2 && statements < 700, "{closures} transactions, of {statements} statements");
    assert_eq!(total(&client, "/v1/notes"), 250);
    assert_eq!(client.get("/v1/notes").data()[0]["meta"]["invoice_id"], "");
}

fn a_pipeline_with_many_phases_is_deleted_in_small_steps(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let pipeline = client.post("/v1/pipelines", json!({"name": "Long"})).expect(201).id();
    for n in 0..150 {
        client.post("/v1/phases", json!({"name": n.to_string(), "pipeline_id": pipeline})).expect(201);
    }
    seen::closures();
    client.delete(&format!("/v1/pipelines/{pipeline}")).expect(204);
    let (closures, statements) = most_statements();
    assert!(closures > 1 && statements < 700, "{closures} transactions, of {statements} statements");
    client.get(&format!("/v1/pipelines/{pipeline}")).expect(404);
    assert_eq!(client.get("/v1/phases").data().as_array().unwrap().len(), 5);
}

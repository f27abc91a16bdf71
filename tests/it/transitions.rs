//! Statuses follow their transition tables: every action is tried in every status, over HTTP.

use engine::record::{Transitions, may_become};
use kantoor::automation::run;
use kantoor::documents::PaymentStatus;
use kantoor::documents::status::{Effect, Verb};
use kantoor::payments::payment;
use kantoor::subscriptions;
use kantoor::work::hour;
use serde_json::{Value, json};

use crate::on_both;
use crate::support::{Client, Db, Server, Shared};

/// Writes the status of a record directly to the database.
fn put(server: &Server, table: &str, id: &str, status: &str) {
    let (sql, status) = (format!("UPDATE {table} SET status = $1 WHERE id = $2"), status.to_string());
    let id = id.to_string();
    server.app.store.write_now(0, move |tx| tx.execute(&sql, &[(&status).into(), (&id).into()])).unwrap();
}

fn invoice(client: &Client) -> String {
    let body = json!({"title": "Boiler", "generation_mode": "final", "rows": [{"name": "Boiler", "unit_price": 100}]});
    client.post("/v1/invoices", body).expect(201).id()
}

/// Creates a final document with this status.
fn document(client: &Client, path: &str, status: &PaymentStatus) -> String {
    let body = json!({"title": "Boiler", "generation_mode": "final", "rows": [{"name": "Boiler", "unit_price": 100}]});
    let id = client.post(path, body).expect(201).id();
    client.patch(&format!("{path}/{id}"), json!({"payment_status": status.wire()})).expect(200);
    id
}

/// Every built-in status, and a custom one.
fn statuses() -> Vec<PaymentStatus> {
    PaymentStatus::KNOWN.iter().cloned().chain([PaymentStatus::from("in the workshop")]).collect()
}

on_both![
    documents_follow_their_table,
    online_payments_follow_their_table,
    hours_follow_their_table,
    runs_follow_their_table,
    subscriptions_follow_their_table,
];

fn documents_follow_their_table(server: Shared) {
    let client = server.client();
    for (path, action, verb, becomes) in [
        ("/v1/quotes", "accept", Verb::Accept, "accepted"),
        ("/v1/quotes", "reject", Verb::Reject, "rejected"),
        ("/v1/quotes", "invoice", Verb::Invoice, "invoiced"),
        ("/v1/quotes", "project", Verb::MakeProject, ""),
        ("/v1/workorders", "complete", Verb::Complete, "completed"),
    ] {
        for status in statuses() {
            let id = document(&client, path, &status);
            let reply = client.act(&format!("{path}/{id}/{action}"));
            let now = client.get(&format!("{path}/{id}")).expect(200).data()["payment_status"].clone();
            let about = format!("{action} when {status}: {reply:?}");
            match verb.effect(&status) {
                Effect::Allowed => {
                    assert!([200, 201].contains(&reply.status), "{about}");
                    assert_eq!(now, if becomes.is_empty() { status.wire() } else { becomes }, "{about}");
                }
                Effect::Done => {
                    assert_eq!(reply.status, 200, "{about}");
                    assert_eq!(now, status.wire(), "{about}");
                }
                Effect::Refused(why) => {
                    assert_eq!((reply.status, reply.code().as_str()), (409, "invalid_transition"), "{about}");
                    assert!(reply.json()["error"]["message"].as_str().unwrap().contains(why), "{about}");
                    assert_eq!(now, status.wire(), "{about}");
                }
            }
        }
    }
}

fn online_payments_follow_their_table(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let path = format!("/v1/invoices/{}/payments", invoice(&client));
    for from in payment::Status::ALL {
        for to in payment::Status::ALL {
            let id = client.post(&path, json!({"amount": 1, "type": "online"})).expect(201).id();
            put(&server, "payments", &id, from.wire());
            let reply = client.patch(&format!("{path}/{id}"), json!({"status": to.wire()}));
            let allowed = from == to || may_become(payment::TRANSITIONS, from, to);
            assert_eq!(reply.status, if allowed { 200 } else { 409 }, "{from:?} to {to:?}: {reply:?}");
            if !allowed {
                assert_eq!(reply.code(), "invalid_transition");
            }
        }
    }
}

fn hours_follow_their_table(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let project = client.post("/v1/projects", json!({"name": "Roof"})).expect(201).id();
    let path = format!("/v1/projects/{project}/hours");
    let id = client.post(&path, json!({"hours": 1})).expect(201).id();
    for from in hour::Status::ALL {
        for (action, to) in [
            ("submit", hour::Status::Submitted),
            ("approve", hour::Status::Approved),
            ("reject", hour::Status::Rejected),
            ("withdraw", hour::Status::Draft),
        ] {
            put(&server, "project_hours", &id, from.wire());
            let reply = client.act(&format!("{path}/{id}/{action}"));
            let allowed = may_become(hour::TRANSITIONS, from, &to);
            assert_eq!(reply.status, if allowed { 200 } else { 409 }, "{action} when {from:?}: {reply:?}");
        }
    }
}

fn runs_follow_their_table(db: Db) {
    let server = Server::with(db, |config| config.workers = 0);
    let client = server.client();
    let flow = json!({"name": "Ask", "trigger_type": "custom", "trigger_key": "a.b", "steps": [{"type": "approval"}]});
    client.post("/v1/automation/flows", flow).expect(201);
    let begin = || -> Value { client.post("/v1/automation/trigger", json!({"event": "a.b"})).expect(200).data() };
    for (action, table) in run::ACTIONS {
        for from in run::Status::ALL {
            let id = begin()["runs"][0]["run_id"].as_str().unwrap().to_string();
            put(&server, "runs", &id, from.wire());
            let reply = client.act(&format!("/v1/automation/runs/{id}/{action}"));
            let to = table.iter().find(|(own, _)| own == from).map(|(_, to)| to[0]);
            assert_eq!(reply.status, if to.is_some() { 200 } else { 409 }, "{action} when {from:?}: {reply:?}");
            if let Some(to) = to {
                assert_eq!(reply.data()["status"], to.wire(), "{action} when {from:?}");
            }
        }
    }
}

fn subscriptions_follow_their_table(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    let body = json!({"client_id": firm, "title": "Hosting", "frequency": "monthly",
        "subscription_start": "2027-01-01", "lines": [{"title": "Hosting", "unit_price": 10, "vat_code": "NL21"}]});
    for from in subscriptions::Status::ALL {
        let id = client.post("/v1/subscriptions", body.clone()).expect(201).id();
        put(&server, "subscriptions", &id, from.wire());
        let reply = client.act(&format!("/v1/subscriptions/{id}/activate"));
        let allowed = may_become(subscriptions::ACTIVATE, from, &subscriptions::Status::Active);
        assert_eq!(reply.status, if allowed { 200 } else { 409 }, "{from:?}: {reply:?}");
    }
}

/// A table lists each status once, and no transition twice.
#[test]
fn transition_tables_have_no_duplicates() {
    fn check<S: PartialEq + std::fmt::Debug>(table: Transitions<S>) {
        for (place, (from, to)) in table.iter().enumerate() {
            assert!(table[..place].iter().all(|(own, _)| own != from), "{from:?} is listed twice");
            for (place, target) in to.iter().enumerate() {
                assert!(!to[..place].contains(target), "{from:?} to {target:?} is listed twice");
            }
        }
    }
    check(payment::TRANSITIONS);
    check(hour::TRANSITIONS);
    check(subscriptions::ACTIVATE);
    run::ACTIONS.iter().for_each(|(_, table)| check(table));
}

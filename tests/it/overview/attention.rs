//! `GET /v1/overview`.

use engine::clock::Moment;
use serde_json::{Value, json};

use crate::direct_debit::{advance, firm, send_form, verify, work_off};
use crate::on_both;
use crate::people::member;
use crate::support::{Client, Db, Office, Server, Shared};

on_both![
    counts_what_needs_attention,
    shows_what_the_caller_may_read,
    knows_what_is_mine,
    what_is_being_collected_is_not_late,
];

const ROWS: &str = r#"[{"name": "Oven", "quantity": 1, "unit_price": 100, "vat_rate": "21"}]"#;

/// Returns an item of the overview without its path and cap.
fn item(client: &Client, name: &str) -> Value {
    let data = client.get("/v1/overview").expect(200).data();
    let found = data.as_array().unwrap().iter().find(|one| one["name"] == name);
    let mut found = found.unwrap_or_else(|| panic!("{name} is not in {data}")).clone();
    assert_eq!(found["capped"], false);
    let path = found["path"].as_str().unwrap().to_string();
    let list = client.get(&path).expect(200).json();
    // The list that it leads to has those that were counted, and no others. That of mails has no total.
    let listed = i64::try_from(list["data"].as_array().unwrap().len()).unwrap();
    assert_eq!(list["meta"]["total"].as_i64().unwrap_or(listed), found["count"].as_i64().unwrap(), "{path}");
    for member in ["name", "capped", "path"] {
        found.as_object_mut().unwrap().remove(member);
    }
    found
}

fn document(client: &Client, path: &str, more: Value) -> String {
    let rows: Value = serde_json::from_str(ROWS).unwrap();
    let mut body = json!({"title": "Oven", "rows": rows});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    client.post(path, body).expect(201).id()
}

/// What is made to need attention, soon or at once.
struct Made {
    /// The client and the days of documents.
    owner: Value,
    partly: String,
    quote: String,
    task: String,
    ticket: String,
    stuck: String,
}

fn make(client: &Client) -> Made {
    let owner = client.post("/v1/clients", json!({"company_name": "Ster", "email": "a@ster.example"})).expect(201).id();
    let owner = json!({"client_id": owner, "invoice_date": "2026-05-04", "due_date": "2026-05-10"});
    let last = |mut more: Value, fields: Value| {
        more.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        more
    };
    let finals = last(owner.clone(), json!({"generation_mode": "final"}));
    let partly = document(client, "/v1/invoices", finals.clone());
    document(client, "/v1/invoices", finals.clone());
    let paid = document(client, "/v1/invoices", finals.clone());
    client.post(&format!("/v1/invoices/{partly}/payments"), json!({"amount": 21})).expect(201);
    client.post(&format!("/v1/invoices/{paid}/payments"), json!({"amount": 121})).expect(201);
    document(client, "/v1/invoices", owner.clone());
    document(client, "/v1/workorders", owner.clone());
    let quote = document(client, "/v1/quotes", last(finals.clone(), json!({"due_date": "2026-12-31"})));
    document(client, "/v1/quotes", last(finals.clone(), json!({"due_date": "2026-12-31"})));
    let letter = json!({"to": "a@ster.example", "subject": "Quote", "message": "Here it is."});
    client.post(&format!("/v1/quotes/{quote}/send"), letter).expect(200);
    let deal = json!({"title": "Oven", "client_id": owner["client_id"], "amount": 250.5});
    let followed = client.post("/v1/deals", deal.clone()).expect(201).id();
    client.post("/v1/deals", deal).expect(201);
    let task = json!({"title": "Call", "deal_id": followed, "deadline": "2026-05-12"});
    let task = client.post("/v1/tasks", task).expect(201).id();
    client.post("/v1/tasks", json!({"title": "Later", "deadline": "2026-06-12"})).expect(201);
    client.post("/v1/tasks", json!({"title": "Some day"})).expect(201);
    let ticket =
        client.post("/v1/tickets", json!({"subject": "Cold", "client_email": "a@ster.example"})).expect(201).id();
    let project = client.post("/v1/projects", json!({"name": "Oven"})).expect(201).id();
    let hours = format!("/v1/projects/{project}/hours");
    let hour = client.post(&hours, json!({"hours": 2})).expect(201).id();
    client.act(&format!("{hours}/{hour}/submit")).expect(200);
    let flow =
        json!({"name": "Ask", "trigger_type": "custom", "trigger_key": "ask.me", "steps": [{"type": "approval"}]});
    client.post("/v1/automation/flows", flow).expect(201);
    client.post("/v1/automation/trigger", json!({"event": "ask.me"})).expect(200);

    let subscription = |title: &str| {
        let body = json!({"title": title, "status": "draft", "lines": [{"title": "Hosting", "unit_price": 25}]});
        client.post("/v1/subscriptions", body).expect(201).id()
    };
    subscription("Going well");
    let stuck = subscription("Stuck");
    // An invoice of a negative amount asks its client for nothing.
    let rows = json!([{"name": "Refund", "quantity": 1, "unit_price": -50, "vat_rate": "21"}]);
    document(client, "/v1/invoices", last(finals.clone(), json!({"rows": rows})));
    Made { owner, partly, quote, task, ticket, stuck }
}

fn counts_what_needs_attention(server: Shared) {
    server.leaves_jobs();
    let client = server.client();
    for one in client.get("/v1/overview").expect(200).data().as_array().unwrap() {
        assert_eq!(one["count"], 0, "{one}");
        client.get(one["path"].as_str().unwrap()).expect(200);
    }
    let Made { owner, partly, quote, task, ticket, stuck } = make(&client);
    // The invoices are not due yet, and the drafts are new.
    assert_eq!(item(&client, "invoices_overdue"), json!({"count": 0, "amount": 0}));
    assert_eq!(item(&client, "invoice_drafts_old"), json!({"count": 0, "amount": 0}));
    client.post("/v1/test-clock/advance", json!({"to": "2026-05-12T10:00:00Z"})).expect(200);
    // What is not counted is in the same lists without their filters.
    document(&client, "/v1/invoices", owner.clone());
    document(&client, "/v1/workorders", owner.clone());
    let closed = client.post("/v1/tickets", json!({"subject": "Done"})).expect(201).id();
    client.patch(&format!("/v1/tickets/{closed}"), json!({"status": "Closed"})).expect(200);
    server.execute(&format!(
        "UPDATE subscriptions SET problem = CASE WHEN id = '{stuck}' THEN 'No tax rate.' ELSE '' END WHERE account_id = {}",
        client.account
    ));
    assert_eq!(item(&client, "invoices_overdue"), json!({"count": 2, "amount": 221}));
    assert_eq!(item(&client, "invoice_drafts_old"), json!({"count": 1, "amount": 121}));
    assert_eq!(item(&client, "quote_drafts_old"), json!({"count": 0, "amount": 0}));
    assert_eq!(item(&client, "workorder_drafts_old"), json!({"count": 1, "amount": 121}));
    assert_eq!(item(&client, "quotes_unanswered"), json!({"count": 1, "amount": 121}));
    assert_eq!(item(&client, "deals_without_task"), json!({"count": 1, "amount": 250.5, "mine": 0}));
    assert_eq!(item(&client, "tasks_due"), json!({"count": 1, "mine": 0}));
    assert_eq!(item(&client, "tickets_waiting"), json!({"count": 1, "mine": 0}));
    assert_eq!(item(&client, "hours_to_approve"), json!({"count": 1}));
    assert_eq!(item(&client, "runs_to_approve"), json!({"count": 1}));
    assert_eq!(item(&client, "mails_failed"), json!({"count": 0}));
    assert_eq!(item(&client, "subscriptions_with_problem"), json!({"count": 1}));

    // What is done no longer needs attention.
    client.act(&format!("/v1/tasks/{task}/complete")).expect(200);
    assert_eq!(item(&client, "tasks_due"), json!({"count": 0, "mine": 0}));
    assert_eq!(item(&client, "deals_without_task"), json!({"count": 2, "amount": 501, "mine": 0}));
    client.post(&format!("/v1/tickets/{ticket}/messages"), json!({"body": "Hot again?"})).expect(201);
    assert_eq!(item(&client, "tickets_waiting"), json!({"count": 0, "mine": 0}));
    client.post(&format!("/v1/tickets/{ticket}/messages/inbound"), json!({"body": "No."})).expect(201);
    assert_eq!(item(&client, "tickets_waiting"), json!({"count": 1, "mine": 0}));
    client.post(&format!("/v1/invoices/{partly}/payments"), json!({"amount": 100})).expect(201);
    assert_eq!(item(&client, "invoices_overdue"), json!({"count": 1, "amount": 121}));
    client.act(&format!("/v1/quotes/{quote}/accept")).expect(200);
    assert_eq!(item(&client, "quotes_unanswered"), json!({"count": 0, "amount": 0}));
    counts_mail_that_failed(&server, &client);
    asks_each_condition_either_way(&client);
}

/// Those of a month ago are not counted any more.
fn counts_mail_that_failed(server: &Office, client: &Client) {
    let now = server.now().0;
    let mail =
        format!("UPDATE deliveries SET status = 'failed', changed_at = {now} WHERE account_id = {}", client.account);
    server.execute(&mail);
    assert!(item(client, "mails_failed")["count"].as_i64().unwrap() > 0);
    // Those of long ago are only in the list of all that failed.
    let then = Moment::parse("2026-04-02T10:00:00Z").unwrap().0;
    server.execute(&format!("UPDATE deliveries SET changed_at = {then} WHERE account_id = {}", client.account));
    assert_eq!(item(client, "mails_failed"), json!({"count": 0}));
    assert!(!client.get("/v1/mails?status=failed").expect(200).data().as_array().unwrap().is_empty());
    client.get("/v1/mails?updated_from=today").expect(422);
}

fn asks_each_condition_either_way(client: &Client) {
    let total = |path: &str| client.get(path).expect(200).json()["meta"]["total"].as_i64().unwrap();
    for (path, condition) in [
        ("/v1/quotes", "sent"),
        ("/v1/invoices", "owed"),
        ("/v1/invoices", "outstanding"),
        ("/v1/invoices", "late"),
        ("/v1/tickets", "waiting"),
        ("/v1/deals", "without_task"),
        ("/v1/subscriptions", "has_problem"),
    ] {
        let parts = ["true", "false"].map(|value| total(&format!("{path}?{condition}={value}")));
        assert_eq!(parts[0] + parts[1], total(path), "{condition}");
        client.get(&format!("{path}?{condition}=maybe")).expect(422);
    }
}

fn shows_what_the_caller_may_read(server: Shared) {
    let client = server.client();
    let names = |scopes: &[&str]| -> Vec<String> {
        let data = server.with_scopes(&client, scopes).get("/v1/overview").expect(200).data();
        data.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(names(&["products.read"]), Vec::<String>::new());
    assert_eq!(names(&["tickets.read", "tasks.read"]), ["tickets_waiting", "tasks_due"]);
    assert_eq!(names(&["deals.read"]), ["deals_without_task"]);
    assert_eq!(names(&["*"]).len(), 12);
}

fn knows_what_is_mine(server: Shared) {
    let client = server.client();
    let (id, browser) = member(&client, "ina@a.example", "member");
    client.post("/v1/tickets", json!({"subject": "Mine", "assignee_id": id})).expect(201);
    client.post("/v1/tickets", json!({"subject": "Nobody's"})).expect(201);
    let data = browser.get("/console/v1/overview").expect(200).data();
    let tickets = data.as_array().unwrap().iter().find(|one| one["name"] == "tickets_waiting").unwrap();
    assert_eq!((&tickets["count"], &tickets["mine"]), (&json!(2), &json!(1)));
    assert_eq!(item(&client, "tickets_waiting"), json!({"count": 2, "mine": 0}));
}

fn what_is_being_collected_is_not_late(db: Db) {
    let server = Server::start(db);
    server.leaves_jobs();
    let client = server.client();
    let firm = firm(&client);
    let url = verify(&client, &firm).expect(201).data()["payment_url"].as_str().unwrap().to_string();
    assert_eq!(send_form(&client, &url, "status=paid").status, 303);
    let dates = json!({"client_id": firm, "invoice_date": "2026-05-04", "due_date": "2026-05-10", "generate": true});
    let invoice = format!("/v1/invoices/{}", document(&client, "/v1/invoices", dates));
    client.post(&format!("{invoice}/payments"), json!({"amount": 21})).expect(201);
    client.act(&format!("{invoice}/collect")).expect(201);
    work_off(&server);
    advance(&client, "2026-05-12T10:00:00Z");
    let total = |query: &str| client.get(&format!("/v1/invoices?{query}")).expect(200).json()["meta"]["total"].clone();
    let owed = || client.get(&format!("/v1/reports/clients?client_id={firm}")).expect(200).data()[0].clone();
    let not_due = || client.get("/v1/reports/open").expect(200).data()["ages"][0]["amount"].clone();
    assert_eq!(client.get(&invoice).data()["payment_status"], "partial");
    assert_eq!(item(&client, "invoices_overdue"), json!({"count": 0, "amount": 0}));
    assert_eq!((&owed()["open_amount"], &owed()["overdue_amount"]), (&json!(100), &json!(0)));
    assert_eq!(not_due(), 100);
    assert_eq!((total("collected=true"), total("collected=0")), (json!(1), json!(0)));
    assert_eq!((total("outstanding=true&late=false"), total("outstanding=true&late=true")), (json!(1), json!(0)));
    let refused = client.get("/v1/invoices?collected=2").expect(422);
    assert!(refused.text.contains("must be true or false, or 1 or 0"), "{refused:?}");
    // A collection that fails makes it late.
    let payments = client.get(&format!("{invoice}/payments")).expect(200).data();
    let pending = payments.as_array().unwrap().iter().find(|payment| payment["status"] == "pending").unwrap();
    let link = pending["meta"]["feedback_data"]["payment_url"].as_str().unwrap();
    assert_eq!(send_form(&client, link, "status=failed").status, 303);
    assert_eq!(item(&client, "invoices_overdue"), json!({"count": 1, "amount": 100}));
    assert_eq!((owed()["overdue_amount"].clone(), not_due()), (json!(100), json!(0)));
    assert_eq!((total("collected=true"), total("collected=false")), (json!(0), json!(1)));
    // One that is final after its due date is open for a while: the list shows it as well.
    let late = json!({"client_id": firm, "invoice_date": "2026-05-01", "due_date": "2026-05-10", "generate": true});
    let late = document(&client, "/v1/invoices", late);
    assert_eq!(client.get(&format!("/v1/invoices/{late}")).data()["payment_status"], "open");
    assert_eq!(item(&client, "invoices_overdue")["count"], 2);
    assert_eq!(total("late=true"), 2);
    // What is paid is not late, whenever it was due.
    client.post(&format!("/v1/invoices/{late}/payments"), json!({"amount": 121})).expect(201);
    assert_eq!((total("late=true"), total("late=false")), (json!(1), json!(1)));
}

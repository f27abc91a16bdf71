//! Clients and suppliers that go away: deleted, or merged into another one.

use serde_json::{Value, json};
use store::{Dialect, seen};

use crate::cli::{kantoor, said};
use crate::direct_debit::{mandate, send_form, verify};
use crate::on_both;
use crate::server::Binary;
use crate::support::{Client, Db, Server, Shared, execute};

on_both![
    a_client_that_nothing_needs_is_deleted,
    a_client_that_others_need_says_which,
    a_duplicate_is_merged,
    a_merge_takes_the_values_that_are_missing,
    a_merge_takes_effect_once,
    the_better_mandate_stays,
    links_of_companies_and_people_are_merged,
    suppliers_are_deleted_and_merged,
    a_duplicate_with_many_records_is_merged_in_steps,
    a_deleted_client_is_erased,
];

fn company(client: &Client, name: &str) -> String {
    client.post("/v1/clients", json!({"company_name": name, "email": "info@ster.example"})).expect(201).id()
}

fn person(client: &Client, name: &str) -> String {
    client.post("/v1/clients", json!({"type": "private", "lastname": name})).expect(201).id()
}

fn invoice(client: &Client, firm: &str, is_final: bool) -> String {
    let rows = json!([{"name": "Boiler", "unit_price": 100, "vat_code": "NL21"}]);
    let body = json!({"client_id": firm, "title": "Boiler", "rows": rows, "generate": is_final});
    client.post("/v1/invoices", body).expect(201).id()
}

fn get(client: &Client, path: &str, id: &str) -> Value {
    client.get(&format!("{path}/{id}")).expect(200).data()
}

fn merge(client: &Client, kept: &str, duplicate: &str) -> Value {
    client.post(&format!("/v1/clients/{kept}/merge"), json!({"duplicate_id": duplicate})).expect(200).data()
}

fn total(client: &Client, path: &str) -> i64 {
    client.get(path).expect(200).json()["meta"]["total"].as_i64().unwrap()
}

fn a_client_that_nothing_needs_is_deleted(server: Shared) {
    let client = server.client();
    client.patch("/v1/settings", json!({"provider": "manual"})).expect(200);
    let firm = company(&client, "De Ster");
    let anna = person(&client, "Anna");
    let draft = invoice(&client, &firm, false);
    let ticket = client.post("/v1/tickets", json!({"subject": "Cold", "client_id": firm})).expect(201).id();
    let task = client.post("/v1/tasks", json!({"title": "Call", "client_id": firm})).expect(201).id();
    let project = client.post("/v1/projects", json!({"name": "Oven", "client_id": firm})).expect(201).id();
    let note = client.post("/v1/notes", json!({"body": "Likes tea", "client_id": firm})).expect(201).id();
    let both = client
        .post("/v1/notes", json!({"body": "Measure first", "client_id": firm, "project_id": project}))
        .expect(201)
        .id();
    client.post(&format!("/v1/clients/{firm}/links"), json!({"client_id": anna})).expect(201);
    client.post(&format!("/v1/clients/{firm}/direct-debit/mandate"), json!({"mandate_id": "M-1"})).expect(201);
    let before = server.last_seq(&client);

    client.delete(&format!("/v1/clients/{firm}")).expect(204);
    assert_eq!(client.get(&format!("/v1/clients/{firm}")).expect(404).code(), "not_found");
    assert_eq!(client.delete(&format!("/v1/clients/{firm}")).status, 404);
    assert_eq!(total(&client, "/v1/clients"), 1);
    assert_eq!(total(&client, "/v1/clients?search=ster"), 0);
    // A draft loses its client, and will be printed without one.
    let shown = get(&client, "/v1/invoices", &draft);
    assert_eq!((&shown["client_id"], &shown["client_company_name"]), (&json!(""), &json!("")));
    assert_eq!(shown["meta"]["client_email"], "");
    assert_eq!(get(&client, "/v1/tickets", &ticket)["client_id"], Value::Null);
    assert_eq!(get(&client, "/v1/tasks", &task)["client_id"], "");
    assert_eq!(get(&client, "/v1/projects", &project)["client_id"], "");
    // A note about nothing else goes with the client.
    client.get(&format!("/v1/notes/{note}")).expect(404);
    assert_eq!(get(&client, "/v1/notes", &both)["meta"]["client_id"], "");
    // So do links and mandates.
    client.get(&format!("/v1/clients/{firm}/links")).expect(404);
    client.delete(&format!("/v1/clients/{anna}")).expect(204);
    let mut events = server.events(&client, before);
    events.sort();
    events.dedup();
    assert_eq!(
        events,
        [
            "customer.deleted",
            "invoice.updated",
            "link.deleted",
            "mandate.deleted",
            "note.deleted",
            "note.updated",
            "project.updated",
            "task.updated",
            "ticket.updated"
        ]
    );
    // What happened to it is still known.
    let history = client.get(&format!("/v1/clients/{firm}/history")).expect(200).data();
    assert_eq!(history[0]["type"], "customer.deleted");
}

fn a_client_that_others_need_says_which(server: Shared) {
    let client = server.client();
    let firm = company(&client, "De Ster");
    for is_final in [true, true, false] {
        invoice(&client, &firm, is_final);
    }
    let quote = json!({"client_id": firm, "title": "Oven", "rows": [{"name": "x", "unit_price": 1}], "generate": true});
    client.post("/v1/quotes", quote).expect(201);
    client.post("/v1/deals", json!({"title": "Oven", "client_id": firm})).expect(201);
    let plan = json!({"client_id": firm, "title": "Hosting", "subscription_start": "2027-01-01",
        "lines": [{"title": "x", "unit_price": 1}]});
    let subscription = client.post("/v1/subscriptions", plan).expect(201).id();
    let before = server.last_seq(&client);

    let path = format!("/v1/clients/{firm}");
    let refused = client.delete(&path).expect(409);
    assert_eq!(refused.code(), "in_use");
    let error = refused.json()["error"].clone();
    assert_eq!(
        error["message"],
        "This client is in use: 2 final invoices, 1 final quote, 1 subscription that has not ended, 1 deal."
    );
    let counts: Vec<(&str, i64)> = error["details"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["field"].as_str().unwrap(), one["count"].as_i64().unwrap()))
        .collect();
    assert_eq!(counts, [("invoices", 2), ("quotes", 1), ("subscriptions", 1), ("deals", 1)]);
    assert!(error["details"].as_array().unwrap().iter().all(|one| one["code"] == "in_use"));
    assert!(server.events(&client, before).is_empty(), "nothing changed");
    client.get(&path).expect(200);
    // A subscription that has ended without an invoice does not need it.
    client.act(&format!("/v1/subscriptions/{subscription}/deactivate")).expect(200);
    let refused = client.delete(&path).expect(409);
    assert!(!refused.text.contains("subscriptions"), "{}", refused.text);
    let stranger = server.client();
    stranger.delete(&path).expect(404);
    let reader = server.with_scopes(&client, &["relations.read"]);
    reader.delete(&path).expect(403);
}

fn a_duplicate_is_merged(server: Shared) {
    let client = server.client();
    let (kept, other) = (company(&client, "De Ster"), company(&client, "De Ster BV"));
    let (sent, draft) = (invoice(&client, &other, true), invoice(&client, &other, false));
    client.act(&format!("/v1/invoices/{sent}/finalize"));
    client.post(&format!("/v1/invoices/{sent}/payments"), json!({})).expect(201);
    let deal = client.post("/v1/deals", json!({"title": "Oven", "client_id": other})).expect(201).id();
    let ticket = client.post("/v1/tickets", json!({"subject": "Cold", "client_id": other})).expect(201).id();
    let note = client.post("/v1/notes", json!({"body": "Likes tea", "client_id": other})).expect(201).id();
    let plan = json!({"client_id": other, "title": "Hosting", "subscription_start": "2027-01-01",
        "lines": [{"title": "x", "unit_price": 1}]});
    let subscription = client.post("/v1/subscriptions", plan).expect(201).id();
    let before = server.last_seq(&client);

    let merged = merge(&client, &kept, &other);
    assert_eq!((&merged["id"], &merged["company_name"]), (&json!(kept), &json!("De Ster")));
    // A final document keeps its text; a draft will be printed for the client that it has now.
    let shown = get(&client, "/v1/invoices", &sent);
    assert_eq!((&shown["client_id"], &shown["client_company_name"]), (&json!(kept), &json!("De Ster BV")));
    assert_eq!(shown["meta"]["revision"], json!(2), "by the payment alone");
    let shown = get(&client, "/v1/invoices", &draft);
    assert_eq!((&shown["client_id"], &shown["client_company_name"]), (&json!(kept), &json!("De Ster")));
    for (path, id) in [("/v1/deals", &deal), ("/v1/tickets", &ticket), ("/v1/subscriptions", &subscription)] {
        assert_eq!(get(&client, path, id)["client_id"], json!(kept), "{path}");
    }
    assert_eq!(get(&client, "/v1/notes", &note)["meta"]["client_id"], json!(kept));
    assert_eq!(total(&client, &format!("/v1/invoices?client_id={kept}")), 2);
    assert_eq!(total(&client, "/v1/subscriptions?search=ster%20bv"), 0);
    // The duplicate says where it went, and so does the log.
    let gone = client.get(&format!("/v1/clients/{other}")).expect(404);
    assert_eq!((gone.code().as_str(), gone.header("location")), ("merged", format!("/v1/clients/{kept}").as_str()));
    assert!(gone.text.contains(&kept), "{}", gone.text);
    client.patch(&format!("/v1/clients/{other}"), json!({"city": "Utrecht"})).expect(404);
    let lines = client.get(&format!("/v1/changes?after={before}&limit=100")).expect(200).data();
    let of = |name: &str| lines.as_array().unwrap().iter().find(|line| line["type"] == name).unwrap().clone();
    let (deleted, merged) = (of("customer.deleted"), of("customer.merged"));
    assert_eq!((&deleted["entity_id"], &deleted["data"]["merged_into"]), (&json!(other), &json!(kept)));
    assert_eq!((&merged["entity_id"], &merged["data"]["merged_id"]), (&json!(kept), &json!(other)));
    // Its first payment was that of the duplicate.
    let again = invoice(&client, &kept, true);
    client.post(&format!("/v1/invoices/{again}/payments"), json!({})).expect(201);
    assert!(!server.events(&client, before).contains(&"customer.first_invoice_paid".to_string()));
    // One that was merged in turn leads to the last.
    let last = company(&client, "Sterren");
    merge(&client, &last, &kept);
    let gone = client.get(&format!("/v1/clients/{other}")).expect(404);
    assert_eq!(gone.header("location"), format!("/v1/clients/{last}"));
}

fn a_merge_takes_the_values_that_are_missing(server: Shared) {
    let client = server.client();
    for key in ["size", "colour"] {
        let body = json!({"entity": "client", "key": key, "label": key, "type": "text"});
        client.post("/v1/custom-fields", body).expect(201);
    }
    let kept =
        json!({"company_name": "De Ster", "city": "Utrecht", "payment_term": 30, "custom_fields": {"size": "L"}});
    let kept = client.post("/v1/clients", kept).expect(201).id();
    let other = json!({"company_name": "Ster", "email": "a@ster.example", "phone": "1", "address": "Dorpsstraat 1",
        "city": "Amsterdam", "iban": "NL91ABNA0417164300", "external_id": "crm-7", "payment_term": 60,
        "custom_fields": {"size": "S", "colour": "red"}});
    let other = client.post("/v1/clients", other).expect(201).id();
    let merged = merge(&client, &kept, &other);
    let shown = |name: &str| merged[name].as_str().unwrap().to_string();
    assert_eq!(
        (shown("company_name"), shown("email"), shown("phone")),
        ("De Ster".into(), "a@ster.example".into(), "1".into())
    );
    // An address is not mixed from two.
    assert_eq!((shown("address"), shown("city")), (String::new(), "Utrecht".to_string()));
    assert_eq!((shown("iban"), shown("debtor_number")), ("NL91ABNA0417164300".to_string(), "1".to_string()));
    assert_eq!((&merged["payment_term"], &merged["meta"]["external_id"]), (&json!(30), &json!("crm-7")));
    assert_eq!(merged["custom_fields"], json!({"size": "L", "colour": "red"}));
    assert_eq!(get(&client, "/v1/clients", &kept), merged);
    // Two references cannot both be kept.
    let third = client.post("/v1/clients", json!({"company_name": "Ster", "external_id": "crm-8"})).expect(201).id();
    let reply = client.post(&format!("/v1/clients/{kept}/merge"), json!({"duplicate_id": third})).expect(200);
    let warnings = reply.json()["meta"]["warnings"].clone();
    assert_eq!(warnings, json!(["The external_id 'crm-8' of the duplicate is no longer used."]));
    assert_eq!(reply.data()["meta"]["external_id"], "crm-7");
}

fn a_merge_takes_effect_once(server: Shared) {
    let client = server.client();
    let (kept, other) = (company(&client, "De Ster"), company(&client, "Ster"));
    let path = format!("/v1/clients/{kept}/merge");
    let body = json!({"duplicate_id": other}).to_string();
    let tag = client.get(&format!("/v1/clients/{kept}")).header("etag").to_string();
    client.send("POST", &path, &[("if-match", "\"99\"")], &body).expect(412);
    let key = [("idempotency-key", "merge-1"), ("if-match", tag.as_str())];
    let first = client.send("POST", &path, &key, &body).expect(200);
    let before = server.last_seq(&client);
    let again = client.send("POST", &path, &key, &body).expect(200);
    assert_eq!((again.header("x-idempotent-replay"), &again.text), ("true", &first.text));
    // Without the key as well: it is already merged.
    client.send("POST", &path, &[], &body).expect(200);
    assert!(server.events(&client, before).is_empty());

    let refused = |body: Value| client.post(&path, body).expect(422).faults();
    assert_eq!(refused(json!({"duplicate_id": kept})), ["duplicate_id: invalid_choice"]);
    assert_eq!(refused(json!({"duplicate_id": "nobody"})), ["duplicate_id: reference_not_found"]);
    assert_eq!(refused(json!({})), ["duplicate_id: required"]);
    assert_eq!(refused(json!({"duplicate_id": person(&client, "Anna")})), ["duplicate_id: invalid_choice"]);
    let theirs = company(&server.client(), "Ster");
    assert_eq!(refused(json!({"duplicate_id": theirs})), ["duplicate_id: reference_not_found"]);
    let body = json!({"duplicate_id": company(&client, "Ster")});
    client.post("/v1/clients/nobody/merge", body.clone()).expect(404);
    server.with_scopes(&client, &["relations.read"]).post(&path, body).expect(403);
}

fn the_better_mandate_stays(server: Shared) {
    let client = server.client();
    client.patch("/v1/settings", json!({"provider": "manual"})).expect(200);
    let sign = |firm: &str, name: &str| {
        let body = json!({"mandate_id": name, "signed_on": "2026-05-01"});
        client.post(&format!("/v1/clients/{firm}/direct-debit/mandate"), body).expect(201);
    };
    let (kept, other) = (company(&client, "De Ster"), company(&client, "Ster"));
    sign(&other, "M-2");
    merge(&client, &kept, &other);
    assert_eq!(mandate(&client, &kept)["mandate_id"], "M-2");
    let third = company(&client, "Ster");
    sign(&third, "M-3");
    merge(&client, &kept, &third);
    assert_eq!(mandate(&client, &kept)["mandate_id"], "M-2", "it can be used already");
    // One that was revoked is worth less than one that can be used.
    client.delete(&format!("/v1/clients/{kept}/direct-debit/mandate")).expect(204);
    let fourth = company(&client, "Ster");
    sign(&fourth, "M-4");
    merge(&client, &kept, &fourth);
    assert_eq!(
        (&mandate(&client, &kept)["mandate_id"], mandate(&client, &kept)["mandate_status"].clone()),
        (&json!("M-4"), json!("authorized"))
    );
    // A verification that is under way keeps a client, and continues with the other.
    let clocked = server.recorded_client(Some(engine::clock::Moment(1_777_888_800_000)));
    let (kept, other) = (company(&clocked, "De Ster"), company(&clocked, "Ster"));
    verify(&clocked, &other).expect(201);
    let refused = clocked.delete(&format!("/v1/clients/{other}")).expect(409);
    assert!(refused.text.contains("1 pending direct debit verification"), "{}", refused.text);
    merge(&clocked, &kept, &other);
    assert_eq!(mandate(&clocked, &kept)["mandate_status"], "pending");
    // One that was paid goes with its client.
    let page = verify(&clocked, &kept).expect(201).data()["payment_url"].as_str().unwrap().to_string();
    assert_eq!(send_form(&clocked, &page, "status=paid").status, 303);
    let before = server.last_seq(&clocked);
    clocked.delete(&format!("/v1/clients/{kept}")).expect(204);
    let events = server.events(&clocked, before);
    for name in ["mandate.deleted", "verification.deleted", "customer.deleted"] {
        assert!(events.iter().any(|event| event == name), "{name}: {events:?}");
    }
}

fn links_of_companies_and_people_are_merged(server: Shared) {
    let client = server.client();
    let (kept, other) = (company(&client, "De Ster"), company(&client, "Ster"));
    let (anna, bert, twin) = (person(&client, "Anna"), person(&client, "Bert"), person(&client, "Anna"));
    let link = |firm: &str, who: &str| {
        client.post(&format!("/v1/clients/{firm}/links"), json!({"client_id": who})).expect(201)
    };
    link(&kept, &anna);
    link(&other, &anna);
    link(&other, &bert);
    link(&kept, &twin);
    let linked = || -> Vec<String> {
        let links = client.get(&format!("/v1/clients/{kept}/links")).expect(200).data();
        links.as_array().unwrap().iter().map(|link| link["client_id"].as_str().unwrap().to_string()).collect()
    };
    let before = server.last_seq(&client);
    merge(&client, &kept, &other);
    assert!(server.events(&client, before).iter().any(|event| event == "link.updated"));
    let mut expected = vec![anna.clone(), bert.clone(), twin.clone()];
    let mut found = linked();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
    merge(&client, &anna, &twin);
    let mut expected = vec![anna, bert];
    let mut found = linked();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
}

fn suppliers_are_deleted_and_merged(server: Shared) {
    let client = server.client();
    let made = |name: &str, city: &str| {
        client.post("/v1/suppliers", json!({"company_name": name, "city": city})).expect(201).id()
    };
    let (kept, other) = (made("Molen", ""), made("De Molen", "Utrecht"));
    let before = server.last_seq(&client);
    let body = json!({"duplicate_id": other});
    let merged = client.post(&format!("/v1/suppliers/{kept}/merge"), body).expect(200).data();
    assert_eq!((&merged["company_name"], &merged["city"]), (&json!("Molen"), &json!("Utrecht")));
    assert_eq!(server.events(&client, before), ["supplier.deleted", "supplier.updated", "supplier.merged"]);
    assert_eq!(client.get(&format!("/v1/suppliers/{other}")).expect(404).code(), "merged");
    client.delete(&format!("/v1/suppliers/{kept}")).expect(204);
    assert_eq!(total(&client, "/v1/suppliers"), 0);
    // A client is no supplier.
    let (third, firm) = (made("Molen", ""), company(&client, "De Ster"));
    let refused = client.post(&format!("/v1/suppliers/{third}/merge"), json!({"duplicate_id": firm})).expect(422);
    assert_eq!(refused.faults(), ["duplicate_id: reference_not_found"]);
}

fn a_duplicate_with_many_records_is_merged_in_steps(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let (kept, other) = (company(&client, "De Ster"), company(&client, "Ster"));
    for _ in 0..150 {
        client.post("/v1/tasks", json!({"title": "Call", "client_id": other})).expect(201);
    }
    for _ in 0..20 {
        invoice(&client, &other, true);
    }
    let key = [("idempotency-key", "many")];
    let body = json!({"duplicate_id": other}).to_string();
    let path = format!("/v1/clients/{kept}/merge");
    seen::closures();
    client.send("POST", &path, &key, &body).expect(200);
    // Each record takes about four statements, and a transaction handles at most a hundred of a kind.
    let closures = seen::closures();
    let most = closures.iter().map(|closure| closure.statements).max().unwrap();
    assert!(closures.len() > 2 && most < 900, "{} transactions, of {most} statements", closures.len());
    assert_eq!(client.send("POST", &path, &key, &body).expect(200).header("x-idempotent-replay"), "true");
    assert_eq!(total(&client, &format!("/v1/tasks?client_id={kept}")), 150);
    assert_eq!(total(&client, &format!("/v1/invoices?client_id={kept}")), 20);
    assert_eq!(total(&client, "/v1/clients"), 1);
}

/// Each slice of a merge asks for more of the records. If most records of the account have the link, PostgreSQL must not read the
/// table, past those that were moved before.
#[test]
fn what_refers_to_a_duplicate_is_found_by_an_index() {
    let Some(db) = Db::postgres() else { return };
    let url = db.url.clone();
    let server = Server::start(db);
    let client = server.client();
    let (kept, other) = (company(&client, "De Ster"), company(&client, "Ster"));
    let task = client.post("/v1/tasks", json!({"title": "Call", "client_id": other})).expect(201).id();
    merge(&client, &kept, &other);
    let is_asked = |sql: &String| sql.starts_with("SELECT id FROM tasks ") && sql.contains("client_id");
    let asked: Vec<String> = seen::statements(Dialect::Postgres).into_iter().filter(is_asked).collect();
    assert!(!asked.is_empty());
    execute(
        &url,
        &format!(
            "INSERT INTO tasks SELECT (jsonb_populate_record(own, jsonb_build_object('id', 'x' || n))).*
             FROM tasks AS own, generate_series(1, 5000) AS n WHERE own.id = '{task}';
             ANALYZE tasks;"
        ),
    );
    let mut beside = postgres::Client::connect(&url, postgres::NoTls).unwrap();
    for sql in asked {
        let lines = beside.query(&format!("EXPLAIN {sql}"), &[&client.account, &kept]).unwrap();
        let plan: Vec<String> = lines.iter().map(|line| line.get(0)).collect();
        assert!(plan.iter().any(|line| line.contains("tasks_client")), "{sql}: {plan:#?}");
    }
}

fn a_deleted_client_is_erased(db: Db) {
    let mut binary = Binary::start(&db, "", &["--set", "workers=0"]);
    let client = &binary.client;
    let account = client.get("/v1/me").data()["account"]["id"].as_str().unwrap().to_string();
    let firm = client.post("/v1/clients", json!({"type": "private", "lastname": "Jansen"})).expect(201).id();
    let note = client.post("/v1/notes", json!({"body": "Jansen likes tea", "client_id": firm})).expect(201).id();
    let erase = |kind: &str, id: &str, more: &[&str]| {
        let done = kantoor(&db, &[&["erase", "--account", &account, kind, id], more].concat());
        (done.status.success(), said(&done) + &String::from_utf8_lossy(&done.stderr))
    };
    // It says why it would refuse, whether or not it is told to go ahead.
    for more in [&[][..], &["--yes"][..]] {
        let (done, words) = erase("client", &firm, more);
        assert!(!done && words.contains("only a record that was deleted can be erased"), "{words}");
    }
    client.delete(&format!("/v1/clients/{firm}")).expect(204);
    let (done, words) = erase("client", &firm, &[]);
    assert!(!done && words.contains("add --yes to do it"), "{words}");
    for (kind, id) in [("client", &firm), ("note", &note)] {
        let (done, words) = erase(kind, id, &["--yes"]);
        assert!(done, "{words}");
    }
    assert!(!client.get("/v1/changes?limit=1000").expect(200).text.contains("Jansen"));
    let _ = binary.child.kill();
    let _ = binary.child.wait();
    let done = kantoor(&db, &["verify"]);
    assert!(done.status.success(), "{} {}", said(&done), String::from_utf8_lossy(&done.stderr));
}

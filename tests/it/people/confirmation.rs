//! Dangerous actions ask for the password again, and links of the operator expire.

use serde_json::{Value, json};

use super::{Browser, PASSWORD, member, owner, token};
use crate::on_both;
use crate::support::{Db, Reply, Server};

on_both![
    dangerous_actions_ask_for_the_password_again,
    nobody_leads_payments_elsewhere_without_the_password,
    a_flow_is_no_way_around_the_password,
    a_fired_event_changes_no_other_type_of_record,
    a_sign_in_link_expires,
];

fn dangerous_actions_ask_for_the_password_again(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    let (id, _) = member(&client, "ina@a.example", "member");
    let hook = client.post("/v1/webhook-endpoints", json!({"url": "https://a.example/in"})).expect(201).id();
    let identity = client.get("/v1/corporate-identities").expect(200).data()[0]["id"].as_str().unwrap().to_string();
    client.patch(&format!("/v1/corporate-identities/{identity}"), json!({"iban": "NL91ABNA0417164300"})).expect(200);
    let identity = format!("/console/v1/corporate-identities/{identity}");
    let age = || server.rewrite("UPDATE sessions SET confirmed_at = confirmed_at - 901000");
    age();
    let user = format!("/console/v1/users/{id}");
    let flow = |kind: &str| {
        let step = json!({"type": "update", "entity_type": kind, "id": id, "fields": {"role": "owner"}});
        json!({"name": kind, "trigger_type": "custom", "trigger_key": "a.b", "steps": [step]})
    };
    let dangerous = [
        ("POST", "/console/v1/users".to_string(), json!({"email": "x@a.example", "name": "X"})),
        ("PATCH", user.clone(), json!({"role": "owner"})),
        ("PATCH", user.clone(), json!({"status": "suspended"})),
        ("POST", format!("{user}/remove-two-factor"), json!({})),
        ("PATCH", "/console/v1/settings".to_string(), json!({"mollie_key": "test_abcdefghijklmnopqrstuvwxyz1234"})),
        ("PATCH", "/console/v1/settings".to_string(), json!({"two_factor": "owners"})),
        ("POST", "/console/v1/webhook-endpoints".to_string(), json!({"url": "https://b.example/in"})),
        ("POST", format!("/console/v1/webhook-endpoints/{hook}/rotate-secret"), json!({})),
        ("PATCH", format!("/console/v1/webhook-endpoints/{hook}"), json!({"url": "https://c.example/in"})),
        ("POST", "/console/v1/api-keys".to_string(), json!({"name": "Shop", "scopes": ["products.read"]})),
        ("POST", "/console/v1/automation/flows".to_string(), flow("user")),
        ("POST", "/console/v1/automation/flows".to_string(), flow("{{ data.kind }}")),
        ("PATCH", identity.clone(), json!({"iban": "NL20INGB0001234567"})),
        ("POST", "/console/v1/corporate-identities".to_string(), json!({"name": "Mine", "is_default": true})),
        ("GET", "/console/v1/automation/signing-secret".to_string(), json!("")),
        ("POST", "/console/factors/app".to_string(), json!({})),
        ("POST", "/console/recovery-codes".to_string(), json!({})),
        ("POST", "/console/factors/remove".to_string(), json!({"id": "x"})),
        ("DELETE", user.clone(), json!({})),
    ];
    for (method, path, body) in &dangerous {
        let body = if *method == "DELETE" { String::new() } else { body.to_string() };
        let reply = browser.send(method, path, &body).expect(403);
        assert_eq!(reply.code(), "confirmation_required", "{method} {path}");
    }
    // Other changes are not asked for it.
    browser.send("PATCH", &user, &json!({"name": "Ina B."}).to_string()).expect(200);
    browser.send("PATCH", "/console/v1/settings", &json!({"payment_term": 30}).to_string()).expect(200);
    browser.send("PATCH", &identity, &json!({"city": "Utrecht"}).to_string()).expect(200);
    browser.post("/console/v1/products", json!({"name": "Tea"})).expect(201);
    assert_eq!(browser.get("/console/factors").data()["confirmed"], false);
    // Keys have no password.
    client.patch("/v1/settings", json!({"two_factor": "owners"})).expect(200);
    client.patch("/v1/settings", json!({"two_factor": "off"})).expect(200);

    browser.post("/console/confirm", json!({"password": "a wrong password"})).expect(403);
    browser.post("/console/confirm", json!({"password": PASSWORD})).expect(204);
    for (method, path, body) in dangerous.iter().filter(|(_, path, _)| !path.contains("recovery")) {
        let body = if *method == "DELETE" { String::new() } else { body.to_string() };
        let reply = browser.send(method, path, &body);
        assert!([200, 201, 204, 404].contains(&reply.status), "{method} {path}: {reply:?}");
        if body.contains("two_factor") {
            client.patch("/v1/settings", json!({"two_factor": "off"})).expect(200);
        }
    }
    // Switching to another account does not count as entering the password.
    age();
    let mut switched = browser.clone();
    switched.enter("/console/account", json!({"account_id": super::account(&server, &client).uid}));
    assert_eq!(switched.send("POST", "/console/factors/app", "").expect(403).code(), "confirmation_required");
    // Guesses count with those of signing in.
    for _ in 0..10 {
        switched.post("/console/confirm", json!({"password": "a wrong password"})).expect(403);
    }
    switched.post("/console/confirm", json!({"password": PASSWORD})).expect(429);
}

/// The first IBAN of an identity counts as well, and so do other words on documents.
fn nobody_leads_payments_elsewhere_without_the_password(db: Db) {
    const IBAN: &str = "NL20INGB0001234567";
    let server = Server::start(db);
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    let make = |name: &str, iban: &str| {
        client.post("/v1/corporate-identities", json!({"name": name, "iban": iban})).expect(201).id()
    };
    let (plain, unused, used) = (make("Plain", ""), make("Unused", IBAN), make("Used", IBAN));
    client.post("/v1/invoices", json!({"title": "Oven", "corporate_identity_id": used})).expect(201);
    client.post("/v1/quotes", json!({"title": "Oven", "corporate_identity_id": plain})).expect(201);
    let file = client.upload("x.csv", b"name,iban\nMine,NL20INGB0001234567\n").expect(201).id();
    let import = client.post("/v1/imports", json!({"resource": "corporate_identities", "file_id": file}));
    let import = format!("/console/v1/imports/{}/run", import.expect(201).id());
    server.rewrite("UPDATE sessions SET confirmed_at = confirmed_at - 901000");
    let change = |id: &str, body: Value| {
        browser.send("PATCH", &format!("/console/v1/corporate-identities/{id}"), &body.to_string())
    };
    let dangerous = || {
        [
            browser.post("/console/v1/corporate-identities", json!({"name": "Mine", "iban": IBAN})),
            change(&plain, json!({"iban": IBAN})),
            change(&unused, json!({"iban": "NL91ABNA0417164300"})),
            change(&used, json!({"footer": "Pay to NL91ABNA0417164300"})),
            change(&used, json!({"bic": "ABNANL2A"})),
            change(&used, json!({"name": "Somebody else"})),
            browser.post(&import, json!({})),
        ]
    };
    for (number, refused) in dangerous().into_iter().enumerate() {
        assert_eq!(refused.expect(403).code(), "confirmation_required", "{number}");
    }
    browser.post("/console/v1/corporate-identities", json!({"name": "Other"})).expect(201);
    change(&plain, json!({"footer": "Thank you"})).expect(200);
    change(&unused, json!({"footer": "Thank you"})).expect(200);
    change(&used, json!({"primary_color": "#112233"})).expect(200);
    change(&used, json!({"name": "Used"})).expect(200);
    // Keys have no password.
    client.patch(&format!("/v1/corporate-identities/{used}"), json!({"phone": "+31 10 123 45 67"})).expect(200);
    browser.post("/console/confirm", json!({"password": PASSWORD})).expect(204);
    for (number, done) in dangerous().into_iter().enumerate() {
        assert!([200, 201].contains(&done.status), "{number}: {done:?}");
    }
}

/// Neither a step whose type of record is chosen when its event is fired, nor one that enables another flow.
fn a_flow_is_no_way_around_the_password(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    let flow = |kind: &str, key: &str, step: Value| json!({"name": key, "trigger_type": kind, "trigger_key": key, "active": false, "steps": [step]});
    let update = |fields: Value| json!({"type": "update", "fields": fields});
    // Flows of somebody else, which are disabled.
    let call = flow("custom", "a.call", json!({"type": "http", "url": "https://a.example/in"}));
    let call = client.post("/v1/automation/flows", call).expect(201).id();
    let open = flow("custom", "a.open", update(json!({"role": "owner"})));
    let open = client.post("/v1/automation/flows", open).expect(201).id();
    server.rewrite("UPDATE sessions SET confirmed_at = confirmed_at - 901000");

    let path = "/console/v1/automation/flows";
    for harmless in [
        flow("custom", "a.b", json!({"type": "approval"})),
        flow("custom", "a.b", json!({"type": "update", "entity_type": "task", "id": "x", "fields": {"title": "x"}})),
        flow("event", "invoice.paid", update(json!({"title": "x"}))),
        flow("event", "sales.document_sent", update(json!({"title": "x"}))),
    ] {
        browser.post(path, harmless).expect(201);
    }
    let own = browser.post(path, flow("custom", "a.b", json!({"type": "approval"}))).expect(201).id();
    let enables = json!({"type": "update", "entity_type": "flow", "id": call, "fields": {"active": true}});
    let dangerous = [
        flow("custom", "a.iban", update(json!({"iban": "NL69INGB0123456789"}))),
        flow("custom", "a.role", update(json!({"role": "owner"}))),
        flow("custom", "a.key", update(json!({"allowed_networks": []}))),
        flow("custom", "product.sneak", update(json!({"name": "x"}))),
        flow("event", "work.recurring", update(json!({"iban": "NL69INGB0123456789"}))),
        flow("event", "flow.created", update(json!({"active": true}))),
        flow("custom", "a.enable", enables),
    ];
    let refused = |reply: Reply, what: &Value| {
        assert_eq!(reply.expect(403).code(), "confirmation_required", "{what}");
    };
    for body in &dangerous {
        refused(browser.post(path, body.clone()), body);
        refused(browser.send("PUT", &format!("{path}/{own}"), &body.to_string()), body);
    }
    for id in [&call, &open] {
        refused(browser.send("PATCH", &format!("{path}/{id}"), &json!({"active": true}).to_string()), &json!(id));
        refused(browser.send("POST", &format!("{path}/{id}/adopt"), ""), &json!(id));
    }
    browser.post("/console/confirm", json!({"password": PASSWORD})).expect(204);
    for body in dangerous {
        browser.post(path, body).expect(201);
    }
}

/// What was harmless when the flow was saved stays harmless, whatever its event is fired about.
fn a_fired_event_changes_no_other_type_of_record(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    let product = client.post("/v1/products", json!({"name": "Tea"})).expect(201).id();
    let identity = client.get("/v1/corporate-identities").expect(200).data()[0].clone();
    server.rewrite("UPDATE sessions SET confirmed_at = confirmed_at - 901000");
    let steps = json!([{"type": "update", "fields": {"name": "Mine"}}]);
    let flow = json!({"name": "x", "trigger_type": "event", "trigger_key": "product.updated", "steps": steps});
    let flow = browser.post("/console/v1/automation/flows", flow).expect(201).id();
    for (kind, id, ends) in [
        ("corporate_identity", identity["id"].as_str().unwrap(), "failed"),
        ("product", product.as_str(), "success"),
        ("", product.as_str(), "success"),
    ] {
        let event = json!({"event": "product.updated", "entity_type": kind, "data": {"id": id}});
        let fired = browser.post("/console/v1/automation/trigger", event).expect(200).data();
        server.automate(&client);
        let run = client.get(&format!("/v1/automation/runs/{}", fired["runs"][0]["run_id"].as_str().unwrap()));
        let run = run.expect(200).data();
        assert_eq!(run["status"], ends, "{kind}: {run}");
        let told = run["error"].as_str().unwrap().contains("is never about a record of the type 'corporate_identity'");
        assert_eq!(told, ends == "failed", "{kind}: {run}");
    }
    let path = format!("/v1/corporate-identities/{}", identity["id"].as_str().unwrap());
    assert_eq!(client.get(&path).expect(200).data()["name"], identity["name"]);
    assert_eq!(client.get(&format!("/v1/products/{product}")).expect(200).data()["name"], "Mine");
    client.delete(&format!("/v1/automation/flows/{flow}")).expect(204);
}

fn a_sign_in_link_expires(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    owner(&server, &client, "olga@a.example");
    let new = || token(&kantoor::people::operator::sign_in_link(&server.app, "olga@a.example").unwrap());
    let enter = |token: &str| Browser::new(&client).post("/console/sign-in-link", json!({"token": token}));
    let (first, second) = (new(), new());
    assert!(enter(&first).expect(409).text.contains("replaced by a newer one"));
    server.rewrite("UPDATE one_time_tokens SET expires_at = expires_at - 899000 WHERE used_at = 0");
    enter(&second).expect(200);
    let third = new();
    server.rewrite("UPDATE one_time_tokens SET expires_at = expires_at - 900000 WHERE used_at = 0");
    let expired = enter(&third).expect(409);
    assert!(expired.text.contains("has expired. Run `kantoor user sign-in-link` on the server"), "{}", expired.text);
    let (id, _) = member(&client, "ina@a.example", "owner");
    let link = token(&kantoor::people::operator::sign_in_link(&server.app, "ina@a.example").unwrap());
    client.patch(&format!("/v1/users/{id}"), json!({"status": "suspended"})).expect(200);
    assert_eq!(enter(&link).expect(403).code(), "user_suspended");
    for bad in ["", "x", &"0".repeat(64)] {
        assert!([409, 422].contains(&enter(bad).status));
    }
}

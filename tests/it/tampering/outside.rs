//! Records that give access or say where money goes, changed with SQL and then by the program.

use serde_json::{Value, json};

use super::{saved, spoil, stop, verify};
use crate::cli::kantoor;
use crate::failover::until;
use crate::on_both;
use crate::people::{Browser, PASSWORD, commands, token};
use crate::server::Binary;
use crate::support::{Client, Db};

on_both![
    a_change_outside_the_log_is_not_taken_over,
    the_operator_accepts_what_was_added_and_deleted,
    what_cannot_be_read_is_named_and_the_rest_accepted,
    flows_and_webhooks_receive_what_the_operator_accepted,
];

/// What somebody does to the record of a path, how the program changes it then, and the event and the difference.
struct Harm {
    sql: &'static str,
    path: String,
    change: Value,
    event: &'static str,
    what: &'static str,
}

fn harms(client: &Client) -> Vec<Harm> {
    let add = |path: &str, body: Value| format!("{path}/{}", client.post(path, body).expect(201).id());
    let key = add("/v1/api-keys", json!({"name": "Shop", "scopes": ["products.read"]}));
    let endpoint = add("/v1/webhook-endpoints", json!({"url": "http://127.0.0.1:9/hook", "events": ["invoice.paid"]}));
    let flow = json!({"name": "Ask", "trigger_type": "custom", "trigger_key": "x", "active": false,
                      "steps": [{"type": "create_task", "title": "Ask"}]});
    let flow = add("/v1/automation/flows", flow);
    let domain = add("/v1/email-domains", json!({"domain": "jansen.example"}));
    let identity = client.get("/v1/corporate-identities").expect(200).data()[0]["id"].as_str().unwrap().to_string();
    let identity = format!("/v1/corporate-identities/{identity}");
    client.patch(&identity, json!({"iban": "NL91ABNA0417164300"})).expect(200);
    let collecting = json!({"payment_term": 30, "provider": "manual", "creditor_id": "NL69ZZZ123456780000"});
    client.patch("/v1/settings", collecting).expect(200);
    let firm = json!({"type": "company", "company_name": "De Ster", "iban": "NL91ABNA0417164300"});
    let mandate = format!("{}/direct-debit/mandate", add("/v1/clients", firm));
    client.post(&mandate, json!({"mandate_id": "M-1", "signed_on": "2026-05-01"})).expect(201);
    let harm = |sql, path: &str, change, event, what| Harm { sql, path: path.to_string(), change, event, what };
    vec![
        harm(
            "UPDATE keys SET scopes = 'products.read,products.write' WHERE name = 'Shop'",
            &key,
            json!({"name": "Webshop"}),
            "api_key.changed_outside",
            "Its scopes were widened outside the log: scopes is [\"products.read\",\"products.write\"]",
        ),
        harm(
            "UPDATE webhook_endpoints SET url = 'http://127.0.0.1:10/mine'",
            &endpoint,
            json!({"events": ["invoice.sent"]}),
            "webhook_endpoint.changed_outside",
            "url is \"http://127.0.0.1:10/mine\", but the last line of the log says \"http://127.0.0.1:9/hook\"",
        ),
        harm(
            "UPDATE flows SET description = 'Steal' WHERE name = 'Ask'",
            &flow,
            json!({"active": true}),
            "flow.changed_outside",
            "description is \"Steal\", but the last line of the log says \"\"",
        ),
        harm(
            "UPDATE email_domains SET status = 'verified'",
            &domain,
            json!({"type": "receiving"}),
            "email_domain.changed_outside",
            "status is \"verified\", but the last line of the log says \"pending\"",
        ),
        harm(
            "UPDATE mandates SET mandate_id = 'M-2'",
            &mandate,
            Value::Null,
            "mandate.changed_outside",
            "Changed outside the log: mandate_id is ",
        ),
        harm(
            "UPDATE corporate_identities SET iban = 'NL20INGB0001234567'",
            &identity,
            json!({"city": "Utrecht"}),
            "corporate_identity.changed_outside",
            "iban is \"NL20INGB0001234567\", but the last line of the log says \"NL91ABNA0417164300\"",
        ),
        harm(
            "UPDATE settings SET payment_term = 60",
            "/v1/settings",
            json!({"quote_silent_days": 9}),
            "settings.changed_outside",
            "payment_term is 60, but the last line of the log says 30",
        ),
    ]
}

/// A line has the whole record, so the next one would make the change look like any other.
fn a_change_outside_the_log_is_not_taken_over(db: Db) {
    let mut binary = Binary::start(&db, "", &["--set", "workers=0", "--set", "allow_private_addresses=127.0.0.0/8"]);
    let link = token(&commands::link(&binary.said()));
    let owner = json!({"token": link, "email": "o@a.example", "name": "O", "business": "Ster", "password": PASSWORD});
    Browser::new(&binary.client).enter("/console/set-up", owner);
    let client = &binary.client;
    let all = harms(client);
    for Harm { sql, path, change, event, what } in &all {
        spoil(&db, sql);
        if change.is_null() {
            client.delete(path).expect(204);
        } else {
            client.patch(path, change.clone()).expect(200);
        }
        let told = client.get(&format!("/v1/changes?type={event}")).expect(200).data();
        let difference = told[0]["data"]["difference"].as_str().unwrap_or_default();
        assert!(told.as_array().unwrap().len() == 1 && difference.contains(what), "{event}: {told}");
    }
    spoil(&db, "UPDATE users SET role = 'reader'");
    let mut browser = Browser::new(client);
    browser.enter("/console/sign-in", json!({"email": "o@a.example", "password": PASSWORD}));
    let told = client.get("/v1/changes?type=user.changed_outside").expect(200).data();
    assert_eq!(told.as_array().unwrap().len(), 1, "{told}");
    stop(&mut binary);

    let (good, words) = verify(&db, &[]);
    let role = "role is \"reader\", but the last line of the log says \"owner\"";
    let named = all.iter().map(|harm| harm.what).chain([role]);
    assert!(!good && named.clone().all(|name| words.contains(name)), "{words}");
    assert_eq!(words.matches("recorded it").count(), named.count(), "{words}");
    // Also what the program has not come across.
    spoil(&db, "UPDATE corporate_identities SET city = 'Breda', iban = 'NL02ABNA0123456789'");
    let (_, words) = verify(&db, &[]);
    let both = ["city is \"Breda\"", "iban is \"NL02ABNA0123456789\""];
    assert!(both.iter().all(|field| words.contains(field)), "{words}");
    assert!(kantoor(&db, &["secrets", "trust"]).status.success());
    let (good, words) = verify(&db, &[]);
    assert!(good, "the operator accepted it: {words}");
}

/// Records, their counts and search texts, and the definitions that runs follow.
fn the_operator_accepts_what_was_added_and_deleted(db: Db) {
    let mut binary = Binary::start(&db, "", &["--set", "workers=0", "--set", "allow_private_addresses=127.0.0.0/8"]);
    let client = &binary.client;
    let all = harms(client);
    let flow = all.iter().find(|harm| harm.event == "flow.changed_outside").map(|harm| &harm.path).unwrap();
    // The author of the record and of the definition are then not the same.
    spoil(&db, "UPDATE flows SET author_type = 'operator', author_id = ''");
    client.patch(flow, json!({"active": true})).expect(200);
    let told = client.get("/v1/changes?type=flow.changed_outside").expect(200).data();
    let by = ["operator", "outside Kantoor"];
    assert_eq!([&told[0]["actor_type"], &told[0]["actor_name"]], by, "nobody who uses the program did: {told}");
    stop(&mut binary);
    let (_, words) = verify(&db, &[]);
    assert!(!words.contains("flow_definitions"), "the program wrote both: {words}");

    spoil(&db, "DELETE FROM webhook_endpoints");
    spoil(&db, "UPDATE flows SET definition_version = 0");
    spoil(&db, "UPDATE corporate_identities SET name = 'Somebody else'");
    spoil(&db, "UPDATE flow_definitions SET definition = '[]'");
    spoil(
        &db,
        "INSERT INTO flow_definitions (account_id, flow_id, version, definition, author_type, author_id)
                SELECT account_id, flow_id, 9, '[]', author_type, author_id FROM flow_definitions",
    );
    let (good, words) = verify(&db, &[]);
    let named = [
        "Deleted outside the log",
        "The stored count of webhook_endpoints is 1, but there are 0",
        "its definition is not the one that was saved",
        "Version 9 of the flow was created outside the log",
    ];
    assert!(!good && named.iter().all(|name| words.contains(name)), "{words}");
    trust(&db);
    let (good, words) = verify(&db, &[]);
    assert!(good, "the operator accepted it: {words}");

    spoil(&db, "DELETE FROM flow_definitions");
    let mut binary = Binary::start(&db, "", &[]);
    binary.client.post("/v1/automation/trigger", json!({"event": "x"})).expect(200);
    until("a word about it", || binary.said().contains("it is missing"));
    let run = binary.client.get("/v1/automation/runs").data()[0].clone();
    assert_ne!(run["status"], "success", "it waits until the definition is there: {run}");
    stop(&mut binary);
    assert!(verify(&db, &[]).1.contains("The definition of the flow was deleted outside the log"));
    trust(&db);
    let (good, words) = verify(&db, &[]);
    assert!(good, "the definition is there again: {words}");
    let binary = Binary::start(&db, "", &["--set", "workers=0", "--set", "allow_private_addresses=127.0.0.0/8"]);
    let steps = json!([{"type": "create_task", "title": "Ask again"}]);
    let whole = json!({"name": "Ask", "trigger_type": "custom", "trigger_key": "x", "steps": steps});
    binary.client.send("PUT", flow, &[], &whole.to_string()).expect(200);
    let told = binary.client.get("/v1/changes?type=webhook_endpoint.changed_outside").expect(200).data();
    assert_eq!(told[0]["data"]["deleted"], true, "{told}");
}

fn trust(db: &Db) {
    let out = kantoor(db, &["secrets", "trust"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

/// One damaged record does not keep the operator from accepting the others.
fn what_cannot_be_read_is_named_and_the_rest_accepted(db: Db) {
    let mut binary = Binary::start(&db, "", &["--set", "workers=0", "--set", "allow_private_addresses=127.0.0.0/8"]);
    let key = binary.client.key.clone();
    let all = harms(&binary.client);
    let path = |event: &str| all.iter().find(|harm| harm.event == event).map(|harm| harm.path.clone()).unwrap();
    let (flow, identity) = (path("flow.changed_outside"), path("corporate_identity.changed_outside"));
    let id = flow.rsplit('/').next().unwrap();
    stop(&mut binary);
    let (keep, restore) = saved(&["flows", "keys"]);
    spoil(&db, &keep);
    spoil(&db, "UPDATE flows SET definition = '[{' WHERE name = 'Ask'");
    spoil(&db, "UPDATE keys SET created_at = 9223372036854775807 WHERE name = 'Shop'");
    spoil(&db, "UPDATE corporate_identities SET city = 'Breda'");
    let out = kantoor(&db, &["secrets", "trust"]);
    let (words, wrong) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(!out.status.success() && words.contains("accepted as they are"), "{words}{wrong}");
    let named =
        [format!("flows  {id}  Column definition cannot be read: it is not a JSON object"), "keys  ".to_string()];
    assert!(named.iter().all(|name| wrong.contains(name)), "{wrong}");
    let (good, words) = verify(&db, &[]);
    assert!(!good && words.matches("PROBLEM").count() == 2, "only those are left: {words}");

    let mut binary = Binary::start(&db, &key, &["--set", "workers=0", "--set", "allow_private_addresses=127.0.0.0/8"]);
    let client = &binary.client;
    let told = client.get("/v1/changes?type=corporate_identity.changed_outside").expect(200).data();
    assert_eq!(told[0]["data"]["meta"]["city"], "Breda", "{told}");
    client.patch(&identity, json!({"city": "Tilburg"})).expect(200);
    let whole = json!({"name": "Ask", "trigger_type": "custom", "trigger_key": "x",
                       "steps": [{"type": "create_task", "title": "Ask"}]});
    for reply in [
        client.get(&flow),
        client.get("/v1/automation/flows"),
        client.patch(&flow, json!({"active": true})),
        client.send("PUT", &flow, &[], &whole.to_string()),
        client.delete(&flow),
        client.get("/v1/api-keys"),
    ] {
        let reply = reply.expect(409);
        assert_eq!(reply.code(), "unreadable");
        assert!(reply.text.contains("kantoor verify"), "{}", reply.text);
    }
    assert!(client.get(&flow).text.contains(&format!("The column 'definition' of flows {id} cannot be read")));
    stop(&mut binary);
    spoil(&db, &restore);
    trust(&db);
    let (good, words) = verify(&db, &[]);
    assert!(good, "the operator accepted it: {words}");
}

/// The events show what the API shows, and that nobody who uses the program did it.
fn flows_and_webhooks_receive_what_the_operator_accepted(db: Db) {
    let receiver = web::scripted::Scripted::start(|_| web::scripted::Reply::new(204)).unwrap();
    let settings = ["--set", "allow_private_addresses=127.0.0.0/8"];
    let mut binary = Binary::start(&db, "", &settings);
    let (client, secret) = (&binary.client, binary.client.key.clone());
    client.post("/v1/webhook-endpoints", json!({"url": receiver.url("/in"), "events": ["*"]})).expect(201);
    client.patch("/v1/settings", json!({"mollie_key": "live_verysecret", "payment_term": 30})).expect(200);
    let key = client.post("/v1/api-keys", json!({"name": "Shop", "scopes": ["products.read"]})).expect(201).id();
    for event in ["settings.changed_outside", "api_key.changed_outside"] {
        let seen = "{{ data.difference }} {{ data }}";
        let flow = json!({"name": event, "trigger_type": "event", "trigger_key": event,
                          "steps": [{"type": "create_task", "title": event, "notes": seen}]});
        client.post("/v1/automation/flows", flow).expect(201);
    }
    stop(&mut binary);
    spoil(&db, "UPDATE settings SET payment_term = 60, mollie_key = 'live_other'");
    spoil(&db, "UPDATE keys SET scopes = '*' WHERE name = 'Shop'");
    trust(&db);
    let mut binary = Binary::start(&db, &secret, &settings);
    let told = || -> Vec<Value> {
        let all = receiver.received().into_iter().map(|one| serde_json::from_slice::<Value>(&one.body).unwrap());
        all.filter(|one| one["type"].as_str().unwrap().ends_with("changed_outside")).collect()
    };
    until("both events", || told().len() >= 2);
    let mut names: Vec<String> = told().iter().map(|one| one["type"].as_str().unwrap().to_string()).collect();
    names.sort();
    assert_eq!(names, ["api_key.changed_outside", "settings.changed_outside"]);
    for event in told() {
        assert_eq!(
            (&event["actor_type"], &event["actor_name"]),
            (&json!("operator"), &json!("outside Kantoor")),
            "{event}"
        );
        let members = event["data"].as_object().unwrap();
        for hidden in ["hidden", "hash", "mollie_key", "secret"] {
            assert!(!members.contains_key(hidden), "{hidden}: {event}");
        }
        assert!(members["difference"].as_str().unwrap().contains("outside the log"), "{event}");
    }
    let is_told = |body: &[u8]| String::from_utf8_lossy(body).contains("account.database_trusted");
    until("the event of the operator", || receiver.received().iter().any(|one| is_told(&one.body)));
    until("both tasks", || binary.client.get("/v1/tasks").json()["meta"]["total"] == 2);
    for task in binary.client.get("/v1/tasks").data().as_array().unwrap() {
        let id = task["id"].as_str().unwrap();
        let task = binary.client.get(&format!("/v1/tasks/{id}")).data();
        let notes = task["notes"].as_str().unwrap();
        assert!(notes.contains("outside the log") && !notes.contains("hash") && !notes.contains("live_very"), "{task}");
        assert!(!notes.contains("enc:") && !notes.contains("live_other"), "{task}");
    }
    let history = binary.client.get(&format!("/v1/api-keys/{key}/history")).expect(200);
    assert!(!history.text.contains("\"hash\""), "{}", history.text);
    stop(&mut binary);
    let (good, words) = verify(&db, &[]);
    assert!(good, "{words}");
}

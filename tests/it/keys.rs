//! API keys: creating, changing, rotating and revoking them.

mod limits;

use std::time::{Duration, Instant};

use engine::accounts::{Key, NewKey};
use kantoor::keys::operator;
use serde_json::{Value, json};

use crate::cli::{kantoor, said};
use crate::on_both;
use crate::people::{account, member, owner};
use crate::server::Binary;
use crate::support::{Client, Db, Reply, Server, Shared};

on_both![
    a_key_is_shown_once_and_every_change_is_logged,
    invalid_fields_are_named,
    a_rotated_secret_works_until_the_end_of_its_overlap,
    a_revoked_key_stops_within_a_second_on_every_node,
    the_last_use_is_recorded_without_a_write_per_request,
    a_replay_shows_the_secret_to_its_own_caller_only,
    a_key_without_a_log_line_is_not_accepted,
    commands_are_logged_as_the_operator,
    the_caller_is_described,
    keys_are_listed_in_order,
    old_secrets_are_pruned,
];

/// Creates a key; returns its id and a client that uses it.
#[track_caller]
fn create(client: &Client, body: Value) -> (String, Client) {
    let made = client.post("/v1/api-keys", body).expect(201);
    (made.id(), with_secret(client, &made))
}

fn with_secret(client: &Client, made: &Reply) -> Client {
    Client { key: made.data()["secret"].as_str().unwrap().to_string(), ..client.clone() }
}

/// Returns type, actor and data of the account's log lines about keys.
fn lines(server: &Server, client: &Client) -> Vec<(String, String, Value)> {
    let account = client.account;
    let sql = "SELECT type, actor, data FROM log WHERE account_id = $1 AND entity_type = 'api_key' ORDER BY seq";
    let read = move |tx: &mut store::Tx| {
        tx.all(sql, &[account.into()], |row| {
            let data = serde_json::from_str(row.text(2)?).unwrap();
            Ok::<_, store::Error>((row.text(0)?.to_string(), row.text(1)?.to_string(), data))
        })
    };
    server.app.store.read_now(read).unwrap()
}

/// Waits until the key cache has read the keys again.
fn a_second_later() {
    std::thread::sleep(Duration::from_millis(1050));
}

fn a_key_is_shown_once_and_every_change_is_logged(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let body = json!({
        "name": "Website", "scopes": ["products.read", "tasks.write"], "allowed_networks": ["127.0.0.0/8", "::1"],
        "expires_at": "2099-01-01T00:00:00Z",
    });
    let made = client.post("/v1/api-keys", body).expect(201);
    let data = made.data();
    let secret = data["secret"].as_str().unwrap().to_string();
    assert!(secret.starts_with("kt_") && secret.len() == 39 && secret.starts_with(data["hint"].as_str().unwrap()));
    assert_eq!(
        (&data["name"], &data["scopes"], &data["allowed_networks"], &data["expires_at"], &data["last_used_at"]),
        (
            &json!("Website"),
            &json!(["products.read", "tasks.write"]),
            &json!(["127.0.0.0/8", "::1"]),
            &json!("2099-01-01T00:00:00.000Z"),
            &json!(null)
        )
    );
    let key = with_secret(&client, &made);
    key.get("/v1/products").expect(200);
    key.post("/v1/tasks", json!({"title": "Call"})).expect(201);
    assert!(key.get("/v1/tasks").expect(403).text.contains("'tasks.read'"));
    let path = made.header("location").to_string();
    assert_eq!(path, format!("/v1/api-keys/{}", made.id()));
    let renamed = client.patch(&path, json!({"name": "Shop", "expires_at": null})).expect(200);
    assert_eq!((&renamed.data()["name"], &renamed.data()["expires_at"]), (&json!("Shop"), &json!(null)));
    let rotated = client.act(&format!("{path}/rotate")).expect(200);
    let revoked = client.act(&format!("{path}/revoke")).expect(200);
    assert!(revoked.data()["revoked_at"].is_string());
    assert_eq!(client.act(&format!("{path}/revoke")).expect(200).data(), revoked.data(), "once");
    for refused in [client.patch(&path, json!({"name": "x"})), client.act(&format!("{path}/rotate"))] {
        assert_eq!(refused.expect(409).code(), "invalid_transition");
    }
    for text in [renamed.text, revoked.text, client.get(&path).expect(200).text, client.get("/v1/api-keys").text] {
        assert!(!text.contains("\"secret\"") && !text.contains("\"hash\"") && !text.contains("kt_0\""), "{text}");
    }
    assert_eq!(client.get("/v1/api-keys").json()["meta"]["total"], 2, "and the first key");

    let lines = lines(&server, &client);
    let names: Vec<&str> = lines.iter().map(|(name, ..)| name.as_str()).collect();
    let expected = ["api_key.created", "api_key.created", "api_key.updated", "api_key.rotated", "api_key.revoked"];
    assert_eq!(names, expected);
    let own = client.get("/v1/me").data()["key"]["id"].clone();
    assert_eq!(lines[0].1, "operator");
    assert!(lines[1..].iter().all(|(_, actor, _)| *actor == own), "{lines:?}");
    assert_eq!(lines[1].2["scopes"], json!(["products.read", "tasks.write"]));
    assert_eq!(lines[1].2["allowed_networks"], json!(["127.0.0.0/8", "::1"]));
    let all = format!("{lines:?}");
    let new = rotated.data()["secret"].as_str().unwrap().to_string();
    assert!(!all.contains(&secret) && !all.contains(&new), "{all}");
    let hash = |secret: &str| engine::contents::hex(&engine::accounts::hash(secret));
    assert!(!all.contains(&hash(&secret)) && !all.contains(&hash(&new)), "only a digest of it: {all}");
    assert!(lines.iter().all(|(.., data)| data["hidden"]["hash"].as_str().unwrap().len() == 64), "{all}");
    assert_ne!(lines[1].2["hidden"]["hash"], lines[3].2["hidden"]["hash"], "rotated");
}

fn invalid_fields_are_named(server: Shared) {
    let client = server.client();
    let faults = |body: Value| client.post("/v1/api-keys", body).expect(422).faults();
    assert_eq!(faults(json!({})), ["name: required", "scopes: required"]);
    assert_eq!(faults(json!({"name": "x", "scopes": []})), ["scopes: required"]);
    assert_eq!(faults(json!({"name": "x", "scopes": ["a.b"]})), ["scopes: invalid_choice"]);
    let networks = |network: &str| json!({"name": "x", "scopes": ["*"], "allowed_networks": [network]});
    for wrong in ["10.0.0.1/8", "10.0.0.0/33", "host", "::/129"] {
        assert_eq!(faults(networks(wrong)), ["allowed_networks: invalid_format"], "{wrong}");
    }
    let past = json!({"name": "x", "scopes": ["*"], "expires_at": "2020-01-01T00:00:00Z"});
    assert_eq!(faults(past), ["expires_at: out_of_range"]);
    let (id, _) = create(&client, json!({"name": "x", "scopes": ["*"]}));
    let path = format!("/v1/api-keys/{id}");
    assert_eq!(client.patch(&path, json!({"scopes": ["*"]})).expect(422).faults(), ["scopes: read_only"]);
    let rotated = client.post(&format!("{path}/rotate"), json!({"overlap_seconds": -1})).expect(422);
    assert_eq!(rotated.faults(), ["overlap_seconds: out_of_range"]);
    assert_eq!(server.client().get(&path).expect(404).code(), "not_found", "another account");
}

fn a_rotated_secret_works_until_the_end_of_its_overlap(db: Db) {
    let server = Server::with(db, |config| config.rate_limit_per_minute = 60);
    let client = server.client();
    let (id, old) = create(&client, json!({"name": "Shop", "scopes": ["products.read"]}));
    old.get("/v1/products").expect(200);
    let path = format!("/v1/api-keys/{id}/rotate");
    let started = Instant::now();
    let rotated = client.post(&path, json!({"overlap_seconds": 3})).expect(200);
    assert!(rotated.data()["old_secret_until"].is_string());
    let new = with_secret(&client, &rotated);
    let left = |reply: &Reply| reply.header("ratelimit").split(['=', ';']).nth(2).unwrap().parse::<i64>().unwrap();
    let (one, other) = (new.get("/v1/products").expect(200), old.get("/v1/products").expect(200));
    assert!(left(&other) < left(&one), "both count against one limit: {one:?} {other:?}");
    assert_eq!(old.get("/v1/me").data()["key"]["id"], json!(id));
    let (strong, before) = create(&client, json!({"name": "Admin", "scopes": ["*"]}));
    client.act(&format!("/v1/api-keys/{strong}/rotate")).expect(200);
    let escape = before.act(&format!("/v1/api-keys/{strong}/rotate")).expect(403);
    assert!(escape.text.contains("a secret that was replaced"), "{}", escape.text);
    while started.elapsed() < Duration::from_millis(2500) {
        old.get("/v1/products").expect(200);
        std::thread::sleep(Duration::from_millis(500));
    }
    std::thread::sleep(Duration::from_millis(1600));
    let refused = old.get("/v1/products").expect(401);
    assert!(refused.text.contains("The key has a new secret; this one stopped working at 20"), "{}", refused.text);
    new.get("/v1/products").expect(200);
    // After a leak: at once, and those before it too.
    let second = with_secret(&client, &client.post(&path, json!({"overlap_seconds": 600})).expect(200));
    let third = client.post(&path, json!({"overlap_seconds": 0})).expect(200);
    assert_eq!(third.data()["old_secret_until"], json!(null));
    a_second_later();
    for old in [&new, &second] {
        assert_eq!(old.get("/v1/products").expect(401).code(), "unauthorized");
    }
    with_secret(&client, &third).get("/v1/products").expect(200);
}

fn a_revoked_key_stops_within_a_second_on_every_node(db: Db) {
    let config = db.config();
    let server = Server::start(db);
    let client = server.client();
    let (id, key) = create(&client, json!({"name": "Shop", "scopes": ["products.read"]}));
    let there = Client { key: key.key.clone(), ..Client::new(server.another_node(config), String::new(), 0) };
    for node in [&key, &there] {
        node.get("/v1/products").expect(200);
    }
    client.act(&format!("/v1/api-keys/{id}/revoke")).expect(200);
    let revoked = Instant::now();
    for node in [&key, &there] {
        while node.get("/v1/products").status != 401 {
            assert!(revoked.elapsed() < Duration::from_millis(1200), "{:?}", revoked.elapsed());
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(node.get("/v1/products").text.contains("This key has been revoked."));
    }
}

fn the_last_use_is_recorded_without_a_write_per_request(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let (id, key) = create(&client, json!({"name": "Shop", "scopes": ["products.read"]}));
    let bound = json!({"name": "Far", "scopes": ["products.read"], "allowed_networks": ["192.0.2.1"]});
    let (far, denied) = create(&client, bound);
    server.app.keys.take_used();
    for _ in 0..5 {
        key.get("/v1/products").expect(200);
        denied.get("/v1/products").expect(403);
    }
    let uses = server.app.keys.take_used();
    assert_eq!(uses.iter().filter(|(used, _)| *used == id).count(), 1, "{uses:?}");
    assert!(!uses.iter().any(|(used, _)| *used == far), "a rejected request is no use");
    let last = uses.iter().find(|(used, _)| *used == id).unwrap().1;
    let before = server.last_seq(&client);
    server.app.store.write_now(0, move |tx| Key::used(tx, &uses)).unwrap();
    let shown = client.get(&format!("/v1/api-keys/{id}")).data();
    assert_eq!((&shown["last_used_at"], &shown["meta"]["version"]), (&json!(last.to_string()), &json!(1)));
    assert_eq!(server.last_seq(&client), before);
}

fn a_replay_shows_the_secret_to_its_own_caller_only(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let stored = || {
        let read = |tx: &mut store::Tx| {
            let sql = "SELECT body FROM stored_answers ORDER BY created_at DESC, key LIMIT 1";
            tx.first(sql, &[], |row| Ok::<_, store::Error>(row.text(0)?.to_string()))
        };
        server.app.store.read_now(read).unwrap().unwrap()
    };
    let other = server.with_scopes(&client, &["*"]);
    let user = json!({"email": "ina@a.example", "name": "Ina"});
    for (number, path, body, shown) in [
        ("1", "/v1/api-keys", json!({"name": "x", "scopes": ["*"]}), "\"secret\":\"kt_"),
        ("0", "/v1/users", user, "\"invite_url\":\"http"),
    ] {
        let send = |client: &Client| client.send("POST", path, &[("idempotency-key", number)], &body.to_string());
        let first = send(&client).expect(201);
        assert!(first.text.contains(shown), "{}", first.text);
        assert_eq!(send(&client).expect(201).text, first.text);
        assert_eq!(send(&other).expect(422).code(), "idempotency_key_reused");
        assert!(stored().starts_with("enc:"), "{}", stored());
    }
}

/// A key whose row somebody inserted without more has the version 0.
fn a_key_without_a_log_line_is_not_accepted(db: Db) {
    let binary = Binary::start(&db, "", &[]);
    let key = binary.client.key.clone();
    drop(binary);
    crate::integrity::spoil(&db, "UPDATE keys SET version = 0, updated_at = 0");
    let refused = Binary::start(&db, &key, &[]);
    refused.client.get("/v1/api-keys").expect(401);
    drop(refused);
    let verified = said(&kantoor(&db, &["verify"]));
    assert!(verified.contains("PROBLEM: Changed outside the log: updated_at is"), "{verified}");
}

fn commands_are_logged_as_the_operator(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let account = account(&server, &client);
    let new = NewKey { name: "robot".into(), scopes: vec!["products.read".into()], expires_at: None };
    let networks = ["10.0.0.0/8".parse().unwrap()];
    let secret = engine::accounts::new_secret().unwrap();
    let id = operator::create(&server.app, account, &secret, &new, &networks).unwrap();
    operator::revoke(&server.app, &id).unwrap();
    assert!(operator::revoke(&server.app, "x").is_err());
    let lines = lines(&server, &client);
    let last = &lines[lines.len() - 2..];
    assert_eq!((last[0].0.as_str(), last[1].0.as_str()), ("api_key.created", "api_key.revoked"));
    assert!(
        last.iter().all(|(_, actor, data)| actor == "operator" && data["allowed_networks"] == json!(["10.0.0.0/8"]))
    );
    let first = client.get("/v1/changes?limit=1").expect(200).data()[0].clone();
    assert_eq!((&first["type"], &first["actor"]), (&json!("account.created"), &json!("operator")));
    assert_eq!(first["data"]["name"], "Test");
}

fn old_secrets_are_pruned(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let (id, _) = create(&client, json!({"name": "Shop", "scopes": ["products.read"]}));
    let kept = || server.app.store.read_now(|tx| tx.int("SELECT count(*) FROM old_key_secrets", &[])).unwrap();
    for _ in 0..12 {
        client.post(&format!("/v1/api-keys/{id}/rotate"), json!({"overlap_seconds": 600})).expect(200);
    }
    assert_eq!(kept(), 10);
    // Those that ended long ago are of no use to anybody.
    server.execute("UPDATE old_key_secrets SET until = 1");
    client.act(&format!("/v1/api-keys/{id}/rotate")).expect(200);
    assert_eq!(kept(), 1);
    client.act(&format!("/v1/api-keys/{id}/revoke")).expect(200);
    assert_eq!(kept(), 0);
}

fn keys_are_listed_in_order(server: Shared) {
    let client = server.client();
    for name in ["b", "c", "a"] {
        create(&client, json!({"name": name, "scopes": ["*"]}));
    }
    let names = |query: &str| {
        let listed = client.get(&format!("/v1/api-keys?{query}")).expect(200).data();
        listed.as_array().unwrap().iter().map(|key| key["name"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(""), ["a", "c", "b", "first key"]);
    assert_eq!(names("sort=name&order=asc"), ["a", "b", "c", "first key"]);
    assert_eq!(names("per_page=2&page=2&order=asc"), ["c", "a"]);
}

fn the_caller_is_described(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let body = json!({
        "name": "Shop", "scopes": ["products.read"], "expires_at": "2099-01-01T00:00:00Z",
        "allowed_networks": ["127.0.0.1"],
    });
    let (id, key) = create(&client, body);
    let me = key.get("/v1/me").expect(200).data();
    let described = json!({
        "id": id, "name": "Shop", "expires_at": "2099-01-01T00:00:00.000Z", "allowed_networks": ["127.0.0.1"],
    });
    assert_eq!((&me["key"], &me["scopes"], &me["user"]), (&described, &json!(["products.read"]), &json!({})));
    assert_eq!(client.get("/v1/me").data()["key"]["expires_at"], json!(null));
    let browser = owner(&server, &client, "olga@a.example");
    let me = browser.get("/console/v1/me").expect(200).data();
    assert_eq!((&me["user"]["role"], &me["scopes"], &me["key"]), (&json!("owner"), &json!(["*"]), &json!({})));
    let (_, browser) = member(&client, "mina@a.example", "reader");
    assert_eq!(browser.get("/console/v1/me").data()["user"]["role"], "reader");
}

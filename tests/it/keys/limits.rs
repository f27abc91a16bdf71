//! What a key may not do: give more than its maker has, be used from elsewhere, be used after its end.

use std::time::Duration;

use serde_json::{Value, json};

use super::{a_second_later, create};
use crate::on_both;
use crate::people::{member, owner};
use crate::support::{Client, Db, Reply, Server, Shared};

on_both![
    nobody_gives_more_than_they_have,
    a_limited_key_cannot_make_an_unlimited_one,
    only_owners_manage_keys,
    a_key_works_only_from_its_networks,
    an_expired_key_says_so,
    an_account_has_a_thousand_keys_that_work,
    the_keys_of_an_account_have_a_limit_together,
];

fn nobody_gives_more_than_they_have(server: Shared) {
    let client = server.client();
    let weak = server.with_scopes(&client, &["keys.read", "keys.write", "products.read"]);
    let body = |scopes: Value| json!({"name": "x", "scopes": scopes});
    for (scopes, missing) in
        [(json!(["products.read", "tasks.read", "notes.write"]), "'tasks.read', 'notes.write'"), (json!(["*"]), "'*'")]
    {
        let refused = weak.post("/v1/api-keys", body(scopes)).expect(403);
        let message = format!("You cannot give scopes that you do not have yourself: {missing}.");
        assert!(refused.text.contains(&message), "{}", refused.text);
    }
    let (own, _) = create(&weak, body(json!(["products.read"])));
    weak.patch(&format!("/v1/api-keys/{own}"), json!({"name": "y"})).expect(200);
    weak.act(&format!("/v1/api-keys/{own}/revoke")).expect(200);
    // A stronger key cannot be taken over either.
    let (strong, _) = create(&client, body(json!(["tasks.write"])));
    let path = format!("/v1/api-keys/{strong}");
    weak.get(&path).expect(200);
    for refused in [
        weak.patch(&path, json!({"name": "y"})),
        weak.act(&format!("{path}/rotate")),
        weak.act(&format!("{path}/revoke")),
    ] {
        let refused = refused.expect(403);
        assert!(refused.text.contains("with scopes that you do not have yourself: 'tasks.write'."), "{}", refused.text);
    }
    server.with_scopes(&client, &["keys.read"]).post("/v1/api-keys", body(json!(["keys.read"]))).expect(403);
}

fn a_limited_key_cannot_make_an_unlimited_one(server: Shared) {
    let client = server.client();
    let limited = json!({
        "name": "x", "scopes": ["*"], "expires_at": "2090-01-01T00:00:00Z",
        "allowed_networks": ["127.0.0.0/8", "2001:db8::/32"],
    });
    let (id, key) = create(&client, limited.clone());
    let with = |name: &str, value: Value| {
        let mut body = limited.clone();
        body[name] = value;
        body
    };
    for (body, why) in [
        (with("expires_at", json!(null)), "Your own key expires at 2090-01-01T00:00:00.000Z"),
        (with("expires_at", json!("2091-01-01T00:00:00Z")), "expires_at cannot be later"),
        (with("allowed_networks", json!([])), "Your own key is bound to 127.0.0.0/8, 2001:db8::/32"),
        (with("allowed_networks", json!(["127.0.0.1", "10.0.0.1"])), "must be within that"),
        (with("allowed_networks", json!(["2001:db8::/31"])), "must be within that"),
    ] {
        let refused = key.post("/v1/api-keys", body.clone()).expect(403);
        assert!(refused.text.contains(why), "{body}: {}", refused.text);
    }
    create(&key, with("allowed_networks", json!(["127.0.0.1", "2001:db8:1::/48"])));
    create(&key, limited.clone());
    // Nor widen itself, or rotate another one that is wider.
    let path = format!("/v1/api-keys/{id}");
    key.patch(&path, json!({"expires_at": null})).expect(403);
    key.patch(&path, json!({"allowed_networks": null})).expect(403);
    key.patch(&path, json!({"name": "y"})).expect(200);
    let (wide, _) = create(&client, json!({"name": "x", "scopes": ["*"]}));
    for refused in [
        key.act(&format!("/v1/api-keys/{wide}/rotate")),
        key.act(&format!("/v1/api-keys/{wide}/revoke")),
        key.patch(
            &format!("/v1/api-keys/{wide}"),
            json!({"expires_at": "2089-01-01T00:00:00Z", "allowed_networks": ["127.0.0.1"]}),
        ),
    ] {
        assert!(refused.expect(403).text.contains("so you cannot change it"));
    }
    key.act(&format!("{path}/rotate")).expect(200);
}

fn only_owners_manage_keys(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let olga = owner(&server, &client, "olga@a.example");
    let body = json!({"name": "x", "scopes": ["*"]});
    let made = olga.post("/console/v1/api-keys", body.clone()).expect(201);
    Client { key: made.data()["secret"].as_str().unwrap().to_string(), ..client.clone() }.get("/v1/me").expect(200);
    for (role, reads) in [("member", 403), ("bookkeeper", 200), ("reader", 403)] {
        let (_, browser) = member(&client, &format!("{role}@a.example"), role);
        browser.get("/console/v1/api-keys").expect(reads);
        browser.get("/console/v1/automation/signing-secret").expect(403);
        let refused = browser.post("/console/v1/api-keys", body.clone()).expect(403);
        assert!(refused.text.contains("'keys.write'"), "{}", refused.text);
    }
}

fn a_key_works_only_from_its_networks(db: Db) {
    let server = Server::with(db, |config| {
        config.trusted_proxies = "127.0.0.1".to_string();
        config.public_limit_per_minute = 20;
        config.rate_limit_per_minute = 60;
    });
    let client = server.client();
    let networks = json!(["203.0.113.0/24", "2001:db8::/32"]);
    let (id, key) = create(&client, json!({"name": "x", "scopes": ["products.read"], "allowed_networks": networks}));
    let from = |address: &str| key.send("GET", "/v1/products", &[("x-forwarded-for", address)], "");
    for address in ["203.0.113.7", "2001:db8:5::1", "::ffff:203.0.113.9", "198.51.100.1, 203.0.113.7"] {
        from(address).expect(200);
    }
    for address in ["203.0.112.7", "2001:db9::1", "203.0.113.7, 198.51.100.1"] {
        let refused = from(address).expect(403);
        let last = address.rsplit(", ").next().unwrap();
        assert!(refused.text.contains(&format!("This key does not allow requests from {last}.")), "{}", refused.text);
    }
    // Even at a path that does not exist; and without the header, the proxy itself is the caller.
    key.send("GET", "/v1/nowhere", &[("x-forwarded-for", "198.51.100.1")], "").expect(403);
    assert!(key.get("/v1/products").expect(403).text.contains("from 127.0.0.1."));
    // Whoever tries from elsewhere uses up a limit of their own, not that of the key.
    let tries: Vec<u16> = (0..30).map(|_| from("198.51.100.1").status).collect();
    assert!(tries.starts_with(&[403, 403]) && tries.ends_with(&[429, 429]), "{tries:?}");
    from("203.0.113.7").expect(200);
    client.patch(&format!("/v1/api-keys/{id}"), json!({"allowed_networks": ["198.51.100.9"]})).expect(200);
    a_second_later();
    from("203.0.113.7").expect(403);
    from("198.51.100.9").expect(200);
    client.patch(&format!("/v1/api-keys/{id}"), json!({"allowed_networks": null})).expect(200);
    a_second_later();
    key.get("/v1/products").expect(200);
}

fn an_expired_key_says_so(server: Shared) {
    let client = server.client();
    let soon = server.now().plus_seconds(2).to_string();
    let (id, key) = create(&client, json!({"name": "x", "scopes": ["products.read"], "expires_at": soon}));
    key.get("/v1/products").expect(200);
    std::thread::sleep(Duration::from_millis(2100));
    let refused = key.get("/v1/products").expect(401);
    assert!(refused.text.contains(&format!("This key expired at {soon}.")), "{}", refused.text);
    // It can be renamed, and extended by whoever has its scopes.
    let path = format!("/v1/api-keys/{id}");
    client.patch(&path, json!({"name": "y"})).expect(200);
    client.patch(&path, json!({"expires_at": "2099-01-01T00:00:00Z"})).expect(200);
    a_second_later();
    key.get("/v1/products").expect(200);
}

/// Many keys are no way around the limit of one, and lock nobody out of the console.
fn the_keys_of_an_account_have_a_limit_together(db: Db) {
    let server = Server::with(db, |config| {
        config.rate_limit_per_minute = 40;
        config.account_limit_keys = 2;
    });
    let client = server.client();
    let olga = owner(&server, &client, "olga@a.example");
    let keys: Vec<Client> = (0..4).map(|_| server.with_scopes(&client, &["products.read"])).collect();
    let reported = |reply: &Reply| {
        let policy = reply.header("ratelimit-policy").to_string();
        (policy, reply.header("ratelimit").split(";t=").next().unwrap().to_string())
    };
    let first = keys[0].get("/v1/products").expect(200);
    assert!(reported(&first).0 == "\"key\";q=40;w=60" && reported(&first).1.starts_with("\"key\";r="), "{first:?}");
    // One that asks too often uses up its own limit, and no more of that of the account.
    let own: Vec<u16> = (0..80).map(|_| keys[0].get("/v1/products").status).collect();
    assert!(own.contains(&429), "{own:?}");
    keys[1].get("/v1/products").expect(200);
    let all: Vec<Reply> = (0..45).flat_map(|_| [keys[2].get("/v1/products"), keys[3].get("/v1/products")]).collect();
    let refused = all.iter().find(|reply| reply.status == 429).unwrap();
    assert_eq!(
        (reported(refused).0.as_str(), reported(refused).1.as_str()),
        ("\"account\";q=80;w=60", "\"account\";r=0")
    );
    assert!(
        refused.text.contains("The keys of your account together may make 80 requests per minute"),
        "{}",
        refused.text
    );
    assert!(refused.header("retry-after").parse::<u32>().unwrap() >= 1);
    olga.get("/console/v1/products").expect(200);
    let neighbour = server.client();
    neighbour.get("/v1/products").expect(200);
}

/// Each key has a rate limit of its own, so many keys would be a way around it.
fn an_account_has_a_thousand_keys_that_work(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let blob = if server.app.config.database_url.is_empty() { "BLOB" } else { "BYTEA" };
    server.execute(&format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 998)
         INSERT INTO keys (id, account_id, name, hash, hint, scopes, created_at, expires_at, revoked_at, last_used_at,
                           updated_at, version, allowed_networks, old_secret_until)
         SELECT 'k' || i, {}, 'x', CAST('k' || i AS {blob}), 'kt_', 'products.read', 0, 0, 0, 0, 0, 1, '', 0 FROM n",
        client.account
    ));
    let body = json!({"name": "x", "scopes": ["products.read"]});
    let (last, _) = create(&client, body.clone());
    let refused = client.post("/v1/api-keys", body.clone()).expect(409);
    assert_eq!(refused.code(), "limit_reached");
    assert!(refused.text.contains("at most 1000 API keys that work. Revoke one first."), "{}", refused.text);
    client.act(&format!("/v1/api-keys/{last}/revoke")).expect(200);
    create(&client, body);
}

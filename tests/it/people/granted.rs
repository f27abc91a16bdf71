//! Everything that gives or takes away power is a line in the log of the account, with who did it and without secrets.

use serde_json::{Value, json};

use super::{Browser, PASSWORD, token};
use crate::cli::{kantoor, said};
use crate::on_both;
use crate::server::Binary;
use crate::support::{Client, Db};

on_both![everything_that_grants_power_is_logged];

/// The types of records that give power.
const POWER: [&str; 5] = ["account", "api_key", "user", "settings", "email_domain"];

/// Returns type and actor of the lines about power since `seq`, and moves it.
fn granted(client: &Client, seq: &mut i64) -> Vec<(String, String)> {
    let page = client.get(&format!("/v1/changes?after={seq}&limit=1000")).expect(200).json();
    *seq = page["meta"]["last_seq"].as_i64().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let lines = page["data"].as_array().unwrap().iter();
    lines
        .filter(|line| POWER.contains(&line["entity_type"].as_str().unwrap()))
        .map(|line| (text(&line["type"]), text(&line["actor"])))
        .collect()
}

fn everything_that_grants_power_is_logged(db: Db) {
    let binary = Binary::start(&db, "", &["--set", "workers=0"]);
    let client = &binary.client;
    let me = client.get("/v1/me").data();
    let (own, account) = (me["key"]["id"].as_str().unwrap(), me["account"]["id"].as_str().unwrap());
    let by = |actor: &str, types: &[&str]| -> Vec<(String, String)> {
        types.iter().map(|name| (name.to_string(), actor.to_string())).collect()
    };
    let mut seq = 0;
    let first = granted(client, &mut seq);
    let by_operator = first.iter().filter(|(_, actor)| actor == "operator").cloned().collect::<Vec<_>>();
    assert_eq!(by_operator, by("operator", &["account.created", "api_key.created", "account.set_up_requested"]));
    let mut secrets = vec![client.key.clone(), "live_geheim".to_string()];

    // By the operator.
    let key = said(&kantoor(&db, &["key", "create", "--account", account, "--scopes", "*", "--json"]));
    let key: Value = serde_json::from_str(&key).unwrap();
    secrets.push(key["key"].as_str().unwrap().to_string());
    kantoor(&db, &["key", "revoke", key["id"].as_str().unwrap()]);
    let invited = said(&kantoor(&db, &["user", "create", "--owner", "--email", "olga@a.example"]));
    let link = token(invited.split_whitespace().find(|word| word.starts_with("http")).unwrap());
    let domain = client.post("/v1/email-domains", json!({"domain": "ster.example"})).expect(201).id();
    kantoor(&db, &["domain", "verify", &domain]);
    kantoor(&db, &["domain", "revoke", &domain]);
    let mut lines = by("operator", &["api_key.created", "api_key.revoked", "user.created", "user.invited"]);
    lines.extend(by(own, &["email_domain.created"]));
    lines.extend(by("operator", &["email_domain.updated", "email_domain.updated"]));
    assert_eq!(granted(client, &mut seq), lines);

    // By a user.
    let mut olga = Browser::new(client);
    olga.enter("/console/accept-invite", json!({"token": link, "password": PASSWORD}));
    let id = olga.get("/console/v1/me").data()["user"]["id"].as_str().unwrap().to_string();
    granted(client, &mut seq);
    olga.send(
        "PATCH",
        "/console/v1/settings",
        &json!({"provider": "mollie", "mollie_key": "live_geheim1234"}).to_string(),
    )
    .expect(200);
    let ina = olga.post("/console/v1/users", json!({"email": "ina@a.example", "name": "Ina"})).expect(201).id();
    let path = format!("/console/v1/users/{ina}");
    olga.send("PATCH", &path, &json!({"role": "bookkeeper"}).to_string()).expect(200);
    let made = olga.post("/console/v1/api-keys", json!({"name": "x", "scopes": ["products.read"]})).expect(201);
    secrets.push(made.data()["secret"].as_str().unwrap().to_string());
    let path = format!("/console/v1/api-keys/{}", made.id());
    olga.send("PATCH", &path, &json!({"allowed_networks": ["10.0.0.0/8"]}).to_string()).expect(200);
    let rotated = olga.post(&format!("{path}/rotate"), json!({"overlap_seconds": 60})).expect(200);
    secrets.push(rotated.data()["secret"].as_str().unwrap().to_string());
    olga.send("POST", &format!("{path}/revoke"), "").expect(200);
    let done = [
        "settings.updated",
        "user.created",
        "user.invited",
        "user.updated",
        "api_key.created",
        "api_key.updated",
        "api_key.rotated",
        "api_key.revoked",
    ];
    assert_eq!(granted(client, &mut seq), by(&id, &done));

    let all = client.get("/v1/changes?limit=1000").expect(200).text;
    assert!(all.contains("\"mollie_key_hint\":\"live_geh…\""), "{all}");
    let shown: Vec<&String> = secrets.iter().filter(|secret| all.contains(secret.as_str())).collect();
    assert!(shown.is_empty(), "{shown:?}");
    let verified = said(&kantoor(&db, &["verify"]));
    assert!(verified.contains("  intact: ") && !verified.contains("PROBLEM"), "{verified}");
}

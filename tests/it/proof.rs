//! The log as proof: who did what, and what `kantoor verify` finds when somebody changed it.

use engine::accounts::Account;
use engine::log::{self, Verdict, erasing};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use store::Tx;

use crate::on_both;
use crate::people::member;
use crate::support::{Client, Db, Server};

on_both![
    every_actor_has_a_type_and_a_name,
    lines_store_the_whole_record,
    a_deleted_record_can_be_erased,
    a_record_has_a_history,
    the_feed_has_filters,
];

/// Returns the events after `seq`.
fn changes(client: &Client, seq: i64) -> Vec<Value> {
    client.get(&format!("/v1/changes?after={seq}&limit=1000")).expect(200).data().as_array().unwrap().clone()
}

fn every_actor_has_a_type_and_a_name(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let key = client.get("/v1/me").data()["key"]["id"].as_str().unwrap().to_string();
    let (user, browser) = member(&client, "ina@a.example", "member");
    let name = client.get(&format!("/v1/users/{user}")).data()["name"].clone();
    browser.post("/console/v1/tasks", json!({"title": "By a user"})).expect(201);
    let steps = json!([{"type": "create_task", "title": "By a flow"}]);
    let flow = json!({"name": "Remind", "trigger_type": "custom", "trigger_key": "x", "steps": steps});
    let flow = client.post("/v1/automation/flows", flow).expect(201).id();
    client.post("/v1/automation/trigger", json!({"event": "x", "data": {}})).expect(200);
    client.post("/v1/test-clock/advance", json!({"to": "2026-05-05T10:00:00Z"})).expect(200);
    let number = client.account;
    let account = server.app.store.read_now(move |tx| Account::numbered(tx, number)).unwrap();
    let app = server.app.clone();
    let invited = server.apart(move || {
        kantoor::people::operator::invite(&app, account, "o@a.example", "Ola", kantoor::people::role::Role::Reader)
    });
    server.block_on(invited).unwrap().unwrap();
    let quote = json!({"title": "Q", "generation_mode": "final", "rows": [{"name": "x", "unit_price": 1}]});
    let page = client.post("/v1/quotes", quote).expect(201).data()["web_url"].as_str().unwrap().to_string();
    client.send("GET", &page[page.find("/d/").unwrap()..], &[("authorization", "")], "").expect(200);

    let seen = changes(&client, 0);
    let actor = |wanted: &dyn Fn(&Value) -> bool| {
        let found = seen.iter().find(|change| wanted(change)).unwrap();
        (found["actor_type"].clone(), found["actor"].clone(), found["actor_name"].clone())
    };
    let titled = |title: &'static str| move |change: &Value| change["data"]["title"] == title;
    assert_eq!(actor(&|change| change["type"] == "quote.created"), (json!("key"), json!(key), json!("first key")));
    assert_eq!(actor(&titled("By a user")), (json!("user"), json!(user), name));
    assert_eq!(actor(&titled("By a flow")), (json!("flow"), json!(format!("flow {flow}")), json!("Remind")));
    let invited = |change: &Value| change["type"] == "user.created" && change["data"]["email"] == "o@a.example";
    assert_eq!(actor(&invited), (json!("operator"), json!("operator"), json!("operator")));
    assert_eq!(actor(&|change| change["actor"] == "visitor").0, "visitor");
    assert_eq!(actor(&|change| change["actor"] == "kantoor").0, "job");
    assert!(seen.iter().all(|change| change["actor_name"] != ""));
}

/// Returns the data of the last line of this type, as it is stored.
fn stored(server: &Server, client: &Client, name: &'static str) -> Value {
    let account = client.account;
    let sql = format!("SELECT {} FROM log WHERE account_id = $1 AND type = $2 ORDER BY seq DESC", log::DATA);
    let read = move |tx: &mut Tx| {
        tx.first(&sql, &[account.into(), name.into()], |row| Ok::<_, store::Error>(row.text(0)?.to_string()))
    };
    serde_json::from_str(&server.app.store.read_now(read).unwrap().unwrap()).unwrap()
}

fn verdict(server: &Server, client: &Client) -> Verdict {
    let account = client.account;
    server.app.store.read_now(move |tx| log::verify(tx, account)).unwrap()
}

fn lines_store_the_whole_record(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let before = server.last_seq(&client);
    let file = client.upload("a.txt", b"words").expect(201).data();
    let line = stored(&server, &client, "file.created");
    assert!(line.get("url").is_none() && line["hidden"]["content"].as_str().unwrap().len() > 10, "{line}");
    let shown = changes(&client, before).remove(0)["data"].clone();
    assert!(shown.get("hidden").is_none() && shown["url"].as_str().unwrap().contains("signature="), "{shown}");
    assert_eq!(shown, client.get(&format!("/v1/files/{}", file["id"].as_str().unwrap())).data());

    let quote = json!({"title": "Q", "generation_mode": "final", "rows": [{"name": "x", "unit_price": 1}]});
    let quote = client.post("/v1/quotes", quote).expect(201).data();
    let line = stored(&server, &client, "quote.created");
    assert!(line.get("web_url").is_none() && line.get("pdf_url").is_none(), "{line}");
    let token = line["hidden"]["token"].as_str().unwrap();
    assert!(quote["web_url"].as_str().unwrap().ends_with(&format!("/d/{token}")));
    let last = changes(&client, before).into_iter().rfind(|change| change["entity_type"] == "quote").unwrap();
    assert_eq!(last["data"], client.get(&format!("/v1/quotes/{}", quote["id"].as_str().unwrap())).data());

    // A secret is not logged, encrypted or not.
    client.post("/v1/webhook-endpoints", json!({"url": "https://example.com/"})).expect(201);
    let line = stored(&server, &client, "webhook_endpoint.created");
    assert_eq!(line["hidden"]["secret"], "(secret)", "{line}");
    assert!(matches!(verdict(&server, &client), Verdict::Whole { .. }));
}

/// Gives all lines of an account new hashes, as somebody would who has read the source but has no key: the marks stay.
pub fn hash_again(tx: &mut Tx, account: i64) -> store::Result<()> {
    let sql = format!(
        "SELECT seq, at, type, entity_type, entity_id, actor, actor_type, request_id, actor_name, {}, salt
         FROM log WHERE account_id = $1 ORDER BY seq",
        log::DATA
    );
    let lines = tx.all(&sql, &[account.into()], |row| {
        let texts: Vec<String> = (2..10).map(|place| Ok(row.text(place)?.to_string())).collect::<store::Result<_>>()?;
        Ok::<_, store::Error>((row.int(0)?, row.int(1)?, texts, row.bytes(10)?.to_vec()))
    })?;
    let mut hash = Vec::new();
    for (seq, at, texts, salt) in lines {
        hash = chained(&hash, [account, seq, at], &texts, &salt);
        let set = "UPDATE log SET hash = $1 WHERE account_id = $2 AND seq = $3";
        tx.execute(set, &[hash.as_slice().into(), account.into(), seq.into()])?;
    }
    Ok(())
}

/// The hash of a line: its numbers, and its texts, the last two of which are the name of the actor and the data.
pub fn chained(before: &[u8], numbers: [i64; 3], texts: &[impl AsRef<str>], salt: &[u8]) -> Vec<u8> {
    let text = |hasher: &mut Sha256, text: &str| {
        hasher.update((text.len() as u64).to_be_bytes());
        hasher.update(text);
    };
    let (texts, erasable) = texts.split_at(texts.len() - 2);
    let mut digest = Sha256::new();
    digest.update(&salt[..salt.len().min(16)]);
    text(&mut digest, erasable[0].as_ref());
    digest.update(erasable[1].as_ref());
    let mut hasher = Sha256::new();
    hasher.update(before);
    hasher.update([1]);
    numbers.iter().for_each(|number| hasher.update(number.to_be_bytes()));
    texts.iter().for_each(|one| text(&mut hasher, one.as_ref()));
    hasher.update(digest.finalize());
    hasher.finalize().to_vec()
}

fn a_deleted_record_can_be_erased(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let id = client.post("/v1/tasks", json!({"title": "Call Jansen"})).expect(201).id();
    client.patch(&format!("/v1/tasks/{id}"), json!({"title": "Mail Jansen"})).expect(200);
    client.post("/v1/products", json!({"name": "Between"})).expect(201);
    let (account, caller) = (client.account, server.app.acting_in(client.account, "erasing").unwrap());
    let erase = || {
        let (own, id) = (caller.clone(), id.clone());
        server.app.store.write_now(account, move |tx| {
            let ctx = own.writing(tx)?;
            erasing::erase(tx, &ctx, "task", &id)
        })
    };
    assert!(erase().is_err(), "it still exists");
    client.delete(&format!("/v1/tasks/{id}")).expect(204);
    assert_eq!(erase().unwrap(), 3);
    let rows = server.last_seq(&client);
    assert!(matches!(verdict(&server, &client), Verdict::Whole { rows: whole, .. } if whole == rows));
    let seen = changes(&client, 0);
    assert!(!json!(seen).to_string().contains("Jansen"));
    let about: Vec<&Value> = seen.iter().filter(|change| change["entity_id"] == json!(id)).collect();
    assert_eq!(about[0]["data"], json!({}));
    let last = about.last().unwrap();
    assert_eq!((&last["type"], &last["data"]), (&json!("task.erased"), &json!({"id": id, "lines": 3})));

    // Emptying a line in the same way, without the line that says so, is found.
    let sql = "UPDATE log SET data = '', actor_name = '', salt = $1, digest = $2 WHERE account_id = $3 AND type = 'product.created'";
    let digest = Sha256::digest(b"x");
    server
        .app
        .store
        .write_now(account, move |tx| {
            tx.execute(sql, &[b"".as_slice().into(), digest.as_slice().into(), account.into()])
        })
        .unwrap();
    assert!(matches!(verdict(&server, &client), Verdict::Broken { .. }));
}

fn a_record_has_a_history(db: Db) {
    let server = Server::start(db);
    let (client, stranger) = (server.client(), server.client());
    let (_, browser) = member(&client, "ina@a.example", "member");
    let id = client.post("/v1/tasks", json!({"title": "One"})).expect(201).id();
    for title in ["Two", "Three", "Four"] {
        let headers = [("sec-fetch-site", "same-origin")];
        let body = json!({"title": title}).to_string();
        browser.send_with("PATCH", &format!("/console/v1/tasks/{id}"), &headers, &body).expect(200);
        client.post("/v1/products", json!({"name": title})).expect(201);
    }
    let path = format!("/v1/tasks/{id}/history");
    let titles = |reply: crate::support::Reply| -> Vec<String> {
        reply.data().as_array().unwrap().iter().map(|one| one["data"]["title"].as_str().unwrap().to_string()).collect()
    };
    let page = client.get(&format!("{path}?per_page=3&x=1")).expect(200);
    assert_eq!(page.json()["meta"], json!({"page": 1, "per_page": 3, "total": 4, "pages": 2, "ignored_params": ["x"]}));
    assert_eq!(titles(page), ["Four", "Three", "Two"]);
    assert_eq!(titles(client.get(&format!("{path}?per_page=3&page=2"))), ["One"]);
    client.get(&format!("{path}?page=0")).expect(422);
    stranger.get(&path).expect(404);
    let blind = server.with_scopes(&client, &["products.read", "audit.read"]);
    blind.get(&path).expect(403);
    client.delete(&format!("/v1/tasks/{id}")).expect(204);
    let reply = client.get(&path).expect(200).json();
    assert_eq!((&reply["data"][0]["type"], &reply["meta"]["total"]), (&json!("task.deleted"), &json!(5)));

    // A record below another one is found there only, also when it is deleted.
    let project = |name: &str| client.post("/v1/projects", json!({"name": name})).expect(201).id();
    let (own, other) = (project("a"), project("b"));
    let hour =
        client.post(&format!("/v1/projects/{own}/hours"), json!({"date": "2026-05-04", "hours": 1})).expect(201).id();
    for deleted in [false, true] {
        if deleted {
            client.delete(&format!("/v1/projects/{own}/hours/{hour}")).expect(204);
        }
        client.get(&format!("/v1/projects/{own}/hours/{hour}/history")).expect(200);
        client.get(&format!("/v1/projects/{other}/hours/{hour}/history")).expect(404);
    }
}

fn the_feed_has_filters(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let (user, browser) = member(&client, "ina@a.example", "member");
    let before = server.last_seq(&client);
    let id = browser.post("/console/v1/tasks", json!({"title": "One"})).expect(201).id();
    for title in ["Two", "Three", "Four"] {
        client.patch(&format!("/v1/tasks/{id}"), json!({"title": title})).expect(200);
        client.post("/v1/products", json!({"name": title})).expect(201);
        browser.post("/console/v1/tasks", json!({"title": title})).expect(201);
    }
    let read = |query: &str| client.get(&format!("/v1/changes?{query}")).expect(200).json();
    let seqs = |reply: &Value| -> Vec<i64> {
        reply["data"].as_array().unwrap().iter().map(|one| one["seq"].as_i64().unwrap()).collect()
    };
    let all = changes(&client, 0);
    let wanted = |fits: &dyn Fn(&Value) -> bool| -> Vec<i64> {
        all.iter().filter(|one| fits(one)).map(|one| one["seq"].as_i64().unwrap()).collect()
    };
    let last = server.last_seq(&client);
    for (query, expected) in [
        (format!("entity_id={id}"), wanted(&|one| one["entity_id"] == json!(id))),
        (format!("entity_type=task&entity_id={id}"), wanted(&|one| one["entity_id"] == json!(id))),
        (format!("entity_type=product&entity_id={id}"), Vec::new()),
        ("entity_type=product".to_string(), wanted(&|one| one["entity_type"] == "product")),
        (format!("actor={user}"), wanted(&|one| one["actor"] == json!(user))),
        (
            format!("actor={user}&type=task.created"),
            wanted(&|one| one["actor"] == json!(user) && one["type"] == "task.created"),
        ),
        ("type=product.created".to_string(), wanted(&|one| one["type"] == "product.created")),
        (format!("after={before}&entity_type=product"), wanted(&|one| one["entity_type"] == "product")),
        ("before=4".to_string(), vec![1, 2, 3]),
        ("entity_id=nobody".to_string(), Vec::new()),
    ] {
        let forward = read(&format!("{query}&limit=1000"));
        assert_eq!((seqs(&forward), &forward["meta"]["has_more"]), (expected.clone(), &json!(false)), "{query}");
        let mut backward = seqs(&read(&format!("{query}&limit=1000&order=desc")));
        backward.reverse();
        assert_eq!(backward, expected, "{query}");
        // In pages, in both directions.
        for (order, place) in [("asc", "after"), ("desc", "before")] {
            let (mut seen, mut from) = (Vec::new(), String::new());
            let query: String = query.split('&').filter(|one| !one.starts_with(place)).collect::<Vec<_>>().join("&");
            loop {
                let page = read(&format!("{query}&limit=2&order={order}{from}"));
                seen.extend(seqs(&page));
                if page["meta"]["has_more"] == false {
                    break;
                }
                from = format!("&{place}={}", page["meta"]["last_seq"]);
            }
            seen.sort_unstable();
            let all = seqs(&read(&format!("{query}&limit=1000")));
            assert_eq!(seen, all, "{query} {order}");
        }
    }
    // Whoever follows a filter does not read the same lines again.
    assert_eq!(read("entity_id=nobody")["meta"]["last_seq"], last);
    // Whoever is further than the log continues from there.
    assert_eq!(read(&format!("entity_id=nobody&after={}", last + 7))["meta"]["last_seq"], last + 7);
    assert_eq!(seqs(&read("order=desc&limit=1")), [last]);
    for bad in ["order=up", "before=x", "limit=0"] {
        client.get(&format!("/v1/changes?{bad}")).expect(422);
    }
}

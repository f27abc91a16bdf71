//! Endpoints receive the events that their author may read.

use engine::accounts::NewKey;

use super::*;
use crate::support::Office;

on_both![
    an_endpoint_receives_what_its_author_may_read,
    an_endpoint_requires_the_scopes_of_the_events_it_names,
    an_endpoint_is_disabled_when_its_author_may_no_longer_read,
    a_waiting_delivery_is_checked_again,
    a_claimed_delivery_is_checked_again,
    files_of_documents_have_a_url_for_those_who_read_documents,
    the_feed_has_what_the_caller_may_read,
    the_feed_has_several_filters,
];

fn key(server: &Office, client: &Client, scopes: &[&str]) -> (Client, String) {
    let scopes = scopes.iter().map(ToString::to_string).collect();
    let (secret, id) = server.add_key(client, NewKey { name: "Assistant".into(), scopes, expires_at: None });
    (Client { key: secret, ..client.clone() }, id)
}

fn change_key(server: &Server, id: &str, set: &'static str) {
    let id = id.to_string();
    let sql = format!("UPDATE keys SET {set} WHERE id = $1");
    server.app.store.write_now(0, move |tx| tx.execute(&sql, &[(&id).into()]).map(drop)).unwrap();
}

/// Waits until every active endpoint has looked at the whole log and has nothing to send.
fn quiet(server: &Server) {
    until("the end of the log", || {
        let sql = "SELECT count(*) FROM webhook_cursors WHERE sent_seq <
                   (SELECT max(seq) FROM log WHERE log.account_id = webhook_cursors.account_id)";
        let open = "SELECT count(*) FROM webhook_deliveries WHERE due_at > 0";
        let left = server.app.store.read_now(move |tx| Ok::<_, store::Error>(tx.int(sql, &[])? + tx.int(open, &[])?));
        (left.unwrap() == 0).then_some(())
    });
}

fn of(receiver: &Scripted, path: &str) -> Vec<String> {
    let all: Vec<Received> = receiver.received().into_iter().filter(|one| one.path == path).collect();
    let mut names = names(&all);
    names.sort();
    names
}

fn an_endpoint_receives_what_its_author_may_read(db: Db) {
    let receiver = receiver(|_| Reply::new(200));
    let server = sending(db);
    let client = server.client();
    for (path, scopes) in [
        ("/none", &["webhooks.write"][..]),
        ("/products", &["webhooks.write", "products.read"]),
        ("/fired", &["webhooks.write", "automation.read", "products.read"]),
        ("/feed", &["webhooks.write", "audit.read"]),
        ("/all", &["*"]),
    ] {
        let (maker, id) = key(&server, &client, scopes);
        let made = maker.post("/v1/webhook-endpoints", json!({"url": receiver.url(path)})).expect(201).data();
        assert_eq!((&made["meta"]["author_type"], &made["meta"]["author_id"]), (&json!("key"), &json!(id)));
    }
    product(&client, "a");
    client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201);
    for (kind, id) in [("order", "1"), ("client", "x"), ("product", "x")] {
        client
            .post("/v1/automation/trigger", json!({"event": "x", "entity_type": kind, "data": {"id": id}}))
            .expect(200);
    }
    client.patch("/v1/settings", json!({"deal_stalled_days": 3})).expect(200);
    quiet(&server);
    assert_eq!(of(&receiver, "/none"), Vec::<String>::new());
    assert_eq!(of(&receiver, "/feed"), Vec::<String>::new());
    assert_eq!(of(&receiver, "/products"), ["product.created"]);
    assert_eq!(of(&receiver, "/fired"), ["automation.triggered", "automation.triggered", "product.created"]);
    let all = of(&receiver, "/all");
    for event in ["product.created", "customer.created", "automation.triggered", "settings.updated"] {
        assert!(all.contains(&event.to_string()), "{event} in {all:?}");
    }
}

fn an_endpoint_requires_the_scopes_of_the_events_it_names(db: Db) {
    let receiver = receiver(|_| Reply::new(200));
    let server = sending(db);
    let client = server.client();
    let (weak, weak_id) = key(&server, &client, &["webhooks.write", "products.read"]);
    let refused = |reply: crate::support::Reply, scopes: &str| {
        let reply = reply.expect(403);
        let message = format!("These events require scopes that you do not have: {scopes}.");
        assert_eq!((reply.code(), &reply.json()["error"]["message"]), ("forbidden".to_string(), &json!(message)));
    };
    for (events, scopes) in [
        (&["invoice.paid"][..], "'invoices.read' (invoice.paid)"),
        (
            &["product.*", "customer.*", "sales.document_sent"],
            "'relations.read' (customer.*), 'invoices.read' (sales.document_sent)",
        ),
        (&["webhook_endpoint.disabled"], "'webhooks.read' (webhook_endpoint.disabled)"),
        (&["automation.triggered"], "'automation.read' (automation.triggered)"),
    ] {
        let body = json!({"url": receiver.url("/in"), "events": events});
        refused(weak.post("/v1/webhook-endpoints", body), scopes);
    }
    endpoint(&weak, &receiver.url("/own"), &["product.*", "*"]);
    // Changing what an endpoint receives, or where, makes the caller its author.
    let (path, _) = endpoint(&client, &receiver.url("/in"), &["customer.*"]);
    refused(weak.patch(&path, json!({"url": receiver.url("/mine")})), "'relations.read' (customer.*)");
    refused(weak.patch(&path, json!({"events": ["invoice.*"]})), "'invoices.read' (invoice.*)");
    weak.patch(&path, json!({"description": "x", "active": false})).expect(200);
    refused(weak.patch(&path, json!({"active": true})), "'relations.read' (customer.*)");
    assert_ne!(client.get(&path).data()["meta"]["author_id"], json!(weak_id));
    // Whoever has its secret can sign such events.
    refused(weak.act(&format!("{path}/rotate-secret")), "'relations.read' (customer.*)");
    let (all, _) = endpoint(&client, &receiver.url("/all"), &["*"]);
    let other = weak.act(&format!("{all}/rotate-secret")).expect(403);
    assert!(other.text.contains("requires the scope '*'"), "{}", other.text);
    client.act(&format!("{all}/rotate-secret")).expect(200);
    let taken = weak.patch(&all, json!({"url": receiver.url("/mine")})).expect(200).data();
    assert_eq!(taken["meta"]["author_id"], json!(weak_id));
    weak.act(&format!("{all}/rotate-secret")).expect(200);
    client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201);
    product(&client, "a");
    quiet(&server);
    assert_eq!(
        (of(&receiver, "/mine"), of(&receiver, "/own")),
        (vec!["product.created".to_string()], vec!["product.created".to_string()])
    );
}

fn an_endpoint_is_disabled_when_its_author_may_no_longer_read(db: Db) {
    let receiver = receiver(|_| Reply::new(200));
    let server = sending(db);
    let client = server.client();
    for (set, reason) in [
        ("revoked_at = 1", "the key 'Assistant' of its author has been revoked"),
        ("expires_at = 1", "the key 'Assistant' of its author has expired"),
        (
            "scopes = 'webhooks.write'",
            "its author does not have the required scopes: 'products.read' (product.created)",
        ),
    ] {
        let (maker, id) = key(&server, &client, &["webhooks.write", "products.read"]);
        let (path, _) = endpoint(&maker, &receiver.url("/in"), &["product.created"]);
        change_key(&server, &id, set);
        product(&client, "a");
        let off = until("off", || Some(client.get(&path).data()).filter(|data| data["active"] == false));
        assert_eq!(
            off["disabled_reason"],
            format!("The endpoint was disabled: {reason}. Whoever enables it becomes its author.")
        );
        assert_eq!(receiver.received().len(), 0);
        client.delete(&path).expect(204);
    }
    // A wildcard follows what its author may read.
    let (maker, id) = key(&server, &client, &["webhooks.write", "products.read"]);
    let (path, _) = endpoint(&maker, &receiver.url("/in"), &["*"]);
    change_key(&server, &id, "scopes = 'webhooks.write'");
    product(&client, "b");
    quiet(&server);
    assert_eq!((receiver.received().len(), &client.get(&path).data()["active"]), (0, &json!(true)));
}

fn a_waiting_delivery_is_checked_again(db: Db) {
    let receiver = receiver(|_| Reply::new(503));
    let server = sending(db);
    let client = server.client();
    let (maker, id) = key(&server, &client, &["webhooks.write", "products.read"]);
    let (path, _) = endpoint(&maker, &receiver.url("/in"), &["*"]);
    product(&client, "a");
    settled(&client, &path, "retrying", 1);
    change_key(&server, &id, "scopes = 'webhooks.write'");
    hurry(&server);
    let failed = settled(&client, &path, "failed", 1);
    assert_eq!(failed["reason"], "The author of the endpoint may not read this event.");
    client.act(&format!("{path}/deliveries/{}/resend", failed["id"].as_str().unwrap())).expect(201);
    settled(&client, &path, "failed", 0);
    assert_eq!(receiver.received().len(), 1);
    // A test event contains no data of the account.
    client.act(&format!("{path}/test")).expect(200);
    received(&receiver, 2);
}

fn a_claimed_delivery_is_checked_again(db: Db) {
    let receiver = receiver(|_| Reply::new(200));
    let server = sending(db);
    let client = server.client();
    let (_, weak) = key(&server, &client, &["webhooks.write"]);
    let (path, _) = endpoint(&client, &receiver.url("/in"), &["*"]);
    // Between the claim and the attempt, another key becomes the author.
    let take = format!("UPDATE webhook_endpoints SET author_id = '{weak}' WHERE id = NEW.endpoint_id");
    let (when, set) = ("AFTER UPDATE ON webhook_deliveries", "NEW.status = 'sending'");
    let sqlite = format!("CREATE TRIGGER taken {when} WHEN {set} BEGIN {take}; END");
    let function = format!(
        "CREATE FUNCTION taken() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN {}; RETURN NULL; END'",
        take.replace('\'', "''")
    );
    let trigger = format!("CREATE TRIGGER taken {when} FOR EACH ROW WHEN ({set}) EXECUTE FUNCTION taken()");
    lost::both(&server, &[sqlite], &[function, trigger]);
    product(&client, "a");
    let failed = settled(&client, &path, "failed", 1);
    assert_eq!(failed["reason"], "The author of the endpoint may not read this event.");
    assert_eq!(receiver.received().len(), 0);
}

/// Webhooks, and runs of flows that somebody else fires, have no URL of a PDF that their author may not open.
fn files_of_documents_have_a_url_for_those_who_read_documents(db: Db) {
    let receiver = receiver(|_| Reply::new(200));
    let server = sending(db);
    let client = server.client();
    let scopes = ["webhooks.write", "automation.write", "tasks.write", "files.read"];
    for (path, more) in [("/with", &["invoices.read"][..]), ("/without", &[])] {
        let (maker, _) = key(&server, &client, &[&scopes[..], more].concat());
        endpoint(&maker, &receiver.url(path), &["file.created"]);
        let step = json!({"type": "create_task", "title": format!("{path} {{{{ data.url }}}}")});
        let flow = json!({"name": path, "trigger_type": "event", "trigger_key": "file.created", "steps": [step]});
        maker.post("/v1/automation/flows", flow).expect(201);
    }
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    let sent = json!({"title": "Oven", "client_id": firm, "rows": [{"name": "Oven", "unit_price": 100, "vat_rate": 21}],
        "generation_mode": "final"});
    client.post("/v1/invoices", sent).expect(201);
    server.block_on(async { while engine::jobs::worker::turn(&server.app).await {} });
    server.automate(&client);
    let all = received(&receiver, 2);
    let url = |path: &str| {
        let sent = all.iter().find(|one| one.path == path).unwrap();
        body(sent)["data"]["url"].as_str().unwrap().to_string()
    };
    assert!(url("/with").contains("/content?account="), "{}", url("/with"));
    assert_eq!(url("/without"), "");
    let tasks = client.get("/v1/tasks").expect(200).data();
    let title = |path: &str| {
        let mut titles = tasks.as_array().unwrap().iter().filter_map(|task| task["title"].as_str());
        titles.find(|title| title.starts_with(&format!("{path} "))).unwrap_or(path).trim().to_string()
    };
    assert!(title("/with").contains("/content?account="), "{tasks}");
    assert_eq!(title("/without"), "/without", "{tasks}");
}

/// Returns the types of the events of the feed, page by page.
fn feed(client: &Client, query: &str) -> Vec<String> {
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let page = client.get(&format!("/v1/changes?limit=2&after={after}{query}")).expect(200).json();
        let events = page["data"].as_array().unwrap();
        all.extend(events.iter().map(|event| event["type"].as_str().unwrap().to_string()));
        let last = page["meta"]["last_seq"].as_i64().unwrap();
        assert!(last > after || page["meta"]["has_more"] == false, "{page}");
        after = last;
        if page["meta"]["has_more"] == false {
            return all;
        }
    }
}

fn the_feed_has_what_the_caller_may_read(server: Shared) {
    let client = server.client();
    product(&client, "a");
    client.post("/v1/webhook-endpoints", json!({"url": "https://example.com/in"})).expect(201);
    let key = client.post("/v1/api-keys", json!({"name": "x", "scopes": ["products.read"]})).expect(201).id();
    let (_, member) = crate::people::member(&client, "ina@a.example", "member");
    client
        .post("/v1/automation/trigger", json!({"event": "x", "entity_type": "client", "data": {"id": "x"}}))
        .expect(200);
    product(&client, "b");
    let last = server.last_seq(&client);

    let auditor = server.with_scopes(&client, &["audit.read"]);
    let some = server.with_scopes(&client, &["audit.read", "products.read", "relations.read"]);
    assert_eq!(feed(&some, "&entity_type=product"), ["product.created", "product.created"]);
    let seen = feed(&some, "");
    assert!(seen.iter().all(|name| name.starts_with("product.") || name.starts_with("account.")), "{seen:?}");
    assert!(feed(&auditor, "").iter().all(|name| name.starts_with("account.")));
    for hidden in
        ["entity_type=api_key", "type=api_key.created", &format!("entity_id={key}"), "entity_type=webhook_endpoint"]
    {
        assert_eq!(feed(&auditor, &format!("&{hidden}")), Vec::<String>::new(), "{hidden}");
        assert!(!feed(&client, &format!("&{hidden}")).is_empty(), "{hidden}");
    }
    // A cursor passes what the caller may not read.
    let page = auditor.get(&format!("/v1/changes?after={last}")).expect(200).json();
    assert_eq!((&page["data"], &page["meta"]["has_more"]), (&json!([]), &json!(false)));
    assert_eq!(page["meta"]["last_seq"], server.last_seq(&client));
    let newest = some.get("/v1/changes?order=desc&limit=1").expect(200).json();
    assert_eq!((&newest["data"][0]["type"], &newest["meta"]["has_more"]), (&json!("product.created"), &json!(true)));
    // A member reads everything except keys and webhooks.
    let listed = member.get("/console/v1/changes?limit=1000").expect(200).data();
    let listed: Vec<&str> =
        listed.as_array().unwrap().iter().map(|event| event["entity_type"].as_str().unwrap()).collect();
    assert!(listed.contains(&"product") && listed.contains(&"user") && listed.contains(&"client"), "{listed:?}");
    assert!(!listed.contains(&"api_key") && !listed.contains(&"webhook_endpoint"), "{listed:?}");
    member.get(&format!("/console/v1/api-keys/{key}/history")).expect(403);
}

fn the_feed_has_several_filters(server: Shared) {
    let client = server.client();
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    let a = product(&client, "a");
    client.post("/v1/tasks", json!({"title": "Call"})).expect(201);
    client.patch(&format!("/v1/clients/{firm}"), json!({"company_name": "De Maan"})).expect(200);
    let (_, member) = crate::people::member(&client, "ina@a.example", "member");
    member.post("/console/v1/tasks", json!({"title": "Mail"})).expect(201);
    let first = ["customer.created", "product.created", "customer.updated"];
    assert_eq!(feed(&client, "&entity_type=client,product"), first);
    assert_eq!(feed(&client, &format!("&entity_id={a},{firm},{a}")), first);
    assert_eq!(feed(&client, "&type=customer.updated,product.created"), first[1..]);
    assert_eq!(feed(&client, "&entity_type=task&actor_type=user"), ["task.created"]);
    assert_eq!(feed(&client, "&entity_type=task&actor_type=key,user"), ["task.created", "task.created"]);
    assert_eq!(feed(&client, "&entity_type=task&actor_type=flow"), Vec::<String>::new());
    let newest = client.get("/v1/changes?order=desc&limit=2&entity_type=product,client").expect(200).data();
    assert_eq!((&newest[0]["type"], &newest[1]["type"]), (&json!("customer.updated"), &json!("product.created")));

    let strict =
        |query: &str| client.send("GET", &format!("/v1/changes?{query}"), &[("prefer", "handling=strict")], "");
    strict("type=product.created&actor_type=key&entity_type=product").expect(200);
    let refused = client.get("/v1/changes?actor_type=usr&type=product.created,product.bought").expect(422);
    assert_eq!(refused.faults(), ["actor_type: invalid_choice", "type: invalid_choice"]);
    assert!(
        refused.text.contains("did you mean 'user'?") && refused.text.contains("product.created"),
        "{}",
        refused.text
    );
    let misspelled = client.get("/v1/changes?type=invoice.payd").expect(422);
    assert!(
        misspelled.text.contains("has no event 'invoice.payd'; did you mean 'invoice.paid'?"),
        "{}",
        misspelled.text
    );
    // Events that callers fire may be about other types.
    let page = client.get("/v1/changes?entity_type=invoce").expect(200).json();
    let warning = "entity_type has 'invoce', which is not a type of record of Kantoor; did you mean 'invoice'?";
    assert_eq!((&page["data"], &page["meta"]["warnings"]), (&json!([]), &json!([warning])));
    for known in ["account", "api_key", "mail", "product,client"] {
        let page = client.get(&format!("/v1/changes?entity_type={known}")).expect(200).json();
        assert!(page["meta"]["warnings"].is_null(), "{known}: {page}");
    }
    let many: Vec<String> = (0..21).map(|n| n.to_string()).collect();
    assert_eq!(client.get(&format!("/v1/changes?actor={}", many.join(","))).expect(422).faults(), ["actor: too_long"]);
}

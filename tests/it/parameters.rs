//! Parameters of lists: e-mail addresses, several values, and what happens to those that do not exist.

use serde_json::{Value, json};

use crate::on_both;
use crate::support::{Client, Shared};

on_both![
    lists_are_filtered_by_email_address,
    filters_on_sets_take_several_values,
    every_small_set_is_a_filter,
    strict_requests_reject_unknown_parameters,
    unknown_values_of_filters_are_reported,
    unknown_values_of_the_change_feed_are_reported,
];

fn total(client: &Client, path: &str) -> i64 {
    client.get(path).expect(200).json()["meta"]["total"].as_i64().unwrap()
}

fn lists_are_filtered_by_email_address(server: Shared) {
    let client = server.client();
    for (path, field) in [("/v1/clients", "email"), ("/v1/suppliers", "email"), ("/v1/tickets", "client_email")] {
        for address in ["Anna@Ster.example", "bert@ster.example", ""] {
            let body = json!({"company_name": "x", field: address});
            let body = if path == "/v1/tickets" { json!({"subject": "x", field: address}) } else { body };
            client.post(path, body).expect(201);
        }
        for (text, count) in [
            ("anna@ster.example", 1),
            ("ANNA@STER.EXAMPLE", 1),
            ("x", 0),
            ("", 1),
            ("anna@ster.example,bert@ster.example", 0),
        ] {
            assert_eq!(total(&client, &format!("{path}?{field}={text}")), count, "{path} {text}");
        }
        let both = client.get(&format!("{path}?{field}=anna@ster.example&sort=id&order=asc&search=anna")).expect(200);
        assert_eq!(both.json()["meta"]["total"], 1);
        assert!(both.json()["meta"].get("ignored_params").is_none());
    }
    client.post("/v1/users", json!({"email": "olga@ster.example", "name": "Olga"})).expect(201);
    assert_eq!(total(&client, "/v1/users?email=Olga@ster.example"), 1);
    assert_eq!(total(&client, "/v1/users?email=x"), 0);
    assert_eq!(total(&client, "/v1/clients?email=anna@ster.example&contact_type=private"), 0);
}

fn every_small_set_is_a_filter(server: Shared) {
    let client = server.client();
    client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201);
    client.post("/v1/clients", json!({"type": "private", "lastname": "Smit"})).expect(201);
    for (query, count) in [("type=private", 1), ("type=company,private", 2)] {
        assert_eq!(total(&client, &format!("/v1/clients?{query}")), count, "{query}");
    }
    assert_eq!(client.get("/v1/clients?type=alien").expect(422).faults(), ["type: invalid_choice"]);
    let row = json!([{"name": "x", "unit_price": 1}]);
    let invoice = client.post("/v1/invoices", json!({"title": "x", "generate": true, "rows": row})).expect(201).id();
    client.post(&format!("/v1/invoices/{invoice}/credit"), json!({})).expect(201);
    assert_eq!((total(&client, "/v1/invoices?is_credit=1"), total(&client, "/v1/invoices?is_credit=false")), (1, 1));
    for term in ["monthly", "yearly"] {
        client
            .post("/v1/subscriptions", json!({"title": "x", "frequency": term, "lines": [{"title": "x"}]}))
            .expect(201);
    }
    for query in ["term=yearly", "frequency=yearly"] {
        assert_eq!(total(&client, &format!("/v1/subscriptions?{query}")), 1, "{query}");
    }
    assert_eq!(total(&client, "/v1/subscriptions?frequency=yearly,monthly"), 2);
    assert_eq!(client.get("/v1/subscriptions?frequency=sometimes").expect(422).faults(), ["frequency: invalid_choice"]);
    let firm = client.get("/v1/clients?type=company").data()[0]["id"].clone();
    for priority in ["low", "high"] {
        client.post("/v1/deals", json!({"title": "x", "client_id": firm, "priority": priority})).expect(201);
    }
    for language in ["nl", "en"] {
        let text = json!({"send_type": "invoice", "language": language, "subject": "x", "message": "x"});
        client.post("/v1/mail-templates", text).expect(201);
    }
    for (query, field, value) in [
        ("deals?priority=high", "priority", "high"),
        ("mail-templates?language=en", "language", "en"),
        ("tax-rates?type=reduced", "type", "reduced"),
        ("ticket-statuses?role=closed", "role", "closed"),
    ] {
        let found = client.get(&format!("/v1/{query}")).expect(200).data();
        let values: Vec<&Value> = found.as_array().unwrap().iter().map(|one| &one[field]).collect();
        assert!(!values.is_empty() && values.iter().all(|own| *own == value), "{query}: {found}");
    }
    let flow = json!({"name": "x", "category": "own", "trigger_type": "custom", "trigger_key": "a.b",
        "steps": [{"type": "create_task", "title": "x"}]});
    client.post("/v1/automation/flows", flow).expect(201);
    assert_eq!(total(&client, "/v1/automation/flows?category=own"), 1);
}

fn filters_on_sets_take_several_values(server: Shared) {
    let client = server.client();
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    client.post("/v1/clients", json!({"type": "private", "lastname": "Anna"})).expect(201);
    let made = |body: Value| client.post("/v1/invoices", body).expect(201).id();
    let row = json!([{"name": "x", "unit_price": 1}]);
    let ids: Vec<String> = (0..30)
        .map(|n| {
            let status = ["open", "overdue", "paid", "wacht, even"][n % 4];
            made(json!({"title": "x", "rows": row, "client_id": if n < 8 { firm.as_str() } else { "" }, "payment_status": status}))
        })
        .collect();
    assert_eq!(total(&client, "/v1/invoices?payment_status=open,overdue"), 16);
    assert_eq!(total(&client, "/v1/invoices?payment_status=open,%20overdue,paid"), 23);
    assert_eq!(total(&client, "/v1/invoices?payment_status=wacht,%20even"), 7, "a value of one's own may have a comma");
    assert_eq!(total(&client, &format!("/v1/invoices?payment_status=open,overdue&client_id={firm}")), 4);
    // In the order of the list, over pages.
    let expected: Vec<&String> = ids.iter().enumerate().rev().filter(|(n, _)| n % 4 < 2).map(|(_, id)| id).collect();
    let mut found: Vec<String> = Vec::new();
    for page in 1..=4 {
        let list = client.get(&format!("/v1/invoices?payment_status=open,overdue&per_page=5&page={page}")).expect(200);
        let data = list.data();
        found.extend(data.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_string()));
    }
    assert_eq!(found.iter().collect::<Vec<_>>(), expected);
    let asc = client.get("/v1/invoices?payment_status=open,overdue&order=asc&per_page=1").expect(200);
    assert_eq!(asc.data()[0]["id"], json!(ids[0]));
    let sums = client.get("/v1/invoices?payment_status=open,overdue&sums=total_excl_vat").expect(200).json();
    assert_eq!(sums["meta"]["sums"]["total_excl_vat"], json!(16));

    let deal = |title: &str| client.post("/v1/deals", json!({"title": title, "client_id": firm})).expect(201).id();
    let (won, lost) = (deal("a"), deal("b"));
    deal("c");
    client.act(&format!("/v1/deals/{won}/win")).expect(200);
    client.act(&format!("/v1/deals/{lost}/lose")).expect(200);
    assert_eq!(total(&client, "/v1/deals?status=won,lost"), 2);
    assert_eq!(client.get("/v1/deals?status=won,maybe").expect(422).faults(), ["status: invalid_choice"]);
    assert_eq!(client.get("/v1/deals?status=won,").expect(422).faults(), ["status: invalid_choice"]);
    for (subject, status) in [("a", "New"), ("b", "Open"), ("c", "Closed")] {
        client.post("/v1/tickets", json!({"subject": subject, "status": status})).expect(201);
    }
    assert_eq!(total(&client, "/v1/tickets?status=New,Closed"), 2);
    assert_eq!(total(&client, "/v1/tickets?priority=high,low"), 0);
    assert_eq!(total(&client, "/v1/clients?contact_type=company,private"), 2);
    assert_eq!(total(&client, "/v1/clients?contact_type=private,alien"), 1);
    assert_eq!(total(&client, "/v1/clients?contact_type=alien"), 2);
    assert_eq!(total(&client, "/v1/tax-rates?context=sales,purchase"), 12);
    assert_eq!(client.get("/v1/mails?status=sent,failed").expect(200).data(), json!([]));
    assert_eq!(client.get("/v1/mails?status=sent,x").expect(422).faults(), ["status: invalid_choice"]);
}

fn strict_requests_reject_unknown_parameters(server: Shared) {
    let client = server.client();
    let strict =
        |method: &str, path: &str, body: &str| client.send(method, path, &[("prefer", "handling=strict")], body);
    let details = |path: &str| -> Vec<(String, String, String)> {
        let reply = strict("GET", path, "").expect(422);
        assert_eq!(reply.header("preference-applied"), "handling=strict", "{path}");
        let text = |value: &Value| value.as_str().unwrap().to_string();
        let json = reply.json();
        let details = json["error"]["details"].as_array().unwrap();
        details.iter().map(|one| (text(&one["field"]), text(&one["code"]), text(&one["message"]))).collect()
    };
    let unknown = |name: &str, hint: &str| {
        (name.to_string(), "unknown_parameter".to_string(), format!("is not a known parameter{hint}"))
    };
    assert_eq!(details("/v1/clients?emial=x&zzz=1"), [unknown("emial", "; did you mean 'email'?"), unknown("zzz", "")]);
    assert_eq!(
        details("/v1/invoices?payment_stauts=open"),
        [unknown("payment_stauts", "; did you mean 'payment_status'?")]
    );
    // With whatever else is wrong.
    let both = details("/v1/invoices?page=0&due_date_form=2026-01-01");
    assert_eq!((both[0].0.as_str(), &both[1]), ("page", &unknown("due_date_form", "; did you mean 'due_date_from'?")));
    // Lists without pages, feeds, reports, single records, and requests that change something.
    assert_eq!(details("/v1/tax-rates?contxt=sales"), [unknown("contxt", "; did you mean 'context'?")]);
    assert_eq!(details("/v1/pipelines?x=1"), [unknown("x", "")]);
    assert_eq!(details("/v1/changes?entity_typ=task"), [unknown("entity_typ", "; did you mean 'entity_type'?")]);
    assert_eq!(details("/v1/search?q=ster&lmit=1").len(), 1);
    assert_eq!(details("/v1/mails?statu=sent"), [unknown("statu", "; did you mean 'status'?")]);
    assert_eq!(details("/v1/events/stream?aftr=1"), [unknown("aftr", "; did you mean 'after'?")]);
    let task = client.post("/v1/tasks", json!({"title": "Call"})).expect(201).id();
    assert_eq!(details(&format!("/v1/tasks/{task}?expand=client")), [unknown("expand", "")]);
    assert_eq!(details(&format!("/v1/tasks/{task}/history?pgae=1")), [unknown("pgae", "; did you mean 'page'?")]);
    let refused = strict("POST", "/v1/tasks?x=1", "{\"titel\": \"Call\"}").expect(422);
    assert_eq!(refused.faults(), ["x: unknown_parameter", "titel: unknown_field", "title: required"]);
    strict("POST", "/v1/tasks?x=1", "{\"title\": \"Call\"}").expect(422);
    assert_eq!(total(&client, "/v1/tasks"), 1, "nothing was created");

    // What is known works, and says that the preference was applied.
    let good =
        strict("GET", "/v1/clients?email=x&page=1&per_page=5&sort=id&order=asc&search=x&contact_type=company", "");
    assert_eq!(good.expect(200).header("preference-applied"), "handling=strict");
    let good = client.send(
        "GET",
        "/v1/invoices?sums=open_amount&date_from=2026-01-01",
        &[("prefer", "return=minimal, Handling=\"strict\"")],
        "",
    );
    assert_eq!(good.expect(200).header("preference-applied"), "handling=strict");
    let made = client.upload("a.txt", b"words").expect(201).data();
    let signed = made["url"].as_str().unwrap().replacen(&client.base, "", 1);
    client.send("GET", &signed, &[("authorization", ""), ("prefer", "handling=strict")], "").expect(200);
    client.send("GET", &signed, &[("prefer", "handling=strict")], "").expect(200);
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    strict("GET", &format!("/v1/clients/{firm}/direct-debit/mandate?subscription_id=x"), "").expect(200);
    // Without the preference, nothing changes.
    let lax = client.get("/v1/clients?emial=x").expect(200);
    assert_eq!((lax.header("preference-applied"), &lax.json()["meta"]["ignored_params"]), ("", &json!(["emial"])));
    let lenient = client.send("GET", "/v1/clients?emial=x", &[("prefer", "handling=lenient")], "");
    assert_eq!(lenient.expect(200).header("preference-applied"), "");
}

/// Returns the warnings of a list.
fn warnings(client: &Client, path: &str) -> Vec<String> {
    let json = client.get(path).expect(200).json();
    let texts = json["meta"]["warnings"].as_array().cloned().unwrap_or_default();
    texts.iter().map(|text| text.as_str().unwrap().to_string()).collect()
}

fn unknown_values_of_filters_are_reported(server: Shared) {
    let client = server.client();
    let strict = |path: &str| client.send("GET", path, &[("prefer", "handling=strict")], "");
    let row = json!([{"name": "x", "unit_price": 1}]);
    for status in ["open", "wacht, even", "bij incasso"] {
        client.post("/v1/invoices", json!({"title": "x", "rows": row, "payment_status": status})).expect(201);
    }
    client.post("/v1/ticket-statuses", json!({"name": "Wacht op onderdeel", "role": "open"})).expect(201);
    for (path, value, guess) in [
        ("/v1/invoices?payment_status=open,overdu", "overdu", "; did you mean 'overdue'?"),
        ("/v1/invoices?payment_status=Open", "Open", "; did you mean 'open'?"),
        ("/v1/quotes?payment_status=acepted", "acepted", "; did you mean 'accepted'?"),
        ("/v1/quotes?payment_status=open,paid", "paid", "expired, invoiced"),
        ("/v1/invoices?payment_status=acepted", "acepted", "overdue, credited"),
        ("/v1/workorders?payment_status=expired", "expired", "completed, invoiced"),
        ("/v1/automation/runs?status=faild", "faild", "; did you mean 'failed'?"),
        ("/v1/tickets?status=Opne", "Opne", "; did you mean 'Open'?"),
        (
            "/v1/tickets?status=Open,Wacht%20op%20onderdelen",
            "Wacht op onderdelen",
            "; did you mean 'Wacht op onderdeel'?",
        ),
        ("/v1/tickets?status=", "", ""),
        ("/v1/clients?contact_type=compny", "compny", "; did you mean 'company'?"),
    ] {
        let (_, rest) = path.split_once('?').unwrap();
        let parameter = rest.split('=').next().unwrap();
        let said = warnings(&client, path);
        assert_eq!(said.len(), 1, "{path}: {said:?}");
        let start = format!("{parameter} has the unknown value '{value}', which is none of ");
        assert!(said[0].starts_with(&start) && said[0].ends_with(guess), "{path}: {said:?}");
        let refused = strict(path).expect(422);
        assert_eq!(refused.faults(), [format!("{parameter}: invalid_choice")], "{path}");
        assert!(refused.text.contains(guess) && refused.text.contains(parameter), "{path}: {}", refused.text);
    }
    // Each of several, also of sets that are always checked.
    assert_eq!(warnings(&client, "/v1/invoices?payment_status=opne,paid,overdu").len(), 2);
    assert_eq!(strict("/v1/invoices?payment_status=opne,paid,overdu").expect(422).faults().len(), 2);
    let refused = client.get("/v1/deals?status=wno,lost,opne").expect(422);
    assert_eq!(refused.faults(), ["status: invalid_choice", "status: invalid_choice"]);
    // Fields are counted, not what is wrong with them.
    assert!(refused.text.contains("'status' has 2 errors; see details"), "{}", refused.text);
    let refused = client.get("/v1/deals?status=wno,opne&page=0").expect(422);
    assert!(refused.text.contains("2 fields are invalid; see details"), "{}", refused.text);
    let refused = client.get("/v1/deals?status=wno,lost,opne").expect(422);
    assert!(refused.text.contains("did you mean 'won'?") && refused.text.contains("did you mean 'open'?"));
    assert_eq!(client.get("/v1/mails?status=snt,x").expect(422).faults().len(), 2);
    for wrong in ["garbage", "", "2026-05-04"] {
        let refused = client.get(&format!("/v1/mails?before={wrong}")).expect(422);
        assert_eq!(refused.faults(), ["before: invalid_format"], "{wrong}");
    }
    client.get("/v1/mails?before=019df263-b4af-739d-95b6-5a14849e885a").expect(200);
    let sorted = client.get("/v1/clients?sort=company_nam").expect(422);
    assert!(sorted.text.contains("did you mean 'company_name'?"), "{}", sorted.text);
    // What is known, also to this account alone.
    for path in [
        "/v1/invoices?payment_status=open,overdue",
        "/v1/invoices?payment_status=wacht,%20even",
        "/v1/invoices?payment_status=open,bij%20incasso",
        "/v1/automation/runs?status=canceled,cancelled,failed",
        "/v1/tickets?status=New,Wacht%20op%20onderdeel",
        "/v1/clients?contact_type=company",
    ] {
        assert_eq!(warnings(&client, path), Vec::<String>::new(), "{path}");
        strict(path).expect(200);
    }
}

fn unknown_values_of_the_change_feed_are_reported(server: Shared) {
    let client = server.client();
    let strict = |path: &str| client.send("GET", path, &[("prefer", "handling=strict")], "");
    for name in ["type", "entity_type", "entity_id", "actor", "actor_type"] {
        for value in [",", "", "%20,"] {
            let path = format!("/v1/changes?{name}={value}");
            assert_eq!(warnings(&client, &path), [format!("{name} has no value and was ignored")], "{path}");
            assert_eq!(strict(&path).expect(422).faults(), [format!("{name}: required")], "{path}");
        }
    }
    for (kind, meant) in [("customer", "client"), ("Clients", "client"), ("invoces", "invoice")] {
        let path = format!("/v1/changes?entity_type=invoice,{kind}");
        let expected =
            format!("entity_type has '{kind}', which is not a type of record of Kantoor; did you mean '{meant}'?");
        assert_eq!(warnings(&client, &path), [expected]);
        assert_eq!(strict(&path).expect(422).faults(), ["entity_type: invalid_choice"]);
    }
    strict("/v1/changes?entity_type=client&type=client.created,").expect(200);
    // Whoever fires events may use types of their own.
    client.post("/v1/automation/trigger", json!({"event": "order.shipped", "entity_type": "order"})).expect(200);
    assert_eq!(warnings(&client, "/v1/changes?entity_type=order"), Vec::<String>::new());
    for path in ["/v1/changes?type=invoice.payd,client.creatd", "/v1/events/types?type=invoice.payd,client.creatd"] {
        let refused = client.get(path).expect(422);
        assert_eq!(refused.faults(), ["type: invalid_choice", "type: invalid_choice"], "{path}");
        assert!(refused.text.contains("'invoice.paid'") && refused.text.contains("'customer.created'"), "{path}");
        // What was typed is named.
        assert!(refused.text.contains("has no event 'client.creatd'"), "{}", refused.text);
    }
    let both = client.get("/v1/changes?actor_type=usr,kee").expect(422);
    assert_eq!(both.faults(), ["actor_type: invalid_choice", "actor_type: invalid_choice"]);
}

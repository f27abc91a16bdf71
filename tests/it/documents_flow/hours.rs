//! The approved hours of a project become an invoice, once.

use serde_json::{Value, json};

use super::company;
use crate::on_both;
use crate::support::{Client, Shared};

on_both![
    approved_hours_become_the_rows_of_a_draft,
    the_language_is_that_of_the_client,
    hours_are_invoiced_once,
    a_deleted_draft_frees_its_hours,
    a_draft_keeps_its_hours_until_it_is_gone,
    hours_are_released_from_drafts_and_credited_invoices,
    requests_at_once_make_one_invoice,
    a_repeated_request_makes_one_invoice,
    only_the_server_sets_the_invoice_of_hours,
    hours_are_listed_by_their_invoice,
    hours_that_cannot_be_invoiced_stay_as_they_are,
];

fn project(client: &Client) -> String {
    client.post("/v1/projects", json!({"name": "Oven", "client_id": company(client)})).expect(201).id()
}

/// Logs hours and approves them; returns their id.
fn approved(client: &Client, project: &str, body: Value) -> String {
    let hours = format!("/v1/projects/{project}/hours");
    let id = client.post(&hours, body).expect(201).id();
    for action in ["submit", "approve"] {
        client.act(&format!("{hours}/{id}/{action}")).expect(200);
    }
    id
}

/// The invoice of an entry.
fn invoice_of(client: &Client, hour: &str) -> Value {
    client.get(&format!("/v1/hours?id={hour}")).expect(200).data()[0]["meta"]["invoice_id"].clone()
}

fn total(client: &Client, path: &str) -> Value {
    client.get(path).expect(200).json()["meta"]["total"].clone()
}

/// Returns the name and the quantity of each row.
fn rows(invoice: &Value) -> Vec<(String, String)> {
    let rows = invoice["rows"].as_array().unwrap().iter();
    rows.map(|row| (row["name"].as_str().unwrap().to_string(), row["quantity"].to_string())).collect()
}

fn row(name: &str, quantity: &str) -> (String, String) {
    (name.to_string(), quantity.to_string())
}

fn approved_hours_become_the_rows_of_a_draft(server: Shared) {
    let client = server.client();
    let project = project(&client);
    let ina = client.post("/v1/users", json!({"email": "ina@a.example", "name": "Ina"})).expect(201).id();
    let design = |date: &str, minutes: i64, user: &str| -> Value {
        json!({"date": date, "minutes": minutes, "activity_name": "Design", "user_id": user})
    };
    // Not in the order of their dates.
    let second = approved(&client, &project, design("2026-05-06", 30, &ina));
    let first = approved(&client, &project, design("2026-05-04", 90, &ina));
    approved(&client, &project, design("2026-05-05", 60, ""));
    approved(&client, &project, json!({"date": "2026-05-31", "minutes": 20}));
    let later = approved(&client, &project, json!({"date": "2026-06-01", "hours": 8}));
    let waiting =
        client.post(&format!("/v1/projects/{project}/hours"), design("2026-05-04", 60, &ina)).expect(201).id();
    let before = server.last_seq(&client);
    let body = json!({"from": "2026-05-01", "to": "2026-05-31", "unit_price": 85, "vat_code": "nl21"});
    let made = client.post(&format!("/v1/projects/{project}/invoice"), body).expect(201);
    let invoice = made.data();
    let id = invoice["id"].as_str().unwrap();
    assert_eq!(made.header("location"), format!("/v1/invoices/{id}"));
    assert_eq!(invoice["title"], "Uren Oven, 1 mei 2026 – 31 mei 2026");
    assert_eq!(rows(&invoice), [row("Design, Ina", "2"), row("Design", "1"), row("Werk", "0.33")]);
    let one = &invoice["rows"][0];
    assert_eq!((&one["unit"], &one["unit_price"], &one["vat_code"]), (&json!("uur"), &json!(85), &json!("NL21")));
    assert_eq!(invoice["total_excl_vat"].to_string(), "283.05");
    let own = client.get(&format!("/v1/projects/{project}")).data();
    assert_eq!((&invoice["client_id"], &invoice["project_number"]), (&own["client_id"], &own["number"]));
    assert_eq!((&invoice["meta"]["generation_mode"], &invoice["meta"]["project_id"]), (&json!("draft"), &own["id"]));
    for (hour, bills) in [(&first, true), (&second, true), (&later, false), (&waiting, false)] {
        assert_eq!(invoice_of(&client, hour), if bills { json!(id) } else { json!(null) });
    }
    let events = server.events(&client, before);
    let count = |name: &str| events.iter().filter(|event| *event == name).count();
    assert_eq!((count("invoice.created"), count("hour.updated")), (1, 4), "{events:?}");
    let history = client.get(&format!("/v1/projects/{project}/hours/{first}/history")).expect(200).text;
    assert!(history.contains(id), "{history}");
}

fn the_language_is_that_of_the_client(server: Shared) {
    let client = server.client();
    let firm = client.post("/v1/clients", json!({"company_name": "Ofen", "country": "DE"})).expect(201).id();
    let abroad = client.post("/v1/projects", json!({"name": "Oven", "client_id": firm})).expect(201).id();
    approved(&client, &abroad, json!({"date": "2026-05-04", "hours": 1}));
    // Without a body, everything up to now is invoiced, without a price.
    let invoice = client.act(&format!("/v1/projects/{abroad}/invoice")).expect(201).data();
    assert_eq!(
        (invoice["title"].as_str().unwrap(), rows(&invoice)),
        ("Hours Oven, 4 May 2026", vec![row("Work", "1")])
    );
    assert_eq!((&invoice["rows"][0]["unit"], &invoice["total_incl_vat"]), (&json!("hour"), &json!(0)));
    let own = client.post("/v1/projects", json!({"name": "Shed"})).expect(201).id();
    approved(&client, &own, json!({"date": "2026-05-04", "hours": 1, "activity_name": "Paint"}));
    approved(&client, &own, json!({"date": "2026-05-06", "hours": 1, "activity_name": "Paint"}));
    let made = client.post(&format!("/v1/projects/{own}/invoice"), json!({"title": "My shed"})).expect(201);
    assert_eq!((made.data()["title"].clone(), rows(&made.data())), (json!("My shed"), vec![row("Paint", "2")]));
    assert_eq!(made.json()["meta"]["warnings"], json!(["The document has no client."]));
}

fn hours_are_invoiced_once(server: Shared) {
    let client = server.client();
    let project = project(&client);
    let path = format!("/v1/projects/{project}/invoice");
    let hour = approved(&client, &project, json!({"date": "2026-05-04", "hours": 2}));
    let later = json!({"date": "2026-05-05", "hours": 3, "activity_name": "Paint"});
    let later = client.post(&format!("/v1/projects/{project}/hours"), later).expect(201).id();
    let period = json!({"from": "2026-05-01", "to": "2026-05-31", "unit_price": 85, "vat_code": "NL21"});
    let first = client.post(&path, period.clone()).expect(201).id();
    let refused = client.post(&path, period.clone()).expect(409);
    assert_eq!(refused.code(), "invalid_transition");
    assert!(refused.text.contains("No approved hours of this period are left to invoice."), "{}", refused.text);
    // What is approved later is on the next invoice, also of the same period.
    client.post("/v1/hours/submit", json!({"ids": [later]})).expect(200);
    client.post("/v1/hours/approve", json!({"ids": [later]})).expect(200);
    let second = client.post(&path, period.clone()).expect(201).data();
    assert_eq!(rows(&second), [row("Paint", "3")]);
    assert_eq!((invoice_of(&client, &hour), invoice_of(&client, &later)), (json!(first), second["id"].clone()));
    // A final invoice keeps its hours, also when it is credited.
    client.act(&format!("/v1/invoices/{first}/finalize")).expect(200);
    client.act(&format!("/v1/invoices/{first}/credit")).expect(201);
    client.delete(&format!("/v1/invoices/{first}")).expect(409);
    assert_eq!(invoice_of(&client, &hour), json!(first));
    client.post(&path, period).expect(409);
}

fn a_deleted_draft_frees_its_hours(server: Shared) {
    let client = server.client();
    let project = project(&client);
    let hours = format!("/v1/projects/{project}/hours");
    // More than are looked up at a time.
    let ids: Vec<String> =
        (0..120).map(|_| client.post(&hours, json!({"date": "2026-05-04", "hours": 1})).expect(201).id()).collect();
    client.post("/v1/hours/submit", json!({"ids": ids})).expect(200);
    client.post("/v1/hours/approve", json!({"ids": ids})).expect(200);
    let first = client.act(&format!("/v1/projects/{project}/invoice")).expect(201).data();
    assert_eq!(rows(&first), [row("Werk", "120")]);
    assert_eq!(total(&client, &format!("{hours}?invoiced=true")), 120);
    let before = server.last_seq(&client);
    client.delete(&format!("/v1/invoices/{}", first["id"].as_str().unwrap())).expect(200);
    assert_eq!(
        (total(&client, &format!("{hours}?invoiced=true")), invoice_of(&client, &ids[7])),
        (json!(0), json!(null))
    );
    let events = server.events(&client, before);
    assert_eq!(events.iter().filter(|event| *event == "hour.updated").count(), 120);
    // They are still approved, and can be invoiced again.
    let second = client.act(&format!("/v1/projects/{project}/invoice")).expect(201).data();
    assert_eq!(rows(&second), rows(&first));
    assert_eq!(total(&client, &format!("/v1/hours?invoice_id={}", second["id"].as_str().unwrap())), 120);
}

fn a_draft_keeps_its_hours_until_it_is_gone(server: Shared) {
    let client = server.client();
    let project = project(&client);
    approved(&client, &project, json!({"date": "2026-05-04", "hours": 2}));
    let draft = client.act(&format!("/v1/projects/{project}/invoice")).expect(201).id();
    for _ in 0..3 {
        client.post("/v1/notes", json!({"body": "x", "invoice_id": draft})).expect(201);
    }
    let before = server.last_seq(&client);
    client.delete(&format!("/v1/invoices/{draft}")).expect(200);
    // With many notes there are several transactions, and the draft can become final between them.
    let events = server.events(&client, before);
    let last = |name: &str| events.iter().rposition(|event| event == name).unwrap();
    assert!(last("note.updated") < last("hour.updated"), "{events:?}");
    assert!(last("hour.updated") < last("invoice.deleted"), "{events:?}");
}

fn hours_are_released_from_drafts_and_credited_invoices(server: Shared) {
    let client = server.client();
    let project = project(&client);
    let day =
        |day: u8, activity: &str| json!({"date": format!("2026-05-0{day}"), "hours": 2, "activity_name": activity});
    let (paint, saw) = (approved(&client, &project, day(4, "Paint")), approved(&client, &project, day(5, "Saw")));
    let bill = || {
        let wish = json!({"unit_price": 50, "vat_code": "NL21"});
        client.post(&format!("/v1/projects/{project}/invoice"), wish).expect(201).data()
    };
    let invoices = || (invoice_of(&client, &paint), invoice_of(&client, &saw));
    let draft = bill();
    let own = format!("/v1/invoices/{}", draft["id"].as_str().unwrap());
    let release = format!("{own}/release-hours");

    // One of the hours goes to another invoice, with its row.
    let left = json!([{"name": "Paint", "quantity": 2, "unit_price": 50, "vat_code": "NL21"}]);
    client.patch(&own, json!({"rows": left})).expect(200);
    let before = server.last_seq(&client);
    assert_eq!(client.post(&release, json!({"ids": [saw, "none"]})).expect(200).data(), json!({"released": [saw]}));
    assert_eq!(server.events(&client, before), ["hour.updated"]);
    assert_eq!(invoices(), (draft["id"].clone(), json!(null)));
    assert_eq!(client.post(&release, json!({"ids": [saw]})).expect(200).data(), json!({"released": []}));
    let second = bill();
    assert_eq!((rows(&second), invoice_of(&client, &saw)), (vec![row("Saw", "2")], second["id"].clone()));

    // A final invoice keeps them until it is credited in full.
    client.act(&format!("{own}/finalize")).expect(200);
    let refused = client.act(&release).expect(409);
    assert_eq!(refused.code(), "invalid_transition");
    assert!(refused.text.contains("is final and not credited in full, so it keeps its hours."), "{}", refused.text);
    client.act(&format!("{own}/credit")).expect(201);
    assert_eq!(invoice_of(&client, &paint), draft["id"]);
    assert_eq!(client.act(&release).expect(200).data(), json!({"released": [paint]}));
    assert_eq!(invoices(), (json!(null), second["id"].clone()));
    assert_eq!(rows(&bill()), [row("Paint", "2")]);

    for scopes in [&["invoices.write", "invoices.read"][..], &["projects.write", "projects.read"]] {
        server.with_scopes(&client, scopes).act(&release).expect(403);
    }
    server.client().act(&release).expect(404);
}

fn requests_at_once_make_one_invoice(server: Shared) {
    let client = server.client();
    let project = project(&client);
    let hour = approved(&client, &project, json!({"date": "2026-05-04", "hours": 2}));
    let path = format!("/v1/projects/{project}/invoice");
    let mut statuses: Vec<u16> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| client.clone().act(&path).status)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409]);
    let invoices = client.get("/v1/invoices").expect(200).data();
    assert_eq!((invoices.as_array().unwrap().len(), &invoices[0]["id"]), (1, &invoice_of(&client, &hour)));
}

fn a_repeated_request_makes_one_invoice(server: Shared) {
    let client = server.client();
    let project = project(&client);
    approved(&client, &project, json!({"date": "2026-05-04", "hours": 2}));
    let path = format!("/v1/projects/{project}/invoice");
    let [first, again] = [(); 2].map(|()| client.send("POST", &path, &[("idempotency-key", "k")], "{}").expect(201));
    assert_eq!((first.id(), again.header("x-idempotent-replay")), (again.id(), "true"));
    assert_eq!(total(&client, "/v1/invoices"), 1);
}

fn only_the_server_sets_the_invoice_of_hours(server: Shared) {
    let client = server.client();
    let project = project(&client);
    let hours = format!("/v1/projects/{project}/hours");
    let hour = approved(&client, &project, json!({"date": "2026-05-04", "hours": 2}));
    let draft = client.post(&hours, json!({"hours": 1})).expect(201).id();
    let invoice = client.act(&format!("/v1/projects/{project}/invoice")).expect(201).id();
    for reply in [
        client.post(&hours, json!({"hours": 1, "invoice_id": invoice})),
        client.patch(&format!("{hours}/{draft}"), json!({"invoice_id": invoice})),
    ] {
        assert_eq!(reply.expect(422).faults(), ["invoice_id: read_only"]);
    }
    let own = format!("{hours}/{hour}");
    assert_eq!(client.patch(&own, json!({"hours": 3})).expect(409).code(), "locked");
    assert_eq!(client.delete(&own).expect(409).code(), "locked");
    assert_eq!(invoice_of(&client, &hour), json!(invoice));
}

fn hours_are_listed_by_their_invoice(server: Shared) {
    let client = server.client();
    let project = project(&client);
    let billed = approved(&client, &project, json!({"date": "2026-05-04", "hours": 2}));
    let invoice = client.act(&format!("/v1/projects/{project}/invoice")).expect(201).id();
    let other = approved(&client, &project, json!({"date": "2026-05-05", "hours": 3}));
    for list in ["/v1/hours".to_string(), format!("/v1/projects/{project}/hours")] {
        let found = |query: &str| -> Vec<String> {
            let data = client.get(&format!("{list}?{query}")).expect(200).data();
            data.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_string()).collect()
        };
        assert_eq!(found("invoiced=true"), std::slice::from_ref(&billed));
        assert_eq!(found("invoiced=false"), std::slice::from_ref(&other));
        assert_eq!(found(&format!("invoice_id={invoice}")), std::slice::from_ref(&billed));
        assert_eq!(
            found("invoiced=false&status=approved&from=2026-05-01&to=2026-05-31&sort=date"),
            std::slice::from_ref(&other)
        );
        assert_eq!(found("invoiced=true&from=2026-05-05"), Vec::<String>::new());
        let sums = client.get(&format!("{list}?invoiced=true&sums=hours")).expect(200).json()["meta"]["sums"].clone();
        assert_eq!(sums, json!({"hours": 2}));
        assert_eq!(
            client.get(&format!("{list}?invoiced=2")).expect(422).faults()[0].split(':').next(),
            Some("invoiced")
        );
    }
}

fn hours_that_cannot_be_invoiced_stay_as_they_are(server: Shared) {
    let (client, stranger) = (server.client(), server.client());
    let project = project(&client);
    let hour = approved(&client, &project, json!({"date": "2026-05-04", "hours": 2}));
    let path = format!("/v1/projects/{project}/invoice");
    assert_eq!(stranger.act(&path).expect(404).code(), "not_found");
    for (body, fault) in [
        (json!({"vat_code": "XX99"}), "vat_code: reference_not_found"),
        (json!({"from": "2026-05-31", "to": "2026-05-01"}), "to: out_of_range"),
        (json!({"unit_price": -1}), "unit_price: out_of_range"),
        (json!({"rows": []}), "rows: unknown_field"),
    ] {
        assert_eq!(client.post(&path, body).expect(422).faults(), [fault]);
    }
    for scope in ["projects.write", "invoices.write"] {
        assert_eq!(server.with_scopes(&client, &[scope]).act(&path).status, 403, "{scope}");
    }
    assert_eq!((total(&client, "/v1/invoices"), invoice_of(&client, &hour)), (json!(0), json!(null)));
    let both = server.with_scopes(&client, &["projects.write", "invoices.write"]);
    both.act(&path).expect(201);
    assert_ne!(invoice_of(&client, &hour), json!(null));
}

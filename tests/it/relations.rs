//! Clients, suppliers and deals: from a lead to a sale.

mod tickets;

use serde_json::{Value, json};

use crate::on_both;
use crate::support::{Client, Shared};

fn keys(value: &Value) -> Vec<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

const FIELDS: &[&str] = &[
    "id",
    "type",
    "company_name",
    "firstname",
    "lastname",
    "email",
    "phone",
    "address",
    "zipcode",
    "city",
    "country",
    "company_registration_number",
    "vat_number",
    "website",
    "iban",
    "bank_account_name",
    "bic",
    "payment_term",
    "quote_expiration_days",
    "default_revenue_account",
    "email_invoices",
    "email_reminders",
    "mail_salutation",
    "debtor_number",
    "custom_fields",
    "meta",
];

fn company(client: &Client, name: &str) -> String {
    client.post("/v1/clients", json!({"type": "company", "company_name": name})).expect(201).id()
}

fn phases(client: &Client) -> Vec<String> {
    let pipeline = client.get("/v1/pipelines").data()[0].clone();
    pipeline["phases"].as_array().unwrap().iter().map(|phase| phase["id"].as_str().unwrap().to_string()).collect()
}

on_both![
    clients_and_suppliers_as_the_contract_says,
    reports_every_invalid_field_of_a_client,
    people_are_linked_to_companies,
    a_lead_becomes_a_won_deal,
    deals_move_between_pipelines,
    a_pipeline_is_shown_with_its_phases,
    records_created_in_a_final_status_emit_its_event,
    accepts_both_spellings_of_cancelled,
    a_project_with_hours,
];

fn clients_and_suppliers_as_the_contract_says(server: Shared) {
    let client = server.client();
    let before = server.last_seq(&client);
    let body = json!({"type": "company", "company_name": "Bakkerij De Ster", "email": "info@ster.example", "country": "Nederland",
            "iban": "nl91 abna 0417 1643 00", "vat_number": "be 0403.019.261", "payment_term": 30, "external_id": "crm-7",
            "email_invoices": "a@ster.example,b@ster.example"});
    let made = client.post("/v1/clients", body).expect(201);
    let data = made.data();
    assert_eq!(keys(&data), FIELDS);
    assert_eq!(
        (&data["country"], &data["iban"], &data["vat_number"]),
        (&json!("NL"), &json!("NL91ABNA0417164300"), &json!("BE0403019261"))
    );
    assert_eq!(
        (&data["debtor_number"], &data["email_invoices"]),
        (&json!("1"), &json!("a@ster.example, b@ster.example"))
    );
    assert_eq!(data["meta"]["external_id"], "crm-7");
    let path = format!("/v1/clients/{}", made.id());
    client.patch(&path, json!({"city": "Utrecht"})).expect(200);
    assert_eq!(server.events(&client, before), ["customer.created", "customer.updated"]);
    let twice = client.post("/v1/clients", json!({"company_name": "Other", "external_id": "crm-7"})).expect(409);
    assert_eq!(twice.code(), "duplicate_external_id");
    client.patch(&path, json!({"external_id": "crm-7", "phone": "1"})).expect(200);
    // A nested object; the top level takes precedence.
    let nested = client
        .post("/v1/clients", json!({"client": {"type": "private", "lastname": "Nested", "city": "A"}, "city": "B"}))
        .expect(201)
        .data();
    assert_eq!(
        (&nested["type"], &nested["lastname"], &nested["city"]),
        (&json!("private"), &json!("Nested"), &json!("B"))
    );
    assert_eq!(client.get("/v1/clients?contact_type=private").json()["meta"]["total"], 1);
    assert_eq!(client.get("/v1/clients?contact_type=alien").expect(200).json()["meta"]["total"], 2);
    assert_eq!(client.get("/v1/clients?search=STER").json()["meta"]["total"], 1);
    assert_eq!(client.get("/v1/clients?search=nested").json()["meta"]["total"], 1);
    let supplier = client.post("/v1/suppliers", json!({"company_name": "Molen", "city": "Utrecht"})).expect(201).data();
    assert_eq!(keys(&supplier), FIELDS);
    assert_eq!(
        client.post("/v1/suppliers", json!({"company_name": "x", "iban": "NL91ABNA0417164300"})).expect(422).faults(),
        ["iban: read_only"]
    );
}

fn reports_every_invalid_field_of_a_client(server: Shared) {
    let client = server.client();
    let body = json!({"type": "company", "email": "nope", "iban": "NL91ABNA0417164301", "bic": "X", "vat_number": "BE1",
            "country": "Atlantis", "website": "javascript:alert(1)", "payment_term": -1, "email_reminders": "a@b.nl, c"});
    let faults = client.post("/v1/clients", body).expect(422).faults();
    let fields: Vec<&str> = faults.iter().map(|fault| fault.split(':').next().unwrap()).collect();
    assert_eq!(
        fields,
        ["email", "iban", "bic", "vat_number", "country", "website", "payment_term", "email_reminders", "company_name"]
    );
    assert_eq!(client.post("/v1/clients", json!({"type": "company"})).expect(422).faults(), ["company_name: required"]);
    // The required name depends on the type.
    assert_eq!(client.post("/v1/clients", json!({"type": "robot"})).expect(422).faults(), ["type: invalid_choice"]);
    assert_eq!(
        client.post("/v1/clients", json!({"type": "private", "lastname": 1})).expect(422).faults(),
        ["lastname: wrong_type"]
    );
    assert_eq!(
        client.post("/v1/clients", json!({"type": "private", "company_name": "x"})).expect(422).faults(),
        ["firstname: required"]
    );
    let id = company(&client, "Good");
    assert_eq!(
        client.patch(&format!("/v1/clients/{id}"), json!({"company_name": ""})).expect(422).faults(),
        ["company_name: required"]
    );
}

fn people_are_linked_to_companies(server: Shared) {
    let client = server.client();
    let firm = company(&client, "Firm");
    let person = client.post("/v1/clients", json!({"type": "private", "lastname": "Jansen"})).expect(201).id();
    let path = format!("/v1/clients/{firm}/links");
    let link = client.post(&path, json!({"client_id": person, "function": "CEO"})).expect(201);
    let data = link.data();
    assert_eq!(
        (&data["company_id"], &data["client_id"], &data["function"], &data["department"]),
        (&json!(firm), &json!(person), &json!("CEO"), &json!(""))
    );
    assert_eq!(link.header("location"), format!("{path}/{}", link.id()));
    assert_eq!(client.get(link.header("location")).expect(200).data(), data);
    assert_eq!(client.post(&path, json!({"client_id": person})).expect(409).code(), "already_linked");
    assert_eq!(client.post(&path, json!({"client_id": firm})).expect(422).faults(), ["client_id: invalid_choice"]);
    assert_eq!(
        client.post(&path, json!({"client_id": "nobody"})).expect(422).faults(),
        ["client_id: reference_not_found"]
    );
    assert_eq!(client.post("/v1/clients/nobody/links", json!({"client_id": person})).status, 404);
    // A company and a person, in this order.
    let other = company(&client, "Other");
    let (people, companies) = (format!("/v1/clients/{person}/links"), ["client_id: invalid_choice"]);
    assert_eq!(client.post(&path, json!({"client_id": other})).expect(422).faults(), companies);
    assert_eq!(client.post(&people, json!({"client_id": person})).expect(422).faults(), ["company_id: invalid_choice"]);
    assert_eq!(
        client.post(&people, json!({"client_id": firm})).expect(422).faults(),
        ["company_id: invalid_choice", "client_id: invalid_choice"]
    );
    // Their types cannot change while they are linked.
    let become_private = json!({"type": "private", "lastname": "Firm"});
    assert_eq!(
        client.patch(&format!("/v1/clients/{firm}"), become_private.clone()).expect(422).faults(),
        ["type: invalid_choice"]
    );
    let become_company = json!({"type": "company", "company_name": "Jansen"});
    assert_eq!(
        client.patch(&format!("/v1/clients/{person}"), become_company).expect(422).faults(),
        ["type: invalid_choice"]
    );
    client.patch(&format!("/v1/clients/{other}"), become_private).expect(200);
    assert_eq!(client.get(&path).json()["meta"], json!({"total": 1}));
    assert_eq!(client.get(&format!("{people}/{}", link.id())).status, 404);
    assert_eq!(client.delete(&format!("/v1/clients/{person}/links/{}", link.id())).status, 404);
    assert_eq!(client.delete(&format!("{path}/{}", link.id())).status, 204);
}

fn a_lead_becomes_a_won_deal(server: Shared) {
    let client = server.client();
    let firm = company(&client, "Lead");
    let phases = phases(&client);
    assert_eq!(phases.len(), 5);
    assert_eq!(client.post("/v1/deals", json!({"title": "x"})).expect(422).faults(), ["client_id: required"]);
    let before = server.last_seq(&client);
    let made =
        client.post("/v1/deals", json!({"title": "Website", "client_id": firm, "amount": "2500.50"})).expect(201);
    let data = made.data();
    assert_eq!(
        keys(&data),
        [
            "id",
            "title",
            "amount",
            "status",
            "priority",
            "pipeline_id",
            "phase_id",
            "client_id",
            "expected_close_date",
            "created_at",
            "meta"
        ]
    );
    assert_eq!(
        (&data["amount"], &data["status"], &data["priority"], &data["phase_id"]),
        (&json!(2500.5), &json!("open"), &json!("medium"), &json!(phases[0]))
    );
    let path = format!("/v1/deals/{}", made.id());
    assert_eq!(client.post(&format!("{path}/move"), json!({})).expect(422).faults(), ["body: no_fields"]);
    assert_eq!(client.act(&format!("{path}/move")).expect(422).faults(), ["body: no_fields"]);
    for (body, faults) in [
        (json!({"phase_id": null}), vec!["body: no_fields"]),
        (json!({"phase_id": null, "status": null}), vec!["body: no_fields"]),
        (json!({"phase_id": "", "status": ""}), vec!["status: invalid_choice", "phase_id: required"]),
        (json!({"phase_id": " ", "status": "won"}), vec!["phase_id: required"]),
    ] {
        assert_eq!(client.post(&format!("{path}/move"), body).expect(422).faults(), faults);
    }
    assert_eq!(
        client.post(&format!("{path}/move"), json!({"phase_id": "nope"})).expect(422).faults(),
        ["phase_id: reference_not_found"]
    );
    let moved = client.post(&format!("{path}/move"), json!({"phase_id": phases[2]})).expect(200).data();
    assert_eq!(moved["phase_id"], phases[2]);
    for _ in 0..2 {
        assert_eq!(client.act(&format!("{path}/win")).expect(200).data()["status"], "won");
    }
    assert_eq!(client.act(&format!("{path}/lose")).expect(200).data()["status"], "lost");
    assert_eq!(client.patch(&path, json!({"status": "open"})).expect(200).data()["status"], "open");
    assert_eq!(
        server.events(&client, before),
        [
            "deal.created",
            "deal.updated",
            "deal.phase_changed",
            "deal.updated",
            "deal.won",
            "deal.updated",
            "deal.lost",
            "deal.updated",
        ]
    );
    for (filter, total) in [
        ("status=open", 1),
        ("status=won", 0),
        (&format!("client_id={firm}"), 1),
        (&format!("phase_id={}", phases[2]), 1),
    ] {
        assert_eq!(client.get(&format!("/v1/deals?{filter}")).json()["meta"]["total"], total, "{filter}");
    }
    assert_eq!(client.get("/v1/deals?status=maybe").expect(422).faults(), ["status: invalid_choice"]);
    assert_eq!(client.patch(&path, json!({"amount": "1,50"})).expect(422).faults(), ["amount: wrong_type"]);
    assert_eq!(client.delete(&path).expect(200).data()["title"], "Website");
    assert_eq!(client.get(&path).status, 404);
}

fn deals_move_between_pipelines(server: Shared) {
    let client = server.client();
    let firm = company(&client, "Firm");
    let first = phases(&client);
    let other = client.post("/v1/pipelines", json!({"name": "Partners", "order": 2})).expect(201).id();
    let phase = |name: &str, order: i64| {
        client.post("/v1/phases", json!({"pipeline_id": other, "name": name, "order": order})).expect(201).id()
    };
    let (late, early) = (phase("Late", 2), phase("Early", 1));
    let deal = client.post("/v1/deals", json!({"title": "d", "client_id": firm, "pipeline_id": other})).expect(201);
    assert_eq!(deal.data()["phase_id"], json!(early));
    let clash = json!({"title": "d", "client_id": firm, "pipeline_id": other, "phase_id": first[0]});
    assert_eq!(client.post("/v1/deals", clash).expect(422).faults(), ["phase_id: invalid_choice"]);
    let path = format!("/v1/deals/{}", deal.id());
    let moved = client.patch(&path, json!({"phase_id": first[1]})).expect(200).data();
    assert_ne!(moved["pipeline_id"], json!(other));
    let back = client.patch(&path, json!({"pipeline_id": other})).expect(200).data();
    assert_eq!(back["phase_id"], json!(early));
    assert_eq!(client.delete(&format!("/v1/phases/{early}")).expect(409).code(), "in_use");
    assert_eq!(client.delete(&format!("/v1/pipelines/{other}")).expect(409).code(), "in_use");
    client.delete(&format!("/v1/phases/{late}")).expect(204);
    client.delete(&path).expect(200);
    client.delete(&format!("/v1/pipelines/{other}")).expect(204);
    assert_eq!(
        client.get(&format!("/v1/phases?pipeline_id={other}")).json(),
        json!({"data": [], "meta": {"total": 0}})
    );
    assert_eq!(client.get("/v1/phases").json()["meta"]["total"], 5);
    let sources = client.get("/v1/deal-sources").data();
    assert_eq!((&sources[0]["name"], &sources[0]["order"]), (&json!("Website"), &json!(1)));
}

fn a_pipeline_is_shown_with_its_phases(server: Shared) {
    let client = server.client();
    let made = client.post("/v1/pipelines", json!({"name": "Partners"})).expect(201);
    // Without a position it goes last, so new deals start where they did.
    assert_eq!(client.get("/v1/pipelines").data()[1]["name"], "Partners");
    assert_eq!(keys(&made.data()), ["id", "name", "active", "phases"]);
    assert_eq!(made.data()["phases"], json!([]));
    let path = format!("/v1/pipelines/{}", made.id());
    assert_eq!(client.get(&path).expect(200).data(), made.data());
    let before = server.last_seq(&client);
    let phase =
        client.post("/v1/phases", json!({"pipeline_id": made.id(), "name": "Talk", "order": 1})).expect(201).id();
    let shown = client.get(&path).expect(200);
    assert_eq!(shown.data()["phases"], json!([{"id": phase, "name": "Talk", "order": 1}]));
    let tag = shown.header("etag").to_string();
    client.patch(&format!("/v1/phases/{phase}"), json!({"order": 1})).expect(200);
    assert_eq!(client.send("GET", &path, &[("if-none-match", &tag)], "").status, 304, "nothing changed");
    client.patch(&format!("/v1/phases/{phase}"), json!({"name": "Meet"})).expect(200);
    let changed = client.send("GET", &path, &[("if-none-match", &tag)], "").expect(200).data();
    assert_eq!(changed["phases"][0]["name"], "Meet");
    let renamed = client.patch(&path, json!({"name": "Friends"})).expect(200).data();
    assert_eq!((&renamed["name"], &renamed["phases"]), (&json!("Friends"), &changed["phases"]));
    assert!(client.get("/v1/pipelines").data().as_array().unwrap().contains(&renamed));
    client.delete(&format!("/v1/phases/{phase}")).expect(204);
    assert_eq!(client.get(&path).data()["phases"], json!([]));
    assert_eq!(
        server.events(&client, before),
        [
            "phase.created",
            "pipeline.updated",
            "phase.updated",
            "pipeline.updated",
            "pipeline.updated",
            "phase.deleted",
            "pipeline.updated"
        ]
    );
}

fn records_created_in_a_final_status_emit_its_event(server: Shared) {
    let client = server.client();
    let firm = company(&client, "Firm");
    for (path, body, events) in [
        ("/v1/projects", json!({"name": "Site", "status": "completed"}), vec!["project.created", "project.completed"]),
        ("/v1/projects", json!({"name": "Site", "status": "active"}), vec!["project.created"]),
        ("/v1/deals", json!({"title": "Site", "client_id": firm, "status": "won"}), vec!["deal.created", "deal.won"]),
        ("/v1/deals", json!({"title": "Site", "client_id": firm, "status": "lost"}), vec!["deal.created", "deal.lost"]),
        ("/v1/tickets", json!({"subject": "Help", "status": "Closed"}), vec!["ticket.created", "ticket.closed"]),
        ("/v1/tickets", json!({"subject": "Help", "status": "Waiting"}), vec!["ticket.created"]),
        (
            "/v1/subscriptions",
            json!({"title": "x", "subscription_start": "2026-06-01", "subscription_end": "2026-06-01"}),
            vec!["subscription.created", "subscription.ended"],
        ),
    ] {
        let before = server.last_seq(&client);
        client.post(path, body).expect(201);
        assert_eq!(server.events(&client, before), events);
    }
}

fn accepts_both_spellings_of_cancelled(server: Shared) {
    let client = server.client();
    let project = client.post("/v1/projects", json!({"name": "Site", "status": "canceled"})).expect(201).data();
    assert_eq!(project["status"], "cancelled");
    let invoice = client
        .post("/v1/invoices", json!({"title": "x", "generate": true, "rows": [{"name": "x", "unit_price": 10}]}))
        .expect(201)
        .id();
    let payments = format!("/v1/invoices/{invoice}/payments");
    let payment = client.post(&payments, json!({"amount": 1, "status": "cancelled"})).expect(201).data();
    assert_eq!(payment["payment"]["status"], "canceled");
    let flow = json!({"name": "Wait", "trigger_type": "custom", "trigger_key": "a.b", "steps": [{"type": "approval"}]});
    client.post("/v1/automation/flows", flow).expect(201);
    let run =
        client.post("/v1/automation/trigger", json!({"event": "a.b"})).expect(200).data()["runs"][0]["run_id"].clone();
    client.act(&format!("/v1/automation/runs/{}/cancel", run.as_str().unwrap())).expect(200);
    for word in ["canceled", "cancelled"] {
        for list in ["/v1/projects", &payments, "/v1/automation/runs"] {
            assert_eq!(
                client.get(&format!("{list}?status={word}")).expect(200).json()["meta"]["total"],
                1,
                "{list} {word}"
            );
        }
    }
    assert_eq!(client.get("/v1/automation/runs?status=canceled,cancelled,failed").json()["meta"]["total"], 1);
    assert_eq!(client.get("/v1/projects?status=canceling").expect(422).faults(), ["status: invalid_choice"]);
}

fn a_project_with_hours(server: Shared) {
    let client = server.client();
    let firm = company(&client, "Firm");
    let before = server.last_seq(&client);
    let made = client.post("/v1/projects", json!({"name": "Site", "client_id": firm, "budget": 1234.5})).expect(201);
    let data = made.data();
    assert_eq!(
        keys(&data),
        ["id", "name", "number", "status", "client_id", "budget", "start_date", "end_date", "meta"]
    );
    assert_eq!(
        (&data["number"], &data["status"], &data["budget"]),
        (&json!("P0001"), &json!("planned"), &json!(1234.5))
    );
    let path = format!("/v1/projects/{}", made.id());
    assert_eq!(
        client.patch(&path, json!({"start_date": "2026-05-02", "end_date": "2026-05-01"})).expect(422).faults(),
        ["end_date: out_of_range"]
    );
    assert_eq!(client.patch(&path, json!({"status": "finished"})).expect(422).faults(), ["status: invalid_choice"]);
    client.patch(&path, json!({"status": "active"})).expect(200);
    client.patch(&path, json!({"status": "completed"})).expect(200);
    assert_eq!(
        server.events(&client, before),
        [
            "project.created",
            "project.updated",
            "project.status_changed",
            "project.updated",
            "project.status_changed",
            "project.completed"
        ]
    );

    let hours = format!("{path}/hours");
    let entry = client.post(&hours, json!({"hours": 1.5, "activity_name": "Design"})).expect(201);
    let data = entry.data();
    assert_eq!(keys(&data), ["id", "date", "hours", "minutes", "status", "activity_name", "meta"]);
    assert_eq!((&data["minutes"], &data["date"], &data["status"]), (&json!(90), &json!("2026-05-04"), &json!("draft")));
    let short = client.post(&hours, json!({"minutes": 50, "date": "2026-05-01"})).expect(201);
    assert_eq!(short.data()["hours"], 0.83);
    client.post(&hours, json!({"minutes": 50, "hours": 0.83})).expect(201);
    assert_eq!(client.post(&hours, json!({"minutes": 50, "hours": 2})).expect(422).faults(), ["minutes: out_of_range"]);
    assert_eq!(client.post(&hours, json!({"activity_name": "nothing"})).expect(422).faults(), ["hours: out_of_range"]);
    assert_eq!(client.get(&format!("{hours}?from=2026-05-02&to=2026-05-04&status=draft")).json()["meta"]["total"], 2);

    // Every transition, allowed and rejected.
    let own = format!("{hours}/{}", entry.id());
    let act = |action: &str| client.act(&format!("{own}/{action}"));
    for (action, status) in [
        ("approve", 409),
        ("reject", 409),
        ("submit", 200),
        ("submit", 409),
        ("reject", 200),
        ("approve", 409),
        ("reject", 409),
        ("submit", 200),
        ("approve", 200),
        ("submit", 409),
        ("approve", 409),
        ("reject", 409),
    ] {
        let reply = act(action);
        assert_eq!(reply.status, status, "{action}: {reply:?}");
        assert!(status == 200 || reply.code() == "invalid_transition");
    }
    assert_eq!(client.patch(&own, json!({"hours": 2})).expect(409).code(), "locked");
    assert_eq!(client.delete(&own).expect(409).code(), "locked");
    let changed = client.patch(&format!("{hours}/{}", short.id()), json!({"hours": 2})).expect(200).data();
    assert_eq!((&changed["hours"], &changed["minutes"]), (&json!(2), &json!(120)));
    client.delete(&format!("{hours}/{}", short.id())).expect(204);
    assert_eq!(client.get("/v1/projects/nothing/hours").status, 404);
    assert_eq!(client.get(&format!("/v1/projects?client_id={firm}&search=site")).json()["meta"]["total"], 1);
}

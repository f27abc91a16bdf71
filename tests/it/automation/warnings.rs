//! Warnings about flows that are probably wrong, and errors that name what was probably meant.

use super::*;

on_both![
    warns_of_data_that_the_record_never_has,
    warns_of_steps_that_do_not_fit_the_record,
    warns_of_values_outside_a_list,
    warns_of_values_outside_a_set,
    warns_of_items_of_lists_and_later_steps,
    warns_of_records_that_are_gone_or_final,
    warns_of_references_that_lead_nowhere,
    warns_of_events_that_never_happen,
    warns_again_when_a_flow_is_enabled,
    errors_name_what_was_probably_meant,
];

/// Saves a flow and returns its warnings.
#[track_caller]
fn warnings(client: &Client, kind: &str, key: &str, steps: Value) -> Vec<String> {
    warnings_of(client, json!({"name": "x", "trigger_type": kind, "trigger_key": key, "active": false, "steps": steps}))
}

#[track_caller]
fn warnings_of(client: &Client, flow: Value) -> Vec<String> {
    let meta = client.post("/v1/automation/flows", flow).expect(201).json()["meta"].clone();
    let warnings = meta["warnings"].as_array().cloned().unwrap_or_default();
    warnings.iter().map(|warning| warning.as_str().unwrap().to_string()).collect()
}

fn note(body: &str) -> Value {
    json!([{"type": "create_note", "body": body}])
}

/// The trigger, a template, and the warning.
const LACKING: &[(&str, &str, &str, &str)] = &[
    (
        "event",
        "invoice.paid",
        "{{ data.nummer }}",
        "a record of type invoice has no field 'nummer'; did you mean 'number'?",
    ),
    ("event", "ticket.created", "{{ record.total_incl_vat }}", "a record of type ticket has no field 'total_incl_vat'"),
    (
        "event",
        "invoice.paid",
        "{{ data.meta.opn_amount }}",
        "a record of type invoice has no field 'opn_amount'; did you mean 'open_amount'?",
    ),
    // A key of your own may be the name of an event.
    (
        "custom",
        "invoice.paid",
        "{{ data.nummer }}",
        "a record of type invoice has no field 'nummer'; did you mean 'number'?",
    ),
    (
        "event",
        "client.created",
        "{{ data.emial }}",
        "a record of type client has no field 'emial'; did you mean 'email'?",
    ),
    (
        "event",
        "invoice.paid",
        "{% for r in data.rows %}{{ r.nam }}{% endfor %}",
        "an item of 'rows' has no member 'nam'; did you mean 'name'?",
    ),
    ("event", "invoice.paid", "{{ steps[5].id }}", "'steps[5]' has no result: this is the first step"),
    ("event", "invoice.paid", "{{ data.rows[0].nam }}", "an item of 'rows' has no member 'nam'; did you mean 'name'?"),
    ("event", "ticket.message", "{{ data.message.bdy }}", "'message' has no member 'bdy'; did you mean 'body'?"),
    ("event", "mail.bounced", "{{ data.mail.recipent }}", "'mail' has no member 'recipent'; did you mean 'recipient'?"),
    (
        "event",
        "sales.document_sent",
        "{{ data.subjct }}",
        "a record of type invoice, quote or workorder has no field 'subjct'",
    ),
    (
        "event",
        "account.updated",
        "{{ data.nam }}",
        "the data of the event 'account.updated' has no member 'nam'; did you mean 'name'?",
    ),
    ("event", "invoice.paid", "{{ account.nmae }}", "'account' has no member 'nmae'; did you mean 'name'?"),
    (
        "event",
        "invoice.paid",
        "{{ dta.number }}",
        "'dta' is not one of the names available in templates: event, entity_type, data, record, steps, account, now; did you mean 'data'?",
    ),
    (
        "schedule",
        "0 9 * * *",
        "{{ data.schedule_for }}",
        "the data of a schedule has no member 'schedule_for'; did you mean 'scheduled_for'?",
    ),
    ("schedule", "0 9 * * *", "{{ record.number }}", "there is no 'record': a schedule is not about a record"),
];

/// The trigger, and a template without a warning.
const THERE: &[(&str, &str, &str)] = &[
    (
        "event",
        "invoice.paid",
        "{{ data.number }} {{ data.open_amount }} {{ data.meta.open_amount }} {{ data.id }} {{ data.fired }}",
    ),
    (
        "event",
        "invoice.paid",
        "{% for row in data.rows %}{{ row.name }}{% endfor %} {{ data.rows[0].name }} {{ data.custom_fields.x }}",
    ),
    (
        "event",
        "invoice.paid",
        "{{ record.web_url }} {{ account.owner_email }} {{ now }} {{ event }} {{ data.created_at }}",
    ),
    ("event", "ticket.message", "{{ data.message.author.email }} {{ data.subject }}"),
    ("event", "mail.failed", "{{ data.mail.reason }} {{ data.number }} {{ data.subject }}"),
    ("event", "automation.triggered", "{{ data.data.anything }} {{ data.event }}"),
    ("event", "planning.updated", "{{ data.anything }}"),
    ("custom", "order.shipped", "{{ data.anything }} {{ record.anything }}"),
    ("schedule", "0 9 * * *", "{{ data.date }} {{ account.today }}"),
];

fn warns_of_data_that_the_record_never_has(server: Shared) {
    let client = server.client();
    for (kind, key, body, warning) in LACKING {
        assert_eq!(warnings(&client, kind, key, note(body)), [format!("steps[0].body: {warning}")], "{key} {body}");
    }
    for (kind, key, body) in THERE {
        assert_eq!(warnings(&client, kind, key, note(body)), Vec::<String>::new(), "{key} {body}");
    }
}

const URL_IS_CHECKED: &str = ".fields.url: cannot be changed by a flow, since a URL is checked outside of a run; send it as a request of its own";

/// The trigger, a step, and the warning.
fn unfit() -> Vec<(&'static str, &'static str, Value, &'static str)> {
    vec![
        (
            "event",
            "ticket.created",
            json!({"type": "send_document"}),
            ": sends the document of the event, but the event 'ticket.created' is about a record of type ticket",
        ),
        (
            "schedule",
            "0 9 * * *",
            json!({"type": "send_document"}),
            ": sends the document of the event, but a schedule is not about a record",
        ),
        (
            "event",
            "deal.won",
            json!({"type": "send_email", "to": "a@b.example", "subject": "s", "body": "b", "attach_pdf": true}),
            ".attach_pdf: attaches the document of the event, but the event 'deal.won' is about a record of type deal",
        ),
        (
            "event",
            "invoice.paid",
            json!({"type": "add_ticket_message", "body": "b"}),
            ".ticket_id: is missing, so that the message is added to the ticket of the event, but the event 'invoice.paid' is about a record of type invoice",
        ),
        (
            "schedule",
            "0 9 * * *",
            json!({"type": "update", "fields": {"title": "x"}}),
            ": changes the record of the event, but a schedule is not about a record",
        ),
        (
            "event",
            "batch.created",
            json!({"type": "update", "fields": {"title": "x"}}),
            ": changes the record of the event, but a record of type batch cannot be changed",
        ),
        (
            "event",
            "invoice.paid",
            json!({"type": "update", "entity_type": "client", "fields": {"city": "Goes"}}),
            ".id: is missing, so that the id of the event's record is used, but the event 'invoice.paid' is about a record of type invoice",
        ),
        (
            "event",
            "sales.document_sent",
            json!({"type": "update", "fields": {"titel": "x"}}),
            ".fields.titel: a record of type invoice, quote or workorder has no such field; did you mean 'title'?",
        ),
        (
            "event",
            "invoice.paid",
            json!({"type": "create_task", "title": "x", "deal_id": "{{ data.id }}"}),
            ".deal_id: takes the id of a record of type deal, and 'data.id' is that of a record of type invoice",
        ),
        (
            "event",
            "invoice.paid",
            json!({"type": "create_task", "title": "x", "project_id": "{{ data.client_id }}"}),
            ".project_id: takes the id of a record of type project, and 'data.client_id' is that of a record of type client",
        ),
        (
            "custom",
            "order.shipped",
            json!({"type": "update", "entity_type": "webhook_endpoint", "id": "x", "fields": {"url": "https://a.example/in"}}),
            URL_IS_CHECKED,
        ),
        (
            "event",
            "webhook_endpoint.disabled",
            json!({"type": "update", "fields": {"url": "{{ data.description }}"}}),
            URL_IS_CHECKED,
        ),
    ]
}

/// The trigger, and a step without a warning.
fn fit() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("event", "sales.document_sent", json!({"type": "send_document"})),
        (
            "event",
            "mail.bounced",
            json!({"type": "send_email", "to": "a@b.example", "subject": "s", "body": "b", "attach_pdf": true}),
        ),
        ("event", "mail.unanswered", json!({"type": "add_ticket_message", "body": "b"})),
        (
            "event",
            "invoice.paid",
            json!({"type": "add_ticket_message", "body": "b", "ticket_id": "{{ data.reference }}"}),
        ),
        (
            "event",
            "invoice.paid",
            json!({"type": "update", "entity_type": "customer", "id": "{{ data.client_id }}", "fields": {"city": "Goes"}}),
        ),
        (
            "event",
            "invoice.paid",
            json!({"type": "create_task", "title": "x", "client_id": "{{ data.client_id }}", "project_id": "{{ data.project_id }}"}),
        ),
        ("custom", "order.shipped", json!({"type": "send_document"})),
        ("custom", "order.shipped", json!({"type": "update", "fields": {"title": "x"}})),
        ("event", "webhook_endpoint.disabled", json!({"type": "update", "fields": {"description": "Off"}})),
    ]
}

fn warns_of_steps_that_do_not_fit_the_record(server: Shared) {
    let client = server.client();
    for (kind, key, step, warning) in unfit() {
        assert_eq!(warnings(&client, kind, key, json!([step.clone()])), [format!("steps[0]{warning}")], "{key} {step}");
    }
    for (kind, key, step) in fit() {
        assert_eq!(warnings(&client, kind, key, json!([step.clone()])), Vec::<String>::new(), "{key} {step}");
    }
}

fn warns_of_values_outside_a_set(server: Shared) {
    let client = server.client();
    // Values that are replaced by a default, or that a set takes although it does not have them.
    let told = warnings(&client, "event", "ticket.created", json!([{"type": "update", "fields": {"priority": "hgh"}}]));
    let expected = "steps[0].fields.priority: 'priority' has the unknown value 'hgh', which is none of low, normal, high, urgent; did you mean 'high'?";
    assert_eq!(told, [expected]);
    for (event, value, guess) in
        [("invoice.created", "acepted", "credited"), ("quote.created", "acepted", "'accepted'?")]
    {
        let step = json!([{"type": "update", "fields": {"payment_status": value}}]);
        let told = warnings(&client, "event", event, step);
        let start = format!("steps[0].fields.payment_status: 'payment_status' has the unknown value '{value}'");
        assert!(told.len() == 1 && told[0].starts_with(&start) && told[0].ends_with(guess), "{told:?}");
        let known = json!([{"type": "update", "fields": {"payment_status": "open"}}]);
        assert_eq!(warnings(&client, "event", event, known), Vec::<String>::new());
    }
}

fn warns_of_values_outside_a_list(server: Shared) {
    let client = server.client();
    let field = json!({"entity": "client", "key": "size", "label": "Size", "type": "select", "options": ["S", "M"]});
    client.post("/v1/custom-fields", field).expect(201);
    let on = |key: &str, field: &str, value: Value| {
        let conditions = json!([{"field": field, "op": if value.is_array() { "in" } else { "eq" }, "value": value}]);
        let mut flow =
            json!({"name": "x", "trigger_type": "event", "trigger_key": key, "active": false, "steps": note("x")});
        flow["conditions"] = conditions;
        warnings_of(&client, flow)
    };
    // Conditions do not ignore case.
    for value in ["Closd", "closed"] {
        assert_eq!(
            on("ticket.created", "data.status", json!(["Open", value])),
            [format!(
                "conditions[0].value: 'status' is never \"{value}\"; it is one of: New, Open, Waiting, Closed; did you mean 'Closed'?"
            )]
        );
    }
    assert_eq!(on("ticket.created", "data.status", json!(["Closed", "Open"])), Vec::<String>::new());
    assert_eq!(
        on("deal.created", "data.status", json!("wonn")),
        ["conditions[0].value: 'status' is never \"wonn\"; it is one of: open, won, lost; did you mean 'won'?"]
    );
    assert_eq!(
        on("customer.created", "data.custom_fields.size", json!("XL")),
        ["conditions[0].value: 'custom_fields.size' is never \"XL\"; it is one of: S, M"]
    );
    assert_eq!(
        on("customer.created", "data.custom_fields.sizes", json!("S")),
        ["conditions[0].value: 'custom_fields.sizes' is not a custom field of a client; did you mean 'size'?"]
    );
    assert_eq!(on("customer.created", "data.custom_fields.size", json!("M")), Vec::<String>::new());
    assert_eq!(
        on("ticket.message", "data.message.direction", json!("inbound")),
        ["conditions[0].value: 'message.direction' is never \"inbound\"; it is one of: in, out"]
    );
    assert_eq!(on("ticket.message", "data.message.direction", json!("in")), Vec::<String>::new());
    assert_eq!(
        on("invoice.paid", "data.rows[0].nam", json!("x")),
        ["conditions[0].field: an item of 'rows' has no member 'nam'; did you mean 'name'?"]
    );
    assert_eq!(on("invoice.paid", "data.rows[0].name", json!("x")), Vec::<String>::new());
    let told = on("settings.updated", "data.default_vat_code", json!("NL2"));
    assert!(
        told.len() == 1 && told[0].starts_with("conditions[0].value: 'default_vat_code' is never \"NL2\""),
        "{told:?}"
    );
    assert_eq!(
        on("settings.updated", "data.language", json!("dutch")),
        ["conditions[0].value: 'language' is never \"dutch\"; it is one of: en, nl"]
    );
    let told =
        warnings(&client, "custom", "order.shipped", json!([{"type": "send_document", "send_type": "invoice_rem"}]));
    assert_eq!(told, ["steps[0].send_type: 'invoice_rem' is not a type of mail; did you mean 'invoice_rem1'?"]);
    let told = warnings(&client, "event", "ticket.created", json!([{"type": "update", "fields": {"status": "Dnoe"}}]));
    assert!(told.len() == 1 && told[0].starts_with("steps[0].fields.status: 'status' is never \"Dnoe\""), "{told:?}");
    let told =
        warnings(&client, "event", "invoice.paid", json!([{"type": "create_ticket", "subject": "s", "status": "opn"}]));
    assert!(told.len() == 1 && told[0].starts_with("steps[0].status: 'status' is never \"opn\""), "{told:?}");
    let lower = json!([{"type": "create_ticket", "subject": "s", "status": "open"}]);
    assert_eq!(warnings(&client, "event", "invoice.paid", lower), Vec::<String>::new());
    let told = warnings(
        &client,
        "event",
        "customer.created",
        json!([{"type": "update", "fields": {"custom_fields": {"size": "XL"}}}]),
    );
    assert_eq!(told, ["steps[0].fields.custom_fields.size: 'size' is never \"XL\"; it is one of: S, M"]);
}

fn warns_of_records_that_are_gone_or_final(server: Shared) {
    let client = server.client();
    let gone = |what: &str, event: &str| format!("steps[0]: {what} the record of the event, but '{event}' deletes it");
    for (event, step, what) in [
        ("invoice.deleted", json!({"type": "send_document"}), "sends"),
        ("task.deleted", json!({"type": "update", "fields": {"title": "x"}}), "changes"),
        ("client.deleted", json!({"type": "update", "fields": {"city": "x"}}), "changes"),
    ] {
        let told = warnings(&client, "event", event, json!([step]));
        assert_eq!(told, [gone(what, &event.replace("client.", "customer."))], "{event}");
    }
    let other =
        json!([{"type": "update", "entity_type": "client", "id": "{{ data.client_id }}", "fields": {"city": "x"}}]);
    assert_eq!(warnings(&client, "event", "invoice.deleted", other), Vec::<String>::new());
    let rows = json!([{"type": "update", "fields": {"title": "x", "rows": [{"name": "x", "unit_price": 1}]}}]);
    assert_eq!(
        warnings(&client, "event", "invoice.paid", rows.clone()),
        ["steps[0].fields.rows: cannot be changed, since the document of 'invoice.paid' is final"]
    );
    assert_eq!(warnings(&client, "event", "invoice.created", rows), Vec::<String>::new());
}

fn warns_of_references_that_lead_nowhere(server: Shared) {
    let client = server.client();
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    let of = |client_id: &str, code: &str| {
        json!([{"type": "create_invoice", "title": "x", "client_id": client_id,
            "rows": [{"name": "x", "unit_price": 1, "vat_code": code}]}])
    };
    assert_eq!(
        warnings(&client, "event", "deal.won", of("nobody", "NL2")),
        [
            "steps[0].client_id: 'nobody' does not match a record in clients",
            "steps[0].rows[0].vat_code: 'NL2' is not the code of any tax rate; did you mean 'NL21'?",
        ]
    );
    for (id, code) in [(firm.as_str(), "NL21"), ("{{ data.client_id }}", "{{ data.code }}")] {
        assert_eq!(warnings(&client, "custom", "order.placed", of(id, code)), Vec::<String>::new(), "{id}");
    }
    let update = json!([{"type": "update", "fields": {"client_id": "nobody"}}]);
    assert_eq!(
        warnings(&client, "event", "invoice.created", update),
        ["steps[0].fields.client_id: 'nobody' does not match a record in clients"]
    );
}

fn warns_of_events_that_never_happen(server: Shared) {
    let client = server.client();
    let never =
        |name: &str, hint: &str| format!("'{name}' is not an event of Kantoor, and only happens if it is fired{hint}");
    for kind in ["event", "custom"] {
        assert_eq!(
            warnings(&client, kind, "invoice.payd", note("x")),
            [format!("trigger_key: {}", never("invoice.payd", "; did you mean 'invoice.paid'?"))]
        );
        let told = warnings(&client, kind, "task.done", note("x"));
        assert!(told.len() == 1 && told[0].contains("the events of this record are: task.completed"), "{told:?}");
    }
    assert_eq!(
        warnings(&client, "custom", "invoces.paid", note("x")),
        [format!("trigger_key: {}", never("invoces.paid", "; did you mean 'invoice.paid'?"))]
    );
    for own in ["order.shipped", "nightly", "client.created", "work", "quote.fase_changed"] {
        assert_eq!(warnings(&client, "custom", own, note("x")), Vec::<String>::new(), "{own}");
    }
    let refused = json!({"name": "x", "trigger_type": "event", "trigger_key": "invoces.paid", "steps": note("x")});
    let refused = client.post("/v1/automation/flows", refused).expect(422);
    assert_eq!(refused.faults(), ["trigger_key: invalid_choice"]);
    assert!(refused.text.contains("have the trigger_type custom; did you mean 'invoice.paid'?"), "{}", refused.text);
    let plural = json!({"name": "x", "trigger_type": "event", "trigger_key": "clients.created", "steps": note("x")});
    let plural = client.post("/v1/automation/flows", plural).expect(422);
    assert!(plural.text.contains("did you mean 'client.created'?"), "{}", plural.text);
    assert_eq!(
        warnings(&client, "event", "invoice.paid", json!([{"type": "trigger", "event": "quote.acepted"}])),
        [format!("steps[0].event: {}", never("quote.acepted", "; did you mean 'quote.accepted'?"))]
    );
    assert_eq!(
        warnings(
            &client,
            "event",
            "invoice.paid",
            json!([{"type": "trigger", "event": "order.paid"}, {"type": "trigger", "event": "{{ data.number }}"}])
        ),
        Vec::<String>::new()
    );
    // The test of an endpoint is no event that a flow can wait for.
    let tested = warnings(&client, "custom", "webhook.test", note("x"));
    assert_eq!(tested.len(), 1);
    for told in [tested[0].clone(), {
        let flow = json!({"name": "x", "trigger_type": "event", "trigger_key": "webhook.test", "steps": note("x")});
        client.post("/v1/automation/flows", flow).expect(422).text
    }] {
        assert!(
            told.contains("is only sent to an endpoint that is tested, and never starts a flow; did you mean one of ")
                && told.contains("webhook_endpoint.created, webhook_endpoint.deleted"),
            "{told}"
        );
    }
    let unlike = json!({"name": "x", "trigger_type": "event", "trigger_key": "zzz.qqq", "steps": note("x")});
    let unlike = client.post("/v1/automation/flows", unlike).expect(422);
    assert!(unlike.text.contains("GET /v1/events/types lists all events"), "{}", unlike.text);
    // A fired event stays possible, whatever its name.
    let id = flow(&client, "invoice.payd", task());
    assert_eq!(fire(&client, "invoice.payd", json!({"name": "x"})).len(), 1, "{id}");
}

fn warns_again_when_a_flow_is_enabled(server: Shared) {
    let client = server.client();
    let flow = json!({
        "name": "x", "trigger_type": "event", "trigger_key": "invoice.paid", "active": false,
        "conditions": [{"field": "data.totl", "op": "gt", "value": 5}], "steps": note("{{ data.nummer }}"),
    });
    let saved = client.post("/v1/automation/flows", flow).expect(201).json();
    let warnings = &saved["meta"]["warnings"];
    assert_eq!(warnings.as_array().map(Vec::len), Some(2), "{warnings}");
    let path = format!("/v1/automation/flows/{}", saved["data"]["id"].as_str().unwrap());
    assert_eq!(client.patch(&path, json!({"active": true})).expect(200).json()["meta"]["warnings"], *warnings);
    assert_eq!(client.act(&format!("{path}/adopt")).expect(200).json()["meta"]["warnings"], *warnings);
    assert!(client.patch(&path, json!({"active": false})).expect(200).json()["meta"]["warnings"].is_null());
}

fn errors_name_what_was_probably_meant(server: Shared) {
    let client = server.client();
    for (step, hint) in [
        (json!({"type": "create_taks", "title": "x"}), "did you mean 'create_task'?"),
        (json!({"type": "create_task", "titel": "x", "title": "x"}), "did you mean 'title'?"),
        (json!({"type": "wait", "fro": "P1D"}), "did you mean 'for'?"),
        (json!({"type": "approval", "continue_on_eror": true}), "did you mean 'continue_on_error'?"),
        (json!({"type": "http", "url": "https://a.example", "method": "PSOT"}), "did you mean 'POST'?"),
        (
            json!({"type": "update", "entity_type": "clinet", "id": "x", "fields": {"city": "x"}}),
            "did you mean 'client'?",
        ),
        (
            json!({"type": "update", "entity_type": "client", "id": "x", "fields": {"citty": "x"}}),
            "did you mean 'city'?",
        ),
        (
            json!({"type": "condition", "conditions": [{"field": "data.x", "op": "eqq", "value": 1}]}),
            "did you mean 'eq'?",
        ),
        (
            json!({"type": "condition", "conditions": [{"field": "dat.x", "op": "eq", "value": 1}]}),
            "did you mean 'data'?",
        ),
        (
            json!({"type": "condition", "conditions": [{"feild": "data.x", "op": "eq", "value": 1}]}),
            "did you mean 'field'?",
        ),
    ] {
        let flow = json!({"name": "x", "trigger_type": "custom", "trigger_key": "a.b", "steps": [step]});
        let refused = client.post("/v1/automation/flows", flow).expect(422);
        assert!(refused.text.contains(hint), "{step}: {}", refused.text);
    }
    let later = json!([{"type": "create_task", "name": "call", "title": "x"}, {"type": "approval", "message": "{{ steps.cal.id }}"}]);
    assert_eq!(
        warnings(&client, "custom", "a.b", later),
        ["steps[1].message: no earlier step has the name 'cal'; did you mean 'call'?"]
    );
}

fn warns_of_items_of_lists_and_later_steps(server: Shared) {
    let client = server.client();
    let on = |key: &str, condition: Value| {
        let flow = json!({"name": "x", "trigger_type": "event", "trigger_key": key, "active": false,
            "conditions": [condition], "steps": note("x")});
        warnings_of(&client, flow)
    };
    let status = |value: Value| {
        on(
            "invoice.paid",
            json!({"field": "data.payment_status", "op": if value.is_array() { "in" } else { "eq" }, "value": value}),
        )
    };
    let told = status(json!("payed"));
    assert!(
        told.len() == 1
            && told[0].starts_with("conditions[0].value: 'payment_status' has the unknown value 'payed'")
            && told[0].ends_with("did you mean 'paid'?"),
        "{told:?}"
    );
    assert_eq!(status(json!(["paid", "overdue"])), Vec::<String>::new());
    let days = |day: &str| on("settings.updated", json!({"field": "data.mail_days", "op": "contains", "value": day}));
    let told = days("monday");
    assert!(told.len() == 1 && told[0].contains("'mail_days' is never \"monday\"; it is one of: mon, tue"), "{told:?}");
    assert_eq!(days("mon"), Vec::<String>::new());
    let exists = |field: &str| json!({"field": field, "op": "exists"});
    let second = json!({"type": "condition", "conditions": [exists("steps[5].id"), exists("steps[0].id")]});
    let third = note("{{ steps[2].id }} {{ steps[0].id }}")[0].clone();
    assert_eq!(
        warnings(&client, "event", "invoice.paid", json!([note("x")[0], second, third])),
        [
            "steps[2].body: 'steps[2]' has no result: the earlier steps are steps[0] to steps[1]",
            "steps[1].conditions[0].field: 'steps[5]' has no result: the only earlier step is steps[0]"
        ]
    );
}

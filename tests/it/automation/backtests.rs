//! Backtests evaluate each step at the time at which the run would have reached it.

use super::*;

on_both![time_passes_in_a_backtest, a_backtest_sees_the_record_as_it_was_then];

fn backtest(client: &Client, id: &str, from: &str, to: &str) -> Value {
    client.post(&format!("/v1/automation/flows/{id}/backtest"), json!({"from": from, "to": to})).expect(200).data()
}

fn time_passes_in_a_backtest(server: Shared) {
    let client = server.client();
    fire(&client, "order.shipped", json!({"name": "Anna", "due": "2026-05-20"}));
    advance(&client, "2026-09-01T10:00:00Z");
    let until = |day: &str| json!([{"field": "now", "op": "lt", "value": day}]);
    let id = flow(
        &client,
        "order.shipped",
        json!([
            {"type": "create_task", "title": "{{ account.today }}", "deadline": "P1D"},
            {"type": "wait", "for": "P3D"},
            {"type": "create_task", "title": "{{ account.today }} {{ now }}", "deadline": "P1D"},
            {"type": "approval", "message": "{{ now }}"},
            {"type": "wait", "until": "2026-05-01"},
            {"type": "wait", "until": "{{ data.due }}"},
            {"type": "condition", "conditions": until("2026-05-20T00:00:00Z")},
            {"type": "wait", "for": "PT12H"},
            {"type": "condition", "conditions": until("2026-05-20T00:00:00Z")},
            {"type": "create_task", "title": "never"},
        ]),
    );
    let told = backtest(&client, &id, "2026-05-01T00:00:00Z", "2026-05-31T00:00:00Z");
    let steps = told["examples"][0]["steps"].as_array().unwrap();
    let times: Vec<&str> = steps.iter().map(|step| step["at"].as_str().unwrap()).collect();
    assert_eq!(
        times,
        [
            "2026-05-04T10:00:00.000Z",
            "2026-05-04T10:00:00.000Z",
            "2026-05-07T10:00:00.000Z",
            "2026-05-07T10:00:00.000Z",
            "2026-05-07T10:00:00.000Z",
            "2026-05-07T10:00:00.000Z",
            "2026-05-19T22:00:00.000Z",
            "2026-05-19T22:00:00.000Z",
            "2026-05-20T10:00:00.000Z",
        ],
        "{told:#}"
    );
    assert_eq!(steps[0]["would"], json!({"title": "2026-05-04", "deadline": "2026-05-05"}));
    assert_eq!(steps[1]["would"], json!({"for": "P3D", "until": "2026-05-07T10:00:00.000Z"}));
    assert_eq!(steps[2]["would"], json!({"title": "2026-05-07 2026-05-07T10:00:00.000Z", "deadline": "2026-05-08"}));
    assert_eq!(steps[3]["would"]["message"], "2026-05-07T10:00:00.000Z");
    assert_eq!((&steps[6]["would"]["holds"], &steps[8]["would"]["holds"]), (&json!(true), &json!(false)));
    // A schedule starts at its time, whatever the time is now.
    let nightly = json!([{"type": "wait", "for": "P1D"}, {"type": "create_task", "title": "{{ account.today }}", "deadline": "P0D"}]);
    let id = flow_with(&client, "0 9 * * *", nightly, json!({"trigger_type": "schedule", "active": false}));
    let told = backtest(&client, &id, "2026-01-01T00:00:00Z", "2026-01-01T23:00:00Z");
    assert_eq!(told["examples"][0]["steps"][1]["would"], json!({"title": "2026-01-02", "deadline": "2026-01-02"}));
    // A wait that cannot be evaluated is an error of its step.
    let id =
        flow(&client, "order.shipped", json!([{"type": "wait", "until": "{{ data.name }}"}, {"type": "approval"}]));
    let told = backtest(&client, &id, "2026-05-01T00:00:00Z", "2026-05-31T00:00:00Z");
    assert_eq!((&told["failed"], &told["steps"][1]["taken"]), (&json!(1), &json!(0)));
    assert_eq!(told["examples"][0]["steps"][0]["error"], "'until' is 'Anna', which is not a timestamp.");
}

fn a_backtest_sees_the_record_as_it_was_then(server: Shared) {
    let client = server.client();
    let (first, second) = (invoice(&client), invoice(&client));
    let paid = |id: &str| client.post(&format!("/v1/invoices/{id}/payments"), json!({})).expect(201);
    advance(&client, "2026-05-21T10:00:00Z");
    paid(&first);
    advance(&client, "2026-05-25T10:00:00Z");
    paid(&second);
    // The one was paid before the reminder, the other after it.
    let id = flow_with(
        &client,
        "invoice.late",
        json!([
            {"type": "condition", "conditions": [{"field": "record.payment_status", "op": "eq", "value": "overdue"}]},
            {"type": "wait", "for": "P3D"},
            {"type": "condition", "conditions": [{"field": "record.payment_status", "op": "eq", "value": "overdue"}]},
            {"type": "send_document", "send_type": "invoice_rem1"},
            {"type": "wait", "for": "P7D"},
            {"type": "condition", "conditions": [{"field": "record.payment_status", "op": "eq", "value": "overdue"}]},
            {"type": "send_document", "send_type": "invoice_rem2"},
        ]),
        json!({"trigger_type": "event", "active": false}),
    );
    let told = backtest(&client, &id, "2026-05-01T00:00:00Z", "2026-06-30T00:00:00Z");
    let taken: Vec<i64> =
        told["steps"].as_array().unwrap().iter().map(|step| step["taken"].as_i64().unwrap()).collect();
    assert_eq!(taken, [2, 2, 2, 1, 1, 1, 0], "{told:#}");
    // A record that was deleted in the meantime is gone.
    let task = client.post("/v1/tasks", json!({"title": "Call"})).expect(201).id();
    client.delete(&format!("/v1/tasks/{task}")).expect(204);
    let id = flow_with(
        &client,
        "task.created",
        json!([
            {"type": "approval", "message": "{{ record.title }}"},
            {"type": "wait", "for": "P1D"},
            {"type": "condition", "conditions": [{"field": "record.title", "op": "exists", "value": false}]},
            {"type": "approval", "message": "gone"},
        ]),
        json!({"trigger_type": "event", "active": false}),
    );
    let told = backtest(&client, &id, "2026-05-01T00:00:00Z", "2026-06-30T00:00:00Z");
    assert_eq!(told["examples"][0]["steps"][0]["would"]["message"], "Call");
    assert_eq!(told["steps"][3]["taken"], 1, "{told:#}");
}

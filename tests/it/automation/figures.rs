//! `GET /v1/reports/flows`: how often flows ran and failed.

use super::*;

on_both![flows_have_figures];

fn flows_have_figures(server: Shared) {
    let client = server.client();
    let figures = |query: &str| client.get(&format!("/v1/reports/flows{query}")).expect(200).data();
    assert_eq!(figures(""), json!([]), "nothing ran");
    let gone = "00000000-0000-7000-8000-000000000000";
    let fails = json!([{"type": "update", "entity_type": "task", "id": gone, "fields": {"title": "y"}}]);
    let (good, bad) = (flow(&client, "a.good", task()), flow(&client, "a.bad", fails));
    let idle = flow(&client, "a.idle", task());
    for event in ["a.good", "a.good", "a.bad"] {
        fire(&client, event, json!({"name": "x"}));
    }
    server.automate(&client);
    let of = |id: &str, runs: i64, failed: i64| json!({"flow_id": id, "runs": runs, "failed": failed, "capped": false});
    assert_eq!(figures(&format!("?flow_id={good},{idle}")), json!([of(&good, 2, 0)]));
    assert_eq!(figures(&format!("?flow_id={bad}")), json!([of(&bad, 1, 1)]));
    let all = figures("").as_array().unwrap().clone();
    assert!(all.contains(&of(&good, 2, 0)) && all.contains(&of(&bad, 1, 1)), "{all:?}");
    let failed = format!("/v1/automation/runs?flow_id={bad}&status=failed&created_from=2026-04-05");
    assert_eq!(total(&client, &failed), 1, "the list that the number leads to");

    let stranger = server.client();
    assert_eq!(stranger.get(&format!("/v1/reports/flows?flow_id={good}")).expect(200).data(), json!([]));
    assert_eq!(server.with_scopes(&client, &["invoices.read"]).get("/v1/reports/flows").status, 403);
    server.with_scopes(&client, &["automation.read"]).get("/v1/reports/flows").expect(200);
    let many = (0..101).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let refused = client.get(&format!("/v1/reports/flows?flow_id={many}")).expect(422);
    assert_eq!(refused.faults(), ["flow_id: too_long"]);

    // Thirty days, today included.
    advance(&client, "2026-06-02T10:00:00Z");
    assert_eq!(figures(&format!("?flow_id={good}")), json!([of(&good, 2, 0)]));
    advance(&client, "2026-06-03T10:00:00Z");
    assert_eq!(figures(&format!("?flow_id={good}")), json!([]));
}

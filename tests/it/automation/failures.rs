//! What fails for good, and what a flow leaves behind.

use super::*;

on_both! {
    fn what_would_fail_the_same_is_not_tried_again(db) {
        let server = Server::start(db);
        let client = server.client();
        let rows = json!([{"name": "x", "unit_price": 1}]);
        let taken = json!({"title": "First", "client_id": firm(&client), "external_id": "shop-1", "rows": rows});
        let (taken, last) = (client.post("/v1/invoices", taken).expect(201).id(), invoice(&client));
        let gone = "00000000-0000-7000-8000-000000000000";
        for (event, step, words) in [
            ("a.duplicate", json!({"type": "create_invoice", "title": "Again", "external_id": "shop-1", "rows": rows}), "Another invoice has the external_id 'shop-1'"),
            ("a.gone", json!({"type": "update", "entity_type": "task", "id": gone, "fields": {"title": "y"}}), "There is no task"),
            ("a.final", json!({"type": "update", "entity_type": "invoice", "id": last, "fields": {"notes": "y"}}), "The document is final"),
            ("a.wrong", json!({"type": "create_task", "title": "x", "client_id": gone}), "'client_id'"),
        ] {
            flow(&client, event, json!([step]));
            let id = fire(&client, event, json!({})).pop().unwrap();
            work(&server, &client);
            let one = run(&client, &id);
            assert_eq!((&one["status"], &one["attempts"]), (&json!("failed"), &json!(1)), "{one}");
            assert!(one["error"].as_str().unwrap().contains(words), "{one}");
        }
        // Somebody can mend it, and let the run go on.
        let id = client.get("/v1/automation/runs?status=failed&order=asc").data()[0]["id"].as_str().unwrap().to_string();
        client.delete(&format!("/v1/invoices/{taken}")).expect(200);
        client.act(&format!("/v1/automation/runs/{id}/retry")).expect(200);
        work(&server, &client);
        assert_eq!(status(&client, &id), "success");
    }
}

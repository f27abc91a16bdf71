//! A collection that waits for a bank file takes no more than what is open of its invoice.

use serde_json::{Value, json};

use crate::asking::with_mandate;
use crate::on_both;
use crate::support::{Client, Shared};

on_both![
    an_invoice_that_was_marked_paid_is_not_collected,
    a_settled_collection_ends_without_a_file,
    collections_of_an_invoice_share_what_is_open,
];

/// A final invoice of 121 euros.
fn invoice(client: &Client, firm: &str) -> String {
    let rows = json!([{"name": "Ketel", "unit_price": 100, "vat_rate": 21}]);
    let body = json!({"title": "Ketel", "client_id": firm, "generate": true, "rows": rows});
    format!("/v1/invoices/{}", client.post("/v1/invoices", body).expect(201).id())
}

fn collection(client: &Client, path: &str) -> Value {
    client.get(&format!("{path}/payments?type=online")).expect(200).data()[0].clone()
}

fn an_invoice_that_was_marked_paid_is_not_collected(server: Shared) {
    let client = server.client();
    let firm = with_mandate(&client);
    let (marked, open) = (invoice(&client, &firm), invoice(&client, &firm));
    for path in [&marked, &open] {
        client.act(&format!("{path}/collect")).expect(201);
    }
    client.patch(&marked, json!({"payment_status": "paid"})).expect(200);
    let made = client.post("/v1/direct-debit/batches", json!({})).expect(201);
    assert_eq!((&made.data()["count"], &made.data()["amount"]), (&json!(1), &json!(121)), "{}", made.text);
    assert_eq!(made.json()["meta"]["left_out"][0]["reason"], "nothing of it is open");
    assert_eq!(collection(&client, &marked)["status"], "canceled");
    let shown = client.get(&marked).data();
    assert_eq!((&shown["payment_status"], &shown["meta"]["collection_date"]), (&json!("paid"), &json!(null)));
    assert_eq!(collection(&client, &open)["status"], "pending");
    let refused = client.act(&format!("{marked}/collect")).expect(409);
    assert!(refused.text.contains("has no open amount"), "{}", refused.text);
}

fn a_settled_collection_ends_without_a_file(server: Shared) {
    let client = server.client();
    let firm = with_mandate(&client);
    let path = invoice(&client, &firm);
    client.act(&format!("{path}/collect")).expect(201);
    client.post(&format!("{path}/payments"), json!({"amount": 121})).expect(201);
    let number = client.get(&path).data()["number"].as_str().unwrap().to_string();
    let refused = client.post("/v1/direct-debit/batches", json!({})).expect(409);
    assert!(refused.text.contains(&format!("{number} (nothing of it is open)")), "{}", refused.text);
    let canceled = collection(&client, &path);
    assert_eq!(canceled["status"], "canceled");
    assert_eq!(canceled["meta"]["feedback_data"]["reason"], "The invoice was settled in another way.");
    let shown = client.get(&path).data();
    assert_eq!((&shown["payment_status"], &shown["meta"]["collection_date"]), (&json!("paid"), &json!(null)));
    let refused = client.post("/v1/direct-debit/batches", json!({})).expect(409);
    assert!(refused.text.contains("No collections are pending"), "{}", refused.text);
}

fn collections_of_an_invoice_share_what_is_open(server: Shared) {
    let client = server.client();
    let firm = with_mandate(&client);
    let path = invoice(&client, &firm);
    let half = || {
        let body = json!({"amount": 60.5, "type": "online", "provider": "manual", "status": "created"});
        let made = client.post(&format!("{path}/payments"), body).expect(201).data();
        format!("{path}/payments/{}", made["payment"]["id"].as_str().unwrap())
    };
    let status = |payment: &str| client.get(payment).expect(200).data()["status"].clone();
    let (first, second) = (half(), half());
    client.post(&format!("{path}/payments"), json!({"amount": 60.5})).expect(201);
    let made = client.post("/v1/direct-debit/batches", json!({})).expect(201);
    assert_eq!((&made.data()["count"], &made.data()["amount"]), (&json!(1), &json!(60.5)), "{}", made.text);
    assert_eq!(made.json()["meta"]["left_out"][0]["reason"], "other collections have all that is open");
    assert_eq!((status(&first), status(&second)), (json!("pending"), json!("canceled")));
    // The bank has the rest already.
    let third = half();
    let refused = client.post("/v1/direct-debit/batches", json!({})).expect(409);
    assert!(refused.text.contains("other collections have all that is open"), "{}", refused.text);
    assert_eq!((status(&first), status(&third)), (json!("pending"), json!("canceled")));
}

//! What the next bank file contains is known before it is made: `GET /v1/direct-debit/batches/waiting`.

use serde_json::{Value, json};

use crate::asking::with_mandate;
use crate::on_both;
use crate::support::{Client, Shared};

on_both![the_next_file_follows_what_waits, what_no_file_can_have_is_left_out];

const PATH: &str = "/v1/direct-debit/batches/waiting";

fn next(client: &Client) -> Value {
    client.get(PATH).expect(200).data()
}

/// Returns the number of collections and their amount.
fn told(client: &Client) -> (Value, Value) {
    let next = next(client);
    (next["count"].clone(), next["amount"].clone())
}

fn nothing() -> Value {
    json!({"count": 0, "amount": 0, "has_more": false, "collections": [], "left_out": []})
}

/// A final invoice of 121 euros that waits for a file.
fn collected(client: &Client, firm: &str) -> String {
    let rows = json!([{"name": "Ketel", "unit_price": 100, "vat_rate": 21}]);
    let body = json!({"title": "Ketel", "client_id": firm, "generate": true, "rows": rows});
    let path = format!("/v1/invoices/{}", client.post("/v1/invoices", body).expect(201).id());
    client.act(&format!("{path}/collect")).expect(201);
    path
}

fn collection(client: &Client, path: &str) -> Value {
    client.get(&format!("{path}/payments?type=online")).expect(200).data()[0].clone()
}

fn the_next_file_follows_what_waits(server: Shared) {
    let (client, stranger) = (server.client(), server.client());
    assert_eq!(next(&client), nothing());
    let firm = with_mandate(&client);
    let (first, second) = (collected(&client, &firm), collected(&client, &firm));
    assert_eq!(told(&client), (json!(2), json!(242)));
    let invoice = client.get(&first).expect(200).data();
    let all = next(&client)["collections"].as_array().unwrap().clone();
    let shown = all.iter().find(|one| one["invoice_id"] == invoice["id"]).unwrap();
    assert_eq!(
        *shown,
        json!({
            "payment_id": collection(&client, &first)["id"], "invoice_id": invoice["id"], "number": invoice["number"],
            "client_id": firm, "client_name": "Bakkerij De Ster", "amount": 121,
        })
    );
    assert_eq!(next(&stranger), nothing(), "another account");
    assert_eq!(server.with_scopes(&client, &["invoices.read"]).get(PATH).status, 403);
    assert_eq!(told(&server.with_scopes(&client, &["relations.read"])), (json!(2), json!(242)));

    // What is paid in another way is not collected. Only a file cancels it.
    client.post(&format!("{first}/payments"), json!({"amount": 20.5})).expect(201);
    assert_eq!(told(&client), (json!(2), json!(221.5)));
    client.post(&format!("{second}/payments"), json!({"amount": 121})).expect(201);
    let after = next(&client);
    assert_eq!((&after["count"], &after["amount"]), (&json!(1), &json!(100.5)));
    assert_eq!(after["left_out"][0]["reason"], "nothing of it is open");
    assert_eq!(collection(&client, &second)["status"], "created");

    let made = client.post("/v1/direct-debit/batches", json!({})).expect(201);
    assert_eq!((&made.data()["count"], &made.data()["amount"]), (&after["count"], &after["amount"]));
    assert_eq!(made.json()["meta"]["left_out"], after["left_out"]);
    assert_eq!(next(&client), nothing());
    client.get(&format!("/v1/direct-debit/batches/{}", made.id())).expect(200);

    // Without the mandate it is canceled.
    collected(&client, &firm);
    assert_eq!(told(&client), (json!(1), json!(121)));
    client.delete(&format!("/v1/clients/{firm}/direct-debit/mandate")).expect(204);
    assert_eq!(next(&client), nothing());
}

fn what_no_file_can_have_is_left_out(server: Shared) {
    let client = server.client();
    with_mandate(&client);
    let other = client.post("/v1/clients", json!({"company_name": "Garage Smit"})).expect(201).id();
    let rows = json!([{"name": "Ketel", "unit_price": 100, "vat_rate": 21}]);
    let payment = json!({"amount": 60.5, "type": "online", "provider": "manual", "status": "created"});
    let mut reasons = Vec::new();
    for owner in [None, Some(other)] {
        let mut body = json!({"title": "Ketel", "generation_mode": "final", "rows": rows});
        if let Some(owner) = owner {
            body["client_id"] = json!(owner);
        }
        let id = client.post("/v1/invoices", body).expect(201).id();
        client.post(&format!("/v1/invoices/{id}/payments"), payment.clone()).expect(201);
        let found = next(&client);
        assert_eq!(found["count"], 0, "{found}");
        let left_out = found["left_out"].as_array().unwrap().clone();
        reasons.push(left_out.iter().find(|one| one["invoice_id"] == json!(id)).unwrap()["reason"].clone());
    }
    assert_eq!(reasons, ["it has no client", "Garage Smit has no mandate"]);
    let refused = client.post("/v1/direct-debit/batches", json!({})).expect(409);
    assert!(refused.text.contains("(it has no client)"), "{}", refused.text);
}

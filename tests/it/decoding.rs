//! Request bodies that take long to decode: they wait for their turn, and no other request waits for them.

use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::on_both;
use crate::support::{Db, Server};

on_both![a_large_body_waits_for_its_turn_and_nobody_waits_for_it, markup_in_a_small_body_counts,];

fn a_large_body_waits_for_its_turn_and_nobody_waits_for_it(db: Db) {
    let server = Server::start(db);
    let (client, other) = (server.client(), server.client());
    let ticket = client.post("/v1/tickets", json!({"subject": "x"})).expect(201).id();
    let messages = format!("/v1/tickets/{ticket}/messages");
    let decoding = &server.app.decoding;
    let taken = decoding.take_all(client.account);
    let text = "&".repeat(2000);
    std::thread::scope(|scope| {
        let (done, is_done) = mpsc::channel();
        for n in 0..4 {
            let (client, path, text, done) = (&client, &messages, &text, done.clone());
            scope.spawn(move || {
                let key = format!("message-{n}");
                let body = json!({"html": text}).to_string();
                let made = client.send("POST", path, &[("idempotency-key", &key)], &body).expect(201);
                done.send(made.data()).unwrap();
            });
        }
        assert!(is_done.recv_timeout(Duration::from_millis(300)).is_err(), "it waits for its turn");
        for _ in 0..20 {
            other.post("/v1/products", json!({"name": "x"})).expect(201);
            client.get("/v1/products").expect(200);
        }
        assert!(is_done.try_recv().is_err());
        drop((taken, done));
        for _ in 0..4 {
            let made: Value = is_done.recv().unwrap();
            assert_eq!(made["meta"]["html"], "&amp;".repeat(2000));
        }
    });
    // An error in it is reported as always, and a key that was used is recognized.
    let wrong = json!({"html": text, "subject": "x"}).to_string();
    assert_eq!(client.send("POST", &messages, &[], &wrong).expect(422).faults(), ["subject: unknown_field"]);
    let reused = client.send("POST", &messages, &[("idempotency-key", "message-1")], &wrong);
    assert_eq!(reused.expect(422).code(), "idempotency_key_reused");
    let cut_off = &wrong[..1900];
    assert_eq!(client.send("POST", &messages, &[], cut_off).expect(400).code(), "malformed_json");
}

fn markup_in_a_small_body_counts(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let ticket = client.post("/v1/tickets", json!({"subject": "x"})).expect(201).id();
    let decoded_apart = |html: String| {
        let before = server.app.decoding.given();
        client.post(&format!("/v1/tickets/{ticket}/messages"), json!({"html": html})).expect(201);
        server.app.decoding.given() > before
    };
    assert!(decoded_apart("<br>".repeat(2000)) && decoded_apart("&".repeat(2000)));
    assert!(!decoded_apart("<p>We come by tomorrow at nine.</p>".repeat(20)));
}

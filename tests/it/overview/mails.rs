//! `/v1/mails`: outgoing mail, and another attempt for mail that failed.

use ::mail::sink::{Act, Rule, Sink, Verb};
use engine::jobs::worker;
use serde_json::{Value, json};

use crate::on_both;
use crate::support::{Client, Db, Server, Shared};

on_both![
    lists_mail_without_its_text,
    a_mail_that_failed_is_sent_again,
    a_limited_key_looks_at_a_limited_number_of_mails,
    a_mail_that_is_sent_again_counts_against_the_quota,
];

fn ticket(client: &Client) -> String {
    client.post("/v1/tickets", json!({"subject": "Cold oven", "client_email": "a@ster.example"})).expect(201).id()
}

fn reply(client: &Client, ticket: &str, to: &str) {
    client.post(&format!("/v1/tickets/{ticket}/messages"), json!({"body": "Secret words", "to": to})).expect(201);
}

fn recipients(reply: &Value) -> Vec<String> {
    let data = reply["data"].as_array().unwrap();
    data.iter().map(|one| one["recipient"].as_str().unwrap().to_string()).collect()
}

fn lists_mail_without_its_text(server: Shared) {
    server.leaves_jobs();
    let client = server.client();
    let about = ticket(&client);
    for number in 1..=3 {
        reply(&client, &about, &format!("a{number}@ster.example"));
    }
    // An invitation contains a link that works once.
    client.post("/v1/users", json!({"email": "ina@a.example", "name": "Ina"})).expect(201);
    let all = client.get("/v1/mails").expect(200);
    assert_eq!(recipients(&all.json()), ["ina@a.example", "a3@ster.example", "a2@ster.example", "a1@ster.example"]);
    assert!(!all.text.contains("Secret words") && !all.text.contains("/invite/"), "{}", all.text);
    assert_eq!(all.json()["meta"]["has_more"], false);
    let mut one = all.data()[1].clone();
    for member in ["id", "updated_at"] {
        one.as_object_mut().unwrap().remove(member);
    }
    let number = client.get(&format!("/v1/tickets/{about}")).data()["number"].as_str().unwrap().to_string();
    assert_eq!(
        one,
        json!({
            "about": "ticket", "about_id": about, "send_type": "ticket", "subject": format!("Re: Cold oven [{number}]"),
            "recipient": "a3@ster.example", "status": "queued", "attempts": 0, "reason": "", "maybe_twice": false,
            "created_at": "2026-05-04T10:00:00.000Z", "leaves_at": "2026-05-04T10:00:00.000Z",
            "next_attempt_at": null,
        })
    );
    let page = client.get("/v1/mails?limit=3").expect(200).json();
    assert_eq!((recipients(&page).len(), &page["meta"]["has_more"]), (3, &json!(true)));
    let rest = client.get(&format!("/v1/mails?before={}", page["meta"]["last_id"].as_str().unwrap())).json();
    assert_eq!(recipients(&rest), ["a1@ster.example"]);
    assert_eq!(recipients(&client.get("/v1/mails?status=queued").json()).len(), 4);
    assert_eq!(recipients(&client.get("/v1/mails?status=failed").json()).len(), 0);
    let of_ticket = format!("/v1/mails?about_id={about}&status=queued&limit=2");
    assert_eq!(recipients(&client.get(&of_ticket).json()), ["a3@ster.example", "a2@ster.example"]);
    assert_eq!(client.get("/v1/mails?status=lost").expect(422).faults(), ["status: invalid_choice"]);
    assert_eq!(client.get("/v1/mails?limit=0").expect(422).faults(), ["limit: out_of_range"]);
    assert_eq!(recipients(&server.client().get("/v1/mails").json()).len(), 0);
    // Mail about records that the caller may not read is hidden.
    let some = server.with_scopes(&client, &["invoices.read", "users.read"]);
    assert_eq!(recipients(&some.get("/v1/mails").expect(200).json()), ["ina@a.example"]);
    assert_eq!(server.with_scopes(&client, &["tickets.read"]).get("/v1/mails").status, 403);
}

/// Mail that the caller may not read is passed over, but not without end.
fn a_limited_key_looks_at_a_limited_number_of_mails(server: Shared) {
    server.leaves_jobs();
    let client = server.client();
    client.post("/v1/users", json!({"email": "ina@a.example", "name": "Ina"})).expect(201);
    reply(&client, &ticket(&client), "a@ster.example");
    server.execute(&format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10100)
         INSERT INTO deliveries (account_id, id, mail_id, about_id, recipient, status, attempts, reason, maybe_twice, changed_at)
         SELECT account_id, 'ffffffff-ffff-7fff-8fff-000000' || (100000 + i), mail_id, about_id, recipient, status, 0, '', 0, 0
         FROM n, (SELECT * FROM deliveries WHERE account_id = {} AND recipient = 'a@ster.example') AS one",
        client.account
    ));
    let some = server.with_scopes(&client, &["invoices.read", "users.read"]);
    let first = some.get("/v1/mails").expect(200).json();
    assert_eq!((recipients(&first).len(), &first["meta"]["has_more"]), (0, &json!(true)));
    assert_eq!(first["meta"]["last_id"], "ffffffff-ffff-7fff-8fff-000000100101", "10,000 before the latest one");
    let path = format!("/v1/mails?before={}", first["meta"]["last_id"].as_str().unwrap());
    let second = some.get(&path).expect(200).json();
    assert_eq!((recipients(&second), &second["meta"]["has_more"]), (vec!["ina@a.example".to_string()], &json!(false)));
    assert_eq!(recipients(&client.get("/v1/mails").json()).len(), 50, "whoever may read all of it reads the latest");
}

/// Starts a server that sends its mail to the sink, with a mail that the sink rejects.
fn with_a_failed_mail(db: Db, sink: &Sink, quota: u64) -> (Server, Client) {
    let server = Server::with(db, |config| {
        config.smtp_host = "127.0.0.1".to_string();
        config.smtp_port = sink.port();
        config.smtp_security = "none".to_string();
        config.mail_from = "kantoor@server.example".to_string();
        config.quota_mails_per_day = quota;
    });
    let client = server.client();
    sink.rule(Rule::new(Verb::Rcpt, Act::answer("550 5.1.1 no such user")));
    reply(&client, &ticket(&client), "a@ster.example");
    work(&server);
    (server, client)
}

fn work(server: &Server) {
    server.block_on(async { while worker::turn(&server.app).await {} });
}

fn a_mail_that_is_sent_again_counts_against_the_quota(db: Db) {
    let sink = Sink::start().unwrap();
    let (server, client) = with_a_failed_mail(db, &sink, 2);
    let failed = client.get("/v1/mails?status=failed").expect(200).data()[0].clone();
    let path = format!("/v1/mails/{}/retry", failed["id"].as_str().unwrap());
    client.act(&path).expect(200);
    assert_eq!(client.get("/v1/settings/usage").data()["mails_today"], 2);
    work(&server);
    let before = server.last_seq(&client);
    let refused = client.act(&path).expect(403);
    assert_eq!(refused.code(), "quota_exceeded");
    assert_eq!(client.get("/v1/mails").data()[0]["status"], "failed");
    assert_eq!(server.last_seq(&client), before);
}

fn a_mail_that_failed_is_sent_again(db: Db) {
    let sink = Sink::start().unwrap();
    let (server, client) = with_a_failed_mail(db, &sink, 0);
    let failed = client.get("/v1/mails?status=failed").expect(200).data()[0].clone();
    assert!(failed["reason"].as_str().unwrap().contains("no such user"), "{failed}");
    assert_eq!(failed["attempts"], 1);
    let path = format!("/v1/mails/{}/retry", failed["id"].as_str().unwrap());
    for (scopes, status) in [
        (&["invoices.write", "invoices.read", "tickets.read"][..], 403),
        (&["invoices.write", "tickets.write"], 404),
        (&["tickets.read", "tickets.write"], 403),
    ] {
        assert_eq!(server.with_scopes(&client, scopes).act(&path).status, status, "{scopes:?}");
    }
    assert_eq!(server.client().act(&path).status, 404);
    let before = server.last_seq(&client);
    let queued = client.act(&path).expect(200).data();
    let line = client.get(&format!("/v1/changes?after={before}")).expect(200).data()[0].clone();
    assert_eq!(
        (&line["type"], &line["entity_id"], &line["actor_type"]),
        (&json!("mail.retried"), &failed["id"], &json!("key"))
    );
    let data = json!({"id": failed["id"], "about": "ticket", "about_id": failed["about_id"]});
    assert_eq!(line["data"], data, "neither the recipient nor the subject");
    assert_eq!((&queued["status"], &queued["id"]), (&json!("queued"), &failed["id"]));
    assert_eq!(client.act(&path).expect(409).code(), "invalid_transition");
    sink.heal();
    work(&server);
    let sent = client.get("/v1/mails").data()[0].clone();
    assert_eq!((&sent["status"], &sent["attempts"]), (&json!("sent"), &json!(2)));
}

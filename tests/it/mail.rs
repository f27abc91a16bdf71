//! Mail about documents and tickets, to a real SMTP server on loopback.

use std::time::Duration;

use ::mail::sink::{Act, Rule, Sink, Verb};
use engine::jobs::worker;
use engine::jobs::{Ending, JobKind, Lane};
use kantoor::mail::Deliver;
use serde_json::{Value, json};

use crate::on_both;
use crate::support::{Client, Db, Server};

fn with_smtp(db: Db, sink: &Sink) -> Server {
    let port = sink.port();
    Server::with(db, |config| {
        config.smtp_host = "127.0.0.1".to_string();
        config.smtp_port = port;
        config.smtp_security = "none".to_string();
        config.smtp_timeout_seconds = 2;
        config.mail_from = "kantoor@server.example".to_string();
    })
}

/// Runs all due jobs, including those waiting for a retry.
fn work_off(server: &Server) {
    server.block_on(async { while worker::turn(&server.app).await {} });
}

fn hurry(server: &Server) {
    server
        .app
        .store
        .write_now(0, |tx| tx.execute("UPDATE jobs SET run_at = 0 WHERE state = 'ready'", &[]).map(drop))
        .unwrap();
    work_off(server);
}

fn invoice(client: &Client) -> String {
    let identity = client.get("/v1/corporate-identities").data()[0]["id"].as_str().unwrap().to_string();
    client
        .patch(
            &format!("/v1/corporate-identities/{identity}"),
            json!({"name": "Jansen & Zn", "email": "info@jansen.example"}),
        )
        .expect(200);
    let firm = client
        .post(
            "/v1/clients",
            json!({"company_name": "De Ster", "email": "anna@ster.example", "email_reminders": "admin@ster.example"}),
        )
        .expect(201)
        .id();
    let body =
        json!({"title": "Ketel", "client_id": firm, "rows": [{"name": "Ketel", "unit_price": 100, "vat_rate": 21}]});
    format!("/v1/invoices/{}", client.post("/v1/invoices", body).expect(201).id())
}

fn letter() -> Value {
    json!({"to": "anna@ster.example,bob@ster.example", "cc": "boss@ster.example", "subject": "Uw factuur – €", "message": "Dag <Anna>,\n\nzie bijlage."})
}

fn states(client: &Client, path: &str) -> Vec<(String, String, i64)> {
    let data = client.get(&format!("{path}/deliveries")).expect(200).data();
    let text = |value: &Value| value.as_str().unwrap().to_string();
    data.as_array()
        .unwrap()
        .iter()
        .map(|one| (text(&one["recipient"]), text(&one["status"]), one["attempts"].as_i64().unwrap()))
        .collect()
}

on_both![
    a_document_is_mailed_with_its_pdf,
    a_draft_is_mailed_with_its_number,
    a_duplicate_recipient_gets_one_mail,
    a_subject_with_a_tab_arrives,
    mail_waits_for_a_large_document,
    rejects_invalid_mail,
    no_mail_is_lost_or_silently_duplicated,
    a_mail_server_that_is_down_loses_no_mail,
    a_reply_to_a_ticket_is_mailed,
    a_test_mail_tells_whether_mail_arrives,
    the_owner_learns_of_a_refused_mail,
    a_dutch_owner_reads_the_reason_apart,
    a_further_try_goes_to_the_address_that_the_client_has_now,
];

fn a_document_is_mailed_with_its_pdf(db: Db) {
    let sink = Sink::start().unwrap();
    let server = with_smtp(db, &sink);
    let client = server.client();
    let path = invoice(&client);
    let before = server.last_seq(&client);
    let sent = client.post(&format!("{path}/send"), letter()).expect(200).json();
    assert_eq!(
        sent["data"],
        json!({"success": true, "recipients": ["anna@ster.example", "bob@ster.example", "boss@ster.example"],
            "recipients_list": "anna@ster.example, bob@ster.example, boss@ster.example",
            "leaves_at": sent["data"]["leaves_at"]})
    );
    assert_eq!(sent["meta"]["finalized"], true);
    assert_eq!(client.get(&path).data()["sent_at"], json!(null), "no mail server has accepted it yet");
    assert!(server.events(&client, before).contains(&"sales.document_sent".to_string()));
    assert_eq!(states(&client, &path)[0], ("anna@ster.example".into(), "queued".into(), 0));
    work_off(&server);
    let mails = sink.wait(3, Duration::from_secs(10));
    assert_eq!(mails.len(), 3, "one for each recipient");
    let text = String::from_utf8_lossy(&mails[0].message).to_string();
    assert!(text.contains("To: anna@ster.example") && text.contains("boss@ster.example"), "{text}");
    assert!(
        text.replace('"', "").contains("From: Test <kantoor@server.example>") && !text.contains("Reply-To:"),
        "{text}"
    );
    assert!(text.contains("filename=\"F2026-0001.pdf\"") || text.contains("F2026-0001.pdf"), "{text}");
    assert!(text.contains("multipart/alternative") && text.contains("application/pdf"), "{text}");
    assert_eq!(mails[0].from, "kantoor@server.example", "no domain of the account is verified");
    let preview = |name: &str| client.get(&format!("{path}/send-preview")).expect(200).data()[name].clone();
    assert_eq!((preview("from_email"), preview("reply_to")), (json!(""), json!("")), "nobody has the address yet");
    assert!(states(&client, &path).iter().all(|(_, status, attempts)| status == "sent" && *attempts == 1));
    assert_eq!(client.get(&path).data()["sent_at"], "2026-05-04T10:00:00.000Z");
    assert_eq!(server.metric("kantoor_mails_total{outcome=\"sent\"}"), 3);

    client.post("/v1/email-domains", json!({"domain": "jansen.example"})).expect(201);
    server.execute("UPDATE email_domains SET status = 'verified', verified_by = 'operator'");
    let reminder = json!({"to": "a@ster.example", "subject": "x", "message": "y", "send_type": "invoice_rem1", "include_pdf": false});
    client.post(&format!("{path}/send"), reminder).expect(200);
    work_off(&server);
    let last = sink.wait(4, Duration::from_secs(10)).pop().unwrap();
    assert_eq!(last.from, "info@jansen.example", "now it is sent from the business's own address");
    assert_eq!(preview("from_email"), "info@jansen.example");
    assert!(!String::from_utf8_lossy(&last.message).contains("application/pdf"));
}

/// Sending finalizes a draft: its preview shows the final document, and the mail has the number.
fn a_draft_is_mailed_with_its_number(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let mailed = |path: &str| {
        let words = client.get(&format!("{path}/send-preview")).expect(200).data();
        let text = |name: &str| words[name].as_str().unwrap().to_string();
        assert!(text("subject").contains("{number}") && text("message").contains("{number}"), "{words}");
        assert!(!words.to_string().contains("DRAFT"), "{words}");
        let page = client.get(&format!("{path}/send-preview/html")).expect(200).text;
        assert!(!page.contains("DRAFT") && page.contains("121,00"), "{page}");
        let body = json!({"to": "anna@ster.example", "subject": text("subject"), "message": text("message")});
        client.post(&format!("{path}/send"), body).expect(200);
        let (subject, message) = server
            .app
            .store
            .read_now(|tx| {
                let sql = "SELECT subject, body FROM mails ORDER BY id DESC LIMIT 1";
                tx.first(sql, &[], |row| Ok::<_, store::Error>((row.text(0)?.to_string(), row.text(1)?.to_string())))
            })
            .unwrap()
            .unwrap();
        (text("message"), subject, message)
    };
    let path = invoice(&client);
    let (preview, subject, message) = mailed(&path);
    assert!(preview.contains("Wij verzoeken u €\u{a0}121,00 uiterlijk 18 mei 2026 over te maken."), "{preview}");
    assert_eq!(client.get(&path).data()["number"], "F2026-0001");
    assert!(
        subject.contains("F2026-0001") && message.starts_with(&preview.replace("{number}", "F2026-0001")),
        "{message}"
    );
    let row = json!([{"name": "Ketel", "unit_price": 100, "vat_rate": 21}]);
    let quote = client.post("/v1/quotes", json!({"title": "Ketel", "rows": row})).expect(201).id();
    let (_, subject, message) = mailed(&format!("/v1/quotes/{quote}"));
    assert!(subject.contains("Q2026-0001") && message.contains("Q2026-0001"), "{subject} {message}");
    // A text that was made with the number of the draft has that of the document too; other braces stay.
    let draft = client.post("/v1/invoices", json!({"title": "Ketel", "rows": row})).expect(201);
    let number = draft.data()["number"].as_str().unwrap().to_string();
    let body = json!({"to": "a@b.example", "subject": format!("Factuur {number}"), "message": "{number} {} { niets }"});
    client.post(&format!("/v1/invoices/{}/send", draft.id()), body).expect(200);
    let listed = client.get("/v1/mails").data();
    assert_eq!(listed[0]["subject"], "Factuur F2026-0002");
    work_off(&server);
}

fn a_test_mail_tells_whether_mail_arrives(db: Db) {
    let sink = Sink::start().unwrap();
    let server = with_smtp(db, &sink);
    let client = server.client();
    assert_eq!(client.post("/v1/mails/test", json!({})).expect(422).faults(), ["to: required"]);
    server.with_scopes(&client, &["invoices.write"]).post("/v1/mails/test", json!({"to": "a@b.example"})).expect(403);
    let sent = client.post("/v1/mails/test", json!({"to": "anna@jansen.example"})).expect(200).data();
    assert_eq!(sent, json!({"to": "anna@jansen.example"}));
    work_off(&server);
    let mails = sink.wait(1, Duration::from_secs(10));
    assert!(String::from_utf8_lossy(&mails[0].message).contains("To: anna@jansen.example"));
    let listed = client.get("/v1/mails").data();
    assert_eq!((&listed[0]["send_type"], &listed[0]["status"]), (&json!("test"), &json!("sent")));
}

fn a_subject_with_a_tab_arrives(db: Db) {
    let sink = Sink::start().unwrap();
    let server = with_smtp(db, &sink);
    let client = server.client();
    let path = invoice(&client);
    let letter = json!({"to": "anna@ster.example", "subject": "Factuur\tvoor\u{2028}Anna", "message": "y"});
    client.post(&format!("{path}/send"), letter).expect(200);
    work_off(&server);
    let mails = sink.wait(1, Duration::from_secs(10));
    assert!(String::from_utf8_lossy(&mails[0].message).contains("Subject: Factuur voor Anna\r\n"));
}

fn a_duplicate_recipient_gets_one_mail(db: Db) {
    let sink = Sink::start().unwrap();
    let server = with_smtp(db, &sink);
    let client = server.client();
    let path = invoice(&client);
    let to = "anna@ster.example, anna@STER.example,bob@ster.example,anna@ster.example";
    let cc = "Bob@Ster.Example, boss@ster.example, boss@ster.EXAMPLE";
    let sent = client
        .post(&format!("{path}/send"), json!({"to": to, "cc": cc, "subject": "x", "message": "y"}))
        .expect(200)
        .data();
    let each = ["anna@ster.example", "bob@ster.example", "boss@ster.example"];
    assert_eq!((&sent["recipients"], &sent["recipients_list"]), (&json!(each), &json!(each.join(", "))));
    let recipients: Vec<String> = states(&client, &path).into_iter().map(|(recipient, _, _)| recipient).collect();
    assert_eq!(recipients, each);
    work_off(&server);
    let mails = sink.wait(3, Duration::from_secs(10));
    assert_eq!(mails.len(), 3);
    let text = String::from_utf8_lossy(&mails[0].message).to_lowercase();
    let head = text.split("\r\n\r\n").next().unwrap();
    for address in each {
        assert_eq!(head.matches(address).count(), 1, "{head}");
    }
    // A ticket reply is sent in the same way.
    let ticket =
        client.post("/v1/tickets", json!({"subject": "s", "client_email": "anna@ster.example"})).expect(201).id();
    let reply = json!({"body": "b", "to": "anna@ster.example, anna@Ster.example", "cc": "anna@ster.example"});
    let reply = client.post(&format!("/v1/tickets/{ticket}/messages"), reply).expect(201).data();
    assert_eq!((&reply["meta"]["to"], &reply["meta"]["cc"]), (&json!("anna@ster.example"), &json!("")));
    work_off(&server);
    assert_eq!(sink.wait(4, Duration::from_secs(10)).len(), 4);
}

/// A large document is typeset in its own lane; its mail waits for it, but other mail does not.
fn mail_waits_for_a_large_document(db: Db) {
    let sink = Sink::start().unwrap();
    let server = with_smtp(db, &sink);
    server.leaves_jobs();
    let client = server.client();
    let rows: Vec<Value> = (0..600).map(|n| json!({"name": format!("Row {n}"), "unit_price": 1})).collect();
    let path = format!(
        "/v1/invoices/{}",
        client.post("/v1/invoices", json!({"title": "Large", "rows": rows})).expect(201).id()
    );
    let letter = json!({"to": "anna@ster.example", "subject": "x", "message": "x"});
    client.post(&format!("{path}/send"), letter).expect(200);
    let deliver = || {
        let app = server.app.clone();
        server
            .block_on(server.apart(move || {
                let (claimant, now) = (app.claimant.clone(), app.clock.now().plus_seconds(10));
                let job = app
                    .store
                    .write_now(0, move |tx| claimant.claim(tx, now, Lane::Outside, &["deliver"], 1))
                    .unwrap()
                    .remove(0);
                let ending = (JobKind::of::<Deliver>().run)(&app, &job).unwrap();
                let kept = ending.clone();
                app.store.write_now(0, move |tx| job.finish(tx, &kept, now)).unwrap();
                ending
            }))
            .unwrap()
    };
    assert!(matches!(deliver(), Ending::Wait(_)));
    assert_eq!(
        states(&client, &path),
        [("anna@ster.example".to_string(), "queued".to_string(), 0)],
        "waiting is not an attempt"
    );
    let sql = "UPDATE jobs SET state = 'failed' WHERE kind = 'document_pdf'";
    server.app.store.write_now(0, move |tx| tx.execute(sql, &[]).map(drop)).unwrap();
    assert_eq!(deliver(), Ending::Done, "no other job typesets it");
    assert_eq!(sink.wait(1, Duration::from_secs(20)).len(), 1);
}

fn rejects_invalid_mail(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let path = invoice(&client);
    let send = |field: &str, value: Value| {
        let mut body = letter();
        body[field] = value;
        client.post(&format!("{path}/send"), body)
    };
    for (field, value, fault) in [
        ("to", json!("a@b.example\r\nBcc: x@y.example"), "to: invalid_format"),
        ("to", json!("nobody"), "to: invalid_format"),
        ("to", json!(""), "to: required"),
        ("subject", json!("a\nBcc: x"), "subject: invalid_characters"),
        ("subject", json!("x".repeat(999)), "subject: too_long"),
        ("message", json!(null), "message: required"),
        ("send_type", json!("quote"), "send_type: invalid_choice"),
        ("send_type", json!("letter"), "send_type: invalid_choice"),
        ("include_pdf", json!("yes"), "include_pdf: wrong_type"),
        ("cc", json!((0..50).map(|n| format!("a{n}@b.example")).collect::<Vec<_>>().join(",")), "to: too_long"),
    ] {
        assert_eq!(send(field, value).expect(422).faults(), [fault]);
    }
    // All errors together: of single fields, of the whole mail and of the kind of document.
    let all = json!({"to": "nobody", "subject": "a\nb", "cc": 1, "send_type": "quote", "zz": 1});
    let faults = client.post(&format!("{path}/send"), all).expect(422).faults();
    let told = [
        "to: invalid_format",
        "cc: wrong_type",
        "zz: unknown_field",
        "message: required",
        "subject: invalid_characters",
        "send_type: invalid_choice",
    ];
    assert_eq!(faults, told);
    assert_eq!(client.get(&path).data()["payment_status"], "draft", "a rejected request leaves a draft");
    for kind in ["invoice", "credit", "invoice_rem1", "invoice_rem2", "invoice_rem3", "subscription"] {
        send("send_type", json!(kind)).expect(200);
        let reply = client.get(&format!("{path}/send-preview?send_type={kind}")).expect(200);
        assert_eq!(reply.json()["meta"], json!({}), "send_type is not ignored");
        let words = reply.data();
        assert!(words["message"].as_str().unwrap().contains("Met vriendelijke groet,\nJansen & Zn"), "{words}");
        assert!(words["subject"].as_str().unwrap().contains("F2026-0001"), "{words}");
        let to = if kind.contains("rem") { "admin@ster.example" } else { "anna@ster.example" };
        assert_eq!(words["to"], to);
    }
    assert_eq!(
        client.get(&format!("{path}/send-preview?send_type=quote")).expect(422).faults(),
        ["send_type: invalid_choice"]
    );
    let words = client.get(&format!("{path}/send-preview")).expect(200).data();
    assert_eq!((&words["from"], &words["language"]), (&json!("Test"), &json!("nl")));
    assert_eq!(words["attachment"], "F2026-0001.pdf");
    // As a page to look at: the mail itself, in which nothing runs.
    let page = client.get(&format!("{path}/send-preview/html")).expect(200);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert!(page.header("content-security-policy").ends_with("frame-ancestors 'self'; sandbox allow-same-origin"));
    assert!(page.text.contains("<p id=\"message\">Beste") && page.text.contains("Jansen &amp; Zn"), "{}", page.text);
    // Without SMTP settings, mail is written to the data folder.
    work_off(&server);
    let folder = server.app.config.data.join("mail");
    let written = std::fs::read_dir(folder)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|end| end == "eml"))
        .count();
    assert_eq!(written, 6);
    assert!(states(&client, &path).iter().all(|(_, status, _)| status == "stored"));
    assert_eq!(client.get(&path).data()["sent_at"], "2026-05-04T10:00:00.000Z");
}

fn no_mail_is_lost_or_silently_duplicated(db: Db) {
    let sink = Sink::start().unwrap();
    let server = with_smtp(db, &sink);
    let client = server.client();
    let path = invoice(&client);
    sink.rule(Rule::new(Verb::Rcpt, Act::answer("550 No such user")).having("bob@"));
    sink.rule(Rule::new(Verb::Rcpt, Act::answer("451 Try later")).having("anna@").times(1));
    sink.rule(Rule::new(Verb::End, Act::KeepAndClose).having("boss@").times(1));
    client.post(&format!("{path}/send"), letter()).expect(200);
    let before = server.last_seq(&client);
    work_off(&server);
    let find = |who: &str| {
        client
            .get(&format!("{path}/deliveries"))
            .data()
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["recipient"] == who)
            .unwrap()
            .clone()
    };
    let refused = find("bob@ster.example");
    assert_eq!((&refused["status"], &refused["attempts"]), (&json!("failed"), &json!(1)));
    assert!(refused["reason"].as_str().unwrap().contains("No such user"), "{refused}");
    assert_eq!(refused["next_attempt_at"], json!(null));
    let later = find("anna@ster.example");
    assert_eq!(later["status"], "retrying");
    assert!(later["reason"].as_str().unwrap().contains("Try later"), "{later}");
    assert!(later["next_attempt_at"].as_str() > later["created_at"].as_str(), "{later}");
    let events: Vec<String> = server.events(&client, before);
    assert_eq!(events.iter().filter(|event| *event == "mail.bounced").count(), 1, "{events:?}");
    let changes = client.get(&format!("/v1/changes?after={before}")).expect(200).data();
    let told = changes.as_array().unwrap().iter().find(|line| line["type"] == "mail.bounced").unwrap();
    let (entity, mail) = (&told["entity_type"], &told["data"]["mail"]);
    assert_eq!(
        (entity, &mail["recipient"], &mail["send_type"]),
        (&json!("invoice"), &json!("bob@ster.example"), &json!("invoice"))
    );
    assert!(
        mail["reason"].as_str().unwrap().contains("No such user") && told["data"]["number"] == "F2026-0001",
        "{told}"
    );
    assert_eq!(server.metric("kantoor_mails_total{outcome=\"bounced\"}"), 1);
    assert_eq!(client.get(&path).data()["sent_at"], json!(null), "nobody has accepted it yet");
    let unsure = find("boss@ster.example");
    assert_eq!((&unsure["status"], &unsure["maybe_twice"]), (&json!("retrying"), &json!(true)), "it may have arrived");
    hurry(&server);
    assert_eq!(
        (&find("anna@ster.example")["status"], &find("anna@ster.example")["attempts"]),
        (&json!("sent"), &json!(2))
    );
    assert_eq!(
        (&find("boss@ster.example")["status"], &find("boss@ster.example")["maybe_twice"]),
        (&json!("sent"), &json!(true))
    );
    let ids: Vec<String> = sink
        .mails()
        .iter()
        .filter(|mail| mail.to == ["boss@ster.example"])
        .map(|mail| {
            let text = String::from_utf8_lossy(&mail.message).to_string();
            text.lines().find(|line| line.starts_with("Message-ID")).unwrap().to_string()
        })
        .collect();
    assert!(ids.len() == 2 && ids[0] == ids[1], "a second copy has the same id, so that it can be dropped: {ids:?}");
    hurry(&server);
    assert_eq!(sink.mails().len(), 3, "a sent mail is not sent again");
}

fn a_mail_server_that_is_down_loses_no_mail(db: Db) {
    let sink = Sink::start().unwrap();
    let server = with_smtp(db, &sink);
    let client = server.client();
    let path = invoice(&client);
    sink.rule(Rule::new(Verb::Greeting, Act::Close));
    client.post(&format!("{path}/send"), json!({"to": "a@b.example", "subject": "x", "message": "y"})).expect(200);
    for tries in 1..=3 {
        hurry(&server);
        assert_eq!(states(&client, &path), [("a@b.example".to_string(), "retrying".to_string(), tries)]);
    }
    sink.heal();
    hurry(&server);
    assert_eq!(states(&client, &path), [("a@b.example".to_string(), "sent".to_string(), 4)]);
    sink.rule(Rule::new(Verb::Mail, Act::answer("421 Closing")));
    client.post(&format!("{path}/send"), json!({"to": "b@b.example", "subject": "x", "message": "y"})).expect(200);
    for _ in 0..14 {
        hurry(&server);
    }
    let given_up = states(&client, &path).pop().unwrap();
    assert_eq!(
        given_up,
        ("b@b.example".to_string(), "failed".to_string(), 12),
        "it is given up, with a reason that can be seen"
    );
    assert_eq!(server.events(&client, 0).iter().filter(|event| *event == "mail.failed").count(), 1);
}

fn a_reply_to_a_ticket_is_mailed(db: Db) {
    let sink = Sink::start().unwrap();
    let server = with_smtp(db, &sink);
    let client = server.client();
    let ticket = client.post("/v1/tickets", json!({"subject": "Koud", "client_email": "a@b.example"})).expect(201).id();
    client
        .post(&format!("/v1/tickets/{ticket}/messages"), json!({"html": "<p>Morgen <b>negen</b> uur</p>"}))
        .expect(201);
    client.post(&format!("/v1/tickets/{ticket}/messages"), json!({"type": "note", "body": "geheim"})).expect(201);
    work_off(&server);
    let mails = sink.wait(1, Duration::from_secs(10));
    assert_eq!(mails.len(), 1);
    let text = String::from_utf8_lossy(&mails[0].message).to_string();
    assert!(
        text.contains("Subject: Re: Koud [T00001]") && text.contains("<b>negen</b>") && !text.contains("geheim"),
        "{text}"
    );
}

/// The ready flows about mail create a task, and mail the owner.
fn the_owner_learns_of_a_refused_mail(db: Db) {
    let sink = Sink::start().unwrap();
    let server = with_smtp(db, &sink);
    let client = server.client();
    for flow in client.get("/v1/automation/flows?per_page=100").data().as_array().unwrap() {
        if flow["category"] == "mail" {
            let path = format!("/v1/automation/flows/{}", flow["id"].as_str().unwrap());
            client.patch(&path, json!({"active": true})).expect(200);
        }
    }
    let path = invoice(&client);
    sink.rule(Rule::new(Verb::Rcpt, Act::answer("550 No such user")).having("bob@"));
    sink.rule(Rule::new(Verb::Rcpt, Act::answer("550 No such user")).having("a@b"));
    let letter = json!({"to": "bob@ster.example", "subject": "x", "message": "y", "include_pdf": false});
    client.post(&format!("{path}/send"), letter.clone()).expect(200);
    // And a reply to a ticket.
    let ticket = client.post("/v1/tickets", json!({"subject": "Koud", "client_email": "a@b.example"})).expect(201).id();
    client.post(&format!("/v1/tickets/{ticket}/messages"), json!({"body": "b"})).expect(201);
    let settle = |to: &str| {
        work_off(&server);
        client.post("/v1/test-clock/advance", json!({"to": to})).expect(200);
        work_off(&server);
    };
    settle("2026-05-04T10:00:01Z");
    let tasks = client.get("/v1/tasks").expect(200).data();
    let titles: Vec<&str> = tasks.as_array().unwrap().iter().filter_map(|task| task["title"].as_str()).collect();
    assert_eq!(titles.len(), 2, "{titles:?}");
    assert!(titles.contains(&"The mail about F2026-0001 did not arrive"), "{titles:?}");
    assert_eq!(client.get(&path).data()["sent_at"], json!(null));
    // Nobody has signed up, so the address of the business stands for the owner's.
    let told = |to: &str| sink.mails().iter().filter(|mail| mail.to == [to]).count();
    assert_eq!((sink.mails().len(), told("info@jansen.example")), (2, 2));
    crate::people::owner(&server, &client, "olga@jansen.example");
    client.post(&format!("{path}/send"), letter.clone()).expect(200);
    settle("2026-05-04T10:00:02Z");
    assert_eq!((told("info@jansen.example"), told("olga@jansen.example")), (2, 1));
    // A mail to the owner that is refused does not cause another one, but a task.
    sink.rule(Rule::new(Verb::Rcpt, Act::answer("550 No such user")).having("olga@"));
    client.post(&format!("{path}/send"), letter).expect(200);
    for second in 3..8 {
        settle(&format!("2026-05-04T10:00:0{second}Z"));
    }
    assert_eq!((sink.mails().len(), client.get("/v1/tasks").json()["meta"]["total"].as_i64()), (3, Some(5)));
}

fn a_dutch_owner_reads_the_reason_apart(db: Db) {
    let sink = Sink::start().unwrap();
    let server = with_smtp(db, &sink);
    let client = server.client();
    client.patch("/v1/settings", json!({"language": "nl"})).expect(200);
    let flows = client.get("/v1/automation/flows?per_page=100").data();
    let flow = flows.as_array().unwrap().iter().find(|flow| flow["name"] == "Meld een geweigerde mail").unwrap();
    let flow = format!("/v1/automation/flows/{}", flow["id"].as_str().unwrap());
    client.patch(&flow, json!({"active": true})).expect(200);
    sink.rule(Rule::new(Verb::Rcpt, Act::answer("550 No such user")).having("bob@"));
    let letter = json!({"to": "bob@ster.example", "subject": "x", "message": "y", "include_pdf": false});
    client.post(&format!("{}/send", invoice(&client)), letter).expect(200);
    work_off(&server);
    client.post("/v1/test-clock/advance", json!({"to": "2026-05-04T10:00:01Z"})).expect(200);
    work_off(&server);
    let task = client.get("/v1/tasks").expect(200).data()[0]["id"].as_str().unwrap().to_string();
    let task = client.get(&format!("/v1/tasks/{task}")).expect(200).data();
    let notes = task["notes"].as_str().unwrap();
    assert!(notes.starts_with("bob@ster.example\n\nTechnische melding, in het Engels:\nThe mail server "), "{notes}");
    assert!(notes.ends_with("550 No such user"), "{notes}");
}

fn a_further_try_goes_to_the_address_that_the_client_has_now(db: Db) {
    let sink = Sink::start().unwrap();
    let server = with_smtp(db, &sink);
    let client = server.client();
    sink.rule(Rule::new(Verb::Rcpt, Act::answer("550 No such user")).having("wrong"));
    let path = invoice(&client);
    let firm = format!("/v1/clients/{}", client.get(&path).data()["client_id"].as_str().unwrap());
    let address = |email: &str| {
        drop(client.patch(&firm, json!({"email": email.split(", ").next(), "email_invoices": email})).expect(200))
    };
    let sent_to = |to: &str| {
        let body =
            json!({"to": to, "cc": "wrong-boss@ster.example", "subject": "x", "message": "y", "include_pdf": false});
        client.post(&format!("{path}/send"), body).expect(200);
        work_off(&server);
    };
    let failed = |start: &str| {
        let list = client.get("/v1/mails?status=failed").expect(200).data();
        let found = list.as_array().unwrap().iter().find(|mail| mail["recipient"].as_str().unwrap().starts_with(start));
        format!("/v1/mails/{}/retry", found.unwrap()["id"].as_str().unwrap())
    };
    address("wrong-anna@ster.example");
    sent_to("wrong-anna@ster.example");
    let deliveries = client.get(&format!("{path}/deliveries")).data();
    assert!(
        deliveries[0]["updated_at"].as_str().unwrap().starts_with("2026-05-04T"),
        "the clock of the account: {deliveries}"
    );
    let (to_client, copy) = (failed("wrong-anna"), failed("wrong-boss"));
    // It has none: nobody guesses.
    address("");
    let refused = client.act(&to_client).expect(409);
    assert!(refused.text.contains("The client has no e-mail address any more."), "{}", refused.text);
    address("anna@ster.example, post@ster.example");
    assert_eq!(client.act(&to_client).expect(200).data()["recipient"], "anna@ster.example");
    assert_eq!(client.act(&copy).expect(200).data()["recipient"], "wrong-boss@ster.example", "a copy stays");
    work_off(&server);
    let mut arrived: Vec<String> = sink.mails().iter().flat_map(|mail| mail.to.clone()).collect();
    arrived.sort();
    assert_eq!(arrived, ["anna@ster.example", "post@ster.example"]);
    let text = String::from_utf8_lossy(&sink.mails()[0].message).to_string();
    assert!(text.contains("To: anna@ster.example,\r\n post@ster.example"), "{text}");
    // An address of one's own stays.
    sent_to("wrong-bob@ster.example");
    assert_eq!(client.act(&failed("wrong-bob")).expect(200).data()["recipient"], "wrong-bob@ster.example");
    // So it is with the reply to a ticket.
    address("wrong-anna@ster.example");
    let id = firm.rsplit('/').next().unwrap();
    let ticket = client.post("/v1/tickets", json!({"subject": "Koud", "client_id": id})).expect(201).id();
    client.post(&format!("/v1/tickets/{ticket}/messages"), json!({"body": "b"})).expect(201);
    work_off(&server);
    let reply = failed("wrong-anna");
    address("carla@ster.example");
    assert_eq!(client.act(&reply).expect(200).data()["recipient"], "carla@ster.example");
    work_off(&server);
}

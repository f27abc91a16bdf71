//! The image of a logo is decoded and re-encoded before it becomes one.

use std::time::Duration;

use ::mail::sink::Sink;
use engine::jobs::worker;
use serde_json::{Value, json};

use crate::files::{contents, drop_all};
use crate::on_both;
use crate::server::Binary;
use crate::support::{Client, Db, Server};
use crate::typesetting::{chunk, packed, picture};

fn identity(client: &Client) -> String {
    let list = client.get("/v1/corporate-identities").data();
    format!("/v1/corporate-identities/{}", list[0]["id"].as_str().unwrap())
}

/// An image with this many black pixels.
fn black(width: u32, height: u32) -> Vec<u8> {
    let line = 1 + width as usize * 3;
    [
        &b"\x89PNG\r\n\x1a\n"[..],
        &chunk(b"IHDR", &[&width.to_be_bytes()[..], &height.to_be_bytes(), b"\x08\x02\0\0\0"].concat()),
        &chunk(b"IDAT", &packed(&vec![0; line * height as usize])),
        &chunk(b"IEND", b""),
    ]
    .concat()
}

fn has(bytes: &[u8], words: &[u8]) -> bool {
    bytes.windows(words.len()).any(|window| window == words)
}

on_both![
    a_logo_is_stored_re_encoded,
    rejects_an_image_that_cannot_be_decoded,
    a_failed_request_does_not_change_the_file,
    the_html_of_a_mail_shows_the_logo,
];

fn a_logo_is_stored_re_encoded(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let sent = picture(1);
    let logo = client.upload("logo.png", &sent).expect(201);
    let path = format!("/v1/files/{}", logo.id());
    let content = || client.get(&format!("{path}/content")).expect(200).bytes;
    assert_eq!(content(), sent, "an upload is stored unchanged");
    let seq = server.last_seq(&client);
    client.patch(&identity(&client), json!({"logo_file_id": logo.id()})).expect(200);
    assert_eq!(server.events(&client, seq), ["file.updated", "corporate_identity.updated"]);
    let drawn = content();
    assert!(has(&sent, b"iCCP") && !has(&drawn, b"iCCP") && has(&drawn, b"IEND") && drawn.len() < sent.len());
    let file = client.get(&path).expect(200).data();
    assert_eq!((&file["id"], &file["meta"]["size"]), (&logo.data()["id"], &json!(drawn.len())));
    assert!(file["meta"]["sha256"] != logo.data()["meta"]["sha256"]);
    assert_eq!(client.get("/v1/settings/usage").data()["file_bytes"], json!(drawn.len()));

    // Another identity uses the same image, which is not re-encoded again.
    let seq = server.last_seq(&client);
    let body = json!({"name": "Two", "logo_file_id": logo.id()});
    client.post("/v1/corporate-identities", body).expect(201);
    assert_eq!(server.events(&client, seq), ["corporate_identity.created"]);
    assert_eq!(content(), drawn);
    drop_all(&server);
    assert_eq!(contents(&server).len(), 1, "the first content is deleted");
    assert_eq!(content(), drawn);
}

fn rejects_an_image_that_cannot_be_decoded(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let path = identity(&client);
    let whole = black(40, 30);
    let broken = [&whole[..whole.len() - 20], b"\0\0\0\0"].concat();
    for content in
        [&whole[..whole.len() - 1], &whole[..40], &broken, &b"\xff\xd8\xff\xc0\0\x11\x08\0\x08\0\x08\x03"[..]]
    {
        let logo = client.upload("logo.png", content).expect(201).id();
        let refused = client.patch(&path, json!({"logo_file_id": logo})).expect(422);
        assert_eq!(refused.faults(), ["logo_file_id: invalid_format"], "{content:?}");
        let body = json!({"name": "x", "logo_file_id": logo});
        assert_eq!(
            client.post("/v1/corporate-identities", body).expect(422).faults(),
            ["logo_file_id: invalid_format"]
        );
        assert_eq!(client.get(&format!("/v1/files/{logo}/content")).expect(200).bytes, content, "it does not change");
        client.delete(&format!("/v1/files/{logo}")).expect(204);
    }
    assert_eq!(client.get(&path).data()["meta"]["logo_file_id"], Value::Null);
    drop_all(&server);
    assert!(contents(&server).is_empty());
}

fn a_failed_request_does_not_change_the_file(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let path = identity(&client);
    let logo = client.upload("logo.png", &picture(0)).expect(201).id();
    let body = json!({"logo_file_id": logo, "is_default": false});
    let seq = server.last_seq(&client);
    assert_eq!(client.patch(&path, body.clone()).expect(422).faults(), ["is_default: invalid_choice"]);
    assert_eq!(client.send("PATCH", &path, &[("if-match", "\"9\"")], &body.to_string()).status, 412);
    client.patch("/v1/corporate-identities/none", body).expect(404);
    assert_eq!(client.get(&format!("/v1/files/{logo}/content")).bytes, picture(0));
    assert_eq!(server.last_seq(&client), seq);
    drop_all(&server);
    assert_eq!(contents(&server).len(), 1);

    // The same key gets the same response.
    let body = json!({"name": "Two", "logo_file_id": logo}).to_string();
    let make = || client.send("POST", "/v1/corporate-identities", &[("idempotency-key", "two")], &body).expect(201);
    assert_eq!(make().id(), make().id());
    assert_eq!(client.get("/v1/corporate-identities").data().as_array().unwrap().len(), 2);
}

/// Mail programs load it from the page of the document, so it must work without a key.
fn the_html_of_a_mail_shows_the_logo(db: Db) {
    let sink = Sink::start().unwrap();
    let server = Server::with(db, |config| crate::people::use_sink(config, &sink));
    let client = server.client();
    client.patch(&identity(&client), json!({"name": "Jansen & \"Zn\""})).expect(200);
    let mailed = |count: usize| {
        let body =
            json!({"title": "x", "generation_mode": "final", "rows": [{"name": "x", "unit_price": 1, "vat_rate": 21}]});
        let invoice = client.post("/v1/invoices", body).expect(201).data();
        let letter = json!({"to": "a@ster.example", "subject": "s", "message": "m", "include_pdf": false});
        client.post(&format!("/v1/invoices/{}/send", invoice["id"].as_str().unwrap()), letter).expect(200);
        server.block_on(async { while worker::turn(&server.app).await {} });
        let mails = sink.wait(count, Duration::from_secs(10));
        let text = String::from_utf8_lossy(&mails[count - 1].message).replace("=\r\n", "").replace("=3D", "=");
        (invoice["web_url"].as_str().unwrap().to_string(), text)
    };
    let (_, without) = mailed(1);
    assert!(without.contains(">Jansen &amp; &quot;Zn&quot;</span>") && !without.contains("<img"), "{without}");
    let logo = client.upload("logo.png", &picture(1)).expect(201).id();
    client.patch(&identity(&client), json!({"logo_file_id": logo})).expect(200);
    let drawn = client.get(&format!("/v1/files/{logo}/content")).expect(200).bytes;
    let (page, with) = mailed(2);
    let image =
        format!("<img src=\"{page}/logo\" alt=\"Jansen &amp; &quot;Zn&quot;\" style=\"max-width:240px;max-height:64px");
    assert!(with.contains(&image), "no {image} in {with}");
    let path = format!("{}/logo", &page[page.find("/d/").unwrap()..]);
    let shown = client.send("GET", &path, &[("authorization", "")], "").expect(200);
    assert_eq!(shown.header("content-type"), "image/png");
    assert_eq!(shown.bytes, drawn);
}

#[test]
fn an_image_that_exceeds_the_limits_does_not_crash_the_server() {
    let db = Db::sqlite();
    let binary = Binary::start(&db, "", &["--set", "read_memory_mib=96", "--set", "workers=0"]);
    let client = &binary.client;
    let path = identity(client);
    let huge = client.upload("huge.png", &black(5000, 5000)).expect(201).id();
    let refused = client.patch(&path, json!({"logo_file_id": huge})).expect(422);
    assert_eq!(refused.faults(), ["logo_file_id: invalid_format"]);
    let small = client.upload("small.png", &picture(8)).expect(201).id();
    client.patch(&path, json!({"logo_file_id": small})).expect(200);
    assert!(client.get(&format!("/v1/files/{small}/content")).expect(200).bytes.len() < 1000);
}

/// The compiler only gets images that the program wrote.
#[test]
fn a_logo_that_was_not_re_encoded_is_not_printed() {
    let db = Db::sqlite();
    let binary = Binary::start(&db, "", &["--set", "workers=0"]);
    let client = &binary.client;
    let rows = json!([{"name": "Advice", "quantity": 1, "unit_price": 10}]);
    let draft = client.post("/v1/quotes", json!({"title": "x", "rows": rows})).expect(201).id();
    let logo = client.upload("logo.png", &picture(1)).expect(201).id();
    let has_logo = |title: &str| {
        client.patch(&format!("/v1/quotes/{draft}"), json!({"title": title})).expect(200);
        let pdf = client.get(&format!("/v1/quotes/{draft}/pdf/content")).expect(200).bytes;
        has(&pdf, b"/Subtype/Image") || has(&pdf, b"/Subtype /Image")
    };
    let sql = format!("UPDATE corporate_identities SET logo_file_id = '{logo}'");
    let connection = rusqlite::Connection::open(db.data.join("kantoor.db")).unwrap();
    connection.execute_batch(&sql).unwrap();
    assert!(!has_logo("as it was uploaded"));
    connection.execute_batch("UPDATE corporate_identities SET logo_file_id = ''").unwrap();
    client.patch(&identity(client), json!({"logo_file_id": logo})).expect(200);
    assert!(has_logo("re-encoded"));
}

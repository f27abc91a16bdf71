//! Documents that could crash the server: decompression bombs, endless pages, and many concurrent requests.

use std::io::Write as _;

use serde_json::{Value, json};

use crate::on_both;
use crate::server::Binary;
use crate::support::{Client, Db, Server, Shared};

/// A document with a row, as a draft.
fn draft(client: &Client, title: &str) -> String {
    let company = client.post("/v1/clients", json!({"type": "company", "company_name": "Acme"})).expect(201).id();
    let rows: Value = json!([{"name": "Advice", "quantity": 1, "unit_price": 10}]);
    let body = json!({"client_id": company, "title": title, "rows": rows});
    format!("/v1/quotes/{}", client.post("/v1/quotes", body).expect(201).id())
}

pub fn chunk(kind: &[u8], data: &[u8]) -> Vec<u8> {
    let mut crc = flate2::Crc::new();
    crc.update(kind);
    crc.update(data);
    [&u32::try_from(data.len()).unwrap().to_be_bytes(), kind, data, &crc.sum().to_be_bytes()].concat()
}

pub fn packed(data: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(data).unwrap();
    packer.finish().unwrap()
}

/// One pixel, with a colour profile of this many MiB of zeros.
pub fn picture(profile_mib: usize) -> Vec<u8> {
    let profile = [&b"x\0\0"[..], &packed(&vec![0; profile_mib * 1024 * 1024])].concat();
    [
        &b"\x89PNG\r\n\x1a\n"[..],
        &chunk(b"IHDR", b"\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0"),
        &chunk(b"iCCP", &profile),
        &chunk(b"IDAT", &packed(b"\0abc")),
        &chunk(b"IEND", b""),
    ]
    .concat()
}

on_both![typesets_a_draft_once_per_version, concurrent_requests_take_turns,];

fn typesets_a_draft_once_per_version(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let path = draft(&client, "First");
    let made = || server.metric("kantoor_documents_typeset_total");
    let pdf = || client.get(&format!("{path}/pdf/content")).expect(200);
    let first = pdf();
    assert_eq!((pdf().bytes == first.bytes, pdf().header("etag") == first.header("etag"), made()), (true, true, 1));
    client.patch(&path, json!({"title": "Second"})).expect(200);
    assert!(pdf().bytes != first.bytes);
    assert_eq!((pdf().status, made()), (200, 2));
    // Another account with the same text has its own document.
    let other = server.client();
    let theirs = draft(&other, "Second");
    other.get(&format!("{theirs}/pdf/content")).expect(200);
    assert_eq!(made(), 3);
    client.get(&format!("{theirs}/pdf/content")).expect(404);
}

fn concurrent_requests_take_turns(server: Shared) {
    let (client, other) = (server.client(), server.client());
    let drafts: Vec<String> = (0..40).map(|number| draft(&client, &format!("Draft {number}"))).collect();
    let own = draft(&other, "Mine");
    std::thread::scope(|scope| {
        for path in &drafts {
            let client = client.clone();
            scope.spawn(move || {
                let reply = client.get(&format!("{path}/pdf/content"));
                if reply.status != 200 {
                    assert_eq!(reply.expect(503).header("retry-after"), "1");
                }
            });
        }
        assert_eq!(other.get("/ready").status, 200);
        assert!(other.get(&format!("{own}/pdf/content")).expect(200).bytes.starts_with(b"%PDF-"));
    });
}

#[test]
fn a_document_that_exceeds_the_limits_does_not_crash_the_server() {
    let db = Db::sqlite();
    let template = db.folder.path().join("own.typ");
    let text = r#"
#let data = json("/data.json")
#set document(title: "x")
#if data.title == "memory" { let much = range(2000000000) }
#if data.title == "time" { for i in range(1000000) { for j in range(1000000) { let k = calc.pow(2, 8) } } }
#data.title
"#;
    std::fs::write(&template, text).unwrap();
    let template = format!("template={}", template.display());
    let settings = ["--set", &template, "--set", "typeset_memory_mib=256", "--set", "typeset_timeout_seconds=5"];
    let binary = Binary::start(&db, "", &settings);
    let client = &binary.client;
    let pdf = |title: &str| client.get(&format!("{}/pdf/content", draft(client, title)));
    assert!(pdf("small").expect(200).bytes.starts_with(b"%PDF-"));
    for title in ["memory", "time"] {
        assert_eq!(pdf(title).expect(500).code(), "internal_error", "{title}");
        assert!(pdf(&format!("after {title}")).expect(200).bytes.starts_with(b"%PDF-"));
    }
    assert!(binary.said().contains("it took more than 5 s"), "{}", binary.said());
    assert!(binary.said().contains("the typesetting process ended"), "{}", binary.said());
}

#[test]
fn an_image_with_a_huge_profile_works_as_a_logo() {
    let db = Db::sqlite();
    let binary = Binary::start(&db, "", &[]);
    let client = &binary.client;
    let logo = client.upload("logo.png", &picture(64)).expect(201).id();
    let identity = client.get("/v1/corporate-identities").data()[0]["id"].as_str().unwrap().to_string();
    client.patch(&format!("/v1/corporate-identities/{identity}"), json!({"logo_file_id": logo})).expect(200);
    let path = draft(client, "With a logo");
    let pdf = client.get(&format!("{path}/pdf/content")).expect(200);
    let has = |words: &[u8]| pdf.bytes.windows(words.len()).any(|window| window == words);
    assert!(has(b"/Subtype/Image") || has(b"/Subtype /Image"), "the logo is on the page");
    assert!(!has(b"/ICCBased") || pdf.bytes.len() < 1024 * 1024);
}

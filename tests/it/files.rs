//! Files: upload, download, deletion, and crashes.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use engine::jobs::worker;
use serde_json::{Value, json};

use crate::on_both;
use crate::server::Binary;
use crate::support::{Client, Db, Server, Shared, execute, multipart};

fn keys_of(data: &Value) -> Vec<&str> {
    data.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Runs every job that deletes a content, regardless of its delay.
pub fn drop_all(server: &Server) {
    server
        .app
        .store
        .write_now(0, |tx| tx.execute("UPDATE jobs SET run_at = 0 WHERE kind = 'drop_content'", &[]).map(drop))
        .unwrap();
    server.block_on(async { while worker::turn(&server.app).await {} });
}

pub fn contents(server: &Server) -> Vec<String> {
    server.block_on(server.app.blobs.keys()).unwrap()
}

on_both![
    a_file_can_be_uploaded_and_downloaded,
    a_signed_url_opens_one_file_for_a_day,
    content_that_could_run_scripts_is_a_download,
    rejects_invalid_uploads,
    lists_files_newest_first_with_optional_pages,
    an_upload_is_idempotent,
    a_file_can_belong_to_a_client,
    the_pdf_of_a_document_requires_the_scope_of_documents,
    kill_9_loses_no_file_and_leaves_none,
];

fn a_file_can_belong_to_a_client(server: Shared) {
    let client = server.client();
    let firm = client.post("/v1/clients", json!({"company_name": "Bakery"})).expect(201).id();
    let path = format!("/v1/files/{}", client.upload("contract.txt", b"We agree.").expect(201).id());
    client.upload("other.txt", b"Something else.").expect(201);
    let meta = client.get(&path).expect(200).data()["meta"].clone();
    assert_eq!((&meta["client_id"], &meta["origin"]), (&json!(""), &json!("uploaded")));
    client.patch(&path, json!({"client_id": firm})).expect(200);
    let found = client.get(&format!("/v1/files?client_id={firm}")).expect(200).data();
    assert_eq!((found.as_array().unwrap().len(), &found[0]["name"]), (1, &json!("contract.txt")));
    assert_eq!(client.get("/v1/files?origin=document").expect(200).data(), json!([]));
    let unknown = client.patch(&path, json!({"client_id": "0198d1c2-7b7e-7c3a-9d53-2f1d8c6a0b11"})).expect(422);
    assert_eq!(unknown.faults(), ["client_id: reference_not_found"]);
    client.delete(&format!("/v1/clients/{firm}"));
    assert_eq!(client.get(&path).expect(200).data()["meta"]["client_id"], "");
}

fn a_file_can_be_uploaded_and_downloaded(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let before = server.last_seq(&client);
    let png = b"\x89PNG\r\n\x1a\nnot much of a picture";
    let made = client.upload("../../logo Ünïcode.HTML", png).expect(201);
    let data = made.data();
    assert_eq!(keys_of(&data), ["id", "name", "extension", "url", "created_at", "meta"]);
    assert_eq!((&data["name"], &data["extension"]), (&json!("logo Ünïcode.HTML"), &json!("html")));
    assert_eq!((&data["meta"]["content_type"], &data["meta"]["size"]), (&json!("image/png"), &json!(png.len())));
    let path = format!("/v1/files/{}", made.id());
    assert_eq!(made.header("location"), path);
    assert_eq!(client.get(&path).expect(200).data()["name"], data["name"]);
    assert_eq!(client.get("/v1/files").json()["meta"], json!({"total": 1}));

    let down = client.get(&format!("{path}/content")).expect(200);
    assert_eq!(down.bytes, png);
    assert_eq!(
        (down.header("content-type"), down.header("content-length")),
        ("image/png", png.len().to_string().as_str())
    );
    assert_eq!(down.header("content-disposition"), "inline; filename*=UTF-8''logo%20%C3%9Cn%C3%AFcode.HTML");
    assert_eq!(
        (down.header("x-content-type-options"), down.header("content-security-policy")),
        ("nosniff", "default-src 'none'; sandbox")
    );
    let tag = down.header("etag").to_string();
    assert_eq!(client.send("GET", &format!("{path}/content"), &[("if-none-match", &tag)], "").status, 304);
    let head = client.send("HEAD", &format!("{path}/content"), &[], "").expect(200);
    assert_eq!((head.header("content-length"), head.bytes.len()), (png.len().to_string().as_str(), 0));

    assert_eq!(contents(&server).len(), 1);
    client.delete(&path).expect(204);
    assert_eq!(client.get(&format!("{path}/content")).status, 404);
    drop_all(&server);
    assert_eq!(contents(&server), Vec::<String>::new(), "the content is deleted with the record");
    assert_eq!(server.events(&client, before), ["file.created", "file.deleted"]);
}

fn a_signed_url_opens_one_file_for_a_day(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let made = client.upload("note.txt", b"hello").expect(201);
    let other = client.upload("other.txt", b"secret").expect(201);
    let url = made.data()["url"].as_str().unwrap().to_string();
    let path = url.strip_prefix(&client.base).unwrap();
    let open = |path: &str| client.send("GET", path, &[("authorization", "")], "");
    assert_eq!(open(path).expect(200).text, "hello");
    let spoil = |from: &str, to: &str| open(&path.replace(from, to));
    for (from, to) in [
        ("signature=", "signature=0"),
        ("until=1", "until=2"),
        ("account=", "account=9"),
        (&made.id(), &other.id()),
        ("until=", "x="),
        ("/content", ""),
    ] {
        let reply = spoil(from, to);
        assert_eq!((reply.status, reply.code().as_str()), (401, "unauthorized"), "{from} {to}");
    }
    assert_eq!(client.send("DELETE", &path.replace("/content", ""), &[("authorization", "")], "").status, 401);
    assert_eq!(open(path.split('?').next().unwrap()).status, 401);
    let past = engine::clock::Moment(server.now().0 + 26 * 3_600_000);
    let query = engine::call::Query::parse(path.split_once('?').unwrap().1).unwrap();
    let own = path.split('?').next().unwrap();
    assert!(server.app.site.opens(own, &query, server.now()).is_some());
    assert!(server.app.site.opens(own, &query, past).is_none(), "it ends");
    // With a key, another account's URL is a 404, whatever the query.
    assert_eq!(server.client().get(path).status, 404);
}

/// The PDF of a document is part of the document: whoever may read files only sees that it is there.
fn the_pdf_of_a_document_requires_the_scope_of_documents(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let before = server.last_seq(&client);
    let firm = client.post("/v1/clients", json!({"company_name": "Bakery"})).expect(201).id();
    let sent = json!({"title": "Oven", "client_id": firm, "rows": [{"name": "Oven", "unit_price": 100, "vat_rate": 21}],
        "generation_mode": "final"});
    client.post("/v1/invoices", sent).expect(201);
    server.block_on(async { while worker::turn(&server.app).await {} });
    client.upload("note.txt", b"hello").expect(201);
    let pdf = client.get("/v1/files?origin=document").expect(200).data()[0].clone();
    let path = format!("/v1/files/{}", pdf["id"].as_str().unwrap());
    let pages = ["/v1/files", "/v1/files?per_page=10", &path, &format!("{path}/history")].map(str::to_string);
    let feed = format!("/v1/changes?after={before}&entity_type=file");
    // Everything that a caller is shown of the PDF, and whether a URL in it opens it.
    let shown = |caller: &Client, page: &str| {
        let data = caller.get(page).expect(200).data();
        let all = if data.is_array() { data.as_array().unwrap().clone() } else { vec![data] };
        let records = all.iter().map(|one| if one["data"].is_object() { &one["data"] } else { one });
        let urls: Vec<String> = records
            .filter(|one| one["name"] == "F2026-0001.pdf")
            .map(|one| one["url"].as_str().unwrap().to_string())
            .collect();
        assert!(!urls.is_empty(), "{page}: {all:?}");
        urls
    };
    let reader = server.with_scopes(&client, &["files.read", "files.write", "audit.read", "invoices.read"]);
    let stranger = server.with_scopes(&client, &["files.read", "files.write", "audit.read"]);
    for page in pages.iter().chain([&feed]) {
        let signed = format!("{}{path}/content?", client.base);
        assert!(shown(&reader, page).iter().all(|url| url.starts_with(&signed)), "{page}");
        assert!(shown(&stranger, page).iter().all(String::is_empty), "{page}");
    }
    let renamed = stranger.patch(&path, json!({"client_id": firm})).expect(200).data();
    assert_eq!((&renamed["url"], &renamed["meta"]["client_id"]), (&json!(""), &json!(firm)));
    let content = format!("{path}/content");
    reader.get(&content).expect(200);
    let refused = stranger.get(&content).expect(403);
    assert!(refused.text.contains("invoices.read"), "{}", refused.text);
    assert_eq!(stranger.send("HEAD", &content, &[], "").status, 403);
    let import = json!({"resource": "clients", "file_id": pdf["id"]});
    let importer = server.with_scopes(&client, &["files.read", "files.write", "relations.write", "relations.read"]);
    assert_eq!(importer.post("/v1/imports", import).status, 403);
    // What somebody uploaded is not part of a document.
    let note = stranger.get("/v1/files?origin=uploaded").expect(200).data()[0].clone();
    let url = note["url"].as_str().unwrap().strip_prefix(&client.base).unwrap().to_string();
    assert_eq!(client.send("GET", &url, &[("authorization", "")], "").expect(200).text, "hello");
}

fn content_that_could_run_scripts_is_a_download(server: Shared) {
    let client = server.client();
    for (name, content, kind) in [
        ("a.txt", "<html><script>alert(1)</script>", "text/html; charset=utf-8"),
        ("a.png", "<svg onload='alert(1)'/>", "image/svg+xml"),
        ("a.xml", "<?xml version='1.0'?><x/>", "text/xml; charset=utf-8"),
    ] {
        let made = client.upload(name, content.as_bytes()).expect(201);
        let down = client.get(&format!("/v1/files/{}/content", made.id())).expect(200);
        assert_eq!(down.header("content-type"), kind);
        assert!(down.header("content-disposition").starts_with("attachment; "), "{down:?}");
    }
}

fn rejects_invalid_uploads(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let send = |parts: &[(&str, Option<&str>, &[u8])]| {
        let (kind, body) = multipart(parts);
        client.try_send_bytes("POST", "/v1/files", &[("content-type", &kind)], body).unwrap()
    };
    assert_eq!(client.post("/v1/files", json!({})).expect(415).code(), "unsupported_media_type");
    assert_eq!(send(&[]).expect(422).faults(), ["file: required"]);
    assert_eq!(send(&[("name", None, b"x")]).expect(422).faults(), ["file: required"]);
    assert_eq!(send(&[("file", Some("a"), b"x"), ("zz", None, b"y")]).expect(422).faults(), ["zz: unknown_field"]);
    assert_eq!(
        send(&[("file", Some("a"), b"x"), ("file", Some("b"), b"y")]).expect(422).faults(),
        ["file: given_twice"]
    );
    let named = send(&[("name", None, "voorstel.txt".as_bytes()), ("file", Some("x"), b"")]).expect(201).data();
    assert_eq!((&named["name"], &named["meta"]["size"]), (&json!("voorstel.txt"), &json!(0)));
    let (kind, mut body) = multipart(&[("file", Some("a"), b"content")]);
    body.truncate(body.len() - 20);
    let broken = client.try_send_bytes("POST", "/v1/files", &[("content-type", &kind)], body).unwrap();
    assert_eq!(broken.expect(400).code(), "malformed_json");
    let most = vec![b'x'; 25 * 1024 * 1024];
    let made = client.upload("most.bin", &most).expect(201);
    assert_eq!(client.get(&format!("/v1/files/{}/content", made.id())).bytes, most);
    let more = vec![b'x'; 25 * 1024 * 1024 + 1];
    assert_eq!(client.upload("more.bin", &more).expect(413).code(), "body_too_large");
    drop_all(&server);
    assert_eq!(contents(&server).len(), 2, "a rejected upload leaves nothing");
}

fn lists_files_newest_first_with_optional_pages(server: Shared) {
    let client = server.client();
    let made: Vec<String> = (0..7).map(|n| client.upload(&format!("{n}.txt"), b"x").expect(201).id()).collect();
    let newest: Vec<String> = made.iter().rev().cloned().collect();
    let ask = |query: &str| client.get(&format!("/v1/files{query}")).expect(200);
    let ids = |query: &str| -> Vec<String> {
        ask(query).data().as_array().unwrap().iter().map(|file| file["id"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(ids(""), newest);
    assert_eq!(ask("").json()["meta"], json!({"total": 7}));
    assert_eq!(ask("?sort=created_at&order=asc").json()["meta"], json!({"total": 7}));
    assert_eq!((ids("?order=asc"), ids(&format!("?id={}", made[3]))), (made.clone(), vec![made[3].clone()]));
    assert_eq!(ids("?per_page=3"), newest[..3]);
    let second = ask("?page=2&per_page=3");
    assert_eq!(second.json()["meta"], json!({"page": 2, "per_page": 3, "total": 7, "pages": 3}));
    assert!(second.header("link").contains("</v1/files?per_page=3&page=3>; rel=\"next\""), "{second:?}");
    assert_eq!((ids("?page=2&per_page=3"), ids("?page=3&per_page=3")), (newest[3..6].to_vec(), newest[6..].to_vec()));
    assert_eq!(ask("?page=1").json()["meta"], json!({"page": 1, "per_page": 25, "total": 7, "pages": 1}));
    assert_eq!(ids("?page=1&order=asc"), made);
    assert_eq!(client.get("/v1/files?page=0").expect(422).faults(), ["page: out_of_range"]);
}

fn an_upload_is_idempotent(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let key = [("idempotency-key", "one")];
    let first = client.upload_with(&key, "a.txt", b"hello").expect(201);
    let again = client.upload_with(&key, "a.txt", b"hello").expect(201);
    assert_eq!((first.id(), again.header("x-idempotent-replay")), (again.id(), "true"));
    assert_eq!(client.upload_with(&key, "a.txt", b"other").expect(422).code(), "idempotency_key_reused");
    drop_all(&server);
    assert_eq!(contents(&server).len(), 1);
    assert_eq!(client.get("/v1/files").json()["meta"]["total"], 1);
}

fn kill_9_loses_no_file_and_leaves_none(db: Db) {
    kills(&db);
}

/// Kills the server during uploads; then every acknowledged file is complete, and after the jobs have run no content is
/// without a record.
fn kills(db: &Db) {
    let mut key = String::new();
    let kept: Mutex<HashSet<(String, u8, usize)>> = Mutex::default();
    let number = AtomicU32::new(0);
    for round in 0..4 {
        let mut binary = Binary::start(db, &key, &[]);
        key.clone_from(&binary.client.key);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let n = number.fetch_add(1, Ordering::Relaxed);
                        let (byte, size) = (n as u8, 1 + (n as usize * 77_777) % 700_000);
                        let (kind, body) = multipart(&[("file", Some("x.bin"), &vec![byte; size])]);
                        let sent = binary.client.try_send_bytes("POST", "/v1/files", &[("content-type", &kind)], body);
                        if let Ok(reply) = sent.map(|reply| reply.expect(201)) {
                            kept.lock().unwrap().insert((reply.id(), byte, size));
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(200 + round * 130));
            binary.signal(rustix::process::Signal::KILL);
            stop.store(true, Ordering::Relaxed);
        });
        let _ = binary.child.wait();
    }
    if db.url.is_empty() {
        let base = rusqlite::Connection::open(db.data.join("kantoor.db")).unwrap();
        base.execute("UPDATE jobs SET run_at = 0 WHERE kind = 'drop_content'", []).unwrap();
    } else {
        execute(&db.url, "UPDATE jobs SET run_at = 0 WHERE kind = 'drop_content'");
    }
    let binary = Binary::start(db, &key, &[]);
    let client: &Client = &binary.client;
    let files = client.get("/v1/files").data();
    let files = files.as_array().unwrap();
    let kept = kept.into_inner().unwrap();
    assert!(kept.len() > 5, "hardly any load: {}", kept.len());
    for (id, byte, size) in &kept {
        let content = client.get(&format!("/v1/files/{id}/content")).expect(200).bytes;
        assert!(content.len() == *size && content.iter().all(|own| own == byte), "{id} is not what was sent");
    }
    for file in files {
        client.get(&format!("/v1/files/{}/content", file["id"].as_str().unwrap())).expect(200);
    }
    let mut left = HashSet::new();
    for _ in 0..100 {
        left = names_below(&db.data.join("files"));
        if left.len() == files.len() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(left.len(), files.len(), "contents without a record: {left:?}");
}

fn names_below(folder: &std::path::Path) -> HashSet<std::path::PathBuf> {
    let mut names = HashSet::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            names.extend(names_below(&entry.path()))
        } else {
            names.insert(entry.path());
        }
    }
    names
}

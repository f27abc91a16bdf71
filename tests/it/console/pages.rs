//! The files and the pages of the console.

use serde_json::{Value, json};

use super::{assets, client, open};
use crate::on_both;
use crate::people::{Browser, PASSWORD, member, owner};
use crate::support::{Db, Reply, Server};

on_both![
    people_who_have_signed_in_get_the_console,
    a_page_contains_what_its_screen_asks_first,
    a_reader_gets_no_more_than_the_role_allows,
    a_browser_keeps_nothing_of_the_business,
    signing_in_leads_back_to_where_somebody_wanted_to_go,
];

/// Returns the responses in a page, by path.
fn first_data(page: &Reply) -> Value {
    let block = page.text.split("id=\"first\">").nth(1).unwrap().split("</script>").next().unwrap();
    assert!(!block.contains('<'), "{block}");
    serde_json::from_str(block).unwrap()
}

fn people_who_have_signed_in_get_the_console(db: Db) {
    let server = Server::start(db);
    let client = client(&server);
    let browser = owner(&server, &client, "olga@a.example");
    for path in
        ["/", "/invoices", "/invoices/7?x=1", "/clients/new", "/settings", "/settings/tax-rates", "/hours", "/me"]
    {
        let page = open(&browser, path).expect(200);
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
        check_headers(&page);
        assert!(page.text.contains("<noscript>"), "{path}");
        assert!(page.text.contains("<title>") && page.text.contains("<h1>"), "{path}");
        let stranger = open(&Browser::new(&client), path).expect(303);
        assert!(stranger.header("location").starts_with("/sign-in"), "{path}: {stranger:?}");
        assert_eq!(browser.send_with("POST", path, &[("sec-fetch-site", "same-origin")], "").status, 405, "{path}");
    }
    // An address without a screen: people get the console, which says so; programs and strangers get an error.
    assert!(open(&browser, "/nowhere").expect(404).text.contains("id=\"app\""));
    assert_eq!(browser.get("/nowhere").expect(404).code(), "not_found");
    assert_eq!(open(&Browser::new(&client), "/nowhere").expect(404).code(), "not_found");
    assert_eq!(client.post("/nowhere", json!({})).expect(404).code(), "not_found");
    let head = browser.send_with("HEAD", "/invoices", &[("accept", "text/html")], "").expect(200);
    assert!(head.bytes.is_empty());
    // The language of the user, not of the browser.
    let page = open(&browser, "/invoices");
    assert!(page.text.contains("<html lang=\"nl\"") && page.text.contains("<h1>Facturen</h1>"), "{}", page.text);
    let id = browser.get("/console/v1/me").data()["user"]["id"].as_str().unwrap().to_string();
    client.patch(&format!("/v1/users/{id}"), json!({"language": "en"})).expect(200);
    assert!(open(&browser, "/invoices").text.contains("<h1>Invoices</h1>"));
    // An open page learns that the server was updated.
    let version = page.text.split("data-version=\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(browser.get("/console/v1/products").header("x-kantoor-version"), version);
    assert_eq!(client.get("/v1/products").header("x-kantoor-version"), "");
}

/// Whoever uses the browser next finds nothing on its disk. Programs may keep responses, and ask whether they have changed.
fn a_browser_keeps_nothing_of_the_business(db: Db) {
    let server = Server::start(db);
    let client = client(&server);
    let browser = owner(&server, &client, "olga@a.example");
    let product = browser.post("/console/v1/products", json!({"name": "Boiler"})).expect(201).id();
    let file = client.upload("note.txt", b"hello").expect(201).id();
    for (path, status) in [
        ("/console/v1/products".to_string(), 200),
        (format!("/console/v1/products/{product}"), 200),
        (format!("/console/v1/files/{file}/content"), 200),
        ("/console/v1/nowhere".to_string(), 404),
    ] {
        let reply = browser.get(&path);
        assert_eq!((reply.status, reply.header("cache-control")), (status, "private, no-store"), "{path}");
    }
    assert_eq!(open(&browser, &format!("/products/{product}")).header("cache-control"), "private, no-store");
    let path = format!("/v1/products/{product}");
    let tag = client.get(&path).header("etag").to_string();
    let known = client.send("GET", &path, &[("if-none-match", &tag)], "");
    assert_eq!((known.status, known.header("cache-control")), (304, "private, no-cache"));
}

#[track_caller]
fn check_headers(page: &Reply) {
    for (name, value) in [
        ("referrer-policy", "same-origin"),
        ("x-frame-options", "DENY"),
        ("x-content-type-options", "nosniff"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), microphone=(), geolocation=()"),
        ("cache-control", "private, no-store"),
    ] {
        assert_eq!(page.header(name), value, "{name}");
    }
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self' 'sha256-"), "{policy}");
    for part in
        ["require-trusted-types-for 'script'", "trusted-types 'none'", "frame-ancestors 'none'", "base-uri 'none'"]
    {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
}

#[test]
fn files_are_compressed_and_kept() {
    let server = Server::start(Db::sqlite());
    let client = client(&server);
    let browser = owner(&server, &client, "olga@a.example");
    let folder = assets(&open(&browser, "/"));
    let get = |path: &str, encoding: &str| {
        client.send("GET", path, &[("authorization", ""), ("accept-encoding", encoding)], "")
    };
    for (file, kind) in [
        ("app.js", "text/javascript; charset=utf-8"),
        ("style.css", "text/css; charset=utf-8"),
        ("words/nl.json", "application/json"),
        ("schema.json", "application/json"),
        ("vendor/preact.LICENSE", "text/plain; charset=utf-8"),
        ("icon.png", "image/png"),
    ] {
        let path = format!("{folder}/{file}");
        let plain = get(&path, "identity").expect(200);
        assert_eq!(plain.header("content-type"), kind, "{file}");
        assert_eq!(plain.header("cache-control"), "public, max-age=31536000, immutable");
        assert_eq!(plain.header("x-content-type-options"), "nosniff");
        assert!(!plain.bytes.is_empty());
        let packed = get(&path, "gzip").expect(200);
        assert_eq!(packed.bytes, plain.bytes);
        assert!(kind == "image/png" || packed.header("vary") == "accept-encoding", "{packed:?}");
    }
    for file in
        ["package.json", "package-lock.json", "tsconfig.json", ".npmrc", "../Cargo.toml", "%2e%2e/Cargo.toml", ""]
    {
        assert_eq!(get(&format!("{folder}/{file}"), "gzip").status, 404, "{file}");
    }
    assert_eq!(get("/favicon.ico", "gzip").expect(200).header("content-type"), "image/png");
    assert_eq!(get("/assets/0000000000000000/app.js", "gzip").expect(404).header("cache-control"), "private, no-cache");
    assert_eq!(client.post(&format!("{folder}/app.js"), json!({})).status, 405);
}

fn a_page_contains_what_its_screen_asks_first(db: Db) {
    let server = Server::start(db);
    let client = client(&server);
    let browser = owner(&server, &client, "olga@a.example");
    let title = "</script><script>alert(1)</script><!--";
    let id = client.post("/v1/tasks", json!({"title": title})).expect(201).id();
    let page = open(&browser, "/tasks?status=open&sort=deadline").expect(200);
    let first = first_data(&page);
    let path = "/v1/tasks?per_page=50&status=open&sort=deadline";
    // The response is the same as the script would get.
    let asked = browser.get(&format!("/console{path}")).json();
    assert_eq!((&first[path]["body"], &first[path]["body"]["data"][0]["title"]), (&asked, &json!(title)));
    assert_eq!(first["/v1/me"]["body"]["data"]["user"]["email"], "olga@a.example");
    let page = open(&browser, &format!("/tasks/{id}")).expect(200);
    assert_eq!(first_data(&page)[format!("/v1/tasks/{id}")]["etag"], "\"1\"");
    // An id that does not exist is reported by the screen.
    assert!(first_data(&open(&browser, "/tasks/x").expect(200)).get("/v1/tasks/x").is_none());
    // The query of a page changes nothing, and neither does a strange one.
    open(&browser, "/tasks?per_page=1&per_page=2&%00=%ff&%3C/script%3E").expect(200);
}

fn a_reader_gets_no_more_than_the_role_allows(db: Db) {
    let server = Server::start(db);
    let client = client(&server);
    let browser = owner(&server, &client, "olga@a.example");
    let (_, reader) = member(&client, "ina@a.example", "reader");
    for (path, asked) in [
        ("/settings/api-keys", "/v1/api-keys?per_page=100"),
        ("/settings/webhook-endpoints", "/v1/webhook-endpoints?per_page=50"),
    ] {
        assert!(first_data(&open(&browser, path).expect(200)).get(asked).is_some(), "{path}");
        let page = open(&reader, path).expect(200);
        assert!(first_data(&page).get(asked).is_none() && !page.text.contains(asked), "{path}: {}", page.text);
        reader.get(&format!("/console{asked}")).expect(403);
    }
    // Another account's record.
    let foreign = server.client().post("/v1/tasks", json!({"title": "theirs"})).expect(201).id();
    assert!(!open(&browser, &format!("/tasks/{foreign}")).expect(200).text.contains("theirs"));
}

fn signing_in_leads_back_to_where_somebody_wanted_to_go(db: Db) {
    let server = Server::start(db);
    let client = client(&server);
    let ended = owner(&server, &client, "olga@a.example");
    ended.post("/console/sign-out", json!({}));
    let sent = open(&ended, "/invoices").expect(303);
    assert_eq!(sent.header("location"), "/sign-in?ended&to=%2Finvoices", "a session that has ended says so");
    let stranger = Browser::new(&client);
    let sent = open(&stranger, "/invoices?payment_status=overdue&page=2").expect(303);
    let location = sent.header("location").to_string();
    assert_eq!(location, "/sign-in?to=%2Finvoices%3Fpayment_status%3Doverdue%26page%3D2");
    let page = open(&stranger, &location).expect(200);
    assert!(
        page.text.contains("name=\"to\" value=\"&#x2f;invoices?payment_status=overdue&amp;page=2\""),
        "{}",
        page.text
    );
    let enter = |to: &str| {
        let fields = [("email", "olga@a.example"), ("password", PASSWORD), ("to", to)];
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let headers = [("content-type", "application/x-www-form-urlencoded"), ("sec-fetch-site", "same-origin")];
        stranger.send_with("POST", "/sign-in", &headers, &form).expect(303).header("location").to_string()
    };
    assert_eq!(enter("/invoices?payment_status=overdue&page=2"), "/invoices?payment_status=overdue&page=2");
    for elsewhere in ["https://evil.example", "//evil.example", "/\\evil.example", "/a\r\nset-cookie: x=1", "evil", ""]
    {
        assert_eq!(enter(elsewhere), "/", "{elsewhere}");
    }
}

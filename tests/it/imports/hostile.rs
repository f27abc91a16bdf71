//! Files that would take a server down that reads them itself: they end a process of their own, and nothing else.

use std::io::Write as _;
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::values::{book, text};
use super::{total, with};
use crate::cli::{kantoor, said};
use crate::server::Binary;
use crate::support::{Client, Db};

const TABLE: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";

/// A workbook with these shared texts and rows.
fn shared(texts: &str, rows: &str) -> Vec<u8> {
    let rows = format!(r#"<row r="1">{}</row>{rows}"#, text("A1", "name"));
    book(&rows, Some(&format!(r#"<sst xmlns="{TABLE}" {texts}</sst>"#)))
}

/// The check of a file that the process cannot read says what its limits are.
fn is_beyond(client: &Client, name: &str, content: &[u8], limits: &str) {
    let refused = with(client, json!({"resource": "products"}), name, content).expect(422);
    assert_eq!(refused.faults(), ["file_id: invalid_format"], "{name}");
    assert!(refused.json().to_string().contains(limits), "{name}: {}", refused.json());
}

#[test]
fn a_file_that_needs_too_much_memory_is_rejected_and_nothing_else_happens() {
    let db = Db::sqlite();
    let binary = Binary::start(&db, "", &["--set", "read_memory_mib=96", "--set", "workers=0"]);
    let client = &binary.client;
    let claim = shared(r#"count="10000000000000000" uniqueCount="10000000000000000"><si><t>a</t></si>"#, "");
    assert!(claim.len() < 3000);
    let long = [&b"\xff\xfen\0a\0m\0e\0\n\0"[..], &b"\xac\x20".repeat(12 * 1024 * 1024)].concat();
    for (name, content) in [("claim.xlsx", claim), ("long.csv", long)] {
        is_beyond(client, name, &content, "within 96 MiB of memory and 60 seconds");
        let small = with(client, json!({"resource": "products"}), "small.csv", b"name\nA\n").expect(201);
        assert_eq!(small.data()["valid_lines"], 1, "after {name}");
    }
    assert_eq!(total(client, "/v1/imports"), 2);
}

#[test]
fn a_file_that_takes_too_long_is_rejected() {
    let db = Db::sqlite();
    let binary = Binary::start(&db, "", &["--set", "read_timeout_seconds=1", "--set", "workers=0"]);
    let cells = r#"<c r="A2"/>"#.repeat(2_000_000);
    let slow = shared("><si><t>a</t></si>", &format!(r#"<row r="2">{cells}</row>"#));
    is_beyond(&binary.client, "slow.xlsx", &slow, "and 1 seconds");
    assert_eq!(total(&binary.client, "/v1/imports"), 0);
}

#[test]
fn a_text_that_many_cells_share_is_not_multiplied() {
    let db = Db::sqlite();
    let binary = Binary::start(&db, "", &["--set", "workers=0"]);
    let row = |number: usize| format!(r#"<row r="{number}">{}</row>"#, r#"<c t="s"><v>0</v></c>"#.repeat(499));
    let rows: String = (2..200).map(row).collect();
    let file = shared(&format!("><si><t>{}</t></si>", "a".repeat(32_000)), &rows);
    let refused = with(&binary.client, json!({"resource": "products"}), "x.xlsx", &file).expect(413);
    assert_eq!(refused.code(), "body_too_large");
    assert!(refused.json().to_string().contains("Line 2 has more than 4 MiB"), "{}", refused.json());
}

/// Returns how many processes read files for a server.
pub fn readers(binary: &Binary) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", binary.child.id())).unwrap();
    let children = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default());
    children.map(|list| list.split_whitespace().count()).sum()
}

pub fn until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Ends the processes that read files for a server, as the system does when memory runs out.
fn kill_readers(binary: &Binary) {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", binary.child.id())).unwrap();
    for task in tasks {
        let children = std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default();
        for child in children.split_whitespace() {
            assert!(Command::new("kill").args(["-9", child]).status().unwrap().success());
        }
    }
}

/// It is not the file that is wrong.
#[test]
fn a_check_whose_process_is_killed_is_tried_again() {
    let db = Db::sqlite();
    let binary = Binary::start(&db, "", &["--set", "workers=0"]);
    let client = &binary.client;
    let lines: String = (0..500_000).map(|n| format!("{n}\n")).collect();
    let file = client.upload("x.csv", format!("company_name\n{lines}").as_bytes()).expect(201).id();
    let body = json!({"resource": "clients", "file_id": file, "match_by": "company_name"});
    let refused = std::thread::scope(|scope| {
        let reply = scope.spawn(|| client.post("/v1/imports", body.clone()));
        until("no check has begun", || readers(&binary) > 0);
        kill_readers(&binary);
        reply.join().unwrap()
    });
    let refused = refused.expect(503);
    assert_eq!(refused.code(), "overloaded");
    assert!(
        refused.text.contains("ran out of memory") && !refused.header("retry-after").is_empty(),
        "{}",
        refused.text
    );
    assert!(binary.said().contains("the process was killed"), "{}", binary.said());
}

/// Sends a request and does not wait for the response.
fn send(client: &Client, path: &str, body: &Value) -> TcpStream {
    let body = body.to_string();
    let mut stream = TcpStream::connect(client.base.trim_start_matches("http://")).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        client.key,
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// The lines of this file are tried in the database, which takes minutes.
#[test]
fn a_check_waits_for_its_turn_and_ends_with_its_caller() {
    let db = Db::sqlite();
    let made: Value = serde_json::from_str(&said(&kantoor(&db, &["account", "create", "B", "--json"]))).unwrap();
    let other = made["key"].as_str().unwrap();
    let made: Value = serde_json::from_str(&said(&kantoor(&db, &["account", "create", "A", "--json"]))).unwrap();
    let binary = Binary::start(&db, made["key"].as_str().unwrap(), &["--set", "workers=0"]);
    let client = &binary.client;
    let lines: String = (0..500_000).map(|n| format!("{n}\n")).collect();
    let file = client.upload("x.csv", format!("company_name\n{lines}").as_bytes()).expect(201).id();
    let body = json!({"resource": "clients", "file_id": file, "match_by": "company_name"});
    let callers: Vec<TcpStream> = (0..4).map(|_| send(client, "/v1/imports", &body)).collect();
    until("no check has begun", || readers(&binary) > 0);
    let other = Client { key: other.to_string(), ..client.clone() };
    let checked = with(&other, json!({"resource": "clients"}), "y.csv", b"company_name\nAcme\n").expect(201);
    assert_eq!(checked.data()["valid_lines"], 1);
    assert_eq!(readers(&binary), 1, "one account has one check at a time");
    drop(callers);
    until("a check goes on without its caller", || readers(&binary) == 0);
    assert_eq!(total(client, "/v1/imports"), 0);
}

//! An import survives kill -9: every line takes effect once.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde_json::json;

use super::total;
use crate::cli::kantoor;
use crate::on_both;
use crate::server::Binary;
use crate::support::Db;

on_both![an_import_survives_kills,];

const LINES: usize = 1500;

fn an_import_survives_kills(db: Db) {
    let mut binary = Binary::start(&db, "", &[]);
    let lines: String = (0..LINES).map(|n| format!("Product {n},{n}\n")).collect();
    let file = binary.client.upload("x.csv", format!("name,code\n{lines}").as_bytes()).expect(201).id();
    let import = binary.client.post("/v1/imports", json!({"resource": "products", "file_id": file})).expect(201).id();
    let path = format!("/v1/imports/{import}");
    binary.client.act(&format!("{path}/run")).expect(200);
    let (mut kills, started) = (0, Instant::now());
    loop {
        let state = binary.client.get(&path).expect(200).data();
        if state["status"] == "done" {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(180), "{state:#}");
        if kills < 2 && state["processed"].as_i64().unwrap() >= (kills + 1) * 400 {
            binary.signal(rustix::process::Signal::KILL);
            let _ = binary.child.wait();
            binary = Binary::start(&db, &binary.client.key.clone(), &[]);
            kills += 1;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(kills > 0, "the import was never interrupted");
    let client = &binary.client;
    let mut codes = HashSet::new();
    for page in 1..=LINES / 100 {
        let list = client.get(&format!("/v1/products?per_page=100&page={page}")).expect(200).data();
        codes.extend(list.as_array().unwrap().iter().map(|product| product["code"].as_str().unwrap().to_string()));
    }
    assert_eq!((codes.len(), total(client, "/v1/products")), (LINES, LINES as i64));
    let verified = kantoor(&db, &["verify"]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}

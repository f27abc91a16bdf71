//! Imports that run have few places, since each has a process that reads.

use serde_json::{Value, json};

use super::hostile::{readers, until};
use super::with;
use crate::cli::{kantoor, said};
use crate::on_both;
use crate::server::Binary;
use crate::support::{Client, Db};

on_both![imports_take_turns_and_no_worker,];

/// One of each account runs and two on a node, however many workers there are; the others wait in the queue, and other work goes on.
fn imports_take_turns_and_no_worker(db: Db) {
    let keys: Vec<String> = (0..3)
        .map(|_| {
            let made = said(&kantoor(&db, &["account", "create", "A", "--json"]));
            serde_json::from_str::<Value>(&made).unwrap()["key"].as_str().unwrap().to_string()
        })
        .collect();
    let of = |binary: &Binary, account: usize| Client { key: keys[account].clone(), ..binary.client.clone() };
    let lines: String = (0..20_000).map(|n| format!("{n}\n")).collect();
    let mut imports = Vec::new();
    {
        let binary = Binary::start(&db, &keys[0], &["--set", "workers=0"]);
        for (place, account) in [0, 0, 0, 1, 2].into_iter().enumerate() {
            let (client, file) = (of(&binary, account), format!("name\n{place}\n{lines}"));
            let import = with(&client, json!({"resource": "products"}), "x.csv", file.as_bytes()).expect(201).id();
            client.act(&format!("/v1/imports/{import}/run")).expect(200);
            imports.push((account, format!("/v1/imports/{import}")));
        }
    }
    let binary = Binary::start(&db, &keys[0], &["--set", "workers=4"]);
    let processed = |place: usize| {
        let (account, path) = &imports[place];
        of(&binary, *account).get(path).expect(200).data()["processed"].as_i64().unwrap()
    };
    until("two of them do not run", || (0..5).filter(|place| processed(*place) > 0).count() >= 2);
    let listed = |state: &str| {
        let found = said(&kantoor(&db, &["jobs", "list", "--json", "--state", state]));
        let found: Vec<Value> = serde_json::from_str(&found).unwrap();
        found.iter().filter(|job| job["kind"] == "import_run").count()
    };
    assert_eq!((listed("running"), listed("ready"), readers(&binary)), (2, 3, 2));
    assert!((0..3).filter(|place| processed(*place) > 0).count() <= 1, "one of an account");
}

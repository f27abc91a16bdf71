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
    let mut most = 0;
    until("two of them do not run", || {
        most = most.max(readers(&binary));
        (0..5).filter(|place| processed(*place) > 0).count() >= 2
    });
    for _ in 0..10 {
        most = most.max(readers(&binary));
        assert!((0..3).filter(|place| processed(*place) > 0).count() <= 1, "one of an account");
    }
    assert_eq!(most, 2);
    let invoice = json!({"title": "x", "generation_mode": "final", "rows": [{"name": "x", "unit_price": 1}]});
    let invoice = of(&binary, 0).post("/v1/invoices", invoice).expect(201).id();
    let path = format!("/v1/invoices/{invoice}/revisions");
    until("no document is printed", || !of(&binary, 0).get(&path).expect(200).data().as_array().unwrap().is_empty());
    assert!(processed(1) == 0 && processed(2) == 0, "they wait");
}

//! Undoing an import of many lines: without many round trips, and only what nothing touched.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use store::Dialect;
use store::seen::{self, Closure};

use super::{checked, run, total, undo};
use crate::on_both;
use crate::support::{Client, Db, Server};

on_both![
    an_import_updates_the_statistics,
    few_statements_wait_for_each_other,
    only_untouched_records_are_removed_together,
    many_records_in_use_stay,
];

/// Imports this many clients; returns the import.
fn imported(server: &Server, client: &Client, lines: usize) -> Value {
    let lines: String = (0..lines).map(|n| format!("Bakkerij {n:04}\n")).collect();
    let import = checked(client, "clients", "x.csv", format!("company_name\n{lines}").as_bytes());
    run(server, client, &import)
}

/// Returns the clients by name.
fn clients(client: &Client) -> Vec<(String, String)> {
    let pages = total(client, "/v1/clients") / 100 + 1;
    let listed = (1..=pages).flat_map(|page| {
        let list = client.get(&format!("/v1/clients?per_page=100&page={page}")).expect(200).data();
        list.as_array().unwrap().clone()
    });
    let text = |client: &Value, name: &str| client[name].as_str().unwrap().to_string();
    let mut all: Vec<(String, String)> =
        listed.map(|client| (text(&client, "company_name"), text(&client, "id"))).collect();
    all.sort();
    all
}

fn verify(client: &Client) {
    assert_eq!(client.act("/v1/audit/verification").expect(202).data()["intact"], true);
}

fn few_statements_wait_for_each_other(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let import = imported(&server, &client, 350);
    assert_eq!(import["created"], 350);
    let before = server.last_seq(&client);
    seen::closures();
    let undone = undo(&server, &client, &import);
    // PostgreSQL works on three statements for each record while the next ones are sent.
    let closures = seen::closures();
    let most = |count: fn(&Closure) -> u64| closures.iter().map(count).max().unwrap();
    let (statements, waits) = (most(|one| one.statements), most(|one| one.waits));
    let on_postgres = server.app.store.dialect() == Dialect::Postgres;
    assert!(statements < 340 && (!on_postgres || waits < 25), "{statements} statements, {waits} waits");
    assert_eq!((&undone["removed"], &undone["errors"]), (&json!(350), &json!([])), "{undone:#}");
    assert_eq!((total(&client, "/v1/clients"), total(&client, "/v1/clients?search=bakkerij")), (0, 0));
    let events = server.events(&client, before);
    assert_eq!(events.iter().filter(|name| *name == "customer.deleted").count(), 350);
    verify(&client);
}

/// Otherwise a record is looked up with an index that leads to all of them, until PostgreSQL looks by itself.
fn an_import_updates_the_statistics(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let clients = || {
        let sql = "SELECT CAST(reltuples AS BIGINT) FROM pg_class WHERE relname = 'clients'";
        server.app.store.read_now(|tx| tx.int(sql, &[])).unwrap()
    };
    if server.app.store.dialect() == Dialect::Sqlite {
        return;
    }
    assert!(clients() < 100);
    imported(&server, &client, 150);
    assert!(clients() >= 100, "{}", clients());
}

fn only_untouched_records_are_removed_together(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let import = imported(&server, &client, 260);
    let all = clients(&client);
    let path = |n: usize| format!("/v1/clients/{}", all[n].1);
    client.patch(&path(3), json!({"city": "Delft"})).expect(200);
    client.post("/v1/notes", json!({"body": "x", "client_id": all[4].1})).expect(201);
    client.post("/v1/tasks", json!({"title": "x", "client_id": all[105].1})).expect(201);
    client.post("/v1/invoices", json!({"title": "x", "client_id": all[255].1})).expect(201);
    // Both ways: a person, and the company that it belongs to.
    client.patch(&path(200), json!({"type": "private", "lastname": "Jansen", "company_name": ""})).expect(200);
    client.post(&format!("{}/links", path(201)), json!({"client_id": all[200].1})).expect(201);
    client.delete(&path(7)).expect(204);
    let undone = undo(&server, &client, &import);
    // The one that is gone already counts as removed.
    assert_eq!((&undone["status"], &undone["removed"]), (&json!("undone"), &json!(254)), "{undone:#}");
    let stays: Vec<(i64, &str)> = undone["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["line"].as_i64().unwrap() - 2, one["message"].as_str().unwrap()))
        .collect();
    let why = [
        (255, "It stays: a record in invoices refers to it."),
        (201, "It stays: a record in client links refers to it."),
        (200, "It stays: it was changed after the import."),
        (105, "It stays: a record in tasks refers to it."),
        (4, "It stays: a record in notes refers to it."),
        (3, "It stays: it was changed after the import."),
    ];
    assert_eq!(stays, why, "{undone:#}");
    let ids = |clients: Vec<(String, String)>| clients.into_iter().map(|(_, id)| id).collect::<BTreeSet<String>>();
    assert_eq!(ids(clients(&client)), ids([3, 4, 105, 200, 201, 255].map(|n: usize| all[n].clone()).to_vec()));
    verify(&client);
}

/// Those that stay are looked at again, from the first record that refers to them on.
fn many_records_in_use_stay(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let import = imported(&server, &client, 120);
    for (_, id) in clients(&client) {
        client.post("/v1/notes", json!({"body": "x", "client_id": id})).expect(201);
    }
    seen::closures();
    let undone = undo(&server, &client, &import);
    let most = seen::closures().iter().map(|one| one.statements).max().unwrap();
    assert!(most < 1000, "a transaction has {most} statements");
    assert_eq!((&undone["removed"], total(&client, "/v1/clients")), (&json!(0), 120), "{undone:#}");
}

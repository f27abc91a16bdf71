//! A file that runs twice, files with nothing in them, and what old invoices keep.

use serde_json::{Value, json};

use super::problems::{invoice, problems};
use super::{checked, exported, fields, run, total, undo, with};
use crate::cli::{complained, kantoor, said};
use crate::on_both;
use crate::support::{Db, Server, Shared};

on_both![
    a_file_runs_once_unless_it_is_wanted_again,
    a_file_with_nothing_to_import_is_a_problem,
    a_malformed_line_of_json_is_a_problem_of_that_line,
    old_invoices_keep_their_times_and_payments,
    the_command_tells_problems_and_repeats,
    exports_name_every_fault_and_suit_a_spreadsheet,
];

fn a_file_runs_once_unless_it_is_wanted_again(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let csv = b"name,price\nHosting,1\nDomain,2\n";
    let first = checked(&client, "products", "x.csv", csv);
    assert_eq!(first["warnings"], json!([]));
    run(&server, &client, &first);
    let reply = with(&client, json!({"resource": "products"}), "other name.csv", csv).expect(201);
    let second = reply.data();
    assert_eq!((&second["warnings"][0]["code"], &second["warning_count"]), (&json!("imported_before"), &json!(1)));
    let warned = reply.json()["meta"]["warnings"][0].as_str().unwrap().to_string();
    assert!(warned.contains("2026-05-04") && warned.contains(first["id"].as_str().unwrap()), "{warned}");
    let path = format!("/v1/imports/{}/run", second["id"].as_str().unwrap());
    let refused = client.act(&path).expect(409);
    assert!(refused.code() == "invalid_transition" && refused.text.contains("again"), "{refused:?}");
    client.post(&path, json!({"again": false})).expect(409);
    client.post(&path, json!({"again": true})).expect(200);
    super::work(&server);
    assert_eq!(total(&client, "/v1/products"), 4);
    // What was undone, or would be matched, is not doubled.
    let matched = with(&client, json!({"resource": "products", "match_by": "name"}), "x.csv", csv);
    assert!(matched.status == 422 || matched.data()["warnings"] == json!([]), "{matched:?}");
    for import in [&first, &second] {
        undo(&server, &client, import);
    }
    let third = checked(&client, "products", "x.csv", csv);
    assert_eq!(third["warnings"], json!([]), "{third:#}");
    run(&server, &client, &third);
    assert_eq!(total(&client, "/v1/products"), 2);
}

fn a_file_with_nothing_to_import_is_a_problem(server: Shared) {
    let client = server.client();
    let empty = checked(&client, "products", "x.csv", b"name,price\n");
    assert_eq!((&empty["problem_count"], &empty["lines"]), (&json!(1), &json!(0)), "{empty:#}");
    assert!(problems(&empty)[0].2.contains("nothing to import"), "{empty:#}");
    let unknown = checked(&client, "products", "x.csv", b"colour,id\nred,7\n");
    assert!(problems(&unknown)[0].2.contains("no column is recognized (colour, id)"), "{unknown:#}");
    for import in [empty, unknown] {
        client.act(&format!("/v1/imports/{}/run", import["id"].as_str().unwrap())).expect(409);
    }
}

fn a_malformed_line_of_json_is_a_problem_of_that_line(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let lines = b"{\"name\": \"Hosting\"}\n{\"name\": \n{\"name\": \"Domain\"}\n";
    let import = checked(&client, "products", "x.jsonl", lines);
    let found = problems(&import);
    assert_eq!((found.len(), found[0].0), (1, 2), "{found:?}");
    assert!(found[0].2.contains("not a JSON object") && !found[0].2.contains("line 1"), "{found:?}");
    let done = run(&server, &client, &import);
    assert_eq!((&done["created"], &done["failed"]), (&json!(2), &json!(1)), "{done:#}");
}

fn old_invoices_keep_their_times_and_payments(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let csv = b"Factuurnummer;Factuurdatum;Vervaldatum;Klant;Status;Totaal excl. btw;Btw;sent_at
A1;04-05-2024;18-05-2024;De Ster;Betaald;1000,00;210,00;
A2;04-05-2024;01-05-2024;De Ster;Open;100,00;21,00;06-05-2024
A3;04-05-2024;18-05-2024;De Ster;Open;-100,00;-21,00;
A4;04-05-2024;18-05-2024;De Ster;Betaald;-100,00;-21,00;
";
    let import = checked(&client, "invoices", "x.csv", csv);
    assert_eq!(import["problems"], json!([]), "{import:#}");
    let warning = &import["warnings"][0];
    assert_eq!((&warning["line"], &warning["column"]), (&json!(3), &json!("Vervaldatum")), "{import:#}");
    let done = run(&server, &client, &import);
    assert_eq!((&done["created"], &done["failed"]), (&json!(4), &json!(0)), "{done:#}");
    let day = |value: &Value| value.as_str().map(|text| text[..10].to_string());
    let paid = invoice(&client, "A1");
    assert_eq!((&paid["meta"]["paid_amount"], &paid["meta"]["open_amount"]), (&json!(1210), &json!(0)));
    assert_eq!((&paid["payment_status"], day(&paid["paid_at"])), (&json!("paid"), Some("2024-05-04".to_string())));
    assert_eq!(day(&paid["meta"]["finalized_at"]), Some("2024-05-04".to_string()));
    let late = invoice(&client, "A2");
    assert_eq!((&late["due_date"], day(&late["sent_at"])), (&json!("2024-05-01"), Some("2024-05-06".to_string())));
    assert_eq!(day(&late["meta"]["finalized_at"]), Some("2024-05-06".to_string()));
    let credit = invoice(&client, "A3");
    assert_eq!((&credit["is_credit"], &credit["meta"]["open_amount"]), (&json!(true), &json!(-121)));
    let refunded = invoice(&client, "A4");
    assert_eq!((&refunded["is_credit"], &refunded["meta"]["paid_amount"]), (&json!(true), &json!(-121)));
    // The payments themselves take the place of what the invoice says; one that failed does not.
    let id = paid["id"].as_str().unwrap();
    let payments = format!(
        "invoice_id,amount,date,status,type\n{id},1210,2024-05-20,failed,online\n{id},1210,2024-05-21,paid,manual\n"
    );
    let done = run(&server, &client, &checked(&client, "payments", "x.csv", payments.as_bytes()));
    assert_eq!((&done["created"], &done["failed"]), (&json!(2), &json!(0)), "{done:#}");
    let paid = invoice(&client, "A1");
    assert_eq!((&paid["payment_status"], &paid["meta"]["paid_amount"]), (&json!("paid"), &json!(1210)));
    let listed = client.get(&format!("/v1/invoices/{id}/payments")).expect(200).data();
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed:#}");
}

fn the_command_tells_problems_and_repeats(db: Db) {
    let made = kantoor(&db, &["account", "create", "A", "--json"]);
    let made: Value = serde_json::from_str(&said(&made)).unwrap();
    let account = made["account"]["id"].as_str().unwrap();
    let path = |name: &str| db.folder.path().join(name).display().to_string();
    std::fs::write(path("bad.csv"), "name,price\nHosting,x\n").unwrap();
    let checked = kantoor(&db, &["import", "--account", account, "products", &path("bad.csv")]);
    assert_eq!((checked.status.code(), complained(&checked).contains("1 problem")), (Some(1), true), "{checked:?}");
    std::fs::write(path("empty.csv"), "name,price\n").unwrap();
    let checked = kantoor(&db, &["import", "--account", account, "products", &path("empty.csv")]);
    assert_eq!((checked.status.code(), said(&checked).contains("nothing to import")), (Some(1), true), "{checked:?}");
    std::fs::write(path("good.csv"), "name,price\nHosting,1.5\n").unwrap();
    let import = ["import", "--account", account, "products", &path("good.csv")];
    assert!(kantoor(&db, &import).status.success());
    let run = [&import[..], &["--run"]].concat();
    assert!(kantoor(&db, &run).status.success());
    let again = kantoor(&db, &run);
    assert!(complained(&again).contains("--again"), "{again:?}");
    assert!(kantoor(&db, &[&run[..], &["--again"]].concat()).status.success());
    let export = ["export", "--account", account, "products", &path("out.csv"), "--semicolons"];
    assert!(kantoor(&db, &export).status.success());
    let written = std::fs::read_to_string(path("out.csv")).unwrap();
    assert!(written.starts_with("\u{feff}id;name;") && written.contains(";1,5;"), "{written}");
    assert_eq!(written.lines().count(), 3, "{written}");
    let wrong = kantoor(&db, &["export", "--account", account, "products", &path("out.xlsx"), "--semicolons"]);
    assert!(complained(&wrong).contains("only .csv"), "{wrong:?}");
}

fn exports_name_every_fault_and_suit_a_spreadsheet(server: Shared) {
    let client = server.client();
    let wrong = json!({"resource": "products", "format": "pdf", "filters": {"colour": "red"}});
    let rejected = client.post("/v1/exports", wrong).expect(422).json();
    assert_eq!(fields(&rejected), ["filters.colour", "format"]);
    let body = json!({"title": "Call", "notes": "\n=1+1", "deadline": "2026-05-06"});
    client.post("/v1/tasks", body).expect(201);
    let csv = exported(&client, json!({"resource": "tasks"}));
    assert!(csv.text.contains("\"'\n=1+1\""), "{}", csv.text);
    let book = exported(&client, json!({"resource": "tasks", "format": "xlsx"})).bytes;
    let found = sheets::detect(&book).unwrap();
    let place = sheets::header(&book, &found).unwrap().iter().position(|name| name == "deadline").unwrap();
    let mut deadlines = Vec::new();
    sheets::read(&book, &found, &mut |line| {
        deadlines.push(line.cells[place].clone());
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(deadlines, [sheets::Cell::Date("2026-05-06".to_string())]);
}

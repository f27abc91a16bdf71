//! The exports of one account are imported into another, in the order of their dependencies.

use serde_json::{Value, json};

use super::{checked, exported, run, total, undo, with};
use crate::on_both;
use crate::support::{Client, Db, Server};

on_both![
    an_account_moves_with_its_exports,
    what_a_record_can_be_without_is_a_warning,
    an_export_that_was_changed_updates_its_own_account,
    names_are_beside_the_ids_of_other_records,
    imported_messages_are_not_mailed,
    settings_are_imported_without_their_powers,
    undone_payments_make_room_for_what_they_replaced,
    users_are_found_by_their_address,
];

/// The order of docs/import.md, of what this test creates.
const ORDER: &[&str] = &[
    "custom_fields",
    "tax_rates",
    "payment_terms",
    "corporate_identities",
    "pipelines",
    "phases",
    "deal_sources",
    "ticket_statuses",
    "ticket_channels",
    "clients",
    "client_links",
    "products",
    "projects",
    "deals",
    "tickets",
    "ticket_messages",
    "quotes",
    "workorders",
    "invoices",
    "payments",
    "subscriptions",
    "project_hours",
    "tasks",
    "notes",
];

/// Creates a record; returns its id.
fn made(client: &Client, path: &str, body: Value) -> String {
    client.post(path, body).expect(201).id()
}

/// Creates a bit of everything, each referring to what came before.
fn fill(client: &Client) {
    let field = json!({"entity": "client", "key": "colour", "label": "Colour", "type": "text"});
    made(client, "/v1/custom-fields", field);
    made(client, "/v1/tax-rates", json!({"code": "LU17", "label": "Luxembourg", "type": "standard", "amount": 17}));
    let identity = made(client, "/v1/corporate-identities", json!({"name": "De Werkplaats"}));
    let company = json!({"company_name": "De Ster", "email": "info@ster.example", "custom_fields": {"colour": "red"}});
    let company = made(client, "/v1/clients", company);
    let person = made(client, "/v1/clients", json!({"type": "private", "firstname": "Anna", "lastname": "Vries"}));
    let link = json!({"client_id": person, "function": "Owner"});
    client.post(&format!("/v1/clients/{company}/links"), link).expect(201);
    let product = made(client, "/v1/products", json!({"name": "Boiler", "price": 1000}));
    let project = made(client, "/v1/projects", json!({"name": "Heating", "client_id": company}));
    let pipeline = client.get("/v1/pipelines").data()[0]["id"].clone();
    let deal = json!({"title": "Boilers", "client_id": company, "pipeline_id": pipeline});
    let deal = made(client, "/v1/deals", deal);
    let ticket = json!({"subject": "Cold", "client_id": company, "project_id": project});
    let ticket = made(client, "/v1/tickets", ticket);
    let message = json!({"type": "note", "body": "Call them", "author_name": "Esra"});
    client.post(&format!("/v1/tickets/{ticket}/messages"), message).expect(201);
    let message = json!({"body": "It is cold", "author_name": "Anna"});
    client.post(&format!("/v1/tickets/{ticket}/messages/inbound"), message).expect(201);
    let rows =
        json!([{"name": "Boiler", "quantity": 1, "unit_price": 1000, "vat_code": "LU17", "product_id": product}]);
    let document = json!({"title": "Boiler", "client_id": company, "project_id": project, "deal_id": deal,
        "corporate_identity_id": identity, "rows": rows, "generate": true});
    made(client, "/v1/quotes", document.clone());
    made(client, "/v1/workorders", document.clone());
    let invoice = made(client, "/v1/invoices", document.clone());
    let payment = json!({"amount": 500, "date": "2026-05-04"});
    client.post(&format!("/v1/invoices/{invoice}/payments"), payment).expect(201);
    let paid = made(client, "/v1/invoices", document.clone());
    for amount in [170, 1000] {
        client.post(&format!("/v1/invoices/{paid}/payments"), json!({"amount": amount})).expect(201);
    }
    let credited = made(client, "/v1/invoices", document);
    client.act(&format!("/v1/invoices/{credited}/credit")).expect(201);
    let lines =
        json!([{"title": "Service", "quantity": 1, "unit_price": 25, "vat_code": "LU17", "product_id": product}]);
    let subscription = json!({"client_id": company, "title": "Service", "frequency": "monthly", "status": "draft",
        "lines": lines});
    made(client, "/v1/subscriptions", subscription);
    let hours = json!({"date": "2026-05-04", "hours": 2, "activity_name": "Pipes"});
    client.post(&format!("/v1/projects/{project}/hours"), hours).expect(201);
    made(client, "/v1/tasks", json!({"title": "Call", "client_id": company, "deal_id": deal}));
    made(client, "/v1/notes", json!({"body": "Likes tea", "invoice_id": invoice}));
}

fn an_account_moves_with_its_exports(db: Db) {
    let server = Server::start(db);
    let source = server.client();
    fill(&source);
    for format in ["csv", "csv_semicolon", "xlsx", "jsonl"] {
        let target = server.client();
        let mut emptied = Vec::new();
        for resource in ORDER {
            let file = exported(&source, json!({"resource": resource, "format": format}));
            let import = checked(&target, resource, "x.table", &file.bytes);
            assert_eq!(import["problems"], json!([]), "{resource} {format}: {import:#}");
            emptied.extend(import["warnings"].as_array().unwrap().iter().map(|one| one["field"].clone()));
            let done = run(&server, &target, &import);
            let counts = ["created", "skipped"].map(|name| done[name].as_i64().unwrap());
            let ended = (&done["status"], &done["failed"], counts[0] + counts[1]);
            assert_eq!(ended, (&json!("done"), &json!(0), import["lines"].as_i64().unwrap()), "{resource}: {done:#}");
        }
        assert_eq!(emptied, Vec::<Value>::new(), "{format}");
        let the = |path: &str| target.get(path).expect(200).data()[0].clone();
        let one = |path: &str| {
            let id = the(path)["id"].as_str().unwrap().to_string();
            target.get(&format!("{}/{id}", path.split('?').next().unwrap())).expect(200).data()
        };
        let (company, product) = (the("/v1/clients?search=Ster")["id"].clone(), the("/v1/products")["id"].clone());
        assert_eq!(one("/v1/clients?search=Ster")["custom_fields"], json!({"colour": "red"}));
        for path in ["/v1/invoices?payment_status=partial", "/v1/quotes", "/v1/workorders"] {
            let document = one(path);
            assert_eq!((&document["client_id"], &document["rows"][0]["product_id"]), (&company, &product), "{path}");
            assert_eq!(document["meta"]["deal_id"], the("/v1/deals")["id"], "{path}");
            assert_eq!(document["meta"]["project_id"], the("/v1/projects")["id"], "{path}");
            let identity = target.get("/v1/corporate-identities").data();
            let own = identity.as_array().unwrap().iter().find(|one| one["name"] == "De Werkplaats").unwrap();
            assert_eq!(document["meta"]["corporate_identity_id"], own["id"], "{path}");
        }
        // The payments take the place of those that follow from the invoices.
        let partial = one("/v1/invoices?payment_status=partial");
        assert_eq!((&partial["meta"]["paid_amount"], &partial["meta"]["open_amount"]), (&json!(500), &json!(670)));
        let paid = one("/v1/invoices?payment_status=paid");
        assert_eq!(paid["meta"]["paid_amount"], 1170);
        let payments = format!("/v1/invoices/{}/payments", paid["id"].as_str().unwrap());
        assert_eq!(target.get(&payments).expect(200).data().as_array().unwrap().len(), 2);
        let credited = one("/v1/invoices?payment_status=credited&is_credit=false");
        let credit = one("/v1/invoices?is_credit=true");
        assert_eq!((&credited["meta"]["credited_amount"], &credit["total_incl_vat"]), (&json!(1170), &json!(-1170)));
        assert_eq!(credit["meta"]["credited_invoice_id"], credited["id"]);
        let ticket = the("/v1/tickets")["id"].as_str().unwrap().to_string();
        let messages = target.get(&format!("/v1/tickets/{ticket}/messages")).expect(200).data();
        let said: Vec<(&Value, &Value)> =
            messages.as_array().unwrap().iter().map(|one| (&one["direction"], &one["author"]["name"])).collect();
        assert!(said.contains(&(&json!("in"), &json!("Anna"))) && said.contains(&(&json!("out"), &json!("Esra"))));
        // Once more changes nothing: the lines are about what is there.
        for resource in ["clients", "products", "invoices", "payments"] {
            let file = exported(&source, json!({"resource": resource, "format": format}));
            let done = run(&server, &target, &checked(&target, resource, "x.table", &file.bytes));
            assert_eq!((&done["created"], &done["failed"]), (&json!(0), &json!(0)), "{done:#}");
        }
    }
}

fn what_a_record_can_be_without_is_a_warning(db: Db) {
    let server = Server::start(db);
    let source = server.client();
    fill(&source);
    let (target, jsonl) = (server.client(), json!({"resource": "invoices", "format": "jsonl"}));
    let invoices = exported(&source, jsonl);
    let import = checked(&target, "invoices", "x.jsonl", &invoices.bytes);
    assert!(import["problems"].to_string().contains("does not match a record in clients"), "{import:#}");
    assert_eq!(import["valid_lines"], 0);
    for resource in ["tax_rates", "clients"] {
        let file = exported(&source, json!({"resource": resource, "format": "jsonl"}));
        run(&server, &target, &checked(&target, resource, "x.jsonl", &file.bytes));
    }
    let import = checked(&target, "invoices", "x.jsonl", &invoices.bytes);
    assert_eq!((&import["problems"], &import["valid_lines"]), (&json!([]), &json!(4)), "{import:#}");
    assert_eq!(import["warning_count"], 16, "{import:#}");
    let warnings = import["warnings"].as_array().unwrap();
    let of_first: Vec<(&str, &str)> = warnings
        .iter()
        .filter(|one| one["line"] == 1)
        .map(|one| (one["column"].as_str().unwrap(), one["message"].as_str().unwrap()))
        .collect();
    assert!(
        of_first.contains(&("project_id", "does not match a record in projects; it is left empty")),
        "{of_first:?}"
    );
    assert!(of_first.iter().any(|(column, message)| *column == "rows" && message.contains("products")), "{of_first:?}");
    let done = run(&server, &target, &import);
    assert_eq!((&done["created"], &done["failed"]), (&json!(4), &json!(0)), "{done:#}");
    // What somebody typed is no export: a wrong id stays a problem.
    let typed = checked(&target, "projects", "x.csv", b"name,client_id\nHeating,none\n");
    assert_eq!((&typed["valid_lines"], &typed["warnings"]), (&json!(0), &json!([])), "{typed:#}");
}

fn an_export_that_was_changed_updates_its_own_account(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    client.post("/v1/products", json!({"name": "Hosting", "price": 10})).expect(201);
    let file = exported(&client, json!({"resource": "products"})).text.replace(",10,", ",12.5,");
    let body = json!({"resource": "products", "existing": "update"});
    let import = with(&client, body, "x.csv", file.as_bytes()).expect(201).data();
    let done = run(&server, &client, &import);
    assert_eq!((&done["updated"], &done["created"]), (&json!(1), &json!(0)), "{done:#}");
    assert_eq!(client.get("/v1/products").data()[0]["price"], 12.5);
    let done = run(&server, &client, &checked(&client, "products", "x.csv", file.as_bytes()));
    assert_eq!((&done["skipped"], total(&client, "/v1/products")), (&json!(1), 1), "{done:#}");
}

/// Returns the values of the first line of a CSV file without quotes, by column.
fn first_line(csv: &str) -> Vec<(&str, &str)> {
    let mut lines = csv.lines();
    lines.next().unwrap().split(',').zip(lines.next().unwrap().split(',')).collect()
}

fn names_are_beside_the_ids_of_other_records(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let person = made(&client, "/v1/clients", json!({"type": "private", "firstname": "Jan", "lastname": "Smit"}));
    let company = json!({"company_name": "Bakkerij De Ster", "firstname": "Anna", "lastname": "Vries"});
    let company = made(&client, "/v1/clients", company);
    let project = made(&client, "/v1/projects", json!({"name": "Boiler", "client_id": person}));
    client.post(&format!("/v1/projects/{project}/hours"), json!({"hours": 2})).expect(201);
    made(&client, "/v1/deals", json!({"title": "Oven", "client_id": company}));
    let value = |csv: &str, column: &str| {
        let found = first_line(csv).into_iter().find(|(name, _)| *name == column);
        found.map(|(_, value)| value.to_string())
    };
    let some = |text: &str| Some(text.to_string());

    let hours = exported(&client, json!({"resource": "project_hours"}));
    assert!(hours.header("content-disposition").contains("''project-hours-2026-05-04.csv"), "{hours:?}");
    let export = client.post("/v1/exports", json!({"resource": "project_hours"})).expect(201).id();
    for (name, file) in [("Uren%20%2F%20projecten", "uren-projecten"), ("..%2F", "project-hours")] {
        let named = client.get(&format!("/v1/exports/{export}/file?name={name}")).expect(200);
        let file = format!("''{file}-2026-05-04.csv");
        assert!(named.header("content-disposition").contains(&file), "{named:?}");
    }
    assert_eq!(value(&hours.text, "project_name"), some("Boiler"));
    assert_eq!((value(&hours.text, "user_name"), value(&hours.text, "invoice_name")), (some(""), some("")));
    let projects = exported(&client, json!({"resource": "projects"})).text;
    assert_eq!(value(&projects, "client_name"), some("Jan Smit"));
    let deals = exported(&client, json!({"resource": "deals"})).text;
    assert_eq!(value(&deals, "client_name"), some("Bakkerij De Ster"));
    for (names, path) in [("pipeline", "/v1/pipelines"), ("phase", "/v1/phases")] {
        let id = value(&deals, &format!("{names}_id")).unwrap();
        let name = client.get(&format!("{path}/{id}")).expect(200).data()["name"].as_str().unwrap().to_string();
        assert_eq!(value(&deals, &format!("{names}_name")), Some(name));
    }

    // Only the names of records that the caller may read; and programs read ids.
    let reader = server.with_scopes(&client, &["deals.read", "files.read", "files.write"]);
    let limited = exported(&reader, json!({"resource": "deals"})).text;
    assert_eq!((value(&limited, "client_name"), value(&limited, "client_id")), (None, Some(company)));
    let lines = exported(&client, json!({"resource": "deals", "format": "jsonl"})).text;
    assert!(!lines.contains("client_name"), "{lines}");

    // The ids count when the file is imported again, whatever the names.
    let changed = deals.replace("Bakkerij De Ster", "Somebody else").replace(",Oven,", ",Second oven,");
    let body = json!({"resource": "deals", "existing": "update"});
    let import = with(&client, body, "x.csv", changed.as_bytes()).expect(201).data();
    assert_eq!(import["problems"], json!([]), "{import:#}");
    let done = run(&server, &client, &import);
    assert_eq!((&done["updated"], &done["created"]), (&json!(1), &json!(0)), "{done:#}");
    assert_eq!(client.get("/v1/deals").data()[0]["title"], "Second oven");
    assert_eq!(value(&exported(&client, json!({"resource": "deals"})).text, "client_name"), some("Bakkerij De Ster"));
}

fn imported_messages_are_not_mailed(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let ticket = json!({"subject": "Cold", "client_email": "anna@example.com"});
    let ticket = client.post("/v1/tickets", ticket).expect(201).id();
    let csv = format!(
        "ticket_id,direction,type,body,author\n{ticket},in,reply,It is cold,\"{{\"\"name\"\":\"\"Anna\"\"}}\"\n{ticket},out,reply,We come,\"{{\"\"name\"\":\"\"Esra\"\"}}\"\n"
    );
    let import = checked(&client, "ticket_messages", "x.csv", csv.as_bytes());
    assert_eq!(import["problems"], json!([]), "{import:#}");
    let done = run(&server, &client, &import);
    assert_eq!(done["created"], 2, "{done:#}");
    assert_eq!(client.get("/v1/mails").expect(200).data(), json!([]));
    let messages = client.get(&format!("/v1/tickets/{ticket}/messages")).expect(200).data();
    assert_eq!(messages.as_array().unwrap().len(), 2);
}

fn settings_are_imported_without_their_powers(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let csv = b"name,is_default,iban\nDe Werkplaats,true,NL91ABNA0417164300\n";
    let import = checked(&client, "corporate_identities", "x.csv", csv);
    assert_eq!(import["warnings"][0]["field"], "is_default", "{import:#}");
    let done = run(&server, &client, &import);
    assert_eq!(done["created"], 1, "{done:#}");
    let all = client.get("/v1/corporate-identities").expect(200).data();
    let made = all.as_array().unwrap().iter().find(|one| one["name"] == "De Werkplaats").unwrap();
    assert_eq!(made["is_default"], false);
    // Nor does an import change where clients pay.
    let file = exported(&client, json!({"resource": "corporate_identities", "format": "jsonl"})).text;
    let file = file.replace("NL91ABNA0417164300", "NL20INGB0001234567");
    let body = json!({"resource": "corporate_identities", "existing": "update"});
    let import = with(&client, body, "x.jsonl", file.as_bytes()).expect(201).data();
    assert_eq!(import["valid_lines"], 0, "{import:#}");
    let template = "{\"send_type\": \"invoice\", \"language\": \"nl\", \"subject\": \"Factuur {number}\", \"message\": \"Hierbij factuur {number}.\"}\n";
    let done = run(&server, &client, &checked(&client, "mail_templates", "x.jsonl", template.as_bytes()));
    assert_eq!(done["created"], 1, "{done:#}");
    let file = client.upload("x.csv", b"name\nx\n").expect(201).id();
    for resource in ["settings", "email_domains", "batches", "files"] {
        client.post("/v1/imports", json!({"resource": resource, "file_id": file})).expect(422);
    }
}

fn undone_payments_make_room_for_what_they_replaced(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let csv = b"Number,Date (UTC),Customer Name,Subtotal,Tax,Total,Amount Paid,Status
C-1,2024-05-04,De Ster,100.00,21.00,121.00,121,paid
C-2,2024-05-04,De Ster,100.00,21.00,121.00,21,open
";
    let import = with(&client, json!({"resource": "invoices", "source": "stripe"}), "x.csv", csv).expect(201).data();
    assert_eq!(run(&server, &client, &import)["created"], 2);
    let id = |number: &str| {
        client.get(&format!("/v1/invoices?number={number}")).expect(200).data()[0]["id"].as_str().unwrap().to_string()
    };
    let (full, part) = (id("C-1"), id("C-2"));
    let all = |invoice: &str| client.get(&format!("/v1/invoices/{invoice}/payments")).expect(200).data();
    let paid = |invoice: &str| {
        let list = all(invoice);
        let shown =
            list.as_array().unwrap().iter().map(|one| format!("{} {}", one["date"].as_str().unwrap(), one["amount"]));
        let mut shown: Vec<String> = shown.collect();
        shown.sort();
        shown
    };
    let status = |invoice: &str| {
        let shown = client.get(&format!("/v1/invoices/{invoice}")).expect(200).data();
        (shown["payment_status"].clone(), shown["meta"]["paid_amount"].clone())
    };
    assert_eq!((paid(&full), paid(&part)), (vec!["2024-05-04 121".to_string()], vec!["2024-05-04 21".to_string()]));
    let csv = format!("invoice_id,amount,date\n{full},100,2024-06-01\n{full},21,2024-06-02\n{part},21,2024-06-03\n");
    let import_all = || {
        let import = checked(&client, "payments", "y.csv", csv.as_bytes());
        assert_eq!(import["problems"], json!([]), "{import:#}");
        assert_eq!(run(&server, &client, &import)["created"], 3);
        assert_eq!(paid(&full), ["2024-06-01 100", "2024-06-02 21"]);
        assert_eq!(paid(&part), ["2024-06-03 21"]);
        import
    };
    let undone = undo(&server, &client, &import_all());
    assert_eq!((&undone["removed"], &undone["errors"]), (&json!(3), &json!([])), "{undone:#}");
    assert_eq!((paid(&full), paid(&part)), (vec!["2024-05-04 121".to_string()], vec!["2024-05-04 21".to_string()]));
    assert_eq!(status(&full), (json!("paid"), json!(121)));
    assert_eq!(status(&part), (json!("partial"), json!(21)));
    // What came back gives way once more, and stays away while one of those that replaced it is there.
    let import = import_all();
    let list = all(&full);
    let first = list.as_array().unwrap().iter().find(|one| one["amount"] == 100).unwrap()["id"].as_str().unwrap();
    client.patch(&format!("/v1/invoices/{full}/payments/{first}"), json!({"method": "ideal"})).expect(200);
    let undone = undo(&server, &client, &import);
    assert_eq!(undone["removed"], 2, "{undone:#}");
    assert_eq!((paid(&full), paid(&part)), (vec!["2024-06-01 100".to_string()], vec!["2024-05-04 21".to_string()]));
}

fn users_are_found_by_their_address(db: Db) {
    let server = Server::start(db);
    let (source, target) = (server.client(), server.client());
    let invited = |client: &Client, name: &str| {
        made(client, "/v1/users", json!({"email": format!("{name}@example.com"), "name": name}))
    };
    for (name, title) in [("anna", "Call"), ("bram", "Write")] {
        let user = invited(&source, name);
        made(&source, "/v1/tasks", json!({"title": title, "assignee_id": user}));
    }
    let anna = invited(&target, "anna");
    let moved = |resource: &str| {
        let file = exported(&source, json!({"resource": resource, "format": "jsonl"}));
        let body = json!({"resource": resource, "existing": "update"});
        let import = with(&target, body, "x.jsonl", &file.bytes).expect(201).data();
        let done = run(&server, &target, &import);
        (import, done)
    };
    let (import, done) = moved("users");
    assert_eq!((&import["valid_lines"], &import["problem_count"]), (&json!(1), &json!(1)), "{import:#}");
    assert_eq!(import["problems"][0]["field"], "email", "{import:#}");
    let counts = ["created", "updated", "skipped", "failed"].map(|name| done[name].as_i64().unwrap());
    assert_eq!((counts, total(&target, "/v1/users")), ([0, 0, 1, 1], 1), "nobody gets access: {done:#}");
    let (import, done) = moved("tasks");
    assert_eq!((&import["warning_count"], &done["created"]), (&json!(1), &json!(2)), "{import:#}");
    let tasks = target.get("/v1/tasks").expect(200).data();
    let call = tasks.as_array().unwrap().iter().find(|one| one["title"] == "Call").unwrap();
    let task = target.get(&format!("/v1/tasks/{}", call["id"].as_str().unwrap())).expect(200).data();
    assert_eq!(task["meta"]["assignee_id"], anna.as_str(), "{task:#}");
}

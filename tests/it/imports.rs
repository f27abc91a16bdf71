//! Imports and exports of records as CSV, Excel and JSON Lines.

mod again;
mod command;
mod documents;
mod hostile;
mod killed;
mod moving;
mod problems;
mod running;
mod undoing;
mod values;

use engine::jobs::worker;
use serde_json::{Value, json};

use crate::cli::{complained, kantoor, said};
use crate::on_both;
use crate::server::Binary;
use crate::support::{Client, Db, Reply, Server, Shared};

on_both![
    what_is_exported_can_be_imported,
    formulas_are_defused,
    every_resource_can_be_exported,
    exports_take_filters,
    exports_and_imports_need_the_scopes_of_the_resource,
    an_import_is_checked_before_it_runs,
    a_file_is_recognized_and_can_be_corrected,
    malformed_files_are_rejected,
    existing_records_are_skipped_or_updated,
    an_import_is_undone_while_nothing_touched_it,
    an_import_stops_when_its_author_loses_access,
    the_command_checks_and_imports,
    imports_start_no_flows,
    a_report_of_problems_is_bounded,
];

/// Returns the fields of an error, sorted.
fn fields(rejected: &Value) -> Vec<String> {
    let details = rejected["error"]["details"].as_array().unwrap();
    let mut fields: Vec<String> = details.iter().map(|one| one["field"].as_str().unwrap().to_string()).collect();
    fields.sort();
    fields
}

/// Runs all jobs that are due.
pub fn work(server: &Server) {
    server.block_on(async { while worker::turn(&server.app).await {} });
}

/// Uploads a file and checks it as an import.
pub fn checked(client: &Client, resource: &str, name: &str, content: &[u8]) -> Value {
    with(client, json!({"resource": resource}), name, content).expect(201).data()
}

pub fn with(client: &Client, mut body: Value, name: &str, content: &[u8]) -> Reply {
    body["file_id"] = client.upload(name, content).expect(201).id().into();
    client.post("/v1/imports", body)
}

/// Runs an import to its end.
pub fn run(server: &Server, client: &Client, import: &Value) -> Value {
    let path = format!("/v1/imports/{}", import["id"].as_str().unwrap());
    assert_eq!(client.act(&format!("{path}/run")).expect(200).data()["status"], "running");
    work(server);
    client.get(&path).expect(200).data()
}

pub fn undo(server: &Server, client: &Client, import: &Value) -> Value {
    let path = format!("/v1/imports/{}", import["id"].as_str().unwrap());
    assert_eq!(client.act(&format!("{path}/undo")).expect(200).data()["status"], "undoing");
    work(server);
    client.get(&path).expect(200).data()
}

fn exported(client: &Client, body: Value) -> Reply {
    let export = client.post("/v1/exports", body).expect(201).id();
    client.get(&format!("/v1/exports/{export}/file")).expect(200)
}

pub fn total(client: &Client, path: &str) -> i64 {
    client.get(path).expect(200).json()["meta"]["total"].as_i64().unwrap()
}

/// The records of a list without what is new in every account.
fn comparable(client: &Client, path: &str) -> Vec<Value> {
    let list = client.get(&format!("{path}?sort=created_at&order=asc")).expect(200).data();
    let mut records: Vec<Value> = list.as_array().unwrap().clone();
    for record in &mut records {
        let members = record.as_object_mut().unwrap();
        ["id", "created_at", "updated_at", "debtor_number"].iter().for_each(|name| drop(members.remove(*name)));
        if let Some(meta) = members.get_mut("meta").and_then(Value::as_object_mut) {
            ["created_at", "updated_at", "version"].iter().for_each(|name| drop(meta.remove(*name)));
        }
    }
    records.sort_by_key(ToString::to_string);
    records
}

fn what_is_exported_can_be_imported(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    for (name, mail) in [("De Ster, \"bakkerij\"", "info@ster.example"), ("=HYPERLINK(1)", ""), ("-x\ny", "")] {
        let body =
            json!({"company_name": name, "email": mail, "phone": "+31 6 12", "payment_term": 21, "city": "Gené"});
        client.post("/v1/clients", body).expect(201);
    }
    client.post("/v1/clients", json!({"type": "private", "lastname": "Jansen", "external_id": "007"})).expect(201);
    client
        .post("/v1/products", json!({"name": "Hosting", "price": 12.345_678, "vat_rate": "21", "active": false}))
        .expect(201);
    client.post("/v1/products", json!({"name": "@home", "price": -5, "code": "0012"})).expect(201);
    client.post("/v1/suppliers", json!({"company_name": "Groothandel", "email": "a@b.example"})).expect(201);
    for format in ["csv", "xlsx", "jsonl"] {
        let other = server.client();
        for resource in ["clients", "products", "suppliers"] {
            let file = exported(&client, json!({"resource": resource, "format": format}));
            let import = checked(&other, resource, &format!("x.{format}"), &file.bytes);
            assert_eq!(import["problems"], json!([]), "{import:#}");
            let done = run(&server, &other, &import);
            assert_eq!((&done["status"], &done["failed"]), (&json!("done"), &json!(0)), "{done:#}");
            let path = format!("/v1/{resource}");
            assert_eq!(comparable(&other, &path), comparable(&client, &path), "{resource} {format}");
        }
    }
}

fn formulas_are_defused(server: Shared) {
    let client = server.client();
    client.post("/v1/products", json!({"name": "=1+1", "price": -3})).expect(201);
    let csv = exported(&client, json!({"resource": "products"}));
    assert_eq!(csv.header("content-type"), "text/csv; charset=utf-8");
    assert!(csv.header("content-disposition").contains("products-"), "{csv:?}");
    assert!(csv.text.contains(",'=1+1,,-3,"), "{}", csv.text);
    let lines = exported(&client, json!({"resource": "products", "format": "jsonl"}));
    let first: Value = serde_json::from_str(lines.text.lines().next().unwrap()).unwrap();
    assert_eq!((&first["name"], &first["price"]), (&json!("=1+1"), &json!(-3)));
}

fn every_resource_can_be_exported(server: Shared) {
    let client = server.client();
    let rejected = client.post("/v1/exports", json!({"resource": "nonsense"})).expect(422).json();
    let message = rejected["error"]["details"][0]["message"].as_str().unwrap().to_string();
    let names: Vec<&str> = message.trim_start_matches("must be one of: ").split(", ").collect();
    assert!(names.len() > 30, "{names:?}");
    let file = client.upload("x.csv", b"company_name\nDe Ster\n").expect(201).id();
    client.post("/v1/imports", json!({"resource": "clients", "file_id": file})).expect(201);
    let rejected = client.post("/v1/exports", json!({"resource": "client", "format": "pdf"})).expect(422).json();
    assert_eq!(fields(&rejected), ["format", "resource"]);
    client.post("/v1/webhook-endpoints", json!({"url": "https://example.com/hook"})).expect(201);
    for name in names {
        for format in ["csv", "xlsx", "jsonl"] {
            let file = exported(&client, json!({"resource": name, "format": format}));
            assert!(format == "jsonl" || !file.bytes.is_empty(), "{name} {format}");
            assert!(!file.text.contains("whsec_") && !file.text.contains("sealed:"), "{name}: {}", file.text);
        }
    }
}

fn exports_take_filters(server: Shared) {
    let client = server.client();
    for (name, active) in [("Hosting", true), ("Domain", true), ("Old", false)] {
        client.post("/v1/products", json!({"name": name, "active": active})).expect(201);
    }
    let lines = |filters: Value| {
        let file = exported(&client, json!({"resource": "products", "format": "jsonl", "filters": filters}));
        file.text.lines().count()
    };
    assert_eq!((lines(json!({})), lines(json!({"active": true})), lines(json!({"search": "host"}))), (3, 2, 1));
    for filters in [json!({"colour": "red"}), json!({"page": 2}), json!({"active": "perhaps"}), json!({"active": [1]})]
    {
        let refused = client.post("/v1/exports", json!({"resource": "products", "filters": filters})).expect(422);
        assert!(refused.faults()[0].starts_with("filters."), "{refused:?}");
    }
    let doubted = json!({"resource": "invoices", "filters": {"payment_status": "overdu"}});
    let warnings = client.post("/v1/exports", doubted).expect(201).json()["meta"]["warnings"].clone();
    let expected = "filters.payment_status has the unknown value 'overdu', which is none of draft, open, partial, paid, overdue, credited; did you mean 'overdue'?";
    assert_eq!(warnings, json!([expected]));
}

fn exports_and_imports_need_the_scopes_of_the_resource(server: Shared) {
    let client = server.client();
    client.post("/v1/products", json!({"name": "Hosting"})).expect(201);
    let reader = server.with_scopes(&client, &["products.read", "files.read", "files.write"]);
    let export = reader.post("/v1/exports", json!({"resource": "products"})).expect(201).id();
    reader.get(&format!("/v1/exports/{export}/file")).expect(200);
    reader.post("/v1/exports", json!({"resource": "clients"})).expect(403);
    let other = server.with_scopes(&client, &["files.read", "files.write", "relations.read"]);
    other.get(&format!("/v1/exports/{export}")).expect(200);
    other.get(&format!("/v1/exports/{export}/file")).expect(403);
    let file = client.upload("x.csv", b"name\nDomain\n").expect(201).id();
    other.post("/v1/imports", json!({"resource": "products", "file_id": file})).expect(403);
    let import = client.post("/v1/imports", json!({"resource": "products", "file_id": file})).expect(201).id();
    other.act(&format!("/v1/imports/{import}/run")).expect(403);
    for resource in ["api_keys", "flows", "webhook_endpoints", "imports"] {
        client.post("/v1/imports", json!({"resource": resource, "file_id": file})).expect(422);
    }
}

fn an_import_is_checked_before_it_runs(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let csv =
        "Bedrijfsnaam;E-mail;Land;Kleur\nDe Ster;info@ster.example;NL;rood\nDe Maan;not an address;NL;\n;;Atlantis;\n";
    let import = checked(&client, "clients", "klanten.csv", csv.as_bytes());
    assert_eq!(
        (&import["status"], &import["lines"], &import["valid_lines"]),
        (&json!("checked"), &json!(3), &json!(1))
    );
    let found: Vec<(i64, &str)> = import["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| (problem["line"].as_i64().unwrap(), problem["column"].as_str().unwrap()))
        .collect();
    assert!(found.contains(&(3, "E-mail")) && found.contains(&(4, "Land")), "{import:#}");
    assert_eq!(
        import["columns"][0],
        json!({"column": "Bedrijfsnaam", "field": "company_name", "sample": "De Ster", "read": "De Ster", "note": ""})
    );
    assert_eq!(import["columns"][3]["field"], "");
    assert_eq!(import["preview"][0], json!({"company_name": "De Ster", "email": "info@ster.example", "country": "NL"}));
    assert_eq!(total(&client, "/v1/clients"), 0, "nothing runs unasked");
    let before = server.last_seq(&client);
    let done = run(&server, &client, &import);
    assert_eq!((&done["created"], &done["failed"], &done["processed"]), (&json!(1), &json!(2), &json!(3)), "{done:#}");
    assert_eq!(done["errors"][0]["line"], 3);
    assert_eq!(total(&client, "/v1/clients"), 1);
    let events = server.events(&client, before);
    assert_eq!(events, ["import.started", "customer.created", "import.finished"]);
    let path = format!("/v1/imports/{}", import["id"].as_str().unwrap());
    assert_eq!(client.act(&format!("{path}/run")).expect(409).code(), "invalid_transition");
    client.patch(&path, json!({"decimal_sign": "comma"})).expect(409);
    client.delete(&path).expect(204);
}

fn a_file_is_recognized_and_can_be_corrected(server: Shared) {
    let client = server.client();
    let csv = b"Naam;Prijs;Caf\xe9\nKoffie;1.234,50;x\nThee;2,25;y\n";
    let import = checked(&client, "products", "prijzen.csv", csv);
    let shown = |import: &Value| {
        ["format", "encoding", "separator", "decimal_sign"].map(|name| import[name].as_str().unwrap().to_string())
    };
    assert_eq!(shown(&import), ["csv", "windows-1252", "semicolon", "comma"]);
    assert_eq!(import["columns"][2]["column"], "Café");
    assert_eq!(import["preview"][0], json!({"name": "Koffie", "price": 1234.5}));
    let path = format!("/v1/imports/{}", import["id"].as_str().unwrap());
    let changed = client.patch(&path, json!({"mapping": {"Café": "code"}, "match_by": "code"})).expect(200).data();
    assert_eq!(changed["preview"][0], json!({"name": "Koffie", "price": 1234.5, "code": "x"}));
    for body in [
        json!({"mapping": {"Thee": "code"}}),
        json!({"mapping": {"Naam": "colour"}}),
        json!({"mapping": {"Naam": 1}}),
        json!({"match_by": "price"}),
    ] {
        client.patch(&path, body).expect(422);
    }
    let wrong = client.patch(&path, json!({"decimal_sign": "point"})).expect(200).data();
    assert!(wrong["problem_count"].as_i64().unwrap() > 0, "{wrong:#}");
    let dates = checked(&client, "tasks", "x.csv", b"title,deadline\nCall,31-12-2026\n");
    assert_eq!((&dates["date_order"], &dates["preview"][0]["deadline"]), (&json!("day_first"), &json!("2026-12-31")));
    let utf16: Vec<u8> = "\u{feff}name\tprice\nHéé\t1.5\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(shown(&checked(&client, "products", "x.txt", &utf16)), ["csv", "utf-16", "tab", "point"]);
}

fn malformed_files_are_rejected(server: Shared) {
    let client = server.client();
    let wide = vec!["x"; 600].join(",");
    for (content, status) in [
        (&b"   "[..], 422),
        (b"%PDF-1.7 not a table", 422),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 422),
        (b"PK\x03\x04 no archive", 422),
        (b"{\"name\": ", 422),
        (b"\x00\x01\x02\x03 binary", 422),
        (wide.as_bytes(), 413),
    ] {
        let reply = with(&client, json!({"resource": "products"}), "x.csv", content);
        assert_eq!(reply.status, status, "{reply:?}");
        let message = reply.json()["error"]["message"].as_str().unwrap().to_string();
        assert!(message.len() > 15 && !message.contains("file_id"), "{message}");
    }
    let id = client.upload("x.csv", b"name\nx\n").expect(201).id();
    for body in [
        json!({"resource": "products", "file_id": "none"}),
        json!({"resource": "products"}),
        json!({"resource": "products", "file_id": id, "source": "unknown"}),
        json!({"resource": "products", "file_id": id, "separator": "dot"}),
    ] {
        client.post("/v1/imports", body).expect(422);
    }
    let all = json!({"resource": "product", "file_id": "none", "source": "stripes", "separator": "dot"});
    let rejected = client.post("/v1/imports", all).expect(422).json();
    assert_eq!(fields(&rejected), ["file_id", "resource", "separator", "source"]);
    let nothing = checked(&client, "products", "x.csv", b"colour\nred\n");
    client.act(&format!("/v1/imports/{}/run", nothing["id"].as_str().unwrap())).expect(409);
}

fn existing_records_are_skipped_or_updated(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    client.post("/v1/clients", json!({"company_name": "De Ster", "email": "Info@Ster.example"})).expect(201);
    let csv = b"company_name,email,city\nDe Ster,info@ster.example,Delft\nDe Maan,info@maan.example,Gouda\nDe Maan BV,info@maan.example,Gouda\n";
    let by_email = |existing: &str| json!({"resource": "clients", "match_by": "email", "existing": existing});
    let import = with(&client, by_email("skip"), "x.csv", csv).expect(201).data();
    let done = run(&server, &client, &import);
    assert_eq!((&done["created"], &done["skipped"]), (&json!(1), &json!(2)), "{done:#}");
    let import = with(&client, by_email("update"), "x.csv", csv).expect(201).data();
    let done = run(&server, &client, &import);
    assert_eq!((&done["created"], &done["updated"]), (&json!(0), &json!(3)), "{done:#}");
    let found = client.get("/v1/clients?email=info@ster.example").expect(200).data();
    assert_eq!(found[0]["city"], "Delft");
    let same = checked(&client, "clients", "x.csv", b"company_name,external_id\nA,1\nB,1\n");
    assert_eq!((&same["valid_lines"], &same["problems"][0]["line"]), (&json!(1), &json!(3)), "{same:#}");
    run(&server, &client, &same);
    let again = checked(&client, "clients", "x.csv", b"company_name,external_id\nC,1\n");
    assert_eq!(again["problems"][0]["message"], "is already used by another record");
}

fn an_import_is_undone_while_nothing_touched_it(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let lines: String = (0..250).map(|n| format!("Client {n}\n")).collect();
    let import = checked(&client, "clients", "x.csv", format!("company_name\n{lines}").as_bytes());
    let done = run(&server, &client, &import);
    assert_eq!(done["created"], 250);
    let id = |name: &str| {
        client.get(&format!("/v1/clients?search={name}")).expect(200).data()[0]["id"].as_str().unwrap().to_string()
    };
    let (changed, used) = (id("Client%20117"), id("Client%20203"));
    client.patch(&format!("/v1/clients/{changed}"), json!({"city": "Delft"})).expect(200);
    client.post("/v1/notes", json!({"body": "Likes tea", "client_id": used})).expect(201);
    let before = server.last_seq(&client);
    let undone = undo(&server, &client, &import);
    assert_eq!(server.events(&client, before).last().map(String::as_str), Some("import.undone"));
    assert_eq!((&undone["status"], &undone["removed"]), (&json!("undone"), &json!(248)), "{undone:#}");
    let stays = undone["errors"].to_string();
    assert!(stays.contains("changed after the import") && stays.contains("a record in notes refers to it"), "{stays}");
    assert_eq!(total(&client, "/v1/clients"), 2);
    let path = format!("/v1/imports/{}", import["id"].as_str().unwrap());
    client.act(&format!("{path}/run")).expect(409);
    client.delete(&path).expect(204);
    // A product is named by rows of drafts, not by a field.
    let import = checked(&client, "products", "x.csv", b"name\nBoiler\nKraan\n");
    run(&server, &client, &import);
    let kraan = client.get("/v1/products?search=Kraan").data()[0]["id"].clone();
    client.post("/v1/quotes", json!({"title": "x", "rows": [{"product_id": kraan}]})).expect(201);
    let undone = undo(&server, &client, &import);
    assert_eq!((&undone["removed"], total(&client, "/v1/products")), (&json!(1), 1), "{undone:#}");
}

fn an_import_stops_when_its_author_loses_access(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let file = client.upload("x.csv", b"name\nHosting\n").expect(201).id();
    let made = client.post("/v1/api-keys", json!({"name": "temporary", "scopes": ["*"]})).expect(201).data();
    let temporary = Client { key: made["secret"].as_str().unwrap().to_string(), ..client.clone() };
    let import = temporary.post("/v1/imports", json!({"resource": "products", "file_id": file})).expect(201).id();
    temporary.act(&format!("/v1/imports/{import}/run")).expect(200);
    client.act(&format!("/v1/api-keys/{}/revoke", made["id"].as_str().unwrap())).expect(200);
    work(&server);
    let ended = client.get(&format!("/v1/imports/{import}")).expect(200).data();
    assert_eq!((&ended["status"], total(&client, "/v1/products")), (&json!("failed"), 0), "{ended:#}");
    assert!(ended["failure"].as_str().unwrap().contains("stopped"), "{ended:#}");
}

fn the_command_checks_and_imports(db: Db) {
    let binary = Binary::start(&db, "", &[]);
    let client = &binary.client;
    let account = client.get("/v1/account").expect(200).data()["id"].as_str().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("in.csv"), "Naam;Prijs\nHosting;12,50\nDomein;x\n").unwrap();
    let import = ["import", "--account", &account, "products", &path("in.csv")];
    let shown = said(&kantoor(&db, &import));
    assert!(
        shown.contains("Prijs → price") && shown.contains("line 3, Prijs:") && shown.contains("Nothing was imported"),
        "{shown}"
    );
    assert_eq!(total(client, "/v1/products"), 0);
    let done = said(&kantoor(&db, &[&import[..], &["--run"]].concat()));
    assert!(done.contains("1 created") && done.contains("1 failed"), "{done}");
    assert_eq!(total(client, "/v1/products"), 1);
    let export = ["export", "--account", &account, "products", &path("out.csv")];
    let done = said(&kantoor(&db, &export));
    assert!(done.contains("Exported 1 products"), "{done}");
    let written = std::fs::read_to_string(path("out.csv")).unwrap();
    assert!(written.contains("Hosting,,12.5,"), "{written}");
    for (arguments, words) in [
        (&export[..], "exists"),
        (&["export", "--account", &account, "products", &path("out.txt")], ".jsonl"),
        (&["export", "--account", &account, "nothing", &path("new.csv")], "must be one of"),
        (&["export", "--account", "none", "products", &path("new.csv")], "account"),
        (&["import", "--account", &account, "products", &path("missing.csv")], "No such file"),
        (&["import", "--account", &account, "products", &path("in.csv"), "--source", "x"], "--source"),
        (&["import", "--account", &account, "products", &path("in.csv"), "--map", "x"], "COLUMN=FIELD"),
    ] {
        let complaint = complained(&kantoor(&db, arguments));
        assert!(complaint.contains(words), "{arguments:?}: {complaint}");
    }
    assert!(!std::path::Path::new(&path("new.csv")).exists());
    let verified = kantoor(&db, &["verify"]);
    assert!(verified.status.success(), "{}", said(&verified));
}

fn imports_start_no_flows(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let steps = json!([{"type": "create_task", "title": "Welcome"}]);
    let flow = json!({"name": "Welcome", "trigger_type": "event", "trigger_key": "customer.created", "steps": steps});
    let flow = client.post("/v1/automation/flows", flow).expect(201).id();
    let import = checked(&client, "clients", "x.csv", b"company_name\nDe Ster\n");
    run(&server, &client, &import);
    assert_eq!(total(&client, "/v1/clients"), 1);
    assert_eq!(total(&client, &format!("/v1/automation/runs?flow_id={flow}")), 0);
    let id = client.get("/v1/clients").data()[0]["id"].as_str().unwrap().to_string();
    let history = client.get(&format!("/v1/clients/{id}/history")).expect(200).data();
    assert_eq!(history[0]["actor_type"], "import", "{history:#}");
}

fn a_report_of_problems_is_bounded(server: Shared) {
    let client = server.client();
    let lines: String = (0..5000).map(|_| "x;y\n").collect();
    let import = checked(&client, "products", "x.csv", format!("name;price\n{lines}").as_bytes());
    assert_eq!((&import["problem_count"], import["problems"].as_array().unwrap().len()), (&json!(5000), 100));
}

//! What the check reports: everything that the run would refuse, and nothing else.

use serde_json::{Value, json};

use super::{checked, run, total, undo, with};
use crate::on_both;
use crate::support::{Client, Db, Server, Shared};

on_both![
    surplus_values_and_open_quotes_are_problems,
    final_documents_need_their_totals,
    a_paid_invoice_was_paid_on_its_own_day,
    another_currency_is_a_problem,
    statuses_become_what_a_bookkeeper_expects,
    what_the_check_calls_valid_can_be_imported,
    a_matched_record_is_no_duplicate,
    pdfs_are_checked_before_they_are_stored,
    numbers_keep_their_spaces,
    a_workbook_has_no_separator,
    products_in_use_stay_when_an_import_is_undone,
    projects_stay_when_an_import_is_undone,
];

pub fn problems(import: &Value) -> Vec<(i64, String, String)> {
    let text = |problem: &Value, name: &str| problem[name].as_str().unwrap().to_string();
    let all = import["problems"].as_array().unwrap().iter();
    all.map(|one| (one["line"].as_i64().unwrap(), text(one, "column"), text(one, "message"))).collect()
}

/// Runs an import whose problems were reported; returns it. The check and the run agree on every line.
pub fn run_as_checked(server: &Server, client: &Client, import: &Value) -> Value {
    let done = run(server, client, import);
    let count = |name: &str| done[name].as_i64().unwrap();
    assert_eq!(count("created") + count("updated"), import["valid_lines"].as_i64().unwrap(), "{done:#}");
    done
}

pub fn invoice(client: &Client, number: &str) -> Value {
    let found = client.get(&format!("/v1/invoices?number={number}")).expect(200).data();
    let id = found[0]["id"].as_str().unwrap_or_else(|| panic!("no invoice {number}")).to_string();
    client.get(&format!("/v1/invoices/{id}")).expect(200).data()
}

fn surplus_values_and_open_quotes_are_problems(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let csv = b"name;price\nHosting;1\nDomain;2;3\n\"Open;4\nLost;5\n";
    let import = checked(&client, "products", "x.csv", csv);
    let found = problems(&import);
    assert_eq!(found.iter().map(|(line, column, _)| (*line, column.as_str())).collect::<Vec<_>>(), [(3, ""), (4, "")]);
    assert!(found[0].2.contains("3 values") && found[1].2.contains("quote"), "{found:?}");
    let done = run_as_checked(&server, &client, &import);
    assert_eq!((&done["created"], &done["failed"]), (&json!(1), &json!(2)));
    assert!(done["errors"][1]["message"].as_str().unwrap().contains("quote"), "{done:#}");
}

fn final_documents_need_their_totals(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let none =
        checked(&client, "invoices", "x.csv", b"Factuurnummer;Datum;Klant;Status\n1;2024-05-04;De Ster;Betaald\n");
    assert_eq!(problems(&none)[0].1, "total_excl_vat", "{none:#}");
    assert_eq!(none["valid_lines"], 0);
    let gross =
        checked(&client, "invoices", "x.csv", b"Factuurnummer;Datum;Klant;Bedrag incl.\n1;2024-05-04;De Ster;121,00\n");
    assert_eq!(problems(&gross)[0].1, "vat_amount", "{gross:#}");
    let rated = b"Factuurnummer;Datum;Klant;Bedrag incl.;Btw %\n1;2024-05-04;De Ster;121,00;21\n";
    let rated = checked(&client, "invoices", "x.csv", rated);
    assert_eq!(rated["problems"], json!([]), "{rated:#}");
    run_as_checked(&server, &client, &rated);
    assert_eq!(
        (&invoice(&client, "1")["vat_amount"], &invoice(&client, "1")["total_excl_vat"]),
        (&json!(21), &json!(100))
    );
    let both = b"Factuurnummer;Datum;Klant;Bedrag excl.;Bedrag incl.\n2;2024-05-04;De Ster;100,00;121,00\n";
    let both = checked(&client, "invoices", "x.csv", both);
    run_as_checked(&server, &client, &both);
    assert_eq!(invoice(&client, "2")["vat_amount"], 21);
}

fn a_paid_invoice_was_paid_on_its_own_day(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let csv = b"Factuurnummer;Factuurdatum;Klant;Status;Totaal excl. btw;Btw;Betaaldatum
1;04-05-2024;De Ster;Betaald;100,00;21,00;20-05-2024
2;04-05-2024;De Ster;Betaald;100,00;21,00;
3;04-05-2024;De Ster;Open;100,00;21,00;
4;04-05-2024;De Ster;Open;0,00;0,00;
5;04-05-2024;De Ster;Betaald;100,00;21,00;soon
";
    let import = checked(&client, "invoices", "x.csv", csv);
    let found = problems(&import);
    assert_eq!((found.len(), found[0].0, found[0].1.as_str()), (1, 6, "Betaaldatum"), "{found:?}");
    assert!(found[0].2.contains("31-12-2026"), "{found:?}");
    run_as_checked(&server, &client, &import);
    let paid = |number: &str| invoice(&client, number)["paid_at"].as_str().map(|day| day[..10].to_string());
    let day = |day: &str| Some(day.to_string());
    assert_eq!(
        [paid("1"), paid("2"), paid("3"), paid("4")],
        [day("2024-05-20"), day("2024-05-04"), None, day("2024-05-04")]
    );
}

fn another_currency_is_a_problem(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let csv = b"Number,Date (UTC),Customer Name,Subtotal,Tax,Total,Currency,Status
A-1,2024-05-04,De Ster,100.00,21.00,121.00,eur,paid
A-2,2024-05-04,De Ster,100.00,21.00,121.00,usd,paid
";
    let import = with(&client, json!({"resource": "invoices", "source": "stripe"}), "x.csv", csv).expect(201).data();
    let found = problems(&import);
    assert_eq!((found.len(), found[0].0, found[0].1.as_str()), (1, 3, "Currency"), "{found:?}");
    let done = run_as_checked(&server, &client, &import);
    // The sums say which part of the file was left out.
    assert_eq!(done["report"]["left_out"]["total_incl_vat"], "121.00", "{done:#}");
    assert_eq!(done["report"]["difference"]["total_incl_vat"], "0.00", "{done:#}");
}

fn statuses_become_what_a_bookkeeper_expects(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let csv = b"id,Number,Date (UTC),Customer Name,Subtotal,Tax,Total,Amount Paid,Status
in_1,B-1,2024-05-04,De Ster,100.00,21.00,121.00,0,void
in_2,B-2,2024-05-04,De Ster,100.00,21.00,121.00,0,uncollectible
in_3,,2024-05-04,De Ster,100.00,21.00,121.00,0,draft
in_4,B-4,2024-05-04,De Ster,100.00,21.00,121.00,21,open
";
    let import = with(&client, json!({"resource": "invoices", "source": "stripe"}), "x.csv", csv).expect(201).data();
    assert_eq!(problems(&import), [(2, "Status".to_string(), "is void, so it is left out".to_string())]);
    let done = run_as_checked(&server, &client, &import);
    assert_eq!((&done["skipped"], &done["failed"], &done["errors"][0]["line"]), (&json!(1), &json!(0), &json!(2)));
    assert_eq!(invoice(&client, "B-2")["payment_status"], "open");
    let drafts = client.get("/v1/invoices?payment_status=draft").expect(200).data();
    assert_eq!((drafts.as_array().unwrap().len(), &drafts[0]["title"]), (1, &json!("in_3")));
    let partly = invoice(&client, "B-4");
    assert_eq!((&partly["payment_status"], &partly["meta"]["paid_amount"]), (&json!("partial"), &json!(21)));
    let payments = client.get(&format!("/v1/invoices/{}/payments", partly["id"].as_str().unwrap())).expect(200).data();
    assert_eq!((&payments[0]["amount"], &payments[0]["date"]), (&json!(21), &json!("2024-05-04")), "{payments:#}");
    let undone = undo(&server, &client, &import);
    assert_eq!((total(&client, "/v1/invoices"), &undone["errors"].as_array().unwrap().len()), (0, &1), "{undone:#}");
    assert_eq!(total(&client, "/v1/clients"), 0);
    let csv = b"Factuurnummer;Datum;Relatie;BTW-code;Totaal incl. BTW;Openstaand
1;04-05-2024;De Ster;HOOG_VERK_21;121,00;0,00
2;04-05-2024;De Ster;HOOG_VERK_21;121,00;121,00
3;04-05-2024;De Ster;LAAG_VERK_9;109,00;9,00
4;04-05-2024;De Ster;LAAG_VERK_9;109,00;200,00
";
    let body = json!({"resource": "invoices", "source": "e_boekhouden"});
    let import = with(&client, body, "x.csv", csv).expect(201).data();
    let found = problems(&import);
    assert_eq!((found.len(), found[0].0, found[0].1.as_str()), (1, 5, "Openstaand"), "{found:?}");
    run_as_checked(&server, &client, &import);
    let shown = |number: &str| {
        let invoice = invoice(&client, number);
        (invoice["payment_status"].clone(), invoice["vat_amount"].clone(), invoice["meta"]["open_amount"].clone())
    };
    assert_eq!(shown("1"), (json!("paid"), json!(21), json!(0)));
    assert_eq!(shown("2"), (json!("open"), json!(21), json!(121)));
    assert_eq!(shown("3"), (json!("partial"), json!(9), json!(9)));
    let vague = b"Factuurnummer;Datum;Klant;Totaal excl. btw;Btw;Status\n9;2024-05-04;De Ster;100;21;Deels betaald\n";
    let vague = checked(&client, "invoices", "x.csv", vague);
    assert!(problems(&vague)[0].2.contains("partly paid"), "{vague:#}");
}

fn what_the_check_calls_valid_can_be_imported(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let owner = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    for (resource, lines, valid) in [
        ("clients", "{\"company_name\": \"A\", \"custom_fields\": {\"colour\": \"red\"}}\n{\"company_name\": \"B\"}\n".to_string(), 1),
        ("invoices", "{\"title\": \"x\", \"rows\": [{\"name\": \"a\", \"unit_price\": 10, \"vat_rate\": \"21\"}], \"total_excl_vat\": 11}\n".to_string(), 0),
        ("subscriptions", format!("{{\"client_id\": \"none\"}}\n{{\"client_id\": \"{owner}\", \"title\": \"x\", \"lines\": [{{\"product_id\": \"none\"}}]}}\n"), 0),
    ] {
        let before = server.last_seq(&client);
        let import = checked(&client, resource, "x.jsonl", lines.as_bytes());
        assert_eq!(import["valid_lines"], valid, "{resource}: {import:#}");
        assert_eq!(server.events(&client, before), ["file.created", "import.created"], "the check keeps nothing");
        if valid > 0 {
            run_as_checked(&server, &client, &import);
        }
    }
}

fn a_matched_record_is_no_duplicate(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    client
        .post("/v1/clients", json!({"company_name": "De Ster", "email": "a@b.example", "external_id": "7"}))
        .expect(201);
    client.post("/v1/clients", json!({"company_name": "De Maan", "external_id": "8"})).expect(201);
    let csv =
        b"company_name,email,external_id\nDe Ster BV,a@b.example,7\nDe Zon,z@b.example,8\nDe Ster NV,A@b.example,7\n";
    let body = json!({"resource": "clients", "match_by": "email", "existing": "update"});
    let import = with(&client, body, "x.csv", csv).expect(201).data();
    let found = problems(&import);
    assert_eq!((found.len(), found[0].0, found[0].1.as_str()), (1, 3, "external_id"), "{found:?}");
    let done = run_as_checked(&server, &client, &import);
    assert_eq!((&done["updated"], &done["failed"]), (&json!(2), &json!(1)), "{done:#}");
    for by in ["type", "owner_id", "country"] {
        let refused = with(&client, json!({"resource": "clients", "match_by": by}), "x.csv", csv).expect(422);
        assert!(refused.text.contains("external_id") && !refused.text.contains("owner_id,"), "{}", refused.text);
    }
}

fn pdfs_are_checked_before_they_are_stored(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let csv = b"Factuurnummer;Datum;Klant;Totaal excl. btw;Btw;Bestand\n1;2024-05-04;De Ster;100;21;\n2;2024-05-04;De Ster;100;21;\n3;2024-05-04;De Ster;100;21;absent.pdf\n";
    let no_zip = client.upload("pdfs.zip", b"not a zip file").expect(201).id();
    let refused = with(&client, json!({"resource": "invoices", "pdfs_file_id": no_zip}), "x.csv", csv).expect(422);
    assert_eq!(refused.faults(), ["pdfs_file_id: invalid_format"]);
    let files = [("1.pdf".to_string(), b"%PDF-1.7 one".to_vec()), ("2.pdf".to_string(), b"<html>".to_vec())];
    let zip = client.upload("pdfs.zip", &sheets::archive::pack(files).unwrap()).expect(201).id();
    let import = with(&client, json!({"resource": "invoices", "pdfs_file_id": zip}), "x.csv", csv).expect(201).data();
    let found = problems(&import);
    let places: Vec<(i64, &str)> = found.iter().map(|(line, column, _)| (*line, column.as_str())).collect();
    assert_eq!(places, [(3, "Bestand"), (4, "Bestand")], "{found:?}");
    assert!(found[0].2.contains("2.pdf in the zip file is not a PDF"), "{found:?}");
    let done = run_as_checked(&server, &client, &import);
    assert_eq!((&done["status"], &done["created"], &done["failed"]), (&json!("done"), &json!(1), &json!(2)));
}

fn numbers_keep_their_spaces(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let csv = b"Invoice number,Invoice date,Customer,Status,Total excl. VAT,Total incl. VAT\n2024 / 17,2024-05-04,De Ster,matched,100.00,121.00\n";
    let zip = sheets::archive::pack([("2024-17.pdf".to_string(), b"%PDF-1.7 seventeen".to_vec())]).unwrap();
    let pdfs = client.upload("pdfs.zip", &zip).expect(201).id();
    let body = json!({"resource": "invoices", "source": "teamleader", "pdfs_file_id": pdfs});
    let import = with(&client, body, "x.csv", csv).expect(201).data();
    assert_eq!(import["problems"], json!([]), "{import:#}");
    run_as_checked(&server, &client, &import);
    let made = invoice(&client, "2024%20/%2017");
    assert_eq!(made["number"], "2024 / 17");
    let pdf = client.get(&format!("/v1/invoices/{}/pdf/content", made["id"].as_str().unwrap())).expect(200);
    assert_eq!(pdf.bytes, b"%PDF-1.7 seventeen");
    let typed = client.post("/v1/invoices", json!({"title": "x", "number": "2024 / 18"})).expect(422);
    assert_eq!(typed.faults(), ["number: invalid_format"]);
}

fn a_workbook_has_no_separator(server: Shared) {
    let client = server.client();
    client.post("/v1/products", json!({"name": "Hosting", "price": 1})).expect(201);
    let export = client.post("/v1/exports", json!({"resource": "products", "format": "xlsx"})).expect(201).id();
    let book = client.get(&format!("/v1/exports/{export}/file")).expect(200).bytes;
    let import = checked(&client, "products", "x.xlsx", &book);
    let shown = (&import["format"], &import["encoding"], &import["separator"]);
    assert_eq!(shown, (&json!("xlsx"), &json!("auto"), &json!("auto")));
    let lines = checked(&client, "products", "x.jsonl", b"{\"name\": \"x\"}\n");
    assert_eq!((&lines["encoding"], &lines["separator"]), (&json!("utf-8"), &json!("auto")));
    let dates = checked(&client, "tasks", "x.csv", b"title,deadline\nCall,31-12-2026\nMail,next week\n");
    let found = problems(&dates);
    assert_eq!(
        (found[0].0, found[0].2.as_str()),
        (3, "must be a date such as 31-12-2026; see `date_order`"),
        "{found:?}"
    );
}

fn products_in_use_stay_when_an_import_is_undone(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let lines: String = (0..150).map(|n| format!("Product{n}\n")).collect();
    let import = checked(&client, "products", "x.csv", format!("name\n{lines}").as_bytes());
    run(&server, &client, &import);
    let used = |name: &str| client.get(&format!("/v1/products?search={name}")).data()[0]["id"].clone();
    client.post("/v1/workorders", json!({"title": "x", "rows": [{"product_id": used("Product7")}]})).expect(201);
    client.post("/v1/invoices", json!({"title": "x", "rows": [{"product_id": used("Product149")}]})).expect(201);
    let undone = undo(&server, &client, &import);
    assert_eq!((&undone["removed"], total(&client, "/v1/products")), (&json!(148), 2), "{undone:#}");
    assert!(undone["errors"][0]["message"].as_str().unwrap().contains("name it"), "{undone:#}");
}

fn projects_stay_when_an_import_is_undone(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let import = checked(&client, "projects", "x.csv", b"name\nOven\nBoiler\n");
    run(&server, &client, &import);
    let boiler = client.get("/v1/projects?search=Boiler").data()[0]["id"].as_str().unwrap().to_string();
    client.post(&format!("/v1/projects/{boiler}/hours"), json!({"hours": 2})).expect(201);
    let undone = undo(&server, &client, &import);
    assert_eq!((&undone["status"], &undone["removed"]), (&json!("undone"), &json!(0)), "{undone:#}");
    // The last one is looked at first.
    let messages = undone["errors"].as_array().unwrap().iter().map(|one| one["message"].as_str().unwrap());
    let wanted = ["It stays: a record in project hours refers to it.", "It stays: such records cannot be deleted."];
    assert!(messages.eq(wanted), "{undone:#}");
}

//! How values are read: what a person sees in the sheet is what the record has, and what cannot be right is a problem.

use std::process::{Command, Output};

use serde_json::{Value, json};

use super::problems::{invoice, problems, run_as_checked};
use super::{checked, run, total, with, work};
use crate::cli::{complained, said};
use crate::on_both;
use crate::support::{Db, Server, Shared};

on_both![
    percentages_and_errors_of_a_workbook,
    errors_of_a_sheet_that_was_saved_as_csv_are_problems,
    a_final_document_needs_a_date_that_can_be_right,
    vague_dates_and_numbers_are_noted,
    an_interrupted_import_is_not_run_twice,
    a_payment_date_means_paid,
    amounts_in_another_currency_are_problems,
    what_an_existing_record_has_is_not_required,
    a_field_comes_from_one_column,
    an_ambiguous_client_is_a_problem,
    encodings_and_arrays_are_understood,
];

fn workbook(rows: &str) -> Vec<u8> {
    book(rows, None)
}

/// Returns a workbook with this sheet, and with a table of texts. Style 1 is a percentage.
pub fn book(rows: &str, texts: Option<&str>) -> Vec<u8> {
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let package = "http://schemas.openxmlformats.org/package/2006";
    let mut files = vec![
        (
            "[Content_Types].xml",
            format!(
                r#"<Types xmlns="{package}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/></Types>"#
            ),
        ),
        (
            "_rels/.rels",
            format!(
                r#"<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>"#
            ),
        ),
        (
            "xl/workbook.xml",
            format!(
                r#"<workbook xmlns="{main}" xmlns:r="{office}"><sheets><sheet name="A" sheetId="1" r:id="rId1"/></sheets></workbook>"#
            ),
        ),
        (
            "xl/_rels/workbook.xml.rels",
            format!(
                r#"<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" Type="{office}/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rId2" Type="{office}/styles" Target="styles.xml"/><Relationship Id="rId3" Type="{office}/sharedStrings" Target="sharedStrings.xml"/></Relationships>"#
            ),
        ),
        (
            "xl/styles.xml",
            format!(
                r#"<styleSheet xmlns="{main}"><cellXfs count="2"><xf numFmtId="0"></xf><xf numFmtId="9"></xf></cellXfs></styleSheet>"#
            ),
        ),
        ("xl/worksheets/sheet1.xml", format!(r#"<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>"#)),
    ];
    files.extend(texts.map(|texts| ("xl/sharedStrings.xml", texts.to_string())));
    let files = files.into_iter().map(|(name, text)| (name.to_string(), text.into_bytes()));
    sheets::archive::pack(files).unwrap()
}

pub fn text(place: &str, text: &str) -> String {
    format!(r#"<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>"#)
}

fn percentages_and_errors_of_a_workbook(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let rows = [
        format!("<row r=\"1\">{}{}{}</row>", text("A1", "Naam"), text("B1", "Prijs"), text("C1", "Btw")),
        format!("<row r=\"2\">{}<c r=\"B2\"><v>10</v></c><c r=\"C2\" s=\"1\"><v>0.21</v></c></row>", text("A2", "Een")),
        format!("<row r=\"3\">{}<c r=\"B3\"><v>10</v></c><c r=\"C3\"><v>0.21</v></c></row>", text("A3", "Twee")),
        format!("<row r=\"4\">{}<c r=\"B4\" t=\"e\"><v>#N/A</v></c><c r=\"C4\"><v>9</v></c></row>", text("A4", "Drie")),
        "<row r=\"5\"><c r=\"A5\" t=\"e\"><v>#REF!</v></c><c r=\"B5\"><v>1</v></c></row>".to_string(),
    ];
    let import = checked(&client, "products", "x.xlsx", &workbook(&rows.concat()));
    assert_eq!(import["preview"][0], json!({"name": "Een", "price": 10, "vat_rate": "21"}), "{import:#}");
    assert_eq!((&import["columns"][2]["sample"], &import["columns"][2]["read"]), (&json!("21%"), &json!("21")));
    let expected = [
        (3, "Btw", "is 0.21, but a VAT rate is a percentage, such as 21"),
        (4, "Prijs", "is an error in the sheet: #N/A"),
        (5, "Naam", "is an error in the sheet: #REF!"),
    ];
    let found = problems(&import);
    let found: Vec<(i64, &str, &str)> = found.iter().map(|(line, column, why)| (*line, &**column, &**why)).collect();
    assert_eq!(found, expected);
    assert_eq!(import["problems"][1]["code"], "invalid_format");
    let done = run_as_checked(&server, &client, &import);
    assert!(done["errors"].to_string().contains("#N/A"), "{done:#}");
    assert_eq!(client.get("/v1/products").data()[0]["vat_rate"], "21");
}

fn errors_of_a_sheet_that_was_saved_as_csv_are_problems(server: Shared) {
    let client = server.client();
    let import = checked(&client, "products", "x.csv", b"Naam,Prijs\n#N/A,1\nStoel,#WAARDE!\n#1 in sales,2\n");
    let expected = [
        (2, "Naam".to_string(), "is an error in the sheet: #N/A".to_string()),
        (3, "Prijs".to_string(), "is an error in the sheet: #WAARDE!".to_string()),
    ];
    assert_eq!(problems(&import), expected);
}

fn a_final_document_needs_a_date_that_can_be_right(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let csv = b"Factuurnummer;Factuurdatum;Klant;Totaal excl. btw;Btw
1;31-01-2024;De Ster;100,00;21,00
2;31-01-1900;De Ster;100,00;21,00
3;31-01-2924;De Ster;100,00;21,00
;31-01-2024;De Ster;100,00;21,00
Totaal;;;400,00;84,00
";
    let import = checked(&client, "invoices", "x.csv", csv);
    let found = problems(&import);
    let places: Vec<(i64, &str)> = found.iter().map(|(line, column, _)| (*line, column.as_str())).collect();
    assert_eq!(
        places,
        [(3, "Factuurdatum"), (4, "Factuurdatum"), (5, "Factuurnummer"), (6, "Factuurdatum")],
        "{found:?}"
    );
    assert!(found[0].2.starts_with("is 1900-01-31, but the year must be from 1990 to "), "{found:?}");
    assert_eq!(found[3].2, "is required for a final document");
    let done = run_as_checked(&server, &client, &import);
    assert_eq!((&done["created"], total(&client, "/v1/invoices")), (&json!(1), 1), "{done:#}");
}

fn vague_dates_and_numbers_are_noted(server: Shared) {
    let client = server.client();
    let csv = b"title;deadline\nCall;01/02/2024\nMail;03/04/2024\n";
    let reply = with(&client, json!({"resource": "tasks"}), "x.csv", csv).expect(201);
    let (import, warnings) = (reply.data(), reply.json()["meta"]["warnings"].clone());
    assert_eq!((&import["date_order"], &import["preview"][0]["deadline"]), (&json!("day_first"), &json!("2024-02-01")));
    let note = "01/02/2024 is read as 2024-02-01, day first: no date in the file tells which it is; see `date_order`";
    assert_eq!((&import["columns"][1]["note"], &import["columns"][0]["note"]), (&json!(note), &json!("")));
    assert_eq!(warnings, json!([format!("deadline: {note}.")]));
    let path = format!("/v1/imports/{}", import["id"].as_str().unwrap());
    let other = client.patch(&path, json!({"date_order": "month_first"})).expect(200).data();
    assert_eq!(other["columns"][1]["read"], "2024-01-02");
    // What was chosen needs no note, also not when something else is changed later.
    let noted = |body: Value| client.patch(&path, body).expect(200).data()["columns"][1]["note"].clone();
    assert_eq!(other["columns"][1]["note"], "", "{other:#}");
    assert_eq!(noted(json!({"existing": "update"})), "");
    assert_eq!(noted(json!({"date_order": "auto"})), note);
    assert_eq!(noted(json!({"existing": "skip"})), note);
    assert_eq!(noted(json!({"date_order": "day_first"})), "");
    let certain = checked(&client, "tasks", "x.csv", b"title;deadline\nCall;01/02/2024\nMail;13/04/2024\n");
    assert_eq!(certain["columns"][1]["note"], "", "{certain:#}");
    let prices = checked(&client, "products", "x.csv", b"Naam;Prijs\nA;1.500\nB;2.250\n");
    let note = "1.500 is read as 1500: no number in the file tells its decimal sign; see `decimal_sign`";
    assert_eq!((&prices["columns"][1]["note"], &prices["preview"][0]["price"]), (&json!(note), &json!(1500)));
    let chosen = json!({"resource": "products", "decimal_sign": "comma"});
    let reply = with(&client, chosen, "x.csv", b"Naam;Prijs\nA;1.500\nB;2.250\n").expect(201);
    assert_eq!((&reply.data()["columns"][1]["note"], reply.text.contains("decimal sign")), (&json!(""), false));
    let certain = checked(&client, "products", "x.csv", b"Naam;Prijs\nA;1.500\nB;2,25\n");
    assert_eq!((&certain["columns"][1]["note"], &certain["columns"][1]["read"]), (&json!(""), &json!("1500")));
    // Later lines are not looked at.
    for (lines, words) in [(2000, "no number in the file"), (2001, "none of the first 2,000 lines")] {
        let csv = format!("Naam;Prijs\n{}", "A;1.500\n".repeat(lines));
        let import = checked(&client, "products", "x.csv", csv.as_bytes());
        let expected = format!("1.500 is read as 1500: {words} tells its decimal sign; see `decimal_sign`");
        assert_eq!(import["columns"][1]["note"], expected);
    }
    // Neither a credit nor a remark tells the decimal sign.
    for other in ["2.000-", "+2.000", "ca. 500"] {
        let csv = format!("Naam;Prijs\nA;1.500\nB;750\nC;{other}\n");
        let import = checked(&client, "products", "x.csv", csv.as_bytes());
        let shown = (&import["decimal_sign"], &import["columns"][1]["read"], &import["columns"][1]["note"]);
        assert_eq!(shown, (&json!("comma"), &json!("1500"), &json!(note)), "{other}");
    }
}

fn an_interrupted_import_is_not_run_twice(db: Db) {
    let (url, data, file) = (db.url.clone(), db.data.clone(), db.folder.path().join("x.csv"));
    let server = Server::start(db);
    let client = server.client();
    let account = client.get("/v1/account").expect(200).data()["id"].as_str().unwrap().to_string();
    let command = |arguments: &[&str]| -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kantoor"));
        command.args(["import", "--account", &account]).args(arguments);
        command.env("KANTOOR_DATABASE_URL", &url).env("KANTOOR_DATA", &data).output().unwrap()
    };
    let csv = b"Naam;Prijs\nHosting;1.500\nDomein;2.000\n";
    std::fs::write(&file, csv).unwrap();
    let file = file.to_str().unwrap();
    let import = checked(&client, "products", "x.csv", csv);
    let id = import["id"].as_str().unwrap();
    client.act(&format!("/v1/imports/{id}/run")).expect(200);
    let refused = complained(&command(&["products", file, "--run"]));
    assert!(refused.contains(id) && refused.contains("0 of 2 lines") && refused.contains("--continue"), "{refused}");
    let again = checked(&client, "products", "y.csv", csv);
    let again = format!("/v1/imports/{}/run", again["id"].as_str().unwrap());
    let refused = client.act(&again).expect(409);
    assert!(refused.text.contains(id), "{refused:?}");
    let shown = said(&command(&["products", file]));
    assert!(shown.contains("1.500, read as 1500") && shown.contains("Note: Prijs: 1.500 is read as 1500"), "{shown}");
    let done = said(&command(&["--continue", id]));
    assert!(done.contains(&format!("Import {id}: 2 created")), "{done}");
    assert_eq!(total(&client, "/v1/products"), 2);
    work(&server);
    assert_eq!(total(&client, "/v1/products"), 2);
    // Another import of the file is fine once the first has ended, if it is meant.
    assert!(complained(&command(&["products", file, "--run"])).contains("--again"));
    let started = said(&command(&["products", file, "--run", "--again"]));
    let line = started.lines().find(|line| line.starts_with("Started import ")).unwrap();
    assert!(line.contains("--continue") && started.contains("2 created"), "{started}");
    assert!(!command(&["--continue", "none"]).status.success());
    work(&server);
}

fn a_payment_date_means_paid(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let csv = b"Factuurnummer;Factuurdatum;Klant;Totaal excl. btw;Btw;Status;Betaaldatum;Openstaand
1;04-05-2024;De Ster;100,00;21,00;;20-05-2024;
2;04-05-2024;De Ster;100,00;21,00;;;
3;04-05-2024;De Ster;100,00;21,00;;20-05-2024;21,00
4;04-05-2024;De Ster;100,00;21,00;Open;20-05-2024;
";
    let import = checked(&client, "invoices", "x.csv", csv);
    assert_eq!(import["problems"], json!([]), "{import:#}");
    run_as_checked(&server, &client, &import);
    let status = |number: &str| invoice(&client, number)["payment_status"].as_str().unwrap().to_string();
    assert_eq!([status("1"), status("3")], ["paid", "partial"]);
    assert!(status("2") != "paid" && status("4") != "paid");
    assert!(invoice(&client, "1")["paid_at"].as_str().unwrap().starts_with("2024-05-20"));
}

fn amounts_in_another_currency_are_problems(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let csv = "Factuurnummer;Factuurdatum;Klant;Totaal excl. btw;Btw;Openstaand
1;04-05-2024;De Ster;€ 100,00;€ 21,00;0
2;04-05-2024;De Ster;$100,00;21,00;0
3;04-05-2024;De Ster;100,00;£ 21,00;0
4;04-05-2024;De Ster;100,00;21,00;USD 5
";
    let import = checked(&client, "invoices", "x.csv", csv.as_bytes());
    let found = problems(&import);
    let places: Vec<(i64, &str)> = found.iter().map(|(line, column, _)| (*line, column.as_str())).collect();
    assert_eq!(places, [(3, "Totaal excl. btw"), (4, "Btw"), (5, "Openstaand")], "{found:?}");
    assert!(found[0].2.starts_with("is in $, but all amounts are in EUR"), "{found:?}");
    run_as_checked(&server, &client, &import);
}

fn what_an_existing_record_has_is_not_required(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    client.post("/v1/products", json!({"name": "Hosting", "code": "H1", "price": 1})).expect(201);
    let body = json!({"resource": "products", "match_by": "code", "existing": "update"});
    let csv = b"code,price\nH1,2.50\nH2,3.50\nH1,many\n";
    let import = with(&client, body, "x.csv", csv).expect(201).data();
    let found = problems(&import);
    let places: Vec<(i64, &str)> = found.iter().map(|(line, column, _)| (*line, column.as_str())).collect();
    assert_eq!(places, [(3, "name"), (4, "price")], "{found:?}");
    let done = run_as_checked(&server, &client, &import);
    assert_eq!((&done["updated"], &done["failed"]), (&json!(1), &json!(2)), "{done:#}");
    assert_eq!(client.get("/v1/products").data()[0]["price"], 2.5);
    // A value that cannot be read is a problem of a change too.
    client.post("/v1/tasks", json!({"title": "Call", "deadline": "2026-05-04"})).expect(201);
    let done =
        run(&server, &client, &checked(&client, "tasks", "x.csv", b"title,deadline\nCall,2026-05-05\nMail,soon\n"));
    assert_eq!((&done["created"], &done["failed"]), (&json!(1), &json!(1)), "{done:#}");
}

fn a_field_comes_from_one_column(server: Shared) {
    let client = server.client();
    let csv = b"Naam,Titel,Prijs\nA,B,1\n";
    let twice = json!({"resource": "products", "mapping": {"Naam": "name", "Titel": "name"}});
    let refused = with(&client, twice, "x.csv", csv).expect(422);
    assert_eq!(refused.faults(), ["mapping.Titel: given_twice"], "{refused:?}");
    let chosen = json!({"resource": "products", "mapping": {"Titel": "name"}});
    let import = with(&client, chosen, "x.csv", csv).expect(201).data();
    assert_eq!(import["preview"][0], json!({"name": "B", "price": 1}), "{import:#}");
    let chosen = json!({"resource": "products", "mapping": {"Titel": "name"}});
    let import = with(&client, chosen, "x.csv", b"Titel,Titel,Prijs\nA,B,1\n").expect(201).data();
    assert_eq!(import["preview"][0], json!({"name": "A", "price": 1}), "{import:#}");
    assert_eq!((&import["columns"][0]["field"], &import["columns"][1]["field"]), (&json!("name"), &json!("")));
}

fn an_ambiguous_client_is_a_problem(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    for (name, email) in [("De Ster", ""), ("De Ster", ""), ("De Maan", "x@b.example"), ("De Zon", "x@b.example")] {
        client.post("/v1/clients", json!({"company_name": name, "email": email})).expect(201);
    }
    let csv = b"Factuurnummer;Factuurdatum;Klant;E-mail;Totaal excl. btw;Btw
1;31-01-2024;De Ster;;100,00;21,00
2;31-01-2024;De Zon;x@b.example;100,00;21,00
3;31-01-2024;;x@b.example;100,00;21,00
";
    let import = checked(&client, "invoices", "x.csv", csv);
    let found = problems(&import);
    let places: Vec<(i64, &str)> = found.iter().map(|(line, column, _)| (*line, column.as_str())).collect();
    assert_eq!(places, [(2, "Klant"), (4, "E-mail")], "{found:?}");
    assert!(found[0].2.contains("more than one client"), "{found:?}");
    run_as_checked(&server, &client, &import);
    assert_eq!(invoice(&client, "2")["client_name"].as_str().unwrap_or("De Zon"), "De Zon");
    assert_eq!(total(&client, "/v1/clients"), 4);
    // A client without a company is not the one of a line without a company.
    let person = json!({"type": "private", "firstname": "Jan", "lastname": "Smit", "email": "y@b.example"});
    client.post("/v1/clients", person).expect(201);
    client.post("/v1/clients", json!({"company_name": "De Wolk", "email": "y@b.example"})).expect(201);
    let csv = b"Factuurnummer;Factuurdatum;Klantnummer;E-mail;Totaal excl. btw;Btw
4;31-01-2024;;y@b.example;100,00;21,00
5;31-01-2024;K7;y@b.example;100,00;21,00
";
    let import = checked(&client, "invoices", "x.csv", csv);
    let found = problems(&import);
    let places: Vec<(i64, &str)> = found.iter().map(|(line, column, _)| (*line, column.as_str())).collect();
    assert_eq!(places, [(2, "E-mail"), (3, "E-mail")], "{found:?}");
    assert!(found[0].2.contains("a column for client.external_id"), "{found:?}");
    assert!(found[1].2.contains("none has this client.external_id"), "{found:?}");
}

fn encodings_and_arrays_are_understood(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let csv = b"Naam\nCaf\xe9\n";
    let refused = with(&client, json!({"resource": "products", "encoding": "utf-8"}), "x.csv", csv).expect(422);
    assert_eq!(refused.faults(), ["encoding: invalid_choice"]);
    let message = "is utf-8, but some characters of the file are not valid in it; the file seems to be windows-1252";
    assert!(refused.text.contains(message), "{refused:?}");
    let array = b"[\n  {\"name\": \"A\", \"price\": 1.50},\n  {\"price\": 2}\n]\n";
    let import: Value = checked(&client, "products", "x.json", array);
    assert_eq!((&import["format"], &import["lines"]), (&json!("jsonl"), &json!(2)));
    assert_eq!(problems(&import)[0].0, 3, "{import:#}");
    run_as_checked(&server, &client, &import);
}

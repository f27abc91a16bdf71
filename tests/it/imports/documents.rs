//! Old documents: number, totals, dates, status and original PDF.

use serde_json::{Value, json};

use super::{run, total, work};
use crate::on_both;
use crate::support::{Db, Server};

on_both![
    old_invoices_keep_their_numbers_totals_and_pdfs,
    open_amounts_count_without_a_total_with_vat,
    every_source_imports_its_clients_and_invoices,
];

const INVOICES: &str =
    "Factuurnummer;Factuurdatum;Vervaldatum;Bedrijfsnaam;E-mail;Status;Totaal excl. btw;Btw-bedrag;Totaal incl. btw
2024-0001;31-01-2024;14-02-2024;De Ster;info@ster.example;Betaald;100,00;21,00;121,00
2024-0002;01-02-2024;15-02-2024;De Ster;info@ster.example;Openstaand;1.000,00;150,00;1.150,00
F2026-0007;01-03-2024;15-03-2024;Jansen;jansen@example.com;Betaald;-50,00;-10,50;-60,50
";

fn old_invoices_keep_their_numbers_totals_and_pdfs(db: Db) {
    let (url, data) = (db.url.clone(), db.data.clone());
    let server = Server::start(db);
    let client = server.recorded_client(None);
    let pdf = b"%PDF-1.4 the original of 2024-0001";
    let zip = sheets::archive::pack([("map/2024-0001.pdf".to_string(), pdf.to_vec())]).unwrap();
    let pdfs = client.upload("pdfs.zip", &zip).expect(201).id();
    let file = client.upload("facturen.csv", INVOICES.as_bytes()).expect(201).id();
    let body = json!({"resource": "invoices", "source": "moneybird", "file_id": file, "pdfs_file_id": pdfs});
    let import = client.post("/v1/imports", body).expect(201).data();
    assert_eq!(import["problems"], json!([]), "{import:#}");
    let done = run(&server, &client, &import);
    assert_eq!((&done["created"], &done["failed"]), (&json!(3), &json!(0)), "{done:#}");
    let zeros = json!({"total_excl_vat": "0.00", "total_incl_vat": "0.00", "vat_amount": "0.00"});
    assert_eq!(done["report"]["difference"], zeros, "{:#}", done["report"]);
    let invoice = |number: &str| -> Value {
        let found = client.get(&format!("/v1/invoices?number={number}")).expect(200).data();
        client.get(&format!("/v1/invoices/{}", found[0]["id"].as_str().unwrap())).expect(200).data()
    };
    let first = invoice("2024-0001");
    assert_eq!(first["meta"]["generation_mode"], "final");
    assert_eq!((&first["invoice_date"], &first["due_date"]), (&json!("2024-01-31"), &json!("2024-02-14")));
    assert_eq!((&first["payment_status"], &first["total_incl_vat"]), (&json!("paid"), &json!(121)));
    let content = client.get(&format!("/v1/invoices/{}/pdf/content", first["id"].as_str().unwrap())).expect(200);
    assert_eq!(content.bytes, pdf);
    let mixed = invoice("2024-0002");
    assert_eq!((&mixed["vat_amount"], &mixed["rows"].as_array().unwrap().len()), (&json!(150), &2));
    assert_eq!(mixed["client_id"], first["client_id"], "the client is found again");
    assert_eq!(total(&client, "/v1/clients"), 2);
    assert_eq!(client.get("/v1/mails").expect(200).data(), json!([]));
    // Our own series is not used up.
    let own = json!({"title": "New", "client_id": first["client_id"], "rows": [{"name": "x", "unit_price": 1, "vat_code": "NL21"}], "generate": true});
    let number = client.post("/v1/invoices", own).expect(201).data()["number"].as_str().unwrap().to_string();
    assert!(number.ends_with("-0001"), "{number}");
    work(&server);
    let path = format!("/v1/imports/{}", import["id"].as_str().unwrap());
    client.act(&format!("{path}/undo")).expect(200);
    work(&server);
    let undone = client.get(&path).expect(200).data();
    assert_eq!(undone["status"], "undone", "{undone:#}");
    assert_eq!(total(&client, "/v1/invoices"), 1);
    super::super::files::drop_all(&server);
    let mut verify = std::process::Command::new(env!("CARGO_BIN_EXE_kantoor"));
    let verified = verify.arg("verify").env("KANTOOR_DATABASE_URL", url).env("KANTOOR_DATA", data).output().unwrap();
    assert!(verified.status.success(), "{verified:?}");
}

fn open_amounts_count_without_a_total_with_vat(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let text = "Factuurnummer;Datum;Bedrijf;Totaal excl. BTW;BTW-code;Openstaand
1;01-05-2024;De Ster;100,00;HOOG_VERK_21;50,00
2;13-05-2024;De Ster;100,05;LAAG_VERK_9;0,00
3;14-05-2024;De Ster;100,00;HOOG_VERK_21;121,00
4;15-05-2024;De Ster;100,00;HOOG_VERK_21;130,00
";
    let file = client.upload("x.csv", text.as_bytes()).expect(201).id();
    let body = json!({"resource": "invoices", "source": "e_boekhouden", "file_id": file});
    let import = client.post("/v1/imports", body).expect(201).data();
    let found = &import["problems"];
    assert_eq!((found.as_array().unwrap().len(), &found[0]["line"]), (1, &json!(5)), "{found:#}");
    assert_eq!(found[0]["message"], "is 130.00, which does not fit the total of 121.00");
    run(&server, &client, &import);
    let status = |number: &str| {
        let listed = client.get(&format!("/v1/invoices?number={number}")).expect(200).data()[0].clone();
        let invoice = client.get(&format!("/v1/invoices/{}", listed["id"].as_str().unwrap())).expect(200).data();
        (invoice["payment_status"].clone(), invoice["meta"]["open_amount"].clone())
    };
    assert_eq!(status("1"), (json!("partial"), json!(50)));
    assert_eq!(status("2"), (json!("paid"), json!(0)));
    assert_eq!(status("3"), (json!("open"), json!(121)));

    // The rows alone do not say it before the invoice is made.
    let rows = r#"{"number": "5", "invoice_date": "2024-05-16", "client.company_name": "De Ster", "open_amount": 50, "rows": [{"name": "x", "unit_price": 100, "vat_rate": "21"}]}"#;
    let file = client.upload("x.jsonl", rows.as_bytes()).expect(201).id();
    let import = client.post("/v1/imports", json!({"resource": "invoices", "file_id": file})).expect(201).data();
    assert_eq!(import["problems"][0]["field"], "open_amount", "{import:#}");
}

fn every_source_imports_its_clients_and_invoices(db: Db) {
    let server = Server::start(db);
    let files: &[(&str, &str, &str)] = &[
        (
            "moneybird",
            "clients",
            "Klantnummer,Bedrijfsnaam,Voornaam,Achternaam,Adres,Postcode,Plaats,Land,E-mail\n1,De Ster,Anna,Vries,Dorpsstraat 1,1234 AB,Delft,NL,a@b.example\n",
        ),
        (
            "teamleader",
            "clients",
            "Name,VAT number,Email,Telephone,Street,Zip code,City,Country\nDe Ster,,a@b.example,015,Dorpsstraat 1,1234 AB,Delft,NL\n",
        ),
        (
            "teamleader",
            "invoices",
            "Invoice number,Invoice date,Customer,Status,Total excl. VAT,Total incl. VAT\n2024/1,2024-05-04,De Ster,matched,100.00,121.00\n",
        ),
        (
            "invoice_ninja",
            "clients",
            "Client Name,Street,Postal Code,City,Contact First Name,Contact Last Name,Contact Email\nDe Ster,Dorpsstraat 1,1234 AB,Delft,Anna,Vries,a@b.example\n",
        ),
        (
            "invoice_ninja",
            "invoices",
            "Invoice Number,Date,Client,Amount,Total Taxes,Status\n0001,2024-05-04,De Ster,121.00,21.00,Paid\n",
        ),
        ("stripe", "clients", "id,Description,Email,Name,Created (UTC)\ncus_1,,a@b.example,,2024-05-04 10:00\n"),
        (
            "stripe",
            "invoices",
            "id,Number,Customer,Customer Email,Date (UTC),Subtotal,Tax,Total,Status\nin_1,ABC-0001,cus_1,a@b.example,2024-05-04 10:00,100.00,21.00,121.00,paid\n",
        ),
        (
            "e_boekhouden",
            "clients",
            "Code;Bedrijf;Contactpersoon;Adres;Postcode;Plaats;Email\n12;De Ster;Vries;Dorpsstraat 1;1234 AB;Delft;a@b.example\n",
        ),
        (
            "e_boekhouden",
            "invoices",
            "Factuurnummer;Datum;Relatiecode;Relatie;Totaal excl. BTW;BTW;Totaal incl. BTW\n2024001;04-05-2024;12;De Ster;100,00;21,00;121,00\n",
        ),
    ];
    for (source, resource, text) in files {
        let client = server.client();
        let file = client.upload("x.csv", text.as_bytes()).expect(201).id();
        let body = json!({"resource": resource, "source": source, "file_id": file});
        let import = client.post("/v1/imports", body).expect(201).data();
        let done = run(&server, &client, &import);
        assert_eq!((&done["created"], &done["failed"]), (&json!(1), &json!(0)), "{source} {resource}: {done:#}");
        if *resource == "invoices" {
            assert_eq!(done["report"]["difference"]["total_incl_vat"], "0.00", "{source}: {done:#}");
        }
    }
}

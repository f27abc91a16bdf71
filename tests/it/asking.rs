//! What an invoice asks of its client: a transfer, and nothing while it is collected or once it is settled.

use serde_json::{Value, json};

use crate::direct_debit::{advance, billed, firm, subscribe};
use crate::on_both;
use crate::support::{Client, Shared};

on_both![
    an_invoice_that_is_collected_asks_nothing,
    a_settled_invoice_asks_nothing,
    a_partly_settled_invoice_asks_for_the_rest,
    a_revoked_mandate_ends_collections,
    what_was_paid_is_not_collected_again,
    an_answered_quote_asks_for_no_answer,
    no_day_that_has_passed_is_promised,
    nothing_is_collected_without_an_iban,
    an_own_text_never_asks_for_what_is_settled,
    the_pdf_of_a_quote_says_how_it_was_answered,
    a_collection_is_from_the_account_of_its_client,
    a_merged_client_is_collected_from_one_account,
    a_message_is_never_empty,
    a_text_from_before_a_payment_is_warned_of,
    a_quote_is_expired_as_soon_as_it_is_final,
];

/// An account that collects through its bank, and a client with a signed mandate.
pub fn with_mandate(client: &Client) -> String {
    client.patch("/v1/settings", json!({"provider": "manual", "creditor_id": "NL69ZZZ123456780000"})).expect(200);
    let identity = client.get("/v1/corporate-identities").data()[0]["id"].as_str().unwrap().to_string();
    let bank = json!({"name": "Jansen & Zn", "iban": "NL02ABNA0123456789"});
    client.patch(&format!("/v1/corporate-identities/{identity}"), bank).expect(200);
    let firm = firm(client);
    let mandate = json!({"mandate_id": "M-1", "signed_on": "2026-05-01"});
    client.post(&format!("/v1/clients/{firm}/direct-debit/mandate"), mandate).expect(201);
    firm
}

fn page(client: &Client, invoice: &Value) -> String {
    let url = invoice["web_url"].as_str().unwrap();
    client.send("GET", &url[url.find("/d/").unwrap()..], &[("authorization", "")], "").expect(200).text
}

fn message(client: &Client, path: &str, kind: &str) -> String {
    let preview = client.get(&format!("{path}/send-preview?send_type={kind}")).expect(200).data();
    preview["message"].as_str().unwrap().to_string()
}

fn collection(invoice: &Value) -> (Value, Value, Value) {
    let meta = &invoice["meta"];
    (meta["collection_date"].clone(), meta["collection_account"].clone(), meta["revision"].clone())
}

fn an_invoice_that_is_collected_asks_nothing(server: Shared) {
    let client = server.client();
    let firm = with_mandate(&client);
    let subscription = subscribe(&client, &firm);
    advance(&client, "2026-05-10T10:00:00Z");
    let (invoice, payments) = billed(&client, &subscription);
    let path = format!("/v1/invoices/{}", invoice["id"].as_str().unwrap());
    let shown = client.get(&path).data();
    assert_eq!(collection(&shown), (json!("2026-05-12"), json!("NL** ABNA **** **43 00"), json!(1)));
    let says = message(&client, &path, "subscription");
    let account = "12 mei 2026 automatisch af van rekening NL**\u{a0}ABNA\u{a0}****\u{a0}**43\u{a0}00.";
    assert!(says.contains(account) && !says.contains("Wij verzoeken"), "{says}");
    assert!(!message(&client, &path, "invoice_rem1").contains("Wij verzoeken"));
    let mail = client.get(&format!("{path}/send-preview/html")).expect(200).text;
    assert!(mail.contains("Wordt afgeschreven") && !mail.contains("Nog te betalen"), "{mail}");
    let html = page(&client, &shown);
    assert!(html.contains("Wordt afgeschreven") && html.contains("12 mei 2026 automatisch af van rekening"), "{html}");
    assert!(!html.contains("id=\"pay\"") && !html.contains("0417"), "{html}");
    // It is not late while it is collected.
    let before = server.last_seq(&client);
    advance(&client, "2026-06-01T10:00:00Z");
    assert_eq!(client.get(&path).data()["payment_status"], "open");
    assert!(!server.events(&client, before).contains(&"invoice.late".to_string()));
    client.post("/v1/direct-debit/batches", json!({"collection_date": "2026-06-05"})).expect(201);
    assert_eq!(collection(&client.get(&path).data()).0, "2026-06-05", "the day of the bank file");
    // When the collection fails, it asks for a transfer, and is late.
    let payment = format!("{path}/payments/{}", payments[0]["id"].as_str().unwrap());
    client.patch(&payment, json!({"status": "failed"})).expect(200);
    let failed = client.get(&path).data();
    assert_eq!(collection(&failed), (json!(null), json!(""), json!(3)));
    assert_eq!(failed["payment_status"], "overdue");
    assert!(server.events(&client, before).contains(&"invoice.late".to_string()));
    assert!(
        message(&client, &path, "invoice").contains(
            "uiterlijk op 24 mei 2026 betaald moeten zijn. Wij verzoeken u €\u{a0}121,00 alsnog over te maken."
        )
    );
    assert!(page(&client, &failed).contains("Deze factuur had uiterlijk op 24 mei 2026 betaald moeten zijn."));
    // Collecting it again makes it wait again.
    client.act(&format!("{path}/collect")).expect(201);
    let again = client.get(&path).data();
    assert_eq!((&again["payment_status"], &again["meta"]["collection_date"]), (&json!("open"), &json!("2026-06-03")));
    let payments = client.get(&format!("{path}/payments")).data();
    let last = payments.as_array().unwrap().iter().find(|one| one["status"] == "created").unwrap();
    let last = format!("{path}/payments/{}", last["id"].as_str().unwrap());
    for status in ["open", "paid"] {
        client.patch(&last, json!({"status": status})).expect(200);
    }
    let paid = client.get(&path).data();
    assert_eq!((&paid["payment_status"], &paid["meta"]["collection_date"]), (&json!("paid"), &json!(null)));
}

fn a_settled_invoice_asks_nothing(server: Shared) {
    let client = server.client();
    with_mandate(&client);
    let body =
        json!({"title": "Ketel", "generate": true, "rows": [{"name": "Ketel", "unit_price": 100, "vat_rate": 21}]});
    let invoice = client.post("/v1/invoices", body.clone()).expect(201);
    let path = format!("/v1/invoices/{}", invoice.id());
    let asked = client.get(&format!("{path}/pdf/content")).expect(200).bytes;
    assert!(page(&client, &invoice.data()).contains("id=\"pay\""));
    client.post(&format!("{path}/payments"), json!({})).expect(201);
    let paid = client.get(&path).data();
    assert_eq!(paid["meta"]["revision"], 2);
    assert_ne!(client.get(&format!("{path}/pdf/content")).expect(200).bytes, asked, "its PDF says that it is paid");
    let revisions = client.get(&format!("{path}/revisions")).expect(200).data();
    assert_eq!(revisions.as_array().unwrap().len(), 2, "the earlier PDF is kept: {revisions}");
    for kind in ["invoice", "invoice_rem1", "invoice_rem3"] {
        let says = message(&client, &path, kind);
        assert!(says.contains("is op 4 mei 2026 betaald") && !says.contains("€"), "{says}");
    }
    // The mail of a draft asks what the invoice will ask, since sending it makes it final.
    let mut draft = body.clone();
    draft["generate"] = json!(false);
    let draft = format!("/v1/invoices/{}", client.post("/v1/invoices", draft).expect(201).id());
    assert!(message(&client, &draft, "invoice").contains("verzoeken"));
    // The date of supply is only said where it differs.
    for (day, is_said) in [("2026-05-04", false), ("2026-05-02", true)] {
        let mut supplied = body.clone();
        supplied["supply_date"] = json!(day);
        let supplied = client.post("/v1/invoices", supplied).expect(201).data();
        assert_eq!(page(&client, &supplied).contains("2 mei 2026"), is_said, "{day}");
        assert_eq!(page(&client, &supplied).contains("Leverdatum"), is_said, "{day}");
    }
    // Neither does one that was credited.
    let credited = client.post("/v1/invoices", body).expect(201).id();
    client.post(&format!("/v1/invoices/{credited}/credit"), json!({})).expect(201);
    let says = message(&client, &format!("/v1/invoices/{credited}"), "invoice");
    assert!(says.contains("Deze factuur is gecrediteerd."), "{says}");
}

fn a_partly_settled_invoice_asks_for_the_rest(server: Shared) {
    let client = server.client();
    with_mandate(&client);
    let rows = json!([{"name": "Ketel", "unit_price": 100, "vat_rate": 21}, {"name": "Slang", "unit_price": 10, "vat_rate": 21}]);
    let invoice = client.post("/v1/invoices", json!({"title": "Ketel", "generate": true, "rows": rows})).expect(201);
    let path = format!("/v1/invoices/{}", invoice.id());
    let pdf = || client.get(&format!("{path}/pdf/content")).expect(200).bytes;
    let (total, revision) = (pdf(), || client.get(&path).data()["meta"]["revision"].clone());
    client.post(&format!("{path}/payments"), json!({"amount": 33.1})).expect(201);
    assert_eq!(revision(), 2, "its PDF asks for less");
    let less = pdf();
    assert_ne!(less, total);
    let says = message(&client, &path, "invoice");
    assert!(says.contains("€\u{a0}100,00") && !says.contains("133,10"), "{says}");
    client.post(&format!("{path}/credit"), json!({"credit_all": false, "row_indexes": [1]})).expect(201);
    assert_eq!(revision(), 3);
    assert_ne!(pdf(), less);
    // A payment that is still open changes nothing that is asked.
    client.post(&format!("{path}/payments"), json!({"amount": 1, "type": "online", "status": "open"})).expect(201);
    assert_eq!(revision(), 3);
}

fn a_revoked_mandate_ends_collections(server: Shared) {
    let client = server.client();
    let firm = with_mandate(&client);
    let subscription = subscribe(&client, &firm);
    advance(&client, "2026-05-10T10:00:00Z");
    client.delete(&format!("/v1/clients/{firm}/direct-debit/mandate")).expect(204);
    let (invoice, payments) = billed(&client, &subscription);
    let path = format!("/v1/invoices/{}", invoice["id"].as_str().unwrap());
    assert_eq!(payments[0]["status"], "canceled");
    assert_eq!(client.get(&path).data()["meta"]["collection_date"], json!(null));
}

fn what_was_paid_is_not_collected_again(server: Shared) {
    let client = server.client();
    let firm = with_mandate(&client);
    let invoice = || {
        let rows = json!([{"name": "Ketel", "unit_price": 100, "vat_rate": 21}]);
        let body = json!({"title": "Ketel", "client_id": firm, "generate": true, "rows": rows});
        let path = format!("/v1/invoices/{}", client.post("/v1/invoices", body).expect(201).id());
        client.act(&format!("{path}/collect")).expect(201);
        path
    };
    let (paid, partly, credited) = (invoice(), invoice(), invoice());
    let pay = |path: &str, amount: i64| client.post(&format!("{path}/payments"), json!({"amount": amount})).expect(201);
    let collection = |path: &str| client.get(&format!("{path}/payments?type=online")).data()[0].clone();
    pay(&paid, 121);
    client.act(&format!("{credited}/credit")).expect(201);
    pay(&partly, 21);
    let made = client.post("/v1/direct-debit/batches", json!({})).expect(201);
    assert_eq!((&made.data()["count"], &made.data()["amount"]), (&json!(1), &json!(100)), "{}", made.text);
    assert!(made.text.contains("is collected for 100 instead of 121: the rest was paid or credited."), "{}", made.text);
    let file = client.get(&format!("/v1/direct-debit/batches/{}/content", made.id())).expect(200).text;
    assert!(file.contains(">100.00</InstdAmt>") && file.matches("<InstdAmt").count() == 1, "{file}");
    assert_eq!((&collection(&partly)["amount"], &collection(&partly)["status"]), (&json!(100), &json!("pending")));
    for path in [&paid, &credited] {
        assert_eq!(collection(path)["status"], "canceled");
        assert_eq!(client.get(path).data()["meta"]["collection_date"], json!(null));
    }
    assert_eq!(made.json()["meta"]["left_out"].as_array().unwrap().len(), 2);
    // What is in the file stays: the bank has it.
    pay(&partly, 100);
    assert_eq!(collection(&partly)["status"], "pending");
}

fn an_answered_quote_asks_for_no_answer(server: Shared) {
    let client = server.client();
    let body = json!({"title": "Ketel", "generate": true, "due_date": "2026-05-18", "rows": [{"name": "Ketel", "unit_price": 100, "vat_rate": 21}]});
    let quote = || format!("/v1/quotes/{}", client.post("/v1/quotes", body.clone()).expect(201).id());
    let (open, accepted, rejected, invoiced) = (quote(), quote(), quote(), quote());
    client.act(&format!("{accepted}/accept")).expect(200);
    client.act(&format!("{rejected}/reject")).expect(200);
    client.act(&format!("{invoiced}/invoice")).expect(201);
    for kind in ["quote", "quote_rem1", "quote_rem2", "quote_rem3"] {
        for (path, said) in [
            (&accepted, "U hebt deze offerte geaccepteerd; u hoeft niets meer te doen."),
            (&rejected, "U hebt deze offerte afgewezen."),
            (&invoiced, "Voor deze offerte is al een factuur opgesteld; u hoeft niet meer te reageren."),
        ] {
            let says = message(&client, path, kind);
            let asks = ["accepteren", "geldig tot", "reactie van u", "bekijken"];
            assert!(says.contains(said) && !asks.iter().any(|part| says.contains(part)), "{kind}: {says}");
        }
        assert!(message(&client, &open, kind).contains("geldig tot en met 18 mei 2026"), "{kind}");
    }
    assert!(message(&client, &accepted, "order_confirmation").contains("bevestigen"));
    // A text of the account is used for the quote itself, and never for a reminder of what was answered.
    for kind in ["quote", "quote_rem1"] {
        let own = json!({"send_type": kind, "language": "nl", "subject": "s", "message": "Van ons: {number}."});
        client.post("/v1/mail-templates", own).expect(201);
    }
    assert!(message(&client, &accepted, "quote").starts_with("Van ons: "));
    assert!(message(&client, &accepted, "quote_rem1").contains("U hebt deze offerte geaccepteerd"));
    assert!(message(&client, &open, "quote_rem1").starts_with("Van ons: "));
    advance(&client, "2026-06-01T10:00:00Z");
    let says = message(&client, &open, "quote_rem2");
    assert!(says.contains("De offerte was geldig tot en met 18 mei 2026.") && !says.contains("reactie"), "{says}");
}

fn no_day_that_has_passed_is_promised(server: Shared) {
    let client = server.client();
    let firm = with_mandate(&client);
    let subscription = subscribe(&client, &firm);
    advance(&client, "2026-05-10T10:00:00Z");
    let path = format!("/v1/invoices/{}", billed(&client, &subscription).0["id"].as_str().unwrap());
    let row = json!([{"name": "Ketel", "unit_price": 100, "vat_rate": 21}]);
    let body = json!({"title": "Ketel", "generate": true, "rows": row, "language": "nl"});
    let asked = client.post("/v1/invoices", body).expect(201).data();
    let transfer = format!("/v1/invoices/{}", asked["id"].as_str().unwrap());
    assert!(message(&client, &transfer, "invoice").contains("uiterlijk 24 mei 2026 over te maken."));
    // Nobody has made a bank file, and nobody has paid.
    advance(&client, "2026-06-01T10:00:00Z");
    let shown = client.get(&path).data();
    let passed =
        "Wij schrijven €\u{a0}121,00 automatisch af van rekening NL**\u{a0}ABNA\u{a0}****\u{a0}**43\u{a0}00. U hoeft";
    for says in
        [message(&client, &path, "subscription"), message(&client, &path, "invoice_rem1"), page(&client, &shown)]
    {
        assert!(says.contains(passed) && !says.contains("op of rond"), "{says}");
    }
    let html = client.get(&format!("{path}/send-preview/html")).expect(200).text;
    assert!(html.contains("Wordt afgeschreven") && !html.contains("Afschrijving op"), "{html}");
    let late = "Deze factuur had uiterlijk op 24 mei 2026 betaald moeten zijn. Wij verzoeken u €\u{a0}121,00 alsnog over te maken.";
    for kind in ["invoice", "subscription"] {
        let says = message(&client, &transfer, kind);
        assert!(says.contains(late) && !says.contains("uiterlijk 24 mei"), "{says}");
    }
    let preview = json!({"send_type": "invoice", "language": "en", "document_id": asked["id"]});
    let english = client.post("/v1/mail-templates/preview", preview).expect(200).data()["message"].to_string();
    assert!(english.contains("This invoice was due on 24 May 2026. Please transfer €121.00."), "{english}");
}

fn nothing_is_collected_without_an_iban(server: Shared) {
    let client = server.client();
    let firm = with_mandate(&client);
    let other = client.post("/v1/clients", json!({"company_name": "Zonder Bank"})).expect(201).id();
    let signed = client.post(&format!("/v1/clients/{other}/direct-debit/mandate"), json!({"mandate_id": "MW"}));
    assert!(signed.expect(201).text.contains("Zonder Bank has no IBAN"));
    let invoice = |client_id: &str| {
        let rows = json!([{"name": "Ketel", "unit_price": 100, "vat_rate": 21}]);
        let body = json!({"title": "Ketel", "client_id": client_id, "generate": true, "rows": rows});
        format!("/v1/invoices/{}", client.post("/v1/invoices", body).expect(201).id())
    };
    let (collected, unpaid) = (invoice(&firm), invoice(&other));
    let refused = client.act(&format!("{unpaid}/collect")).expect(409);
    assert_eq!(refused.code(), "invalid_transition");
    assert!(refused.text.contains("Zonder Bank has no IBAN"), "{}", refused.text);
    assert!(message(&client, &unpaid, "invoice").contains("Wij verzoeken u"), "the client is asked to pay");
    assert_eq!(client.get(&format!("{unpaid}/payments")).data(), json!([]));
    client.patch(&format!("/v1/clients/{other}"), json!({"iban": "NL91ABNA0417164300"})).expect(200);
    client.act(&format!("{unpaid}/collect")).expect(201);
    client.patch(&format!("/v1/clients/{other}"), json!({"iban": ""})).expect(200);
    // The file names what it leaves out: here a collection that a caller recorded.
    let recorded = json!({"type": "online", "provider": "manual", "status": "created"});
    client.post(&format!("{unpaid}/payments"), recorded).expect(201);
    let number = client.get(&unpaid).data()["number"].as_str().unwrap().to_string();
    let refused = client.post("/v1/direct-debit/batches", json!({})).expect(409);
    assert!(refused.text.contains(&format!("{number} (Zonder Bank has no IBAN)")), "{}", refused.text);
    client.act(&format!("{collected}/collect")).expect(201);
    let made = client.post("/v1/direct-debit/batches", json!({})).expect(201);
    let left_out = made.json()["meta"]["left_out"].clone();
    assert_eq!(
        (&left_out[0]["number"], &left_out[0]["reason"], left_out[0]["invoice_id"].as_str().unwrap()),
        (&json!(number), &json!("Zonder Bank has no IBAN"), unpaid.rsplit('/').next().unwrap())
    );
    assert_eq!((left_out.as_array().unwrap().len(), &made.data()["count"]), (1, &json!(1)));
}

fn an_own_text_never_asks_for_what_is_settled(server: Shared) {
    let client = server.client();
    let firm = with_mandate(&client);
    let own = |kind: &str, message: &str| {
        let body = json!({"send_type": kind, "language": "nl", "subject": "Eigen {number}", "message": message});
        client.post("/v1/mail-templates", body).expect(201)
    };
    let asking = own("invoice", "{salutation},\n\nWilt u {amount} overmaken voor {due_date}?");
    let template = format!("/v1/mail-templates/{}", asking.id());
    let told = asking.json()["meta"]["warnings"][0].as_str().unwrap().to_string();
    assert!(told.contains("without {payment}"), "{told}");
    let rows = json!([{"name": "Ketel", "unit_price": 100, "vat_rate": 21}]);
    let body = json!({"title": "Ketel", "client_id": firm, "generate": true, "rows": rows});
    let invoice = || format!("/v1/invoices/{}", client.post("/v1/invoices", body.clone()).expect(201).id());
    let (open, paid, collected) = (invoice(), invoice(), invoice());
    client.post(&format!("{paid}/payments"), json!({})).expect(201);
    client.act(&format!("{collected}/collect")).expect(201);
    let credit = client.post(&format!("{}/credit", invoice()), json!({})).expect(201).id();
    assert!(message(&client, &open, "invoice").contains("Wilt u €\u{a0}121,00 overmaken"));
    let asks = |subject: &str, text: &str| {
        let changed = client.patch(&template, json!({"subject": subject, "message": text})).expect(200);
        assert!(changed.text.contains("without {payment}"), "{}", changed.text);
        for kind in ["invoice", "invoice_rem1"] {
            for (path, said) in [(&paid, "is op 4 mei 2026 betaald"), (&collected, "automatisch af van rekening")] {
                let mail = client.get(&format!("{path}/send-preview?send_type={kind}")).expect(200).data();
                let says = mail["message"].as_str().unwrap();
                assert!(says.contains(said) && !says.contains("Wilt u"), "{text}, {kind}: {says}");
                assert!(mail["subject"].as_str().unwrap().starts_with("Factuur F2026-"), "{mail}");
            }
        }
    };
    asks("Eigen", "Wilt u {amount} overmaken? {payment}");
    asks("Eigen", "Wilt u {total} overmaken?");
    asks("Eigen", "Wilt u voor {due_date} betalen? {payment}");
    asks("Wilt u {amount} betalen?", "Dag. {payment}");
    asks("Eigen {number}", "{salutation},\n\nWilt u {amount} overmaken voor {due_date}?");
    let about = json!({"send_type": "invoice", "document_id": paid.rsplit('/').next().unwrap()});
    let preview = client.post("/v1/mail-templates/preview", about).expect(200);
    assert!(preview.data()["message"].as_str().unwrap().contains("betaald"), "{}", preview.text);
    assert!(preview.json()["meta"]["warnings"][0].as_str().unwrap().contains("without {payment}"));
    // A text that leaves the request to {payment} is used as it is, and a message is never empty.
    let fits = client.patch(&template, json!({"message": "Van ons: {payment} Totaal {total}."})).expect(200);
    assert_eq!(fits.json()["meta"]["warnings"], json!(null));
    let says = message(&client, &paid, "invoice");
    assert!(says.starts_with("Van ons: Deze factuur is op") && says.ends_with("Totaal €\u{a0}121,00."), "{says}");
    client.patch(&template, json!({"message": "{payment}"})).expect(200);
    own("credit", "{payment}");
    for kind in ["invoice", "credit"] {
        let says = message(&client, &format!("/v1/invoices/{credit}"), kind);
        assert!(says.contains("creditfactuur"), "{kind}: {says}");
    }
    // A quote that was answered is not asked for again.
    own("quote", "Gaat u voor {due_date} akkoord?");
    let quote = || format!("/v1/quotes/{}", client.post("/v1/quotes", body.clone()).expect(201).id());
    let (asked, accepted) = (quote(), quote());
    client.act(&format!("{accepted}/accept")).expect(200);
    assert!(message(&client, &asked, "quote").starts_with("Gaat u voor"));
    let says = message(&client, &accepted, "quote");
    assert!(says.contains("U hebt deze offerte geaccepteerd") && !says.contains("Gaat u"), "{says}");
}

fn the_pdf_of_a_quote_says_how_it_was_answered(server: Shared) {
    let client = server.client();
    let rows = json!([{"name": "Ketel", "unit_price": 100, "vat_rate": 21}]);
    let body = json!({"title": "Ketel", "generate": true, "due_date": "2026-05-18", "rows": rows});
    let quote = || format!("/v1/quotes/{}", client.post("/v1/quotes", body.clone()).expect(201).id());
    let pdf = |path: &str| client.get(&format!("{path}/pdf/content")).expect(200).bytes;
    let revision = |path: &str| client.get(path).data()["meta"]["revision"].clone();
    let (accepted, rejected, expired) = (quote(), quote(), quote());
    let asking = [&accepted, &rejected, &expired].map(|path| pdf(path));
    client.act(&format!("{accepted}/accept")).expect(200);
    client.act(&format!("{rejected}/reject")).expect(200);
    advance(&client, "2026-06-01T10:00:00Z");
    for (path, before) in [&accepted, &rejected, &expired].into_iter().zip(asking) {
        assert_eq!(revision(path), 2, "{path}");
        assert_ne!(pdf(path), before, "{path}");
        assert_eq!(client.get(&format!("{path}/revisions")).data().as_array().unwrap().len(), 2, "the first is kept");
    }
    // Its invoice says nothing new, and a later day makes it valid again.
    client.act(&format!("{accepted}/invoice")).expect(201);
    assert_eq!(revision(&accepted), 2);
    client.patch(&expired, json!({"due_date": "2026-06-18"})).expect(200);
    assert_eq!((revision(&expired), client.get(&expired).data()["payment_status"].clone()), (json!(3), json!("open")));
}

/// Invoices of a client, all of them under collection.
fn collected(client: &Client, firm: &str, count: usize) -> Vec<String> {
    let rows = json!([{"name": "Ketel", "unit_price": 100, "vat_rate": 21}]);
    let body = json!({"title": "Ketel", "client_id": firm, "generate": true, "rows": rows});
    let paths = (0..count).map(|_| {
        let path = format!("/v1/invoices/{}", client.post("/v1/invoices", body.clone()).expect(201).id());
        client.act(&format!("{path}/collect")).expect(201);
        path
    });
    paths.collect()
}

fn payment(client: &Client, path: &str) -> Value {
    client.get(&format!("{path}/payments")).expect(200).data()[0].clone()
}

fn a_collection_is_from_the_account_of_its_client(server: Shared) {
    let client = server.client();
    let firm = with_mandate(&client);
    let in_file = collected(&client, &firm, 1).remove(0);
    client.post("/v1/direct-debit/batches", json!({})).expect(201);
    let waiting = collected(&client, &firm, 1).remove(0);
    let account = |path: &str| client.get(path).data()["meta"]["collection_account"].clone();
    let of_client = format!("/v1/clients/{firm}");
    // The next file has the new account, and the invoice names it. The bank has the old account of the other invoice.
    client.patch(&of_client, json!({"iban": "NL20INGB0001234567"})).expect(200);
    assert_eq!(
        (account(&in_file), account(&waiting)),
        (json!("NL** ABNA **** **43 00"), json!("NL** INGB **** **45 67"))
    );
    let shown = client.get(&waiting).data();
    assert_eq!(shown["meta"]["revision"], 3, "its PDF names the new account");
    for says in [message(&client, &waiting, "invoice"), page(&client, &shown)] {
        assert!(says.contains("NL**\u{a0}INGB\u{a0}****\u{a0}**45\u{a0}67"), "{says}");
    }
    // Another change is none of the account.
    let before = server.last_seq(&client);
    client.patch(&of_client, json!({"phone": "1"})).expect(200);
    assert_eq!(server.events(&client, before), ["customer.updated"]);
    // Without an account nothing is promised: the invoice asks for a transfer and becomes late.
    client.patch(&of_client, json!({"iban": ""})).expect(200);
    let canceled = payment(&client, &waiting);
    assert_eq!(canceled["status"], "canceled");
    assert_eq!(canceled["meta"]["feedback_data"]["reason"], "The client no longer has an IBAN.");
    assert!(server.events(&client, before).contains(&"payment.failed".to_string()));
    assert_eq!(client.get(&waiting).data()["meta"]["collection_date"], json!(null));
    assert!(message(&client, &waiting, "invoice").contains("Wij verzoeken u"));
    assert_eq!(
        (payment(&client, &in_file)["status"].clone(), account(&in_file)),
        (json!("pending"), json!("NL** ABNA **** **43 00"))
    );
    advance(&client, "2026-06-01T10:00:00Z");
    let status = |path: &str| client.get(path).data()["payment_status"].clone();
    assert_eq!((status(&waiting), status(&in_file)), (json!("overdue"), json!("open")));
    // With an account it can be collected again.
    client.patch(&of_client, json!({"iban": "NL20INGB0001234567"})).expect(200);
    client.act(&format!("{waiting}/collect")).expect(201);
    let made = client.post("/v1/direct-debit/batches", json!({})).expect(201).id();
    let file = client.get(&format!("/v1/direct-debit/batches/{made}/content")).expect(200).text;
    assert!(file.contains("<IBAN>NL20INGB0001234567</IBAN>") && !file.contains("ABNA0417164300"), "{file}");
}

fn a_merged_client_is_collected_from_one_account(server: Shared) {
    let client = server.client();
    let firm = with_mandate(&client);
    let path = collected(&client, &firm, 1).remove(0);
    // The client that is kept has no account, and gets that of the duplicate.
    let kept = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    client.post(&format!("/v1/clients/{kept}/merge"), json!({"duplicate_id": firm})).expect(200);
    assert_eq!(payment(&client, &path)["status"], "created");
    // One with an account of its own is collected from that.
    let other = json!({"company_name": "De Ster", "iban": "NL20INGB0001234567"});
    let other = client.post("/v1/clients", other).expect(201).id();
    client.post(&format!("/v1/clients/{other}/merge"), json!({"duplicate_id": kept})).expect(200);
    assert_eq!(payment(&client, &path)["status"], "created");
    assert_eq!(client.get(&path).data()["meta"]["collection_account"], "NL** INGB **** **45 67");
}

fn a_message_is_never_empty(server: Shared) {
    let client = server.client();
    let rows = json!([{"name": "Ketel", "unit_price": 100, "vat_rate": 21}]);
    let invoice =
        client.post("/v1/invoices", json!({"title": "Ketel", "generate": true, "rows": rows})).expect(201).id();
    let credit = client.post(&format!("/v1/invoices/{invoice}/credit"), json!({})).expect(201).id();
    let send = |id: &str, message: &str| {
        let body = json!({"to": "anna@ster.example", "subject": "Van ons", "message": message});
        client.post(&format!("/v1/invoices/{id}/send"), body)
    };
    for message in ["{payment}", "{reference} {payment}\n"] {
        let refused = send(&credit, message).expect(422);
        assert_eq!(refused.faults(), ["message: required"]);
        assert!(refused.text.contains("would be empty"), "{}", refused.text);
    }
    assert_eq!(client.get("/v1/mails").data(), json!([]));
    send(&credit, "Dag. {payment}").expect(200);
    send(&invoice, "{payment}").expect(200);
}

fn a_text_from_before_a_payment_is_warned_of(server: Shared) {
    let client = server.client();
    let rows = json!([{"name": "Ketel", "unit_price": 100, "vat_rate": 21}]);
    let invoice =
        client.post("/v1/invoices", json!({"title": "Ketel", "generate": true, "rows": rows})).expect(201).id();
    let path = format!("/v1/invoices/{invoice}");
    let text = |kind: &str| message(&client, &path, kind);
    let send = |message: &str| {
        let body = json!({"to": "anna@ster.example", "subject": "Van ons", "message": message});
        client.post(&format!("{path}/send"), body).expect(200).json()["meta"]["warnings"][0].clone()
    };
    let (before, reminder) = (text("invoice"), text("invoice_rem1"));
    let shown = |kind: &str| client.get(&format!("{path}/send-preview/html?send_type={kind}"));
    assert!(shown("invoice_rem1").expect(200).text.contains("Graag herinneren wij u"));
    assert_eq!(shown("quote").expect(422).faults(), ["send_type: invalid_choice"]);
    assert_eq!(send(&before), json!(null));
    client.post(&format!("{path}/payments"), json!({"amount": 21})).expect(201);
    let less = send(&before);
    assert!(less.to_string().contains("but €\u{a0}100,00 of F2026-0001 is still to be paid"), "{less}");
    assert_eq!(send(&text("invoice")), json!(null));
    client.post(&format!("{path}/payments"), json!({})).expect(201);
    for message in [before.as_str(), reminder.as_str(), "Nog {amount}", "Voor {due_date}"] {
        let warned = send(message);
        assert!(warned.to_string().contains("nothing to transfer for F2026-0001"), "{message}: {warned}");
    }
    for message in [text("invoice").as_str(), "Totaal {total}. {payment}", "Dank u."] {
        assert_eq!(send(message), json!(null), "{message}");
    }
}

fn a_quote_is_expired_as_soon_as_it_is_final(server: Shared) {
    let client = server.client();
    let rows = json!([{"name": "Ketel", "unit_price": 100, "vat_rate": 21}]);
    let body = json!({"title": "Ketel", "invoice_date": "2026-04-01", "due_date": "2026-05-03", "rows": rows});
    let draft = || format!("/v1/quotes/{}", client.post("/v1/quotes", body.clone()).expect(201).id());
    let path = draft();
    let before = server.last_seq(&client);
    let made = client.act(&format!("{path}/finalize")).expect(200);
    assert_eq!((&made.data()["payment_status"], &made.data()["meta"]["revision"]), (&json!("expired"), &json!(1)));
    assert!(made.text.contains("has passed, so it is expired"), "{}", made.text);
    advance(&client, "2026-05-06T10:00:00Z");
    assert_eq!(server.events(&client, before), ["quote.updated", "quote.phase_changed"], "once");
    assert!(page(&client, &made.data()).contains("3 mei 2026"));
    // So is one that is final from the start, or that is sent.
    let mut whole = body.clone();
    whole["generate"] = json!(true);
    assert_eq!(client.post("/v1/quotes", whole).expect(201).data()["payment_status"], "expired");
    let sent = draft();
    let mail = json!({"to": "anna@ster.example", "subject": "Offerte", "message": "Zie bijlage."});
    let warned = client.post(&format!("{sent}/send"), mail).expect(200);
    assert!(warned.text.contains("so it is expired"), "{}", warned.text);
    assert_eq!(client.get(&sent).data()["payment_status"], "expired");
    // A later day opens it.
    client.patch(&path, json!({"due_date": "2026-06-01"})).expect(200);
    client.act(&format!("{path}/accept")).expect(200);
}

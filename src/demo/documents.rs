//! Quotes and their outcomes: accepted, rejected or expired; then invoiced, paid and reminded of. Also the document
//! steps that the small jobs in `maintenance.rs` use.

use serde_json::{Value, json};

use super::{DemoStep, act, change, make, make_of};

pub(super) fn steps() -> Vec<DemoStep> {
    let mut steps = invoiced_at_once();
    steps.extend(in_terms());
    steps.extend(declined());
    steps.extend(undecided());
    steps
}

/// A row with a quantity of a product.
pub(super) fn product(name: &str, quantity: &str) -> Value {
    json!({"product_id": format!("@{name}"), "quantity": quantity})
}

/// A row that is not a product.
pub(super) fn extra(name: &str, quantity: &str, unit: &str, price: &str) -> Value {
    json!({"name": name, "quantity": quantity, "unit": unit, "unit_price": price, "vat_code": "NL21"})
}

/// Rows for a client in another EU country, with reverse-charged VAT.
fn abroad(mut rows: Vec<Value>) -> Vec<Value> {
    for row in &mut rows {
        row["vat_code"] = json!("EU");
    }
    rows
}

/// Mails a document with the texts of its preview.
pub(super) fn send(ago: i64, document: &str, kind: &str) -> DemoStep {
    make(ago, "", &format!("/v1/{document}/send"), json!({"send_type": kind}))
}

/// Creates and mails a quote.
fn quote(ago: i64, name: &str, mut body: Value) -> Vec<DemoStep> {
    body["generate"] = json!(true);
    vec![make(ago, name, "/v1/quotes", body), send(ago, &format!("quotes/@{name}"), "quote")]
}

/// The client views the page of a quote.
fn seen(ago: i64, quote: &str) -> DemoStep {
    DemoStep { method: "GET", ..act(ago, &format!("/d/@{quote}")) }
}

/// The client accepts a quote on its page and gets a confirmation.
fn accepted(ago: i64, quote: &str, who: &str) -> Vec<DemoStep> {
    let accept = make(ago, "", &format!("/d/@{quote}/accept"), json!({"name": who}));
    vec![accept, send(ago, &format!("quotes/@{quote}"), "order_confirmation")]
}

/// Creates and mails the invoice of a quote.
fn invoiced(ago: i64, quote: &str, name: &str) -> Vec<DemoStep> {
    let mut steps = vec![make_of(ago, name, &format!("/v1/quotes/@{quote}/invoice"))];
    steps.extend(finished(ago, name));
    steps
}

/// Finalizes and mails a draft invoice.
pub(super) fn finished(ago: i64, invoice: &str) -> Vec<DemoStep> {
    let document = format!("invoices/@{invoice}");
    vec![act(ago, &format!("/v1/{document}/finalize")), send(ago, &document, "invoice")]
}

/// Creates and mails an invoice.
pub(super) fn invoice(ago: i64, name: &str, mut body: Value) -> Vec<DemoStep> {
    body["generate"] = json!(true);
    vec![make(ago, name, "/v1/invoices", body), send(ago, &format!("invoices/@{name}"), "invoice")]
}

/// Records a bank payment of the open amount.
pub(super) fn paid(ago: i64, invoice: &str) -> DemoStep {
    make(ago, "", &format!("/v1/invoices/@{invoice}/payments"), json!({}))
}

/// The client pays with iDEAL.
pub(super) fn paid_online(ago: i64, invoice: &str) -> Vec<DemoStep> {
    let (payments, name) = (format!("/v1/invoices/@{invoice}/payments"), format!("payment of {invoice}"));
    vec![
        make(ago, &name, &payments, json!({"type": "online", "method": "ideal"})),
        change(ago, &format!("{payments}/@{name}"), json!({"status": "paid"})),
    ]
}

/// Sends the first, second or third reminder.
pub(super) fn reminded(ago: i64, invoice: &str, time: usize) -> DemoStep {
    send(ago, &format!("invoices/@{invoice}"), &format!("invoice_rem{time}"))
}

/// Quotes that were accepted, and invoiced when the work was done.
fn invoiced_at_once() -> Vec<DemoStep> {
    let mut steps = Vec::new();
    let mut tell = |told: Vec<DemoStep>| steps.extend(told);

    tell(quote(
        118,
        "offerte ketel",
        json!({"title": "Cv-ketel vervangen", "client_id": "@smit", "rows": [
            product("ketel", "1"), extra("Rookgasafvoer en klein materiaal", "1", "post", "236.40"),
            product("arbeid", "7"), product("thermostaat", "1"),
        ]}),
    ));
    tell(accepted(113, "offerte ketel", "Jan Smit"));
    tell(invoiced(99, "offerte ketel", "factuur ketel"));
    tell(paid_online(92, "factuur ketel"));

    tell(quote(
        109,
        "offerte praktijk",
        json!({"title": "Nieuwe cv-installatie voor de praktijk", "client_id": "@linde", "deal_id": "@deal praktijk",
            "rows": [
                product("ketel", "2"), extra("Rookgasafvoer", "1", "post", "480"),
                extra("Leidingwerk, materiaal", "1", "post", "1425"), product("arbeid", "43"),
                product("thermostaat", "2"), extra("Inregelen, oplevering en instructie", "1", "post", "1299.50"),
            ],
        }),
    ));
    tell(vec![seen(108, "offerte praktijk")]);
    tell(accepted(102, "offerte praktijk", "Karim Bouzid"));
    tell(vec![make_of(67, "factuur praktijk", "/v1/quotes/@offerte praktijk/invoice")]);
    let project = json!({"project_id": "@praktijk"});
    tell(vec![change(67, "/v1/invoices/@factuur praktijk", project)]);
    tell(finished(67, "factuur praktijk"));
    tell(vec![paid(48, "factuur praktijk")]);

    tell(quote(
        104,
        "offerte pompen",
        json!({"title": "Circulatiepompen in het ketelhuis", "client_id": "@havenzicht", "reference": "VvE 2025-31",
            "rows": [
                extra("Circulatiepomp, toerengeregeld", "3", "stuk", "612"), product("arbeid", "9.5"),
                extra("Afvoer van de oude pompen", "1", "post", "75"),
            ],
        }),
    ));
    tell(vec![seen(103, "offerte pompen")]);
    tell(accepted(96, "offerte pompen", "Farid el Amrani"));
    tell(invoiced(84, "offerte pompen", "factuur pompen"));
    // The client forgot to pay.
    tell(vec![reminded(59, "factuur pompen", 1), paid(55, "factuur pompen")]);

    tell(quote(
        71,
        "offerte kranen",
        json!({"title": "Thermostaatkranen in twaalf lokalen", "client_id": "@draak", "rows": [
            extra("Thermostaatkraan, hufterproof", "36", "stuk", "41.50"),
            extra("Reservekoppen", "6", "stuk", "22.75"), product("arbeid", "14"), product("voorrijden", "2"),
        ]}),
    ));
    tell(accepted(62, "offerte kranen", "Ineke Maas"));
    tell(invoiced(49, "offerte kranen", "factuur kranen"));
    // The spare parts were returned unopened.
    let spare = json!({"credit_all": false, "row_indexes": [1]});
    tell(vec![make(38, "credit kranen", "/v1/invoices/@factuur kranen/credit", spare)]);
    tell(vec![send(38, "invoices/@credit kranen", "credit"), paid(30, "factuur kranen")]);

    tell(quote(
        50,
        "offerte airco",
        json!({"title": "Airconditioning in twee spreekkamers", "client_id": "@linde", "rows": [
            extra("Binnenunit 2,5 kW", "2", "stuk", "745"), extra("Buitenunit", "1", "stuk", "1180"),
            extra("Koelleiding en goten", "18", "m", "24.50"), product("arbeid", "16"),
        ]}),
    ));
    tell(vec![seen(49, "offerte airco")]);
    tell(accepted(45, "offerte airco", "Karim Bouzid"));
    tell(invoiced(16, "offerte airco", "factuur airco"));

    tell(quote(
        48,
        "offerte brouwketel",
        json!({"title": "Warmte terugwinnen uit de brouwketel", "client_id": "@vat", "rows": abroad(vec![
            extra("Platenwarmtewisselaar, rvs", "1", "stuk", "2380"), extra("Regeling en sensoren", "1", "post", "865"),
            product("arbeid", "22"),
        ])}),
    ));
    tell(vec![seen(48, "offerte brouwketel")]);
    tell(accepted(41, "offerte brouwketel", "Lotte Claes"));
    tell(invoiced(27, "offerte brouwketel", "factuur brouwketel"));
    tell(vec![reminded(2, "factuur brouwketel", 1)]);

    tell(quote(
        46,
        "offerte dak",
        json!({"title": "Twaalf zonnepanelen op het dak", "client_id": "@jansen", "rows": [
            product("paneel", "12"),
            json!({"name": "Omvormer 4,6 kW", "quantity": "1", "unit": "stuk", "unit_price": "1140", "vat_code": "NL0"}),
            json!({"name": "Montage en aansluiting", "quantity": "1", "unit": "post", "unit_price": "985", "vat_code": "NL0"}),
        ]}),
    ));
    tell(vec![seen(46, "offerte dak"), seen(43, "offerte dak")]);
    tell(accepted(40, "offerte dak", "Marieke Jansen"));
    tell(invoiced(20, "offerte dak", "factuur dak"));
    tell(paid_online(17, "factuur dak"));

    tell(quote(
        16,
        "offerte kas",
        json!({"title": "Survey and design of the greenhouse heating", "client_id": "@morgentau", "rows": abroad(vec![
            extra("Survey on site, two engineers", "1", "day", "980"), extra("Design and calculation", "12", "hour", "88"),
        ])}),
    ));
    tell(vec![seen(15, "offerte kas")]);
    tell(accepted(13, "offerte kas", "Jürgen Weiß"));
    tell(invoiced(6, "offerte kas", "factuur kas"));
    steps
}

/// Large projects, invoiced in terms during the work. Their quotes keep the status accepted.
fn in_terms() -> Vec<DemoStep> {
    let mut steps = Vec::new();
    let mut tell = |told: Vec<DemoStep>| steps.extend(told);
    let term = |client: &str, project: &str, title: &str, what: &str, price: &str| {
        json!({
            "title": title, "client_id": format!("@{client}"), "project_id": format!("@{project}"),
            "rows": [extra(what, "1", "termijn", price)],
        })
    };

    tell(quote(
        92,
        "offerte bakkerij",
        json!({"title": "Warmtepomp voor de bakkerij", "client_id": "@ster", "deal_id": "@deal bakkerij",
            "notes": "Levering en werk na twaalf uur, als de oven uit is.",
            "rows": [
                product("warmtepomp", "1"), product("buffervat", "1"), product("thermostaat", "1"),
                extra("Fundatie en doorvoeren", "1", "post", "2480"), extra("Elektra", "1", "post", "1650"),
                product("arbeid", "62"), extra("Inregelen en oplevering", "1", "post", "726.50"),
            ],
        }),
    ));
    tell(vec![seen(91, "offerte bakkerij"), send(84, "quotes/@offerte bakkerij", "quote_rem1")]);
    tell(accepted(77, "offerte bakkerij", "Anna de Vries"));
    let title = "Warmtepomp Bakkerij De Ster, eerste termijn";
    tell(invoice(74, "bakkerij 1", term("ster", "bakkerij", title, "40% bij opdracht", "5940")));
    tell(vec![paid(66, "bakkerij 1")]);
    let title = "Warmtepomp Bakkerij De Ster, tweede termijn";
    tell(invoice(23, "bakkerij 2", term("ster", "bakkerij", title, "40% na plaatsing van de buitenunit", "5940")));
    let half = json!({"amount": "3500", "payment_data": {"note": "Rest volgt na de subsidie."}});
    tell(vec![make(14, "", "/v1/invoices/@bakkerij 2/payments", half)]);
    let title = "Warmtepomp Bakkerij De Ster, slottermijn";
    tell(vec![make(1, "", "/v1/invoices", term("ster", "bakkerij", title, "20% bij oplevering", "2970"))]);

    tell(quote(
        70,
        "offerte badkamer",
        json!({"title": "Badkamer en toilet vernieuwen", "client_id": "@jansen", "deal_id": "@deal badkamer",
            "rows": [
                extra("Sanitair volgens de lijst", "1", "post", "4275"), extra("Sloopwerk en afvoer", "1", "post", "1350"),
                extra("Tegelwerk", "31", "m²", "72.50"), product("vloer", "6"), product("arbeid", "50"),
                extra("Onvoorzien", "1", "post", "317.50"),
            ],
        }),
    ));
    tell(vec![seen(70, "offerte badkamer"), seen(64, "offerte badkamer")]);
    tell(accepted(61, "offerte badkamer", "Marieke Jansen"));
    let title = "Badkamer, eerste termijn";
    tell(invoice(58, "badkamer 1", term("jansen", "badkamer", title, "30% bij opdracht", "3480")));
    tell(paid_online(53, "badkamer 1"));
    // The work waits for the tiles, and so does the payment.
    let title = "Badkamer, tweede termijn";
    tell(invoice(28, "badkamer 2", term("jansen", "badkamer", title, "50% na het leidingwerk", "5800")));
    tell(vec![reminded(13, "badkamer 2", 1), reminded(5, "badkamer 2", 2)]);
    steps
}

/// Quotes that were rejected or expired.
fn declined() -> Vec<DemoStep> {
    let mut steps = quote(
        80,
        "offerte vloer",
        json!({"title": "Vloerverwarming op de begane grond", "client_id": "@smit", "deal_id": "@deal vloer", "rows": [
            product("vloer", "85"), extra("Verdeler met pomp", "1", "stuk", "640"), product("thermostaat", "1"),
            extra("Frezen en afvoeren", "1", "post", "1233.50"),
        ]}),
    );
    steps.push(seen(79, "offerte vloer"));
    steps.push(act(66, "/d/@offerte vloer/reject"));
    steps.extend(quote(
        86,
        "offerte gymzaal",
        json!({"title": "Stralingspanelen in de gymzaal", "client_id": "@draak", "rows": [
            extra("Stralingspaneel 3 m", "8", "stuk", "695"), product("arbeid", "28"),
            extra("Hoogwerker", "2", "dag", "210"),
        ]}),
    ));
    steps.extend([seen(85, "offerte gymzaal"), send(74, "quotes/@offerte gymzaal", "quote_rem1")]);
    steps.extend(quote(41, "offerte zon", panels("Zonnepanelen op het hoteldak", "1930")));
    steps.extend([seen(40, "offerte zon"), seen(33, "offerte zon"), act(13, "/d/@offerte zon/reject")]);
    steps
}

/// Quotes without a response, and a draft.
fn undecided() -> Vec<DemoStep> {
    let mut steps = quote(12, "offerte zon 2", panels("Zonnepanelen op het hoteldak, herzien", "1080"));
    steps.push(seen(11, "offerte zon 2"));
    steps.extend(quote(
        33,
        "offerte onderhoud",
        json!({"title": "Onderhoud van 48 ketels", "client_id": "@havenzicht", "deal_id": "@deal onderhoud",
            "due_date": "@+9", "notes": "Geldig tot en met de ledenvergadering.",
            "rows": [
                extra("Onderhoudsbeurt", "48", "woning", "145"), extra("Rookgasmeting", "48", "woning", "25"),
                extra("Rapport per woning", "1", "post", "440"),
            ],
        }),
    ));
    steps.extend([seen(32, "offerte onderhoud"), send(9, "quotes/@offerte onderhoud", "quote_rem1")]);
    steps.extend(quote(
        15,
        "offerte ventilatie",
        json!({"title": "Ventilatie in acht lokalen", "client_id": "@draak", "deal_id": "@deal ventilatie", "rows": [
            extra("Ventilatie-unit met warmteterugwinning", "8", "stuk", "2540"),
            extra("Kanalen en roosters", "8", "lokaal", "388.75"), product("arbeid", "60"),
        ]}),
    ));
    steps.push(act(15, "/refused/@offerte ventilatie"));
    steps.push(make(
        3,
        "",
        "/v1/quotes",
        json!({"title": "Koeling van de gistkelder", "client_id": "@vat", "deal_id": "@deal koeling", "rows": abroad(vec![
            extra("Koelmachine 14 kW", "1", "stuk", "11900"), extra("Verdamper", "3", "stuk", "1640"),
            extra("Isolatie en leidingwerk", "1", "post", "2100"), product("arbeid", "40"),
        ])}),
    ));
    steps
}

/// Solar panels on a hotel have VAT, unlike those on a home.
fn panels(title: &str, hoisting: &str) -> Value {
    json!({"title": title, "client_id": "@anker", "deal_id": "@deal zon", "reference": "ZA-dak", "rows": [
        extra("Zonnepaneel 430 Wp", "150", "stuk", "129"), extra("Omvormer 30 kW", "2", "stuk", "2450"),
        extra("Montagesysteem plat dak", "150", "stuk", "18"), product("arbeid", "60"),
        extra("Steiger en hijswerk", "1", "post", hoisting),
    ]})
}

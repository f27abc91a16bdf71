//! The page of a document, for people without a key.

use std::process::Command;

use engine::jobs::worker;
use serde_json::{Value, json};

use crate::on_both;
use crate::people::owner;
use crate::support::{Client, Db, Reply, Server, Shared};

const FORM: &str = "application/x-www-form-urlencoded";

/// A visitor with a browser and no key.
fn visit(client: &Client, path: &str) -> Reply {
    client.send("GET", path, &[("authorization", ""), ("content-type", "")], "")
}

fn send_form(client: &Client, path: &str, body: &str) -> Reply {
    form_with(client, path, body, &[])
}

/// Redirects are not followed, so that they can be checked.
fn form_with(client: &Client, path: &str, body: &str, headers: &[(&str, &str)]) -> Reply {
    let mut plain = client.clone();
    plain.agent = ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0).build().into();
    let mut all = vec![("authorization", ""), ("content-type", FORM)];
    all.retain(|(name, _)| !headers.iter().any(|(own, _)| own == name));
    all.extend(headers);
    plain.send("POST", path, &all, body)
}

fn company(client: &Client, name: &str) -> String {
    let body = json!({"company_name": name, "email": "anna@ster.example", "address": "Dorpsstraat 1", "zipcode": "1234 AB", "city": "Ons Dorp", "country": "NL"});
    client.post("/v1/clients", body).expect(201).id()
}

fn with_bank(client: &Client) {
    let id = client.get("/v1/corporate-identities").data()[0]["id"].as_str().unwrap().to_string();
    let body = json!({"name": "Installatiebedrijf Jansen", "primary_color": "#0f766e", "iban": "NL91ABNA0417164300", "bic": "ABNANL2A",
        "address": "Havenkade 12", "zipcode": "3011 AB", "city": "Rotterdam", "email": "kantoor@jansen.example",
        "phone": "+31 10 123 45 67", "website": "https://jansen.example", "company_registration_number": "12345678"});
    client.patch(&format!("/v1/corporate-identities/{id}"), body).expect(200);
}

/// Creates a final document; returns it and the path of its page.
fn make(client: &Client, kind: &str, more: Value) -> (Value, String) {
    let mut body = json!({"title": "Nieuwe cv-ketel", "generation_mode": "final", "reference": "PO-17", "notes": "Met dank\nvoor uw opdracht.", "rows": [
        {"name": "Ketel", "quantity": 1, "unit_price": 1250, "vat_rate": "21", "description": "HR, 28 kW\nmet garantie"},
        {"name": "Arbeid", "quantity": 6.5, "unit": "uur", "unit_price": 62.5, "vat_rate": "9"},
    ]});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let made = client.post(&format!("/v1/{kind}"), body).expect(201).data();
    let path = path_of(&made);
    (made, path)
}

fn path_of(document: &Value) -> String {
    let url = document["web_url"].as_str().unwrap();
    url[url.find("/d/").unwrap()..].to_string()
}

fn current(client: &Client, kind: &str, document: &Value) -> Value {
    client.get(&format!("/v1/{kind}/{}", document["id"].as_str().unwrap())).expect(200).data()
}

#[track_caller]
fn says(page: &Reply, words: &[&str]) {
    let text = page.text.replace("&#x2f;", "/").replace('\u{a0}', " ");
    for words in words {
        assert!(text.contains(words), "no '{words}' in {text}");
    }
}

on_both![
    records_the_first_view_once,
    an_invoice_says_how_to_pay_it,
    a_quote_is_accepted_once,
    a_quote_can_be_rejected_until_it_expires,
    unknown_pages_are_404_in_both_languages,
    the_pdf_and_the_logo_are_those_of_the_document,
    every_answer_has_strict_headers,
    escapes_hostile_texts,
];

fn records_the_first_view_once(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let (quote, path) = make(&client, "quotes", json!({}));
    let before = server.last_seq(&client);
    client.send("HEAD", &path, &[("authorization", "")], "").expect(200);
    for (name, value) in
        [("sec-purpose", "prefetch;prerender"), ("purpose", "prefetch"), ("user-agent", "Slackbot-LinkExpanding 1.0")]
    {
        client.send("GET", &path, &[("authorization", ""), (name, value)], "").expect(200);
    }
    assert_eq!(server.events(&client, before).len(), 0);
    // Nor does somebody of the business itself, who opens the page from the console.
    let colleague = owner(&server, &client, "olga@a.example");
    client.patch("/v1/settings", json!({"strict_final": false})).expect(200);
    let before = server.last_seq(&client);
    colleague.get(&path).expect(200);
    assert_eq!(server.events(&client, before).len(), 0);
    assert_eq!(current(&client, "quotes", &quote)["meta"]["viewed_at"], json!(null));
    std::thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| visit(&client, &path).expect(200));
        }
    });
    assert_eq!(server.events(&client, before), ["quote.updated", "quote.viewed"]);
    assert_eq!(current(&client, "quotes", &quote)["meta"]["viewed_at"], "2026-05-04T10:00:00.000Z");
    let (invoice, path) = make(&client, "invoices", json!({}));
    let before = server.last_seq(&client);
    visit(&client, &path).expect(200);
    visit(&client, &path).expect(200);
    assert_eq!(server.events(&client, before), ["invoice.updated"]);
    assert_eq!(current(&client, "invoices", &invoice)["meta"]["revision"], 1, "a view creates no revision");
}

fn an_invoice_says_how_to_pay_it(server: Shared) {
    let client = server.client();
    with_bank(&client);
    let firm = company(&client, "Bakkerij De Ster");
    let (invoice, path) = make(&client, "invoices", json!({"client_id": firm}));
    let page = visit(&client, &path).expect(200);
    says(
        &page,
        &[
            "<html lang=\"nl\">",
            "Factuur <bdi>F2026-0001</bdi>",
            "<h1 dir=\"auto\">Nieuwe cv-ketel</h1>",
            "Openstaand",
            "uiterlijk 18 mei 2026",
            "Bakkerij De Ster",
            "Dorpsstraat 1",
            "1234 AB Ons Dorp",
            "HR, 28 kW\nmet garantie",
            "6,5<span> <bdi>uur</bdi></span>",
            "1.250,00",
            "406,25",
            "Btw 21% over € 1.250,00",
            "Btw 9% over € 406,25",
            "€ 1.955,31",
            "PO-17",
            "Met dank\nvoor uw opdracht.",
            "Zo betaalt u",
            "NL91 ABNA 0417 1643 00",
            "ABNANL2A",
            "Installatiebedrijf Jansen",
            "Havenkade 12",
            "mailto:kantoor@jansen.example",
            "QR-code om € 1.955,31 over te maken",
            "<svg viewBox=",
            "--accent: #0",
        ],
    );
    assert!(!page.text.contains("<form") && !page.text.contains("<script") && !page.text.contains("/logo"));
    let id = invoice["id"].as_str().unwrap();
    client.post(&format!("/v1/invoices/{id}/payments"), json!({"amount": 1000})).expect(201);
    let part = visit(&client, &path).expect(200);
    says(
        &part,
        &["Deels betaald", "€ 1.000,00 is betaald; € 955,31 staat nog open", "Reeds betaald", "QR-code om € 955,31"],
    );
    client.post(&format!("/v1/invoices/{id}/payments"), json!({})).expect(201);
    let paid = visit(&client, &path).expect(200);
    says(&paid, &["Betaald op 4 mei 2026"]);
    assert!(!paid.text.contains("Zo betaalt u"));
    let (_, late) =
        make(&client, "invoices", json!({"invoice_date": "2026-01-02", "due_date": "2026-01-16", "language": "en"}));
    says(
        &visit(&client, &late),
        &["<html lang=\"en\">", "Overdue", "The due date was 16 January 2026.", "How to pay", "VAT 21% on €1,250.00"],
    );
    let (own, word) = make(&client, "invoices", json!({"payment_status": "bij incasso"}));
    says(&visit(&client, &word), &["bij incasso", "Zo betaalt u"]);
    let credit = client.act(&format!("/v1/invoices/{}/credit", own["id"].as_str().unwrap())).expect(201).data();
    says(&visit(&client, &word), &["Gecrediteerd", "u hoeft niets te betalen"]);
    says(
        &visit(&client, &path_of(&credit)),
        &["Creditfactuur", "Verrekend", "verrekend met factuur", "Betreft factuur", "\u{2212}1.250,00"],
    );
    let back = client.act(&format!("/v1/invoices/{id}/credit")).expect(201).data();
    let back = visit(&client, &path_of(&back)).expect(200);
    says(&back, &["Te ontvangen", "of maken het aan u over"]);
    assert!(!back.text.contains("Zo betaalt u"));
    let (order, path) = make(&client, "workorders", json!({}));
    let page = visit(&client, &path);
    says(&page, &["Werkbon", "In uitvoering", "Werkzaamheden en materiaal"]);
    assert!(!page.text.contains("<form"));
    client.act(&format!("/v1/workorders/{}/complete", order["id"].as_str().unwrap())).expect(200);
    says(&visit(&client, &path), &["Uitgevoerd"]);
    let (_, bare) = make(&client, "workorders", json!({"rows": []}));
    visit(&client, &bare).expect(200);
    let (_, free) = make(&client, "invoices", json!({"rows": [{"name": "Niets", "unit_price": 0}]}));
    says(&visit(&client, &free), &["U hoeft niets te betalen."]);
}

fn a_quote_is_accepted_once(server: Shared) {
    let client = server.client();
    let (quote, path) = make(&client, "quotes", json!({}));
    let (accept, reject) = (format!("{path}/accept"), format!("{path}/reject"));
    says(
        &visit(&client, &path),
        &[
            "Wacht op uw reactie",
            "Geldig tot en met 3 juni 2026",
            &format!("action=\"{accept}\""),
            "<label for=\"name\">Uw naam</label>",
        ],
    );
    let before = server.last_seq(&client);
    for name in ["", "name=", "name=%20%09%0a", "other=x", "name=%e2%80%8b", &format!("name={}", "x".repeat(101))] {
        let page = send_form(&client, &accept, name).expect(422);
        says(&page, &["Vul uw naam in", "aria-invalid=\"true\"", "Offerte accepteren"]);
    }
    says(&send_form(&client, &accept, "name=%3C%22%3E").expect(422), &["value=\"&lt;&quot;&gt;\""]);
    let long = send_form(&client, &accept, &format!("name={}", "x".repeat(9000))).expect(413);
    says(
        &long,
        &[
            "<title>Niet gelukt · Request failed</title>",
            "Uw verzoek is niet uitgevoerd",
            "Your request was not processed",
        ],
    );
    form_with(&client, &accept, "{}", &[("content-type", "application/json")]).expect(415);
    for (name, value) in
        [("sec-fetch-site", "cross-site"), ("sec-fetch-site", "same-site"), ("origin", "https://evil.example")]
    {
        form_with(&client, &accept, "name=Eve", &[(name, value)]).expect(403);
    }
    assert_eq!(server.events(&client, before), [""; 0]);

    let name = "name=+Jos%C3%A9%00+%0A+de%20Vries+";
    let done = form_with(&client, &accept, name, &[("origin", "null"), ("sec-fetch-site", "same-origin")]).expect(303);
    assert_eq!(done.header("location"), path);
    let first = server.events(&client, before);
    assert_eq!(first, ["quote.updated", "quote.phase_changed", "quote.accepted"]);
    assert_eq!(current(&client, "quotes", &quote)["meta"]["accepted_by"], "José de Vries");
    let page = visit(&client, &path).expect(200);
    says(&page, &["Geaccepteerd door \u{2068}José de Vries\u{2069} op 4 mei 2026."]);
    assert!(!page.text.contains("<form"));
    let origin = client.base.clone();
    form_with(&client, &accept, "name=Somebody", &[("origin", &origin)]).expect(303);
    assert_eq!(server.events(&client, before), first, "no second event");
    assert_eq!(current(&client, "quotes", &quote)["meta"]["accepted_by"], "José de Vries");
    says(&send_form(&client, &reject, "").expect(409), &["Uw reactie is niet verwerkt", "Geaccepteerd door"]);
    assert_eq!(visit(&client, &accept).expect(200).text.matches("Geaccepteerd door").count(), 1, "back to the page");
    assert_eq!(server.events(&client, before), first);
    client.act(&format!("/v1/quotes/{}/invoice", quote["id"].as_str().unwrap())).expect(201);
    says(&visit(&client, &path), &["Geaccepteerd door"]);
    let (quote, path) = make(&client, "quotes", json!({}));
    client.act(&format!("/v1/quotes/{}/invoice", quote["id"].as_str().unwrap())).expect(201);
    let page = visit(&client, &path);
    says(&page, &["Gefactureerd"]);
    assert!(!page.text.contains("Geaccepteerd") && !page.text.contains("<form"), "it has not been accepted");
    let (_, path) = make(&client, "quotes", json!({"payment_status": "accepted"}));
    says(&visit(&client, &path), &["Geaccepteerd op 4 mei 2026."]);
}

fn a_quote_can_be_rejected_until_it_expires(server: Shared) {
    let client = server.client();
    let (quote, path) = make(&client, "quotes", json!({"language": "en"}));
    let before = server.last_seq(&client);
    send_form(&client, &format!("{path}/reject"), "").expect(303);
    send_form(&client, &format!("{path}/reject"), "").expect(303);
    assert_eq!(server.events(&client, before), ["quote.updated", "quote.phase_changed"]);
    let page = visit(&client, &path).expect(200);
    says(&page, &["Rejected on 4 May 2026."]);
    assert!(!page.text.contains("<form"));
    says(
        &send_form(&client, &format!("{path}/accept"), "name=Anna").expect(409),
        &["Your response was not processed", "Rejected on"],
    );
    assert_eq!(current(&client, "quotes", &quote)["payment_status"], "rejected");
    let (quote, path) = make(&client, "quotes", json!({"invoice_date": "2026-04-01", "due_date": "2026-05-03"}));
    let page = visit(&client, &path).expect(200);
    says(&page, &["Verlopen", "Deze offerte was geldig tot en met 3 mei 2026."]);
    assert!(!page.text.contains("<form"));
    let before = server.last_seq(&client);
    for answer in ["accept", "reject"] {
        says(
            &send_form(&client, &format!("{path}/{answer}"), "name=Anna").expect(409),
            &["niet meer accepteren of afwijzen", "Verlopen"],
        );
    }
    assert_eq!(server.events(&client, before), [""; 0]);
    assert_eq!(current(&client, "quotes", &quote)["payment_status"], "expired");
    let (_, path) = make(&client, "quotes", json!({"invoice_date": "2026-04-01", "due_date": "2026-05-04"}));
    send_form(&client, &format!("{path}/accept"), "name=Anna").expect(303);
}

fn unknown_pages_are_404_in_both_languages(server: Shared) {
    let client = server.client();
    let unknown = format!("/d/{}", "0".repeat(32));
    let (draft, path) = make(&client, "quotes", json!({"generation_mode": "draft"}));
    let before = server.last_seq(&client);
    let of_draft = visit(&client, &path).expect(404);
    says(&of_draft, &["lang=\"nl\"", "Document niet gevonden", "lang=\"en\"", "Document not found"]);
    assert!(of_draft.header("content-type").starts_with("text/html"));
    for path in [
        unknown.as_str(),
        "/d/",
        "/d/x",
        "/d/%00",
        "/d/../d/x",
        &format!("/d/{}", "É".repeat(16)),
        &format!("{path}/"),
        &format!("{path}/pdf"),
        &format!("{path}/logo"),
        &format!("{unknown}/pdf"),
        &format!("{path}/page"),
        &format!("{path}/pdf/x"),
        &path.to_uppercase().replace("/D/", "/d/"),
    ] {
        let page = visit(&client, path).expect(404);
        assert_eq!(
            page.text.replace(char::is_alphanumeric, "").len(),
            of_draft.text.replace(char::is_alphanumeric, "").len(),
            "{path}"
        );
    }
    send_form(&client, &format!("{path}/accept"), "name=Anna").expect(404);
    send_form(&client, &format!("{unknown}/accept"), "name=Anna").expect(404);
    assert_eq!(server.events(&client, before), [""; 0]);
    client.act(&format!("/v1/quotes/{}/finalize", draft["id"].as_str().unwrap())).expect(200);
    visit(&client, &path).expect(200);
    visit(&client, &format!("{path}/logo")).expect(404);
    for kind in ["invoices", "workorders"] {
        let (_, path) = make(&client, kind, json!({}));
        send_form(&client, &format!("{path}/accept"), "name=Anna").expect(404);
        send_form(&client, &format!("{path}/reject"), "").expect(404);
    }
    for (method, path, allow) in [
        ("POST", path.clone(), "GET, HEAD"),
        ("DELETE", path.clone(), "GET, HEAD"),
        ("PUT", format!("{path}/pdf"), "GET, HEAD"),
        ("OPTIONS", path.clone(), "GET, HEAD"),
        ("DELETE", format!("{path}/accept"), "POST"),
        ("PATCH", format!("{unknown}/reject"), "POST"),
    ] {
        let refused = client.send(method, &path, &[("authorization", "")], "").expect(405);
        assert_eq!(refused.header("allow"), allow);
    }
}

fn the_pdf_and_the_logo_are_those_of_the_document(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let picture = crate::typesetting::picture(0);
    let logo = client.upload("logo.png", &picture).expect(201).id();
    let identity = client.get("/v1/corporate-identities").data()[0]["id"].as_str().unwrap().to_string();
    client.patch(&format!("/v1/corporate-identities/{identity}"), json!({"logo_file_id": logo})).expect(200);
    let drawn = client.get(&format!("/v1/files/{logo}/content")).expect(200).bytes;
    assert!(drawn.starts_with(b"\x89PNG") && drawn != picture);
    for kind in ["invoices", "quotes", "workorders"] {
        let (document, path) = make(&client, kind, json!({}));
        says(&visit(&client, &path), &[&format!("<img src=\"{path}/logo\" alt=\"Logo van ")]);
        let sent = visit(&client, &format!("{path}/logo")).expect(200);
        assert_eq!((sent.bytes.as_slice(), sent.header("content-type")), (drawn.as_slice(), "image/png"));
        let pdf = format!("/v1/{kind}/{}/pdf/content", document["id"].as_str().unwrap());
        let before_job = visit(&client, &format!("{path}/pdf")).expect(200);
        assert!(before_job.bytes.starts_with(b"%PDF-"));
        server.block_on(async { while worker::turn(&server.app).await {} });
        let public = visit(&client, &format!("{path}/pdf")).expect(200);
        assert_eq!((&public.bytes, &before_job.bytes), (&client.get(&pdf).expect(200).bytes, &public.bytes));
        let number = document["number"].as_str().unwrap();
        assert_eq!(public.header("content-disposition"), format!("attachment; filename*=UTF-8''{number}.pdf"));
        assert_eq!(
            (public.header("content-type"), public.header("cache-control")),
            ("application/pdf", "private, no-store")
        );
    }
}

fn every_answer_has_strict_headers(server: Shared) {
    let client = server.client();
    let (_, path) = make(&client, "quotes", json!({}));
    let unknown = format!("/d/{}", "0".repeat(32));
    let replies = [
        visit(&client, &path),
        visit(&client, &unknown),
        visit(&client, &format!("{path}/pdf")),
        send_form(&client, &path, ""),
        send_form(&client, &format!("{path}/accept"), ""),
        send_form(&client, &format!("{path}/accept"), "name=Anna"),
        client.send("HEAD", &path, &[("authorization", "")], ""),
    ];
    for reply in &replies {
        for (name, value) in [
            ("referrer-policy", "no-referrer"),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("cache-control", "private, no-store"),
            ("x-robots-tag", "noindex, nofollow"),
            ("set-cookie", ""),
        ] {
            assert_eq!(reply.header(name), value, "{name} of {reply:?}");
        }
        assert!(reply.header("content-security-policy").starts_with("default-src 'none'; "));
        assert!(!reply.header("x-request-id").is_empty());
    }
    let policy = replies[0].header("content-security-policy");
    let nonce = policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap();
    assert_eq!(
        policy,
        format!(
            "default-src 'none'; style-src 'nonce-{nonce}'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        )
    );
    assert!(replies[0].text.contains(&format!("<style nonce=\"{nonce}\">")) && !replies[1].text.contains(nonce));
    assert!(!replies[0].text.contains(" style="), "the policy allows no inline styles");
    assert_eq!((replies[6].text.as_str(), replies[6].status), ("", 200));
}

fn escapes_hostile_texts(server: Shared) {
    let client = server.client();
    let hostile = hostile();
    let identity = client.get("/v1/corporate-identities").data()[0]["id"].as_str().unwrap().to_string();
    client
        .patch(
            &format!("/v1/corporate-identities/{identity}"),
            json!({"name": hostile, "address": hostile, "zipcode": hostile, "city": hostile,
            "phone": hostile, "company_registration_number": hostile, "footer": hostile, "iban": "NL91ABNA0417164300"}),
        )
        .expect(200);
    let firm = client.post("/v1/clients", json!({"company_name": hostile, "firstname": hostile, "lastname": hostile, "address": hostile, "zipcode": "1", "city": hostile})).expect(201).id();
    for kind in ["invoices", "quotes", "workorders"] {
        for language in ["nl", "en"] {
            let (_, path) = make(
                &client,
                kind,
                json!({"title": hostile, "client_id": firm, "reference": hostile, "notes": hostile, "language": language,
                    "number": format!("<u>'{language}\"&{{base}}"),
                    "payment_status": if kind == "workorders" { "<i>\"'" } else { "open" },
                    "rows": [{"name": hostile, "description": hostile, "unit": hostile, "quantity": 1, "unit_price": 1, "vat_rate": 21}]}),
            );
            if kind == "quotes" {
                let name = "<script>alert('x')</script> \"O'Neill\" 😀 مرحبا";
                let sent: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
                assert!(!visit(&client, &path).text.contains("<script"));
                send_form(&client, &format!("{path}/accept"), &format!("name={sent}")).expect(303);
                says(
                    &visit(&client, &path),
                    &["&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt; &quot;O&#x27;Neill&quot; 😀 مرحبا"],
                );
            }
            let page = visit(&client, &path).expect(200);
            let text = page.text.as_str();
            for never in ["<script", "<img src=x", "<u>", "<i>", "onerror=\"", "</title><", "{{"] {
                let allowed = if never == "{{" { text.matches("{{ 7*7 }}").count() } else { 0 };
                assert_eq!(text.matches(never).count(), allowed, "{never} in {text}");
            }
            says(&page, &["&lt;script&gt;alert(1)&lt;/script&gt;", "😀", "مرحبا", "{{ 7*7 }}"]);
            let tags: Vec<&str> =
                text.split('<').skip(1).map(|tag| tag.split([' ', '>', '\n']).next().unwrap()).collect();
            let known = [
                "!doctype", "html", "head", "meta", "link", "title", "style", "body", "a", "header", "span", "main",
                "div", "p", "h1", "h2", "section", "strong", "article", "dl", "dt", "dd", "bdi", "time", "address",
                "br", "table", "caption", "thead", "tbody", "tr", "th", "td", "svg", "rect", "path", "footer", "ul",
                "li",
            ];
            for tag in tags {
                assert!(
                    known.contains(&tag.trim_start_matches('/'))
                        || ["form", "label", "input", "button", "details", "summary", "small"]
                            .contains(&tag.trim_start_matches('/')),
                    "<{tag}"
                );
            }
        }
    }
}

fn hostile() -> String {
    format!(
        "<script>alert(1)</script>\"'><img src=x onerror=\"alert(1)\"></title></style>{{{{ 7*7 }}}} &amp; مرحبا \u{202e}olleh 😀 {}",
        "w".repeat(80)
    )
}

/// A real browser, or `None` with a notice where there is none.
fn chromium(arguments: &[&str]) -> Option<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    let profile = format!("--user-data-dir={}", folder.path().display());
    let usual = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--enable-logging=stderr",
        "--timeout=10000",
        &profile,
    ];
    match Command::new("chromium").args(usual).args(arguments).output() {
        Ok(done) => {
            Some((String::from_utf8_lossy(&done.stdout).to_string(), String::from_utf8_lossy(&done.stderr).to_string()))
        }
        Err(error) => {
            assert_ne!(
                std::env::var("CI").as_deref(),
                Ok("true"),
                "in CI nothing may be skipped, but there is no chromium: {error}"
            );
            eprintln!("skipped: chromium is not installed");
            None
        }
    }
}

#[test]
fn a_browser_shows_the_page_without_errors() {
    let server = Server::start(Db::sqlite());
    let client = server.client();
    with_bank(&client);
    let hostile = hostile();
    let (_, invoice) = make(&client, "invoices", json!({"title": hostile, "notes": hostile}));
    let (_, quote) = make(&client, "quotes", json!({}));
    let folder = tempfile::tempdir().unwrap();
    let shot = folder.path().join("page.png");
    // First checks that an error would be detected.
    let bad = folder.path().join("bad.html");
    std::fs::write(
        &bad,
        "<meta http-equiv=content-security-policy content=\"default-src 'none'\"><style>p { color: red }</style><p>x",
    )
    .unwrap();
    let Some((_, complaint)) = chromium(&["--dump-dom", &format!("file://{}", bad.display())]) else { return };
    assert!(complaint.contains("CONSOLE"), "{complaint}");
    for (path, words) in [(&invoice, "Zo betaalt u"), (&quote, "Offerte accepteren")] {
        let page = format!("{}{path}", client.base);
        let shot = format!("--screenshot={}", shot.display());
        let (_, said) = chromium(&["--window-size=390,1600", &shot, &page]).unwrap();
        assert!(!said.contains("CONSOLE") && !said.contains("Content Security Policy"), "{said}");
        let (dom, said) = chromium(&["--dump-dom", &page]).unwrap();
        assert!(dom.contains(words), "{dom}\n{said}");
        assert!(!said.contains("CONSOLE") && !said.contains("Content Security Policy"), "{said}");
    }
    let drawn = std::fs::read(&shot).unwrap();
    assert!(drawn.starts_with(b"\x89PNG") && drawn.len() > 20_000, "a picture of {} bytes", drawn.len());
}

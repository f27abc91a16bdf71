//! Nothing typed is lost, a late answer pulls nobody away, and the page says what became of a mail.

use serde_json::json;

use super::super::browser::Chromium;
use super::super::client;
use crate::people::owner;
use crate::support::{Client, Db, Office, Server};

#[test]
fn the_console_is_honest() {
    let server = Server::start(Db::sqlite());
    server.leaves_jobs();
    let client = client(&server);
    let olga = owner(&server, &client, "olga@a.example");
    // Chromium may hang when it leaves a page whose PDF viewer is just starting.
    olga.send("PATCH", "/console/v1/me", r#"{"preferences":{"sheet":"rows"}}"#).expect(200);
    let Some(mut browser) = Chromium::start(&client.base, 1280, 860) else { return };
    let browser = &mut browser;
    browser.new_tab(&olga.cookie, 1280, 860);
    a_payment_comes_back(browser, &client);
    a_reason_comes_back(browser, &client);
    an_invitation_comes_back(browser);
    a_password_does_not(browser);
    a_late_save_leaves_the_reader_alone(browser, &client);
    a_deleted_draft_has_a_name(browser, &client);
    a_ticket_says_what_became_of_a_reply(browser, &server, &client);
    a_document_says_when_a_mail_is_tried_again(browser, &server, &client);
    a_low_window_shows_the_latest_message(browser, &client);
    browser.check();
    what_is_not_known_is_not_zero(browser, &client);
}

fn drafts(browser: &mut Chromium) -> serde_json::Value {
    browser.evaluate("Object.keys(localStorage).filter((key) => key.startsWith('draft ')).length")
}

/// After a reload at once, and after Escape; cancelling forgets it.
fn a_payment_comes_back(browser: &mut Chromium, client: &Client) {
    let rows = json!([{"name": "Oven", "unit_price": 100, "vat_rate": "21"}]);
    let baker = client.post("/v1/clients", json!({"company_name": "Bakkerij De Ster"})).expect(201).id();
    let invoice = json!({"title": "Oven", "client_id": baker, "rows": rows, "generation_mode": "final"});
    let page = format!("/invoices/{}", client.post("/v1/invoices", invoice).expect(201).id());
    browser.open(&page);
    browser.settles(&page);
    browser.press("button", "Betaling boeken");
    browser.wait_until("document.getElementById('pay-amount')?.value === '121,00'");
    browser.type_in("pay-amount", "21");
    browser.type_in("pay-reference", "Afschrift 7");
    browser.open(&page);
    browser.settles(&page);
    // The tab is named after the invoice after a reload too.
    browser.wait_until("document.title.startsWith(`${document.querySelector('main h1')?.innerText} · `)");
    browser.press("button", "Betaling boeken");
    browser.wait_until("document.getElementById('pay-amount')?.value === '21,00'");
    assert_eq!(browser.value("pay-reference"), "Afschrift 7");
    browser.sees("Uw niet-opgeslagen wijzigingen");
    browser.key("Escape");
    browser.wait_until("document.querySelector('dialog') === null");
    browser.press("button", "Betaling boeken");
    browser.wait_until("document.getElementById('pay-reference')?.value === 'Afschrift 7'");
    browser.press("button", "Weggooien");
    browser.wait_until("document.getElementById('pay-amount')?.value === '121,00'");
    assert_eq!(browser.value("pay-reference"), "");
    browser.type_in("pay-reference", "Afschrift 8");
    browser.press("button", "Annuleren");
    browser.wait_until("document.querySelector('dialog') === null");
    assert_eq!(drafts(browser), 0);
    browser.press("button", "Betaling boeken");
    browser.wait_until("document.getElementById('pay-amount')?.value === '121,00'");
    assert_eq!(browser.value("pay-reference"), "");
    browser.type_in("pay-amount", "21");
    browser.press("button", "Boeken");
    browser.wait_until("document.querySelector('.big-amount').innerText.includes('100,00')");
    assert_eq!(drafts(browser), 0);
}

/// The message that offers to add a reason is soon gone; the page of the deal offers it too.
fn a_reason_comes_back(browser: &mut Chromium, client: &Client) {
    let baker = client.post("/v1/clients", json!({"company_name": "Bakkerij De Ster"})).expect(201).id();
    let deal = client.post("/v1/deals", json!({"title": "Zonnepanelen", "client_id": baker})).expect(201).id();
    let page = format!("/deals/{deal}");
    browser.open(&page);
    browser.settles(&page);
    browser.press("button", "Verloren");
    browser.press("button", "Reden toevoegen");
    browser.wait_until("document.activeElement.id === 'lost-reason'");
    browser.type_text("Te duur");
    browser.key("Escape");
    browser.open(&page);
    browser.settles(&page);
    browser.press("button", "Meer");
    browser.press("menuitem", "Reden toevoegen");
    browser.wait_until("document.getElementById('lost-reason')?.value === 'Te duur'");
    browser.press("button", "Opslaan");
    browser.sees("Verloren: Te duur");
    assert_eq!(drafts(browser), 0);
}

fn an_invitation_comes_back(browser: &mut Chromium) {
    let page = "/settings/users";
    browser.open(page);
    browser.settles(page);
    browser.press("button", "Gebruiker uitnodigen");
    browser.wait_until("document.activeElement.id === 'invite-name'");
    browser.type_text("Piet");
    browser.type_in("invite-email", "piet@b.example");
    browser.open(page);
    browser.settles(page);
    browser.press("button", "Gebruiker uitnodigen");
    browser.wait_until("document.getElementById('invite-email')?.value === 'piet@b.example'");
    assert_eq!(browser.value("invite-name"), "Piet");
    browser.press("button", "Annuleren");
    browser.wait_until("document.querySelector('dialog') === null");
    assert_eq!(drafts(browser), 0);
}

fn a_password_does_not(browser: &mut Chromium) {
    browser.open("/me");
    browser.settles("/me");
    browser.type_in("me-old", "geheim-van-olga");
    browser.open("/me");
    browser.settles("/me");
    assert_eq!(browser.evaluate("JSON.stringify({ ...localStorage }).includes('geheim-van-olga')"), false);
}

/// Whoever has gone to another page gets a message with the way to what was saved, or back to what was refused.
fn a_late_save_leaves_the_reader_alone(browser: &mut Chromium, client: &Client) {
    browser.open("/clients/new");
    browser.settles("/clients/new");
    browser.evaluate(
        "(() => { const real = window.fetch; window.fetch = async (...all) => { \
         if (all[1]?.method === 'POST' && String(all[0]).endsWith('/v1/clients')) await new Promise((done) => { window.release = done; }); \
         return real(...all); }; })()",
    );
    let leaves = |browser: &mut Chromium| {
        browser.key("Ctrl+s");
        browser.wait_until("typeof window.release === 'function'");
        browser.go("/products");
        browser.settles("/products");
        browser.evaluate("(() => { const go = window.release; window.release = undefined; go(); })()");
    };
    browser.type_in("f-company_name", "Molen en Zoon");
    leaves(browser);
    browser.sees("Opgeslagen.");
    assert_eq!(browser.evaluate("location.pathname"), "/products");
    assert_eq!(client.get("/v1/clients?search=Molen").json()["meta"]["total"], 1);
    browser.press("link", "Openen");
    browser.wait_until("document.querySelector('h1')?.innerText === 'Molen en Zoon'");

    browser.go("/clients/new");
    browser.settles("/clients/new");
    browser.type_in("f-company_name", "Zonder adres");
    browser.type_in("f-email", "geen adres");
    leaves(browser);
    browser.sees("Vul een e-mailadres in");
    browser.take_problems();
    assert_eq!(browser.evaluate("location.pathname"), "/products");
    browser.press("link", "Openen");
    browser.settles("/clients/new");
    browser.wait_until("document.getElementById('f-company_name')?.value === 'Zonder adres'");
    browser.press("button", "Weggooien");
    browser.wait_until("document.getElementById('f-company_name').value === ''");
    browser.wait_until("document.activeElement.tagName === 'H1'");
}

fn a_deleted_draft_has_a_name(browser: &mut Chromium, client: &Client) {
    let customer = client.post("/v1/clients", json!({"company_name": "Groente & Co"})).expect(201).id();
    let draft = json!({"title": "Zonnescherm", "client_id": customer});
    let page = format!("/invoices/{}", client.post("/v1/invoices", draft).expect(201).id());
    browser.open(&page);
    browser.settles(&page);
    browser.press("button", "Meer");
    browser.press("menuitem", "Verwijderen");
    browser.sees("Zonnescherm verwijderd");
    browser.press("button", "Ongedaan maken");
}

fn a_ticket_says_what_became_of_a_reply(browser: &mut Chromium, server: &Office, client: &Client) {
    let ticket = json!({"subject": "Koud", "client_email": "anna@b.example"});
    let id = client.post("/v1/tickets", ticket).expect(201).id();
    client.post(&format!("/v1/tickets/{id}/messages"), json!({"body": "Morgen om negen uur."})).expect(201);
    let becomes = |set: &str| {
        server.execute(&format!(
            "UPDATE deliveries SET {set} WHERE account_id = {} AND about_id = '{id}'",
            client.account
        ));
    };
    let page = format!("/tickets/{id}");
    let mail = "document.querySelector('.message-mail')?.innerText";
    becomes("status = 'queued'");
    browser.open(&page);
    browser.settles(&page);
    browser.wait_until(&format!("{mail}?.includes('In wachtrij · anna@b.example') === true"));
    // The page looks again by itself.
    becomes("status = 'sent'");
    browser.wait_until(&format!("{mail}?.includes('Verstuurd · anna@b.example') === true"));
    becomes("status = 'failed', reason = 'The mail server mx.b.example rejects the recipient: 550 No such user'");
    browser.open(&page);
    browser.wait_until(&format!("{mail}?.includes('De mailserver weigert de ontvanger: 550 No such user') === true"));
    browser.press("button", "Opnieuw proberen: anna@b.example");
    browser.wait_until(&format!("{mail}?.includes('In wachtrij') === true"));

    // Without an address, nothing is sent, and the page says so.
    let id = client.post("/v1/tickets", json!({"subject": "Warm"})).expect(201).id();
    let page = format!("/tickets/{id}");
    browser.open(&page);
    browser.settles(&page);
    browser.evaluate("document.querySelector('.reply textarea').focus()");
    browser.type_text("Wij komen.");
    browser.key("Ctrl+Enter");
    browser.sees("Niet verstuurd: dit ticket heeft geen e-mailadres.");
}

fn a_document_says_when_a_mail_is_tried_again(browser: &mut Chromium, server: &Office, client: &Client) {
    let rows = json!([{"name": "Boiler", "unit_price": 100, "vat_rate": "21"}]);
    let ster = json!({"company_name": "Ster", "email": "ster@b.example"});
    let ster = client.post("/v1/clients", ster).expect(201).id();
    let invoice = json!({"title": "Boiler", "client_id": ster, "rows": rows, "generation_mode": "final"});
    let id = client.post("/v1/invoices", invoice).expect(201).id();
    let letter = json!({"to": "ster@b.example", "subject": "Boiler", "message": "Hier.", "include_pdf": false});
    client.post(&format!("/v1/invoices/{id}/send"), letter).expect(200);
    // In the year 2100.
    server.execute(&format!(
        "UPDATE deliveries SET status = 'retrying', next_attempt_at = 4102444800000,
                reason = 'The mail server mx.b.example rejects the recipient at the moment: 450 Mailbox busy'
         WHERE account_id = {} AND about_id = '{id}'",
        client.account
    ));
    browser.open(&format!("/invoices/{id}"));
    browser.sees("De mailserver accepteert de mail op dit moment niet: 450 Mailbox busy");
    browser.sees("Kantoor probeert het automatisch opnieuw op 1 jan 2100");
}

/// The latest message is in view, also if the page scrolls and not the conversation. Whoever reads further up stays there.
fn a_low_window_shows_the_latest_message(browser: &mut Chromium, client: &Client) {
    let id = client.post("/v1/tickets", json!({"subject": "Lang verhaal"})).expect(201).id();
    let say = |text: &str| {
        client.post(&format!("/v1/tickets/{id}/messages/inbound"), json!({"body": text})).expect(201);
    };
    for number in 1..=9 {
        say(&format!("Bericht {number}. {}", "Het water blijft koud. ".repeat(12)));
    }
    browser.resize(1280, 500);
    browser.open(&format!("/tickets/{id}"));
    let last = "document.querySelector('.message:last-child')?.getBoundingClientRect().bottom";
    browser.wait_until(&format!("document.querySelectorAll('.message').length === 9 && {last} <= innerHeight"));
    browser.evaluate("scrollTo(0, 50)");
    browser.wait_until("scrollY === 50");
    say("Hallo?");
    browser.wait_until("document.querySelectorAll('.message').length === 10");
    assert_eq!(browser.evaluate("scrollY"), 50);
    browser.resize(1280, 860);
}

/// Without the server, the board of deals says so, and the page of a client shows no amounts.
fn what_is_not_known_is_not_zero(browser: &mut Chromium, client: &Client) {
    let id = client.post("/v1/clients", json!({"company_name": "Garage Smit"})).expect(201).id();
    let page = format!("/clients/{id}");
    browser.open("/settings");
    browser.settles("/settings");
    browser.call("Network.setBlockedURLs", json!({"urls": ["*/console/v1/pipelines*", "*/console/v1/phases*"]}));
    browser.go("/deals");
    browser.sees("De server is niet bereikbaar.");
    browser.wait_until("document.querySelector('.skeleton') === null");
    browser.call("Network.setBlockedURLs", json!({"urls": ["*/console/v1/invoices*"]}));
    browser.go(&page);
    browser.sees("Garage Smit");
    browser.sees("De server is niet bereikbaar.");
    let amounts = "[...document.querySelectorAll('.tile strong')].map((one) => one.innerText).join()";
    assert_eq!(browser.evaluate(amounts), "–,–,–");
    browser.call("Network.setBlockedURLs", json!({"urls": []}));
    let problems = browser.take_problems();
    assert!(problems.iter().all(|one| one.contains("ERR_BLOCKED")), "{problems:#?}");
}

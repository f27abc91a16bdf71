//! A user in a hurry: double clicks, numbers that could be two things, reloads in the middle of typing.

use std::time::Duration;

use serde_json::json;

use super::super::browser::Chromium;
use super::super::client;
use crate::people::owner;
use crate::support::{Client, Db, Office, Server};

#[test]
fn a_hurried_user_loses_and_doubles_nothing() {
    let server = Server::start(Db::sqlite());
    server.leaves_jobs();
    let client = client(&server);
    let olga = owner(&server, &client, "olga@a.example");
    // Chromium may hang when it leaves a page whose PDF viewer is just starting.
    olga.send("PATCH", "/console/v1/me", r#"{"preferences":{"sheet":"rows"}}"#).expect(200);
    let Some(mut browser) = Chromium::start(&client.base, 1280, 860) else { return };
    let browser = &mut browser;
    browser.new_tab(&olga.cookie, 1280, 860);
    a_double_click_opens_one_dialog(browser, &client);
    keys_that_open_a_question_do_not_answer_it(browser, &client);
    a_mail_was_sent_when_a_server_accepted_it(browser, &server, &client);
    an_ambiguous_price_is_asked(browser);
    a_document_is_seen_while_it_is_written(browser);
    hours_come_back(browser, &client);
    a_name_comes_back(browser);
    a_logo_is_a_picture(browser, &client);
    errors_lead_to_their_fields(browser);
    browser.check();
}

/// Clicks a button twice before the page can answer.
fn double_click(browser: &mut Chromium, name: &str) {
    let found = format!("[...document.querySelectorAll('.actions button')].find((one) => one.innerText === '{name}')");
    browser.wait_until(&format!("{found} !== undefined"));
    browser.evaluate(&format!("(() => {{ const found = {found}; found.click(); found.click(); }})()"));
}

fn dialogs(browser: &mut Chromium) -> serde_json::Value {
    browser.evaluate("document.querySelectorAll('dialog').length")
}

fn keys_that_open_a_question_do_not_answer_it(browser: &mut Chromium, client: &Client) {
    let rows = json!([{"name": "Boiler", "unit_price": 100, "vat_rate": "21"}]);
    let customer = client.get("/v1/clients").data()[0]["id"].clone();
    let invoice = json!({"title": "Boiler", "client_id": customer, "rows": rows});
    let page = format!("/invoices/{}", client.post("/v1/invoices", invoice).expect(201).id());
    browser.open(&page);
    browser.settles(&page);
    browser.sees("Definitief maken en versturen");
    // A second press, a key that is held, and a press of the button that has the focus.
    let does_nothing = browser.evaluate(
        "(async () => {
           const press = (more) => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true, ...more }));
           for (const repeat of [false, false, true]) {
             press({ ctrlKey: true, repeat });
             await new Promise((done) => setTimeout(done)); }
           document.querySelector('dialog [type=submit]').focus();
           return !press({}); })()",
    );
    assert_eq!(does_nothing, json!(true));
    browser.sees("Het volgende nummer is ");
    let idle = "document.querySelectorAll('dialog[open]:not([aria-busy])').length";
    assert_eq!((browser.evaluate(idle), dialogs(browser)), (json!(1), json!(1)));
    assert_eq!(client.get(&format!("/v1{page}")).data()["payment_status"], "draft");
    browser.reads();
    browser.key("Ctrl+Enter");
    browser.sees("Versturen per e-mail");
    assert_eq!(client.get(&format!("/v1{page}")).data()["payment_status"], "open");
    browser.key("Escape");
}

fn a_double_click_opens_one_dialog(browser: &mut Chromium, client: &Client) {
    let customer = json!({"company_name": "Bakkerij De Ster", "email": "ster@b.example"});
    let customer = client.post("/v1/clients", customer).expect(201).id();
    let rows = json!([{"name": "Boiler", "unit_price": 100, "vat_rate": "21"}]);
    let invoice = json!({"title": "Boiler", "client_id": customer, "rows": rows, "generation_mode": "final"});
    let page = format!("/invoices/{}", client.post("/v1/invoices", invoice).expect(201).id());
    browser.open(&page);
    browser.settles(&page);
    double_click(browser, "Versturen");
    // The first field has the focus as soon as there is one.
    browser.wait_until("document.activeElement.id === 'send-to'");
    assert_eq!(dialogs(browser), 1);
    browser.reads();
    browser.key("Ctrl+Enter");
    browser.wait_until("document.querySelector('dialog') === null && document.activeElement !== document.body");
    double_click(browser, "Betaling boeken");
    browser.wait_until("document.getElementById('pay-amount')?.value === '121,00'");
    assert_eq!(dialogs(browser), 1);
    // Untouched, the amount is what is open now.
    client.post(&format!("/v1{page}/payments"), json!({"amount": 21})).expect(201);
    browser.wait_until("document.getElementById('pay-amount')?.value === '100,00'");
    browser.type_in("pay-amount", "110");
    browser.press("button", "Boeken");
    browser.wait_until("document.querySelector('.money-card')?.innerText.includes('Te veel betaald') === true");
    browser.wait_until("document.querySelector('.big-amount').innerText.includes('10,00')");
    assert_eq!(client.get(&format!("/v1{page}/payments")).data().as_array().unwrap().len(), 2);
}

/// Mail in the outbox is being sent; that it was sent, or could not be delivered, is known later.
fn a_mail_was_sent_when_a_server_accepted_it(browser: &mut Chromium, server: &Office, client: &Client) {
    let rows = json!([{"name": "Boiler", "unit_price": 100, "vat_rate": "21"}]);
    let ster = json!({"company_name": "Ster", "email": "ster@b.example"});
    let ster = client.post("/v1/clients", ster).expect(201).id();
    let invoice = json!({"title": "Boiler", "client_id": ster, "rows": rows, "generation_mode": "final"});
    let id = client.post("/v1/invoices", invoice).expect(201).id();
    let letter = json!({"to": "ster@b.example", "subject": "Boiler", "message": "Hier.", "include_pdf": false});
    client.post(&format!("/v1/invoices/{id}/send"), letter).expect(200);
    let becomes = |status: &str| {
        server.execute(&format!(
            "UPDATE deliveries SET status = '{status}' WHERE account_id = {} AND about_id = '{id}'",
            client.account
        ));
    };
    let history = "document.querySelector('.history').innerText";
    becomes("queued");
    browser.open(&format!("/invoices/{id}"));
    browser.wait_until(&format!("{history}.includes('Mail wordt verstuurd')"));
    assert_eq!(browser.evaluate(&format!("{history}.includes('Per e-mail verstuurd')")), false);
    // The page looks again by itself.
    becomes("sent");
    browser.wait_until(&format!("{history}.includes('Per e-mail verstuurd')"));
    becomes("failed");
    browser.open(&format!("/invoices/{id}"));
    browser.wait_until(&format!("{history}.includes('Mail niet bezorgd')"));
    assert_eq!(browser.evaluate(&format!("{history}.includes('Per e-mail verstuurd')")), false);
}

/// Enter chooses one of the two numbers; without a choice the question comes back with the draft.
fn an_ambiguous_price_is_asked(browser: &mut Chromium) {
    browser.go("/invoices/new");
    browser.settles("/invoices/new");
    browser.evaluate("document.querySelector('.cell-name input').focus()");
    browser.type_text("Ketel");
    browser.evaluate("document.querySelector('.cell-price input').focus()");
    browser.type_text("1.234");
    browser.key("Tab");
    browser.wait_until("document.activeElement.matches('.either button')");
    browser.key("Enter");
    browser.wait_until(
        "document.activeElement.matches('.cell-price input') && document.activeElement.value === '1.234,00'",
    );
    browser.evaluate("document.activeElement.select()");
    browser.type_text("1.235");
    browser.wait_until("Object.keys(localStorage).some((key) => localStorage[key].includes('1.235'))");
    browser.open("/invoices/new");
    browser.sees("Uw niet-opgeslagen wijzigingen");
    browser.wait_until("document.querySelector('.cell-price input').value === '1.235'");
    browser.wait_until("document.querySelector('.either').checkVisibility({ contentVisibilityAuto: true })");
    browser.key("Ctrl+Enter");
    browser.wait_until("document.activeElement.matches('.cell-price input[aria-invalid=true]')");
    assert_eq!(dialogs(browser), 0);
    browser.evaluate("localStorage.clear()");
}

/// Where there is no room for it beside the form, a button shows the page as it looks so far.
fn a_document_is_seen_while_it_is_written(browser: &mut Chromium) {
    browser.open("/quotes/new");
    browser.settles("/quotes/new");
    browser.type_in("f-title", "Ketel vervangen");
    browser.evaluate("document.querySelector('.cell-name input').focus()");
    browser.type_text("Ketel van 28 kW");
    browser.press("button", "Voorbeeld");
    browser.wait_until("document.querySelector('dialog .paper')?.innerText.includes('Ketel van 28 kW') === true");
    assert_eq!(browser.evaluate("document.querySelector('dialog .paper-head strong').innerText"), "Ketel vervangen");
    browser.key("Escape");
    browser.wait_until("document.querySelector('dialog') === null");
    browser.resize(1700, 860);
    browser
        .wait_until("document.querySelector('.editor-preview .paper')?.innerText.includes('Ketel van 28 kW') === true");
    browser.wait_until("!document.querySelector('.head .narrow-only').checkVisibility()");
    browser.resize(1280, 860);
    browser.wait_until("document.querySelector('.editor-preview') === null");
    browser.evaluate("localStorage.clear()");
}

fn hours_come_back(browser: &mut Chromium, client: &Client) {
    client.post("/v1/projects", json!({"name": "Verbouwing"})).expect(201);
    browser.open("/hours");
    browser.settles("/hours");
    browser.press("button", "Project toevoegen");
    browser.wait_until("document.activeElement.id === 'add-project'");
    browser.type_text("Verb");
    browser.wait_until("document.querySelector('[role=option]')?.innerText.includes('Verbouwing') === true");
    browser.key("Enter");
    browser.evaluate("document.querySelector('dialog [type=submit]').click()");
    browser.wait_until("document.activeElement.matches('.week tbody tr td:nth-child(2) input')");
    browser.type_text("2");
    browser.wait_until(
        "Object.keys(localStorage).some((key) => key.includes('/hours') && localStorage[key].includes(':\"2\"'))",
    );
    browser.open("/hours");
    browser.sees("Uw niet-opgeslagen wijzigingen");
    browser.wait_until("document.querySelector('.week td input')?.value === '2'");
    browser.evaluate("document.querySelector('.week td input').focus()");
    browser.key("Enter");
    browser.wait_until("document.activeElement.matches('.week tbody tr td:nth-child(3) input')");
    browser.wait_until("document.querySelector('.week tfoot .sum').innerText === '2:00'");
    assert_eq!(client.get("/v1/hours").data()[0]["minutes"], 120);
}

fn a_name_comes_back(browser: &mut Chromium) {
    browser.go("/settings/account");
    browser.settles("/settings/account");
    browser.type_in("account-name", "Molen en Zoon");
    browser.wait_until("Object.keys(localStorage).some((key) => localStorage[key].includes('Molen en Zoon'))");
    browser.open("/settings/account");
    browser.sees("Uw niet-opgeslagen wijzigingen");
    assert_eq!(browser.value("account-name"), "Molen en Zoon");
    browser.press("button", "Weggooien");
    browser.wait_until("document.getElementById('account-name').value !== 'Molen en Zoon'");
}

/// What is no picture is refused before it is uploaded; another choice leaves no file behind.
fn a_logo_is_a_picture(browser: &mut Chromium, client: &Client) {
    let page = "/settings/corporate-identities/new";
    browser.go(page);
    browser.settles(page);
    browser.upload("f-logo_file_id", "console/words/nl.json");
    browser.sees("Dit is geen PNG- of JPEG-afbeelding.");
    let uploaded = || client.get("/v1/files?origin=uploaded").json()["meta"]["total"].clone();
    assert_eq!(uploaded(), 0);
    browser.upload("f-logo_file_id", "console/icon.png");
    browser.wait_until("document.querySelector('.file-box img') !== null");
    let first = browser.evaluate("document.querySelector('.file-box img').src");
    browser.upload("f-logo_file_id", "console/icon.png");
    browser.wait_until(&format!("![null, {first}].includes(document.querySelector('.file-box img')?.src ?? null)"));
    // The first one is deleted when the second one is there.
    for _ in 0..200 {
        if uploaded() == 1 {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{} files are left", uploaded());
}

fn errors_lead_to_their_fields(browser: &mut Chromium) {
    browser.go("/flows/new");
    browser.settles("/flows/new");
    browser.press("button", "Stap toevoegen");
    browser.press("menuitem", "Taak aanmaken");
    browser.key("Ctrl+s");
    browser.sees("Stap 1, Titel: Dit veld is verplicht.");
    browser.take_problems();
    browser.press("link", "Stap 1, Titel: Dit veld is verplicht.");
    browser.wait_until("document.activeElement.matches('.flow-edit input[aria-invalid=true]')");
}

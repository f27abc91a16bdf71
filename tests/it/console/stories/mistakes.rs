//! What was done by mistake is corrected in the console: a payment, and a record that was deleted too soon.

use serde_json::json;

use super::super::browser::Chromium;
use super::super::client;
use crate::people::owner;
use crate::support::{Client, Db, Server};

#[test]
fn mistakes_are_corrected() {
    let server = Server::start(Db::sqlite());
    server.leaves_jobs();
    let client = client(&server);
    let olga = owner(&server, &client, "olga@a.example");
    // Chromium may hang when it leaves a page whose PDF viewer is just starting.
    olga.send("PATCH", "/console/v1/me", r#"{"preferences":{"sheet":"rows"}}"#).expect(200);
    let Some(mut browser) = Chromium::start(&client.base, 1280, 860) else { return };
    let own = browser.new_tab(&olga.cookie, 1280, 860);
    a_payment_is_corrected_and_deleted(&mut browser, &client);
    a_deleted_record_comes_back(&mut browser, &client);
    a_delete_survives_a_reload(&mut browser, &client);
    a_note_names_its_author(&mut browser, &client);
    browser.check();
    browser.close_tab(own);
}

fn a_payment_is_corrected_and_deleted(browser: &mut Chromium, client: &Client) {
    let rows = json!([{"name": "Oven", "unit_price": 1000, "vat_code": "NL21"}]);
    let baker = client.post("/v1/clients", json!({"company_name": "Bakkerij De Ster"})).expect(201).id();
    let invoice = json!({"title": "Oven", "client_id": baker, "rows": rows, "generate": true});
    let invoice = client.post("/v1/invoices", invoice).expect(201).id();
    let payments = format!("/v1/invoices/{invoice}/payments");
    client.post(&payments, json!({"amount": 210})).expect(201);
    // What a provider says cannot be changed here.
    let online = json!({"amount": 5, "type": "online", "status": "open", "method": "ideal"});
    client.post(&payments, online).expect(201);
    browser.open(&format!("/invoices/{invoice}"));
    browser.wait_until("document.querySelectorAll('.lines .menu > button').length === 1");
    let open_menu = "document.querySelector('.lines .menu > button').click()";
    browser.evaluate(open_menu);
    browser.press("menuitem", "Bewerken");
    browser.wait_until("document.getElementById('pay-amount')?.value.startsWith('210') === true");
    browser.type_in("pay-amount", "310");
    browser.type_in("pay-reference", "Afschrift 7");
    browser.press("button", "Opslaan");
    browser.wait_until("document.querySelector('.big-amount').innerText.includes('900,00')");
    browser.sees("Afschrift 7");
    let corrected = client.get(&format!("{payments}?type=manual")).data()[0].clone();
    assert_eq!((&corrected["amount"], &corrected["external_id"]), (&json!(310), &json!("Afschrift 7")));
    browser.evaluate(open_menu);
    browser.press("menuitem", "Verwijderen");
    browser.wait_until("document.querySelector('.lines .menu') === null");
    browser.wait_until("document.querySelector('.big-amount').innerText.includes('1.210,00')");
    assert_eq!(client.get(&payments).json()["meta"]["total"], 1);
}

fn a_deleted_record_comes_back(browser: &mut Chromium, client: &Client) {
    let made = |title: &str| client.post("/v1/tasks", json!({"title": title})).expect(201).id();
    let (task, _) = (made("Vergissing"), made("Bellen"));
    browser.open(&format!("/tasks/{task}"));
    browser.settles(&format!("/tasks/{task}"));
    browser.press("button", "Meer");
    browser.press("menuitem", "Verwijderen");
    // The list is without it at once.
    browser.wait_until("document.querySelectorAll('tbody tr[id]').length === 1");
    browser.press("button", "Ongedaan maken");
    browser.wait_until("document.querySelectorAll('tbody tr[id]').length === 2");
    client.get(&format!("/v1/tasks/{task}")).expect(200);
}

/// Whoever deletes and leaves the page at once has deleted.
fn a_delete_survives_a_reload(browser: &mut Chromium, client: &Client) {
    let task = client.post("/v1/tasks", json!({"title": "Oud"})).expect(201).id();
    browser.open(&format!("/tasks/{task}"));
    browser.settles(&format!("/tasks/{task}"));
    browser.press("button", "Meer");
    browser.press("menuitem", "Verwijderen");
    browser.sees("Oud verwijderd.");
    browser.open("/tasks");
    browser.settles("/tasks");
    browser.wait_until("document.querySelectorAll('tbody tr[id]').length === 2");
    browser.wait_until("sessionStorage.deleting === '[]'");
    client.get(&format!("/v1/tasks/{task}")).expect(404);
    // The page asks once more for what the one before it may have deleted already.
    browser.take_problems();
}

fn a_note_names_its_author(browser: &mut Chromium, client: &Client) {
    let ticket = client.post("/v1/tickets", json!({"subject": "Koud"})).expect(201).id();
    browser.open(&format!("/tickets/{ticket}"));
    browser.wait_until("document.querySelector('.reply textarea') !== null");
    browser.key("i");
    browser.wait_until("document.activeElement === document.querySelector('.reply.note textarea')");
    browser.type_text("Morgen bellen");
    browser.key("Ctrl+Enter");
    browser.wait_until("document.querySelector('.message-head')?.innerText.includes('Olga Owner') === true");
}

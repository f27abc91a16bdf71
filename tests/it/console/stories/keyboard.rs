//! The keyboard alone: an invoice of twenty rows is made, finalized and sent, a deal moved, a ticket closed.

use serde_json::json;

use super::super::browser::Chromium;
use super::super::client;
use crate::people::owner;
use crate::support::{Client, Db, Server};

const ROWS: usize = 20;

#[test]
fn the_keyboard_alone_is_enough() {
    let server = Server::start(Db::sqlite());
    server.leaves_jobs();
    let client = client(&server);
    let olga = owner(&server, &client, "olga@a.example");
    // Chromium may hang when it leaves a page whose PDF viewer is just starting.
    olga.send("PATCH", "/console/v1/me", r#"{"preferences":{"sheet":"rows"}}"#).expect(200);
    let customer = json!({"company_name": "Bakkerij De Ster", "email": "ster@b.example"});
    let customer = client.post("/v1/clients", customer).expect(201).id();
    let Some(mut browser) = Chromium::start(&client.base, 1280, 860) else { return };
    let browser = &mut browser;
    browser.new_tab(&olga.cookie, 1280, 860);
    an_invoice_is_made_and_sent(browser, &client);
    a_deal_is_moved(browser, &client, &customer);
    a_ticket_is_closed(browser, &client);
    a_record_is_opened(browser, &client);
    hours_get_a_row(browser, &client, &customer);
    a_wrong_number_is_shown(browser);
    browser.check();
}

/// Presses Tab until the focus is on the element that matches, and checks that the focus is always visible.
#[track_caller]
fn tab_to(browser: &mut Chromium, selector: &str) {
    for _ in 0..60 {
        browser.key("Tab");
        let seen = browser
            .evaluate("document.activeElement === document.body || document.activeElement.matches(':focus-visible')");
        assert_eq!(seen, true, "the focus cannot be seen");
        if browser.evaluate(&format!("document.activeElement.matches({})", json!(selector))) == true {
            return;
        }
    }
    panic!("Tab does not reach {selector}");
}

fn an_invoice_is_made_and_sent(browser: &mut Chromium, client: &Client) {
    browser.open("/");
    browser.settles("/");
    browser.key("n");
    browser.key("i");
    browser.settles("/invoices/new");
    browser.wait_until("document.activeElement.id === 'f-client_id'");
    browser.type_text("Ster");
    browser.wait_until("document.querySelector('[role=option]')?.innerText.includes('Bakkerij De Ster') === true");
    browser.key("Enter");
    tab_to(browser, "#f-title");
    browser.type_text("Twintig regels");
    tab_to(browser, ".cell-name input");
    for row in 1..=ROWS {
        browser.type_text(&format!("Regel {row}"));
        browser.key("Tab");
        browser.type_text("2");
        tab_to(browser, ".cell-price input");
        browser.type_text("1,25");
        // The blank row is there when the row is filled in.
        browser.wait_until(&format!("document.querySelectorAll('.row-line').length === {}", row + 1));
        tab_to(browser, ".cell-name input");
    }
    browser.wait_until("document.querySelector('.sums .grand').innerText.includes('60,50')");
    browser.key("Ctrl+Enter");
    browser.sees("Het volgende nummer is ");
    browser.wait_until("document.activeElement.type === 'submit'");
    browser.reads();
    browser.key("Enter");
    browser.sees("Versturen per e-mail");
    browser.wait_until("document.getElementById('send-to')?.value === 'ster@b.example'");
    browser.reads();
    browser.key("Ctrl+Enter");
    // A server without mail settings says that it stores the mail, as soon as it has stored one.
    browser.wait_until("/De mail aan ster@b.example (wordt verstuurd|is bewaard)/.test(document.body.innerText)");
    let invoice = client.get("/v1/invoices").data()[0].clone();
    assert_eq!((&invoice["payment_status"], &invoice["total_incl_vat"]), (&json!("open"), &json!(60.5)));
    let id = invoice["id"].as_str().unwrap();
    assert_eq!(client.get(&format!("/v1/invoices/{id}")).data()["rows"].as_array().unwrap().len(), ROWS);
}

fn a_deal_is_moved(browser: &mut Chromium, client: &Client, customer: &str) {
    let deal = client.post("/v1/deals", json!({"title": "Nieuwe keuken", "client_id": customer})).expect(201);
    let (id, first) = (deal.id(), deal.data()["phase_id"].clone());
    browser.go("/deals");
    browser.sees("Nieuwe keuken");
    browser.evaluate("document.activeElement.blur()");
    browser.key("ArrowDown");
    browser.wait_until("document.activeElement.closest('.deal') !== null");
    browser.key("Ctrl+Shift+ArrowRight");
    browser.sees("Nieuwe keuken verplaatst naar");
    let moved = client.get(&format!("/v1/deals/{id}")).data()["phase_id"].clone();
    assert_ne!(moved, first);
    // The card keeps the focus.
    browser.wait_until("document.activeElement.closest('.deal') !== null");
    browser.key("w");
    browser.sees("Nieuwe keuken is gewonnen");
    assert_eq!(client.get(&format!("/v1/deals/{id}")).data()["status"], "won");
}

fn a_ticket_is_closed(browser: &mut Chromium, client: &Client) {
    let ticket = json!({"subject": "Lekkage", "client_email": "piet@b.example"});
    let id = client.post("/v1/tickets", ticket).expect(201).id();
    browser.go("/tickets");
    browser.sees("Lekkage");
    browser.evaluate("document.activeElement.blur()");
    browser.key("j");
    browser.settles(&format!("/tickets/{id}"));
    browser.key("r");
    browser.wait_until("document.activeElement.tagName === 'TEXTAREA'");
    browser.type_text("Opgelost");
    browser.key("Ctrl+Enter");
    browser.sees("De mail aan piet@b.example is bewaard");
    browser.evaluate("document.activeElement.blur()");
    browser.key("s");
    browser.wait_until("document.activeElement.matches('[role=menuitem]')");
    // The last status of a new account is the closed one.
    browser.key("ArrowUp");
    browser.key("Enter");
    browser.wait_until("document.querySelector('[role=menuitem]') === null");
    browser.wait_until("document.querySelector('.conversation-head .pill').className.includes('calm')");
    browser.wait_until("document.activeElement.closest('.menu') !== null");
    assert!(client.get(&format!("/v1/tickets/{id}")).data()["closed_at"].is_string());
}

/// The focus follows: to the heading of the record, and back to its row.
fn a_record_is_opened(browser: &mut Chromium, client: &Client) {
    let id = client.post("/v1/products", json!({"name": "Boiler", "price": 1250})).expect(201).id();
    browser.go("/products");
    browser.sees("Boiler");
    browser.evaluate("document.activeElement.blur()");
    browser.key("j");
    browser.wait_until("document.activeElement.tagName === 'TR'");
    browser.key("Enter");
    browser.settles(&format!("/products/{id}"));
    browser.wait_until("document.activeElement.tagName === 'H1' && document.activeElement.innerText === 'Boiler'");
    browser.evaluate("history.back()");
    browser.wait_until(&format!("document.activeElement.id === 'row-{id}'"));
}

/// The first cell of the new row has the focus.
fn hours_get_a_row(browser: &mut Chromium, client: &Client, customer: &str) {
    let project = json!({"name": "Verbouwing", "client_id": customer});
    client.post("/v1/projects", project).expect(201);
    browser.go("/hours");
    browser.settles("/hours");
    browser.evaluate(
        "[...document.querySelectorAll('button')].find((one) => one.innerText === 'Project toevoegen').focus()",
    );
    browser.key("Enter");
    browser.wait_until("document.activeElement.id === 'add-project'");
    browser.type_text("Verb");
    browser.wait_until("document.querySelector('[role=option]')?.innerText.includes('Verbouwing') === true");
    browser.key("Enter");
    tab_to(browser, "dialog [type=submit]");
    browser.key("Enter");
    browser.wait_until("document.activeElement.matches('.week tbody tr td:nth-child(2) input')");
}

/// What cannot be read gets the focus instead of a question.
fn a_wrong_number_is_shown(browser: &mut Chromium) {
    browser.go("/invoices/new");
    browser.settles("/invoices/new");
    // The address changes before the page of the hours, which has the focus, is replaced.
    browser.wait_until("document.activeElement.id === 'f-client_id'");
    browser.evaluate("document.querySelector('.cell-name input').focus()");
    browser.type_text("Ketel");
    browser.evaluate("document.querySelector('.cell-quantity input').focus()");
    browser.type_text("abc");
    browser.evaluate("document.getElementById('f-title').focus()");
    browser.key("Ctrl+Enter");
    browser.wait_until("document.activeElement.matches('.cell-quantity input[aria-invalid=true]')");
    assert_eq!(browser.evaluate("document.querySelectorAll('dialog').length"), 0);
    let wide = browser.evaluate("document.querySelector('.row-line .wrong').offsetWidth > 300");
    assert_eq!(wide, true, "the message has room");
    browser.type_text("2");
    browser.wait_until("document.querySelector('.row-line .wrong') === null");
    browser.key("Ctrl+Enter");
    browser.sees("Het volgende nummer is ");
    browser.key("Escape");
}

//! A day of the owner, on a desktop and on a phone: a client, a quote that the client accepts on its page, the invoice, a
//! part payment and the rest, a credit invoice. Nothing needs a program.

use serde_json::{Value, json};

use super::super::browser::Chromium;
use super::super::client;
use crate::people::owner;
use crate::support::{Client, Db, Server};

#[test]
fn a_day_of_the_owner() {
    let server = Server::start(Db::sqlite());
    server.leaves_jobs();
    let client = client(&server);
    let olga = owner(&server, &client, "olga@a.example");
    // Chromium may hang when it leaves a page whose PDF viewer is just starting.
    olga.send("PATCH", "/console/v1/me", r#"{"preferences":{"sheet":"rows"}}"#).expect(200);
    let Some(mut browser) = Chromium::start(&client.base, 1280, 860) else { return };
    for (width, height, name) in [(1280, 860, "Bakkerij De Ster"), (390, 844, "Garage Smit")] {
        let own = browser.new_tab(&olga.cookie, width, height);
        let quote = a_quote_is_made_and_sent(&mut browser, &client, name);
        the_client_accepts_it(&mut browser, &client, &quote, (width, height));
        let invoice = it_becomes_an_invoice(&mut browser);
        it_is_paid_and_credited(&mut browser, &client, &invoice);
        browser.check();
        browser.close_tab(own);
    }
}

fn shown(client: &Client, page: &str) -> Value {
    client.get(&format!("/v1{page}")).expect(200).data()
}

/// Returns the address that the browser shows.
fn address(browser: &mut Chromium) -> String {
    browser.evaluate("location.pathname").as_str().unwrap().to_string()
}

fn a_quote_is_made_and_sent(browser: &mut Chromium, client: &Client, name: &str) -> String {
    browser.open("/clients/new");
    browser.settles("/clients/new");
    browser.type_in("f-company_name", name);
    browser.type_in("f-email", "info@b.example");
    browser.press("button", "Opslaan");
    browser.wait_until("/^.clients.[0-9a-f-]{36}$/.test(location.pathname)");
    let customer = address(browser);
    let customer = customer.rsplit('/').next().unwrap();
    browser.go(&format!("/quotes/new?client_id={customer}"));
    browser.wait_until("document.querySelector('.cell-name input') !== null");
    browser.type_in("f-title", "Nieuwe oven");
    browser.evaluate("document.querySelector('.cell-name input').focus()");
    browser.type_text("Oven");
    browser.evaluate("document.querySelector('.cell-price input').focus()");
    browser.type_text("1000");
    browser.wait_until("document.querySelector('.sums .grand').innerText.includes('1.210,00')");
    browser.press("button", "Concept opslaan");
    browser.wait_until("/^.quotes.[0-9a-f-]{36}$/.test(location.pathname)");
    let quote = address(browser);
    finalize_and_send(browser, &quote);
    assert_eq!(shown(client, &quote)["payment_status"], "open");
    quote
}

/// Finalizes the draft that is open, and mails it.
fn finalize_and_send(browser: &mut Chromium, address: &str) {
    browser.settles(address);
    browser.key("Ctrl+Enter");
    browser.sees("Het volgende nummer is ");
    browser.press("button", "Definitief maken en versturen");
    browser.wait_until("document.getElementById('send-to')?.value === 'info@b.example'");
    the_mail_is_shown(browser);
    browser.press("button", "Versturen");
    // A server without mail settings says that it stores the mail, as soon as it has stored one.
    browser.wait_until("/De mail aan info@b.example (wordt verstuurd|is bewaard)/.test(document.body.innerText)");
}

/// Before it is sent, the mail is shown as it will look, with the name of the PDF; it follows what is typed.
fn the_mail_is_shown(browser: &mut Chromium) {
    let inside = "document.querySelector('iframe.letter-body').contentDocument?.body?.innerText";
    browser.wait_until(&format!("{inside}?.includes('Met vriendelijke groet') === true"));
    browser.wait_until(&format!("{inside}.includes('1.210,00')"));
    assert_eq!(
        browser.evaluate("/^[FQ]2026-\\d+\\.pdf$/.test(document.querySelector('.attachment').innerText)"),
        true,
        "{}",
        browser.evaluate("document.querySelector('.letter').innerText")
    );
    let head = browser.evaluate("document.querySelector('.letter-head').innerText");
    assert!(head.as_str().unwrap().contains("info@b.example"), "{head}");
    let message = browser.value("send-message");
    browser.type_in("send-message", "Tot morgen <b>&");
    browser.wait_until(&format!("{inside}.includes('Tot morgen <b>&') && !{inside}.includes('Met vriendelijke')"));
    browser.press("button", "Standaardtekst terugzetten");
    browser.wait_until(&format!("{inside}.includes('Met vriendelijke groet')"));
    assert_eq!(browser.value("send-message"), message);
    // Nothing in the preview leads away, and the dialog fits the screen.
    assert_eq!(
        browser.evaluate(
            "document.querySelector('iframe.letter-body').contentDocument.querySelectorAll('a[href]').length"
        ),
        0
    );
    assert_eq!(browser.evaluate("document.querySelector('dialog.send').scrollWidth <= innerWidth"), true);
}

fn the_client_accepts_it(browser: &mut Chromium, client: &Client, quote: &str, (width, height): (u32, u32)) {
    let url = shown(client, quote)["web_url"].as_str().unwrap().to_string();
    let own = browser.new_tab("", width, height);
    browser.open(&url[url.find("/d/").unwrap()..]);
    browser.wait_until("document.getElementById('name') !== null");
    browser.type_in("name", "Piet Bakker");
    browser.press("button", "Offerte accepteren");
    browser.wait_until("document.getElementById('name') === null");
    browser.close_tab(own);
    assert_eq!(shown(client, quote)["payment_status"], "accepted");
    // The owner sees it without loading the page again.
    browser.sees("Geaccepteerd");
}

fn it_becomes_an_invoice(browser: &mut Chromium) -> String {
    browser.press("button", "Factuur maken");
    browser.sees("Er komt een conceptfactuur met dezelfde regels");
    browser.press("button", "Factuur maken");
    browser.wait_until("/^.invoices.[0-9a-f-]{36}$/.test(location.pathname)");
    let invoice = address(browser);
    browser.sees("Concept opslaan");
    finalize_and_send(browser, &invoice);
    invoice
}

fn it_is_paid_and_credited(browser: &mut Chromium, client: &Client, invoice: &str) {
    for (open, amount, status) in [("1.210,00", "210", "partial"), ("1.000,00", "", "paid")] {
        browser.wait_until("document.querySelector('dialog[open]') === null");
        browser.wait_until(&format!("document.querySelector('.big-amount')?.innerText.includes('{open}') === true"));
        browser.key("p");
        // The dialog takes the focus when it opens: what is typed before goes elsewhere.
        browser.wait_until(
            "document.getElementById('pay-amount')?.closest('dialog').contains(document.activeElement) === true",
        );
        if !amount.is_empty() {
            browser.type_in("pay-amount", amount);
            browser.wait_until(&format!("document.getElementById('pay-amount').value.startsWith('{amount}')"));
        }
        browser.press("button", "Boeken");
        browser.wait_until("document.querySelector('dialog[open]') === null");
        assert_eq!(shown(client, invoice)["payment_status"], status);
    }
    browser.sees("Voldaan");
    let amounts: Vec<Value> = shown(client, &format!("{invoice}/payments"))
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["amount"].clone())
        .collect();
    assert!(amounts.contains(&json!(210)) && amounts.contains(&json!(1000)), "{amounts:?}");
    // On a phone, the message about the payment lies above the buttons for a while.
    browser.wait_until("document.querySelector('.toast') === null");
    browser.press("button", "Crediteren");
    browser.sees("Er komt meteen een creditfactuur");
    browser.press("button", "Crediteren");
    browser.sees("Creditfactuur gemaakt.");
    browser.wait_until(&format!("location.pathname !== '{invoice}'"));
    let credit = address(browser);
    assert_eq!(shown(client, &credit)["is_credit"], true);
    // The client has paid, so the business owes what it credits.
    browser.sees("Terug te betalen");
}

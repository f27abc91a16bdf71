//! What is typed while something is being saved is saved too, or stays where it was typed.

use serde_json::json;

use super::super::browser::Chromium;
use super::super::client;
use crate::people::owner;
use crate::support::{Client, Db, Server};

#[test]
fn what_is_typed_meanwhile_is_kept() {
    let server = Server::start(Db::sqlite());
    server.leaves_jobs();
    let client = client(&server);
    let olga = owner(&server, &client, "olga@a.example");
    let Some(mut browser) = Chromium::start(&client.base, 1280, 860) else { return };
    let browser = &mut browser;
    browser.new_tab(&olga.cookie, 1280, 860);
    let customer = in_a_new_form(browser, &client);
    in_a_form(browser, &client, &customer);
    a_refusal_makes_no_second_record(browser, &client);
    in_a_new_invoice(browser, &client, &customer);
    in_an_invoice(browser, &client);
    after_a_lost_response(browser, &client, &customer);
    in_a_subscription(browser, &client, &customer);
    in_a_flow(browser, &client);
    in_a_new_flow(browser, &client);
    in_a_ticket(browser, &client);
    in_a_new_ticket(browser, &client);
    in_a_reply_and_a_note(browser, &client);
    in_settings(browser, &client);
    after_leaving(browser, &client, &customer);
    after_leaving_a_new_quote(browser, &client);
    a_draft_takes_back_nothing(browser, &client, &customer);
    a_dialog_waits_for_its_answer(browser, &client, &customer);
    browser.check();
}

/// From now on the next request that changes something waits until it is released.
fn hold(browser: &mut Chromium) {
    browser.evaluate(
        "(() => { const real = window.fetch; window.fetch = async (...all) => { \
         if ((all[1]?.method ?? 'GET') !== 'GET' && !String(all[0]).endsWith('/me/here')) { window.fetch = real; await new Promise((done) => { window.release = done; }); } \
         return real(...all); }; })()",
    );
}

/// Types while the request is under way, at the end of the focused field, and lets the request go.
fn types_meanwhile(browser: &mut Chromium, text: &str) {
    browser.wait_until(HELD);
    browser.type_text(text);
    release(browser);
}

const HELD: &str = "typeof window.release === 'function'";

fn release(browser: &mut Chromium) {
    browser.evaluate("(() => { const go = window.release; window.release = undefined; go(); })()");
}

/// Puts the caret at the end of a field.
fn at_the_end_of(browser: &mut Chromium, selector: &str) {
    browser.wait_until(&format!("document.querySelector('{selector}') !== null"));
    browser.evaluate(&format!(
        "(() => {{ const box = document.querySelector('{selector}'); box.focus(); box.setSelectionRange(box.value.length, box.value.length); }})()"
    ));
}

/// What was typed is saved: nothing of it is left in the browser.
#[track_caller]
fn no_drafts(browser: &mut Chromium) {
    browser.wait_until("Object.keys(localStorage).every((key) => !key.startsWith('draft '))");
}

fn in_a_new_form(browser: &mut Chromium, client: &Client) -> String {
    browser.open("/clients/new");
    browser.settles("/clients/new");
    browser.type_in("f-company_name", "Bakkerij");
    hold(browser);
    browser.key("Ctrl+s");
    types_meanwhile(browser, " De Ster");
    browser.wait_until("document.querySelector('h1')?.innerText === 'Bakkerij De Ster'");
    let all = client.get("/v1/clients?search=Bakkerij").data();
    assert_eq!((all.as_array().unwrap().len(), &all[0]["company_name"]), (1, &json!("Bakkerij De Ster")));
    no_drafts(browser);
    all[0]["id"].as_str().unwrap().to_string()
}

fn in_a_form(browser: &mut Chromium, client: &Client, customer: &str) {
    let address = format!("/clients/{customer}/edit");
    browser.go(&address);
    browser.settles(&address);
    browser.type_in("f-phone", "013");
    hold(browser);
    browser.key("Ctrl+s");
    types_meanwhile(browser, " 1234567");
    browser.settles(&format!("/clients/{customer}"));
    assert_eq!(client.get(&format!("/v1/clients/{customer}")).data()["phone"], "013 1234567");
    no_drafts(browser);
}

/// The record is there before what was typed meanwhile is refused: the corrected form changes it.
fn a_refusal_makes_no_second_record(browser: &mut Chromium, client: &Client) {
    browser.go("/clients/new");
    browser.settles("/clients/new");
    browser.type_in("f-company_name", "Molen en Zoon");
    browser.type_in("f-email", "info@m.example");
    hold(browser);
    browser.key("Ctrl+s");
    types_meanwhile(browser, "@");
    browser.sees("Vul een e-mailadres in");
    browser.take_problems();
    browser.type_in("f-email", "molen@m.example");
    browser.key("Ctrl+s");
    browser.wait_until("document.querySelector('h1')?.innerText === 'Molen en Zoon'");
    let all = client.get("/v1/clients?search=Molen").data();
    assert_eq!((all.as_array().unwrap().len(), &all[0]["email"]), (1, &json!("molen@m.example")));
    no_drafts(browser);
}

const NAME: &str = ".cell-name input";

fn in_a_new_invoice(browser: &mut Chromium, client: &Client, customer: &str) {
    let address = format!("/invoices/new?client_id={customer}");
    browser.go(&address);
    at_the_end_of(browser, NAME);
    browser.type_text("Boiler");
    hold(browser);
    browser.key("Ctrl+s");
    types_meanwhile(browser, " met montage");
    browser.wait_until("/^.invoices.[0-9a-f-]{36}$/.test(location.pathname)");
    // The caret stays where it was: letters are no shortcuts.
    browser.wait_until("document.activeElement.matches('.cell-name input')");
    browser.wait_until("document.activeElement.value === 'Boiler met montage'");
    browser.type_text("!");
    browser.wait_until("document.activeElement.value === 'Boiler met montage!'");
    let all = client.get("/v1/invoices").data();
    assert_eq!(all.as_array().unwrap().len(), 1);
    assert_eq!(first_row(client), "Boiler met montage");
    browser.key("Ctrl+s");
    no_drafts(browser);
}

fn in_an_invoice(browser: &mut Chromium, client: &Client) {
    at_the_end_of(browser, NAME);
    browser.type_text(" En");
    hold(browser);
    browser.key("Ctrl+s");
    types_meanwhile(browser, " advies");
    browser.wait_until("document.querySelector('.editor .saved').innerText === 'Opgeslagen'");
    no_drafts(browser);
    assert_eq!(first_row(client), "Boiler met montage! En advies");
}

/// The first row of the newest invoice.
fn first_row(client: &Client) -> serde_json::Value {
    let id = client.get("/v1/invoices").data()[0]["id"].as_str().unwrap().to_string();
    client.get(&format!("/v1/invoices/{id}")).data()["rows"][0]["name"].clone()
}

/// The response was lost and the form loaded again: what is changed then changes what was made.
fn after_a_lost_response(browser: &mut Chromium, client: &Client, customer: &str) {
    let address = format!("/invoices/new?client_id={customer}");
    browser.open(&address);
    at_the_end_of(browser, NAME);
    browser.type_text("Zonnescherm");
    browser.evaluate(
        "(() => { const real = window.fetch; window.fetch = async (...all) => { \
         if (all[1]?.method !== 'POST' || !String(all[0]).endsWith('/v1/invoices')) return real(...all); \
         await real(...all); window.made = true; return new Promise(() => {}); }; })()",
    );
    browser.key("Ctrl+s");
    browser.wait_until("window.made === true");
    browser.open(&address);
    at_the_end_of(browser, NAME);
    browser.type_text(" XL");
    browser.key("Ctrl+s");
    browser.wait_until("/^.invoices.[0-9a-f-]{36}$/.test(location.pathname)");
    assert_eq!(client.get("/v1/invoices?search=Zonnescherm").json()["meta"]["total"], 1);
    assert_eq!(first_row(client), "Zonnescherm XL");
    no_drafts(browser);
}

fn in_a_subscription(browser: &mut Chromium, client: &Client, customer: &str) {
    browser.go(&format!("/subscriptions/new?client_id={customer}"));
    at_the_end_of(browser, NAME);
    browser.type_text("Onderhoud");
    browser.type_in("f-title", "Elk jaar");
    hold(browser);
    browser.key("Ctrl+s");
    types_meanwhile(browser, " weer");
    browser.wait_until("document.querySelector('h1')?.innerText === 'Elk jaar weer'");
    let all = client.get("/v1/subscriptions").data();
    assert_eq!((all.as_array().unwrap().len(), &all[0]["title"]), (1, &json!("Elk jaar weer")));
    let id = all[0]["id"].as_str().unwrap();
    browser.go(&format!("/subscriptions/{id}/edit"));
    at_the_end_of(browser, "#f-title");
    browser.type_text(" op");
    hold(browser);
    browser.key("Ctrl+s");
    types_meanwhile(browser, "nieuw");
    browser.wait_until("document.querySelector('h1')?.innerText === 'Elk jaar weer opnieuw'");
    no_drafts(browser);
}

fn in_a_flow(browser: &mut Chromium, client: &Client) {
    let flow = json!({"name": "Bel", "trigger_type": "event", "trigger_key": "invoice.paid",
        "steps": [{"type": "create_task", "title": "Bel"}]});
    let id = client.post("/v1/automation/flows", flow).expect(201).id();
    browser.go(&format!("/flows/{id}/edit"));
    at_the_end_of(browser, "#flow-name");
    hold(browser);
    browser.type_text(" de");
    browser.key("Ctrl+s");
    types_meanwhile(browser, " klant");
    browser.wait_until("document.querySelector('h1')?.innerText === 'Bel de klant'");
    no_drafts(browser);
}

/// What was typed meanwhile is refused once the flow is there: the corrected one changes it.
fn in_a_new_flow(browser: &mut Chromium, client: &Client) {
    browser.go("/flows/new");
    browser.settles("/flows/new");
    browser.choose("flow-key", "invoice.paid");
    browser.press("button", "Stap toevoegen");
    browser.press("menuitem", "Taak aanmaken");
    browser.wait_until("document.querySelector('input[id$=-title]') !== null");
    browser.evaluate("document.querySelector('input[id$=-title]').focus()");
    browser.type_text("Bedank");
    browser.type_in("flow-name", "Bedank");
    hold(browser);
    browser.key("Ctrl+s");
    browser.wait_until(HELD);
    browser.evaluate("document.querySelector('input[id$=-title]').focus()");
    browser.key("Backspace");
    browser.evaluate("document.querySelector('input[id$=-title]').select()");
    browser.key("Backspace");
    release(browser);
    browser.sees("Stap 1, Titel: Dit veld is verplicht.");
    browser.take_problems();
    browser.evaluate("document.querySelector('input[id$=-title]').focus()");
    browser.type_text("Bedank de klant");
    browser.key("Ctrl+s");
    browser.wait_until("/^.flows.[0-9a-f-]{36}$/.test(location.pathname)");
    browser.wait_until(
        "[...document.querySelectorAll('.flow-step')].some((one) => one.innerText.includes('Bedank de klant'))",
    );
    let all = client.get("/v1/automation/flows?per_page=100").data();
    let named = all.as_array().unwrap().iter().filter(|flow| flow["name"] == "Bedank").count();
    assert_eq!(named, 1);
    no_drafts(browser);
}

fn in_a_ticket(browser: &mut Chromium, client: &Client) {
    let ticket = json!({"subject": "Lekkage", "client_email": "ina@b.example"});
    let id = client.post("/v1/tickets", ticket).expect(201).id();
    browser.go(&format!("/tickets/{id}/edit"));
    at_the_end_of(browser, "#f-subject");
    browser.type_text(" in");
    hold(browser);
    browser.key("Ctrl+s");
    types_meanwhile(browser, " de keuken");
    browser.settles(&format!("/tickets/{id}"));
    browser.wait_until("document.querySelector('h1')?.innerText.includes('Lekkage in de keuken') === true");
    no_drafts(browser);
}

/// Both the field and the message go on where they were.
fn in_a_new_ticket(browser: &mut Chromium, client: &Client) {
    browser.go("/tickets/new");
    browser.settles("/tickets/new");
    browser.type_in("f-client_email", "ina@b.example");
    browser.type_in("f-subject", "Kraan");
    browser.type_in("f-message", "Hij lekt.");
    browser.evaluate("document.getElementById('f-subject').focus()");
    hold(browser);
    browser.key("Ctrl+s");
    types_meanwhile(browser, " buiten");
    browser.wait_until("document.querySelector('h1')?.innerText === 'Kraan buiten'");
    browser.wait_until("document.querySelectorAll('.message').length === 1");
    assert_eq!(client.get("/v1/tickets?search=Kraan").json()["meta"]["total"], 1);
    no_drafts(browser);
    // The reply below belongs to the first ticket.
    let first = client.get("/v1/tickets?search=Lekkage").data()[0]["id"].as_str().unwrap().to_string();
    browser.go(&format!("/tickets/{first}"));
    browser.wait_until("document.querySelector('h1')?.innerText.includes('Lekkage') === true");
}

/// What was sent is gone from the box; the rest is the beginning of the next message.
fn in_a_reply_and_a_note(browser: &mut Chromium, client: &Client) {
    at_the_end_of(browser, ".reply textarea");
    browser.type_text("Wij komen morgen.");
    hold(browser);
    browser.key("Ctrl+Enter");
    types_meanwhile(browser, " Om negen uur.");
    browser.wait_until("document.querySelector('.reply textarea').value === 'Om negen uur.'");
    browser.evaluate("localStorage.clear()");
    let customer = client.get("/v1/clients?search=Bakkerij").data()[0]["id"].as_str().unwrap().to_string();
    browser.go(&format!("/clients/{customer}/notes"));
    at_the_end_of(browser, ".new-note textarea");
    browser.type_text("Belt graag.");
    hold(browser);
    browser.key("Ctrl+Enter");
    types_meanwhile(browser, " Niet op vrijdag.");
    browser.wait_until("document.querySelector('.new-note textarea').value === 'Niet op vrijdag.'");
    browser.evaluate("localStorage.clear()");
}

fn in_settings(browser: &mut Chromium, client: &Client) {
    browser.go("/settings/account");
    at_the_end_of(browser, "#account-name");
    browser.type_text(" &");
    hold(browser);
    browser.key("Enter");
    types_meanwhile(browser, " Zn");
    browser.sees("Opgeslagen.");
    browser.wait_until("document.getElementById('account-name').value.endsWith(' & Zn')");
    browser.go("/settings/payments");
    browser.press("radio", "Uw bank (incassobestanden)");
    browser.type_in("s-creditor_id", "NL69ZZZ123456780000");
    hold(browser);
    browser.key("Enter");
    types_meanwhile(browser, " ");
    browser.wait_until("document.querySelectorAll('.toast').length > 0 && document.querySelector('form#payments [type=submit]').ariaBusy !== 'true'");
    assert_eq!(browser.value("s-creditor_id"), "NL69ZZZ123456780000 ");
    assert_eq!(client.get("/v1/settings").data()["creditor_id"], "NL69ZZZ123456780000");
    browser.evaluate("localStorage.clear()");
}

/// What was typed meanwhile by somebody who left is in the draft; cancelling throws it away.
fn after_leaving(browser: &mut Chromium, client: &Client, customer: &str) {
    let address = format!("/clients/{customer}/edit");
    // The settings kept what was typed there.
    browser.open(&address);
    browser.evaluate("localStorage.clear()");
    browser.settles(&address);
    browser.type_in("f-city", "Breda");
    hold(browser);
    browser.key("Ctrl+s");
    browser.wait_until(HELD);
    browser.type_in("f-city", "Tilburg");
    browser.go("/products");
    browser.settles("/products");
    release(browser);
    browser.sees("Opgeslagen, behalve wat u daarna nog typte.");
    assert_eq!(client.get(&format!("/v1/clients/{customer}")).data()["city"], "Breda");
    browser.go(&address);
    browser.sees("Uw niet-opgeslagen wijzigingen");
    assert_eq!(browser.value("f-city"), "Tilburg");
    browser.press("link", "Annuleren");
    browser.settles(&format!("/clients/{customer}"));
    no_drafts(browser);
    browser.go(&address);
    browser.settles(&address);
    assert_eq!(browser.value("f-city"), "Breda");
}

/// Nor is it said that all is saved. A new document is all in its draft, and the draft changes what was made.
fn after_leaving_a_new_quote(browser: &mut Chromium, client: &Client) {
    browser.open("/quotes/new");
    browser.evaluate("localStorage.clear()");
    browser.settles("/quotes/new");
    browser.type_in("f-title", "Ketel");
    hold(browser);
    browser.key("Ctrl+s");
    browser.wait_until(HELD);
    browser.type_in("f-notes", "Met garantie");
    browser.key("Ctrl+s");
    browser.go("/products");
    browser.settles("/products");
    release(browser);
    browser.sees("Opgeslagen, behalve wat u daarna nog typte.");
    browser.go("/quotes/new");
    browser.sees("Uw niet-opgeslagen wijzigingen");
    assert_eq!((browser.value("f-title"), browser.value("f-notes")), ("Ketel".into(), "Met garantie".into()));
    browser.key("Ctrl+s");
    browser.wait_until("/^.quotes.[^n]/.test(location.pathname)");
    let quotes = client.get("/v1/quotes").data();
    assert_eq!((quotes.as_array().unwrap().len(), &quotes[0]["title"]), (1, &json!("Ketel")));
    no_drafts(browser);
}

/// A draft has what its writer changed: what others changed since stays as it is.
fn a_draft_takes_back_nothing(browser: &mut Chromium, client: &Client, customer: &str) {
    let (address, path) = (format!("/clients/{customer}/edit"), format!("/v1/clients/{customer}"));
    browser.go(&address);
    browser.settles(&address);
    browser.type_in("f-city", "Oss");
    browser.open("/products");
    browser.settles("/products");
    client.patch(&path, json!({"phone": "013 7654321"})).expect(200);
    browser.open(&address);
    browser.sees("Uw niet-opgeslagen wijzigingen");
    assert_eq!((browser.value("f-city"), browser.value("f-phone")), ("Oss".to_string(), "013 7654321".to_string()));
    browser.key("Ctrl+s");
    browser.settles(&format!("/clients/{customer}"));
    let saved = client.get(&path).data();
    assert_eq!((&saved["city"], &saved["phone"]), (&json!("Oss"), &json!("013 7654321")));
    no_drafts(browser);
}

/// Nothing in a dialog can be changed, repeated or left while it saves. What is refused stands there as it was typed.
fn a_dialog_waits_for_its_answer(browser: &mut Chromium, client: &Client, customer: &str) {
    let rows = json!([{"name": "Oven", "unit_price": 100, "vat_rate": "21"}]);
    let invoice = json!({"title": "Oven", "client_id": customer, "rows": rows, "generation_mode": "final"});
    let page = format!("/invoices/{}", client.post("/v1/invoices", invoice).expect(201).id());
    browser.go(&page);
    browser.settles(&page);
    let payments = || client.get(&format!("/v1{page}/payments")).data().as_array().unwrap().len();
    let sends = |browser: &mut Chromium, amount: &str| {
        browser.press("button", "Betaling boeken");
        browser.wait_until("document.getElementById('pay-amount')?.value.includes(',') === true");
        browser.type_in("pay-reference", "Afschrift 7");
        browser.type_in("pay-amount", amount);
        browser.reads();
        hold(browser);
        browser.key("Ctrl+Enter");
        browser.wait_until(&format!("{HELD} && document.activeElement.matches('dialog[aria-busy=true]')"));
        for key in ["Escape", "Escape", "Ctrl+Enter", "9", "Tab", "Escape"] {
            browser.key(key);
        }
        browser.evaluate("document.querySelector('dialog [type=submit]').click()");
        assert_eq!(browser.evaluate("document.querySelector('dialog[open] form').inert"), true);
        assert_eq!(browser.evaluate("document.getElementById('pay-amount').value"), amount);
        release(browser);
    };
    sends(browser, "21,00");
    browser.wait_until("document.querySelector('.big-amount').innerText.includes('100,00')");
    browser.wait_until("document.querySelector('dialog') === null");
    assert_eq!(payments(), 1);
    no_drafts(browser);
    sends(browser, "0,00");
    browser.wait_until("document.querySelector('dialog .problem') !== null");
    browser.take_problems();
    browser.wait_until("document.activeElement.id === 'pay-amount'");
    assert_eq!(browser.value("pay-reference"), "Afschrift 7");
    browser.key("Escape");
    browser.wait_until("document.querySelector('dialog') === null");
    assert_eq!(payments(), 1);
}

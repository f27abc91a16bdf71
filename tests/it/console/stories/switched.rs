//! Somebody switches accounts in one tab while a form is open in another one.

use serde_json::json;

use super::super::browser::Chromium;
use super::super::client;
use crate::people::{Browser, PASSWORD, invite, member, owner};
use crate::support::{Client, Db, Server};

/// One server and one browser for all of these stories.
#[test]
fn a_form_knows_its_account() {
    let server = Server::start(Db::sqlite());
    server.leaves_jobs();
    let (client, other) = (client(&server), server.client());
    for (one, name) in [(&client, "Bakkerij Smit"), (&other, "Garage Smit")] {
        one.patch("/v1/account", json!({"name": name})).expect(200);
    }
    let olga = owner(&server, &client, "olga@a.example");
    let (_, link) = invite(&other, "olga@a.example", "owner");
    Browser::new(&other).enter("/console/accept-invite", json!({"token": link, "password": PASSWORD}));
    let (_, ina) = member(&client, "ina@a.example", "member");
    let Some(mut browser) = Chromium::start(&client.base, 1280, 860) else { return };
    let browser = &mut browser;
    browser.new_tab(&olga.cookie, 1280, 860);
    a_form_is_saved_where_it_was_opened(browser, &client, &other);
    somebody_goes_on_in_the_new_account(browser, &other);
    somebody_else_signs_in(browser, &client, &ina);
}

/// Switches accounts in another tab, and comes back to the first one.
fn switch_beside(browser: &mut Chromium, from: &str, to: &str) {
    let first = browser.beside(1280, 860);
    browser.open("/");
    browser.settles("/");
    browser.sees(from);
    browser.press("button", from);
    browser.press("menuitem", to);
    browser.wait_until(&format!("document.querySelector('.side-head, .accounts')?.innerText.includes({})", json!(to)));
    browser.settles("/");
    browser.close_tab(first);
    browser.call("Page.bringToFront", json!({}));
}

/// Saves what is open, also behind a dialog.
fn save(browser: &mut Chromium) {
    browser.evaluate("document.querySelector('form.page').requestSubmit()");
}

fn refused_only(browser: &mut Chromium) {
    let problems = browser.take_problems();
    assert!(problems.iter().all(|problem| problem.contains("409")), "{problems:#?}");
}

fn a_form_is_saved_where_it_was_opened(browser: &mut Chromium, client: &Client, other: &Client) {
    browser.open("/products/new");
    browser.settles("/products/new");
    browser.type_in("f-name", "Krentenbrood");
    switch_beside(browser, "Bakkerij Smit", "Garage Smit");
    save(browser);
    browser.sees("Deze pagina hoort bij Bakkerij Smit");
    assert_eq!(browser.value("f-name"), "Krentenbrood");
    assert_eq!(client.get("/v1/products").data(), json!([]));
    // What was refused goes on after the way back. If the page asked before it was saved, nothing was refused.
    browser.press("button", "Terug naar Bakkerij Smit");
    browser.wait_until("!document.querySelector('dialog[open]')");
    browser.evaluate("if (location.pathname === '/products/new') document.querySelector('form.page')?.requestSubmit()");
    browser.wait_until("/^\\/products\\/[0-9a-f-]{36}$/.test(location.pathname)");
    browser.sees("Krentenbrood");
    assert_eq!(client.get("/v1/products").data()[0]["name"], "Krentenbrood");
    assert_eq!(other.get("/v1/products").data(), json!([]));
    refused_only(browser);
}

fn somebody_goes_on_in_the_new_account(browser: &mut Chromium, other: &Client) {
    browser.open("/products/new");
    browser.settles("/products/new");
    browser.type_in("f-name", "Roggebrood");
    switch_beside(browser, "Bakkerij Smit", "Garage Smit");
    save(browser);
    browser.sees("Deze pagina hoort bij Bakkerij Smit");
    browser.press("button", "Verder in Garage Smit");
    browser
        .wait_until("location.pathname === '/' && document.querySelector('.accounts')?.innerText.includes('Garage')");
    browser.settles("/");
    assert_eq!(other.get("/v1/products").data(), json!([]));
    refused_only(browser);
}

fn somebody_else_signs_in(browser: &mut Chromium, client: &Client, ina: &Browser) {
    browser.go("/products/new");
    browser.settles("/products/new");
    browser.type_in("f-name", "Banden");
    let (name, value) = ina.cookie.split_once('=').unwrap();
    browser.call("Network.setCookie", json!({"name": name, "value": value, "url": client.base}));
    save(browser);
    // The page is of her user in Garage Smit, who reads English.
    browser.sees("this browser is now signed in as Ina");
    browser.press("button", "Close");
    browser.sees("than the one signed in now. Nothing was saved.");
    assert_eq!(browser.value("f-name"), "Banden");
    assert_eq!(client.get("/v1/products").data().as_array().unwrap().len(), 1);
    refused_only(browser);
}

//! Stories in a real browser: these with the data of the demo, those in the folder with records of their own.

mod accessible;
mod day;
mod duplicates;
mod fields;
mod flows;
mod honest;
mod hurried;
mod keyboard;
mod lists;
mod meanwhile;
mod mistakes;
mod owner;
mod pictures;
mod switched;
mod together;

use serde_json::json;

use super::browser::Chromium;
use crate::people::{PASSWORD, owner};
use crate::support::{Client, Db, Server};

/// A server with the demo and an owner who can sign in.
fn demo() -> (Server, Client) {
    let server = Server::start(Db::sqlite());
    let (account, key) = kantoor::opening::create_demo_account(&server.app, None).unwrap();
    let client = Client::new(server.address, key, account.number);
    owner(&server, &client, "olga@a.example");
    (server, client)
}

#[track_caller]
fn sign_in(browser: &mut Chromium) {
    browser.fill("E-mail address", "olga@a.example");
    browser.fill("Password", PASSWORD);
    browser.press("button", "Sign in");
}

/// One server with the demo, one browser and one sign-in for both.
#[test]
fn the_demo_opens_on_a_desktop_and_on_a_phone() {
    let (server, client) = demo();
    server.leaves_jobs();
    let Some(mut browser) = Chromium::start(&client.base, 1280, 860) else { return };
    somebody_signs_in_looks_at_invoices_and_adds_a_client(&mut browser, &client);
    every_screen_opens_on_a_phone_without_an_error(&mut browser, &client);
}

fn somebody_signs_in_looks_at_invoices_and_adds_a_client(browser: &mut Chromium, client: &Client) {
    browser.open("/invoices");
    sign_in(browser);
    // They come to the list that they wanted to see, with its rows.
    browser.wait_until("document.querySelectorAll('table tbody tr').length > 10");
    browser.sees("Facturen");
    assert_eq!(browser.evaluate("location.pathname"), "/invoices");
    let shift = "new Promise((done) => { let sum = 0; new PerformanceObserver((list) => { for (const one of list.getEntries()) \
                 sum += one.value; }).observe({ type: 'layout-shift', buffered: true }); setTimeout(() => done(sum), 200); })";
    assert!(browser.evaluate(shift).as_f64().unwrap() < 0.01, "the page moves while it loads");
    assert!(browser.evaluate("document.querySelectorAll('*').length").as_u64().unwrap() < 1600);
    // The rows came with the page: the script did not ask for them again.
    let asked = "performance.getEntriesByType('resource').filter((one) => one.name.includes('/v1/invoices?per_page=50')).length";
    assert_eq!(browser.evaluate(asked), 0);
    browser.check();

    // What is open stands beside the total, and the tabs that ask for work have a number.
    browser.wait_until("[...document.querySelectorAll('th')].some((one) => one.innerText === 'Openstaand')");
    browser.wait_until("/^Verlopen\\s*\\d+$/.test([...document.querySelectorAll('.tabs a')][3].innerText)");
    browser.press("link", "Klanten");
    browser.sees("Bakkerij De Ster");
    browser.wait_until("/€\\s\\d/.test(document.querySelector('tbody td.card-end')?.innerText ?? '')");
    browser.press("link", "Nieuwe klant");
    browser.fill("Bedrijfsnaam", "<b>Molen</b> & Zoon");
    browser.fill("Plaats", "Tilburg");
    browser.press("button", "Opslaan");
    browser.sees("<b>Molen</b> & Zoon");
    browser.check();
    let found = client.get("/v1/clients?search=Molen").expect(200).json();
    assert_eq!((&found["meta"]["total"], &found["data"][0]["city"]), (&json!(1), &json!("Tilburg")));

    // A breach of the policy would be noticed.
    browser.evaluate("(() => { const one = document.createElement('script'); one.src = 'data:text/javascript,1'; document.head.append(one); })()");
    assert!(!browser.take_problems().is_empty());
}

fn every_screen_opens_on_a_phone_without_an_error(browser: &mut Chromium, client: &Client) {
    browser.resize(390, 844);
    let id = |path: &str| client.get(path).expect(200).data()[0]["id"].as_str().unwrap().to_string();
    let (invoice, customer) = (id("/v1/invoices"), id("/v1/clients"));
    let (invoice, customer) = (format!("/invoices/{invoice}"), format!("/clients/{customer}"));
    let screens = [
        "/quotes",
        "/subscriptions",
        "/products/new",
        "/deals",
        "/tickets",
        "/hours",
        "/flows",
        "/settings",
        "/me",
        "/settings/api-keys",
        "/nowhere",
        &invoice,
        &customer,
        "/invoices/new",
    ];
    for path in screens {
        browser.open(path);
        browser.wait_until(&format!(
            "location.pathname === {} && document.querySelector('#app main h1') !== null && !document.querySelector('[aria-busy=true]')",
            json!(path)
        ));
        let wide = browser.evaluate("document.documentElement.scrollWidth > innerWidth + 1");
        assert_eq!(wide, false, "{path} is wider than the screen");
        let problems = browser.take_problems();
        // The page of an address without a screen is an error of its own.
        assert!(problems.iter().all(|problem| path == "/nowhere" && problem.contains("404")), "{path}: {problems:#?}");
    }
    // Nothing can be dragged there.
    browser.open("/files?origin=uploaded");
    browser.sees("Kies bestanden met Uploaden.");
    assert_eq!(browser.evaluate("document.body.innerText.includes('hierheen')"), false);
}

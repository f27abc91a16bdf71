//! Every screen is checked by axe, in both themes, and fits a window in which everything has twice the size, and a phone whose
//! text has.

use serde_json::{Value, json};

use super::super::browser::Chromium;
use super::{demo, sign_in};
use crate::support::Client;

/// The rules of accessibility, for tests alone.
const AXE: &str = include_str!("../vendor/axe.min.js");

/// The rules of WCAG 2.2, level AA.
const WCAG: [&str; 5] = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];

/// Screens with an address of their own.
const SCREENS: [&str; 40] = [
    "/",
    "/invoices",
    "/invoices/new",
    "/quotes",
    "/subscriptions",
    "/subscriptions/new",
    "/products",
    "/products/new",
    "/clients",
    "/clients/new",
    "/deals",
    "/deals?view=list",
    "/tickets",
    "/tickets/new",
    "/tasks?status=open",
    "/projects",
    "/hours",
    "/hours?view=approve",
    "/files",
    "/exports",
    "/imports",
    "/imports/new",
    "/flows",
    "/flows/new",
    "/runs",
    "/batches",
    "/settings",
    "/settings/account",
    "/settings/payments",
    "/settings/timers",
    "/settings/users",
    "/settings/api-keys",
    "/settings/api-keys/new",
    "/settings/webhook-endpoints",
    "/settings/mail",
    "/settings/audit",
    "/settings/tax-rates",
    "/settings/corporate-identities",
    "/me",
    "/nowhere",
];

/// Lists whose first record has a page worth a look.
const PAGES: [(&str, &str, &str); 15] = [
    ("/v1/invoices?payment_status=draft", "/invoices", ""),
    ("/v1/invoices?payment_status=paid", "/invoices", ""),
    ("/v1/quotes?payment_status=open", "/quotes", ""),
    ("/v1/subscriptions", "/subscriptions", ""),
    ("/v1/clients", "/clients", ""),
    ("/v1/clients", "/clients", "/edit"),
    ("/v1/clients", "/clients", "/files"),
    ("/v1/deals", "/deals", ""),
    ("/v1/tickets", "/tickets", ""),
    ("/v1/tickets", "/tickets", "/edit"),
    ("/v1/projects", "/projects", ""),
    ("/v1/products", "/products", ""),
    ("/v1/automation/flows", "/flows", ""),
    ("/v1/automation/flows", "/flows", "/edit"),
    ("/v1/corporate-identities", "/settings/corporate-identities", "/edit"),
];

#[test]
fn axe_finds_nothing_serious_on_any_screen() {
    let (server, client) = demo();
    server.leaves_jobs();
    let Some(mut browser) = Chromium::start(&client.base, 1280, 860) else { return };
    let browser = &mut browser;
    browser.without_motion();
    let mut found = Vec::new();
    browser.open("/sign-in");
    browser.sees("Sign in");
    found.extend(look(browser, "/sign-in"));
    sign_in(browser);
    browser.settles("/");
    // Chromium may hang when it leaves a page whose PDF viewer is just starting.
    let rows =
        r#"{method: "PATCH", headers: {"Content-Type": "application/json"}, body: '{"preferences":{"sheet":"rows"}}'}"#;
    assert_eq!(browser.evaluate(&format!("fetch('/console/v1/me', {rows}).then((answer) => answer.status)")), 200);
    browser.open("/");
    browser.settles("/");
    let mut screens: Vec<String> = SCREENS.iter().map(ToString::to_string).collect();
    screens.extend(PAGES.iter().filter_map(|page| first(&client, page)));
    for screen in screens {
        browser.go(&screen);
        browser.settles(&screen);
        found.extend(look(browser, &screen));
    }
    browser.go("/settings/users");
    browser.press("button", "Gebruiker uitnodigen");
    browser.wait_until("document.querySelector('dialog[open]') !== null");
    found.extend(look(browser, "an invitation"));
    browser.key("Escape");
    let invoice = first(&client, &("/v1/invoices?payment_status=overdue", "/invoices", "")).unwrap();
    browser.go(&invoice);
    browser.settles(&invoice);
    browser.key("s");
    browser.wait_until("document.querySelector('iframe.letter-body')?.contentDocument?.getElementById('message')?.innerText.length > 20");
    found.extend(look(browser, "a mail"));
    browser.key("Escape");
    browser.go("/invoices");
    browser.settles("/invoices");
    browser.press("button", "Filter");
    browser.evaluate("document.querySelector('.filters [role=menuitem]').click()");
    browser.wait_until("document.querySelector('.filter-box') !== null");
    found.extend(look(browser, "a filter"));
    browser.key("Escape");
    browser.resize(390, 844);
    browser.press("button", "Filters");
    browser.wait_until("document.querySelector('.sheet-dialog') !== null");
    found.extend(look(browser, "all filters"));
    browser.key("Escape");
    columns_are_chosen_on_a_phone(browser);
    what_is_chosen_shows_in_forced_colors(browser);
    browser.key("Ctrl+k");
    browser.wait_until("document.querySelector('dialog.find') !== null");
    found.extend(look(browser, "find"));
    browser.key("Escape");
    what_is_long_fits_a_phone(browser, &client);
    assert!(found.is_empty(), "{found:#?}");
}

/// Views, columns and export have a menu on a phone; the columns are on the second line of a card.
fn columns_are_chosen_on_a_phone(browser: &mut Chromium) {
    browser.resize(390, 844);
    browser.press("button", "Meer");
    browser.wait_until("[...document.querySelectorAll('.list-bar [role=menuitem]')].map((one) => one.innerText.trim()).join() === 'Weergaven,Kolommen,Exporteren'");
    browser.press("menuitem", "Kolommen");
    browser.press("checkbox", "Vervaldatum");
    browser.press("button", "Toepassen");
    browser.wait_until("document.querySelector('.sheet-dialog') === null");
    browser.resize(1280, 860);
    browser.wait_until(
        "[...document.querySelectorAll('thead th')].every((one) => !one.innerText.includes('Vervaldatum'))",
    );
}

/// A title without a space, and an amount of ten digits.
fn what_is_long_fits_a_phone(browser: &mut Chromium, client: &Client) {
    let buyer = client.get("/v1/clients").expect(200).data()[0]["id"].clone();
    let rows = json!([{"name": "x".repeat(150), "quantity": 1, "unit_price": 1_000_000_000, "vat_rate": 21}]);
    let document = json!({"client_id": buyer, "title": "W".repeat(200), "rows": rows});
    let (draft, made) = (client.post("/v1/invoices", document.clone()), client.post("/v1/invoices", document));
    let (draft, made) = (draft.expect(201).id(), made.expect(201).id());
    client.act(&format!("/v1/invoices/{made}/finalize")).expect(200);
    browser.resize(390, 844);
    browser.go(&format!("/invoices/{draft}"));
    browser.wait_until("document.querySelector('.cell-price input')?.value === '1.000.000.000,00'");
    let cut = "[...document.querySelectorAll('.cell-price input, .cell-total')].filter((one) => one.scrollWidth > one.clientWidth)";
    assert_eq!(browser.evaluate(&format!("{cut}.length")), 0);
    browser.go(&format!("/invoices/{made}"));
    browser.wait_until("document.querySelector('.paper') !== null");
    assert_eq!(browser.evaluate("document.documentElement.scrollWidth"), 390);
    browser.resize(1280, 860);
}

/// Where the system chooses the colours, a background says nothing.
fn what_is_chosen_shows_in_forced_colors(browser: &mut Chromium) {
    let forced = |value: &str| json!({"features": [{"name": "forced-colors", "value": value}]});
    browser.call("Emulation.setEmulatedMedia", forced("active"));
    let edge = |selector: &str, side: &str| {
        format!("parseFloat(getComputedStyle(document.querySelector('{selector}')).{side})")
    };
    assert!(browser.evaluate(&edge(".side-group a[aria-current]", "borderLeftWidth")).as_f64().unwrap() > 3.0);
    browser.evaluate("document.querySelector('tbody input[type=checkbox]').click()");
    browser.wait_until("document.querySelector('tbody tr[aria-selected]') !== null");
    assert!(browser.evaluate(&edge("tr[aria-selected] td", "borderTopWidth")).as_f64().unwrap() > 1.0);
    assert!(browser.evaluate(&edge(".pill", "borderTopWidth")).as_f64().unwrap() >= 1.0);
    browser.call("Emulation.setEmulatedMedia", forced("none"));
    browser.without_motion();
}

fn first(client: &Client, (list, address, part): &(&str, &str, &str)) -> Option<String> {
    let id = client.get(list).expect(200).data()[0]["id"].as_str()?.to_string();
    Some(format!("{address}/{id}{part}"))
}

/// Returns what is wrong with the screen: by axe in the light theme and, as far as colours go, in the dark one; and whether
/// it is wider than a window in which everything has twice the size, or than a phone whose text has.
fn look(browser: &mut Chromium, screen: &str) -> Vec<String> {
    if browser.evaluate("typeof window.axe") == "undefined" {
        browser.evaluate(&format!("{AXE}; 0"));
    }
    let mut found = Vec::new();
    for (theme, options) in [
        ("light", json!({"resultTypes": ["violations"], "iframes": false, "runOnly": WCAG})),
        ("dark", json!({"resultTypes": ["violations"], "iframes": false, "runOnly": ["color-contrast"]})),
    ] {
        let run = format!(
            "(async () => {{ document.documentElement.dataset.theme = '{theme}';
               await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
               const {{ violations }} = await axe.run(document, {options});
               return violations.map(({{ id, impact, nodes }}) => ({{ id, impact, where: nodes.slice(0, 3).map((node) => node.target.join(' ')), why: nodes[0].failureSummary }})); }})()"
        );
        let violations = browser.evaluate(&run);
        let violations = violations.as_array().unwrap_or_else(|| panic!("axe did not run on {screen}"));
        let serious = |one: &&Value| one["impact"] == "serious" || one["impact"] == "critical";
        found.extend(violations.iter().filter(serious).map(|one| format!("{screen}, {theme}: {one}")));
    }
    browser.resize(640, 430);
    if browser.evaluate("document.documentElement.scrollWidth > innerWidth + 1") == true {
        found.push(format!("{screen} is too wide with a text of twice the size"));
    }
    found.extend(too_wide_for_a_phone(browser, screen));
    browser.resize(1280, 860);
    found
}

/// A page that is too wide makes the window of a phone wider, so the width is compared with that of the phone.
fn too_wide_for_a_phone(browser: &mut Chromium, screen: &str) -> Option<String> {
    let text = |size: u32| json!({"fontSizes": {"standard": size}});
    browser.call("Page.setFontSizes", text(32));
    browser.resize(390, 844);
    let guilty = browser.evaluate(
        "new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(
           document.documentElement.scrollWidth <= 391 ? '' : [...document.querySelectorAll('main *')]
             .filter((one) => one.getBoundingClientRect().right > 391).slice(0, 8).map((one) => `${one.tagName}.${one.className}`).join(', ') || 'something'))))",
    );
    browser.call("Page.setFontSizes", text(16));
    // The rows of a list are cards on a phone: nothing is beside what is seen.
    let beside = "[...document.querySelectorAll('.table-box')].some((one) => one.scrollWidth > one.clientWidth + 1)";
    if browser.evaluate(beside) == true {
        return Some(format!("{screen} has a list that is too wide for a phone"));
    }
    let guilty = guilty.as_str().unwrap_or("something that could not be measured");
    (!guilty.is_empty()).then(|| format!("{screen} is too wide for a phone with a text of twice the size: {guilty}"))
}

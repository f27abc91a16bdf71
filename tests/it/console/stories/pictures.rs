//! The pictures of the README and of docs/console.md, taken of the demo with an English-speaking user: `make pictures`. Their
//! letters are those of Inter, which are close to what most people have.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::super::browser::Chromium;
use super::demo;
use crate::people::Browser;
use crate::support::Client;

/// A picture: its name, a list with a record of which this text is a part, the address, and what to do there.
struct Picture(&'static str, (&'static str, &'static str), &'static str, &'static str);

const SEND: &str = "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 's', bubbles: true }))";

const DESKTOP: [Picture; 6] = [
    Picture("home", ("", ""), "/", ""),
    Picture("invoice", ("/v1/invoices?payment_status=overdue", ""), "/invoices/{id}", ""),
    Picture("send", ("/v1/invoices?payment_status=overdue", ""), "/invoices/{id}", SEND),
    Picture("editor", ("/v1/invoices?payment_status=draft", "Storing ketels"), "/invoices/{id}", ""),
    Picture("ticket", ("/v1/tickets", "Geen warm water"), "/tickets/{id}", ""),
    Picture("client", ("/v1/clients?search=Bakkerij%20De%20Ster", ""), "/clients/{id}", ""),
];
const DESKTOP_DARK: [Picture; 2] = [
    Picture("deals", ("", ""), "/deals", ""),
    Picture("flow", ("/v1/automation/flows", "invoice.late"), "/flows/{id}", ""),
];

#[test]
#[ignore = "writes the files of docs/images"]
fn pictures_for_the_documentation() {
    let (server, client) = demo();
    server.leaves_jobs();
    let mut olga = Browser::new(&client);
    olga.sign_in("olga@a.example");
    let id = olga.get("/console/v1/me").data()["user"]["id"].as_str().unwrap().to_string();
    client.patch(&format!("/v1/users/{id}"), json!({"language": "en", "name": "Olga Jansen"})).expect(200);
    let Some(mut browser) = Chromium::start(&client.base, 1280, 860) else { return };
    let browser = &mut browser;
    browser.new_tab(&olga.cookie, 1280, 860);
    let screen = json!({"width": 1280, "height": 860, "deviceScaleFactor": 1.5, "mobile": false});
    browser.call("Emulation.setDeviceMetricsOverride", screen);
    browser.call("Emulation.setScrollbarsHidden", json!({"hidden": true}));
    is_set_in_inter(browser);
    DESKTOP.iter().for_each(|one| take(browser, &client, one, "light"));
    DESKTOP_DARK.iter().for_each(|one| take(browser, &client, one, "dark"));
    let phone = json!({"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true});
    browser.call("Emulation.setDeviceMetricsOverride", phone);
    take(browser, &client, &Picture("phone", ("", ""), "/invoices", ""), "light");
    take(browser, &client, &Picture("phone-dark", ("", ""), "/", ""), "dark");
}

fn is_set_in_inter(browser: &mut Chromium) {
    browser.open("/products");
    browser.settles("/products");
    browser.call("CSS.enable", json!({}));
    let root = browser.call("DOM.getDocument", json!({}))["root"]["nodeId"].clone();
    let heading = browser.call("DOM.querySelector", json!({"nodeId": root, "selector": "main h1"}))["nodeId"].clone();
    let fonts = browser.call("CSS.getPlatformFontsForNode", json!({"nodeId": heading}))["fonts"].clone();
    // Each weight has a family of its own.
    let name = fonts[0]["familyName"].as_str().unwrap_or_default();
    assert!(
        name.starts_with("Inter"),
        "The pictures would be set in {name}. Install fonts-inter, and run `make pictures`."
    );
    browser.call("CSS.disable", json!({}));
}

fn take(browser: &mut Chromium, client: &Client, Picture(name, (list, part), address, act): &Picture, theme: &str) {
    let rows = if list.is_empty() { json!([]) } else { client.get(list).expect(200).data() };
    let row = rows.as_array().unwrap().iter().find(|row| row.to_string().contains(part));
    let id = row.map(|row| row["id"].as_str().unwrap()).unwrap_or_default();
    let address = address.replace("{id}", id);
    let look = [("prefers-color-scheme", theme), ("prefers-reduced-motion", "reduce")];
    let look: Vec<_> = look.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    browser.call("Emulation.setEmulatedMedia", json!({"features": look}));
    browser.open(&address);
    browser.settles(&address);
    browser.wait_until("!document.querySelector('.loading-name, .progress.on, .pdf.waiting')");
    // The viewer of PDFs draws by itself, slowly the first time, and what others did comes last.
    let has_pdf = browser.evaluate("document.querySelector('iframe') !== null") == true;
    std::thread::sleep(Duration::from_secs(if has_pdf { 12 } else { 3 }));
    if !act.is_empty() {
        browser.evaluate(act);
        std::thread::sleep(Duration::from_secs(2));
        // A ring says where the keyboard is, which a picture need not.
        browser.evaluate("document.activeElement?.blur()");
    }
    let taken = browser.call("Page.captureScreenshot", json!({"format": "webp", "quality": 82}));
    let bytes = STANDARD.decode(taken["data"].as_str().unwrap()).unwrap();
    std::fs::write(format!("{}/docs/images/{name}.webp", env!("CARGO_MANIFEST_DIR")), bytes).unwrap();
}

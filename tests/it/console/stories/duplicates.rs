//! A client that was entered twice is merged, and one that was entered by mistake deleted.

use serde_json::json;

use super::super::browser::Chromium;
use super::super::client;
use crate::people::owner;
use crate::support::{Db, Server};

#[test]
fn duplicates_are_merged_and_mistakes_deleted() {
    let server = Server::start(Db::sqlite());
    server.leaves_jobs();
    let client = client(&server);
    let made = |name: &str| client.post("/v1/clients", json!({"company_name": name})).expect(201).id();
    let (kept, other) = (made("Bakkerij De Ster"), made("Ster Bakkers"));
    let row = json!([{"name": "Oven", "unit_price": 100, "vat_code": "NL21"}]);
    let invoice = json!({"title": "Oven", "client_id": other, "rows": row, "generate": true});
    let invoice = client.post("/v1/invoices", invoice).expect(201).id();
    let olga = owner(&server, &client, "olga@a.example");
    let Some(mut browser) = Chromium::start(&client.base, 1280, 860) else { return };
    let own = browser.new_tab(&olga.cookie, 1280, 860);

    // What needs the client is named.
    browser.open(&format!("/clients/{other}"));
    browser.settles(&format!("/clients/{other}"));
    browser.press("button", "Meer");
    browser.press("menuitem", "Verwijderen");
    browser.sees("Concepten, tickets, projecten en taken blijven bestaan, zonder klant.");
    browser.press("button", "Verwijderen");
    browser.sees("1 factuur");
    browser.press("button", "Annuleren");
    browser.take_problems();

    browser.open(&format!("/clients/{kept}"));
    browser.settles(&format!("/clients/{kept}"));
    browser.press("button", "Meer");
    browser.press("menuitem", "Samenvoegen met een dubbele");
    browser.wait_until("document.getElementById('duplicate') !== null");
    browser.type_in("duplicate", "Ster Bak");
    browser.wait_until("document.querySelector('[role=option]')?.innerText.includes('Ster Bakkers') === true");
    browser.key("Enter");
    browser.sees("Alle documenten, deals, tickets en andere gegevens van Ster Bakkers gaan naar Bakkerij De Ster");
    browser.press("button", "Samenvoegen");
    browser.sees("Samengevoegd met Bakkerij De Ster.");
    assert_eq!(client.get(&format!("/v1/invoices/{invoice}")).data()["client_id"], json!(kept));
    client.get(&format!("/v1/clients/{other}")).expect(404);
    browser.check();

    let mistake = made("Vergissing");
    browser.open(&format!("/clients/{mistake}"));
    browser.settles(&format!("/clients/{mistake}"));
    browser.press("button", "Meer");
    browser.press("menuitem", "Verwijderen");
    browser.press("button", "Verwijderen");
    browser.sees("Vergissing verwijderd.");
    browser.wait_until("location.pathname === '/clients'");
    client.get(&format!("/v1/clients/{mistake}")).expect(404);
    browser.check();
    browser.close_tab(own);
}

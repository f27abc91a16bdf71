//! A flow is edited, and what the server warns of stays on the screen.

use serde_json::{Value, json};

use super::super::browser::Chromium;
use super::super::client;
use crate::people::owner;
use crate::support::{Db, Server};

#[test]
fn a_flow_is_edited_and_its_warnings_stay() {
    let server = Server::start(Db::sqlite());
    server.leaves_jobs();
    let client = client(&server);
    let olga = owner(&server, &client, "olga@a.example");
    let flow = json!({
        "name": "Bel", "category": "sales", "max_attempts": 3, "active": false, "trigger_type": "event", "trigger_key": "invoice.paid",
        "steps": [{"type": "create_task", "title": "Bel over {{ data.nummer }}"}],
    });
    let path = format!("/v1/automation/flows/{}", client.post("/v1/automation/flows", flow).expect(201).id());
    let address = path.replace("/v1/automation", "");
    let Some(mut browser) = Chromium::start(&client.base, 1280, 860) else { return };
    let browser = &mut browser;
    browser.new_tab(&olga.cookie, 1280, 860);
    browser.open(&format!("{address}/edit"));
    browser.settles(&format!("{address}/edit"));
    browser.type_in("flow-name", "Bel de klant");
    browser.key("Ctrl+s");
    browser.sees("did you mean 'number'?");
    let saved: Value = client.get(&path).expect(200).data();
    assert_eq!(
        (&saved["name"], &saved["category"], &saved["meta"]["max_attempts"]),
        (&json!("Bel de klant"), &json!("sales"), &json!(3))
    );
    browser.check();
}

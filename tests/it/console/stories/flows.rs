//! A flow is edited and tested on past data, and what the server warns of is said at its field; a run shows what it asks, and a card how often its flow ran.

use serde_json::{Value, json};

use super::super::browser::Chromium;
use super::super::client;
use super::owner::was_refused;
use crate::people::owner;
use crate::support::{Db, Server};

#[test]
fn a_flow_is_edited_and_its_warnings_stay() {
    let server = Server::start(Db::sqlite());
    server.leaves_jobs();
    let client = client(&server);
    let olga = owner(&server, &client, "olga@a.example");
    let conditions = json!([
        {"field": "record.payment_status", "op": "in", "value": ["partial", "overdue"]},
        {"field": "record.due_date", "op": "eq", "value": "{{ data.due_date }}"},
    ]);
    let flow = json!({
        "name": "Bel", "category": "sales", "max_attempts": 3, "active": false, "trigger_type": "event", "trigger_key": "invoice.paid",
        "steps": [{"type": "condition", "conditions": conditions}, {"type": "create_task", "title": "Bel over {{ data.nummer }}"}],
    });
    let path = format!("/v1/automation/flows/{}", client.post("/v1/automation/flows", flow).expect(201).id());
    let address = path.replace("/v1/automation", "");
    let Some(mut browser) = Chromium::start(&client.base, 1280, 860) else { return };
    let browser = &mut browser;
    browser.new_tab(&olga.cookie, 1280, 860);
    browser.open(&format!("{address}/edit"));
    browser.settles(&format!("{address}/edit"));
    // No two fields have the same name.
    browser.evaluate("document.querySelector('.conditions > .link').click()");
    browser.wait_until("document.querySelector('.condition select')?.options.length > 10");
    let names = "[...document.querySelector('.condition select').options].map((one) => one.text)";
    assert_eq!(browser.evaluate(&format!("{names}.filter((one, at, all) => all.indexOf(one) !== at)")), json!([]));
    assert_eq!(
        browser.evaluate(&format!("{names}.filter((one) => one.startsWith('Btw'))")),
        json!(["Btw › Percentage", "Btw › Bedrag"])
    );
    browser.evaluate("document.querySelector('.condition > .button').click()");
    browser.wait_until("document.querySelector('.flow-conditions .condition') === null");
    // Values are read as words: choices, and other fields.
    let ticked = "[...document.querySelectorAll('.condition label:has(:checked)')].map((one) => one.innerText)";
    assert_eq!(browser.evaluate(ticked), json!(["Deels betaald", "Verlopen"]));
    assert_eq!(browser.evaluate("document.querySelector('.condition .chip').innerText"), "Vervaldatum bij de start");
    browser.evaluate("document.querySelector('.condition input[value=partial]').click()");
    browser.wait_until(&format!("{ticked}.length === 1"));
    // A field is inserted into a text where the cursor is, and chosen for a condition, by its name.
    let pick = |browser: &mut Chromium, button: &str, name: &str| {
        browser.evaluate(&format!("document.querySelector({}).click()", json!(button)));
        browser.wait_until("document.querySelector('[role=menuitem]') !== null");
        let item =
            format!("[...document.querySelectorAll('[role=menuitem]')].find((one) => one.innerText === '{name}')");
        browser.evaluate(&format!("{item}.click()"));
    };
    browser.evaluate("document.querySelector('input[id$=-title]').setSelectionRange(3, 3)");
    pick(browser, ".with-picker:has([id$=-title]) .field-picker > button", "Vervaldatum");
    browser.wait_until(
        "document.querySelector('input[id$=-title]').value === 'Bel {{ Vervaldatum }} over {{ data.nummer }}'",
    );
    browser.evaluate("document.querySelector('.condition .chip-close').click()");
    browser.wait_until("document.querySelector('.condition .chip') === null");
    pick(browser, ".value-box .menu > button", "Factuurdatum");
    browser.wait_until("document.querySelector('.condition .chip')?.innerText === 'Factuurdatum'");
    browser.type_in("flow-name", "Bel de klant");
    browser.key("Ctrl+s");
    // It is saved; what the event does not have is said at its field, which has the focus, until it is mended.
    browser.sees("Opgeslagen. Kijk nog naar één veld.");
    browser.wait_until(
        "document.querySelector('.doubt')?.innerText === 'Het veld ‘nummer’ bestaat hier niet. Bedoelt u ‘Nummer’?'",
    );
    browser.wait_until("document.activeElement.matches('input[id$=-title]')");
    let saved: Value = client.get(&path).expect(200).data();
    assert_eq!(
        (&saved["name"], &saved["category"], &saved["meta"]["max_attempts"]),
        (&json!("Bel de klant"), &json!("sales"), &json!(3))
    );
    let steps = &saved["meta"]["definition"]["steps"];
    assert_eq!(steps[0]["conditions"][0]["value"], json!(["overdue"]));
    assert_eq!(steps[0]["conditions"][1]["value"], "{{ record.invoice_date }}");
    assert_eq!(steps[1]["title"], "Bel {{ data.due_date }} over {{ data.nummer }}");
    an_unclosed_field_is_refused_and_closed(browser);
    browser.wait_until("document.querySelector('.doubt') === null");
    browser.key("Ctrl+s");
    browser.settles(&address);
    let steps = client.get(&path).expect(200).data()["meta"]["definition"]["steps"].clone();
    assert_eq!(steps[1]["title"], "Bel over {{ data.number }}");
    browser.check();
}

/// In the title of the task, which has the focus.
fn an_unclosed_field_is_refused_and_closed(browser: &mut Chromium) {
    browser.evaluate("document.activeElement.select()");
    browser.type_text("Bel over {{ nummer");
    browser.key("Ctrl+s");
    browser.sees("In '{{ nummer' ontbreekt '}}'. Kies het veld zo nodig met ‘Veld invoegen’.");
    was_refused(browser, "422");
    browser.evaluate("document.querySelector('input[id$=-title]').select()");
    browser.type_text("Bel over {{ Nummer }}");
}

#[test]
fn a_doubtful_flow_says_so_when_it_is_switched_on() {
    let server = Server::start(Db::sqlite());
    server.leaves_jobs();
    let client = client(&server);
    let olga = owner(&server, &client, "olga@a.example");
    let steps = json!([{"type": "create_task", "title": "Bel over {{ data.nummer }}"}]);
    let flow =
        json!({"name": "Bel", "active": false, "trigger_type": "event", "trigger_key": "invoice.paid", "steps": steps});
    let id = client.post("/v1/automation/flows", flow).expect(201).id();
    let Some(mut browser) = Chromium::start(&client.base, 1280, 860) else { return };
    let browser = &mut browser;
    browser.new_tab(&olga.cookie, 1280, 860);
    browser.open("/flows");
    browser.wait_until("document.querySelector('.flow-card [role=switch]') !== null");
    browser.evaluate("document.querySelector('.flow-card [role=switch]').click()");
    browser.sees("Bel staat aan. Kijk nog naar één veld.");
    browser.press("link", "Bewerken");
    browser.settles(&format!("/flows/{id}/edit"));
    browser
        .wait_until("document.querySelector('.doubt')?.innerText.startsWith('Het veld ‘nummer’ bestaat hier niet.')");
    browser.wait_until("document.activeElement.matches('input[id$=-title]')");
    browser.check();
}

#[test]
fn a_flow_is_tested_on_past_data() {
    let server = Server::start(Db::sqlite());
    server.leaves_jobs();
    let client = client(&server);
    let olga = owner(&server, &client, "olga@a.example");
    let steps = json!([{"type": "create_task", "title": "Bel over {{ data.subject }}"}]);
    let flow = json!({"name": "Bel", "active": false, "trigger_type": "event", "trigger_key": "ticket.created", "steps": steps});
    let address = format!("/flows/{}", client.post("/v1/automation/flows", flow).expect(201).id());
    client.post("/v1/tickets", json!({"subject": "Koude oven"})).expect(201);
    let Some(mut browser) = Chromium::start(&client.base, 1280, 860) else { return };
    let browser = &mut browser;
    browser.new_tab(&olga.cookie, 1280, 860);
    browser.open(&address);
    // Fields are named, not written as placeholders.
    browser.wait_until("document.querySelector('.flow-step .filled')?.innerText === 'Onderwerp'");
    browser.press("button", "Testen met eerdere gegevens");
    browser.wait_until("document.querySelector('dialog [type=submit]') !== null");
    browser.evaluate("document.querySelector('dialog [type=submit]').click()");
    browser.sees("1 gebeurtenis; de flow zou 1 keer zijn uitgevoerd.");
    browser.sees("Bel over Koude oven");
    assert_eq!(browser.evaluate("document.querySelectorAll('.dialog-foot button').length"), 1);
    browser.evaluate("document.querySelector('dialog [type=submit]').click()");
    browser.wait_until("document.querySelector('dialog') === null");
    browser.check();
}

#[test]
fn a_run_shows_what_it_asks() {
    let server = Server::start(Db::sqlite());
    server.leaves_jobs();
    let client = client(&server);
    let olga = owner(&server, &client, "olga@a.example");
    let steps = json!([{"type": "approval", "message": "Ticket afhandelen?"}]);
    let flow = json!({"name": "Vraag", "trigger_type": "custom", "trigger_key": "ask.me", "steps": steps});
    client.post("/v1/automation/flows", flow).expect(201);
    let ticket = client.post("/v1/tickets", json!({"subject": "Koude oven"})).expect(201).id();
    let event = json!({"event": "ask.me", "entity_type": "ticket", "data": {"id": ticket}});
    client.post("/v1/automation/trigger", event).expect(200);
    client.post("/v1/test-clock/advance", json!({"to": "2026-05-05T10:00:00Z"})).expect(200);
    let Some(mut browser) = Chromium::start(&client.base, 1280, 860) else { return };
    let browser = &mut browser;
    browser.new_tab(&olga.cookie, 1280, 860);
    browser.open("/runs");
    browser.wait_until("document.querySelector('tbody tr')?.innerText.includes('Koude oven') === true");
    let run = client.get("/v1/automation/runs").data()[0]["id"].as_str().unwrap().to_string();
    browser.go(&format!("/runs/{run}"));
    browser.wait_until("document.querySelector('main h1')?.innerText === 'Ticket afhandelen?'");
    browser.press("button", "Goedkeuren");
    browser.wait_until("document.querySelector('dialog [type=submit]') !== null");
    browser.evaluate("document.querySelector('dialog [type=submit]').click()");
    // Nothing is asked any more.
    browser.wait_until("document.querySelector('main h1')?.innerText === 'Vraag'");
    browser.check();
}

#[test]
fn a_card_says_how_often_its_flow_ran_and_failed() {
    let server = Server::start(Db::sqlite());
    server.leaves_jobs();
    let client = client(&server);
    let olga = owner(&server, &client, "olga@a.example");
    let gone = "00000000-0000-7000-8000-000000000000";
    let steps = json!([{"type": "update", "entity_type": "task", "id": gone, "fields": {"title": "x"}}]);
    let flow = json!({"name": "Vergeefs", "trigger_type": "custom", "trigger_key": "fail.me", "steps": steps});
    client.post("/v1/automation/flows", flow).expect(201);
    for _ in 0..2 {
        client.post("/v1/automation/trigger", json!({"event": "fail.me"})).expect(200);
    }
    client.post("/v1/test-clock/advance", json!({"to": "2026-05-05T10:00:00Z"})).expect(200);
    let Some(mut browser) = Chromium::start(&client.base, 1280, 860) else { return };
    let browser = &mut browser;
    browser.new_tab(&olga.cookie, 1280, 860);
    browser.open("/flows");
    browser.sees("1 stap · 2 keer in 30 dagen");
    browser.press("link", "2 mislukt");
    browser.wait_until("location.pathname === '/runs' && document.querySelectorAll('tbody tr').length === 2");
    assert_eq!(browser.evaluate("new URLSearchParams(location.search).get('status')"), "failed");
    browser.check();
}

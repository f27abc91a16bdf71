//! What is done with a list: following a sum to its invoices, menus on a short list, several records at once, exports, uploads;
//! and the board of a new pipeline.

use serde_json::json;

use super::super::browser::Chromium;
use super::super::client;
use crate::people::owner;
use crate::support::{Client, Db, Server};

#[test]
fn lists_are_worked_with() {
    let server = Server::start(Db::sqlite());
    server.leaves_jobs();
    let client = client(&server);
    let olga = owner(&server, &client, "olga@a.example");
    let Some(mut browser) = Chromium::start(&client.base, 1280, 860) else { return };
    let browser = &mut browser;
    browser.new_tab(&olga.cookie, 1280, 860);
    let customer = client.post("/v1/clients", json!({"company_name": "Bakkerij De Ster"})).expect(201).id();
    a_sum_leads_to_its_invoices(browser, &client, &customer);
    a_menu_is_not_cut_off(browser);
    columns_are_chosen_by_keyboard(browser);
    numbers_lead_to_what_they_count(browser, &client, &customer);
    several_tasks_are_done_and_deleted(browser, &client);
    a_list_is_exported(browser, &client);
    a_large_file_is_named(browser, &client);
    a_new_pipeline_has_phases(browser, &client, &customer);
    an_old_undo_changes_nothing(browser, &client, &customer);
    a_lost_deal_gets_a_reason(browser, &client, &customer);
    lists_of_their_own_are_exported(browser, &client);
    names_are_whole_on_a_tablet(browser, &client);
    browser.check();
}

fn a_sum_leads_to_its_invoices(browser: &mut Chromium, client: &Client, customer: &str) {
    let rows = json!([{"name": "Oven", "unit_price": 100, "vat_rate": "21"}]);
    let invoice = json!({"title": "Oven", "client_id": customer, "rows": rows, "generation_mode": "final"});
    let part = client.post("/v1/invoices", invoice.clone()).expect(201).id();
    client.post("/v1/invoices", invoice).expect(201);
    client.post(&format!("/v1/invoices/{part}/payments"), json!({"amount": 21})).expect(201);
    browser.open(&format!("/clients/{customer}"));
    browser.wait_until("document.querySelector('.tile strong')?.innerText.includes('221,00') === true");
    browser.evaluate("document.querySelector('.tile').click()");
    browser.settles("/invoices");
    browser.wait_until("document.querySelectorAll('tbody tr[id]').length === 2");
    browser.wait_until("/open €\\s221,00/.test(document.querySelector('.list-sum').innerText)");
    browser.sees("Open, Verlopen, Deels betaald");
}

fn a_menu_is_not_cut_off(browser: &mut Chromium) {
    browser.key("c");
    browser.wait_until("document.querySelector('.columns-list') !== null");
    // The last column that fits can be pressed, though the card has two rows.
    let last = "[...document.querySelectorAll('.columns-list label')].findLast((one) => one.getBoundingClientRect().bottom < innerHeight - 20)";
    let hit = format!(
        "(() => {{ const {{ left, top }} = {last}.getBoundingClientRect(); return document.elementFromPoint(left + 12, top + 12).closest('.columns-list') !== null && top > 500; }})()"
    );
    assert_eq!(browser.evaluate(&hit), true);
    browser.key("c");
    browser.wait_until("document.querySelector('.columns-list') === null");
}

/// The columns are chosen with the keyboard, and the row behind them keeps the focus for afterwards.
fn columns_are_chosen_by_keyboard(browser: &mut Chromium) {
    browser.evaluate("document.activeElement.blur()");
    browser.key("j");
    browser.wait_until("document.activeElement.matches('tbody tr')");
    let row = browser.evaluate("document.activeElement.id");
    browser.key("c");
    browser.wait_until("document.activeElement.matches('.columns-list label:first-child input')");
    browser.key("ArrowDown");
    browser.wait_until("document.activeElement.matches('.columns-list label:nth-child(2) input')");
    browser.key("Escape");
    browser.wait_until("document.querySelector('.columns-list') === null");
    assert_eq!(browser.evaluate("document.activeElement.id"), row);
    // So does the search; and Tab comes to the checkbox of this row alone.
    browser.key("/");
    browser.wait_until("document.activeElement.type === 'search'");
    browser.key("Escape");
    assert_eq!(browser.evaluate("document.activeElement.id"), row);
    assert_eq!(browser.evaluate("document.querySelectorAll('tbody .pick input[tabindex=\"0\"]').length"), 1);
}

/// The numbers of the menu and of Home have a list of their own, and so has a status that not every late invoice has.
fn numbers_lead_to_what_they_count(browser: &mut Chromium, client: &Client, customer: &str) {
    let rows = json!([{"name": "Oven", "unit_price": 100, "vat_rate": "21"}]);
    let late = json!({"title": "Late", "client_id": customer, "rows": rows, "invoice_date": "2026-01-01", "due_date": "2026-01-15", "generation_mode": "final"});
    client.post("/v1/invoices", late).expect(201);
    let counts = |path: &str| client.get(path).expect(200).json()["meta"]["total"].as_i64().unwrap();
    browser.open("/");
    browser.wait_until("document.querySelector('.badge-link .badge') !== null");
    browser.wait_until("document.querySelectorAll('.ages a').length > 1");
    let ages = browser.evaluate("[...document.querySelectorAll('.ages a')].map((one) => one.getAttribute('href'))");
    let report = client.get("/v1/reports/open").expect(200).data();
    let told = report["ages"].as_array().unwrap().iter().filter(|one| one["count"].as_i64() > Some(0));
    for (href, age) in ages.as_array().unwrap().iter().zip(told) {
        assert_eq!(json!(counts(&format!("/v1{}", href.as_str().unwrap()))), age["count"], "{href}");
    }
    let badge = browser.evaluate("document.querySelector('.badge-link').getAttribute('href')");
    let number = counts(&format!("/v1{}", badge.as_str().unwrap()));
    assert_eq!(browser.evaluate("parseInt(document.querySelector('.badge-link').innerText)"), json!(number));
    browser.evaluate("document.querySelector('.badge-link').click()");
    browser.settles("/invoices");
    browser.wait_until(&format!("document.querySelectorAll('tbody tr[id]').length === {number}"));
    // It is late already, though its status is still `open`.
    browser.open("/invoices?payment_status=overdue");
    browser.wait_until("location.search.includes('owed=true')");
    browser.wait_until(&format!("document.querySelectorAll('tbody tr[id]').length === {number}"));
}

fn several_tasks_are_done_and_deleted(browser: &mut Chromium, client: &Client) {
    for title in ["Bellen", "Mailen"] {
        client.post("/v1/tasks", json!({"title": title})).expect(201);
    }
    let choose_all = "document.querySelector('thead .pick input').click()";
    browser.open("/tasks?status=open");
    browser.wait_until("document.querySelectorAll('tbody tr[id]').length === 2");
    browser.evaluate(choose_all);
    browser.press("button", "Afvinken");
    browser.sees("2 taken afvinken?");
    browser.evaluate("document.querySelector('dialog [type=submit]').click()");
    browser.sees("2 afgevinkt.");
    browser.open("/tasks");
    browser.wait_until("document.querySelectorAll('tbody tr[id]').length === 2");
    browser.evaluate(choose_all);
    browser.press("button", "Verwijderen");
    browser.sees("2 taken verwijderen?");
    browser.evaluate("document.querySelector('dialog [type=submit]').click()");
    browser.sees("2 verwijderd.");
    assert_eq!(client.get("/v1/tasks").json()["meta"]["total"], 0);
}

fn a_list_is_exported(browser: &mut Chromium, client: &Client) {
    browser.open("/invoices?payment_status=partial");
    browser.settles("/invoices");
    browser.press("button", "Exporteren");
    browser.sees("Facturen exporteren");
    // The file is left where it is: the link alone is looked at.
    browser.evaluate("HTMLAnchorElement.prototype.click = function () { window.followed = this.href; }; 0");
    browser.press("button", "Downloaden");
    browser.wait_until("/exports\\/.+\\/file.name=./.test(window.followed ?? '')");
    let export = client.get("/v1/exports").data()[0].clone();
    assert_eq!((&export["format"], &export["filters"]), (&json!("xlsx"), &json!({"payment_status": "partial"})));
    browser.open("/exports");
    browser.sees("gefilterd");
}

/// Several files give one message, and what went wrong stays.
fn a_large_file_is_named(browser: &mut Chromium, client: &Client) {
    browser.open("/files");
    browser.settles("/files");
    browser.evaluate(
        "(() => { const files = new DataTransfer();
           files.items.add(new File([new Uint8Array(30 * 1024 * 1024)], 'groot.bin'));
           for (const name of ['een.txt', 'twee.txt']) files.items.add(new File([name], name));
           document.querySelector('.dropping').dispatchEvent(new DragEvent('drop', { dataTransfer: files, bubbles: true, cancelable: true })); })()",
    );
    browser.sees("groot.bin is 30 MB; het maximum is 25 MB.");
    browser.sees("2 bestanden geüpload.");
    assert_eq!(browser.evaluate("document.querySelectorAll('.toast').length"), 1);
    assert_eq!(client.get("/v1/files?origin=uploaded").json()["meta"]["total"], 2);
}

fn a_new_pipeline_has_phases(browser: &mut Chromium, client: &Client, customer: &str) {
    browser.open("/settings/pipelines/new");
    browser.settles("/settings/pipelines/new");
    browser.type_in("f-name", "Onderhoud");
    browser.press("button", "Opslaan");
    browser.sees("Afronding");
    // The first one is still where new deals start.
    let pipelines = client.get("/v1/pipelines").data();
    assert_eq!((&pipelines[0]["name"], &pipelines[1]["name"]), (&json!("Sales"), &json!("Onderhoud")));
    assert_eq!(pipelines[1]["phases"].as_array().unwrap().len(), 5);
    let empty = client.post("/v1/pipelines", json!({"name": "Leeg"})).expect(201).id();
    browser.open(&format!("/deals?pipeline_id={empty}"));
    browser.sees("Fase toevoegen");
    client.post("/v1/deals", json!({"title": "Dak", "client_id": customer, "pipeline_id": empty})).expect(201);
    browser.open(&format!("/deals?pipeline_id={empty}"));
    browser.sees("Geen fase");
    browser.sees("Dak");
}

fn an_old_undo_changes_nothing(browser: &mut Chromium, client: &Client, customer: &str) {
    let deal = client.post("/v1/deals", json!({"title": "Keuken", "client_id": customer})).expect(201).id();
    client.post("/v1/deals", json!({"title": "Badkamer", "client_id": customer})).expect(201);
    browser.open("/deals");
    browser.sees("Keuken");
    browser.evaluate(&format!("document.querySelector('[id=\"deal-{deal}\"] a').focus()"));
    browser.key("Ctrl+Shift+ArrowRight");
    browser.sees("Keuken verplaatst naar");
    browser.key("l");
    browser.sees("Keuken is verloren");
    browser.wait_until("document.activeElement.closest('.deal')?.innerText.includes('Badkamer') === true");
    browser.evaluate("document.querySelector('.toast .link').click()");
    browser.sees("Keuken is daarna gewijzigd");
    browser.take_problems();
    assert_eq!(client.get(&format!("/v1/deals/{deal}")).data()["status"], "lost");
}

/// Whoever loses a deal may say why: the reason is a note of the deal.
fn a_lost_deal_gets_a_reason(browser: &mut Chromium, client: &Client, customer: &str) {
    let deal = client.post("/v1/deals", json!({"title": "Tuin", "client_id": customer})).expect(201).id();
    browser.open(&format!("/deals/{deal}"));
    browser.settles(&format!("/deals/{deal}"));
    browser.key("l");
    browser.sees("Tuin is verloren");
    browser.press("button", "Reden toevoegen");
    browser.wait_until("document.activeElement.id === 'lost-reason'");
    browser.type_text("Te duur");
    browser.press("button", "Opslaan");
    browser.sees("Verloren: Te duur");
    assert_eq!(client.get(&format!("/v1/notes?deal_id={deal}")).data()[0]["body"], "Verloren: Te duur");
}

/// The inbox, the board, the cards of flows and the week are exported as other lists are.
fn lists_of_their_own_are_exported(browser: &mut Chromium, client: &Client) {
    client.post("/v1/tickets", json!({"subject": "Koude oven"})).expect(201);
    let project = client.post("/v1/projects", json!({"name": "Verbouwing"})).expect(201).id();
    client.post(&format!("/v1/projects/{project}/hours"), json!({"hours": 2})).expect(201);
    for (page, resource, filter) in [
        ("/tickets?waiting=true", "tickets", "waiting"),
        ("/deals", "deals", "pipeline_id"),
        ("/flows", "flows", ""),
        ("/hours", "project_hours", "from"),
    ] {
        browser.open(page);
        browser.settles(page);
        browser.press("button", "Exporteren");
        browser.evaluate("HTMLAnchorElement.prototype.click = function () { window.followed = this.href; }; 0");
        browser.press("button", "Downloaden");
        browser.wait_until("/exports\\/.+\\/file.name=./.test(window.followed ?? '')");
        let export = client.get("/v1/exports").data()[0].clone();
        assert_eq!(export["resource"], resource);
        assert!(filter.is_empty() || export["filters"][filter].is_string(), "{export}");
    }
}

/// Names and titles have more lines where the columns are narrow, titles on laptops too; and the name of a person is there once.
fn names_are_whole_on_a_tablet(browser: &mut Chromium, client: &Client) {
    let person = json!({"type": "private", "firstname": "Karin", "lastname": "de Vries", "email": "kdv@huis.example"});
    client.post("/v1/clients", person).expect(201);
    let firm = json!({"company_name": "Installatiebedrijf Van der Heijden", "email": "administratie@vanderheijden-installatie.example", "city": "'s-Hertogenbosch"});
    let firm = client.post("/v1/clients", firm).expect(201).id();
    let rows = json!([{"name": "Oven", "unit_price": 100, "vat_rate": "21"}]);
    let invoice = json!({"title": "Onderhoud van de collectieve ketel", "client_id": firm, "rows": rows, "generation_mode": "final"});
    client.post("/v1/invoices", invoice).expect(201);
    let is_whole = |text: &str| {
        format!(
            "(() => {{ const cell = [...document.querySelectorAll('tbody td')].find((one) => one.textContent.includes('{text}')); \
             const text = cell?.querySelector('.lines-of') ?? cell; \
             return Boolean(cell) && cell.scrollWidth <= cell.clientWidth && text.scrollHeight <= text.clientHeight; }})()"
        )
    };
    browser.resize(1024, 768);
    browser.open("/clients");
    browser.wait_until(&is_whole("Van der Heijden"));
    assert_eq!(browser.evaluate("document.querySelectorAll('thead th')[1].innerText"), "Naam");
    let karin = "[...document.querySelectorAll('tbody tr')].find((one) => one.innerText.includes('Karin')).innerText";
    assert_eq!(browser.evaluate(&format!("{karin}.split('Karin').length")), 2);
    browser.open("/invoices");
    browser.wait_until(&is_whole("collectieve ketel"));
    browser.wait_until(&is_whole("Van der Heijden"));
    // On a laptop titles are whole too.
    client
        .post("/v1/tickets", json!({"subject": "Wanneer is de jaarlijkse onderhoudsbeurt van de ketel?"}))
        .expect(201);
    let deal = json!({"title": "Zonnepanelen op het dak van de werkplaats", "client_id": firm});
    client.post("/v1/deals", deal).expect(201);
    browser.resize(1280, 800);
    for (page, title) in [("/invoices", "collectieve ketel"), ("/deals?view=list", "van de werkplaats")] {
        browser.open(page);
        browser.wait_until(&is_whole(title));
    }
    browser.open("/tickets");
    browser.wait_until(
        "(() => { const subject = document.querySelector('.inbox-row .topic'); return subject?.innerText.endsWith('ketel?') && subject.scrollHeight <= subject.clientHeight; })()",
    );
}

//! What people rely on: two people on one record, a line that breaks, an update of the server, roles, and text that looks
//! like code.

use serde_json::{Value, json};

use super::super::browser::Chromium;
use super::super::client;
use crate::failover::until;
use crate::people::{Browser, member, owner};
use crate::support::{Client, Db, Office, Server};

/// Text that tries to be markup, code, a template, a format or another direction.
const NAUGHTY: [&str; 2] = [
    "<img src=x onerror=alert(1)> \"'><script>alert(2)</script>&amp; {{7*7}}${7*7}%s%n\\u0000 \u{202e}tfel",
    "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW👩‍👩‍👧‍👦",
];

/// One server and one browser for all of these stories: starting them takes longer than most stories.
#[test]
fn people_work_side_by_side() {
    let server = Server::start(Db::sqlite());
    server.leaves_jobs();
    let client = client(&server);
    let olga = owner(&server, &client, "olga@a.example");
    // Chromium may hang when it leaves a page whose PDF viewer is just starting.
    olga.send("PATCH", "/console/v1/me", r#"{"preferences":{"sheet":"rows"}}"#).expect(200);
    let (_, ina) = member(&client, "ina@a.example", "member");
    let (_, rita) = member(&client, "rita@a.example", "reader");
    let Some(mut browser) = Chromium::start(&client.base, 1280, 860) else { return };
    let browser = &mut browser;
    browser.new_tab(&olga.cookie, 1280, 860);
    two_people_change_one_record(browser, &client, &ina);
    two_people_change_one_draft(browser, &client);
    somebody_else_finalizes_a_draft(browser, &client);
    two_people_change_one_flow(browser, &client);
    two_people_change_one_subscription(browser, &client);
    an_action_continues_on_the_changed_record(browser, &client);
    a_list_does_not_move_while_somebody_reads_it(browser, &ina);
    a_reply_is_kept_while_the_ticket_changes(browser, &client, &ina);
    browser.check();
    a_click_takes_effect_once(browser, &client);
    what_was_typed_comes_back(browser, &client);
    the_server_is_updated(browser);
    browser.take_problems();
    text_is_never_code(browser, &client);
    a_reader_sees_what_they_may_do(browser, &server, &client, &rita);
    a_member_sees_what_they_may_do(browser, &ina);
    a_page_says_what_was_kept(browser, &client);
}

fn change(person: &Browser, path: &str, body: Value) {
    person.send("PATCH", &format!("/console{path}"), &body.to_string()).expect(200);
}

fn two_people_change_one_record(browser: &mut Chromium, client: &Client, ina: &Browser) {
    let id = client.post("/v1/products", json!({"name": "Boiler", "price": 1250})).expect(201).id();
    let (path, page) = (format!("/v1/products/{id}"), format!("/products/{id}"));
    let form = format!("{page}/edit");
    browser.open(&form);
    browser.settles(&form);
    // Untouched, the form follows the record.
    change(ina, &path, json!({"unit": "piece"}));
    browser.wait_until("document.getElementById('f-unit').value === 'piece'");
    // Another field: both changes are kept.
    browser.type_in("f-code", "BOIL");
    change(ina, &path, json!({"name": "Ketel"}));
    browser.sees("Ina heeft dit op");
    assert_eq!((browser.value("f-code"), browser.value("f-name")), ("BOIL".to_string(), "Boiler".to_string()));
    browser.press("button", "Opslaan");
    browser.settles(&page);
    let saved = client.get(&path).data();
    assert_eq!((&saved["name"], &saved["code"]), (&json!("Ketel"), &json!("BOIL")));
    // The same field: they choose.
    browser.go(&form);
    browser.settles(&form);
    browser.type_in("f-name", "Ketel van mij");
    change(ina, &path, json!({"name": "Ketel van Ina"}));
    browser.sees("Ina heeft dit op");
    assert_eq!(browser.value("f-name"), "Ketel van mij");
    browser.press("button", "Opslaan");
    browser.sees("Kies wat u wilt houden");
    assert_eq!(client.get(&path).data()["name"], "Ketel van Ina");
    browser.press("button", "Opslaan");
    browser.settles(&page);
    assert_eq!(client.get(&path).data()["name"], "Ketel van mij");
    // Their version was refused with 412, as it should be.
    let problems = browser.take_problems();
    assert!(problems.iter().all(|problem| problem.contains("412")), "{problems:#?}");
}

fn two_people_change_one_draft(browser: &mut Chromium, client: &Client) {
    let row = |name: &str| json!([{"name": name, "unit_price": 100, "vat_code": "NL21"}]);
    let id = client.post("/v1/invoices", json!({"title": "Oven", "rows": row("Oven")})).expect(201).id();
    let (path, page) = (format!("/v1/invoices/{id}"), format!("/invoices/{id}/edit"));
    browser.go(&page);
    browser.wait_until("document.getElementById('f-title')?.value === 'Oven'");
    browser.type_in("f-title", "Nieuwe oven");
    client.patch(&path, json!({"rows": row("Steenoven")})).expect(200);
    browser.sees("heeft dit op");
    browser.key("Ctrl+s");
    // The rows of the other person are shown, not only kept.
    browser.wait_until(
        "[...document.querySelectorAll('.cell-name :is(input, textarea)')].some((cell) => cell.value === 'Steenoven')",
    );
    until("the draft is saved", || client.get(&path).data()["title"] == "Nieuwe oven");
    browser.sees("Opgeslagen");
    assert_eq!(client.get(&path).data()["rows"][0]["name"], "Steenoven");
    let problems = browser.take_problems();
    assert!(problems.iter().all(|problem| problem.contains("412")), "{problems:#?}");
}

/// What was typed stays on the screen, however the news comes: with the save, or while somebody types.
fn somebody_else_finalizes_a_draft(browser: &mut Chromium, client: &Client) {
    let rows = json!([{"name": "Oven", "unit_price": 100, "vat_code": "NL21"}]);
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    for (saves, edit) in [(true, ""), (false, ""), (true, "/edit")] {
        let invoice = json!({"title": "Oven", "client_id": firm, "rows": rows});
        let id = client.post("/v1/invoices", invoice).expect(201).id();
        let page = format!("/invoices/{id}{edit}");
        browser.go(&page);
        browser.wait_until("document.getElementById('f-title')?.value === 'Oven'");
        browser.type_in("f-title", "Nieuwe oven");
        browser.type_in("f-notes", "Met garantie");
        let number = client.act(&format!("/v1/invoices/{id}/finalize")).expect(200).data()["number"].clone();
        let number = number.as_str().unwrap();
        if saves {
            browser.key("Ctrl+s");
        }
        browser.sees(&format!("{number} is intussen definitief gemaakt"));
        browser.sees("Wat u typte is niet opgeslagen");
        browser.evaluate("document.activeElement.blur()");
        browser.key("Ctrl+s");
        browser.wait_until("document.activeElement.matches('.made-final a')");
        let finalizes =
            "[...document.querySelectorAll('main button')].some((one) => one.innerText.includes('Definitief maken'))";
        assert_eq!(browser.evaluate(finalizes), false);
        // Nor does it go when the page is loaded anew.
        browser.wait_until("Object.keys(localStorage).some((key) => localStorage[key].includes('Met garantie'))");
        browser.open(&page);
        browser.sees("Wat u typte is niet opgeslagen");
        assert_eq!(
            (browser.value("f-title"), browser.value("f-notes")),
            ("Nieuwe oven".to_string(), "Met garantie".to_string())
        );
        assert_eq!(client.get(&format!("/v1/invoices/{id}")).data()["title"], "Oven");
        browser.press("button", "Weggooien");
        browser.settles(&format!("/invoices/{id}"));
        browser.sees("Betaling boeken");
        assert_eq!(browser.evaluate("document.querySelector('.editor')"), Value::Null);
    }
    let problems = browser.take_problems();
    assert!(problems.iter().all(|problem| problem.contains("412")), "{problems:#?}");
}

/// The first press is refused and shows the new version; the second is about that version.
fn an_action_continues_on_the_changed_record(browser: &mut Chromium, client: &Client) {
    let rows = json!([{"name": "Oven", "unit_price": 100, "vat_code": "NL21"}]);
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    let id = client.post("/v1/quotes", json!({"title": "Oven", "client_id": firm, "rows": rows})).expect(201).id();
    let path = format!("/v1/quotes/{id}");
    client.act(&format!("{path}/finalize")).expect(200);
    let page = format!("/quotes/{id}");
    browser.go(&page);
    browser.settles(&page);
    // The key of the screen, since this quote was not sent and the button is in the second place.
    browser.key("a");
    browser.sees("gemarkeerd als geaccepteerd");
    let mail = json!({"to": "piet@b.example", "subject": "Offerte", "message": "Zie de bijlage."});
    client.post(&format!("{path}/send"), mail).expect(200);
    let confirm = "document.querySelector('dialog [type=submit]').click()";
    browser.evaluate(confirm);
    browser.sees("Controleer de nieuwe versie en probeer het nogmaals");
    assert_eq!(client.get(&path).data()["payment_status"], "open");
    browser.wait_until("document.querySelector('dialog [type=submit]').disabled === false");
    browser.evaluate(confirm);
    browser.wait_until("document.querySelector('dialog') === null");
    assert_eq!(client.get(&path).data()["payment_status"], "accepted");
    let problems = browser.take_problems();
    assert!(problems.iter().all(|problem| problem.contains("412")), "{problems:#?}");
}

fn two_people_change_one_flow(browser: &mut Chromium, client: &Client) {
    let steps = json!([{"type": "create_note", "body": "Gelukt"}]);
    let flow = |description: &str, name: &str, steps: &Value| {
        json!({"name": name, "description": description, "category": "sales", "max_attempts": 3, "active": false,
               "trigger_type": "event", "trigger_key": "invoice.paid", "steps": steps})
    };
    let id = client.post("/v1/automation/flows", flow("", "Betaald", &steps)).expect(201).id();
    let (path, page) = (format!("/v1/automation/flows/{id}"), format!("/flows/{id}"));
    let replace = |with: Value| client.send("PUT", &path, &[], &with.to_string()).expect(200);
    browser.go(&format!("{page}/edit"));
    browser.wait_until("document.getElementById('flow-name')?.value === 'Betaald'");
    // Untouched, the editor follows the flow; another field is kept.
    replace(flow("Van Ina", "Betaald", &steps));
    browser.wait_until("document.getElementById('flow-description').value === 'Van Ina'");
    browser.type_in("flow-name", "Betaald en klaar");
    let theirs = json!([{"type": "create_note", "body": "Betaald"}, {"type": "wait", "for": "P1D"}]);
    replace(flow("Van Ina", "Betaald", &theirs));
    browser.sees("heeft dit op");
    browser.press("button", "Opslaan");
    browser.settles(&page);
    let saved = client.get(&path).data();
    assert_eq!((&saved["name"], &saved["description"]), (&json!("Betaald en klaar"), &json!("Van Ina")));
    assert_eq!(saved["meta"]["definition"]["steps"].as_array().unwrap().len(), 2, "{saved}");
    // What has no control is kept.
    let kept = (&saved["category"], &saved["meta"]["max_attempts"], &saved["active"]);
    assert_eq!(kept, (&json!("sales"), &json!(3), &json!(false)));
    // The same steps: they choose.
    browser.go(&format!("{page}/edit"));
    browser.wait_until("document.querySelectorAll('.flow-edit').length === 2");
    browser.evaluate("document.querySelector('.flow-edit textarea').focus()");
    browser.type_text("! ");
    replace(flow("Van Ina", "Betaald en klaar", &steps));
    browser.sees("heeft dit op");
    browser.press("button", "Opslaan");
    browser.sees("Kies wat u wilt houden");
    browser.sees("2 stappen");
    browser.sees("1 stap");
    assert_eq!(client.get(&path).data()["meta"]["definition"]["steps"], steps);
    browser.evaluate("document.querySelector('dialog [type=submit]').click()");
    browser.settles(&page);
    let saved = client.get(&path).data()["meta"]["definition"]["steps"].clone();
    assert!(saved[0]["body"].as_str().unwrap().contains("! ") && saved[1]["type"] == "wait", "{saved}");
    let problems = browser.take_problems();
    assert!(problems.iter().all(|problem| problem.contains("412")), "{problems:#?}");
}

fn two_people_change_one_subscription(browser: &mut Chromium, client: &Client) {
    let customer = client.post("/v1/clients", json!({"company_name": "Garage Smit"})).expect(201).id();
    let lines = json!([{"title": "Onderhoud", "unit_price": 100, "vat_code": "NL21"}]);
    let subscription = json!({"client_id": customer, "title": "Onderhoud", "subscription_start": "2026-06-01", "lines": lines, "status": "draft"});
    let id = client.post("/v1/subscriptions", subscription).expect(201).id();
    let (path, page) = (format!("/v1/subscriptions/{id}"), format!("/subscriptions/{id}"));
    let title = "document.getElementById('f-title')?.value";
    let begin = |browser: &mut Chromium, text: &str| {
        browser.go(&format!("{page}/edit"));
        browser.wait_until(&format!("{title} === {}", json!(text)));
    };
    begin(browser, "Onderhoud");
    browser.type_in("f-title", "Groot onderhoud");
    let dearer = json!([{"title": "Onderhoud", "unit_price": 125, "vat_code": "NL21"}]);
    client.patch(&path, json!({"lines": dearer})).expect(200);
    browser.sees("heeft dit op");
    browser.press("button", "Opslaan");
    browser.settles(&page);
    let saved = client.get(&path).data();
    assert_eq!((&saved["title"], &saved["lines"][0]["unit_price"]), (&json!("Groot onderhoud"), &json!(125)));
    begin(browser, "Groot onderhoud");
    browser.evaluate("document.querySelector('.cell-price input').focus()");
    browser.type_text("150");
    browser.type_in("f-title", "Mijn onderhoud");
    client.patch(&path, json!({"title": "Hun onderhoud"})).expect(200);
    browser.sees("heeft dit op");
    browser.press("button", "Opslaan");
    browser.sees("Kies wat u wilt houden");
    // Theirs for the title; the lines are only mine.
    browser.evaluate("document.querySelectorAll('dialog [type=radio]')[1].click()");
    browser.evaluate("document.querySelector('dialog [type=submit]').click()");
    browser.settles(&page);
    let saved = client.get(&path).data();
    assert_eq!((&saved["title"], &saved["lines"][0]["unit_price"]), (&json!("Hun onderhoud"), &json!(150)));
    let problems = browser.take_problems();
    assert!(problems.iter().all(|problem| problem.contains("412")), "{problems:#?}");
}

fn a_list_does_not_move_while_somebody_reads_it(browser: &mut Chromium, ina: &Browser) {
    browser.go("/products");
    browser.settles("/products");
    let rows = "document.querySelectorAll('tbody tr').length";
    let before = browser.evaluate(rows);
    ina.post("/console/v1/products", json!({"name": "Nieuwe pomp"})).expect(201);
    browser.sees("1 nieuwe tonen");
    assert_eq!(browser.evaluate(rows), before);
    browser.press("button", "1 nieuwe tonen");
    browser.sees("Nieuwe pomp");
}

fn a_reply_is_kept_while_the_ticket_changes(browser: &mut Chromium, client: &Client, ina: &Browser) {
    let ticket = json!({"subject": "Lekkage", "client_name": "Piet", "client_email": "piet@b.example"});
    let id = client.post("/v1/tickets", ticket).expect(201).id();
    let here = json!({"address": format!("/tickets/{id}")}).to_string();
    ina.send("PATCH", "/console/v1/me/here", &here).expect(200);
    browser.go(&format!("/tickets/{id}"));
    browser.sees("Lekkage");
    browser.sees("Ina heeft dit ook open");
    browser.fill("Antwoorden", "Wij komen morgen");
    let note = json!({"type": "note", "body": "Ik heb gebeld"});
    ina.post(&format!("/console/v1/tickets/{id}/messages"), note).expect(201);
    browser.sees("Ik heb gebeld");
    assert_eq!(browser.evaluate("document.querySelector('.reply textarea').value"), "Wij komen morgen");
}

/// The server does what it was asked, and its response is lost.
fn a_click_takes_effect_once(browser: &mut Chromium, client: &Client) {
    let customer = json!({"company_name": "Bakkerij De Ster", "email": "ster@b.example"});
    let customer = client.post("/v1/clients", customer).expect(201).id();
    let rows = json!([{"name": "Boiler", "unit_price": 1250, "vat_rate": "21"}]);
    let invoice = json!({"title": "Boiler", "client_id": customer, "rows": rows});
    let id = client.post("/v1/invoices", invoice.clone()).expect(201).id();
    let page = format!("/invoices/{id}");
    browser.go(&page);
    browser.sees("Concept opslaan");
    browser.settles(&page);
    browser.key("Ctrl+Enter");
    browser.sees("Het volgende nummer is ");
    browser.lose("/finalize", 1);
    browser.press("button", "Definitief maken en versturen");
    browser.sees("Versturen per e-mail");
    browser.key("Escape");
    let number = client.get(&format!("/v1{page}")).data()["number"].as_str().unwrap().to_string();
    let next = client.post("/v1/invoices", invoice).expect(201).id();
    let next = client.act(&format!("/v1/invoices/{next}/finalize")).expect(200).data();
    let count = |number: &str| number.rsplit('-').next().unwrap().parse::<u32>().unwrap();
    assert_eq!(count(next["number"].as_str().unwrap()), count(&number) + 1, "one number was used");

    browser.press("button", "Betaling boeken");
    browser.sees("Hiermee is de factuur voldaan");
    browser.lose("/payments", 2);
    browser.press("button", "Boeken");
    browser.sees("geboekt.");
    assert_eq!(client.get(&format!("/v1{page}/payments")).data().as_array().unwrap().len(), 1);
    assert_eq!(client.get(&format!("/v1{page}")).data()["payment_status"], "paid");
}

fn what_was_typed_comes_back(browser: &mut Chromium, client: &Client) {
    browser.go("/clients/new");
    browser.settles("/clients/new");
    browser.type_in("f-company_name", "Molen & Zoon");
    browser.wait_until("Object.keys(localStorage).some((key) => localStorage[key].includes('Molen'))");
    browser.open("/clients/new");
    browser.sees("Uw niet-opgeslagen wijzigingen");
    assert_eq!(browser.value("f-company_name"), "Molen & Zoon");
    browser.lose("/v1/clients", 1);
    browser.press("button", "Opslaan");
    browser.wait_until("/^.clients.[^n]/.test(location.pathname)");
    assert_eq!(client.get("/v1/clients?search=Molen").json()["meta"]["total"], 1);
    // What was saved is not offered again.
    browser.go("/clients/new");
    browser.settles("/clients/new");
    assert_eq!(browser.value("f-company_name"), "");
    // Whoever reloads the page before the response comes, and saves again, saves once.
    browser.type_in("f-company_name", "Herladen BV");
    browser.wait_until("Object.keys(localStorage).some((key) => localStorage[key].includes('Herladen'))");
    let saved = || client.get("/v1/clients?search=Herladen").json()["meta"]["total"].clone();
    browser.lose("/v1/clients", 20);
    browser.press("button", "Opslaan");
    until("the client", || saved() == 1);
    browser.open("/clients/new");
    browser.lose("/v1/clients", 0);
    browser.wait_until("document.getElementById('f-company_name')?.value === 'Herladen BV'");
    browser.sees("misschien is het gelukt");
    browser.press("button", "Opslaan");
    browser.wait_until("/^.clients.[^n]/.test(location.pathname)");
    assert_eq!(saved(), 1);
    browser.go("/clients/new");
    browser.settles("/clients/new");
    // And whoever changes something before that changes what was saved.
    let called = |name: &str| client.get(&format!("/v1/clients?search={name}")).json()["meta"]["total"].clone();
    browser.type_in("f-company_name", "Voorlopig BV");
    browser.type_in("f-city", "Gent");
    browser.wait_until("Object.keys(localStorage).some((key) => localStorage[key].includes('Gent'))");
    browser.lose("/v1/clients", 20);
    browser.press("button", "Opslaan");
    until("the client", || called("Voorlopig") == 1);
    browser.open("/clients/new");
    browser.lose("/v1/clients", 0);
    browser.wait_until("document.getElementById('f-company_name')?.value === 'Voorlopig BV'");
    browser.type_in("f-company_name", "Blijvend BV");
    browser.type_in("f-city", "");
    browser.key("Backspace");
    browser.press("button", "Opslaan");
    browser.wait_until("/^.clients.[^n]/.test(location.pathname)");
    let kept = client.get("/v1/clients?search=Blijvend").json();
    assert_eq!((&kept["meta"]["total"], called("Voorlopig")), (&json!(1), json!(0)));
    assert_eq!(kept["data"][0]["city"], "");
    browser.go("/clients/new");
    browser.settles("/clients/new");
    browser.call("Fetch.disable", json!({}));
}

/// After a session has ended, the page says that something was kept, if it was.
fn a_page_says_what_was_kept(browser: &mut Chromium, client: &Client) {
    let text = |browser: &mut Chromium| {
        browser.wait_until("document.readyState === 'complete' && document.getElementById('error') !== null");
        browser.evaluate("document.getElementById('error').innerText").as_str().unwrap().to_string()
    };
    browser.call("Network.clearBrowserCookies", json!({}));
    // Drafts of the other screens of this story.
    browser.evaluate("localStorage.clear()");
    browser.call("Page.navigate", json!({"url": format!("{}/sign-in?ended", client.base)}));
    let said = text(browser);
    assert!(said.starts_with("You have been signed out. Sign in again.") && !said.contains("kept"), "{said}");
    browser.evaluate("localStorage.setItem('draft x /clients/new', JSON.stringify({ at: Date.now(), value: {} }))");
    browser.call("Page.navigate", json!({"url": format!("{}/sign-in?ended&again", client.base)}));
    let said = text(browser);
    assert!(said.contains("What you typed has been kept."), "{said}");
}

fn the_server_is_updated(browser: &mut Chromium) {
    browser.type_in("f-city", "Tilburg");
    browser.evaluate(
        "(() => { const real = fetch; window.fetch = async (...all) => { const answer = await real(...all);
           const headers = new Headers(answer.headers); headers.set('X-Kantoor-Version', 'another');
           return new Response(await answer.text(), { status: answer.status, headers }); }; })()",
    );
    browser.wait_until("Object.keys(localStorage).some((key) => localStorage[key].includes('Tilburg'))");
    browser.go("/tasks");
    browser.sees("Kantoor is bijgewerkt.");
    // Its place is known when the list is there.
    browser.settles("/tasks");
    browser.press("button", "Opnieuw laden");
    browser.wait_until("performance.getEntriesByType('navigation')[0].type === 'reload'");
    browser.settles("/tasks");
    browser.go("/clients/new");
    browser.sees("Uw niet-opgeslagen wijzigingen");
    assert_eq!(browser.value("f-city"), "Tilburg");
    browser.press("button", "Weggooien");
    // A module of the version of before is gone.
    browser.call("Network.setBlockedURLs", json!({"urls": ["*/screens/hours.js"]}));
    browser.go("/hours");
    browser.sees("Kantoor is bijgewerkt.");
    browser.call("Network.setBlockedURLs", json!({"urls": []}));
}

fn text_is_never_code(browser: &mut Chromium, client: &Client) {
    let mut pages = Vec::new();
    for text in NAUGHTY {
        let of = |path: &str, body: Value| client.post(path, body).expect(201).id();
        let customer = of("/v1/clients", json!({"company_name": text, "city": text, "firstname": text}));
        let project = of("/v1/projects", json!({"name": text, "client_id": customer}));
        let deal = of("/v1/deals", json!({"title": text, "client_id": customer}));
        let task = of("/v1/tasks", json!({"title": text, "notes": text, "client_id": customer}));
        let ticket = of("/v1/tickets", json!({"subject": text, "client_name": text}));
        client.post(&format!("/v1/tickets/{ticket}/messages"), json!({"type": "note", "body": text})).expect(201);
        let rows = json!([{"name": text, "description": text, "unit": "<b>", "unit_price": 1}]);
        let quote = of("/v1/quotes", json!({"title": text, "client_id": customer, "notes": text, "rows": rows}));
        for (kind, id) in
            [("clients", customer), ("projects", project), ("deals", deal), ("tasks", task), ("tickets", ticket)]
        {
            pages.push((format!("/{kind}/{id}"), text));
        }
        pages.push((format!("/quotes/{quote}"), ""));
    }
    for list in ["/clients", "/projects", "/deals", "/tasks?status=open", "/tickets", "/quotes"] {
        pages.push((list.to_string(), ""));
    }
    browser.open("/");
    browser.settles("/");
    for (page, text) in &pages {
        browser.go(page);
        browser.settles(page);
        browser.sees(text);
        let strange = browser.evaluate("document.querySelectorAll('img[src=x], main script, main b').length");
        assert_eq!(strange, 0, "{page}");
        let wide = browser.evaluate("document.documentElement.scrollWidth > innerWidth + 1");
        assert_eq!(wide, false, "{page} is wider than the window");
    }
    browser.key("Ctrl+k");
    browser.wait_until("document.activeElement.matches('dialog.find input')");
    browser.type_text("onerror");
    browser.wait_until("document.querySelector('.find-list').innerText.includes('<img src=x onerror=alert(1)>')");
    browser.key("Escape");
    browser.check();
}

fn a_reader_sees_what_they_may_do(browser: &mut Chromium, server: &Office, client: &Client, rita: &Browser) {
    let other = server.client().post("/v1/products", json!({"name": "Elsewhere"})).expect(201).id();
    let product = client.post("/v1/products", json!({"name": "Kraan"})).expect(201).id();
    browser.new_tab(&rita.cookie, 1280, 860);
    browser.open(&format!("/products/{product}"));
    browser.sees("Kraan");
    let changes =
        "document.querySelectorAll('main a[href$=\"/edit\"], main a[href$=\"/new\"], .new-menu button').length";
    assert_eq!(browser.evaluate(changes), 0);
    for list in ["/products", "/invoices", "/clients", "/deals", "/tickets", "/quotes", "/files", "/flows"] {
        browser.go(list);
        browser.settles(list);
        assert_eq!(browser.evaluate(changes), 0, "{list}");
    }
    for form in ["/products/new".to_string(), format!("/products/{product}/edit"), "/invoices/new".to_string()] {
        browser.go(&form);
        browser.sees("Hiervoor hebt u geen rechten");
    }
    let secrets = "document.querySelectorAll('main a[href*=\"api-keys\"], main a[href*=\"webhook\"]').length";
    browser.go("/settings");
    browser.settles("/settings");
    assert_eq!(browser.evaluate(secrets), 0);
    browser.check();
    // By hand too.
    let asked = |method: &str, path: &str| {
        format!(
            "fetch('/console{path}', {{method: '{method}', headers: {{'Content-Type': 'application/json'}}, body: '{{}}'}}).then((answer) => answer.status)"
        )
    };
    assert_eq!(browser.evaluate(&asked("POST", "/v1/products")), 403);
    assert_eq!(browser.evaluate(&asked("PATCH", &format!("/v1/products/{product}"))), 403);
    assert_eq!(browser.evaluate(&asked("DELETE", &format!("/v1/products/{product}"))), 403);
    assert_eq!(
        browser.evaluate(&format!("fetch('/console/v1/products/{other}').then((answer) => answer.status)")),
        404
    );
    browser.go(&format!("/products/{other}"));
    browser.sees("Pagina niet gevonden");
    browser.take_problems();
}

fn a_member_sees_what_they_may_do(browser: &mut Chromium, ina: &Browser) {
    browser.new_tab(&ina.cookie, 1280, 860);
    browser.open("/products");
    browser.press("link", "Nieuw product");
    browser.settles("/products/new");
    browser.go("/settings");
    browser.settles("/settings");
    assert_eq!(browser.evaluate("document.querySelectorAll('main a[href*=\"api-keys\"]').length"), 0);
    browser.check();
    assert_eq!(browser.evaluate("fetch('/console/v1/api-keys').then((answer) => answer.status)"), 403);
    browser.take_problems();
}

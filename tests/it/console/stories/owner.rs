//! A new owner sets up the business without a program: own details and logo with a preview, settings, a subscription that is
//! collected with a file for the bank, hours, a flow, a colleague, a key; and finds things in long lists.

use serde_json::{Value, json};

use super::super::browser::Chromium;
use super::super::client;
use crate::failover::until;
use crate::imports;
use crate::people::{PASSWORD, set_up_token};
use crate::support::{Client, Db, Server};

/// One server, one browser and one load of a page for all of these stories: what follows is a link away.
#[test]
fn an_owner_needs_no_program() {
    let server = Server::start(Db::sqlite());
    server.leaves_jobs();
    let client = client(&server);
    let token = set_up_token(&server, &client);
    let Some(mut browser) = Chromium::start(&client.base, 1280, 860) else { return };
    let browser = &mut browser;
    browser.without_motion();
    browser.call("Network.setExtraHTTPHeaders", json!({"headers": {"Accept-Language": "nl"}}));
    the_account_is_set_up(browser, &token);
    the_menu_leads_to_what_was_uploaded(browser, &client);
    the_details_are_filled_in(browser, &client);
    automatic_mail_gets_its_hours(browser, &client);
    empty_pages_say_what_to_do_first(browser);
    let customer = a_mandate_is_recorded(browser, &client);
    a_subscription_is_collected(browser, &client, &customer);
    a_file_for_the_bank_says_what_it_needs(browser, &client);
    hours_are_submitted_and_approved(browser, &client, &customer);
    approved_hours_are_invoiced_once(browser, &client);
    a_ticket_is_made_by_hand(browser, &client, &customer);
    a_ticket_is_changed(browser, &client);
    a_ticket_is_found(browser, &client);
    clients_are_imported(browser, &server, &client);
    a_client_has_files(browser, &client, &customer);
    a_ready_flow_is_switched_on(browser, &client);
    a_colleague_is_invited(browser, &client);
    a_key_is_made(browser, &client);
    a_long_list_is_searched(browser, &client);
    browser.check();
}

fn the_account_is_set_up(browser: &mut Chromium, token: &str) {
    browser.open(&format!("/set-up/{token}"));
    browser.sees("Aan de slag");
    browser.type_in("name", "Olga Jansen");
    browser.type_in("email", "olga@a.example");
    browser.type_in("password", PASSWORD);
    browser.key("Enter");
    browser.settles("/");
}

fn the_details_are_filled_in(browser: &mut Chromium, client: &Client) {
    browser.go("/");
    browser.press("link", "Gegevens invullen");
    browser.wait_until("document.getElementById('f-iban') !== null && document.querySelector('.identity') !== null");
    for (field, text) in [
        ("f-name", "Jansen & Zn"),
        ("f-address", "Havenweg 12"),
        ("f-city", "Tilburg"),
        ("f-iban", "NL02ABNA0123456789"),
        ("f-primary_color", "#0b6847"),
    ] {
        browser.type_in(field, text);
    }
    browser.upload("f-logo_file_id", "console/icon.png");
    // The preview follows what is typed.
    browser.wait_until("document.querySelector('.identity-head img')?.complete === true");
    let shown = browser.evaluate("document.querySelector('.identity').innerText");
    let shown = shown.as_str().unwrap();
    assert!(
        ["Jansen & Zn", "Havenweg 12", "NL02 ABNA 0123 4567 89"].iter().all(|part| shown.contains(part)),
        "{shown}"
    );
    assert_eq!(browser.evaluate("document.querySelector('.identity-title').style.color"), "rgb(11, 104, 71)");
    browser.press("button", "Opslaan");
    browser.sees("Opgeslagen.");
    let identity = client.get("/v1/corporate-identities").data()[0]["id"].as_str().unwrap().to_string();
    let identity = client.get(&format!("/v1/corporate-identities/{identity}")).data();
    assert_eq!(identity["name"], "Jansen & Zn");
    assert!(identity.to_string().contains("Havenweg 12"), "{identity}");
    browser.go("/");
    browser.settles("/");
    browser.sees("Klant toevoegen");
}

fn automatic_mail_gets_its_hours(browser: &mut Chromium, client: &Client) {
    browser.go("/settings");
    follow(browser, "/settings/sending");
    browser.wait_until("document.getElementById('s-mail_hours_from') !== null");
    browser.choose("s-mail_hours_from", "09:30");
    browser.press("checkbox", "vrijdag");
    browser.press("checkbox", "zaterdag");
    save_section(browser, "sending");
    let settings = client.get("/v1/settings").data();
    assert_eq!(settings["mail_days"], json!(["mon", "tue", "wed", "thu", "sat"]));
    assert_eq!(settings["mail_hours_from"], "09:30");
    // A test account collects in the sandbox until it chooses its bank.
    browser.go("/settings/payments");
    browser.press("radio", "Uw bank (incassobestanden)");
    browser.wait_until("document.getElementById('s-creditor_id') !== null");
    browser.type_in("s-creditor_id", "NL69ZZZ123456780000");
    save_section(browser, "payments");
    assert_eq!(client.get("/v1/settings").data()["creditor_id"], "NL69ZZZ123456780000");
}

/// Follows the link to an address.
fn follow(browser: &mut Chromium, address: &str) {
    let link = format!("document.querySelector('main a[href=\"{address}\"]')");
    browser.wait_until(&format!("{link} !== null"));
    browser.evaluate(&format!("{link}.click()"));
}

/// Saves a section of the settings: its button can be pressed while there is something to save.
fn save_section(browser: &mut Chromium, name: &str) {
    let button = format!("document.querySelector('form#{name} [type=submit]')");
    browser.wait_until(&format!("!{button}.disabled"));
    browser.evaluate(&format!("{button}.click()"));
    browser.wait_until(&format!("{button}.disabled && {button}.ariaBusy !== 'true'"));
}

/// The board has an example, the inbox says how mail gets there, and an address that is none leads back.
fn empty_pages_say_what_to_do_first(browser: &mut Chromium) {
    browser.go("/deals");
    browser.sees("Voorbeeld: offerte voor een nieuwe klant");
    browser.go("/tickets");
    browser.press("link", "Ticketkanalen");
    browser.settles("/settings/ticket-channels");
    browser.go("/nergens");
    browser.press("link", "Terug naar overzicht");
    browser.settles("/");
}

/// Returns the id of a client whose invoices are collected.
fn a_mandate_is_recorded(browser: &mut Chromium, client: &Client) -> String {
    let bakery = json!({"company_name": "Bakkerij De Ster", "email": "info@b.example", "iban": "NL91ABNA0417164300"});
    let customer = client.post("/v1/clients", bakery).expect(201).id();
    browser.go(&format!("/clients/{customer}"));
    browser.press("button", "Getekende machtiging vastleggen");
    browser.wait_until("document.getElementById('mandate-reference') !== null");
    // A reference of the client and the day is there for those who have none.
    browser.wait_until(r"/^M\d+-\d{8}$/.test(document.getElementById('mandate-reference').value)");
    browser.type_in("mandate-reference", "M-1");
    browser.press("button", "Opslaan");
    browser.sees("Machtiging vastgelegd.");
    customer
}

fn a_subscription_is_collected(browser: &mut Chromium, client: &Client, customer: &str) {
    browser.go(&format!("/subscriptions/new?client_id={customer}"));
    browser.wait_until("document.querySelector('.cell-name input') !== null");
    browser.type_in("f-title", "Onderhoud");
    browser.evaluate("document.querySelector('.cell-name input').focus()");
    browser.type_text("Onderhoudsbeurt");
    browser.evaluate("document.querySelector('.cell-price input').focus()");
    browser.type_text("100");
    browser.press("button", "Opslaan en activeren");
    // It begins today, so it says what follows.
    browser.sees("wordt meteen een factuur gemaakt");
    browser.evaluate("document.querySelector('dialog [type=submit]').click()");
    browser.wait_until("/^.subscriptions.[0-9a-f-]{36}$/.test(location.pathname)");
    // Its page has the mandate of the client.
    browser.sees("M-1");
    let subscription = client.get("/v1/subscriptions").data()[0].clone();
    assert_eq!((&subscription["status"], &subscription["title"]), (&json!("active"), &json!("Onderhoud")));
    // Its first invoice waits for the next file.
    client.post("/v1/test-clock/advance", json!({"to": "2026-05-05T10:00:00Z"})).expect(200);
    browser.go("/batches");
    browser.sees("wacht op een bestand.");
    browser.press("button", "Nieuw incassobestand");
    browser.wait_until("document.querySelector('dialog strong')?.innerText.includes('121,00') === true");
    browser.press("button", "Bestand maken");
    browser.press("link", "Bestand downloaden");
    browser.press("button", "Klaar");
    let batch = client.get("/v1/direct-debit/batches").data()[0].clone();
    assert_eq!((&batch["count"], &batch["amount"]), (&json!(1), &json!(121)));
}

fn hours_are_submitted_and_approved(browser: &mut Chromium, client: &Client, customer: &str) {
    client.post("/v1/projects", json!({"name": "Verbouwing", "client_id": customer})).expect(201);
    browser.go("/hours");
    browser.press("button", "Project toevoegen");
    browser.wait_until("document.getElementById('add-project') !== null");
    browser.type_in("add-project", "Verb");
    browser.wait_until("document.querySelector('[role=option]')?.innerText.includes('Verbouwing') === true");
    browser.key("Enter");
    browser.evaluate("document.querySelector('dialog [type=submit]').click()");
    browser.wait_until("document.querySelector('.week td input') !== null");
    browser.evaluate("document.querySelector('.week td input').focus()");
    browser.type_text("25");
    browser.sees("Meer dan 24 uur op één dag.");
    browser.evaluate("document.querySelectorAll('.week td input')[1].focus()");
    browser.type_text("8u30");
    browser.key("Enter");
    browser.wait_until("document.querySelector('.week tfoot .sum').innerText === '8:30'");
    // What cannot be saved is not left out silently.
    browser.press("button", "Week indienen");
    browser.wait_until("document.activeElement.matches('.week td input[aria-invalid=true]')");
    browser.evaluate("document.activeElement.blur()");
    browser.evaluate("document.querySelector('.week td input').focus()");
    browser.type_text("1:30");
    browser.key("Enter");
    browser.wait_until("document.querySelector('.week tfoot .sum').innerText === '10:00'");
    browser.press("button", "Week indienen");
    browser.sees("in: 10:00.");
    browser.evaluate("document.querySelector('dialog [type=submit]').click()");
    browser.sees("De week is ingediend.");
    browser.press("button", "Week terughalen");
    browser.sees("De week is weer een concept.");
    client.post("/v1/hours/submit", json!({"ids": ids(client)})).expect(200);
    // Whoever worked them reads why they are rejected, also in a narrow window.
    browser.go("/hours?view=approve");
    browser.press("button", "Afwijzen");
    browser.wait_until("document.getElementById('reject-reason') !== null");
    browser.type_in("reject-reason", "Graag per klus.");
    browser.evaluate("document.querySelector('dialog [type=submit]').click()");
    browser.sees("Uren teruggestuurd.");
    browser.resize(768, 860);
    browser.go("/hours");
    browser.sees("Graag per klus.");
    browser.wait_until(
        "((box) => box !== null && box.scrollWidth <= box.clientWidth)(document.querySelector('.week-box'))",
    );
    browser.resize(1280, 860);
    client.post("/v1/hours/submit", json!({"ids": ids(client)})).expect(200);
    browser.go("/hours?view=approve");
    browser.press("button", "Goedkeuren");
    browser.sees("Uren goedgekeurd.");
    let entry = client.get("/v1/hours?sort=date&order=asc").data()[0].clone();
    assert_eq!((&entry["minutes"], &entry["status"]), (&json!(90), &json!("approved")));
    // They are those of whoever typed them, also while there is one user.
    let users = client.get("/v1/users").data();
    assert_eq!((users.as_array().unwrap().len(), &entry["meta"]["user_id"]), (1, &users[0]["id"]));
}

/// Approved hours become a draft invoice, and say so; nothing is left to invoice then.
fn approved_hours_are_invoiced_once(browser: &mut Chromium, client: &Client) {
    let project = client.get("/v1/projects?search=Verbouwing").data()[0]["id"].as_str().unwrap().to_string();
    browser.go(&format!("/projects/{project}"));
    browser.press("button", "Uren factureren");
    // Those of later this week too.
    browser.wait_until("document.getElementById('bill-to') !== null");
    browser.type_in("bill-to", "10-05-2026");
    browser.wait_until("document.querySelector('dialog .lines')?.innerText.includes('10:00') === true");
    browser.type_in("bill-price", "80");
    browser.evaluate("document.querySelector('dialog [type=submit]').click()");
    browser.wait_until("/^.invoices.[0-9a-f-]{36}/.test(location.pathname)");
    let entry = client.get("/v1/hours?invoiced=true").data()[0].clone();
    let invoice = client.get(&format!("/v1/invoices/{}", entry["meta"]["invoice_id"].as_str().unwrap())).data();
    let row = &invoice["rows"][0];
    assert_eq!((&row["name"], &row["quantity"]), (&json!("Werk, Olga Jansen"), &json!(10)));
    assert_eq!((&row["unit_price"], &invoice["total_excl_vat"]), (&json!(80), &json!(800)));
    browser.go(&format!("/projects/{project}"));
    browser.sees("Op factuur");
    browser.wait_until("![...document.querySelectorAll('button')].some((one) => one.innerText.includes('factureren'))");
    // Some more are approved: the dialog shows those alone, and how many are on an invoice already.
    browser.go("/projects");
    let (hours, more) = (format!("/v1/projects/{project}/hours"), json!({"hours": 2, "activity_name": "Stuken"}));
    let more = client.post(&hours, more).expect(201).id();
    for action in ["submit", "approve"] {
        client.act(&format!("{hours}/{more}/{action}")).expect(200);
    }
    browser.go(&format!("/projects/{project}"));
    browser.press("button", "Uren factureren");
    browser.wait_until("document.getElementById('bill-to') !== null");
    browser.type_in("bill-to", "10-05-2026");
    browser.sees("8:30 uur van deze periode staat al op een factuur.");
    browser.wait_until("document.querySelector('dialog .lines').innerText.includes('Stuken')");
    assert_eq!(browser.evaluate("document.querySelectorAll('dialog .lines li').length"), 1);
    browser.press("button", "Annuleren");
    // The draft is not what was meant: its hours can be invoiced again.
    browser.wait_until("document.querySelector('.lines li .menu > button') !== null");
    browser.evaluate("document.querySelector('.lines li .menu > button').click()");
    browser.press("menuitem", "Alle uren van deze factuur halen");
    browser.sees("Daarna kunt u al deze uren opnieuw factureren.");
    browser.evaluate("document.querySelector('dialog [type=submit]').click()");
    browser.sees("Van de factuur gehaald.");
    assert_eq!(client.get("/v1/hours?invoiced=true").json()["meta"]["total"], 0);
    // A final invoice keeps its hours, so nothing offers to remove them.
    let again = client
        .post(&format!("/v1/projects/{project}/invoice"), json!({"unit_price": 80, "vat_code": "NL21"}))
        .expect(201)
        .id();
    browser.go("/projects");
    browser.go(&format!("/projects/{project}"));
    browser.wait_until("document.querySelector('.lines li .menu') !== null");
    client.act(&format!("/v1/invoices/{again}/finalize")).expect(200);
    browser.go("/projects");
    browser.go(&format!("/projects/{project}"));
    browser.sees("Op factuur");
    browser.wait_until("document.querySelector('.lines li .menu') === null");
}

/// The ids of all hours.
fn ids(client: &Client) -> Vec<Value> {
    client.get("/v1/hours").data().as_array().unwrap().iter().map(|entry| entry["id"].clone()).collect()
}

/// A file for the bank needs the creditor identifier: the dialog says so, and where to enter it.
fn a_file_for_the_bank_says_what_it_needs(browser: &mut Chromium, client: &Client) {
    client.patch("/v1/settings", json!({"creditor_id": ""})).expect(200);
    browser.go("/subscriptions");
    browser.sees("Onderhoud");
    browser.go("/batches");
    browser.press("button", "Nieuw incassobestand");
    browser.wait_until(
        "document.querySelector('dialog .notice')?.innerText.includes('Uw incassant-ID ontbreekt.') === true",
    );
    browser.wait_until("document.querySelector('dialog [type=submit]').disabled");
    assert_eq!(
        browser.evaluate("document.querySelector('dialog .notice a').getAttribute('href')"),
        "/settings/payments"
    );
    browser.press("button", "Annuleren");
    client.patch("/v1/settings", json!({"creditor_id": "NL69ZZZ123456780000"})).expect(200);
    // The first file has taken what was waiting.
    browser.go("/subscriptions");
    browser.sees("Onderhoud");
    browser.go("/batches");
    browser.press("button", "Nieuw incassobestand");
    browser.press("button", "Bestand maken");
    browser.sees("Er staan geen incasso’s klaar van klanten met een getekende machtiging. Verstuur een factuur");
    was_refused(browser, "409");
    browser.press("button", "Annuleren");
    // A client without an IBAN would be left out of the file.
    let customer = client.post("/v1/clients", json!({"company_name": "Garage Smit"})).expect(201).id();
    browser.go(&format!("/clients/{customer}"));
    browser.sees("Deze klant heeft geen IBAN");
}

/// What a client said on the phone: the form offers the statuses of the account, and the inbox names the client.
fn a_ticket_is_made_by_hand(browser: &mut Chromium, client: &Client, customer: &str) {
    browser.go(&format!("/tickets/new?client_id={customer}"));
    browser.wait_until("document.getElementById('f-status')?.value === 'New'");
    assert_eq!(browser.evaluate("document.getElementById('f-status').options.length"), 4);
    assert_eq!(browser.evaluate("document.querySelector('[name=f-priority]:checked').value"), "normal");
    browser.type_in("f-subject", "Oven valt uit");
    browser.type_in("f-message", "Hij gaat steeds uit.");
    browser.choose("f-status", "Open");
    browser.press("button", "Opslaan");
    browser.wait_until("/^.tickets.[0-9a-f-]{36}$/.test(location.pathname)");
    browser.wait_until("document.querySelector('.inbox-row .who')?.innerText.includes('Bakkerij De Ster') === true");
    browser.sees("Hij gaat steeds uit.");
    let ticket = client.get("/v1/tickets").data()[0].clone();
    assert_eq!((&ticket["status"], &ticket["client_id"]), (&json!("Open"), &json!(customer)));
    assert_eq!(ticket["meta"]["last_message_from"], "client");
    let ticket = client.get(&format!("/v1/tickets/{}", ticket["id"].as_str().unwrap())).data();
    assert_eq!(ticket["source"], "console");
}

/// A ticket is changed in the same form as a new one is made in.
fn a_ticket_is_changed(browser: &mut Chromium, client: &Client) {
    browser.press("link", "Bewerken");
    browser.wait_until("document.getElementById('f-status')?.value === 'Open'");
    assert_eq!(browser.evaluate("document.getElementById('f-message')"), json!(null));
    browser.type_in("f-subject", "Oven valt steeds uit");
    browser.press("radio", "Hoog");
    browser.press("button", "Opslaan");
    browser.wait_until("/^.tickets.[0-9a-f-]{36}$/.test(location.pathname)");
    browser.sees("Oven valt steeds uit");
    let ticket = client.get("/v1/tickets").data()[0].clone();
    assert_eq!((&ticket["subject"], &ticket["priority"]), (&json!("Oven valt steeds uit"), &json!("high")));
}

fn a_ticket_is_found(browser: &mut Chromium, client: &Client) {
    client.post("/v1/tickets", json!({"subject": "Lekkende kraan"})).expect(201);
    browser.go("/tickets");
    let rows = |browser: &mut Chromium, number: u8| {
        browser.wait_until(&format!("document.querySelectorAll('.inbox-row').length === {number}"));
    };
    rows(browser, 2);
    browser.evaluate("document.querySelector('.inbox .search input').focus()");
    browser.type_text("kraan");
    rows(browser, 1);
    browser.sees("Lekkende kraan");
    browser.type_text(" en oven");
    browser.sees("Niets gevonden");
    browser.press("link", "Zoekopdracht en filters wissen");
    rows(browser, 2);
}

/// A file of another program: what was recognized, a problem with its line and column, a column that gets another field, the
/// import itself, and undoing it.
fn clients_are_imported(browser: &mut Chromium, server: &Server, client: &Client) {
    let work_on = |status: &str| {
        until(status, || client.get("/v1/imports").data()[0]["status"] == status);
        imports::work(server);
    };
    let before = client.get("/v1/clients").json()["meta"]["total"].as_i64().unwrap();
    let total = || client.get("/v1/clients").json()["meta"]["total"].as_i64().unwrap() - before;
    browser.go("/settings");
    follow(browser, "/imports");
    let current = "document.querySelector('.side [aria-current]')?.innerText === 'Instellingen'";
    browser.wait_until(current);
    browser.go("/exports");
    browser.wait_until(&format!("location.pathname === '/exports' && {current}"));
    browser.go("/imports");
    browser.press("link", "Nieuwe import");
    browser.wait_until("document.getElementById('import-file') !== null");
    browser.upload("import-file", "tests/it/console/clients.csv");
    browser.wait_until("!document.querySelector('form.page [type=submit]').disabled");
    browser.press("button", "Bestand controleren");
    browser.sees("2 regels importeren");
    assert_eq!(browser.evaluate("document.getElementById('import-separator').value"), "semicolon");
    let problem = "document.querySelector('.import-problems tbody tr')?.innerText ?? ''";
    let problem = browser.evaluate(problem);
    let problem = problem.as_str().unwrap();
    assert!(["3", "E-mail", "Vul een e-mailadres in"].iter().all(|part| problem.contains(part)), "{problem}");
    assert_eq!(browser.evaluate("document.getElementById('import-column-3').value"), "");
    browser.choose("import-column-3", "mail_salutation");
    browser.wait_until("document.getElementById('import-column-3')?.value === 'mail_salutation' && !document.getElementById('import-column-3').disabled");
    assert_eq!(total(), 0);
    browser.press("button", "2 regels importeren");
    browser.sees("1 regel met een probleem wordt niet geïmporteerd.");
    browser.press("button", "Importeren");
    work_on("running");
    browser.sees("Voltooid");
    browser.sees("Niet geïmporteerd");
    assert_eq!(total(), 2);
    let made = client.get("/v1/clients?search=Krul").data()[0].clone();
    let made = client.get(&format!("/v1/clients/{}", made["id"].as_str().unwrap())).data();
    assert_eq!((&made["city"], &made["mail_salutation"]), (&json!("Oss"), &json!("Krul")), "{made:#}");
    browser.press("button", "Import ongedaan maken");
    browser.wait_until("document.querySelector('dialog[open] .danger') !== null");
    browser.evaluate("document.querySelector('dialog[open] [type=submit]').click()");
    work_on("undoing");
    browser.sees("Ongedaan gemaakt");
    browser.sees("Vul een e-mailadres in");
    assert_eq!(total(), 0);
    a_file_that_is_no_table_is_refused(browser);
}

/// What the server says is told in the reader's language, with what to do.
fn a_file_that_is_no_table_is_refused(browser: &mut Chromium) {
    browser.go("/imports/new");
    browser.wait_until("document.getElementById('import-file') !== null");
    browser.upload("import-file", "console/icon.png");
    browser.wait_until("!document.querySelector('form.page [type=submit]').disabled");
    browser.press("button", "Bestand controleren");
    browser.sees("Dit is geen tabel. Exporteer het als CSV of Excel (.xlsx).");
    was_refused(browser, "422");
}

/// The browser reports every refusal of the server; nothing else went wrong.
pub fn was_refused(browser: &mut Chromium, status: &str) {
    let problems = browser.take_problems();
    assert!(matches!(&problems[..], [one] if one.contains(status)), "{problems:#?}");
}

/// The menu leads to the files that people uploaded, also as long as there are none.
fn the_menu_leads_to_what_was_uploaded(browser: &mut Chromium, client: &Client) {
    assert_eq!(client.get("/v1/files?origin=uploaded").json()["meta"]["total"], 0);
    browser.evaluate("document.querySelector('nav a[href=\"/files?origin=uploaded\"]').click()");
    browser.sees("Nog geen bestanden");
    assert_eq!(browser.evaluate("location.pathname + location.search"), "/files?origin=uploaded");
}

fn a_client_has_files(browser: &mut Chromium, client: &Client, customer: &str) {
    browser.go(&format!("/clients/{customer}/files"));
    browser.sees("Nog geen bestanden");
    browser.evaluate("document.querySelector('.dropping input[type=file]').id = 'upload'");
    browser.upload("upload", "console/icon.png");
    browser.sees("icon.png");
    browser.wait_until("document.querySelector('.related a') !== null");
    let files = client.get(&format!("/v1/files?client_id={customer}")).data();
    assert_eq!((&files[0]["name"], &files[0]["meta"]["origin"]), (&json!("icon.png"), &json!("uploaded")));
    browser.evaluate("document.querySelector('.related a').click()");
    browser.wait_until("document.querySelector('img.preview')?.complete === true");
}

fn a_ready_flow_is_switched_on(browser: &mut Chromium, client: &Client) {
    let active = || {
        let flows = client.get("/v1/automation/flows").data();
        flows.as_array().unwrap().iter().filter(|flow| flow["active"] == true).count()
    };
    let before = active();
    browser.go("/flows");
    browser.wait_until("document.querySelector('.toggle[aria-checked=false]') !== null");
    browser.evaluate("document.querySelector('.toggle[aria-checked=false]').click()");
    browser.sees(" staat aan.");
    assert_eq!(active(), before + 1);
}

fn a_colleague_is_invited(browser: &mut Chromium, client: &Client) {
    browser.go("/settings/users");
    browser.press("button", "Gebruiker uitnodigen");
    browser.wait_until("document.getElementById('invite-email') !== null");
    browser.type_in("invite-name", "Ina Smit");
    browser.type_in("invite-email", "ina@a.example");
    browser.press("button", "Uitnodiging versturen");
    // This server sends no mail, so the owner passes on the link.
    browser.sees("Link van de uitnodiging");
    browser.press("button", "Klaar");
    browser.sees("Uitgenodigd");
    let users = client.get("/v1/users").data();
    let ina = users.as_array().unwrap().iter().find(|user| user["email"] == "ina@a.example").unwrap();
    assert_eq!((&ina["role"], &ina["status"]), (&json!("member"), &json!("invited")));
}

fn a_key_is_made(browser: &mut Chromium, client: &Client) {
    browser.go("/settings/api-keys/new");
    browser.wait_until("document.getElementById('f-name') !== null");
    browser.type_in("f-name", "Webwinkel");
    browser.press("radio", "Alles lezen");
    browser.press("button", "Opslaan");
    browser.sees("Kopieer de sleutel nu");
    let secret = browser.evaluate("document.querySelector('.copy input').value").as_str().unwrap().to_string();
    browser.press("button", "Klaar");
    let mut shop = client.clone();
    shop.key = secret;
    shop.get("/v1/invoices").expect(200);
    shop.post("/v1/products", json!({"name": "Kraan"})).expect(403);
    // The key that the account began with has a Dutch name too.
    browser.go("/settings/api-keys");
    browser.sees("Eerste sleutel");
}

/// First and last page, and on a phone all filters in a sheet.
fn a_long_list_is_searched(browser: &mut Chromium, client: &Client) {
    for number in 1..=110 {
        let category = if number % 2 == 0 { "call" } else { "task" };
        client.post("/v1/tasks", json!({"title": format!("Taak {number}"), "category": category})).expect(201);
    }
    let shown = "document.querySelector('.pages .soft')?.innerText";
    let range = |browser: &mut Chromium, text: &str| browser.wait_until(&format!("{shown} === '{text}'"));
    browser.go("/tasks");
    range(browser, "1–50 van 110");
    browser.press("button", "Laatste pagina");
    range(browser, "101–110 van 110");
    // The button that has no use any more keeps the focus.
    assert_eq!(browser.evaluate("document.activeElement.title"), "Laatste pagina");
    browser.press("button", "Eerste pagina");
    range(browser, "1–50 van 110");
    browser.resize(390, 844);
    browser.press("button", "Filters");
    browser.wait_until("document.getElementById('sheet-category') !== null");
    let fits = "document.documentElement.scrollWidth <= innerWidth + 1 && document.querySelector('.sheet-dialog').getBoundingClientRect().bottom <= innerHeight + 1";
    assert_eq!(browser.evaluate(fits), true);
    browser.choose("sheet-category", "call");
    browser.press("button", "Toepassen");
    range(browser, "1–50 van 55");
    assert_eq!(browser.evaluate("new URLSearchParams(location.search).get('category')"), "call");
    // The focus is back on the button, which says how many filters there are.
    browser.wait_until("document.activeElement.innerText === 'Filters (1)'");
    browser.press("button", "Filters (1)");
    browser.press("button", "Filters wissen");
    range(browser, "1–50 van 110");
    browser.resize(1280, 860);
    // With the keyboard: the menu, a filter, and back.
    browser.press("button", "Filter");
    browser.wait_until("document.activeElement.matches('.filters [role=menuitem]')");
    browser.evaluate(
        "[...document.querySelectorAll('.filters [role=menuitem]')].find((item) => item.innerText === 'Soort').click()",
    );
    browser.wait_until("document.activeElement.closest('.filter-box') !== null");
    browser.key("Escape");
    browser.wait_until("document.activeElement.matches('.filters .menu > button')");
}

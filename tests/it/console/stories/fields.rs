//! Everything that the registry knows is on the screens by itself: a field of every kind that the console has never heard
//! of, the form of every record, and the totals of documents.

use money::{Percent, Price, totals};
use serde_json::{Value, json};

use super::super::browser::Chromium;
use super::super::{assets, client, open};
use crate::people::owner;
use crate::support::{Db, Server};

/// The documents whose totals the browser and the server compute.
const DOCUMENTS: u64 = 10_000;

/// Makes the schema and the products of the server have a field of every kind, and notes what is sent.
const NOVEL: &str = r##"
(() => {
  const values = { text: "Nieuwe tekst", boolean: true, integer: 42, amount: 12.5, price: 0.125, percent: 21, day: "2026-05-04",
    moment: "2026-05-04T09:30:00.000Z", choice: "second", email: "a@b.example", emails: "a@b.example", iban: "NL91ABNA0417164300", bic: "ABNANL2A",
    country: "NL", vat_number: "NL123456789B01", website: "b.example", color: "#112233", slug: "a-b", texts: ["een", "twee"] };
  const fields = Object.keys(values).map((kind) => ({ name: `novel_${kind}`, kind, in: "list detail", create: true, patch: true, sort: true, filter: `novel_${kind}`,
    ...(kind === "choice" ? { choices: ["first", "second"] } : {}), ...(kind === "day" ? { range: ["novel_from", "novel_to"] } : {}) }));
  const real = window.fetch;
  window.sent = {};
  window.novel = fields.map((field) => field.name);
  window.fetch = async (address, options) => {
    const path = String(address);
    if (path.startsWith("/console/v1/products") && options?.body) {
      window.sent = JSON.parse(options.body);
      options = { ...options, body: JSON.stringify(Object.fromEntries(Object.entries(window.sent).filter(([name]) => !name.startsWith("novel_")))) };
    }
    const answer = await real(address, options);
    if (!path.endsWith("/schema.json") && !path.startsWith("/console/v1/products")) return answer;
    const body = await answer.json();
    const add = (item) => Object.entries(values).forEach(([kind, value]) => { item[`novel_${kind}`] = value; });
    if (path.endsWith("/schema.json")) body.products.fields.push(...fields);
    else [body.data].flat().forEach(add);
    return new Response(JSON.stringify(body), { status: answer.status, headers: answer.headers });
  };
})()
"##;

#[test]
fn new_fields_and_totals_need_no_change() {
    let server = Server::start(Db::sqlite());
    server.leaves_jobs();
    let client = client(&server);
    let olga = owner(&server, &client, "olga@a.example");
    client.post("/v1/products", json!({"name": "Boiler"})).expect(201);
    let Some(mut browser) = Chromium::start(&client.base, 1280, 860) else { return };
    let browser = &mut browser;
    browser.new_tab(&olga.cookie, 1280, 860);
    browser.call("Page.addScriptToEvaluateOnNewDocument", json!({"source": NOVEL}));
    browser.open("/");
    browser.settles("/");
    a_new_field_is_everywhere(browser);
    every_form_has_every_field(browser);
    browser.check();
    let folder = assets(&open(&olga, "/"));
    totals_are_those_of_the_server(browser, &folder);
}

fn a_new_field_is_everywhere(browser: &mut Chromium) {
    // The list: as a column, and as a filter.
    browser.go("/products");
    browser.settles("/products");
    browser.key("c");
    browser.wait_until("document.querySelector('.columns-list') !== null");
    let columns = "window.novel.filter((name) => ![...document.querySelectorAll('.columns-list label')].some((label) => label.innerText === name[0].toUpperCase() + name.slice(1).replaceAll('_', ' ')))";
    assert_eq!(browser.evaluate(columns), json!([]));
    let choose = "[...document.querySelectorAll('.columns-list label')].find((label) => label.innerText === 'Novel amount').querySelector('input').click()";
    browser.evaluate(choose);
    browser.sees("€\u{a0}12,50");
    browser.key("c");
    browser.press("button", "Filter");
    browser.wait_until("document.querySelector('.filters [role=menu]') !== null");
    let filters = columns.replace(".columns-list label", ".filters [role=menuitem]");
    // A text is found by the search.
    assert_eq!(browser.evaluate(&filters), json!(["novel_text"]));
    browser.evaluate("[...document.querySelectorAll('.filters [role=menuitem]')].find((item) => item.innerText === 'Novel choice').click()");
    browser.sees("Second");
    // The page: its value, by its kind.
    browser.evaluate("document.querySelector('tbody a').click()");
    for shown in
        ["Nieuwe tekst", "€ 12,50", "4 mei 2026", "21%", "Nederland", "NL91 ABNA 0417 1643 00", "een, twee", "Second"]
    {
        browser.wait_until(&format!(
            "document.querySelector('.facts')?.innerText.replaceAll('\u{a0}', ' ').replace('21 %', '21%').includes({}) === true",
            json!(shown)
        ));
    }
    // The form: a labelled control, which is sent.
    browser.press("link", "Bewerken");
    browser.wait_until("document.getElementById('f-novel_text') !== null");
    let missing = "window.novel.filter((name) => !document.getElementById(`f-${name}`) && !document.querySelector(`[name='f-${name}'], [name='${name}']`))";
    assert_eq!(browser.evaluate(missing), json!([]));
    browser.type_in("f-code", "BOIL");
    browser.type_in("f-novel_text", "Rood");
    browser.type_in("f-novel_amount", "99,95");
    browser.press("button", "Opslaan");
    browser.wait_until("window.sent.novel_text === 'Rood'");
    assert_eq!(browser.evaluate("window.sent"), json!({"code": "BOIL", "novel_text": "Rood", "novel_amount": "99.95"}));
}

/// The form of every record that can be created has a labelled control for every field that can be sent.
fn every_form_has_every_field(browser: &mut Chromium) {
    let schema = "fetch(`${document.documentElement.dataset.assets}/schema.json`).then((answer) => answer.json())";
    let schema = browser.evaluate(schema);
    // These have an editor of their own.
    let own = [
        "invoices",
        "quotes",
        "workorders",
        "subscriptions",
        "flows",
        "files",
        "users",
        "keys",
        "batches",
        "imports",
        "exports",
    ];
    browser.go("/settings");
    browser.settles("/settings");
    let links = browser.evaluate("[...document.querySelectorAll('a[href]')].map((link) => link.getAttribute('href'))");
    let links: Vec<&str> = links.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let mut forms = 0;
    for (name, table) in schema.as_object().unwrap() {
        let path = table["path"].as_str().unwrap();
        let creates = table["verbs"].get("create").is_some() && table.get("parent").is_none();
        if !creates || own.contains(&name.as_str()) {
            continue;
        }
        let last = path.rsplit('/').next().unwrap();
        let known = [format!("/{last}"), format!("/settings/{last}")];
        let Some(address) = known.iter().find(|address| links.contains(&address.as_str())) else { continue };
        browser.go(&format!("{address}/new"));
        browser.wait_until(&format!(
            "document.querySelector('main form .form-foot a')?.getAttribute('href') === '{address}'"
        ));
        let fields: Vec<&Value> =
            table["fields"].as_array().unwrap().iter().filter(|field| field["create"] == true).collect();
        for field in fields {
            let (name, kind) = (field["name"].as_str().unwrap(), field["kind"].as_str().unwrap());
            if ["rows", "lines", "custom", "data"].contains(&kind)
                || ["client_external_id", "generate", "external_id"].contains(&name)
            {
                continue;
            }
            let labelled = format!(
                "(() => {{ const control = document.getElementById('f-{name}') ?? document.querySelector(\"[name='f-{name}'], [name='{name}']\");
                   return Boolean(control && (control.labels?.length || control.ariaLabel || control.closest('fieldset')?.querySelector('legend'))); }})()"
            );
            assert_eq!(browser.evaluate(&labelled), true, "{address}/new has no labelled control for {name} ({kind})");
        }
        forms += 1;
    }
    assert!(forms > 12, "{forms}");
}

/// The sums under a document while it is typed are those that the server will compute.
fn totals_are_those_of_the_server(browser: &mut Chromium, folder: &str) {
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let documents: Vec<Value> = (0..DOCUMENTS).map(|_| document(&mut dice)).collect();
    browser.evaluate(&format!("window.documents = {}; 0", Value::Array(documents)));
    let compared = format!(
        "import('{folder}/app.js').then(({{ $money: {{ totals }} }}) => window.documents.filter(({{ lines, sums }}) => {{
           const own = totals(lines);
           return [own.net, own.tax, own.gross, ...own.lines, ...own.groups.map((group) => group.tax)].join() !== sums;
         }}).slice(0, 3))"
    );
    assert_eq!(browser.evaluate(&compared), json!([]));
}

/// A random document, and its sums in cents.
fn document(dice: &mut Dice) -> Value {
    let lines: Vec<_> = (0..dice.below(8))
        .map(|_| {
            // Often few decimals, and often a half to round.
            let step = [1, 1_000, 5_000, 10_000, 500_000, 1_000_000][dice.below(6) as usize];
            let quantity = (dice.below(200_000) as i64 - 20_000) * [1, 500_000][dice.below(2) as usize];
            let (rate, key) = [(0, "Z"), (0, "AE"), (900, "S"), (2_100, "S"), (1_250, "S")][dice.below(5) as usize];
            money::Line {
                quantity: Price::from_scaled(quantity),
                unit_price: Price::from_scaled((dice.below(100_000) as i64 - 5_000) * step),
                rate: Percent::from_scaled(rate),
                key,
            }
        })
        .collect();
    let sums = totals(&lines).unwrap();
    let mut cents = vec![sums.net, sums.tax, sums.gross];
    cents.extend(&sums.lines);
    cents.extend(sums.groups.iter().map(|group| group.tax));
    let cents: Vec<String> = cents.iter().map(|amount| amount.scaled().to_string()).collect();
    let lines: Vec<Value> = lines
        .iter()
        .map(|line| {
            let (quantity, price) = (line.quantity.to_string(), line.unit_price.to_string());
            json!({"quantity": quantity, "unitPrice": price, "rate": line.rate.to_string(), "category": line.key})
        })
        .collect();
    json!({"lines": lines, "sums": cents.join(",")})
}

/// Random numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

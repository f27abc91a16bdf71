//! The API reference at /docs: its pages, their weight, their links and their examples.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::process::Command;

use serde_json::Value;

use crate::server::Binary;
use crate::support::{Client, Db, Server};

/// The most bytes that a page of the reference may have.
const BUDGET: usize = 300 * 1024;

fn page(client: &Client, path: &str) -> String {
    let reply = client.send("GET", path, &[("authorization", "")], "").expect(200);
    let policy = reply.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{path}: {policy}");
    unescaped(&reply.text)
}

fn unescaped(html: &str) -> String {
    let marks = [("&#x2f;", "/"), ("&#x27;", "'"), ("&quot;", "\""), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")];
    marks.iter().fold(html.to_string(), |text, (escaped, plain)| text.replace(escaped, plain))
}

/// Returns the values of an attribute.
fn values<'h>(html: &'h str, name: &str) -> Vec<&'h str> {
    html.split(&format!(" {name}=\"")).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// Returns every page that can be reached from the first, by its path.
fn pages(client: &Client) -> BTreeMap<String, String> {
    let mut pages = BTreeMap::new();
    let mut left = vec!["/docs".to_string()];
    while let Some(path) = left.pop() {
        if pages.contains_key(&path) {
            continue;
        }
        let html = page(client, &path);
        let links =
            values(&html, "href").into_iter().filter(|link| link.starts_with("/docs") && !link.ends_with(".css"));
        left.extend(links.map(|link| link.split('#').next().unwrap_or_default().to_string()));
        pages.insert(path, html);
    }
    pages
}

#[test]
fn every_page_is_light_and_every_link_leads_somewhere() {
    let server = Server::with(Db::sqlite(), |config| config.public_limit_per_minute = 0);
    let client = server.client();
    let pages = pages(&client);
    assert!(pages.len() > 60, "{}", pages.len());
    for (path, html) in &pages {
        assert!(html.len() < BUDGET, "{path} has {} bytes", html.len());
        assert!(
            !html.contains("cannot be rendered") && !html.contains("style=\"") && !html.contains("onclick"),
            "{path}"
        );
        // The introduction exports the key under another name.
        assert!(!html.contains("$KEY"), "{path}");
        let ids = values(html, "id");
        let once: HashSet<&&str> = ids.iter().collect();
        assert_eq!(once.len(), ids.len(), "an id is on {path} twice");
        for link in values(html, "href").into_iter().filter(|link| link.starts_with(['/', '#'])) {
            let (to, heading) = link.split_once('#').unwrap_or((link, ""));
            let to = if to.is_empty() { path } else { to };
            match pages.get(to) {
                Some(there) => {
                    let found = heading.is_empty() || values(there, "id").contains(&heading);
                    assert!(found, "{path} links to {link}");
                }
                None => drop(client.send("GET", to, &[("authorization", "")], "").expect(200)),
            }
        }
    }
    let files = ["/docs/docs.css", "/docs/docs.js", "/docs/index.json"];
    let sizes = files.map(|path| client.send("GET", path, &[("authorization", "")], "").expect(200).bytes.len());
    assert!(pages["/docs"].len() + sizes.iter().sum::<usize>() < BUDGET, "{} {sizes:?}", pages["/docs"].len());
    // Only whoever searches loads it.
    let words = client.send("GET", "/docs/words.json", &[("authorization", "")], "").expect(200).bytes.len();
    assert!(words < BUDGET, "{words}");
    client.send("GET", "/docs/nothing", &[("authorization", "")], "").expect(404);
    client.send("POST", "/docs/products", &[("authorization", "")], "").expect(405);
}

#[test]
fn the_search_finds_pages_that_exist() {
    let server = Server::with(Db::sqlite(), |config| config.public_limit_per_minute = 0);
    let client = server.client();
    let index = client.get("/docs/index.json").expect(200).json();
    let entries = index.as_array().unwrap();
    let kinds: BTreeSet<&str> = entries.iter().map(|entry| entry[0].as_str().unwrap()).collect();
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["guide", "object", "operation", "section"]);
    let mut pages = BTreeMap::new();
    for entry in entries {
        let (path, id) = entry[3].as_str().unwrap().split_once('#').unwrap_or((entry[3].as_str().unwrap(), ""));
        let html = pages.entry(path).or_insert_with(|| page(&client, path));
        assert!(id.is_empty() || html.contains(&format!(" id=\"{id}\"")), "{entry}");
    }
    assert!(entries.len() > 350, "{}", entries.len());
}

/// Returns everything that the search field finds, as `docs.js` puts it together: its text, and where it leads.
fn findable(client: &Client) -> Vec<(String, String)> {
    let titles = client.get("/docs/index.json").expect(200).json();
    let found = client.get("/docs/words.json").expect(200).json();
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let mut all: Vec<(String, String)> = titles
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            let path = text(&entry[3]);
            let words = found["words"][&path].as_str().unwrap_or_default();
            (format!("{} {} {path} {words}", text(&entry[1]), text(&entry[2])).to_lowercase(), path)
        })
        .collect();
    for (path, names) in found["fields"].as_object().unwrap() {
        all.extend(names.as_array().unwrap().iter().map(|name| (text(name), path.clone())));
    }
    for event in found["events"]["all"].as_array().unwrap() {
        let name = text(&event[0]);
        let path = format!("{}#{name}", text(&found["events"]["path"]));
        all.push((format!("{name} {}", text(&event[1]).to_lowercase()), path));
    }
    all
}

#[test]
fn the_search_finds_words_fields_settings_and_events() {
    let server = Server::with(Db::sqlite(), |config| config.public_limit_per_minute = 0);
    let client = server.client();
    let all = findable(&client);
    for (query, place) in [
        ("default_vat_code", "/docs/settings#Settings"),
        ("strict_final", "/docs/settings#Settings"),
        ("payment_status", "/docs/invoices#Invoice"),
        ("payment_status", "/docs/invoices#listInvoices"),
        ("invoice.paid", "/docs/guides/events#invoice.paid"),
        ("mail.bounced", "/docs/guides/events#mail.bounced"),
        ("customer.erased", "/docs/guides/events#customer.erased"),
        ("office hours", "/docs/guides/events#webhooks-change-feed-and-event-stream"),
        ("retries", "/docs/guides/events#webhooks"),
        ("idempotency", "/docs/guides/api"),
        ("webhook_timeout_seconds", "/docs/guides/events#webhooks"),
    ] {
        let fits = |text: &str| query.split(' ').all(|word| text.contains(word));
        let found: Vec<&String> = all.iter().filter(|(text, _)| fits(text)).map(|(_, path)| path).collect();
        assert!(found.iter().any(|path| path.starts_with(place)), "{query}: {found:?}");
    }
    // Whatever it finds exists.
    let mut pages = BTreeMap::new();
    for (text, path) in &all {
        let (page_path, id) = path.split_once('#').unwrap_or((path, ""));
        let html = pages.entry(page_path).or_insert_with(|| page(&client, page_path));
        assert!(id.is_empty() || html.contains(&format!(" id=\"{id}\"")), "{text}: {path}");
    }
}

/// Commands of all operations of some sections, on the data of the demo.
#[test]
fn examples_run_as_they_are() {
    let db = Db::sqlite();
    let binary = Binary::start(&db, "", &["--demo", "--set", "public_limit_per_minute=0"]);
    let (mut count, mut failed) = (0, Vec::new());
    for section in SECTIONS {
        let html = page(&binary.client, &format!("/docs/{section}"));
        assert!(!html.contains("\"the id\""), "{section} has an id that nobody knows");
        for part in html.split("<section class=\"op\" id=\"").skip(1) {
            let (id, rest) = part.split_once('"').unwrap();
            let example = rest.split("<pre class=\"shell\" tabindex=\"0\"><code>").nth(1);
            let Some(example) = example.and_then(|rest| rest.split("</code>").next()) else { continue };
            // A note says what the demo does not have.
            if !example.starts_with("# Only ") && !id.starts_with("stream") {
                failed.extend(run(&binary, id, example));
                count += 1;
            }
        }
    }
    assert!(failed.is_empty(), "{} of {count} failed:\n{}\n{}", failed.len(), failed.join("\n\n"), binary.said());
    assert!(count > 120, "{count}");
}

/// The sections whose examples are run.
const SECTIONS: &[&str] = &[
    "clients",
    "suppliers",
    "client-links",
    "invoices",
    "payments",
    "quotes",
    "subscriptions",
    "tickets",
    "ticket-messages",
    "products",
    "files",
    "project-hours",
    "automation-runs",
    "api-keys",
    "exports",
    "imports",
    "payment-terms",
    "tax-rates",
    "ticket-statuses",
    "e-mail-domains",
    "corporate-identities",
    "direct-debit-mandates",
    "direct-debit-verifications",
    "direct-debit-batches",
    "mail",
    "mail-templates",
    "me",
    "presence",
    "sessions",
    "phases",
    "pipelines",
    "test-clock",
    "users",
    "webhook-endpoints",
    "webhook-deliveries",
];

/// Returns what an example that fails said.
fn run(binary: &Binary, id: &str, example: &str) -> Option<String> {
    let tags = ["span", "b", "i", "s"].iter().flat_map(|tag| [format!("<{tag}>"), format!("</{tag}>")]);
    let command = tags.fold(example.to_string(), |text, tag| text.replace(&tag, ""));
    assert!(command.contains(&binary.client.base), "{id} has another address: {command}");
    let folder = tempfile::tempdir().unwrap();
    let script = format!("set -euo pipefail\ncurl() {{ command curl -sS --fail-with-body \"$@\"; }}\n{command}");
    let script = script.replace("head -n 1", "sed -n 1p");
    let done = Command::new("bash")
        .args(["-c", &script])
        .current_dir(folder.path())
        .env("KANTOOR_KEY", &binary.client.key)
        .output()
        .unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    (!done.status.success()).then(|| format!("{id}:\n{command}\n{said}"))
}

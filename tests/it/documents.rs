//! The documentation: the OpenAPI document, its page, and the tables of the API guide.

use engine::error::FieldCode;
use engine::http::{openapi, reply};

use crate::support::{Db, Server};

#[test]
fn the_openapi_document_is_reviewed() {
    kantoor::registry::install();
    assert!(!openapi::TEXT.contains(":null"), "a key without a value");
    let paths = openapi::DOCUMENT["paths"].as_object().unwrap().values();
    let operations =
        paths.flat_map(|path| path.as_object().unwrap().values().filter_map(|one| one["operationId"].as_str()));
    let mut seen = std::collections::HashSet::new();
    let twice: Vec<&str> = operations.filter(|id| !seen.insert(*id)).collect();
    assert!(twice.is_empty(), "{twice:?} are of several operations");
    insta::assert_json_snapshot!("openapi", &*openapi::DOCUMENT);
}

#[test]
fn the_page_and_the_document_are_served_without_a_key() {
    let server = Server::start(Db::sqlite());
    let client = server.client();
    let page = client.send("GET", "/docs", &[("authorization", "")], "").expect(200);
    assert!(page.header("content-security-policy").starts_with("default-src 'none'"));
    for words in ["Products", "/v1/products/{id}", "products.write", "Idempotency-Key", "Website hosting"] {
        assert!(page.text.replace("&#x2f;", "/").contains(words), "no '{words}'");
    }
    assert!(!page.text.contains("<script") && !page.text.contains("//cdn"));
    let document = client.send("GET", "/v1/openapi.json", &[("authorization", "")], "").expect(200);
    assert_eq!(document.json(), *openapi::DOCUMENT);
    // The console, which asks people to sign in.
    assert!(client.get("/").expect(200).text.contains("action=\"/sign-in\""));
}

/// Returns the table of error codes, from their declarations.
fn code_table() -> String {
    let mut codes = kantoor::registry::REGISTRY.error_codes();
    codes.sort_by_key(|code| reply::status(*code).as_u16());
    let mut table = "| Code | Status | Retry | Meaning |\n|---|---|---|---|\n".to_string();
    for code in codes {
        let (status, retry) = (reply::status(code).as_u16(), if code.may_pass() { "yes" } else { "no" });
        table.push_str(&format!("| `{}` | {status} | {retry} | {} |\n", code.wire(), code.meaning()));
    }
    table.push_str("\n| Code of a field | Meaning |\n|---|---|\n");
    for code in FieldCode::ALL {
        table.push_str(&format!("| `{}` | {} |\n", code.wire(), code.meaning()));
    }
    table
}

/// `make docs-snapshots` writes the tables; otherwise they are compared.
#[test]
fn the_guide_has_the_table_of_error_codes() {
    let guide = std::fs::read_to_string("docs/api.md").unwrap();
    let (start, end) = ("<!-- error codes: written by `make docs-snapshots` -->\n", "<!-- end of error codes -->");
    let (before, rest) = guide.split_once(start).unwrap();
    let (written, after) = rest.split_once(end).unwrap();
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write("docs/api.md", format!("{before}{start}{}{end}{after}", code_table())).unwrap();
    } else {
        assert_eq!(written, code_table(), "run make docs-snapshots");
    }
}

/// Every code is declared once, and the registry lists the codes of every area.
#[test]
fn every_error_code_is_listed_once() {
    let codes = kantoor::registry::REGISTRY.error_codes();
    let names: std::collections::BTreeSet<&str> = codes.iter().map(|code| code.wire()).collect();
    assert_eq!(names.len(), codes.len(), "a code is declared twice");
    let sources = glob("src");
    let declared: Vec<&String> = sources.iter().filter(|text| text.contains("\nerror_codes! {")).collect();
    assert!(declared.len() >= 4, "{}", declared.len());
    for text in declared {
        let (_, rest) = text.split_once("\nerror_codes! {").unwrap();
        let (codes, _) = rest.split_once("\n}").unwrap();
        for name in codes.lines().filter_map(|line| line.split('"').nth(1)) {
            assert!(names.contains(name), "kantoor::registry::REGISTRY.error_codes() does not list {name}");
        }
    }
}

/// Returns the text of every Rust file below a folder.
fn glob(folder: &str) -> Vec<String> {
    let below = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    below
        .flat_map(|path| match path.is_dir() {
            true => glob(path.to_str().unwrap()),
            false => vec![std::fs::read_to_string(path).unwrap_or_default()],
        })
        .collect()
}

#[test]
fn the_guide_names_every_area() {
    let guide = std::fs::read_to_string("docs/api.md").unwrap();
    for area in kantoor::registry::REGISTRY.areas {
        assert!(guide.contains(&format!("`{area}`")), "docs/api.md does not explain the scopes of {area}");
    }
}

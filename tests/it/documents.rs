//! The documents: the OpenAPI file as it is reviewed, its page, and the files beside the code.

use kantoor::error::{Code, FieldCode};
use kantoor::http::openapi;

use crate::support::{Db, Server};

#[test]
fn the_openapi_document_is_reviewed() {
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
    assert_eq!(client.get("/").expect(200).text, page.text);
}

#[test]
fn the_guide_names_every_error_code() {
    let guide = std::fs::read_to_string("docs/api.md").unwrap();
    for code in Code::ALL.iter().map(|code| code.wire()).chain(FieldCode::ALL.iter().map(|code| code.wire())) {
        assert!(guide.contains(&format!("`{code}`")), "docs/api.md does not explain {code}");
    }
    for area in kantoor::accounts::AREAS {
        assert!(guide.contains(&format!("`{area}`")), "docs/api.md does not explain the scopes of {area}");
    }
}

//! The documentation: the OpenAPI document, its page, and the tables of the API guide.

use std::collections::HashSet;

use engine::error::FieldCode;
use engine::http::{openapi, reply};
use engine::text::{CONTROL, CONTROL_AND_BREAKS, NOT_IN_LINES, NOT_IN_NAMES};
use serde_json::{Value, json};

use crate::support::{Db, Server};

#[test]
fn the_openapi_document_is_reviewed() {
    kantoor::registry::install();
    assert!(!openapi::TEXT.contains(":null"), "a key without a value");
    insta::assert_json_snapshot!("openapi", &*openapi::DOCUMENT);
}

/// Returns every operation with its method and path.
fn operations() -> Vec<(String, &'static Value)> {
    kantoor::registry::install();
    let paths = openapi::DOCUMENT["paths"].as_object().unwrap().iter();
    let all = paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().iter();
        methods.map(move |(method, operation)| (format!("{} {path}", method.to_uppercase()), operation))
    });
    all.collect()
}

/// Generated clients name their functions and types after these.
#[test]
fn operations_and_schemas_have_names_for_programs() {
    let operations = operations();
    let mut seen = HashSet::new();
    for (route, operation) in &operations {
        let id = operation["operationId"].as_str().unwrap();
        let first = id.find(char::is_uppercase).unwrap_or(0);
        assert!(first > 1 && id.chars().all(|letter| letter.is_ascii_alphanumeric()), "{route}: {id}");
        assert!(seen.insert(id), "{id} is the name of several operations");
    }
    let id = |route: &str| operations.iter().find(|(own, _)| own == route).map(|(_, one)| &one["operationId"]);
    for (route, name) in [
        ("GET /v1/invoices/{id}/pdf", "getInvoicePdf"),
        ("GET /v1/invoices/{id}/pdf/content", "downloadInvoicePdf"),
        ("GET /v1/ticket-statuses", "listTicketStatuses"),
        ("GET /v1/corporate-identities", "listCorporateIdentities"),
        ("GET /v1/clients/{id}/history", "listClientHistory"),
        ("POST /v1/tickets/{id}/messages/inbound", "createInboundTicketMessage"),
        ("POST /v1/webhook-endpoints/{id}/rotate-secret", "rotateWebhookEndpointSecret"),
        ("POST /v1/quotes/{id}/project", "createQuoteProject"),
        ("POST /v1/projects/{id}/invoice", "createProjectInvoice"),
        ("POST /v1/hours/approve", "approveHourEntries"),
        ("GET /v1/files/{id}/content", "downloadFile"),
        ("GET /v1/me/sessions", "listSessions"),
        ("PUT /v1/automation/flows/{id}", "replaceFlow"),
    ] {
        assert_eq!(id(route).unwrap(), name, "{route}");
    }
    let schemas = openapi::DOCUMENT["components"]["schemas"].as_object().unwrap();
    for name in schemas.keys() {
        assert!(name.starts_with(char::is_uppercase) && name.chars().all(|one| one.is_ascii_alphanumeric()), "{name}");
    }
    for name in
        ["Invoice", "InvoiceRow", "InvoiceRowInput", "InvoiceMeta", "InvoicePage", "InvoicePdf", "CreateInvoiceRequest"]
    {
        assert!(schemas.contains_key(name), "no {name}");
    }
}

/// What is inside a schema has a name too, and exists: a client makes a type of each.
#[test]
fn schemas_are_shared_by_reference() {
    for (route, operation) in operations() {
        for content in [&operation["requestBody"], &operation["responses"]["200"], &operation["responses"]["201"]] {
            let Some(schema) = content.pointer("/content/application~1json/schema") else { continue };
            assert!(schema["$ref"].is_string(), "{route}: {schema}");
        }
    }
    all_schemas(&openapi::DOCUMENT, &mut |schema| {
        if let Some(path) = schema["$ref"].as_str() {
            assert!(openapi::DOCUMENT.pointer(path.trim_start_matches('#')).is_some(), "{path} does not exist");
        }
        assert!(schema["type"] != "array" || schema.get("items").is_some(), "an array of what? {schema}");
    });
}

/// Calls a function for every object of a document.
fn all_schemas(value: &Value, look: &mut impl FnMut(&Value)) {
    match value {
        Value::Object(members) => {
            look(value);
            members.values().for_each(|member| all_schemas(member, look));
        }
        Value::Array(items) => items.iter().for_each(|item| all_schemas(item, look)),
        _ => {}
    }
}

/// Generated clients make a date of what has a format.
#[test]
fn dates_have_a_format() {
    kantoor::registry::install();
    let schemas = openapi::DOCUMENT["components"]["schemas"].as_object().unwrap();
    // Values of steps may be templates.
    for (_, schema) in schemas.iter().filter(|(name, _)| !name.ends_with("Step") || *name == "RunStep") {
        all_schemas(schema, &mut |schema| {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                let is_date = ["_at", "_date", "timestamp", "period_start"].iter().any(|end| name.ends_with(end));
                let is_text = property["type"] == "string" || property["type"][0] == "string";
                assert!(!is_date || !is_text || property["format"].is_string(), "{name}: {property}");
            }
        });
    }
    let date = &schemas["Invoice"]["properties"]["invoice_date"];
    assert_eq!((&date["type"], &date["format"]), (&json!("string"), &json!("date")), "{date}");
    for (schema, name) in [("ReportOpen", "date"), ("Mail", "leaves_at"), ("RunStep", "started_at")] {
        let property = &schemas[schema]["properties"][name];
        assert!(property.to_string().contains("\"format\":\"date"), "{schema}.{name}: {property}");
    }
    assert!(!schemas.keys().any(|name| name.starts_with("AllHour") || name == "VerificationVerification"));
}

#[test]
fn values_say_what_they_are() {
    kantoor::registry::install();
    let schemas = &openapi::DOCUMENT["components"]["schemas"];
    let invoice = &schemas["Invoice"]["properties"];
    let optional = json!([{"type": "string", "format": "date"}, {"type": "string", "const": ""}]);
    assert_eq!(schemas["Subscription"]["properties"]["start_date"]["anyOf"], optional);
    assert_eq!(schemas["InvoiceMeta"]["properties"]["created_at"]["format"], "date-time");
    assert_eq!(invoice["subtotal"]["type"], "number");
    assert!(invoice["subtotal"]["description"].as_str().unwrap().contains("up to 2 decimals"));
    let price = &schemas["CreateProductRequest"]["properties"]["price"];
    assert_eq!(price["type"], json!(["number", "string", "null"]));
    assert_eq!(price["pattern"], "^-?[0-9]{1,12}(\\.[0-9]{1,6})?$");
    let name = &schemas["CreateProductRequest"]["properties"]["name"];
    assert_eq!((&name["type"], &name["minLength"]), (&json!("string"), &json!(1)));
    let optional_day = &schemas["CreateInvoiceRequest"]["properties"]["supply_date"]["anyOf"];
    assert_eq!(optional_day.as_array().unwrap().last(), Some(&json!({"type": "null"})));
    // Generated clients send what has a default, and a PATCH would overwrite what is there.
    for (name, schema) in schemas.as_object().unwrap().iter().filter(|(name, _)| name.ends_with("Request")) {
        let mut properties = schema["properties"].as_object().unwrap().values();
        assert!(properties.all(|property| property.get("default").is_none()), "{name}");
    }
    let active = schemas["CreateProductRequest"]["properties"]["active"]["description"].as_str().unwrap();
    assert!(active.ends_with("Default: `true`."), "{active}");
    let step = &schemas["FlowStep"];
    assert_eq!(step["discriminator"]["propertyName"], "type");
    assert_eq!(step["discriminator"]["mapping"]["send_email"], "#/components/schemas/SendEmailStep");
    assert_eq!(schemas["SendEmailStep"]["properties"]["type"]["const"], "send_email");
    // Which characters are refused is described too, also inside lists and objects.
    for (path, refused) in [
        ("/CreateUserRequest/properties/name", NOT_IN_NAMES),
        ("/CreateApiKeyRequest/properties/name", NOT_IN_NAMES),
        ("/CreateApiKeyRequest/properties/scopes/items", CONTROL_AND_BREAKS),
        ("/CreateCorporateIdentityRequest/properties/name", NOT_IN_LINES),
        ("/CreateMailTemplateRequest/properties/subject", CONTROL_AND_BREAKS),
        ("/CreateTicketChannelRequest/properties/forwarding_emails/items", CONTROL),
        ("/CreateExportRequest/properties/filters/additionalProperties", CONTROL),
        ("/CustomValues/additionalProperties", CONTROL),
        ("/SendEmailStep/properties/subject", CONTROL_AND_BREAKS),
    ] {
        let pattern = schemas.pointer(path).and_then(|schema| schema["pattern"].as_str()).unwrap_or_default();
        assert!(pattern.starts_with(&format!("^[^{refused}]*")), "{path}: {pattern}");
    }
    // Values of steps may have placeholders, whatever their type.
    let step_of = |name: &str| schemas["CreateInvoiceStep"]["properties"][name].clone();
    assert_eq!(step_of("generate")["type"], json!(["boolean", "string", "null"]));
    assert_eq!(step_of("generate")["pattern"], "\\{[{%#]");
    assert!(!step_of("deal_id")["type"].as_array().unwrap().contains(&json!("object")));
    let rows = step_of("rows");
    assert_eq!(rows["items"]["properties"]["quantity"]["pattern"], "^-?[0-9]{1,12}(\\.[0-9]{1,6})?$|\\{[{%#]");
    let alternatives = step["oneOf"].as_array().unwrap();
    assert_eq!(alternatives.len(), step["discriminator"]["mapping"].as_object().unwrap().len());
}

#[test]
fn the_page_and_the_document_are_served_without_a_key() {
    let server = Server::start(Db::sqlite());
    let client = server.client();
    let page = client.send("GET", "/docs", &[("authorization", "")], "").expect(200);
    assert!(page.header("content-security-policy").starts_with("default-src 'none'"));
    let section = client.send("GET", "/docs/products", &[("authorization", "")], "").expect(200);
    let text = format!("{}{}", page.text, section.text).replace("&#x2f;", "/");
    for words in ["Products", "/v1/products/{id}", "products.write", "Idempotency-Key", "Website hosting"] {
        assert!(text.contains(words), "no '{words}'");
    }
    assert!(!text.contains("//cdn"));
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

//! What the search field of the reference finds. The titles are one file; the words of guides, the names of fields and the
//! events are another, which is larger and loaded when somebody is about to search.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::guides;
use super::shown::{self, Section, groups};
use crate::http::openapi::{DOCUMENT, resolved};
use crate::registry::registry;

/// The guide with the list of all events. Its rows can be linked to.
pub const EVENTS: &str = "events";

/// The fields that every record has: whoever looks for one of them finds too much.
const OF_ALL: [&str; 5] = ["id", "created_at", "updated_at", "version", "meta"];

/// Returns pages, operations, objects and the headings of guides.
pub fn titles() -> Vec<Value> {
    let entry = |kind: &str, title: &str, detail: &str, path: String| json!([kind, title, detail, path]);
    let mut all = Vec::new();
    for section in sections() {
        all.push(entry("section", section.title, &section.about, section.path.clone()));
        for operation in section.operations() {
            let text = |name: &str| operation[name].as_str().unwrap_or_default();
            let detail = format!("{} {}", text("method").to_uppercase(), text("path"));
            all.push(entry("operation", text("summary"), &detail, format!("{}#{}", section.path, text("id"))));
        }
    }
    for (name, path) in shown::homes().as_object().into_iter().flatten() {
        all.push(entry("object", name, "Object", path.as_str().unwrap_or_default().to_string()));
    }
    for (name, text) in registry().guides {
        let title = guides::title(text);
        for (heading, slug) in guides::headings(text) {
            let detail = if heading == title { "Guide" } else { title };
            all.push(entry("guide", &heading, detail, format!("/docs/guides/{name}#{slug}")));
        }
    }
    all
}

/// Returns the words behind the titles, by path; the names of fields, by the path of their object; and the events, with the page
/// whose rows they are.
pub fn words() -> Value {
    let homes = shown::homes();
    let mut words = Map::new();
    for section in sections() {
        for operation in section.operations() {
            let text = |name: &str| operation[name].as_str().unwrap_or_default();
            let names = names_of(&DOCUMENT["paths"][text("path")][text("method")], &homes);
            words.insert(format!("{}#{}", section.path, text("id")), json!(names));
        }
    }
    for (name, text) in registry().guides {
        for (slug, own) in guides::sections(text) {
            words.insert(format!("/docs/guides/{name}#{slug}"), json!(own));
        }
    }
    let fields = homes.as_object().into_iter().flatten().map(|(name, path)| {
        let mut names: BTreeSet<&str> = BTreeSet::new();
        add_names(&DOCUMENT["components"]["schemas"][name], &homes, 0, &mut names);
        names.retain(|name| !OF_ALL.contains(name));
        (path.as_str().unwrap_or_default().to_string(), json!(names))
    });
    let fields: Map<String, Value> = fields.collect();
    let listed = registry().guides.iter().any(|(name, _)| *name == EVENTS);
    let events = registry().events.iter().filter(|_| listed).map(|event| json!([event.name, event.meaning]));
    let events: Vec<Value> = events.collect();
    json!({
        "words": words,
        "fields": fields,
        "events": {"path": format!("/docs/guides/{EVENTS}"), "all": events},
    })
}

fn sections() -> impl Iterator<Item = &'static Section> {
    groups().iter().flat_map(|group| &group.sections)
}

/// Returns the names of the parameters of an operation and of the fields of its body.
fn names_of(operation: &Value, homes: &Value) -> String {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        names.extend(resolved(parameter)["name"].as_str());
    }
    for (_, media) in operation["requestBody"]["content"].as_object().into_iter().flatten() {
        add_names(&media["schema"], homes, 0, &mut names);
    }
    names.into_iter().collect::<Vec<_>>().join(" ")
}

/// Adds the names of the fields in a schema. Other objects have their own page, and `depth` ends it where schemas contain each
/// other.
fn add_names<'s>(schema: &'s Value, homes: &Value, depth: usize, names: &mut BTreeSet<&'s str>) {
    let object = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
    if depth > 4 || (depth > 0 && object.is_some_and(|name| homes.get(name).is_some())) {
        return;
    }
    let own = resolved(schema);
    for (name, field) in own["properties"].as_object().into_iter().flatten() {
        names.insert(name);
        add_names(field, homes, depth + 1, names);
    }
    let parts =
        ["allOf", "anyOf", "oneOf"].into_iter().flat_map(move |kind| own[kind].as_array().into_iter().flatten());
    for part in parts.chain(own.get("items")) {
        add_names(part, homes, depth + 1, names);
    }
}

//! The resources as the reference shows them: grouped by the area of their scopes, each with its operations.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::examples;
use crate::http::openapi::{self, DOCUMENT, has_records, names, resolved};
use crate::registry::registry;
use crate::resource::{Resource, Route};

/// The sections of one area.
pub struct Group {
    title: String,
    pub sections: Vec<Section>,
}

/// The page of a resource.
pub struct Section {
    pub title: &'static str,
    pub path: String,
    /// What the record is.
    pub about: String,
    resource: &'static Resource,
}

/// Returns the sections, in the order of the registry.
pub fn groups() -> &'static [Group] {
    static GROUPS: LazyLock<Vec<Group>> = LazyLock::new(|| {
        let mut groups: Vec<(&str, Group)> = Vec::new();
        for resource in &registry().resources {
            let place = groups.iter().position(|(area, _)| *area == resource.area).unwrap_or_else(|| {
                let (first, rest) = resource.area.split_at(1);
                let title = format!("{}{rest}", first.to_uppercase());
                groups.push((resource.area, Group { title, sections: Vec::new() }));
                groups.len() - 1
            });
            groups[place].1.sections.push(Section {
                title: resource.title,
                path: format!("/docs/{}", resource.title.to_lowercase().replace(' ', "-")),
                about: openapi::prose(resource.shape.doc),
                resource,
            });
        }
        groups.into_iter().map(|(_, group)| group).collect()
    });
    &GROUPS
}

/// Returns where each object is described.
pub fn homes() -> Value {
    let sections = groups().iter().flat_map(|group| &group.sections).filter(|section| has_records(section.resource));
    let homes = sections.map(|section| {
        let name = names::schema_name(section.resource);
        (name.clone(), json!(format!("{}#{name}", section.path)))
    });
    Value::Object(homes.collect::<Map<_, _>>())
}

impl Group {
    /// Returns it for the navigation.
    pub fn shown(&self) -> Value {
        let sections = self.sections.iter().map(|section| {
            let operations: Vec<Value> = section.operations().collect();
            json!({"title": section.title, "path": section.path, "about": section.about, "operations": operations})
        });
        json!({"title": self.title, "sections": sections.collect::<Vec<_>>()})
    }
}

impl Section {
    /// Returns its operations, for lists of them.
    pub fn operations(&self) -> impl Iterator<Item = Value> {
        self.resource.routes.iter().map(|route| {
            let id = names::operation_id(self.resource, route);
            json!({"id": id, "method": route.method.name().to_lowercase(), "path": route.path, "summary": route.summary})
        })
    }

    /// Returns everything about it.
    pub fn detailed(&self) -> Value {
        let name = names::schema_name(self.resource);
        let object = has_records(self.resource).then(|| {
            let schema = &DOCUMENT["components"]["schemas"][&name];
            json!({"name": name, "schema": schema, "example": examples::value(schema, "")})
        });
        let operations: Vec<Value> = self.resource.routes.iter().map(|route| self.operation(route)).collect();
        json!({"title": self.title, "about": self.about, "object": object, "operations": operations})
    }

    fn operation(&self, route: &Route) -> Value {
        let method = route.method.name().to_lowercase();
        let mut shown = DOCUMENT["paths"][&route.path][&method].clone();
        let all = shown["responses"].as_object().into_iter().flatten();
        let responses: Vec<Value> = all.map(|(status, response)| described(status, resolved(response))).collect();
        shown["responses"] = json!(responses);
        shown["method"] = json!(method);
        shown["path"] = json!(route.path);
        shown["example"] = examples::request(self.resource, route);
        shown
    }
}

/// Returns a response with its data, which matters more than the envelope.
fn described(status: &str, response: &Value) -> Value {
    let mut shown = json!({"status": status, "description": response["description"]});
    if let Some(schema) = response.pointer("/content/application~1json/schema").filter(|_| status.starts_with('2')) {
        let whole = resolved(schema);
        shown["data"] = whole["properties"]["data"].clone();
        shown["example"] = examples::value(whole, "");
    }
    shown
}

//! `schema.json`: every type of record with its fields, routes and scopes, drawn from the registry. The lists, filters and
//! forms of the console are made from it, so a new field needs no change there. It is the same for everybody.

use std::sync::LazyLock;

use engine::record::{DETAIL, FieldInfo, LIST, Part, Shape, Views};
use engine::registry::registry;
use engine::resource::{Method, Resource, Returns, Route};
use serde_json::{Map, Value, json};

/// The description as it is served.
pub static TEXT: LazyLock<String> = LazyLock::new(|| {
    let tables = registry().resources.iter().filter_map(|resource| Some((key(resource), table(resource)?)));
    Value::Object(tables.collect()).to_string()
});

/// Returns the name of a table: that of its list.
fn key(resource: &Resource) -> String {
    if resource.path.contains('{') { last(&resource.path).replace('-', "_") } else { resource.shape.table.to_string() }
}

/// Returns the last part of a path, which is also that of the address in the console.
pub fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Returns the path of one record.
fn item(resource: &Resource) -> Option<String> {
    let (list, rest) = (&resource.path, "/{");
    let is_own = |route: &&Route| {
        let own = route.path.strip_prefix(list.as_str()).and_then(|own| own.strip_prefix(rest));
        own.is_some_and(|own| own.ends_with('}') && !own.contains('/'))
    };
    // The settings are one record, without an id.
    let alone = || at(resource, Method::Patch, list).map(|route| route.path.clone());
    resource.routes.iter().find(is_own).map(|route| route.path.clone()).or_else(alone)
}

fn at<'r>(resource: &'r Resource, method: Method, path: &str) -> Option<&'r Route> {
    resource.routes.iter().find(|route| route.method == method && route.path == path)
}

fn table(resource: &Resource) -> Option<Value> {
    let (shape, item) = (resource.shape, item(resource).filter(|_| !resource.fields.is_empty())?);
    let is_alone = item == resource.path;
    let list = at(resource, Method::Get, &resource.path).filter(|route| route.lists());
    let create = at(resource, Method::Post, &resource.path);
    if list.is_none() && !is_alone {
        return None;
    }
    let patch = at(resource, Method::Patch, &item).or_else(|| at(resource, Method::Put, &item));
    let verbs = [
        ("list", list),
        ("create", create),
        ("get", at(resource, Method::Get, &item)),
        ("patch", patch),
        ("delete", at(resource, Method::Delete, &item)),
    ];
    let verbs: Map<String, Value> =
        verbs.iter().filter_map(|(verb, route)| Some((verb.to_string(), json!(scope(route.as_ref()?))))).collect();
    let sorts = resource.list.as_ref().map(|list| list.sorts.clone()).unwrap_or_default();
    let names: Vec<&str> = resource.fields.iter().filter(|field| field.rules.names).map(|field| field.name).collect();
    let pages = list.is_some_and(|route| matches!(route.returns, Returns::Page | Returns::Either));
    let seen = Seen { resource, list, create, patch, sorts: &sorts, pages };
    let mut table = json!({
        "one": shape.name, "path": resource.path, "item": item, "area": resource.area, "events": shape.events,
        "verbs": verbs, "fields": seen.fields(),
    });
    add(&mut table, "parent", json!(resource.path.contains('{')));
    add(&mut table, "names", json!(names));
    add(&mut table, "search", json!(resource.list.as_ref().is_some_and(|list| list.searches)));
    add(&mut table, "pages", json!(pages));
    add(&mut table, "sorts", json!(sorts));
    add(&mut table, "actions", actions(&item));
    Some(table)
}

/// Returns the scope of a route; `|` stands between two that are each enough.
fn scope(route: &Route) -> String {
    route.instead.map_or(route.scope.clone(), |other| format!("{}|{other}", route.scope))
}

/// Returns the actions on one record: what can be posted below its path.
fn actions(item: &str) -> Value {
    let roots: Vec<&str> = registry().resources.iter().filter(|own| own.list.is_some()).map(|own| &*own.path).collect();
    let below = registry().routes().filter(|route| route.method == Method::Post).filter_map(|route| {
        let name = route.path.strip_prefix(item)?.strip_prefix('/')?;
        (!name.contains('{') && !roots.contains(&&*route.path)).then_some((name, route))
    });
    let action = |(name, route): (&str, &Route)| {
        let mut action = json!({"name": name, "path": route.path, "scope": scope(route)});
        let takes: Vec<&str> = route.fields.iter().map(|field| field.name).collect();
        add(&mut action, "takes", json!(takes));
        action
    };
    below.map(action).collect()
}

/// A table with its routes.
struct Seen<'r> {
    resource: &'r Resource,
    list: Option<&'r Route>,
    create: Option<&'r Route>,
    patch: Option<&'r Route>,
    sorts: &'r [&'static str],
    pages: bool,
}

impl Seen<'_> {
    /// Returns the fields in their order: those of the record, those that only a body has, and what every record has.
    fn fields(&self) -> Vec<Value> {
        let shape = self.resource.shape;
        let mut fields: Vec<Value> =
            self.resource.fields.iter().filter(|field| self.has(field)).map(|field| self.field(field)).collect();
        let sent = [self.create, self.patch].into_iter().flatten().flat_map(|route| &route.fields);
        for field in sent {
            if !fields.iter().any(|known| known["name"] == field.name) {
                fields.push(self.field(field));
            }
        }
        let questions = self.resource.fields.iter().map(|field| &field.rules).flat_map(|rules| {
            [rules.filter_filled, rules.filter_when.parameter].into_iter().filter(|name| !name.is_empty())
        });
        if self.list.is_some() {
            fields.extend(questions.map(|name| json!({"name": name, "kind": "boolean", "filter": name})));
        }
        for address in shape.addresses {
            fields.push(self.other(address.name, "website", address.views, false));
        }
        for Part(name, kind, _) in shape.parts {
            let kind = match *kind {
                "array" | "object" => "data",
                "number" => "amount",
                "string" => "text",
                other => other,
            };
            fields.push(self.other(name, kind, LIST.and(DETAIL), false));
        }
        for (name, views) in [("created_at", shape.created_at), ("updated_at", shape.updated_at)] {
            let (outside, inside) = (views.includes(LIST) || views.includes(DETAIL), shape.meta);
            if outside || inside.includes(LIST) || inside.includes(DETAIL) {
                let mut field = self.other(name, "moment", if outside { views } else { inside }, !outside);
                if name == "created_at" && self.pages {
                    field["range"] = json!(["created_from", "created_to"]);
                }
                fields.push(field);
            }
        }
        fields
    }

    /// Whether callers see or send a field, or filter by it.
    fn has(&self, field: &FieldInfo) -> bool {
        let shown = [LIST, DETAIL].into_iter().any(|view| shows(self.resource.shape, field, view));
        let sent = [self.create, self.patch].into_iter().flatten();
        shown || sent.into_iter().any(|route| route.fields.iter().any(|own| own.name == field.name))
    }

    fn field(&self, field: &FieldInfo) -> Value {
        let rules = &field.rules;
        let takes =
            |route: Option<&Route>| route.is_some_and(|route| route.fields.iter().any(|own| own.name == field.name));
        let (create, patch) = (takes(self.create), takes(self.patch));
        let limits = (field.schema)(&rules.for_create());
        let kind = if rules.percent { "percent" } else { field.kind };
        let mut out = json!({"name": field.name, "kind": kind});
        let views = [("list", LIST, self.list.is_some()), ("detail", DETAIL, true)];
        let shown = views.iter().filter(|(_, view, is_there)| *is_there && shows(self.resource.shape, field, *view));
        add(&mut out, "in", json!(shown.map(|(name, ..)| *name).collect::<Vec<_>>().join(" ")));
        add(&mut out, "meta", json!(rules.in_meta));
        add(&mut out, "create", json!(create));
        add(&mut out, "patch", json!(patch));
        add(&mut out, "required", json!(create && rules.required));
        if self.list.is_some() {
            add(
                &mut out,
                "filter",
                json!(if rules.filter && rules.filter_as.is_empty() { field.name } else { rules.filter_as }),
            );
            add(&mut out, "many", json!(rules.filter_many));
            add(&mut out, "range", rules.range.map_or(Value::Null, |(from, to)| json!([from, to])));
            add(&mut out, "sort", json!(self.sorts.contains(&field.name)));
        }
        let refers = registry().of_table(rules.refers).map(key).unwrap_or_default();
        add(&mut out, "refers", json!(refers));
        add(&mut out, "choices", json!(self.choices(field)));
        if create || patch {
            add(&mut out, "length", limits["maxLength"].clone());
            for (name, limit) in [("min", "minimum"), ("max", "maximum")] {
                if limits[limit].is_number() {
                    out[name] = limits[limit].clone();
                }
            }
        }
        if let Some(default) = serde_json::from_str(rules.default).ok().filter(|default: &Value| !default.is_null()) {
            out["default"] = default;
        }
        out
    }

    /// Returns the values of an enumeration. A document has only some of the statuses.
    fn choices(&self, field: &FieldInfo) -> Vec<&'static str> {
        let choices = field.choices_of(self.resource.shape.name);
        choices.iter().copied().filter(|choice| !choice.is_empty()).collect()
    }

    /// Returns a member of responses that is not a field.
    fn other(&self, name: &str, kind: &str, views: Views, in_meta: bool) -> Value {
        let mut out = json!({"name": name, "kind": kind});
        let shown = [("list", LIST, self.list.is_some()), ("detail", DETAIL, true)];
        let shown = shown.iter().filter(|(_, view, is_there)| *is_there && views.includes(*view));
        add(&mut out, "in", json!(shown.map(|(name, ..)| *name).collect::<Vec<_>>().join(" ")));
        add(&mut out, "meta", json!(in_meta));
        add(&mut out, "sort", json!(self.list.is_some() && self.sorts.contains(&name)));
        out
    }
}

/// Whether a view shows a field, among the others or in `meta`.
fn shows(shape: &Shape, field: &FieldInfo, view: Views) -> bool {
    field.rules.views.includes(view) || field.rules.in_meta && shape.meta.includes(view)
}

/// Adds a member, unless it says nothing.
fn add(to: &mut Value, name: &str, value: Value) {
    let says_nothing = match &value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    if !says_nothing {
        to[name] = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Under `cfg(test)`, documents have a field of each kind that only their declarations mention (`declared.rs`).
    #[test]
    fn a_new_field_is_described_by_itself() {
        crate::registry::install();
        let schema: Value = serde_json::from_str(&TEXT).unwrap_or_default();
        let kinds = [
            ("test_text", "text"),
            ("test_amount", "amount"),
            ("test_number", "integer"),
            ("test_switch", "boolean"),
            ("test_day", "day"),
            ("test_moment", "moment"),
            ("test_choice", "choice"),
            ("test_link", "link"),
            ("test_list", "texts"),
        ];
        for table in ["invoices", "quotes", "workorders"] {
            for (name, kind) in kinds {
                let fields = schema[table]["fields"].as_array().into_iter().flatten();
                let own: Vec<&Value> = fields.filter(|field| field["name"] == name).collect();
                assert_eq!(own.len(), 1, "{name} of {table}");
                let field = own[0];
                assert_eq!((&field["kind"], &field["in"]), (&json!(kind), &json!("list detail")), "{field}");
                assert!(field["create"] == true && field["patch"] == true, "{field}");
                assert!(kind == "texts" || field["filter"] == name, "{field}");
            }
        }
    }
}

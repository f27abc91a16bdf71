//! The shared schemas of the OpenAPI document. Every request body, response, nested object and enumeration has a name of its
//! own, since generated clients make a type of each; what is the same is described once.

use serde_json::{Map, Value, json};

use super::names::{pascal, singular};

/// Marks a property that can be null, until its schema is shared.
pub const TAKES_NULL: &str = "x-takes-null";

/// The schemas by name.
#[derive(Default)]
pub struct Components(pub Map<String, Value>);

impl Components {
    /// Adds the schema of a record or of a part that all responses share.
    pub fn add(&mut self, name: &str, mut schema: Value) {
        self.share_inside(name, name, &mut schema);
        self.0.insert(name.to_string(), schema);
    }

    /// Replaces the body of an operation by a reference. `record` is the name of the record that it is about.
    pub fn share_body(&mut self, operation: &str, record: &str, schema: &mut Value) {
        let name = format!("{}Request", pascal([operation].into_iter()));
        self.share_inside(&name, record, schema);
        *schema = self.refer(&[name], schema.take());
    }

    /// Replaces the JSON of a response by a reference, and likewise its `data`.
    pub fn share_response(&mut self, operation: &str, record: &str, schema: &mut Value) {
        let data = &mut schema["properties"]["data"];
        let is_list = data["type"] == "array";
        let item = self.share_item(operation, record, if is_list { &mut data["items"] } else { data });
        let paged = schema["properties"]["meta"]["$ref"] == reference("Page");
        let end = if is_list { "Summary" } else { "Result" };
        let what = item.strip_suffix(end).unwrap_or(&item);
        let names = match (is_list, paged) {
            (true, true) => [format!("{what}Page"), format!("{item}Page")],
            (true, false) => [format!("{what}List"), format!("{item}List")],
            _ => [format!("{what}Response"), format!("{item}Response")],
        };
        *schema = self.refer(&names, schema.take());
    }

    /// Replaces a record, or what a response has instead of one, by a reference; returns its name.
    fn share_item(&mut self, operation: &str, record: &str, item: &mut Value) -> String {
        if item.get("$ref").is_none() {
            let split = operation.find(char::is_uppercase).unwrap_or(0);
            let (verb, noun) = operation.split_at(split);
            let result = format!("{}Result", pascal([operation].into_iter()));
            let mut names = match (item["title"].as_str(), verb) {
                (Some(title), _) => vec![title.to_string()],
                (None, "list") => vec![singular(noun)],
                (None, "get" | "update") => vec![noun.to_string()],
                _ => Vec::new(),
            };
            names.push(result);
            if let Some(members) = item.as_object_mut() {
                members.shift_remove("title");
            }
            self.share_inside(&names[0].clone(), record, item);
            *item = self.refer(&names, item.take());
        }
        let name = item["$ref"].as_str().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
        name.to_string()
    }

    /// Replaces the enumeration of a query parameter by a reference.
    pub fn share_parameter(&mut self, record: &str, parameter: &mut Value) {
        let name = pascal(parameter["name"].as_str().into_iter());
        let names = [format!("{record}{name}"), format!("{record}{name}Filter")];
        if let Some(schema) = parameter.get_mut("schema").filter(|schema| is_choice(schema)) {
            self.share_choice(&names, schema);
        }
    }

    /// Replaces the objects and enumerations inside a schema. They are named after the record and their property, or after
    /// the schema where it differs from the record.
    fn share_inside(&mut self, owner: &str, record: &str, schema: &mut Value) {
        let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
        for (name, property) in properties.into_iter().flatten() {
            self.share_property(owner, record, name, property);
        }
    }

    fn share_property(&mut self, owner: &str, record: &str, name: &str, property: &mut Value) {
        let takes_null = property.as_object_mut().and_then(|members| members.shift_remove(TAKES_NULL)).is_some();
        self.share_value(owner, record, name, property);
        if takes_null {
            allow_null(property);
        }
    }

    fn share_value(&mut self, owner: &str, record: &str, name: &str, property: &mut Value) {
        let own = pascal([name].into_iter());
        if property["type"] == "array" {
            if let Some(items) = property.get_mut("items") {
                self.share_property(owner, record, &singular(name), items);
            }
        } else if let Some(title) = property["title"].as_str().map(str::to_string) {
            let mut about = if property.get("oneOf").is_none() { taken_out(property) } else { Map::new() };
            *property = self.share_titled(&title, property.take());
            if !about.is_empty() {
                about.insert("allOf".into(), json!([property.take()]));
                *property = Value::Object(about);
            }
        } else if is_choice(property) {
            self.share_choice(&[format!("{record}{own}"), format!("{owner}{own}")], property);
        } else if property["properties"].as_object().is_some_and(|members| !members.is_empty()) {
            self.share_inside(&format!("{owner}{own}"), &format!("{record}{own}"), property);
            let other = if owner.contains("Request") { format!("{record}{own}Input") } else { format!("{owner}{own}") };
            // Not `VerificationVerification`.
            let usual = if own == record { format!("{record}Details") } else { format!("{record}{own}") };
            *property = self.refer(&[usual, other, format!("{owner}{own}")], property.take());
        }
    }

    /// Shares a schema that says its own name, and the alternatives of a union.
    fn share_titled(&mut self, title: &str, mut schema: Value) -> Value {
        if let Some(members) = schema.as_object_mut() {
            members.shift_remove("title");
        }
        let alternatives = schema.get_mut("oneOf").and_then(Value::as_array_mut);
        for one in alternatives.into_iter().flatten() {
            if let Some(title) = one["title"].as_str().map(str::to_string) {
                *one = self.share_titled(&title, one.take());
            }
        }
        self.share_inside(title, title, &mut schema);
        self.refer(&[title.to_string(), format!("{title}Input")], schema)
    }

    /// Shares the values of an enumeration; its description and default stay with the property.
    fn share_choice(&mut self, names: &[String], schema: &mut Value) {
        let Some(members) = schema.as_object_mut() else { return };
        let values = json!({"type": "string", "enum": members.shift_remove("enum")});
        members.shift_remove("type");
        let found = self.refer(names, values);
        // Not beside `$ref`: generators ignore what is there.
        members.insert("allOf".into(), json!([found]));
    }

    /// Stores a schema under the first name that is free or has the same schema, and returns the reference to it.
    fn refer(&mut self, names: &[String], schema: Value) -> Value {
        for name in names {
            if self.0.get(name).is_none_or(|other| *other == schema) {
                self.0.insert(name.clone(), schema);
                return json!({"$ref": reference(name)});
            }
        }
        schema
    }
}

/// Lets a shared property be null as well.
fn allow_null(property: &mut Value) {
    let Some(members) = property.as_object_mut() else { return };
    let nothing = json!({"type": "null"});
    if let Some(alternatives) = members.get_mut("anyOf").and_then(Value::as_array_mut) {
        alternatives.push(nothing);
    } else if let Some(found) = members.shift_remove("allOf") {
        members.insert("anyOf".into(), json!([found[0], nothing]));
    } else if members.contains_key("$ref") {
        *property = json!({"anyOf": [property.take(), nothing]});
    } else if members.get("type").is_some_and(Value::is_string) {
        property["type"] = json!([property["type"], "null"]);
    } else if let Some(types) = members.get_mut("type").and_then(Value::as_array_mut)
        && !types.contains(&json!("null"))
    {
        types.push(json!("null"));
    }
}

/// Takes out what a schema says about one property: its description, examples and marks.
fn taken_out(schema: &mut Value) -> Map<String, Value> {
    let Some(members) = schema.as_object_mut() else { return Map::new() };
    let is_about = |name: &&String| matches!(name.as_str(), "description" | "examples") || name.starts_with("x-");
    let names: Vec<String> = members.keys().filter(is_about).cloned().collect();
    names.into_iter().filter_map(|name| members.shift_remove(&name).map(|value| (name, value))).collect()
}

fn is_choice(schema: &Value) -> bool {
    schema["type"] == "string" && schema["enum"].is_array()
}

/// The reference to a schema.
pub fn reference(name: &str) -> String {
    format!("#/components/schemas/{name}")
}

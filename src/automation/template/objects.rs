//! Template values that are not plain JSON.

use std::sync::Arc;

use minijinja::value::{Object, ObjectRepr, Serde, Value as Jinja};
use serde_json::Value;

/// A JSON value for [`Names`](super::Names).
pub fn of(value: &Value) -> Jinja {
    Jinja::from(Serde(value))
}

/// The results of the steps so far, by index or by name.
#[derive(Debug)]
pub struct Results(pub Vec<(String, Value)>);

impl Object for Results {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Jinja) -> Option<Jinja> {
        let found = match (key.as_usize(), key.as_str()) {
            (Some(place), _) => self.0.get(place),
            (_, Some(name)) => match name.parse::<usize>() {
                Ok(place) => self.0.get(place),
                Err(_) => self.0.iter().rev().find(|(own, _)| own == name && !own.is_empty()),
            },
            _ => None,
        };
        found.map(|(_, value)| of(value))
    }
}

/// A placeholder for a value that only exists in a real run; renders as its own path.
#[derive(Debug)]
pub struct Unknown(pub String);

impl Object for Unknown {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Jinja) -> Option<Jinja> {
        let path = match key.as_str() {
            Some(name) => format!("{}.{name}", self.0),
            None => format!("{}[{key}]", self.0),
        };
        Some(Jinja::from_object(Unknown(path)))
    }

    fn render(self: &Arc<Self>, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "‹{}›", self.0)
    }
}

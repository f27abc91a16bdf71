//! Texts with holes in them: `Call {{ data.client_company_name }}`. A name that is not there is an
//! error that names it. A text can loop and choose, but not remember, and has a limit on its work and
//! on its length.

use std::io;
use std::sync::{Arc, LazyLock};

use minijinja::value::{Object, ObjectRepr, Serde, Value as Jinja};
use minijinja::{Environment, ErrorKind, UndefinedBehavior};
use serde_json::Value;

/// The longest text that a template makes.
pub const LONGEST: usize = 64 * 1024;
/// Steps of the template engine for one text.
const FUEL: u64 = 50_000;
/// What may stand between `{%` and `%}`: nothing that keeps a value, so that texts cannot grow in circles.
const TAGS: &[&str] = &["if", "elif", "else", "endif", "for", "endfor"];

static ENGINE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut engine = Environment::new();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    engine.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    engine.set_fuel(Some(FUEL));
    engine.set_recursion_limit(20);
    engine
});

/// Whether a text has holes.
pub fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%") || text.contains("{#")
}

/// What is wrong with a template, if anything is.
pub fn check(text: &str) -> Result<(), String> {
    if !is_template(text) {
        return Ok(());
    }
    for tag in text.split("{%").skip(1) {
        let word = tag.trim_start_matches(['-', '+']).trim_start();
        let word: String = word.chars().take_while(|c| c.is_ascii_alphabetic()).collect();
        if !TAGS.contains(&word.as_str()) {
            return Err(format!("has the tag '{word}'; the tags that work are: {}", TAGS.join(", ")));
        }
    }
    ENGINE.template_from_str(text).map(drop).map_err(|error| format!("is no template: {}", plain(&error)))
}

/// The names that templates know.
#[derive(Clone)]
pub struct Names(Jinja);

impl Names {
    /// From pairs of a name and what it stands for.
    pub fn new(pairs: Vec<(&'static str, Jinja)>) -> Names {
        Names(Jinja::from_pairs(pairs))
    }
}

/// A JSON value for [`Names`].
pub fn of(value: &Value) -> Jinja {
    Jinja::from(Serde(value))
}

/// The text with its holes filled.
pub fn render(text: &str, names: &Names) -> Result<String, String> {
    if !is_template(text) {
        return Ok(text.to_string());
    }
    let template = ENGINE.template_from_str(text).map_err(|error| plain(&error))?;
    let mut out = Limited(Vec::new());
    let made = template.render_captured_to(names.0.clone(), &mut out).map(drop);
    made.map_err(|error| told(&error, names, || template.undeclared_variables(true).into_iter().collect()))?;
    String::from_utf8(out.0).map_err(|_| "makes a text that is no Unicode".to_string())
}

/// What the text stands for: a value of its own kind when all of it is one hole, else a text.
pub fn evaluate(text: &str, names: &Names) -> Result<Value, String> {
    let whole = text.trim().strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
    let Some(inner) = whole.filter(|inner| !inner.contains("{{") && !inner.contains("}}")) else {
        return render(text, names).map(Value::String);
    };
    let inner = inner.trim_matches('-');
    let expression = ENGINE.compile_expression(inner).map_err(|error| plain(&error))?;
    let missing = || expression.undeclared_variables(true).into_iter().collect();
    let value = expression.eval(names.0.clone()).map_err(|error| told(&error, names, missing))?;
    if value.is_undefined() {
        return Err(format!("'{}' is not there", inner.trim()));
    }
    if value.as_str().is_some_and(|text| text.len() > LONGEST) {
        return Err(too_long());
    }
    serde_json::to_value(&value).map_err(|error| error.to_string())
}

/// Every text in `value`, with its holes filled.
pub fn fill(value: &Value, names: &Names) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => evaluate(text, names)?,
        Value::Array(items) => Value::Array(items.iter().map(|item| fill(item, names)).collect::<Result<_, _>>()?),
        Value::Object(members) => {
            let filled = members.iter().map(|(key, value)| Ok((key.clone(), fill(value, names)?)));
            Value::Object(filled.collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
}

/// An error in words; which name is missing is worked out here, since the engine does not say.
fn told(error: &minijinja::Error, names: &Names, used: impl Fn() -> Vec<String>) -> String {
    match error.kind() {
        ErrorKind::UndefinedError => {
            let mut missing: Vec<String> = used().into_iter().filter(|path| !is_there(&names.0, path)).collect();
            missing.sort();
            match missing.first() {
                Some(name) => format!("'{name}' is not there"),
                None => plain(error),
            }
        }
        ErrorKind::OutOfFuel => "takes too much work".to_string(),
        ErrorKind::WriteFailure => too_long(),
        _ => plain(error),
    }
}

fn is_there(names: &Jinja, path: &str) -> bool {
    let mut value = names.clone();
    for part in path.split('.') {
        match value.get_attr(part) {
            Ok(found) if !found.is_undefined() => value = found,
            _ => return false,
        }
    }
    true
}

fn too_long() -> String {
    format!("makes a text of more than {LONGEST} bytes")
}

fn plain(error: &minijinja::Error) -> String {
    let what = error.detail().map_or_else(|| error.kind().to_string(), str::to_string);
    match error.line() {
        Some(line) if line > 1 => format!("{what} (line {line})"),
        _ => what,
    }
}

struct Limited(Vec<u8>);

impl io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > LONGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What the steps so far have given, by their place or their name.
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

/// Stands for what only a real run would know; shows its own path.
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn names() -> Names {
        Names::new(vec![
            ("event", Jinja::from("invoice.paid")),
            (
                "data",
                of(
                    &json!({"name": "De Ster", "total": 121.5, "count": 3, "rows": [{"name": "a"}, {"name": "b"}], "none": null}),
                ),
            ),
            (
                "steps",
                Jinja::from_object(Results(vec![
                    ("call".into(), json!({"id": "t1"})),
                    (String::new(), json!({"id": "t2"})),
                ])),
            ),
        ])
    }

    #[test]
    fn holes_are_filled() {
        let render = |text: &str| render(text, &names()).unwrap();
        assert_eq!(render("Call {{ data.name }} about {{ data.total }}"), "Call De Ster about 121.5");
        assert_eq!(render("{% for row in data.rows %}{{ row.name }} {% endfor %}"), "a b ");
        assert_eq!(render("{{ steps[0].id }} {{ steps.call.id }} {{ steps[1].id }}"), "t1 t1 t2");
        assert_eq!(render("<{{ data.name | upper }}>"), "<DE STER>");
        assert_eq!(render("{{ data.nope | default('x') }}"), "x");
        assert_eq!(evaluate("{{ data.count }}", &names()).unwrap(), json!(3));
        assert_eq!(evaluate("{{ data.rows }}", &names()).unwrap(), json!([{"name": "a"}, {"name": "b"}]));
        assert_eq!(evaluate("n {{ data.count }}", &names()).unwrap(), json!("n 3"));
    }

    #[test]
    fn what_is_not_there_is_named() {
        let fails = |text: &str| render(text, &names()).unwrap_err();
        assert_eq!(fails("Dear {{ data.nope }}"), "'data.nope' is not there");
        assert_eq!(fails("{{ data.nope.deeper }} {{ data.name }}"), "'data.nope.deeper' is not there");
        assert_eq!(fails("{{ client }}"), "'client' is not there");
        assert_eq!(evaluate("{{ data.nope }}", &names()).unwrap_err(), "'data.nope' is not there");
        assert!(fails("{{ steps[7].id }}").contains("not there") || !fails("{{ steps[7].id }}").is_empty());
    }

    #[test]
    fn nothing_runs_away() {
        let fails = |text: &str| render(text, &names()).unwrap_err();
        assert_eq!(
            fails("{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}"),
            "takes too much work"
        );
        assert!(
            fails("{% for a in range(9000) %}0123456789{% endfor %}").contains("65536"),
            "{}",
            fails("{% for a in range(9000) %}0123456789{% endfor %}")
        );
        for bad in [
            "{% set x = 1 %}",
            "{% macro a() %}{% endmacro %}",
            "{{ ",
            "{{ a b }}",
            "{% include 'x' %}",
            "{% if %}",
            "{%- set x = 1 %}",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
        assert!(check("{{ data.x }} {%- if a -%} b {% endif %}").is_ok());
        assert!(!fails("{{ data() }}").is_empty());
    }
}

//! Templates: `Call {{ data.client_company_name }}`. An undefined name is an error that names it. A template can loop
//! and branch but not assign, and its work and output are limited.

mod filters;
mod items;
mod multiplication;
mod objects;
mod rules;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use minijinja::value::{Value as Jinja, ValueKind};
use minijinja::{Environment, ErrorKind, UndefinedBehavior};
use serde_json::Value;

pub use self::items::{items_in, places_in};
pub use self::objects::{Results, Unknown, of};

/// Maximum length of the output of a template, in bytes.
pub const LONGEST: usize = 64 * 1024;
/// Limit on the engine's instructions for one template.
const FUEL: u64 = 20_000;
/// Time limit for all templates of one value: a step can handle large data.
const LONGEST_TIME: Duration = Duration::from_millis(250);
/// Maximum size of the rendered templates of one value, in bytes of JSON.
const MAX_VALUE_BYTES: usize = 1024 * 1024;

static ENGINE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut engine = Environment::new();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    engine.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    engine.set_fuel(Some(FUEL));
    engine.set_recursion_limit(20);
    // Values render as in JSON; null renders as nothing.
    engine.set_formatter(|out, state, value| match value.kind() {
        ValueKind::None => Ok(()),
        ValueKind::Bool => out.write_str(if value.is_true() { "true" } else { "false" }).map_err(Into::into),
        _ => minijinja::escape_formatter(out, state, value),
    });
    filters::change(&mut engine);
    engine
});

thread_local! {
    /// The deadline of the templates rendered on this thread.
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Runs `work` with a time limit, or with what remains of the current one. The engine panics on a few unusual
/// templates, such as `{{ 7 is divisibleby(0) }}`.
fn in_time<T>(names: &Names, work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let before = DEADLINE.get();
    let own = || [names.until, Instant::now().checked_add(LONGEST_TIME)].into_iter().flatten().min();
    DEADLINE.set(before.or_else(own));
    let done = catch_unwind(AssertUnwindSafe(work));
    DEADLINE.set(before);
    done.unwrap_or_else(|_| Err("cannot be evaluated".to_string()))
}

fn is_late() -> bool {
    DEADLINE.get().is_some_and(|deadline| Instant::now() > deadline)
}

/// Returns the template as passed to minijinja, or why it is not allowed.
fn prepared(text: &str) -> Result<Cow<'_, str>, String> {
    match rules::errors(text) {
        wrong if wrong.is_empty() => multiplication::replace(text),
        wrong => Err(wrong.join("; it ")),
    }
}

/// Whether a string contains placeholders or tags.
pub(crate) fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%") || text.contains("{#")
}

/// Validates a template.
pub fn check(text: &str) -> Result<(), String> {
    if !is_template(text) {
        return Ok(());
    }
    let mut wrong = rules::errors(text);
    // What breaks a limit is not parsed. Unknown filters are no errors of syntax, which there may be too.
    if wrong.iter().all(|error| error.starts_with(rules::UNKNOWN_FILTER)) {
        let parsed = multiplication::replace(text).and_then(|replaced| {
            let parsed = ENGINE.template_from_str(&replaced).map(drop);
            // What is quoted is what was written.
            let why = |error| rules::unclosed(text).unwrap_or_else(|| plain(&error));
            parsed.map_err(|error| format!("is not a valid template: {}", why(error)))
        });
        wrong.extend(parsed.err());
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; it ")) }
}

/// Returns the names that the templates of a value use without defining them.
pub fn names_in(value: &Value) -> BTreeSet<String> {
    match value {
        Value::String(text) if is_template(text) => {
            let Ok(text) = prepared(text) else { return BTreeSet::new() };
            let template = ENGINE.template_from_str(&text);
            let names = template.map(|template| template.undeclared_variables(true)).unwrap_or_default();
            names.into_iter().filter(|name| name != "range").collect()
        }
        Value::Array(items) => items.iter().flat_map(names_in).collect(),
        Value::Object(members) => members.values().flat_map(names_in).collect(),
        _ => BTreeSet::new(),
    }
}

/// The names available in templates.
#[derive(Clone)]
pub struct Names {
    values: Jinja,
    /// Deadline of all templates together, in addition to the limit per value.
    until: Option<Instant>,
    made: Arc<Made>,
}

/// The rendered templates of a step. A slow one is rendered before the transaction that needs it, since other writers
/// wait for that transaction.
#[derive(Default)]
pub struct Made {
    texts: Mutex<HashMap<(Form, String), Result<Filled, String>>>,
    was_late: AtomicBool,
}

/// The form in which a template is rendered.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Form {
    Text,
    Value,
}

/// A rendered value and its size in bytes.
type Filled = (Value, usize);

impl Names {
    /// From pairs of a name and its value.
    pub fn new(pairs: Vec<(&'static str, Jinja)>) -> Names {
        Names { values: Jinja::from_pairs(pairs), until: None, made: Arc::default() }
    }

    /// Sets a time limit for all templates rendered with these names.
    pub fn within(self, time: Duration) -> Names {
        Names { until: Instant::now().checked_add(time), made: Arc::default(), ..self }
    }

    /// Uses templates that were rendered before.
    pub(crate) fn knowing(self, made: &Arc<Made>) -> Names {
        Names { made: made.clone(), ..self }
    }

    /// Returns what has been rendered so far.
    pub fn made(&self) -> Arc<Made> {
        self.made.clone()
    }

    /// Whether a template exceeded its time limit.
    pub(crate) fn were_late(&self) -> bool {
        self.made.was_late.load(Ordering::Relaxed)
    }

    /// Returns the earlier result of the template, or renders it.
    fn once(&self, form: Form, text: &str, work: impl FnOnce() -> Result<Filled, String>) -> Result<Filled, String> {
        let key = (form, text.to_string());
        let texts = || self.made.texts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = texts().get(&key) {
            return known.clone();
        }
        let done = in_time(self, work);
        if done.as_ref().is_err_and(|why| why == LATE) {
            self.made.was_late.store(true, Ordering::Relaxed);
        }
        texts().insert(key, done.clone());
        done
    }
}

/// Renders every template of a value and keeps the results, errors included, up to the limit of a step.
pub(crate) fn work_out(value: &Value, names: &Names) {
    work_out_within(value, names, &Cell::new(MAX_VALUE_BYTES));
}

fn work_out_within(value: &Value, names: &Names, left: &Cell<usize>) {
    match value {
        Value::String(_) if left.get() == 0 => {}
        Value::String(text) => {
            let made = [
                in_time(names, || within(text, names, &Cell::new(MAX_VALUE_BYTES)))
                    .map(|value| value.to_string().len()),
                render(text, names).map(|text| text.len()),
            ];
            left.set(left.get().saturating_sub(made.into_iter().flatten().max().unwrap_or(0)));
        }
        Value::Array(items) => items.iter().for_each(|item| work_out_within(item, names, left)),
        Value::Object(members) => members.values().for_each(|member| work_out_within(member, names, left)),
        _ => {}
    }
}

/// Renders a template to a string.
pub fn render(text: &str, names: &Names) -> Result<String, String> {
    if !is_template(text) {
        return Ok(text.to_string());
    }
    match names.once(Form::Text, text, || make(&prepared(text)?, names))? {
        (Value::String(made), _) => Ok(made),
        (other, _) => Ok(other.to_string()),
    }
}

/// Renders a template that has been prepared.
fn make(text: &str, names: &Names) -> Result<Filled, String> {
    let template = ENGINE.template_from_str(text).map_err(|error| plain(&error))?;
    let mut out = Limited(Vec::new(), LONGEST);
    let made = template.render_captured_to(names.values.clone(), &mut out).map(drop);
    made.map_err(|error| explain(&error, names, || template.undeclared_variables(true).into_iter().collect()))?;
    let made = out.text().map_err(|error| plain(&error))?;
    let length = made.len();
    Ok((Value::String(made), length))
}

/// Evaluates a template: a single placeholder keeps its JSON type, anything else becomes a string.
pub fn evaluate(text: &str, names: &Names) -> Result<Value, String> {
    in_time(names, || within(text, names, &Cell::new(MAX_VALUE_BYTES)))
}

/// Renders every string in `value`.
pub fn fill(value: &Value, names: &Names) -> Result<Value, String> {
    in_time(names, || fill_within(value, names, &Cell::new(MAX_VALUE_BYTES)))
}

fn fill_within(value: &Value, names: &Names, left: &Cell<usize>) -> Result<Value, String> {
    let fill = |value| fill_within(value, names, left);
    Ok(match value {
        Value::String(text) => within(text, names, left)?,
        Value::Array(items) => Value::Array(items.iter().map(fill).collect::<Result<_, _>>()?),
        Value::Object(members) => {
            let filled = members.iter().map(|(key, value)| Ok((key.clone(), fill(value)?)));
            Value::Object(filled.collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
}

/// Renders a string within the `left` bytes: a placeholder can stand for all of the data, and a step can have many.
fn within(text: &str, names: &Names, left: &Cell<usize>) -> Result<Value, String> {
    if !is_template(text) {
        return Ok(Value::String(text.to_string()));
    }
    let (value, bytes) = names.once(Form::Value, text, || value_of(text, names))?;
    spend(left, bytes)?;
    Ok(value)
}

fn value_of(text: &str, names: &Names) -> Result<Filled, String> {
    let text = prepared(text)?;
    let whole = text.trim().strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
    let Some(inner) = whole.filter(|inner| !inner.contains("{{") && !inner.contains("}}")) else {
        return make(&text, names);
    };
    let inner = inner.strip_prefix('-').unwrap_or(inner);
    let inner = inner.strip_suffix('-').unwrap_or(inner);
    let expression = ENGINE.compile_expression(inner).map_err(|error| plain(&error))?;
    let missing = || expression.undeclared_variables(true).into_iter().collect();
    let value = expression.eval(names.values.clone()).map_err(|error| explain(&error, names, missing))?;
    if value.is_undefined() {
        return Err(format!("'{}' is not defined", inner.trim()));
    }
    if value.as_str().is_some_and(|text| text.len() > LONGEST) {
        return Err(too_long());
    }
    let mut json = Limited(Vec::new(), MAX_VALUE_BYTES);
    serde_json::to_writer(&mut json, &value).map_err(|error| match error.is_io() {
        true if is_late() => LATE.to_string(),
        true => too_much(),
        false => error.to_string(),
    })?;
    let value = serde_json::from_slice(&json.0).map_err(|error| error.to_string())?;
    Ok((value, json.0.len()))
}

fn spend(left: &Cell<usize>, bytes: usize) -> Result<(), String> {
    left.set(left.get().checked_sub(bytes).ok_or_else(too_much)?);
    Ok(())
}

fn too_much() -> String {
    format!("produces more than {MAX_VALUE_BYTES} bytes")
}

/// Describes an error; finds the undefined name, which minijinja does not report.
fn explain(error: &minijinja::Error, names: &Names, used: impl Fn() -> Vec<String>) -> String {
    match error.kind() {
        ErrorKind::UndefinedError => {
            let mut missing: Vec<String> = used().into_iter().filter(|path| !is_there(&names.values, path)).collect();
            missing.sort();
            match missing.first() {
                Some(name) => format!("'{name}' is not defined"),
                None => plain(error),
            }
        }
        _ if is_late() => LATE.to_string(),
        ErrorKind::OutOfFuel => LATE.to_string(),
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

/// The message for a template that exceeds its time limit.
pub(crate) const LATE: &str = "takes too long to evaluate";

fn too_long() -> String {
    format!("produces a string of more than {LONGEST} bytes")
}

fn plain(error: &minijinja::Error) -> String {
    let what = error.detail().map_or_else(|| error.kind().to_string(), str::to_string);
    match error.line() {
        Some(line) if line > 1 => format!("{what} (line {line})"),
        _ => what,
    }
}

/// A writer with a maximum size.
struct Limited(Vec<u8>, usize);

impl Limited {
    fn text(self) -> Result<String, minijinja::Error> {
        String::from_utf8(self.0)
            .map_err(|_| filters::refuse("produces a string that is not valid Unicode".to_string()))
    }
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > self.1 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if is_late() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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
                    &json!({"name": "De Ster", "total": 121.5, "count": 3, "rows": [{"name": "a"}, {"name": "b"}], "none": null,
                        "long": "x".repeat(50_000)}),
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
    fn fills_placeholders() {
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
    fn names_undefined_variables() {
        let fails = |text: &str| render(text, &names()).unwrap_err();
        assert_eq!(fails("Dear {{ data.nope }}"), "'data.nope' is not defined");
        assert_eq!(fails("{{ data.nope.deeper }} {{ data.name }}"), "'data.nope.deeper' is not defined");
        assert_eq!(fails("{{ client }}"), "'client' is not defined");
        assert_eq!(evaluate("{{ data.nope }}", &names()).unwrap_err(), "'data.nope' is not defined");
        assert!(fails("{{ steps[7].id }}").contains("not defined") || !fails("{{ steps[7].id }}").is_empty());
    }

    #[test]
    fn limits_work_and_output() {
        let fails = |text: &str| render(text, &names()).unwrap_err();
        assert_eq!(
            fails("{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}"),
            "takes too long to evaluate"
        );
        assert!(
            fails("{% for a in range(3000) %}012345678901234567890123456789{% endfor %}").contains("65536"),
            "{}",
            fails("{% for a in range(3000) %}012345678901234567890123456789{% endfor %}")
        );
        for bad in [
            "{% set x = 1 %}",
            "{% macro a() %}{% endmacro %}",
            "{{ ",
            "{{ a b }}",
            "{% include 'x' %}",
            "{% if %}",
            "{%- set x = 1 %}",
            "{{ data.name | upper | indent(2) }}",
            "{% for x in [data.name ~ data.name] %}{% endfor %}",
            "{% for x in [data.name + data.name] %}{% endfor %}",
            "{% for x in [[data, data]] %}{% endfor %}",
            "{% for x in data.nope or [[data, data]] %}{% endfor %}",
            "{% for x in [(data, data)] %}{% endfor %}",
            "{% for x in {'a': data} %}{% endfor %}",
            "{% for x in data.rows recursive %}{% endfor %}",
            &format!("{{{{ data.name {} }}}}", "~ data.name ".repeat(200)),
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
        for good in [
            "* {{ data.name }} * 2",
            "{{ 'a * b' }}",
            "{% for x in [1, 2] %}{% endfor %}",
            "{% for x in data.rows[0].name | default([]) if x.a not in ('b', 'c') %}{{ x ~ x + 'y' }}{% endfor %}",
            "{% for name, value in data | items %}{{ value }}{% endfor %}",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        let template = "is not a valid template: ";
        for (open, why) in [
            ("Dear {{ data.name, thank you for it all.", "'{{ data.name, thank you for it…' is not closed with '}}'"),
            ("Dear {{ data.name }, don't.\nBye", "'{{ data.name }, don't.' is not closed with '}}'"),
            ("Dear {{ data.name, {{ data.long }}", "'{{ data.name, {{ data.long }}' is not closed with '}}'"),
            ("{{ 2 * data.n and", "'{{ 2 * data.n and' is not closed with '}}'"),
            ("{{ data.name }} {% if data.name }", "'{% if data.name }' is not closed with '%}'"),
        ] {
            assert_eq!(check(open), Err(format!("{template}{why}")));
        }
        assert!(!check("{{ 'a }}").unwrap_err().contains("closed"));
        assert!(check("{% if dtal > #}").is_err());
        // Each of these would exhaust memory.
        for huge in [
            "{{ data.name | indent(1000000000000, true) }}",
            "{{ '%1000000000000d' | format(1) }}",
            "{{ data.rows | slice(1000000000000) }}",
            "{{ data.rows | batch(1000000000000, 'x') }}",
            "{{ range(1000000000000) | list }}",
            "{{ range(-9223372036854775807, 9223372036854775807) | list }}",
            "{{ data.name | replace('', data.long) | replace('', data.long) }}",
            "{{ range(5000) | join(data.long) }}",
            "{{ range(5000) | map('replace', '', data.long) | list }}",
        ] {
            assert!(!fails(huge).is_empty(), "{huge}");
        }
        assert!(check("{{ data.x }} {%- if a -%} b {% endif %}").is_ok());
        assert!(!fails("{{ data() }}").is_empty());
    }

    #[test]
    fn rejects_long_chains_before_parsing() {
        for (start, part, count, end) in [
            ("{{ 1", "+1", 5000, " }}"),
            ("{{ 1", "~1", 5000, " }}"),
            ("{{ 1", " and 1", 5000, " }}"),
            ("{{ 1", "**1", 5000, " }}"),
            ("{{ 1", "*1", 5000, " }}"),
            ("{{ data", "|e", 10_000, " }}"),
            ("{{ data", ".a", 10_000, " }}"),
            ("{{ data", "[0]", 10_000, " }}"),
            ("{{ data", "()", 20_000, " }}"),
            ("{{ ", "-", 30_000, "1 }}"),
            ("{{ ", "not ", 15_000, "1 }}"),
            ("{% if 1 %}", "{% elif 1 %}", 3000, "{% endif %}"),
            ("", "{% if 1 %}", 3000, ""),
        ] {
            let text = format!("{start}{}{end}", part.repeat(count));
            assert!(
                check(&text).is_err() && render(&text, &names()).is_err() && evaluate(&text, &names()).is_err(),
                "{part}"
            );
        }
        let deep = format!("{{% if 1 %}}{}{{% endif %}}", "{% elif 1 %}".repeat(198));
        assert_eq!(check(&deep), Ok(()));
    }

    #[test]
    fn aborts_slow_templates() {
        let list: Vec<String> = (0..20_000).map(|n| format!("item {n}")).collect();
        let names = Names::new(vec![("data", of(&json!({"l": list})))]);
        let text =
            "{% for i in range(2000) %}{% if data.l | sort | unique | list | length == 1 %}x{% endif %}{% endfor %}";
        assert_eq!(render(text, &names).unwrap_err(), LATE);
        let text = "{% for i in range(2000) %}{{ (data.l | sort | length) * 0 }}{% endfor %}";
        assert_eq!(render(text, &names).unwrap_err(), LATE);
    }

    #[test]
    fn reuses_rendered_templates() {
        let list: Vec<String> = (0..2_000).map(|n| format!("item {n}")).collect();
        let names = Names::new(vec![("data", of(&json!({"l": list, "name": "{{ data.l }}"})))]);
        let step = json!({"title": "{{ data.l | sort | length }}", "more": ["{{ data.name }}", 1, "plain"]});
        let hurried = names.clone().within(Duration::ZERO);
        assert_eq!(fill(&step, &hurried).unwrap_err(), LATE);
        assert!(hurried.were_late());
        let calm = names.clone();
        work_out(&step, &calm);
        let hurried = names.within(Duration::ZERO).knowing(&calm.made());
        // A filled-in value is not evaluated as a template.
        assert_eq!(fill(&step, &hurried).unwrap(), json!({"title": 2_000, "more": ["{{ data.l }}", 1, "plain"]}));
        assert_eq!(render("{{ data.name }}", &hurried).unwrap(), "{{ data.l }}");
        assert!(!hurried.were_late());
    }

    #[test]
    fn values_are_written_as_in_json() {
        let names = Names::new(vec![("data", of(&json!({"none": null, "yes": true, "no": false, "n": 1.5})))]);
        assert_eq!(
            render("<{{ data.none }}{{ data.yes }} {{ data.no }} {{ data.n }}>", &names).unwrap(),
            "<true false 1.5>"
        );
        assert_eq!(evaluate("{{ data.none }}", &names).unwrap(), json!(null));
        assert!(render("{{ data.nope }}", &names).is_err());
        for odd in [
            "{{ 7 is divisibleby(0) }}",
            "{% for a in [1] %}{{ loop.cycle() }}{% endfor %}",
            "{{ 7 // 0 }} {{ 7 % 0 }}",
        ] {
            assert!(render(odd, &names).is_err(), "{odd}");
        }
    }

    #[test]
    fn own_filters_match_the_originals() {
        let value = |text: &str| evaluate(text, &names()).unwrap();
        assert_eq!(value("{{ data.name | replace('De', 'Het') }}"), json!("Het Ster"));
        assert_eq!(value("{{ data.total | replace('.', ',') }}"), json!("121,5"));
        assert_eq!(value("{{ data.rows | map(attribute='name') | join(', ') }}"), json!("a, b"));
        assert_eq!(value("{{ data.rows | join('-', attribute='name') }} {{ [1, 2] | join }}"), json!("a-b 12"));
        assert_eq!(value("{{ data.count | times(2) }}"), json!(6));
        assert_eq!(value("{{ data.total | times(2) }}"), json!(243.0));
        assert_eq!(value("{{ data.count | string }}"), json!("3"));
        assert_eq!(value("{{ range(2, 4) | list }}"), json!([2, 3]));
        for bad in ["{{ data.name | times(2) }}", "{{ data.rows | join(', ', attribute='nope') }}"] {
            assert!(evaluate(bad, &names()).is_err(), "{bad}");
        }
    }

    #[test]
    fn limits_the_texts_of_a_step_together() {
        let many = |count: usize| fill(&json!(vec!["{{ data }}"; count]), &names());
        assert_eq!(many(10).unwrap().as_array().unwrap().len(), 10);
        assert_eq!(many(30).unwrap_err(), "produces more than 1048576 bytes");
        assert_eq!(
            evaluate("{{ data.long ~ data.long }}", &names()).unwrap_err(),
            "produces a string of more than 65536 bytes"
        );
    }
}

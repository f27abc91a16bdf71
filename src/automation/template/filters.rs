//! The filters of templates: those of minijinja, limited by the size of the data that they handle, which the engine's
//! instruction count ignores.

use std::borrow::Cow;
use std::io::Write;
use std::sync::LazyLock;

use engine::input::did_you_mean;
use minijinja::value::{Kwargs, Rest, Value as Jinja};
use minijinja::{Environment, ErrorKind, UndefinedBehavior};

use super::{ENGINE, LATE, LONGEST, Limited, is_late, too_long};

/// The longest range that a loop can iterate over.
const FURTHEST: usize = 10_000;
/// Removed filters, which can produce large output from small input.
const GONE: &[&str] = &["indent", "format", "slice", "batch", "zip", "chain", "groupby"];

/// Filters of minijinja that iterate over all of their input: none of them starts after the deadline.
const GO_THROUGH: &[&str] = &[
    "abs",
    "bool",
    "capitalize",
    "count",
    "dictsort",
    "escape",
    "e",
    "first",
    "float",
    "int",
    "items",
    "last",
    "length",
    "lines",
    "list",
    "lower",
    "max",
    "min",
    "pprint",
    "reject",
    "rejectattr",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "sort",
    "split",
    "sum",
    "title",
    "trim",
    "unique",
    "upper",
];

/// The other filters that people look for.
const OTHERS: &[&str] = &["attr", "d", "default", "join", "map", "replace", "string", "times"];

/// The original filters of minijinja.
static USUAL: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut usual = Environment::new();
    usual.set_undefined_behavior(UndefinedBehavior::Strict);
    usual
});

/// Removes the filters with unbounded output and adds limited versions.
pub fn change(engine: &mut Environment) {
    GONE.iter().for_each(|name| engine.remove_filter(name));
    ["dict", "namespace", "debug"].iter().for_each(|name| engine.remove_global(name));
    engine.add_filter("replace", replace);
    engine.add_filter("join", join);
    engine.add_filter("map", map);
    engine.add_filter("string", string);
    engine.add_filter("times", times);
    engine.add_function("range", range);
    for name in GO_THROUGH {
        engine.add_filter(*name, |given: Rest<Jinja>| {
            if is_late() {
                return Err(refuse(LATE.to_string()));
            }
            USUAL.empty_state().apply_filter(name, &given)
        });
    }
}

/// Whether a filter of this name exists.
pub fn is_known(name: &str) -> bool {
    let tried = ENGINE.empty_state().apply_filter(name, &[]);
    !tried.is_err_and(|error| error.kind() == ErrorKind::UnknownFilter)
}

/// Returns the filter that was probably meant.
pub fn guess(name: &str) -> String {
    did_you_mean(name, GO_THROUGH.iter().chain(OTHERS).copied())
}

/// Creates an error with our own message.
pub fn refuse(why: String) -> minijinja::Error {
    minijinja::Error::new(ErrorKind::InvalidOperation, why)
}

/// Also accepts a number: `{{ data.total | replace('.', ',') }}`.
fn replace(text: Cow<str>, from: Cow<str>, to: Cow<str>) -> Result<String, minijinja::Error> {
    let grows = to.len().saturating_sub(from.len());
    if text.matches(&*from).count().saturating_mul(grows).saturating_add(text.len()) > LONGEST {
        return Err(refuse(too_long()));
    }
    Ok(text.replace(&*from, &to))
}

/// Returns the items, or an attribute of each.
fn each(
    items: &Jinja,
    options: &Kwargs,
) -> Result<impl Iterator<Item = Result<Jinja, minijinja::Error>>, minijinja::Error> {
    let attribute: Option<String> = options.get("attribute")?;
    options.assert_all_used()?;
    Ok(items.try_iter()?.map(move |item| match &attribute {
        Some(name) => item.get_attr(name),
        None => Ok(item),
    }))
}

fn join(items: &Jinja, between: Option<&str>, options: Kwargs) -> Result<String, minijinja::Error> {
    let mut out = Limited(Vec::new(), LONGEST);
    for (place, item) in each(items, &options)?.enumerate() {
        let item = item?;
        if item.is_undefined() {
            return Err(ErrorKind::UndefinedError.into());
        }
        let between = between.filter(|_| place > 0).unwrap_or_default();
        write!(out, "{between}{item}").map_err(|_| refuse(too_long()))?;
    }
    out.text()
}

/// Accepts attributes only: a filter could produce a long text for each item.
fn map(items: &Jinja, options: Kwargs) -> Result<Vec<Jinja>, minijinja::Error> {
    each(items, &options)?.collect()
}

fn string(value: &Jinja) -> Result<String, minijinja::Error> {
    let mut out = Limited(Vec::new(), LONGEST);
    write!(out, "{value}").map_err(|_| refuse(too_long()))?;
    out.text()
}

/// Accepts numbers only: minijinja also repeats strings and lists, a million times if asked.
fn times(number: &Jinja, by: &Jinja) -> Result<Jinja, minijinja::Error> {
    if !number.is_number() || !by.is_number() {
        return Err(refuse("times is for numbers".to_string()));
    }
    ENGINE.compile_expression("number * by")?.eval(minijinja::context! { number, by })
}

fn range(first: i64, end: Option<i64>) -> Result<Vec<i64>, minijinja::Error> {
    let range = end.map_or(0..first, |end| first..end);
    if range.end.saturating_sub(range.start) > i64::try_from(FURTHEST).unwrap_or(i64::MAX) {
        return Err(refuse(format!("has a range of more than {FURTHEST} numbers")));
    }
    Ok(range.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_are_filters() {
        for name in GO_THROUGH.iter().chain(OTHERS) {
            assert!(is_known(name), "{name}");
        }
        assert_eq!(guess("uper"), "; did you mean 'upper'?");
    }
}

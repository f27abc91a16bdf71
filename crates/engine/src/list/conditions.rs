//! The conditions of a list: what each parameter asks for, and its SQL.

use store::Value;

use crate::clock::Moment;
use crate::context::Ctx;
use crate::error::{FieldCode, FieldErrors, Violation, violation};
use crate::record::{FieldInfo, other_spelling, yes_or_no};
use crate::text::unknown_value;

/// Maximum number of ids in a filter.
const MAX_IDS: usize = 100;

/// A condition of a list.
#[derive(Clone)]
pub enum Condition {
    /// An equal value.
    Is(&'static str, Value<'static>),
    /// An equal value in a field that references another record: few records share one.
    Of(&'static str, Value<'static>),
    /// An equal value in a reference that most records leave empty; the index omits those.
    Under(&'static str, Value<'static>),
    /// An equal value in a field that no two records share; the index omits those that leave it empty.
    One(&'static str, Value<'static>),
    /// An equal text, ignoring case: few records share one.
    Folded(&'static str, Value<'static>),
    /// One of several.
    Among(&'static str, Vec<Value<'static>>),
    /// One of these ids.
    In(Vec<String>),
    /// Column, operator, value.
    Range(&'static str, &'static str, Value<'static>),
    /// A condition that a record declares, as SQL without placeholders; and the index of the few records that satisfy it, as in
    /// `NamedCondition::few`.
    When(String, &'static str),
    /// The day from whose start.
    From(jiff::civil::Date),
    /// The day until whose end.
    Until(jiff::civil::Date),
}

/// What a parameter that may be a filter asks for.
pub enum Filter {
    /// Records that satisfy a condition.
    By(Condition),
    /// Any record.
    Anything,
    /// Nothing: there is no such filter.
    Unknown,
}

/// Returns what a parameter asks for that is not one of every list.
pub fn filter(fields: &[FieldInfo], name: &str, text: &str) -> Result<Filter, Violation> {
    for field in fields {
        let rules = &field.rules;
        let found = match rules.range {
            _ if name == field.name && rules.filter => by_value(field, text)?,
            _ if name == rules.filter_also && !name.is_empty() => by_value(field, text)?,
            _ if name == rules.filter_as && !name.is_empty() => by_known_value(field, text)?,
            _ if name == rules.filter_filled && !name.is_empty() => by_presence(field, text)?,
            _ if name == rules.filter_when.parameter && !name.is_empty() => by_condition(field, text)?,
            Some((from, _)) if name == from => ranged(field, ">=", text)?,
            Some((_, to)) if name == to => ranged(field, "<=", text)?,
            _ => continue,
        };
        return Ok(found);
    }
    Ok(Filter::Unknown)
}

fn by_value(field: &FieldInfo, text: &str) -> Result<Filter, Violation> {
    let (own, rules) = (field.name, &field.rules);
    if !rules.any.is_empty() && text.split(',').any(|one| one.trim() == rules.any) {
        return Ok(Filter::Anything);
    }
    let value = || (field.from_query)(text, &rules.for_answers());
    Ok(Filter::By(match text {
        // An address that nobody can have matches nothing.
        _ if field.is_address() => Condition::Folded(own, text.trim().to_string().into()),
        _ if field.takes_several() => among(own, several(field, text)?),
        _ if !rules.refers.is_empty() => Condition::Of(own, value()?),
        _ if rules.is_unique() && !text.is_empty() => Condition::One(own, value()?),
        _ => among(own, values(field, [text.to_string()])?),
    }))
}

/// By the contract, values outside the set are ignored.
fn by_known_value(field: &FieldInfo, text: &str) -> Result<Filter, Violation> {
    let known: Vec<String> = ids(text)?.into_iter().filter(|one| values(field, [one.clone()]).is_ok()).collect();
    let is_none = known.is_empty();
    let values = values(field, known)?;
    Ok(if is_none { Filter::Anything } else { Filter::By(among(field.name, values)) })
}

/// A missing value is '' in the table.
fn by_presence(field: &FieldInfo, text: &str) -> Result<Filter, Violation> {
    let nothing = Value::from(String::new());
    Ok(Filter::By(match yes_or_no(text)? {
        true => Condition::Range(field.name, ">", nothing),
        false => Condition::Is(field.name, nothing),
    }))
}

fn by_condition(field: &FieldInfo, text: &str) -> Result<Filter, Violation> {
    let when = &field.rules.filter_when;
    let (sql, holds) = ((when.sql)(), yes_or_no(text)?);
    let sql = if holds { format!("({sql})") } else { format!("NOT ({sql})") };
    Ok(Filter::By(Condition::When(sql, if holds { when.few } else { "" })))
}

fn ranged(field: &FieldInfo, operator: &'static str, text: &str) -> Result<Filter, Violation> {
    if text.is_empty() {
        return Err(no_value());
    }
    let value = (field.from_query)(text, &field.rules.for_answers())?;
    Ok(Filter::By(Condition::Range(field.name, operator, value)))
}

fn no_value() -> Violation {
    violation(FieldCode::InvalidFormat, "must have a value")
}

/// Reads the values of a filter that are separated by commas. Where callers can use values of their own, one may contain a
/// comma.
fn several(field: &FieldInfo, text: &str) -> Result<Vec<Value<'static>>, Violation> {
    let mut texts = ids(text)?;
    if !field.is_closed() {
        if texts.len() > 1 {
            texts.push(text.to_string());
        }
        return values(field, texts);
    }
    let (mut faults, mut all) = (FieldErrors::default(), Vec::new());
    for one in texts {
        match values(field, [one.clone()]) {
            Ok(known) => all.extend(known),
            Err(wrong) if wrong.code == FieldCode::InvalidChoice => {
                faults.add("", unknown_value(&one, field.choices.iter().copied()));
            }
            Err(wrong) => faults.add("", wrong),
        }
    }
    faults.inside()?;
    all.dedup();
    Ok(all)
}

/// Reads values, in both spellings: either may be stored where callers can use values of their own.
fn values(field: &FieldInfo, texts: impl IntoIterator<Item = String>) -> Result<Vec<Value<'static>>, Violation> {
    let mut values = Vec::new();
    for one in texts {
        for spelling in std::iter::once(one.as_str()).chain(other_spelling(&one)) {
            let value = (field.from_query)(spelling, &field.rules.for_answers())?;
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    Ok(values)
}

/// Returns the condition for one of several values.
fn among(column: &'static str, mut values: Vec<Value<'static>>) -> Condition {
    match values.len() {
        1 => Condition::Is(column, values.remove(0)),
        _ => Condition::Among(column, values),
    }
}

/// Splits ids or other values at commas.
pub fn ids(text: &str) -> Result<Vec<String>, Violation> {
    let ids: Vec<String> = text.split(',').map(|id| id.trim().to_string()).collect();
    if ids.len() > MAX_IDS {
        return Err(violation(FieldCode::TooLong, format!("may have at most {MAX_IDS} values")));
    }
    Ok(ids)
}

/// The day of the account, in a condition that a record declares.
const TODAY: &str = "{today}";

impl Condition {
    /// Whether few records satisfy it, which have an index.
    pub fn is_narrow(&self) -> bool {
        match self {
            Condition::Of(..)
            | Condition::Under(..)
            | Condition::One(..)
            | Condition::Folded(..)
            | Condition::In(_) => true,
            Condition::When(_, index) => !index.is_empty(),
            _ => false,
        }
    }

    /// Returns it as SQL, and adds its values.
    pub fn sql(&self, table: &str, ctx: &Ctx, values: &mut Vec<Value<'static>>) -> String {
        let mut place = |value: Value<'static>| {
            values.push(value);
            format!("${}", values.len())
        };
        match self {
            Condition::Is(column, value) | Condition::Of(column, value) => {
                format!("{table}.\"{column}\" = {}", place(value.clone()))
            }
            Condition::Under(column, value) | Condition::One(column, value) => {
                format!("{table}.\"{column}\" = {} AND {table}.\"{column}\" <> ''", place(value.clone()))
            }
            Condition::Folded(column, value) => {
                format!("lower({table}.\"{column}\") = lower({})", place(value.clone()))
            }
            Condition::Among(column, values) => {
                let places: Vec<String> = values.iter().map(|value| place(value.clone())).collect();
                format!("{table}.\"{column}\" IN ({})", places.join(", "))
            }
            // A missing value is '' in the table, and is in no range.
            Condition::Range(column, operator, value @ Value::Text(_)) => {
                format!("{table}.\"{column}\" {operator} {} AND {table}.\"{column}\" <> ''", place(value.clone()))
            }
            Condition::Range(column, operator, value) => {
                format!("{table}.\"{column}\" {operator} {}", place(value.clone()))
            }
            Condition::In(ids) => {
                let places: Vec<String> = ids.iter().map(|id| place(id.clone().into())).collect();
                format!("{table}.id IN ({})", places.join(", "))
            }
            Condition::When(sql, _) if sql.contains(TODAY) => {
                sql.replace(TODAY, &place(ctx.now.date(&ctx.zone).to_string().into()))
            }
            Condition::When(sql, _) => sql.clone(),
            Condition::From(date) => {
                let start = Moment::start_of(*date, &ctx.zone);
                format!("{table}.created_at >= {}", place(start.0.into()))
            }
            Condition::Until(date) => {
                let next = date.tomorrow().map_or(Moment(i64::MAX), |next| Moment::start_of(next, &ctx.zone));
                format!("{table}.created_at < {}", place(next.0.into()))
            }
        }
    }
}

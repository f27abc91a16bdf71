//! The query parameters of a request.

use crate::error::{FieldCode, FieldErrors, Result, Violation, violation};

/// Maximum number of parameters.
const MAX_PARAMETERS: usize = 100;

/// Query parameters, in the order sent.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Parses the part after the `?`. A duplicate parameter or a NUL is an error.
    pub fn parse(text: &str) -> Result<Query> {
        let mut faults = FieldErrors::default();
        let mut pairs: Vec<(String, String)> = Vec::new();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            if pairs.len() >= MAX_PARAMETERS {
                faults.add(
                    "query",
                    violation(FieldCode::TooLong, format!("may have at most {MAX_PARAMETERS} parameters")),
                );
                break;
            }
            if value.contains('\0') || name.contains('\0') {
                faults.add(
                    name.clone(),
                    violation(FieldCode::InvalidCharacters, "contains the control character U+0000"),
                );
            }
            if pairs.iter().any(|(other, _)| *other == name) {
                faults.add(name.clone(), violation(FieldCode::GivenTwice, "is given more than once"));
            }
            pairs.push((name.into_owned(), value.into_owned()));
        }
        faults.into_result()?;
        Ok(Query(pairs))
    }

    /// Returns the value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(has, _)| has == name).map(|(_, value)| value.as_str())
    }

    /// Returns the query without a parameter.
    pub fn without(mut self, name: &str) -> Query {
        self.0.retain(|(has, _)| has != name);
        self
    }

    /// Changes the value of a parameter, if it is there.
    pub fn replace(&mut self, name: &str, change: impl FnOnce(&str) -> String) {
        if let Some((_, value)) = self.0.iter_mut().find(|(has, _)| has == name) {
            *value = change(value);
        }
    }

    /// Returns the names of all parameters.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the value of an integer parameter.
    pub fn whole(&self, name: &str, least: i64, most: i64) -> Result<Option<i64>, Violation> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match whole_number(text) {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            Some(_) => Err(violation(FieldCode::OutOfRange, format!("must be from {least} to {most}"))),
            None => Err(violation(FieldCode::WrongType, format!("must be an integer of {least} or more"))),
        }
    }

    /// Returns the query with another `page`.
    pub fn with_page(&self, page: i64) -> String {
        let mut text = form_urlencoded::Serializer::new(String::new());
        text.extend_pairs(self.0.iter().filter(|(name, _)| name != "page"));
        text.append_pair("page", &page.to_string());
        text.finish()
    }
}

/// Parses a number that consists only of digits.
pub fn whole_number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number| *number >= 0 && text.bytes().all(|byte| byte.is_ascii_digit()))
}

//! Values of filters that are in no set and that no record has: a list with one of them is probably a mistake.

use store::Tx;

use super::conditions::ids;
use crate::context::Ctx;
use crate::error::{Error, FieldErrors, Result, Violation};
use crate::record::{Layout, other_spelling};
use crate::text::unknown_value;

/// The values of a filter that are not in its set. Some are valid nevertheless: callers can use values of their own.
pub struct Doubt {
    parameter: &'static str,
    column: &'static str,
    /// The whole value of the parameter: a value of one's own may contain a comma.
    whole: String,
    values: Vec<String>,
    choices: &'static [&'static str],
    named_in: &'static str,
    is_closed: bool,
}

impl Doubt {
    /// Returns what is doubtful about a filter that was accepted.
    pub fn of(layout: &Layout, name: &str, text: &str) -> Option<Doubt> {
        for info in layout.fields {
            let rules = &info.rules;
            let names = [if rules.filter { info.name } else { "" }, rules.filter_as, rules.filter_also];
            let Some(parameter) = names.into_iter().find(|own| !own.is_empty() && *own == name) else { continue };
            if !info.takes_several() {
                return None;
            }
            let choices = info.choices_of(layout.shape.name);
            let is_known = |value: &String| {
                let spellings = [Some(value.as_str()), other_spelling(value)];
                *value == rules.any && !value.is_empty()
                    || spellings.into_iter().flatten().any(|one| choices.contains(&one))
            };
            let mut values = ids(text).unwrap_or_default();
            values.retain(|value| !is_known(value));
            values.dedup();
            let (named_in, is_closed) = (rules.named_in, info.is_closed());
            let doubt =
                Doubt { parameter, column: info.name, whole: text.to_string(), values, choices, named_in, is_closed };
            return (!doubt.values.is_empty()).then_some(doubt);
        }
        None
    }

    /// Returns an error for each value that no record of the account has and that is not the name of a value there.
    fn errors(&self, table: &str, tx: &mut Tx, ctx: &Ctx) -> Result<Vec<Violation>> {
        let mut known: Vec<String> = self.choices.iter().map(|choice| choice.to_string()).collect();
        if !self.named_in.is_empty() {
            let sql = format!("SELECT name FROM {} WHERE account_id = $1 ORDER BY \"order\", id", self.named_in);
            known.extend(tx.all(&sql, &[ctx.account.into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))?);
        }
        let mut is_used = |value: &str| -> Result<bool> {
            if self.is_closed {
                return Ok(false);
            }
            let sql = format!("SELECT 1 FROM {table} WHERE account_id = $1 AND \"{}\" = $2 LIMIT 1", self.column);
            Ok(tx.first(&sql, &[ctx.account.into(), value.into()], |_| Ok::<_, Error>(()))?.is_some())
        };
        if self.whole.contains(',') && is_used(&self.whole)? {
            return Ok(Vec::new());
        }
        let mut errors = Vec::new();
        for value in &self.values {
            if !known.contains(value) && !is_used(value)? {
                errors.push(unknown_value(value, known.iter().map(String::as_str)));
            }
        }
        Ok(errors)
    }
}

/// Returns a warning for each value that no record can have, or an error if the caller wants that.
pub fn warnings(table: &str, tx: &mut Tx, ctx: &Ctx, doubts: &[Doubt], strict: bool) -> Result<Vec<String>> {
    let (mut warnings, mut faults) = (Vec::new(), FieldErrors::default());
    for doubt in doubts {
        for error in doubt.errors(table, tx, ctx)? {
            match strict {
                true => faults.add(doubt.parameter, error),
                false => warnings.push(format!("{} {}", doubt.parameter, error.message)),
            }
        }
    }
    faults.into_result()?;
    Ok(warnings)
}

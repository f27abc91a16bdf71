//! Parses a body into a record: unknown and read-only fields, and the rules of each field. Reports all errors together.

pub mod pending;

use crate::call::Call;
use crate::error::{Error, FieldCode, FieldErrors, Result, violation};
use crate::json::Json;
use crate::record::{Body, Field, Fields, Rules};
pub use crate::text::did_you_mean;

/// The parsed fields of a body, before they are merged into a record.
#[derive(Clone)]
pub struct Input<R: Fields> {
    values: R,
    sent: Vec<usize>,
    /// Warnings about ignored fields.
    pub warnings: Vec<String>,
}

/// Reads the fields of a new record.
pub fn create<R: Body>(call: &Call) -> Result<Input<R>> {
    create_with(call, |_, _| {})
}

/// Reads the fields of a new record, and checks the rules of the record and of this route.
pub fn create_with<R: Body>(call: &Call, rules: impl FnOnce(&Input<R>, &mut FieldErrors)) -> Result<Input<R>> {
    let (input, faults) = read_create(call, rules)?;
    faults.into_result()?;
    Ok(input)
}

/// Reads the fields of a new record, with what is wrong with them.
fn read_create<R: Body>(
    call: &Call,
    rules: impl FnOnce(&Input<R>, &mut FieldErrors),
) -> Result<(Input<R>, FieldErrors)> {
    let mut faults = FieldErrors::default();
    let input = read(call, R::blank()?, &mut faults, For::Create)?;
    for (place, field) in R::fields().iter().enumerate() {
        let named = faults.0.iter().any(|fault| fault.field == field.info.name);
        if field.info.rules.required && !input.sent.contains(&place) && !named {
            faults.add(field.info.name, violation(FieldCode::Required, "is required"));
        }
    }
    let alone = faults.0.len();
    input.values.check(&mut faults);
    rules(&input, &mut faults);
    // The rules saw no value of a field that is invalid by itself, so their errors about it are redundant.
    let (own, whole) = faults.0.split_at(alone);
    let new = whole.iter().filter(|fault| !own.iter().any(|other| other.is_in(&fault.field)));
    let all = own.iter().chain(new).cloned().collect();
    Ok((input, FieldErrors(all)))
}

/// Reads the fields of a PATCH; at least one is required.
pub fn patch<R: Body>(call: &Call) -> Result<Input<R>> {
    let (input, faults) = read_patch(call)?;
    faults.into_result()?;
    Ok(input)
}

/// Reads the fields of a PATCH, with what is wrong with them.
fn read_patch<R: Body>(call: &Call) -> Result<(Input<R>, FieldErrors)> {
    let mut faults = FieldErrors::default();
    let input = read(call, R::default(), &mut faults, For::Patch)?;
    if input.sent.is_empty() && faults.0.is_empty() {
        let names: Vec<&str> = patchable::<R>().map(|field| field.info.name).collect();
        let message = format!("must contain at least one of: {}", names.join(", "));
        faults.add("body", violation(FieldCode::NoFields, message));
    }
    Ok((input, faults))
}

/// Rejects all fields in the body of an action without one.
pub fn nothing(call: &Call) -> Result<Vec<String>> {
    let mut faults = FieldErrors::default();
    let mut warnings = Vec::new();
    if let Some(body) = &call.body {
        for (name, _) in members(body)? {
            unknown(call, name, &[], &mut faults, &mut warnings);
        }
    }
    faults.into_result()?;
    Ok(warnings)
}

impl<R: Fields> Input<R> {
    /// Returns the sent values, with the defaults of the others.
    pub fn values(&self) -> &R {
        &self.values
    }

    /// Returns the new record.
    pub fn record(&self) -> R {
        self.values.clone()
    }

    /// Copies the sent fields to `record`.
    pub fn merge_into(&self, record: &mut R) {
        for place in &self.sent {
            R::fields()[*place].copy(&self.values, record);
        }
    }

    /// Copies every input field to `record`, with the defaults of those that were not sent: for a PUT.
    pub fn replace_in(&self, record: &mut R) {
        for field in R::fields().iter().filter(|field| field.info.rules.create) {
            field.copy(&self.values, record);
        }
    }

    /// Whether a field was sent.
    pub fn has(&self, name: &str) -> bool {
        self.sent().any(|field| field.info.name == name)
    }

    /// Returns the fields that were sent.
    pub fn sent(&self) -> impl Iterator<Item = &'static Field<R>> {
        self.sent.iter().map(|place| &R::fields()[*place])
    }
}

fn patchable<R: Fields>() -> impl Iterator<Item = &'static Field<R>> {
    R::fields().iter().filter(|field| field.info.rules.patch)
}

fn members(body: &Json) -> Result<&[(String, Json)]> {
    match body {
        Json::Object(members) => Ok(members),
        other => {
            let message = format!("must be a JSON object, not {}", other.kind());
            Err(Error::field("body", violation(FieldCode::WrongType, message)))
        }
    }
}

/// The purpose of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum For {
    /// To create a record.
    Create,
    /// To change a record.
    Patch,
}

impl For {
    fn may_set(self, rules: &Rules) -> bool {
        if self == For::Create { rules.create } else { rules.patch }
    }

    /// Whether `null` is ignored: in a new record it equals a missing field, unless the field is required.
    fn passes_over(self, json: &Json, rules: &Rules) -> bool {
        self == For::Create && *json == Json::Null && !rules.required
    }

    /// Returns the rules of a field; a field with `kept` is required once the record exists.
    fn rules(self, rules: &Rules) -> Rules {
        Rules { required: rules.required || (self == For::Patch && rules.kept), ..*rules }
    }
}

/// Reads the fields of a body.
fn read<R: Body>(call: &Call, mut values: R, faults: &mut FieldErrors, aim: For) -> Result<Input<R>> {
    let mut sent = Vec::new();
    let mut warnings = Vec::new();
    let Some(body) = call.body.clone().map(R::body) else {
        return Ok(Input { values, sent, warnings });
    };
    let settable = || R::fields().iter().filter(|field| aim.may_set(&field.info.rules));
    for (name, json) in members(&body)? {
        let found = R::fields().iter().position(|field| field.info.name == name);
        match found {
            Some(place) if aim.may_set(&R::fields()[place].info.rules) => {
                let field = &R::fields()[place];
                if aim.passes_over(json, &field.info.rules) {
                    continue;
                }
                let read = field.from_json(&mut values, json, &aim.rules(&field.info.rules));
                faults.take(name, read);
                sent.push(place);
            }
            None if !is_base(name) => {
                let names: Vec<&str> = settable().map(|field| field.info.name).collect();
                unknown(call, name, &names, faults, &mut warnings);
            }
            _ => {
                let sent_as = found.map_or("", |place| R::fields()[place].info.rules.sent_as);
                let meant = settable().find(|field| field.info.name == sent_as);
                let hint = meant.map(|field| format!("; did you mean '{}'?", field.info.name)).unwrap_or_default();
                match call.lenient {
                    true => warnings.push(format!("'{name}' cannot be set here and was ignored{hint}")),
                    false => faults.add(name, violation(FieldCode::ReadOnly, format!("cannot be set here{hint}"))),
                }
            }
        }
    }
    Ok(Input { values, sent, warnings })
}

/// The fields that every record has.
fn is_base(name: &str) -> bool {
    matches!(name, "id" | "created_at" | "updated_at" | "meta")
}

fn unknown(call: &Call, name: &str, known: &[&str], faults: &mut FieldErrors, warnings: &mut Vec<String>) {
    // Finding a suggestion takes time, and a body can have a hundred thousand names.
    if faults.is_full() || warnings.len() >= 100 {
        return;
    }
    let hint = did_you_mean(name, known.iter().copied());
    let shown: String = name.chars().take(100).collect();
    if call.lenient {
        warnings.push(format!("'{shown}' is not a known field and was ignored{hint}"));
    } else {
        faults.add(shown, violation(FieldCode::UnknownField, format!("is not a known field{hint}")));
    }
}

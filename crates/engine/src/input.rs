//! Parses a body into a record: unknown and read-only fields, and the rules of each field. Reports all errors together.

pub mod pending;

use crate::call::Call;
use crate::error::{Error, FieldCode, FieldErrors, Result, Violation, violation};
use crate::json::Json;
use crate::record::{AnyFields, Body, Field, FieldInfo, Fields, Rules};
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
    add_required(R::infos(), &input.sent, &mut faults);
    let alone = faults.0.len();
    input.values.check(&mut faults);
    rules(&input, &mut faults);
    Ok((input, without_redundant(&faults, alone)))
}

/// Adds an error for each required field that was not sent.
fn add_required(fields: &[FieldInfo], sent: &[usize], faults: &mut FieldErrors) {
    for (place, field) in fields.iter().enumerate() {
        let named = faults.0.iter().any(|fault| fault.field == field.name);
        if field.rules.required && !sent.contains(&place) && !named {
            faults.add(field.name, violation(FieldCode::Required, "is required"));
        }
    }
}

/// The rules saw no value of a field that is invalid by itself, so their errors about it are redundant.
fn without_redundant(faults: &FieldErrors, alone: usize) -> FieldErrors {
    let (own, whole) = faults.0.split_at(alone);
    let new = whole.iter().filter(|fault| !own.iter().any(|other| other.is_in(&fault.field)));
    FieldErrors(own.iter().chain(new).cloned().collect())
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
        faults.add("body", no_fields(R::infos()));
    }
    Ok((input, faults))
}

fn no_fields(fields: &[FieldInfo]) -> Violation {
    let names: Vec<&str> = fields.iter().filter(|field| field.rules.patch).map(|field| field.name).collect();
    violation(FieldCode::NoFields, format!("must contain at least one of: {}", names.join(", ")))
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
        merge(&self.sent, &self.values, record);
    }

    /// Copies every input field to `record`, with the defaults of those that were not sent: for a PUT.
    pub fn replace_in(&self, record: &mut R) {
        let settable: Vec<usize> = (0..R::infos().len()).filter(|place| R::infos()[*place].rules.create).collect();
        merge(&settable, &self.values, record);
    }

    /// Whether a field was sent.
    pub fn has(&self, name: &str) -> bool {
        is_sent(R::infos(), &self.sent, name)
    }

    /// Returns the fields that were sent.
    pub fn sent(&self) -> impl Iterator<Item = &'static Field<R>> {
        self.sent.iter().map(|place| &R::fields()[*place])
    }
}

fn is_sent(fields: &[FieldInfo], sent: &[usize], name: &str) -> bool {
    sent.iter().any(|place| fields[*place].name == name)
}

/// Copies the fields at these places.
fn merge(places: &[usize], from: &dyn AnyFields, to: &mut dyn AnyFields) {
    for place in places {
        to.at_mut(*place).copy_from(from.at(*place));
    }
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
    let (mut sent, mut warnings) = (Vec::new(), Vec::new());
    if let Some(body) = call.body.clone().map(R::body) {
        (sent, warnings) = read_members(call, &body, &mut values, faults, aim)?;
    }
    Ok(Input { values, sent, warnings })
}

/// Reads the members of a body into the fields of `values`; returns the places of those that were sent, and warnings.
fn read_members(
    call: &Call,
    body: &Json,
    values: &mut dyn AnyFields,
    faults: &mut FieldErrors,
    aim: For,
) -> Result<(Vec<usize>, Vec<String>)> {
    let (mut sent, mut warnings) = (Vec::new(), Vec::new());
    let fields = values.described();
    let settable = || fields.iter().filter(|field| aim.may_set(&field.rules));
    for (name, json) in members(body)? {
        let found = fields.iter().position(|field| field.name == name);
        match found {
            Some(place) if aim.may_set(&fields[place].rules) => {
                let rules = &fields[place].rules;
                if aim.passes_over(json, rules) {
                    continue;
                }
                let read = values.at_mut(place).read_json(json, &aim.rules(rules));
                faults.take(name, read);
                sent.push(place);
            }
            None if !is_base(name) => {
                let names: Vec<&str> = settable().map(|field| field.name).collect();
                unknown(call, name, &names, faults, &mut warnings);
            }
            _ => {
                let sent_as = found.map_or("", |place| fields[place].rules.sent_as);
                let meant = settable().find(|field| field.name == sent_as);
                let hint = meant.map(|field| format!("; did you mean '{}'?", field.name)).unwrap_or_default();
                match call.lenient {
                    true => warnings.push(format!("'{name}' cannot be set here and was ignored{hint}")),
                    false => faults.add(name, violation(FieldCode::ReadOnly, format!("cannot be set here{hint}"))),
                }
            }
        }
    }
    Ok((sent, warnings))
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

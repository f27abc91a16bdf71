//! A body whose errors wait for those that only the database knows, so that one response lists all of them.

use store::{Tx, Value};

use super::{Input, merge, read_create, read_patch};
use crate::call::Call;
use crate::context::Ctx;
use crate::error::{Error, FieldCode, FieldErrors, Result, violation};
use crate::known::exists;
use crate::record::{AnyFields, Body, Fields};
use crate::tables;

/// The parsed fields of a body, some of which may be invalid.
#[derive(Clone)]
pub struct Pending<R: Fields> {
    input: Input<R>,
    faults: FieldErrors,
}

impl<R: Body> Pending<R> {
    /// Reads the fields of a new record.
    pub fn create(call: &Call) -> Result<Pending<R>> {
        Pending::create_with(call, |_, _| {}, false)
    }

    /// Reads the fields of a new record, and checks the rules of the record and of this route. `asks` tells whether the caller
    /// checks more in the transaction than references.
    pub fn create_with(call: &Call, rules: impl FnOnce(&Input<R>, &mut FieldErrors), asks: bool) -> Result<Pending<R>> {
        let (input, faults) = read_create(call, rules)?;
        Pending { input, faults }.unless_hopeless(call, asks)
    }

    /// Reads the fields of a PATCH; at least one is required.
    pub fn patch(call: &Call, asks: bool) -> Result<Pending<R>> {
        let (input, faults) = read_patch(call)?;
        Pending { input, faults }.unless_hopeless(call, asks)
    }

    /// Rejects an invalid body at once if the database knows nothing about it: other writes need not wait.
    fn unless_hopeless(self, call: &Call, asks: bool) -> Result<Pending<R>> {
        let refers = self.input.sent.iter().any(|place| !R::infos()[*place].rules.refers.is_empty());
        if call.early || !asks && !refers {
            self.faults.into_result()?;
            return Ok(Pending { input: self.input, faults: FieldErrors::default() });
        }
        Ok(self)
    }
}

impl<R: Fields> Pending<R> {
    /// Whether the fields are valid by themselves.
    pub fn is_valid(&self) -> bool {
        self.faults.0.is_empty()
    }

    /// Returns the fields if they are valid by themselves.
    pub fn valid(&self) -> Result<&Input<R>> {
        self.faults.clone().into_result()?;
        Ok(&self.input)
    }

    /// Returns the values of the fields; those that are invalid have their default.
    pub fn values(&self) -> &R {
        &self.input.values
    }

    /// Returns the warnings about ignored fields.
    pub fn warnings(&self) -> &[String] {
        &self.input.warnings
    }

    /// Returns the fields if they are valid and refer to records of the account.
    pub fn checked(&self, tx: &mut Tx, ctx: &Ctx) -> Result<&Input<R>> {
        self.missing(tx, ctx)?.into_result()?;
        Ok(&self.input)
    }

    /// Returns the errors of the body and of its references.
    pub fn missing(&self, tx: &mut Tx, ctx: &Ctx) -> Result<FieldErrors> {
        let mut faults = self.faults.clone();
        add_missing(tx, ctx, &self.input.values, &self.input.sent, &mut faults)?;
        Ok(faults)
    }

    /// Copies the sent fields that are valid by themselves to `record`.
    pub fn merge_into(&self, record: &mut R) {
        let is_valid = |place: &usize| !self.faults.has(R::infos()[*place].name);
        let valid: Vec<usize> = self.input.sent.iter().copied().filter(is_valid).collect();
        merge(&valid, &self.input.values, record);
    }

    /// Returns the errors of the body, of its references, and of `error`, which is about the same body.
    pub fn faults(&self, tx: &mut Tx, ctx: &Ctx, error: Error) -> Result<FieldErrors> {
        let mut faults = self.faults.clone();
        faults.join::<()>(Err(error))?;
        add_missing(tx, ctx, &self.input.values, &self.input.sent, &mut faults)?;
        Ok(faults)
    }
}

/// Adds an error for every id in a body that refers to no record of the account.
fn add_missing(tx: &mut Tx, ctx: &Ctx, record: &dyn AnyFields, sent: &[usize], faults: &mut FieldErrors) -> Result<()> {
    for place in sent {
        let field = &record.described()[*place];
        let table = field.rules.refers;
        // Checked first: the rows of a document are a megabyte to write.
        if table.is_empty() || faults.has(field.name) {
            continue;
        }
        let Value::Text(id) = record.at(*place).value_to_db() else { continue };
        if id.is_empty() {
            continue;
        }
        if tables::named(table).is_none() || !exists(tx, ctx, table, &id)? {
            let message = format!("does not match a record in {}", table.replace('_', " "));
            faults.add(field.name, violation(FieldCode::ReferenceNotFound, message));
        }
    }
    Ok(())
}

impl<R: Fields> Input<R> {
    /// Checks that ids in the body refer to records of the account, in `record` as it will be.
    pub fn check_references(&self, tx: &mut Tx, ctx: &Ctx, record: &R) -> Result<()> {
        let mut faults = FieldErrors::default();
        add_missing(tx, ctx, record, &self.sent, &mut faults)?;
        faults.into_result()
    }
}

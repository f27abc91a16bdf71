//! Merging duplicates: the records of the duplicate move to the client or supplier that is kept, which gets the values that
//! it lacks, and the duplicate is deleted.

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Code, Error, FieldCode, Result, violation};
use engine::input;
use engine::input::Input;
use engine::record::{AnyFields, Body, Custom, DETAIL, Link, Model, REQUIRED};
use engine::records::{self, MERGED_INTO, Work};
use serde_json::json;
use store::Tx;

use super::contact::ContactType;

input! {
    /// The duplicate of a client.
    pub struct MergeClient;

    /// The duplicate. Its documents, deals, tickets and other records move to the client in the path, and it is deleted.
    duplicate_id: Link = REQUIRED.refers("clients");
}

input! {
    /// The duplicate of a supplier.
    pub struct MergeSupplier;

    /// The duplicate, which is deleted.
    duplicate_id: Link = REQUIRED.refers("suppliers");
}

/// The body of a merge.
pub trait Duplicate: Body {
    /// Returns the id of the duplicate.
    fn id(&self) -> &str;
}

impl Body for MergeClient {}
impl Body for MergeSupplier {}

impl Duplicate for MergeClient {
    fn id(&self) -> &str {
        &self.duplicate_id.0
    }
}

impl Duplicate for MergeSupplier {
    fn id(&self) -> &str {
        &self.duplicate_id.0
    }
}

/// A record that can be merged with another one.
pub trait Merged: Model {
    /// Returns whether it is a company or a person.
    fn kind(&self) -> ContactType;
    /// Returns the values of its custom fields.
    fn custom_fields(&mut self) -> &mut Custom;
    /// Returns the caller's reference, or an empty text.
    fn external_id(&self) -> &str {
        ""
    }
}

/// `POST …/{id}/merge`
pub fn merge<R: Merged, B: Duplicate>(call: Call) -> Result<Work> {
    let input: Input<B> = input::create(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let kept: R = records::find_to_change(tx, ctx, &call)?;
        let id = &kept.base().id;
        let Some(duplicate) = find_duplicate(tx, ctx, &kept, input.values().id())? else {
            // It was merged before.
            return Ok(Answer::record(ctx, &kept, DETAIL).with_texts("warnings", &input.warnings));
        };
        // If this is interrupted, both still exist and the caller can merge them again.
        if let Some(more) = records::move_links::<R>(tx, ctx, (&duplicate.base().id, id), merge::<R, B>, &call)? {
            return Ok(more);
        }
        let (merged, mut warnings) = join(tx, ctx, &kept, &duplicate)?;
        warnings.splice(0..0, input.warnings.iter().cloned());
        Ok(Answer::record(ctx, &merged, DETAIL).with_texts("warnings", &warnings))
    }))
}

/// Returns the duplicate; none if it was already merged into this record.
fn find_duplicate<R: Merged>(tx: &mut Tx, ctx: &Ctx, kept: &R, id: &str) -> Result<Option<R>> {
    let refused = |code, message: &str| Err(Error::field("duplicate_id", violation(code, message)));
    let name = R::shape().name;
    if kept.base().id == id {
        return refused(FieldCode::InvalidChoice, &format!("is the {name} in the path itself"));
    }
    let duplicate: R = match records::find(tx, ctx, id) {
        Err(error) if error.code == Code::NotFound => {
            if records::merged_into::<R>(tx, ctx, id)?.as_ref() == Some(&kept.base().id) {
                return Ok(None);
            }
            let message = format!("does not match a record in {}", R::shape().table);
            return refused(FieldCode::ReferenceNotFound, &message);
        }
        found => found?,
    };
    if duplicate.kind() != kept.kind() {
        let message = format!("must have the same type as the {name} in the path: {}", kept.kind().wire());
        return refused(FieldCode::InvalidChoice, &message);
    }
    Ok(Some(duplicate))
}

/// Deletes the duplicate, to which nothing refers any more, and completes the record that is kept.
fn join<R: Merged>(tx: &mut Tx, ctx: &Ctx, kept: &R, duplicate: &R) -> Result<(R, Vec<String>)> {
    let (id, gone) = (&kept.base().id, &duplicate.base().id);
    let mut warnings = Vec::new();
    if !kept.external_id().is_empty() && !duplicate.external_id().is_empty() {
        let text = duplicate.external_id();
        warnings.push(format!("The external_id '{text}' of the duplicate is no longer used."));
    }
    // First: the record that is kept may get its external_id, which is unique.
    records::remove_with(tx, ctx, duplicate, &format!("\"{MERGED_INTO}\":{}", json!(id)))?;
    let mut merged = kept.clone();
    fill(&mut merged, kept, duplicate);
    records::update(tx, ctx, kept, &mut merged, "updated")?;
    let event = format!("{}.merged", R::shape().events);
    records::emit_with(tx, ctx, &merged, &event, &format!("\"merged_id\":{}", json!(gone)))?;
    Ok((merged, warnings))
}

/// Fields that belong together: they come from the duplicate only if the record has none of them.
const GROUPS: &[&[&str]] =
    &[&["firstname", "lastname"], &["address", "zipcode", "city", "country"], &["iban", "bank_account_name", "bic"]];

/// Copies the values that a record lacks from its duplicate.
fn fill<R: Merged>(merged: &mut R, kept: &R, duplicate: &R) {
    let (layout, blank) = (R::layout(), R::default());
    for (place, field) in layout.columns() {
        let own = [field.name];
        let group = GROUPS.iter().find(|group| group.contains(&field.name)).copied().unwrap_or(&own);
        let mut together = layout.columns().filter(|(_, other)| group.contains(&other.name));
        if together.all(|(other, _)| kept.at(other).equals(blank.at(other))) {
            merged.at_mut(place).copy_from(duplicate.at(place));
        }
    }
    let mut theirs = duplicate.clone();
    let missing = std::mem::take(&mut theirs.custom_fields().0);
    let values = &mut merged.custom_fields().0;
    for (key, value) in missing {
        if !values.iter().any(|(own, _)| *own == key) {
            values.push((key, value));
        }
    }
}

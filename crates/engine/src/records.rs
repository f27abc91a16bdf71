//! The verbs of every record: list, get, create, change, delete. A resource with other verbs calls these.

mod counts;
mod image;
mod links;
mod outside;
mod together;

use store::{Tx, Value, placed};

pub use crate::call::Work;
use crate::call::{Answer, Call};
use crate::context::Ctx;
use crate::error::{Code, Error, FieldCode, FieldErrors, Result, violation};
use crate::input::pending::Pending;
use crate::input::{self, Input};
use crate::json::Json;
pub use crate::known::{exists, find_beside, known, known_snapshot, remembered};
use crate::record::{
    AnyRecord, CREATED, DETAIL, Fields, Layout, Model, Record, Sql, UPDATED, Views, search_text, stored,
};
use crate::slice::Slice;
use crate::tables::Relink;
use crate::{search, tables};
pub use counts::count;
use counts::count_kind;
pub use image::Image;
pub use links::{MERGED_INTO, is_named, loosen, merged_into, move_links};
use outside::note_outside;
pub use outside::{Accepted, accept_some};
pub use together::{Reference, RemoveTogether, Standing, references, remove_together, standing};

/// `GET …/{id}`
pub fn get<R: Record>(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let record: R = find_in_path(tx, ctx, &call)?;
        Ok(Answer::record(ctx, &record, DETAIL))
    }))
}

/// `POST …`
pub fn create<R: Model>(call: Call) -> Result<Work> {
    created::<R>(call, None)
}

/// Adds errors that only the database knows, such as a name that no record has, about a record and the one before.
pub type StoredCheck<R> = fn(&mut Tx, &Ctx, &R, Option<&R>, &mut FieldErrors) -> Result<()>;

/// `POST …`, with further errors that are listed with all others.
pub fn create_checked<R: Model>(call: Call, check: StoredCheck<R>) -> Result<Work> {
    created(call, Some(check))
}

fn created<R: Model>(call: Call, check: Option<StoredCheck<R>>) -> Result<Work> {
    let pending: Pending<R> = Pending::create_with(&call, |_, _| {}, check.is_some())?;
    Ok(Box::new(move |tx, ctx| {
        let mut record = pending.values().clone();
        set_parent(tx, ctx, &call, &mut record)?;
        let mut faults = pending.missing(tx, ctx)?;
        check_stored(tx, ctx, check, (&record, None), &mut faults)?;
        faults.into_result()?;
        let image = add_as(tx, ctx, &mut record, "created")?;
        let warnings = [pending.warnings(), record.warnings().as_slice()].concat();
        Ok(image.created(ctx, &record, CREATED).with_texts("warnings", &warnings))
    }))
}

/// Sets the parent of a new record, which is in the path.
fn set_parent(tx: &mut Tx, ctx: &Ctx, call: &Call, record: &mut dyn AnyRecord) -> Result<()> {
    let layout = record.layout();
    let Some((place, parent)) = layout.parent() else { return Ok(()) };
    parent_exists(&layout, tx, ctx, call)?;
    let set = record.at_mut(place).read_json(&Json::Text(call.id().to_string()), &parent.rules);
    set.map_err(|wrong| Error::field(parent.name, wrong))
}

/// `PATCH …/{id}`
pub fn patch<R: Model>(call: Call) -> Result<Work> {
    let pending: Pending<R> = Pending::patch(&call, false)?;
    Ok(Box::new(move |tx, ctx| patched(tx, ctx, &call, &pending, None)))
}

/// `PATCH …/{id}`, with further errors that are listed with all others.
pub fn patch_checked<R: Model>(call: Call, check: StoredCheck<R>) -> Result<Work> {
    let pending: Pending<R> = Pending::patch(&call, true)?;
    Ok(Box::new(move |tx, ctx| patched(tx, ctx, &call, &pending, Some(check))))
}

fn patched<R: Model>(
    tx: &mut Tx,
    ctx: &Ctx,
    call: &Call,
    pending: &Pending<R>,
    check: Option<StoredCheck<R>>,
) -> Result<Answer> {
    let before: R = find_to_change(tx, ctx, call)?;
    let mut record = before.clone();
    pending.merge_into(&mut record);
    let mut faults = pending.missing(tx, ctx)?;
    let mut whole = FieldErrors::default();
    record.check(&mut whole);
    faults.join(whole.into_result())?;
    check_stored(tx, ctx, check, (&record, Some(&before)), &mut faults)?;
    faults.into_result()?;
    let image = change_as(tx, ctx, &before, &mut record, "updated")?;
    let warnings = [pending.warnings(), record.warnings().as_slice()].concat();
    Ok(Image::answer(image, ctx, &record, UPDATED).with_texts("warnings", &warnings))
}

/// Adds the errors that only the database knows, of fields that have none yet.
fn check_stored<R: Model>(
    tx: &mut Tx,
    ctx: &Ctx,
    check: Option<StoredCheck<R>>,
    (record, before): (&R, Option<&R>),
    faults: &mut FieldErrors,
) -> Result<()> {
    let mut stored = FieldErrors::default();
    if let Some(check) = check {
        check(tx, ctx, record, before, &mut stored)?;
    }
    faults.join(stored.into_result()).map(drop)
}

/// Completes and saves a new record, and emits its events.
pub fn add<R: Model>(tx: &mut Tx, ctx: &Ctx, record: &mut R) -> Result<()> {
    add_as(tx, ctx, record, "created").map(drop)
}

/// Completes and saves a new record under an event other than `created`; returns the image that its events contain.
pub fn add_as<R: Model>(tx: &mut Tx, ctx: &Ctx, record: &mut R, event: &str) -> Result<Image> {
    record.before_save(tx, ctx, None)?;
    check_choices(tx, ctx, None, record)?;
    record.forget_sent();
    check_unique(tx, ctx, record)?;
    check_room(R::MOST, R::shape().table, tx, ctx)?;
    let image = insert_as(tx, ctx, record, event)?;
    follow_with(tx, ctx, None, record, &image)?;
    Ok(image)
}

/// Rejects a new record of a kind that the account has too many of.
fn check_room(most: i64, table: &str, tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    let count = format!("SELECT count(*) FROM {table} WHERE account_id = $1");
    if most == i64::MAX || tx.int(&count, &[ctx.account.into()])? < most {
        return Ok(());
    }
    let message = format!("An account may have at most {most} {}. Delete one first.", table.replace('_', " "));
    Err(Error::new(Code::LimitReached, message))
}

/// Completes and saves a changed record, and emits its events.
pub fn change<R: Model>(tx: &mut Tx, ctx: &Ctx, before: &R, record: &mut R, event: &str) -> Result<()> {
    change_as(tx, ctx, before, record, event).map(drop)
}

/// Completes and saves a changed record; returns the image that its events contain, or `None` if nothing changed.
pub fn change_as<R: Model>(tx: &mut Tx, ctx: &Ctx, before: &R, record: &mut R, event: &str) -> Result<Option<Image>> {
    record.before_save(tx, ctx, Some(before))?;
    check_choices(tx, ctx, Some(before), record)?;
    record.forget_sent();
    check_unique(tx, ctx, record)?;
    if record == before {
        follow(tx, ctx, Some(before), record)?;
        return Ok(None);
    }
    let image = touch_as(tx, ctx, before, record, event)?;
    follow_with(tx, ctx, Some(before), record, &image)?;
    Ok(Some(image))
}

/// Emits the events of a change, and does what follows from it.
pub fn follow<R: Model>(tx: &mut Tx, ctx: &Ctx, before: Option<&R>, record: &R) -> Result<()> {
    for event in record.events(before) {
        happened(tx, ctx, record, event)?;
    }
    record.after_save(tx, ctx, before)
}

fn follow_with<R: Model>(tx: &mut Tx, ctx: &Ctx, before: Option<&R>, record: &R, image: &Image) -> Result<()> {
    for event in record.events(before) {
        image.tell(tx, ctx, record, &format!("{}.{event}", R::shape().events))?;
    }
    record.after_save(tx, ctx, before)
}

/// `DELETE …/{id}` that returns the deleted record.
pub fn delete_shown<R: Record>(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let record: R = find_to_change(tx, ctx, &call)?;
        if let Some(more) = loosen(tx, ctx, &record, delete_shown::<R>, &call)? {
            return Ok(more);
        }
        remove(tx, ctx, &record)?;
        Ok(Answer::record(ctx, &record, DETAIL))
    }))
}

/// `DELETE …/{id}` without a response body.
pub fn delete<R: Record>(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let record: R = find_to_change(tx, ctx, &call)?;
        if let Some(more) = loosen(tx, ctx, &record, delete::<R>, &call)? {
            return Ok(more);
        }
        remove(tx, ctx, &record)?;
        Ok(Answer::empty())
    }))
}

/// Runs the call again in another transaction, for work that is too much for one.
pub fn once_more(handler: fn(Call) -> Result<Work>, call: &Call) -> Answer {
    let call = call.clone();
    Answer::after(move |_, _| handler(call.clone()))
}

/// An action without a body: `verb` changes the record and returns the name of the event, or an empty string if there
/// was nothing to change.
pub fn act<R: Model>(
    call: Call,
    view: Views,
    verb: impl Fn(&mut R, &Ctx) -> Result<&'static str> + Send + Sync + 'static,
) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let before: R = find_to_change(tx, ctx, &call)?;
        let mut record = before.clone();
        let event = verb(&mut record, ctx)?;
        change(tx, ctx, &before, &mut record, event)?;
        Ok(Answer::record(ctx, &record, view).with_texts("warnings", &warnings))
    }))
}

/// The record with this id in the account.
pub fn find<R: Record>(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<R> {
    crate::known::find(tx, ctx, id)
}

/// Returns the records with these ids, in any order; missing ones are left out.
pub fn find_some<R: Record>(tx: &mut Tx, ctx: &Ctx, ids: &[&str]) -> Result<Vec<R>> {
    let Some((sql, values)) = some_statement(R::sql(), ctx, ids) else { return Ok(Vec::new()) };
    Ok(tx.all(&sql, &values, R::from_row)?)
}

fn some_statement<'i>(sql: &Sql, ctx: &Ctx, ids: &[&'i str]) -> Option<(String, Vec<Value<'i>>)> {
    if ids.is_empty() {
        return None;
    }
    let mut values: Vec<Value> = vec![ctx.account.into()];
    let places = placed(&mut values, ids.iter().map(|id| Value::from(*id)));
    Some((format!("{} WHERE account_id = $1 AND id IN ({})", sql.select, places.join(", ")), values))
}

/// The record that the path names: the last id, which must belong to the first.
pub fn find_in_path<R: Record>(tx: &mut Tx, ctx: &Ctx, call: &Call) -> Result<R> {
    let found = find(tx, ctx, call.last_id());
    let record: R = found.map_err(|error| links::missing(R::shape(), tx, ctx, call.last_id(), error))?;
    is_under(&record, call.id())?;
    Ok(record)
}

/// Rejects a record with another parent.
fn is_under(record: &dyn AnyRecord, id: &str) -> Result<()> {
    let layout = record.layout();
    match layout.parent() {
        Some((place, _)) if record.at(place).value_to_db() != Value::from(id) => {
            Err(Error::not_found(layout.shape.name))
        }
        _ => Ok(()),
    }
}

/// The record that the path names, if its version satisfies `If-Match`.
pub fn find_to_change<R: Record>(tx: &mut Tx, ctx: &Ctx, call: &Call) -> Result<R> {
    let record: R = find_in_path(tx, ctx, call)?;
    ctx.expects(record.base().version)?;
    Ok(record)
}

/// The record that the path starts with must be in the account.
pub fn check_parent<R: Record>(tx: &mut Tx, ctx: &Ctx, call: &Call) -> Result<()> {
    parent_exists(&R::layout(), tx, ctx, call)
}

fn parent_exists(layout: &Layout, tx: &mut Tx, ctx: &Ctx, call: &Call) -> Result<()> {
    let Some((_, parent)) = layout.parent() else { return Ok(()) };
    let table = parent.rules.refers;
    if call.id().contains('\0') || !exists(tx, ctx, table, call.id())? {
        return Err(Error::not_found(tables::name_of(table)));
    }
    Ok(())
}

/// Saves a new record, with its event.
pub fn insert<R: Record>(tx: &mut Tx, ctx: &Ctx, record: &mut R) -> Result<()> {
    insert_as(tx, ctx, record, "created").map(drop)
}

fn insert_as(tx: &mut Tx, ctx: &Ctx, record: &mut dyn AnyRecord, event: &str) -> Result<Image> {
    let base = record.common_mut();
    if base.id.is_empty() {
        base.id = ctx.new_id();
    }
    base.created_at = ctx.now;
    base.updated_at = ctx.now;
    base.version = 1;
    insert_silent(tx, ctx, record)?;
    search::put(tx, ctx, record)?;
    append_event(tx, ctx, record, event)
}

/// Saves a new record without an event, since the record is its own history.
pub fn insert_silent(tx: &mut Tx, ctx: &Ctx, record: &dyn AnyRecord) -> Result<()> {
    insert_uncounted(tx, ctx, record)?;
    count_kind(record.layout().shape.name, tx, ctx, 1)
}

/// Saves a new record without an event and without counting it: the caller counts many together.
pub fn insert_uncounted(tx: &mut Tx, ctx: &Ctx, record: &dyn AnyRecord) -> Result<()> {
    let mut values: Vec<Value> = vec![ctx.account.into(), (&record.common().id).into()];
    values.extend(stored(record));
    tx.send(&record.layout().sql.insert, &values)?;
    Ok(())
}

/// A record as the API shows it, whatever it belongs to.
pub fn shown<R: Record>(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<Option<String>> {
    if id.contains('\0') {
        return Ok(None);
    }
    let found = tx.first(&R::sql().get, &[ctx.account.into(), id.into()], R::from_row)?;
    Ok(found.map(|record| {
        let mut data = Vec::with_capacity(512);
        record.write_json(DETAIL, ctx, &mut data);
        String::from_utf8(data).unwrap_or_default()
    }))
}

/// Saves a changed record, with its event; one that is the same as before is left alone.
pub fn update<R: Record>(tx: &mut Tx, ctx: &Ctx, before: &R, record: &mut R, event: &str) -> Result<()> {
    if record == before {
        return Ok(());
    }
    touch(tx, ctx, before, record, event)
}

/// Saves a record with a new version and an event, even if none of its own fields changed: for a record whose response
/// includes records of another table that did.
pub fn touch<R: Record>(tx: &mut Tx, ctx: &Ctx, before: &R, record: &mut R, event: &str) -> Result<()> {
    touch_as(tx, ctx, before, record, event).map(drop)
}

fn touch_as(tx: &mut Tx, ctx: &Ctx, before: &dyn AnyRecord, record: &mut dyn AnyRecord, event: &str) -> Result<Image> {
    note_outside(tx, ctx, before)?;
    let base = record.common_mut();
    base.updated_at = ctx.now;
    base.version += 1;
    send_update(tx, ctx, before, record)?;
    if record.layout().is_searched() && search_text(record) != search_text(before) {
        search::put(tx, ctx, record)?;
    }
    append_event(tx, ctx, record, event)
}

/// Updates the row of a record: the columns that differ from the row as it is.
fn send_update(tx: &mut Tx, ctx: &Ctx, before: &dyn AnyRecord, record: &dyn AnyRecord) -> Result<()> {
    let (layout, base) = (record.layout(), record.common());
    let differs = |place: &usize| !before.at(*place).equals(record.at(*place));
    let changed: Vec<usize> = layout.sql.stored.iter().copied().filter(differs).collect();
    let names: Vec<&'static str> = changed.iter().map(|place| layout.fields[*place].name).collect();
    let some = layout.sql.update_of(layout.shape.table, &names);
    let mut values = match &some {
        Some(_) => vec![base.updated_at.0.into(), base.version.into()],
        None => stored(record),
    };
    if some.is_some() {
        values.extend(changed.iter().map(|place| record.at(*place).value_to_db()));
    }
    values.extend([ctx.account.into(), (&base.id).into()]);
    Ok(tx.send(some.as_deref().unwrap_or(&layout.sql.update), &values)?)
}

/// Removes a record, with its event.
pub fn remove(tx: &mut Tx, ctx: &Ctx, record: &dyn AnyRecord) -> Result<()> {
    remove_with(tx, ctx, record, "")
}

/// Removes a record, with one more member in the data of its event: `"name":value`, or empty.
pub fn remove_with(tx: &mut Tx, ctx: &Ctx, record: &dyn AnyRecord, member: &str) -> Result<()> {
    let (layout, id) = (record.layout(), &record.common().id);
    links::check_free(layout.shape, tx, ctx, id)?;
    tx.send(&layout.sql.delete, &[ctx.account.into(), id.into()])?;
    count_kind(layout.shape.name, tx, ctx, -1)?;
    search::remove(&layout, tx, ctx, id)?;
    links::unlink_all(layout.shape, tx, ctx, id, &Slice::endless())?;
    emit_with(tx, ctx, record, &format!("{}.deleted", layout.shape.events), member)
}

/// Points a link in the records that refer to a record at another one, or clears it, as far as it fits in the slice; returns
/// whether none is left.
pub fn relink<R: Record>(tx: &mut Tx, ctx: &Ctx, link: &Relink, slice: &Slice) -> Result<bool> {
    relink_with::<R>(tx, ctx, link, slice, |tx, ctx, before, record| update(tx, ctx, before, record, "updated"))
}

/// As [`relink`], for records that do more than keep the new link: `change` saves each of them, or removes it. A record that
/// is owned goes with the one that it refers to.
pub fn relink_with<R: Record>(
    tx: &mut Tx,
    ctx: &Ctx,
    link: &Relink,
    slice: &Slice,
    change: impl Fn(&mut Tx, &Ctx, &R, &mut R) -> Result<()>,
) -> Result<bool> {
    let Some(place) = R::layout().place(link.field) else { return Ok(true) };
    let is_owned = R::infos()[place].rules.owned;
    loop {
        let naming = match link.ids {
            Some(ids) => ids.to_vec(),
            None => links::naming(R::shape().table, tx, ctx.account, link.field, link.from)?,
        };
        if naming.is_empty() {
            return Ok(true);
        }
        for id in &naming {
            if slice.is_over() {
                return Ok(false);
            }
            let before: R = match find::<R>(tx, ctx, id) {
                Err(error) if link.ids.is_some() && error.code == Code::NotFound => continue,
                found => found?,
            };
            if link.ids.is_some() && !is_link(&before, place, link.from) {
                continue;
            }
            if link.to.is_empty() && is_owned {
                remove(tx, ctx, &before)?;
            } else {
                let mut record = before.clone();
                point(&mut record, place, link.to)?;
                change(tx, ctx, &before, &mut record)?;
            }
            slice.did_one();
        }
        if link.ids.is_some() {
            return Ok(true);
        }
    }
}

/// Whether a link of a record is to the record with this id.
fn is_link(record: &dyn AnyRecord, place: usize, id: &str) -> bool {
    record.at(place).value_to_db() == Value::from(id)
}

/// Points a link at another record, or clears it.
fn point(record: &mut dyn AnyRecord, place: usize, to: &str) -> Result<()> {
    let field = &record.described()[place];
    record.at_mut(place).copy_from(&*(field.blank)());
    if to.is_empty() {
        return Ok(());
    }
    let set = record.at_mut(place).read_json(&Json::Text(to.to_string()), &field.rules);
    set.map_err(|wrong| Error::field(field.name, wrong))
}

/// Emits an event of a record; returns the image of the record.
fn append_event(tx: &mut Tx, ctx: &Ctx, record: &dyn AnyRecord, event: &str) -> Result<Image> {
    let image = Image::new(ctx, record)?;
    image.tell(tx, ctx, record, &format!("{}.{event}", record.layout().shape.events))?;
    Ok(image)
}

/// Writes that something happened to a record, named as the record's events are.
pub fn happened(tx: &mut Tx, ctx: &Ctx, record: &dyn AnyRecord, event: &str) -> Result<()> {
    emit(tx, ctx, record, &format!("{}.{event}", record.layout().shape.events))
}

/// Writes a log line for a custom event of a record.
pub fn emit(tx: &mut Tx, ctx: &Ctx, record: &dyn AnyRecord, name: &str) -> Result<()> {
    emit_with(tx, ctx, record, name, "")
}

/// Writes that something happened to a record, with one more member in the event's data: `"name":value`, or empty.
pub fn emit_with(tx: &mut Tx, ctx: &Ctx, record: &dyn AnyRecord, name: &str, member: &str) -> Result<()> {
    note_outside(tx, ctx, record)?;
    Image::with(ctx, record, member)?.tell(tx, ctx, record, name)
}

/// Checks that ids in a body refer to records of the account.
pub fn check_references<R: Fields>(tx: &mut Tx, ctx: &Ctx, record: &R, input: &Input<R>) -> Result<()> {
    input.check_references(tx, ctx, record)
}

/// Checks that new references are to records that can be chosen; one that was chosen before stays.
fn check_choices(tx: &mut Tx, ctx: &Ctx, before: Option<&dyn AnyRecord>, record: &dyn AnyRecord) -> Result<()> {
    let mut faults = FieldErrors::default();
    for (place, field) in record.layout().columns().filter(|(_, field)| !field.rules.refers.is_empty()) {
        let Some(choice) = tables::choice(field.rules.refers) else { continue };
        let Value::Text(id) = record.at(place).value_to_db() else { continue };
        if id.is_empty() || before.is_some_and(|before| before.at(place).equals(record.at(place))) {
            continue;
        }
        if let Some(why) = (choice.unfit)(tx, ctx, &id)? {
            faults.add(field.name, violation(FieldCode::InvalidChoice, why));
        }
    }
    faults.into_result()
}

/// What must differ from all other records of the account does. A unique index makes sure of it, so this is only asked to
/// say which field was refused.
fn check_unique(tx: &mut Tx, ctx: &Ctx, record: &dyn AnyRecord) -> Result<()> {
    let Layout { shape, fields, .. } = record.layout();
    if !tx.asks_first() {
        return Ok(());
    }
    for (place, field) in fields.iter().enumerate() {
        let (name, Some(others)) = (field.name, field.rules.unique) else { continue };
        let value = record.at(place).value_to_db();
        if value == Value::from("") {
            continue;
        }
        let mut sql = format!(
            "SELECT count(*) FROM {} WHERE account_id = $1 AND \"{name}\" = $2 AND \"{name}\" <> ''",
            shape.table
        );
        let mut values = vec![ctx.account.into(), value.clone()];
        for (place, other) in fields.iter().enumerate().filter(|(_, other)| others.contains(&other.name)) {
            values.push(record.at(place).value_to_db());
            sql.push_str(&format!(" AND \"{}\" = ${}", other.name, values.len()));
        }
        values.push((&record.common().id).into());
        sql.push_str(&format!(" AND id <> ${}", values.len()));
        if tx.int(&sql, &values)? > 0 {
            let code = if name == "external_id" { Code::DuplicateExternalId } else { Code::Duplicate };
            let Value::Text(text) = value else {
                return Err(Error::new(code, format!("Another record has this {name}.")));
            };
            let kind = shape.name.replace('_', " ");
            return Err(Error::new(code, format!("Another {kind} has the {name} '{text}'.")));
        }
    }
    Ok(())
}

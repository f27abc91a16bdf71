//! The tables of the registry: what the engine needs to know about other records, such as references to them.

use std::sync::OnceLock;

use store::Tx;

use crate::context::Ctx;
use crate::error::Result;
use crate::log::Event;
use crate::record::{AnyRecord, FieldInfo, Shape};
use crate::slice::Slice;

/// How the records of a resource relate to the log.
#[derive(Clone, Copy, Debug)]
pub enum Logged {
    /// The last line shows the current record, except for these fields, which change without a line.
    Except(&'static [&'static str]),
    /// Records change without lines.
    No,
}

/// A table of records.
pub struct Table {
    /// The static description of the record.
    pub shape: &'static Shape,
    /// The path of its list.
    pub path: String,
    /// The fields of the record.
    pub fields: Vec<FieldInfo>,
    /// Points a field in its records that refer to a record at another one, or clears it.
    pub relink: RelinkRecords,
    /// Whether its links are cleared last, in the transaction that deletes the record.
    pub relinks_last: bool,
    /// Whether it has records of its own: some resources only show those of others.
    pub stored: bool,
    /// Whether its rows expire: they are not counted, and may refer to deleted records.
    pub fleeting: bool,
    /// Whether the log shows the current records.
    pub logged: Logged,
    /// Whether a record is compared with its last line before it gets a new one.
    pub guarded: bool,
}

/// A link that changes, in all records of a table that have it.
#[derive(Clone, Copy, Debug)]
pub struct Relink<'l> {
    /// The field.
    pub field: &'static str,
    /// The record that it refers to.
    pub from: &'l str,
    /// The record that it will refer to; empty if the link is cleared.
    pub to: &'l str,
    /// The records to change, if they were looked up before the transaction. Some may have changed since.
    pub ids: Option<&'l [String]>,
}

/// Records that have a link, looked up before the transaction that changes it.
#[derive(Clone, Debug)]
pub struct Ahead {
    /// The place of their table among all tables.
    pub place: usize,
    /// The field.
    pub field: &'static str,
    /// Their ids.
    pub ids: Vec<String>,
}

/// Changes a link in the records that have it, as far as fits in a slice; returns whether none is left.
pub type RelinkRecords = fn(&mut Tx, &Ctx, &Relink, &Slice) -> Result<bool>;

/// Called for an event of a record, in its transaction.
pub type OnEvent = fn(&mut Tx, &Ctx, &Event) -> Result<()>;

/// Rejects the deletion of a record while something else needs it.
pub struct Guard {
    /// The table of the record.
    pub table: &'static str,
    /// Returns an error if the record with this id is needed.
    pub check: fn(&mut Tx, &Ctx, &str) -> Result<()>,
}

/// Records that need the record that they refer to, which can therefore not be deleted.
pub struct Holder {
    /// The table of the needed record.
    pub table: &'static str,
    /// The table of those that need it.
    pub by: &'static str,
    /// Their field that refers to it.
    pub field: &'static str,
    /// The index of that field.
    pub index: &'static str,
    /// Returns a condition, or an empty text if all of them need it.
    pub when: fn() -> String,
    /// One and several of them, for the message: `open order`, `open orders`.
    pub what: (&'static str, &'static str),
}

/// Rejects a new reference to a record that exists, but cannot be chosen.
pub struct Choice {
    /// The table of the record.
    pub table: &'static str,
    /// Returns why the record with this id cannot be chosen, as the end of a sentence.
    pub unfit: fn(&mut Tx, &Ctx, &str) -> Result<Option<&'static str>>,
}

struct Installed {
    tables: Vec<Table>,
    on_event: &'static [OnEvent],
    guards: &'static [Guard],
    holders: &'static [Holder],
    choices: &'static [Choice],
}

static INSTALLED: OnceLock<Installed> = OnceLock::new();

/// Sets the tables, the event handlers, the guards, the holders and the choices.
pub fn install(
    tables: Vec<Table>,
    on_event: &'static [OnEvent],
    guards: &'static [Guard],
    holders: &'static [Holder],
    choices: &'static [Choice],
) {
    let _ = INSTALLED.set(Installed { tables, on_event, guards, holders, choices });
}

/// Returns the records that need records of `table`.
pub fn holders(table: &str) -> impl Iterator<Item = &'static Holder> {
    let all = INSTALLED.get().map_or(&[][..], |installed| installed.holders);
    all.iter().filter(move |holder| holder.table == table)
}

/// Returns what limits the choice of records of `table`, if anything does.
pub fn choice(table: &str) -> Option<&'static Choice> {
    INSTALLED.get().and_then(|installed| installed.choices.iter().find(|choice| choice.table == table))
}

/// Returns all tables.
pub fn all() -> &'static [Table] {
    INSTALLED.get().map_or(&[], |installed| installed.tables.as_slice())
}

/// Returns the table with this name, if it holds records.
pub fn named(table: &str) -> Option<&'static Table> {
    all().iter().find(|own| own.shape.table == table)
}

/// Returns the table of this kind of record.
pub fn of_kind(kind: &str) -> Option<&'static Table> {
    all().iter().find(|own| own.shape.name == kind)
}

/// Returns the name of a record of `table`.
pub fn name_of(table: &str) -> &'static str {
    named(table).map_or("record", |own| own.shape.name)
}

/// Returns the path of a record.
pub fn location(record: &dyn AnyRecord) -> String {
    let layout = record.layout();
    let path = named(layout.shape.table).map_or("", |own| own.path.as_str());
    let parent = layout.parent().map(|(place, _)| match record.at(place).value_to_db() {
        store::Value::Text(id) => id.into_owned(),
        _ => String::new(),
    });
    format!("{}/{}", path.replace("{id}", &parent.unwrap_or_default()), record.common().id)
}

/// Calls all event handlers.
pub fn notify(tx: &mut Tx, ctx: &Ctx, event: &Event) -> Result<()> {
    INSTALLED.get().map_or(&[][..], |installed| installed.on_event).iter().try_for_each(|hear| hear(tx, ctx, event))
}

/// Rejects the deletion of a record that is still needed.
pub fn guard(tx: &mut Tx, ctx: &Ctx, table: &str, id: &str) -> Result<()> {
    let guards = INSTALLED.get().map_or(&[][..], |installed| installed.guards);
    guards.iter().filter(|guard| guard.table == table).try_for_each(|guard| (guard.check)(tx, ctx, id))
}

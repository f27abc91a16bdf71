//! The tables of the registry: what the engine needs to know about other records, such as references to them.

use std::sync::OnceLock;

use store::Tx;

use crate::context::Ctx;
use crate::error::Result;
use crate::log::Event;
use crate::record::{FieldInfo, Record, Shape};
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
    /// Clears a field in its records that refer to a deleted record.
    pub unlink: Unlink,
    /// Whether its rows expire: they are not counted, and may refer to deleted records.
    pub fleeting: bool,
    /// Whether the log shows the current records.
    pub logged: Logged,
}

/// Clears a field in the records that refer to a deleted record, as far as fits in a slice; returns whether none is
/// left.
pub type Unlink = fn(&mut Tx, &Ctx, &str, &str, &Slice) -> Result<bool>;

/// Called for an event of a record, in its transaction.
pub type OnEvent = fn(&mut Tx, &Ctx, &Event) -> Result<()>;

/// Rejects the deletion of a record while something else needs it.
pub struct Guard {
    /// The table of the record.
    pub table: &'static str,
    /// Returns an error if the record with this id is needed.
    pub check: fn(&mut Tx, &Ctx, &str) -> Result<()>,
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
    choices: &'static [Choice],
}

static INSTALLED: OnceLock<Installed> = OnceLock::new();

/// Sets the tables, the event handlers, the guards and the choices.
pub fn install(tables: Vec<Table>, on_event: &'static [OnEvent], guards: &'static [Guard], choices: &'static [Choice]) {
    let _ = INSTALLED.set(Installed { tables, on_event, guards, choices });
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
pub fn location<R: Record>(record: &R) -> String {
    let path = named(R::shape().table).map_or("", |own| own.path.as_str());
    let parent = R::parent().map(|parent| match parent.to_db(record) {
        store::Value::Text(id) => id.into_owned(),
        _ => String::new(),
    });
    format!("{}/{}", path.replace("{id}", &parent.unwrap_or_default()), record.base().id)
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

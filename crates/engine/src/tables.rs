//! The tables of the registry: what the engine needs to know about records of other kinds, such as references to them.

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
    /// The last entry shows the record as it is, but for these fields, which change without one.
    Except(&'static [&'static str]),
    /// Its records change without entries.
    No,
}

/// A table of records.
pub struct Table {
    /// What is said about the record.
    pub shape: &'static Shape,
    /// The path of its list.
    pub path: String,
    /// The fields of the record.
    pub fields: Vec<FieldInfo>,
    /// Clears a field in the records of it that name a record which is gone.
    pub unlink: Unlink,
    /// Its rows go with their age: they are not counted, and may name what is gone.
    pub fleeting: bool,
    /// Whether the log shows its records as they are.
    pub logged: Logged,
}

/// Clears a field in the records that name a record which is gone, as far as fits in a slice; whether none is left.
pub type Unlink = fn(&mut Tx, &Ctx, &str, &str, &Slice) -> Result<bool>;

/// Hears of an event of a record, in its transaction.
pub type OnEvent = fn(&mut Tx, &Ctx, &Event) -> Result<()>;

/// Refuses to delete a record of another room while it is needed.
pub struct Guard {
    /// The table of the record.
    pub table: &'static str,
    /// An error when the record with this id is needed.
    pub check: fn(&mut Tx, &Ctx, &str) -> Result<()>,
}

struct Installed {
    tables: Vec<Table>,
    on_event: &'static [OnEvent],
    guards: &'static [Guard],
}

static INSTALLED: OnceLock<Installed> = OnceLock::new();

/// Says which tables there are, who hears of events and who refuses deletions.
pub fn install(tables: Vec<Table>, on_event: &'static [OnEvent], guards: &'static [Guard]) {
    let _ = INSTALLED.set(Installed { tables, on_event, guards });
}

/// Every table.
pub fn all() -> &'static [Table] {
    INSTALLED.get().map_or(&[], |installed| installed.tables.as_slice())
}

/// The table with this name, if records are kept in it.
pub fn named(table: &str) -> Option<&'static Table> {
    all().iter().find(|own| own.shape.table == table)
}

/// What one record of `table` is called.
pub fn name_of(table: &str) -> &'static str {
    named(table).map_or("record", |own| own.shape.name)
}

/// The address of a record.
pub fn location<R: Record>(record: &R) -> String {
    let path = named(R::shape().table).map_or("", |own| own.path.as_str());
    let parent = R::parent().map(|parent| match (parent.to_db)(record) {
        store::Value::Text(id) => id.into_owned(),
        _ => String::new(),
    });
    format!("{}/{}", path.replace("{id}", &parent.unwrap_or_default()), record.base().id)
}

/// Lets everybody hear of an event.
pub fn notify(tx: &mut Tx, ctx: &Ctx, event: &Event) -> Result<()> {
    INSTALLED.get().map_or(&[][..], |installed| installed.on_event).iter().try_for_each(|hear| hear(tx, ctx, event))
}

/// Refuses to delete a record that something still needs.
pub fn guard(tx: &mut Tx, ctx: &Ctx, table: &str, id: &str) -> Result<()> {
    let guards = INSTALLED.get().map_or(&[][..], |installed| installed.guards);
    guards.iter().filter(|guard| guard.table == table).try_for_each(|guard| (guard.check)(tx, ctx, id))
}

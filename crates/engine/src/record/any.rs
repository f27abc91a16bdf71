//! Records without their type. What needs no more than this is compiled once, not once for each kind of record.

use std::ops::Range;

use store::{Row, Value};

use super::field::{AnyKind, FieldInfo};
use super::rules::{DETAIL, Rules, Views};
use super::shape::{Base, Shape};
use super::sql::{BASE_COLUMNS, Sql};
use super::url::ShownUrl;
use crate::clock::Moment;
use crate::context::Ctx;
use crate::json::{write_name, write_text};
use crate::secrets::vault::is_sealed;

/// What a record starts with in the log, if it has more columns than the API shows.
pub const HIDDEN: &str = "{\"hidden\":";
/// Stands for a secret in the log.
const SECRET: &str = "(secret)";

/// What is known about a kind of record.
#[derive(Clone, Copy)]
pub struct Layout {
    /// Its description.
    pub shape: &'static Shape,
    /// Its fields in order.
    pub fields: &'static [FieldInfo],
    /// Its statements.
    pub sql: &'static Sql,
}

impl Layout {
    /// Returns the stored fields with their places.
    pub fn columns(&self) -> impl Iterator<Item = (usize, &'static FieldInfo)> {
        self.fields.iter().enumerate().filter(|(_, field)| !field.rules.sent_only)
    }

    /// Returns the place of a field.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// Returns the field that refers to its parent, with its place.
    pub fn parent(&self) -> Option<(usize, &'static FieldInfo)> {
        let place = self.place(self.shape.parent)?;
        Some((place, &self.fields[place]))
    }

    /// Whether any field is searchable.
    pub fn is_searched(&self) -> bool {
        self.fields.iter().any(|field| field.rules.search)
    }

    /// Whether the log stores more or less of a record than the API shows.
    pub fn is_logged_otherwise(&self) -> bool {
        !self.shape.meta.includes(DETAIL)
            || self.columns().any(|(_, field)| self.shape.hides(field))
            || self.shape.addresses.iter().any(|address| address.views.includes(DETAIL))
    }

    /// Whether a record is written identically in two views.
    pub fn looks_alike(&self, one: Views, other: Views) -> bool {
        let alike = |views: Views| views.includes(one) == views.includes(other);
        let shape = self.shape;
        self.fields.iter().all(|field| alike(field.rules.views))
            && shape.addresses.iter().all(|address| alike(address.views))
            && [shape.created_at, shape.updated_at, shape.meta].into_iter().all(alike)
    }
}

/// A value with fields of any type: a record or a body.
pub trait AnyFields {
    /// Returns its fields in order.
    fn described(&self) -> &'static [FieldInfo];
    /// Returns the value of the field at a place.
    fn at(&self, place: usize) -> &dyn AnyKind;
    /// Returns the value of the field at a place, mutably.
    fn at_mut(&mut self, place: usize) -> &mut dyn AnyKind;
}

/// A record of any kind.
pub trait AnyRecord: AnyFields {
    /// Returns what is known about its kind.
    fn layout(&self) -> Layout;
    /// Returns the fields of every record.
    fn common(&self) -> &Base;
    /// Returns the fields of every record, mutably.
    fn common_mut(&mut self) -> &mut Base;
}

/// Reads a row that has the columns of every record and then those of the fields at `places`.
pub(super) fn read_row(record: &mut dyn AnyRecord, row: &Row, places: &[usize]) -> store::Result<()> {
    let Layout { shape, fields, .. } = record.layout();
    let table = shape.table;
    let id = row.text(0).map_err(|error| error.at(table, "", "id"))?;
    let at = |column: &'static str| move |error: store::Error| error.at(table, id, column);
    *record.common_mut() = Base {
        id: id.to_string(),
        created_at: Moment::from_db(row, 1).map_err(at("created_at"))?,
        updated_at: Moment::from_db(row, 2).map_err(at("updated_at"))?,
        version: row.int(3).map_err(at("version"))?,
    };
    for (column, place) in places.iter().enumerate() {
        let read = record.at_mut(*place).read_column(row, BASE_COLUMNS + column);
        read.map_err(at(fields[*place].name))?;
    }
    Ok(())
}

/// Returns the columns of a record behind its id.
pub(crate) fn stored(record: &dyn AnyRecord) -> Vec<Value<'_>> {
    let (layout, base) = (record.layout(), record.common());
    let mut values = Vec::with_capacity(BASE_COLUMNS + layout.fields.len());
    values.extend([base.created_at.0.into(), base.updated_at.0.into(), base.version.into()]);
    values.extend(layout.sql.stored.iter().map(|place| record.at(*place).value_to_db()));
    values
}

/// Writes a record as the API shows it in `view`; returns where its URLs are.
pub(crate) fn write_json(record: &dyn AnyRecord, view: Views, ctx: &Ctx, out: &mut Vec<u8>) -> Range<usize> {
    let (Layout { shape, fields, .. }, base) = (record.layout(), record.common());
    out.extend_from_slice(b"{\"id\":");
    write_text(out, &base.id);
    for (place, field) in fields.iter().enumerate() {
        if field.rules.views.includes(view) {
            write_name(out, field.name);
            record.at(place).write_json(&field.rules, out);
        }
    }
    let urls = out.len();
    for address in shape.addresses.iter().filter(|address| address.views.includes(view)) {
        write_name(out, address.name);
        let url = match address.is_for(|scope| ctx.may(scope), |name| text_of(record, name)) {
            true => address.url(&ctx.site, ctx.account, ctx.machine_now, &path_of(address, record)),
            false => String::new(),
        };
        write_text(out, &url);
    }
    let urls = urls..out.len();
    for (name, shown, moment) in
        [("created_at", shape.created_at, base.created_at), ("updated_at", shape.updated_at, base.updated_at)]
    {
        if shown.includes(view) {
            write_name(out, name);
            write_text(out, &moment.to_string());
        }
    }
    if shape.meta.includes(view) {
        write_name(out, "meta");
        let meta = format!(
            "{{\"created_at\":\"{}\",\"updated_at\":\"{}\",\"version\":{}",
            base.created_at, base.updated_at, base.version
        );
        out.extend_from_slice(meta.as_bytes());
        for (place, field) in fields.iter().enumerate().filter(|(_, field)| field.rules.in_meta) {
            write_name(out, field.name);
            record.at(place).write_json(&field.rules, out);
        }
        out.push(b'}');
    }
    out.push(b'}');
    urls
}

/// Returns the path of a URL with the values of a record. Only the named fields are looked at: others may have a megabyte.
fn path_of(url: &ShownUrl, record: &dyn AnyRecord) -> String {
    url.path_with(|name| text_of(record, name))
}

/// Returns the text of a column, or the id.
fn text_of(record: &dyn AnyRecord, name: &str) -> String {
    let place = record.layout().place(name);
    match place.map(|place| record.at(place).value_to_db()) {
        Some(Value::Text(text)) => text.into_owned(),
        _ => record.common().id.clone(),
    }
}

/// Writes the record as the log stores it, from how a detail view shows it and where its URLs are in there: without them,
/// since they expire, but with all other columns in front.
pub(crate) fn write_logged(record: &dyn AnyRecord, shown: &[u8], urls: Range<usize>, out: &mut Vec<u8>) {
    out.extend_from_slice(HIDDEN.as_bytes());
    out.push(b'{');
    write_hidden(record, out);
    out.extend_from_slice(b"},");
    out.extend_from_slice(&shown[1..urls.start]);
    out.extend_from_slice(&shown[urls.end..]);
}

/// Writes the columns that the API does not show. A secret is not logged: it would be encrypted with a key that may be
/// replaced.
pub(crate) fn write_hidden(record: &dyn AnyRecord, out: &mut Vec<u8>) {
    let (layout, base) = (record.layout(), record.common());
    if !layout.shape.meta.includes(DETAIL) {
        let times = format!(
            "\"created_at\":\"{}\",\"updated_at\":\"{}\",\"version\":{}",
            base.created_at, base.updated_at, base.version
        );
        out.extend_from_slice(times.as_bytes());
    }
    for (place, field) in layout.columns().filter(|(_, field)| layout.shape.hides(field)) {
        write_name(out, field.name);
        match record.at(place).value_to_db() {
            Value::Text(text) if is_sealed(&text) => write_text(out, SECRET),
            _ => record.at(place).write_json(&field.rules, out),
        }
    }
}

/// Returns the folded text for searches; empty if no field is searchable.
pub(crate) fn search_text(record: &dyn AnyRecord) -> String {
    let fields = record.described().iter().enumerate().filter(|(_, field)| field.rules.search);
    let (mut lines, mut follows): (Vec<String>, bool) = (Vec::new(), false);
    for (place, field) in fields {
        let text = match record.at(place).value_to_db() {
            Value::Text(text) if !text.is_empty() => crate::text::fold(&text),
            _ => {
                follows = false;
                continue;
            }
        };
        // No folded text has a line break: nothing is found across two fields, unless they belong together.
        match lines.last_mut().filter(|_| follows && field.rules.continues) {
            Some(line) => {
                line.push(' ');
                line.push_str(&text);
            }
            None => lines.push(text),
        }
        follows = true;
    }
    lines.join("\n")
}

/// Copies the fields to which `rule` applies.
pub(super) fn copy(from: &dyn AnyFields, to: &mut dyn AnyFields, rule: fn(&Rules) -> bool) {
    for (place, _) in from.described().iter().enumerate().filter(|(_, field)| rule(&field.rules)) {
        to.at_mut(place).copy_from(from.at(place));
    }
}

/// Whether a field to which `rule` applies has different values.
pub(super) fn differ(one: &dyn AnyFields, other: &dyn AnyFields, rule: fn(&Rules) -> bool) -> bool {
    let mut fields = one.described().iter().enumerate().filter(|(_, field)| rule(&field.rules));
    fields.any(|(place, _)| !one.at(place).equals(other.at(place)))
}

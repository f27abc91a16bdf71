//! The JSON of records, with the same fields as Kantoor.

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::json;

use super::model::Kind::{self, Bool, Cents, Link};
use super::model::Place::{Listed, Meta, Shown as Alone};
use super::model::{Document, ROW, Record, Table, Value};
use crate::product::Moment;

/// The response with one record.
pub struct Shown {
    pub table: &'static Table,
    pub document: Document,
}

/// The response with a page of records.
pub struct List {
    pub table: &'static Table,
    pub records: Vec<Record>,
    pub total: i64,
}

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Document { record, rows } = &self.document;
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("data", &Fields { table: self.table, record, rows: Some(rows) })?;
        map.serialize_entry("meta", &json!({}))?;
        map.end()
    }
}

impl Serialize for List {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        let data: Vec<Fields> =
            self.records.iter().map(|record| Fields { table: self.table, record, rows: None }).collect();
        map.serialize_entry("data", &data)?;
        let pages = (self.total + 24) / 25;
        map.serialize_entry("meta", &json!({"page": 1, "per_page": 25, "total": self.total, "pages": pages}))?;
        map.end()
    }
}

/// The fields of one record; all of them if its rows are given.
struct Fields<'r> {
    table: &'static Table,
    record: &'r Record,
    rows: Option<&'r [Record]>,
}

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Fields { table, record, rows } = self;
        let whole = rows.is_some() || table.lists_all;
        let mut map = serializer.serialize_map(None)?;
        let fields: &mut dyn Iterator<Item = _> =
            if rows.is_some() { &mut table.fields.iter() } else { &mut table.listed() };
        for ((name, kind, place), value) in fields.zip(&record.0) {
            if matches!(place, Listed | Alone) {
                map.serialize_entry(name, &Field { kind: *kind, value })?;
            }
        }
        if let Some(rows) = rows.filter(|_| table.has_links) {
            let id = record.0[0].text();
            let url =
                format!("http://127.0.0.1/v1/invoices/{id}/pdf/content?account=1&until=1794877200&signature={id}{id}");
            map.serialize_entry("rows", &Rows(rows))?;
            map.serialize_entry("web_url", &format!("http://127.0.0.1/d/{}", record.get(table, "token").text()))?;
            map.serialize_entry("pdf_url", &url)?;
        }
        if whole && table.fields.iter().any(|(_, _, place)| *place == Meta) {
            map.serialize_entry("meta", &MetaFields { table, record })?;
        }
        map.end()
    }
}

struct Rows<'r>(&'r [Record]);

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(Some(self.0.len()))?;
        for record in self.0 {
            rows.serialize_element(&Fields { table: &ROW, record, rows: Some(&[]) })?;
        }
        rows.end()
    }
}

struct MetaFields<'r> {
    table: &'static Table,
    record: &'r Record,
}

impl Serialize for MetaFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for ((name, kind, place), value) in self.table.fields.iter().zip(&self.record.0) {
            let repeated = self.table.has_links && *name == "created_at";
            if *place == Meta || repeated {
                map.serialize_entry(name, &Field { kind: *kind, value })?;
            }
        }
        map.end()
    }
}

struct Field<'r> {
    kind: Kind,
    value: &'r Value,
}

impl Serialize for Field<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = self.value.int();
        match (self.kind, self.value) {
            (Kind::Json, _) => serializer.serialize_map(Some(0))?.end(),
            (Link, Value::Text(text)) if text.is_empty() => serializer.serialize_none(),
            (Kind::Moment, _) if number == 0 => serializer.serialize_none(),
            (Kind::Moment, _) => Moment(number).serialize(serializer),
            (Bool, _) => serializer.serialize_bool(number != 0),
            (Cents, _) if number % 100 != 0 => serializer.serialize_f64(number as f64 / 100.0),
            (Cents, _) => serializer.serialize_i64(number / 100),
            (_, Value::Int(number)) => serializer.serialize_i64(*number),
            (_, Value::Text(text)) => serializer.serialize_str(text),
        }
    }
}

//! A field is declared once. [`record!`](crate::record!) turns one line per field into the struct field, the column,
//! the create and PATCH input, the validation, the output, the list filters and sorts, and the OpenAPI schema. The
//! flags of a line are in [`Rules`]; they contain no logic. A body that is not a record is an [`input!`].
//!
//! [`input!`]: crate::input!

mod any;
mod body;
mod checked;
mod field;
mod html;
pub(crate) mod kinds;
mod lists;
mod open;
mod part;
mod rules;
mod sealed;
mod url;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use store::{Row, Tx};

use crate::clock::Moment;
use crate::context::Ctx;
use crate::error::{Error, FieldErrors};
use crate::json::Json;
pub use any::{AnyFields, AnyRecord, Layout};
pub(crate) use any::{search_text, stored, write_hidden, write_json, write_logged};
pub use body::{Body, Fields};
pub use checked::{Bic, Callable, Color, Country, Domain, Email, EmailList, Emails, Iban, Slug, VatNumber, Website};
pub use field::{AnyKind, Field, FieldInfo, blank};
pub use html::Html;
pub use kinds::{Day, Days, Kind, Link, VatRate, When, choose, other_spelling, parse_date, stored_date, wrong_type};
pub use lists::{Custom, CustomValue, Data, Snapshot, Texts};
pub use open::{Transitions, check_transition, may_become};
pub use part::Part;
pub use rules::{ACTED, ALL, COMPUTED, CREATED, DETAIL, GIVEN, INPUT, LIST, NOWHERE, REQUIRED, Rules, UPDATED, Views};
pub use sealed::Sealed;
pub use url::ShownUrl;

/// The fields of every record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Base {
    /// UUIDv7.
    pub id: String,
    /// When it was created, on the account's clock.
    pub created_at: Moment,
    /// When it last changed, on the account's clock.
    pub updated_at: Moment,
    /// Incremented with every change; the ETag.
    pub version: i64,
}

/// The static description of a record.
pub struct Shape {
    /// Its name in events and messages: `product`.
    pub name: &'static str,
    /// Its table, which is also the name of its list.
    pub table: &'static str,
    /// The prefix of its events: `product.created`, but `customer.created` for a client.
    pub events: &'static str,
    /// The sort field of a list without pages.
    pub order: &'static str,
    /// Whether filtered lists that are sorted by creation are sorted by id. Ids increase with time, so an index of a field
    /// followed by the id serves the filter, its order and the sort by that field.
    pub created_by_id: bool,
    /// The field that refers to its parent, whose id is in the path; or empty.
    pub parent: &'static str,
    /// The views that include `created_at` outside `meta`.
    pub created_at: Views,
    /// The views that include `updated_at` outside `meta`.
    pub updated_at: Views,
    /// The views that include the `meta` object.
    pub meta: Views,
    /// The URLs that it shows.
    pub addresses: &'static [ShownUrl],
    /// Additional members of its responses, derived from other records.
    pub parts: &'static [Part],
    /// Its description in the documentation, from the doc comment.
    pub doc: &'static [&'static str],
}

impl Shape {
    /// Creates the shape of a record whose times are only in its `meta`.
    pub const fn new(name: &'static str, table: &'static str, doc: &'static [&'static str]) -> Shape {
        Shape {
            name,
            table,
            events: name,
            order: "created_at",
            created_by_id: false,
            parent: "",
            created_at: NOWHERE,
            updated_at: NOWHERE,
            meta: ALL,
            addresses: &[],
            parts: &[],
            doc,
        }
    }

    /// Whether a single record does not show this field.
    pub fn hides(&self, field: &FieldInfo) -> bool {
        !(field.rules.views.includes(DETAIL) || field.rules.in_meta && self.meta.includes(DETAIL))
    }

    /// Sets the prefix of its events.
    pub const fn events(self, events: &'static str) -> Shape {
        Shape { events, ..self }
    }

    /// Sets the field that refers to its parent, under whose path it is.
    pub const fn parent(self, field: &'static str) -> Shape {
        Shape { parent: field, ..self }
    }

    /// Sets its URLs.
    pub const fn addresses(self, addresses: &'static [ShownUrl]) -> Shape {
        Shape { addresses, ..self }
    }

    /// Sets the additional members of its responses.
    pub const fn parts(self, parts: &'static [Part]) -> Shape {
        Shape { parts, ..self }
    }

    /// Sets the sort field of a list without pages.
    pub const fn order(self, order: &'static str) -> Shape {
        Shape { order, ..self }
    }

    /// Declares that its indexes end with the id instead of the time of creation.
    pub const fn created_by_id(self) -> Shape {
        Shape { created_by_id: true, ..self }
    }

    /// Sets the views that include `created_at` outside `meta`.
    pub const fn created_at(self, views: Views) -> Shape {
        Shape { created_at: views, ..self }
    }

    /// Sets the views that include `updated_at` outside `meta`.
    pub const fn updated_at(self, views: Views) -> Shape {
        Shape { updated_at: views, ..self }
    }

    /// Sets the views that include `meta`.
    pub const fn meta(self, views: Views) -> Shape {
        Shape { meta: views, ..self }
    }
}

/// A record, generated by [`record!`](crate::record!).
pub trait Record: Fields + PartialEq {
    /// Returns its static description.
    fn shape() -> &'static Shape;
    /// Returns its SQL statements.
    fn sql() -> &'static Sql;
    /// Returns the fields of every record.
    fn base(&self) -> &Base;
    /// Returns the fields of every record, mutably.
    fn base_mut(&mut self) -> &mut Base;

    /// Returns what is known about it without its type.
    fn layout() -> Layout {
        Layout { shape: Self::shape(), fields: Self::infos(), sql: Self::sql() }
    }

    /// Clears the fields that are only in the body, so that the record equals the stored one.
    fn forget_sent(&mut self) {
        if Self::infos().iter().any(|field| field.rules.sent_only) {
            any::copy(&Self::default(), self, |rules| rules.sent_only);
        }
    }

    /// Returns a new record with the fields that are copied to derived records.
    fn copied(&self) -> Self {
        let mut copy = Self::default();
        any::copy(self, &mut copy, |rules| rules.copied);
        copy
    }

    /// Whether a field to which `rule` applies differs from `before`.
    fn differs(&self, before: &Self, rule: fn(&Rules) -> bool) -> bool {
        any::differ(self, before, rule)
    }

    /// Reads a row of `sql().select`. An unreadable value is an error that names its table, id and column; a default
    /// would be written back by the next save.
    fn from_row(row: &Row) -> store::Result<Self> {
        let mut record = Self::default();
        any::read_row(&mut record, row, &Self::sql().stored)?;
        Ok(record)
    }

    /// From a row of `sql().list_columns`: the fields that lists do not show have their default.
    fn from_list_row(row: &Row) -> store::Result<Self> {
        let mut record = Self::default();
        any::read_row(&mut record, row, &Self::sql().listed)?;
        Ok(record)
    }

    /// Writes the record as the API shows it in `view`; returns where its URLs are.
    fn write_json(&self, view: Views, ctx: &Ctx, out: &mut Vec<u8>) -> Range<usize> {
        write_json(self, view, ctx, out)
    }
}

impl<R: Record> AnyRecord for R {
    fn layout(&self) -> Layout {
        R::layout()
    }

    fn common(&self) -> &Base {
        self.base()
    }

    fn common_mut(&mut self) -> &mut Base {
        self.base_mut()
    }
}

/// Rules of a record that concern more than one field.
pub trait Model: Record {
    /// Maximum number of records in an account, of a kind that is read as a whole.
    const MOST: i64 = i64::MAX;

    /// Adds errors about the record as a whole. Fields that are invalid by themselves already have an error and their
    /// default here: a rule about another field that depends on one of them checks [`FieldErrors::has`] first.
    fn check(&self, _faults: &mut FieldErrors) {}

    /// Runs in the transaction before the record is saved: fills in values that depend on other records, and rejects
    /// what they do not allow. `before` is the previous record. Fields that are only in the body still have their value
    /// here.
    fn before_save(&mut self, _tx: &mut Tx, _ctx: &Ctx, _before: Option<&Self>) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the events of a change besides `created` and `updated`.
    fn events(&self, _before: Option<&Self>) -> Vec<&'static str> {
        Vec::new()
    }

    /// Runs in the transaction after the record is saved and its events are emitted.
    fn after_save(&self, _tx: &mut Tx, _ctx: &Ctx, _before: Option<&Self>) -> Result<(), Error> {
        Ok(())
    }

    /// Normalizes a body that callers can send in another form.
    fn body(body: Json) -> Json {
        body
    }
}

/// What a record starts with in the log, if it has more columns than the API shows.
pub const HIDDEN: &str = "{\"hidden\":";
/// Stands for a secret in the log.
const SECRET: &str = "(secret)";

const BASE: &str = "id, created_at, updated_at, version";
const BASE_COLUMNS: usize = 4;

impl<R: Model> Body for R {
    fn check(&self, faults: &mut FieldErrors) {
        Model::check(self, faults);
    }

    fn body(body: Json) -> Json {
        <R as Model>::body(body)
    }
}

/// The SQL statements of a record, generated from its fields.
pub struct Sql {
    /// `SELECT` of all columns, without a `WHERE`.
    pub select: String,
    /// The columns of `select`, qualified with the table.
    pub columns: String,
    /// Columns for a list, each with its table: those of every record, and the fields that lists show.
    pub list_columns: String,
    /// The places of those fields among all fields.
    pub listed: Vec<usize>,
    /// The places of the stored fields among all fields.
    pub stored: Vec<usize>,
    /// Selects one record. Values: account, id.
    pub get: String,
    /// Inserts a record. Values: account, the base, the fields.
    pub insert: String,
    /// Updates a record. Values: the base without the id, the fields, account, id.
    pub update: String,
    /// Updates of some fields, by their names.
    updates: Mutex<HashMap<Vec<&'static str>, Arc<str>>>,
    /// Deletes a record. Values: account, id.
    pub delete: String,
}

impl Sql {
    /// Creates the statements of a kind of record.
    pub fn of(shape: &Shape, infos: &[FieldInfo]) -> Sql {
        let table = shape.table;
        let stored: Vec<usize> = (0..infos.len()).filter(|place| !infos[*place].rules.sent_only).collect();
        let listed: Vec<usize> = stored.iter().copied().filter(|place| any::is_listed(shape, &infos[*place])).collect();
        let name = |place: &usize| infos[*place].name;
        let names: Vec<&str> = stored.iter().map(name).collect();
        let list_columns = qualified(table, listed.iter().map(name));
        let columns = qualified(table, names.iter().copied());
        let fields: String = names.iter().map(|name| format!(", \"{name}\"")).collect();
        let count = names.len();
        let places: String = (0..count).map(|n| format!(", ${}", n + 6)).collect();
        let changes: String = names.iter().enumerate().map(|(n, name)| format!(", \"{name}\" = ${}", n + 4)).collect();
        Sql {
            select: format!("SELECT {columns} FROM {table}"),
            get: format!("SELECT {columns} FROM {table} WHERE account_id = $1 AND id = $2"),
            insert: format!("INSERT INTO {table} (account_id, {BASE}{fields}) VALUES ($1, $2, $3, $4, $5{places})"),
            update: format!(
                "UPDATE {table} SET created_at = $1, updated_at = $2, version = $3{changes} WHERE account_id = ${} AND id = ${}",
                count + 4,
                count + 5
            ),
            delete: format!("DELETE FROM {table} WHERE account_id = $1 AND id = $2"),
            updates: Mutex::default(),
            columns,
            list_columns,
            listed,
            stored,
        }
    }

    /// Returns the number of columns in `list_columns`.
    pub fn list_width(&self) -> usize {
        BASE_COLUMNS + self.listed.len()
    }

    /// Returns the statement that updates these fields of a record, so that the databases leave the indexes of others
    /// alone. Values: `updated_at`, `version`, the fields, account, id. `None` when there are enough such statements:
    /// connections keep each of them prepared.
    pub fn update_of(&self, table: &str, names: &[&'static str]) -> Option<Arc<str>> {
        let mut updates = self.updates.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = updates.get(names) {
            return Some(known.clone());
        }
        if updates.len() >= MAX_UPDATES {
            return None;
        }
        let changes: String = names.iter().enumerate().map(|(n, name)| format!(", \"{name}\" = ${}", n + 3)).collect();
        let (account, id) = (names.len() + 3, names.len() + 4);
        let sql = format!(
            "UPDATE {table} SET updated_at = $1, version = $2{changes} WHERE account_id = ${account} AND id = ${id}"
        );
        let sql: Arc<str> = sql.into();
        updates.insert(names.to_vec(), sql.clone());
        Some(sql)
    }
}

/// How many statements update some fields of a record. What the program itself does changes the same fields each time.
const MAX_UPDATES: usize = 16;

fn qualified<'n>(table: &str, fields: impl Iterator<Item = &'n str>) -> String {
    let columns = BASE.split(", ").chain(fields).map(|name| format!("{table}.\"{name}\""));
    columns.collect::<Vec<_>>().join(", ")
}

/// Returns the name of a field, without the `r#` of a keyword.
pub const fn plain(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

/// Declares a record. The [`record`](mod@crate::record) module explains the lines, and the [crate page](crate) has an
/// example.
#[macro_export]
macro_rules! record {
    (
        $(#[doc = $about:literal])+
        $vis:vis struct $name:ident = $singular:literal in $table:literal $(, $key:ident: $value:expr)*;
        $( $(#[doc = $doc:literal])+ $(#[cfg($when:meta)])? $field:ident : $kind:ty = $rules:expr; )*
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, Default, PartialEq)]
        $vis struct $name {
            /// The fields of every record.
            pub base: $crate::record::Base,
            $( $(#[doc = $doc])+ $(#[cfg($when)])? pub $field: $kind, )*
        }

        impl $crate::record::Fields for $name {
            fn fields() -> &'static [$crate::record::Field<Self>] {
                static FIELDS: &[$crate::record::Field<$name>] =
                    $crate::fields!($( $(#[cfg($when)])? [$($doc),+] $field : $kind = $rules; )*);
                FIELDS
            }

            fn infos() -> &'static [$crate::record::FieldInfo] {
                static INFOS: &[$crate::record::FieldInfo] =
                    $crate::infos!($( $(#[cfg($when)])? [$($doc),+] $field : $kind = $rules; )*);
                INFOS
            }
        }

        impl $crate::record::Record for $name {
            fn shape() -> &'static $crate::record::Shape {
                static SHAPE: $crate::record::Shape =
                    $crate::record::Shape::new($singular, $table, &[$($about),+])$(.$key($value))*;
                &SHAPE
            }

            fn sql() -> &'static $crate::record::Sql {
                static SQL: std::sync::LazyLock<$crate::record::Sql> =
                    std::sync::LazyLock::new(|| {
                        let infos = <$name as $crate::record::Fields>::infos();
                        $crate::record::Sql::of(<$name as $crate::record::Record>::shape(), infos)
                    });
                &SQL
            }

            fn base(&self) -> &$crate::record::Base {
                &self.base
            }

            fn base_mut(&mut self) -> &mut $crate::record::Base {
                &mut self.base
            }
        }
    };
    // Several records with the same fields: the parameter has the shape and the statements.
    (
        $(#[doc = $about:literal])+
        $vis:vis struct $name:ident<$param:ident: $bound:path>;
        $( $(#[doc = $doc:literal])+ $(#[cfg($when:meta)])? $field:ident : $kind:ty = $rules:expr; )*
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, Default, PartialEq)]
        $vis struct $name<$param: $bound> {
            /// The fields of every record.
            pub base: $crate::record::Base,
            /// The kind of record.
            pub which: std::marker::PhantomData<$param>,
            $( $(#[doc = $doc])+ $(#[cfg($when)])? pub $field: $kind, )*
        }

        impl<$param: $bound> $name<$param> {
            /// Converts the record to another kind with the same fields.
            pub fn into_other<Other: $bound>(self) -> $name<Other> {
                $name {
                    base: self.base,
                    which: std::marker::PhantomData,
                    $( $(#[cfg($when)])? $field: self.$field, )*
                }
            }
        }

        impl<$param: $bound> $crate::record::Fields for $name<$param> {
            fn fields() -> &'static [$crate::record::Field<Self>] {
                const { $crate::fields!($( $(#[cfg($when)])? [$($doc),+] $field : $kind = $rules; )*) }
            }

            fn infos() -> &'static [$crate::record::FieldInfo] {
                const { $crate::infos!($( $(#[cfg($when)])? [$($doc),+] $field : $kind = $rules; )*) }
            }
        }

        impl<$param: $bound> $crate::record::Record for $name<$param> {
            fn shape() -> &'static $crate::record::Shape {
                $param::shape()
            }

            fn sql() -> &'static $crate::record::Sql {
                $param::sql()
            }

            fn base(&self) -> &$crate::record::Base {
                &self.base
            }

            fn base_mut(&mut self) -> &mut $crate::record::Base {
                &mut self.base
            }
        }
    };
}

//! A field is declared once. [`record!`](crate::record!) turns one line per field into the struct, the columns,
//! the create and PATCH input, the checks, the answers, the list filters and sorts, and the
//! OpenAPI schema. What the lines can say is in [`Rules`]; they are flags, never logic. A body that is
//! no record is an [`input!`].
//!
//! [`input!`]: crate::input!

mod body;
mod checked;
mod field;
mod html;
mod kinds;
mod lists;
mod open;
mod part;
mod rules;

use store::{Row, Tx, Value};

use crate::clock::Moment;
use crate::context::Ctx;
use crate::error::{Error, FieldErrors};
use crate::json::{Json, write_key, write_text};
pub use body::{Body, Fields};
pub use checked::{Bic, Callable, Color, Country, Domain, Email, EmailList, Emails, Iban, Slug, VatNumber, Website};
pub use field::{Field, FieldInfo};
pub use html::Html;
pub use kinds::{Day, Days, Kind, Link, VatRate, When, choose, other_spelling, parse_date, stored_date, wrong_type};
pub use lists::{Custom, CustomValue, Data, Snapshot, Texts};
pub use open::{Transitions, check_transition, may_become};
pub use part::Part;
pub use rules::{ACTED, ALL, COMPUTED, CREATED, DETAIL, GIVEN, INPUT, LIST, NOWHERE, REQUIRED, Rules, UPDATED, Views};

/// What every record has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Base {
    /// UUIDv7.
    pub id: String,
    /// When it was made, on the account's clock.
    pub created_at: Moment,
    /// When it last changed, on the account's clock.
    pub updated_at: Moment,
    /// Grows by one with every change; the ETag.
    pub version: i64,
}

/// What is said once about a record.
pub struct Shape {
    /// Its name in events and messages: `product`.
    pub name: &'static str,
    /// Its table, which is also the name of its list.
    pub table: &'static str,
    /// What its events are called: `product.created`, but `customer.created` of a client.
    pub events: &'static str,
    /// The field by which a list without pages is sorted.
    pub order: &'static str,
    /// Whether its filters are sorted by id when they are sorted by creation: ids grow with time, and so an index of a field
    /// that goes on with the id serves the filter, its order and the sort by that field.
    pub created_by_id: bool,
    /// The field that names the record it belongs to, whose id stands in the path; or empty.
    pub parent: &'static str,
    /// Where `created_at` is shown beside the fields.
    pub created_at: Views,
    /// Where `updated_at` is shown beside the fields.
    pub updated_at: Views,
    /// Where the `meta` object is shown.
    pub meta: Views,
    /// Addresses where a browser can see something of it.
    pub addresses: &'static [Address],
    /// What its routes show beside the fields, worked out from other records.
    pub parts: &'static [Part],
    /// A sentence for the documents, from the doc comment.
    pub doc: &'static [&'static str],
}

/// An address that a record shows.
pub struct Address {
    /// The name of the field.
    pub name: &'static str,
    /// Its path, with `{id}` and the names of other fields.
    pub path: &'static str,
    /// Whether it is signed for a day, so that a browser can open it without a key.
    pub signed: bool,
    /// Where it is shown.
    pub views: Views,
    /// A sentence for the documents.
    pub doc: &'static str,
}

impl Shape {
    /// A record whose times are shown in its `meta` alone.
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

    /// Its events have another name than the record.
    pub const fn events(self, events: &'static str) -> Shape {
        Shape { events, ..self }
    }

    /// It belongs to the record that this field names, and lives under its path.
    pub const fn parent(self, field: &'static str) -> Shape {
        Shape { parent: field, ..self }
    }

    /// It has these addresses.
    pub const fn addresses(self, addresses: &'static [Address]) -> Shape {
        Shape { addresses, ..self }
    }

    /// Its routes show these beside the fields.
    pub const fn parts(self, parts: &'static [Part]) -> Shape {
        Shape { parts, ..self }
    }

    /// The field by which a list without pages is sorted.
    pub const fn order(self, order: &'static str) -> Shape {
        Shape { order, ..self }
    }

    /// Its indexes go on with the id instead of the moment of creation.
    pub const fn created_by_id(self) -> Shape {
        Shape { created_by_id: true, ..self }
    }

    /// Shows `created_at` beside the fields there.
    pub const fn created_at(self, views: Views) -> Shape {
        Shape { created_at: views, ..self }
    }

    /// Shows `updated_at` beside the fields there.
    pub const fn updated_at(self, views: Views) -> Shape {
        Shape { updated_at: views, ..self }
    }

    /// Shows `meta` only there.
    pub const fn meta(self, views: Views) -> Shape {
        Shape { meta: views, ..self }
    }
}

/// A record: what [`record!`](crate::record!) makes.
pub trait Record: Fields + PartialEq {
    /// What is said once about it.
    fn shape() -> &'static Shape;
    /// Its statements.
    fn sql() -> &'static Sql;
    /// What every record has.
    fn base(&self) -> &Base;
    /// What every record has, to change.
    fn base_mut(&mut self) -> &mut Base;

    /// The field that names the record it belongs to.
    fn parent() -> Option<&'static Field<Self>> {
        Self::fields().iter().find(|field| field.info.name == Self::shape().parent)
    }

    /// The fields that are stored.
    fn columns() -> impl Iterator<Item = &'static Field<Self>> {
        Self::fields().iter().filter(|field| !field.info.rules.sent_only)
    }

    /// Drops what was in the body alone, so that the record is as it will be read.
    fn forget_sent(&mut self) {
        let sent_only = || Self::fields().iter().filter(|field| field.info.rules.sent_only);
        if sent_only().next().is_some() {
            let blank = Self::default();
            sent_only().for_each(|field| (field.copy)(&blank, self));
        }
    }

    /// A new one with the fields that are copied to what is made of it.
    fn copied(&self) -> Self {
        let mut copy = Self::default();
        for field in Self::fields().iter().filter(|field| field.info.rules.copied) {
            (field.copy)(self, &mut copy);
        }
        copy
    }

    /// Whether a field to which `rule` applies differs from `before`.
    fn differs(&self, before: &Self, rule: fn(&Rules) -> bool) -> bool {
        Self::fields().iter().any(|field| rule(&field.info.rules) && !(field.equal)(self, before))
    }

    /// From a row of `sql().select`. A value that cannot be read is an error that names its table, id and column; a
    /// default in its place would be written back by the next save.
    fn from_row(row: &Row) -> store::Result<Self> {
        let table = Self::shape().table;
        let id = row.text(0).map_err(|error| error.at(table, "", "id"))?;
        let at = |column: &'static str| move |error: store::Error| error.at(table, id, column);
        let mut record = Self::default();
        *record.base_mut() = Base {
            id: id.to_string(),
            created_at: Moment::from_db(row, 1).map_err(at("created_at"))?,
            updated_at: Moment::from_db(row, 2).map_err(at("updated_at"))?,
            version: row.int(3).map_err(at("version"))?,
        };
        for (place, field) in Self::columns().enumerate() {
            (field.from_db)(&mut record, row, BASE_COLUMNS + place).map_err(at(field.info.name))?;
        }
        Ok(record)
    }

    /// As the API shows it in `view`.
    fn write_json(&self, view: Views, ctx: &Ctx, out: &mut Vec<u8>) {
        let (shape, base) = (Self::shape(), self.base());
        out.extend_from_slice(b"{\"id\":");
        write_text(out, &base.id);
        for field in Self::fields() {
            let rules = &field.info.rules;
            if rules.views.includes(view) {
                write_key(out, field.info.name);
                (field.to_json)(self, rules, out);
            }
        }
        for address in shape.addresses.iter().filter(|address| address.views.includes(view)) {
            write_key(out, address.name);
            let mut path = address.path.replace("{id}", &base.id);
            for field in Self::fields().iter().filter(|_| address.path.contains('{')) {
                let place = format!("{{{}}}", field.info.name);
                if let (true, Value::Text(text)) = (path.contains(&place), (field.to_db)(self)) {
                    path = path.replace(&place, &text);
                }
            }
            let whole = if address.signed { ctx.signed(&path) } else { ctx.site.address(&path) };
            write_text(out, &whole);
        }
        for (name, shown, moment) in
            [("created_at", shape.created_at, base.created_at), ("updated_at", shape.updated_at, base.updated_at)]
        {
            if shown.includes(view) {
                write_key(out, name);
                write_text(out, &moment.to_string());
            }
        }
        if shape.meta.includes(view) {
            write_key(out, "meta");
            let meta = format!(
                "{{\"created_at\":\"{}\",\"updated_at\":\"{}\",\"version\":{}",
                base.created_at, base.updated_at, base.version
            );
            out.extend_from_slice(meta.as_bytes());
            for field in Self::fields().iter().filter(|field| field.info.rules.in_meta) {
                write_key(out, field.info.name);
                (field.to_json)(self, &field.info.rules, out);
            }
            out.push(b'}');
        }
        out.push(b'}');
    }

    /// Whether it is written the same in two views.
    fn looks_alike(one: Views, other: Views) -> bool {
        let alike = |views: Views| views.includes(one) == views.includes(other);
        let shape = Self::shape();
        Self::fields().iter().all(|field| alike(field.info.rules.views))
            && shape.addresses.iter().all(|address| alike(address.views))
            && [shape.created_at, shape.updated_at, shape.meta].into_iter().all(alike)
    }

    /// The folded text that searches look in; empty when no field is searched.
    fn search_text(&self) -> String {
        let texts = Self::fields().iter().filter(|field| field.info.rules.search);
        let texts: Vec<String> = texts
            .filter_map(|field| match (field.to_db)(self) {
                Value::Text(text) if !text.is_empty() => Some(crate::text::fold(&text)),
                _ => None,
            })
            .collect();
        texts.join("\n")
    }

    /// Whether any field is searched.
    fn is_searched() -> bool {
        Self::fields().iter().any(|field| field.info.rules.search)
    }
}

/// Rules of a record that concern more than one field.
pub trait Model: Record {
    /// Adds what is wrong with the record as a whole. Fields that are wrong by themselves are among the
    /// faults already and have their default here: a rule about another field that needs one of them asks
    /// [`FieldErrors::has`] first.
    fn check(&self, _faults: &mut FieldErrors) {}

    /// In the transaction, before it is saved: fills in what follows from other records, and
    /// refuses what they do not allow. `before` is the record as it was. Fields that are in the body alone
    /// still have their value here.
    fn before_save(&mut self, _tx: &mut Tx, _ctx: &Ctx, _before: Option<&Self>) -> Result<(), Error> {
        Ok(())
    }

    /// Events beside `created` and `updated` that a change makes.
    fn events(&self, _before: Option<&Self>) -> Vec<&'static str> {
        Vec::new()
    }

    /// In the transaction, once it is saved and its events are told: what else follows.
    fn after_save(&self, _tx: &mut Tx, _ctx: &Ctx, _before: Option<&Self>) -> Result<(), Error> {
        Ok(())
    }

    /// The body as the fields expect it, for those who may send it in another form.
    fn body(body: Json) -> Json {
        body
    }
}

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

/// The statements of a record, made from its fields.
pub struct Sql {
    /// `SELECT` of all columns, up to and without `WHERE`.
    pub select: String,
    /// Columns as in `select`, each with its table.
    pub columns: String,
    /// Columns for a list, each with its table; a heavy column that lists do not show is selected as an empty text.
    pub list_columns: String,
    /// One record: account, id.
    pub get: String,
    /// Values: account, the base, the fields.
    pub insert: String,
    /// Values: the base without the id, the fields, account, id.
    pub update: String,
    /// Values: account, id.
    pub delete: String,
}

impl Sql {
    /// The statements of `R`.
    pub fn of<R: Record>() -> Sql {
        let table = R::shape().table;
        let names: Vec<&str> = R::columns().map(|field| field.info.name).collect();
        let light = R::columns().map(|field| match field.info.rules.heavy {
            true => "''".to_string(),
            false => format!("{table}.\"{}\"", field.info.name),
        });
        let base = BASE.split(", ").map(|name| format!("{table}.\"{name}\""));
        let list_columns = base.chain(light).collect::<Vec<_>>().join(", ");
        let columns: Vec<String> =
            BASE.split(", ").chain(names.iter().copied()).map(|name| format!("{table}.\"{name}\"")).collect();
        let columns = columns.join(", ");
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
            columns,
            list_columns,
        }
    }
}

/// The name of a field, without the `r#` of one that is a word of the language.
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
            /// What every record has.
            pub base: $crate::record::Base,
            $( $(#[doc = $doc])+ $(#[cfg($when)])? pub $field: $kind, )*
        }

        impl $crate::record::Fields for $name {
            const FIELDS: &'static [$crate::record::Field<Self>] =
                $crate::fields!($( $(#[cfg($when)])? [$($doc),+] $field : $kind = $rules; )*);
        }

        impl $crate::record::Record for $name {
            fn shape() -> &'static $crate::record::Shape {
                static SHAPE: $crate::record::Shape =
                    $crate::record::Shape::new($singular, $table, &[$($about),+])$(.$key($value))*;
                &SHAPE
            }

            fn sql() -> &'static $crate::record::Sql {
                static SQL: std::sync::LazyLock<$crate::record::Sql> =
                    std::sync::LazyLock::new($crate::record::Sql::of::<$name>);
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
            /// What every record has.
            pub base: $crate::record::Base,
            /// Which of them it is.
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
            const FIELDS: &'static [$crate::record::Field<Self>] =
                $crate::fields!($( $(#[cfg($when)])? [$($doc),+] $field : $kind = $rules; )*);
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

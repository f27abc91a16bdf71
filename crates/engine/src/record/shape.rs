//! The description of a kind of record, and the fields that all records have.

use super::field::FieldInfo;
use super::part::Part;
use super::rules::{ALL, DETAIL, LIST, NOWHERE, Views};
use super::url::ShownUrl;
use crate::clock::Moment;

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

    /// Whether a list shows this field.
    pub fn lists(&self, field: &FieldInfo) -> bool {
        field.rules.views.includes(LIST)
            || field.rules.in_meta && self.meta.includes(LIST)
            || self.addresses.iter().any(|address| address.views.includes(LIST) && address.names(field.name))
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

//! The three kinds of document: the parameter of the record they share.

use std::sync::LazyLock;

use engine::record::{ALL, Address, Shape, Sql};

use super::{Document, WHOLE};
use crate::settings::custom_field::Entity;

/// Which of the three a document is: its parameter.
pub trait DocumentKind: Clone + Copy + std::fmt::Debug + Default + PartialEq + Send + Sync + 'static {
    /// Which of the three.
    const WHICH: Which;
    /// What is said once about the record.
    fn shape() -> &'static Shape;
    /// Its statements.
    fn sql() -> &'static Sql;
}

/// Which of the three a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are what they say")]
pub enum Which {
    Invoice,
    Quote,
    Workorder,
}

impl Which {
    /// The first letter of its numbers.
    pub const fn letter(self) -> char {
        match self {
            Which::Invoice => 'F',
            Which::Quote => 'Q',
            Which::Workorder => 'W',
        }
    }

    /// What its custom fields are on.
    pub const fn entity(self) -> Entity {
        match self {
            Which::Invoice => Entity::Invoice,
            Which::Quote => Entity::Quote,
            Which::Workorder => Entity::Workorder,
        }
    }
}

macro_rules! document_kind {
    ($(#[doc = $doc:literal])+ $kind:ident = $alias:ident, $name:literal in $table:literal) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct $kind;

        $(#[doc = $doc])+
        pub type $alias = Document<$kind>;

        impl DocumentKind for $kind {
            const WHICH: Which = Which::$alias;

            fn shape() -> &'static Shape {
                const ADDRESSES: &[Address] = &[
                    Address {
                        name: "web_url", path: "/d/{token}", signed: false, views: WHOLE,
                        doc: "URL of the public page for the client.",
                    },
                    Address {
                        name: "pdf_url", path: concat!("/v1/", $table, "/{id}/pdf/content"), signed: true, views: WHOLE,
                        doc: "URL of the PDF, valid for a day without a key.",
                    },
                ];
                static SHAPE: Shape =
                    Shape::new($name, $table, &[$($doc),+]).created_at(ALL).created_by_id().meta(WHOLE).addresses(ADDRESSES);
                &SHAPE
            }

            fn sql() -> &'static Sql {
                static SQL: LazyLock<Sql> = LazyLock::new(Sql::of::<$alias>);
                &SQL
            }
        }
    };
}

document_kind!(
    /// An amount that a client owes you or, for a credit invoice, that you owe a client.
    InvoiceKind = Invoice, "invoice" in "invoices");
document_kind!(
    /// An offer that a client can accept.
    QuoteKind = Quote, "quote" in "quotes");
document_kind!(
    /// Work that is to be done, or has been done, for a client.
    WorkorderKind = Workorder, "workorder" in "workorders");

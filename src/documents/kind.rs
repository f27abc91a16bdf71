//! The three kinds of document: the type parameter of their shared record.

use engine::record::{Shape, Sql};

use crate::settings::custom_field::Entity;

/// The kind of a document, as a type parameter.
pub trait DocumentKind: Clone + Copy + std::fmt::Debug + Default + PartialEq + Send + Sync + 'static {
    /// Which of the three.
    const WHICH: Which;
    /// The name of the record.
    const NAME: &'static str;
    /// The static description of the record.
    fn shape() -> &'static Shape;
    /// The SQL statements of the record.
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
    /// The first letter of its document numbers.
    pub const fn letter(self) -> char {
        match self {
            Which::Invoice => 'F',
            Which::Quote => 'Q',
            Which::Workorder => 'W',
        }
    }

    /// The entity of its custom fields.
    pub const fn entity(self) -> Entity {
        match self {
            Which::Invoice => Entity::Invoice,
            Which::Quote => Entity::Quote,
            Which::Workorder => Entity::Workorder,
        }
    }
}

/// Declares one of the three, where the record is.
macro_rules! document_kind {
    ($(#[doc = $doc:literal])+ $kind:ident = $alias:ident, $name:literal in $table:literal) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct $kind;

        $(#[doc = $doc])+
        pub type $alias = Document<$kind>;

        impl DocumentKind for $kind {
            const WHICH: Which = Which::$alias;
            const NAME: &'static str = $name;

            fn shape() -> &'static engine::record::Shape {
                const ADDRESSES: &[engine::record::ShownUrl] = &[
                    engine::record::ShownUrl {
                        name: "web_url", path: "/d/{token}", signed: false, views: WHOLE, needs: None,
                        doc: "URL of the public page for the client.",
                    },
                    engine::record::ShownUrl {
                        name: "pdf_url", path: concat!("/v1/", $table, "/{id}/pdf/content"), signed: true, views: WHOLE,
                        needs: None,
                        doc: "URL of the PDF, valid for a day without a key.",
                    },
                ];
                static SHAPE: engine::record::Shape = engine::record::Shape::new($name, $table, &[$($doc),+])
                    .created_at(engine::record::ALL)
                    .created_by_id()
                    .meta(WHOLE)
                    .addresses(ADDRESSES);
                &SHAPE
            }

            fn sql() -> &'static engine::record::Sql {
                static SQL: std::sync::LazyLock<engine::record::Sql> =
                    std::sync::LazyLock::new(|| {
                        let infos = <$alias as engine::record::Fields>::infos();
                        engine::record::Sql::of(<$alias as engine::record::Record>::shape(), infos)
                    });
                &SQL
            }
        }
    };
}
pub(super) use document_kind;

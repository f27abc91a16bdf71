//! What can be read from a body: the fields of a record, or of an [`input!`](crate::input!) that is none.

use super::field::{Field, FieldInfo};
use crate::error::{Error, FieldErrors};
use crate::json::Json;

/// Something with fields: what [`record!`] and [`input!`] make.
///
/// [`record!`]: crate::record!
/// [`input!`]: crate::input!
pub trait Fields: Clone + Default + Send + Sync + 'static {
    /// Its fields in order.
    const FIELDS: &'static [Field<Self>];

    /// Its fields in order.
    fn fields() -> &'static [Field<Self>] {
        Self::FIELDS
    }

    /// Its fields without their accessors.
    fn infos() -> Vec<FieldInfo> {
        Self::fields().iter().map(|field| field.info).collect()
    }

    /// A new one with the defaults of its fields.
    fn blank() -> Result<Self, Error> {
        let mut record = Self::default();
        for field in Self::fields() {
            let rules = &field.info.rules;
            if !rules.default.is_empty() {
                let default = Json::parse(rules.default.as_bytes())?;
                (field.from_json)(&mut record, &default, rules)
                    .map_err(|wrong| Error::internal(format!("default of {}: {}", field.info.name, wrong.message)))?;
            }
        }
        Ok(record)
    }
}

/// What a route reads its body into: a record with its checks, or an [`input!`].
///
/// [`input!`]: crate::input!
pub trait Body: Fields {
    /// Adds what is wrong with the body as a whole; see `Model::check`.
    fn check(&self, _faults: &mut FieldErrors) {}

    /// The body as the fields expect it; see `Model::body`.
    fn body(body: Json) -> Json {
        body
    }
}

/// Declares the body of a route that is no record: fields as in [`record!`], and nothing that only stored records have.
/// Rules about the whole of it go into its `impl Body`.
///
/// [`record!`]: crate::record!
#[macro_export]
macro_rules! input {
    (
        $(#[doc = $about:literal])+
        $vis:vis struct $name:ident;
        $( $(#[doc = $doc:literal])+ $field:ident : $kind:ty = $rules:expr; )*
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, Default, PartialEq)]
        $vis struct $name { $( $(#[doc = $doc])+ pub $field: $kind, )* }

        impl $crate::record::Fields for $name {
            const FIELDS: &'static [$crate::record::Field<Self>] =
                $crate::fields!($( [$($doc),+] $field : $kind = $rules; )*);
        }
    };
}

/// The fields of a record with their accessors; for [`record!`](crate::record!) and [`input!`](crate::input!).
#[macro_export]
macro_rules! fields {
    ($( $(#[cfg($when:meta)])? [$($doc:literal),+] $field:ident : $kind:ty = $rules:expr; )*) => {
        &[$(
            $(#[cfg($when)])?
            $crate::record::Field {
                info: $crate::record::FieldInfo {
                    name: $crate::record::plain(stringify!($field)),
                    doc: &[$($doc),+],
                    rules: $rules,
                    schema: <$kind as $crate::record::Kind>::schema,
                },
                to_db: |record| $crate::record::Kind::to_db(&record.$field),
                from_db: |record, row, column| {
                    record.$field = <$kind as $crate::record::Kind>::from_db(row, column)?;
                    Ok(())
                },
                from_json: |record, json, rules| {
                    record.$field = <$kind as $crate::record::Kind>::read(json, rules)?;
                    Ok(())
                },
                to_json: |record, rules, out| $crate::record::Kind::to_json(&record.$field, rules, out),
                copy: |from, to| to.$field = from.$field.clone(),
                equal: |one, other| one.$field == other.$field,
                from_query: <$kind as $crate::record::Kind>::filter,
            },
        )*]
    };
}

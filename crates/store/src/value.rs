use std::borrow::Cow;

use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::{Error, Result};

/// A value on its way to the database. Tables hold integers, text and bytes, nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value<'a> {
    /// A whole number; also instants, scaled decimals and yes or no.
    Int(i64),
    /// Text without NUL.
    Text(Cow<'a, str>),
    /// Bytes.
    Bytes(Cow<'a, [u8]>),
}

impl Value<'_> {
    /// The same value, for longer than what it was borrowed from.
    pub(crate) fn owned(&self) -> Value<'static> {
        match self {
            Value::Int(value) => Value::Int(*value),
            Value::Text(value) => Value::Text(Cow::Owned(value.to_string())),
            Value::Bytes(value) => Value::Bytes(Cow::Owned(value.to_vec())),
        }
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Value::Int(value)
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Value::Int(value.into())
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Value::Text(Cow::Borrowed(value))
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(value: &'a String) -> Self {
        Value::Text(Cow::Borrowed(value))
    }
}

impl From<String> for Value<'_> {
    fn from(value: String) -> Self {
        Value::Text(Cow::Owned(value))
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(value: &'a [u8]) -> Self {
        Value::Bytes(Cow::Borrowed(value))
    }
}

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        use rusqlite::types::{ToSqlOutput, ValueRef};
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Int(value) => ValueRef::Integer(*value),
            Value::Text(value) => ValueRef::Text(value.as_bytes()),
            Value::Bytes(value) => ValueRef::Blob(value),
        }))
    }
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut bytes::BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Value::Int(value) if *kind == Type::INT4 => i32::try_from(*value)?.to_sql(kind, out),
            Value::Int(value) => value.to_sql(kind, out),
            Value::Text(value) => value.as_ref().to_sql(kind, out),
            Value::Bytes(value) => value.as_ref().to_sql(kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// A row that came back. Columns are counted from 0.
pub enum Row<'r> {
    #[doc(hidden)]
    Sqlite(&'r rusqlite::Row<'r>),
    #[doc(hidden)]
    Postgres(&'r tokio_postgres::Row),
}

impl Row<'_> {
    /// A whole number.
    pub fn int(&self, column: usize) -> Result<i64> {
        match self {
            Row::Sqlite(row) => Ok(row.get(column)?),
            Row::Postgres(row) if *row.columns()[column].type_() == Type::INT4 => {
                Ok(row.try_get::<_, i32>(column)?.into())
            }
            Row::Postgres(row) => Ok(row.try_get(column)?),
        }
    }

    /// A value of any of the three types.
    pub(crate) fn value(&self, column: usize) -> Result<Value<'static>> {
        use rusqlite::types::ValueRef;
        let odd = |kind: &str| Error::Database(format!("column {column} has the type {kind}"));
        match self {
            Row::Sqlite(row) => match row.get_ref(column)? {
                ValueRef::Integer(value) => Ok(Value::Int(value)),
                ValueRef::Text(_) => Ok(Value::Text(Cow::Owned(self.text(column)?.to_string()))),
                ValueRef::Blob(bytes) => Ok(Value::Bytes(Cow::Owned(bytes.to_vec()))),
                other => Err(odd(&other.data_type().to_string())),
            },
            Row::Postgres(row) => match *row.columns()[column].type_() {
                Type::INT8 | Type::INT4 => self.int(column).map(Value::Int),
                Type::TEXT => Ok(Value::Text(Cow::Owned(self.text(column)?.to_string()))),
                Type::BYTEA => Ok(Value::Bytes(Cow::Owned(self.bytes(column)?.to_vec()))),
                ref other => Err(odd(other.name())),
            },
        }
    }

    /// Text.
    pub fn text(&self, column: usize) -> Result<&str> {
        match self {
            Row::Sqlite(row) => {
                let value = row.get_ref(column)?;
                value.as_str().map_err(|e| Error::Database(format!("column {column}: {e}")))
            }
            Row::Postgres(row) => Ok(row.try_get(column)?),
        }
    }

    /// Bytes.
    pub fn bytes(&self, column: usize) -> Result<&[u8]> {
        match self {
            Row::Sqlite(row) => {
                let value = row.get_ref(column)?;
                value.as_blob().map_err(|e| Error::Database(format!("column {column}: {e}")))
            }
            Row::Postgres(row) => Ok(row.try_get(column)?),
        }
    }
}

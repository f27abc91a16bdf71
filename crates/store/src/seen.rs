//! What a process asked of the database: the statements that it ran with their last values, and how much each write did.
//! For tests of plans and of the work in a transaction; with the feature `faults` only.

#[cfg(feature = "faults")]
pub use recorder::{Closure, closures, statements, with_values};
pub(crate) use recorder::{Tally, statement};

#[cfg(feature = "faults")]
mod recorder {
    use std::borrow::Cow;
    use std::collections::BTreeMap;
    use std::sync::{Mutex, PoisonError};
    use std::time::{Duration, Instant};

    use crate::{Dialect, Value};

    static STATEMENTS: Mutex<BTreeMap<(bool, String), Vec<Value<'static>>>> = Mutex::new(BTreeMap::new());
    static CLOSURES: Mutex<Vec<Closure>> = Mutex::new(Vec::new());
    /// Nobody has asked for them when there are so many.
    const MAX_STATEMENTS: usize = 100_000;

    /// What one run of a closure that writes came to.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Closure {
        /// Statements run.
        pub statements: u64,
        /// Rows that they gave or touched.
        pub rows: u64,
        /// Bytes of the values that were handed to them.
        pub bytes: u64,
        /// How long it took.
        pub took: Duration,
    }

    /// The texts of all statements that this process ran on such a database.
    pub fn statements(dialect: Dialect) -> Vec<String> {
        with_values(dialect).into_iter().map(|(sql, _)| sql).collect()
    }

    /// The same statements, each with the values of its last execution.
    pub fn with_values(dialect: Dialect) -> Vec<(String, Vec<Value<'static>>)> {
        let seen = STATEMENTS.lock().unwrap_or_else(PoisonError::into_inner);
        let postgres = dialect == Dialect::Postgres;
        let own = seen.iter().filter(|((own, _), _)| *own == postgres);
        own.map(|((_, sql), values)| (sql.clone(), values.clone())).collect()
    }

    /// The closures that wrote since this was last asked.
    pub fn closures() -> Vec<Closure> {
        std::mem::take(&mut *CLOSURES.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn statement(dialect: Dialect, sql: &str, values: &[Value]) {
        let key = (dialect == Dialect::Postgres, sql.to_string());
        let values = values.iter().map(owned).collect();
        STATEMENTS.lock().unwrap_or_else(PoisonError::into_inner).insert(key, values);
    }

    fn owned(value: &Value) -> Value<'static> {
        match value {
            Value::Int(number) => Value::Int(*number),
            Value::Text(text) => Value::Text(Cow::Owned(text.to_string())),
            Value::Bytes(bytes) => Value::Bytes(Cow::Owned(bytes.to_vec())),
        }
    }

    /// Counts what a transaction does, and writes it down when it is dropped after a write.
    pub(crate) struct Tally {
        closure: Closure,
        started: Instant,
        wrote: bool,
    }

    impl Tally {
        pub(crate) fn start() -> Tally {
            Tally { closure: Closure::default(), started: Instant::now(), wrote: false }
        }

        pub(crate) fn statement(&mut self, values: &[Value]) {
            self.closure.statements += 1;
            let lengths = values.iter().map(|value| match value {
                Value::Text(text) => text.len(),
                Value::Bytes(bytes) => bytes.len(),
                _ => 8,
            });
            self.closure.bytes += lengths.sum::<usize>() as u64;
        }

        pub(crate) fn rows(&mut self, rows: u64) {
            self.closure.rows += rows;
        }

        pub(crate) fn wrote(&mut self) {
            self.wrote = true;
        }
    }

    impl Drop for Tally {
        fn drop(&mut self) {
            let mut closures = CLOSURES.lock().unwrap_or_else(PoisonError::into_inner);
            if self.wrote && closures.len() < MAX_STATEMENTS {
                closures.push(Closure { took: self.started.elapsed(), ..self.closure });
            }
        }
    }
}

#[cfg(not(feature = "faults"))]
mod recorder {
    use crate::{Dialect, Value};

    pub(crate) fn statement(_: Dialect, _: &str, _: &[Value]) {}

    pub(crate) struct Tally;

    impl Tally {
        pub(crate) fn start() -> Tally {
            Tally
        }

        pub(crate) fn statement(&mut self, _: &[Value]) {}

        pub(crate) fn rows(&mut self, _: u64) {}

        pub(crate) fn wrote(&mut self) {}
    }
}

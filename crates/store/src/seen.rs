//! What a process asked of the database: the statements that it ran with their last values, and how much each write did.
//! For tests of plans and of the work in a transaction; with the feature `faults` only.

#[cfg(feature = "faults")]
pub use recorder::{Closure, closures, in_order, statements, with_values};
pub(crate) use recorder::{Tally, statement};

#[cfg(feature = "faults")]
mod recorder {
    use std::borrow::Cow;
    use std::collections::BTreeMap;
    use std::sync::{Mutex, PoisonError};
    use std::time::{Duration, Instant};

    use crate::{Dialect, Value};

    static STATEMENTS: Mutex<BTreeMap<(bool, String), Vec<Value<'static>>>> = Mutex::new(BTreeMap::new());
    static IN_ORDER: Mutex<Vec<String>> = Mutex::new(Vec::new());
    static CLOSURES: Mutex<Vec<Closure>> = Mutex::new(Vec::new());
    /// Maximum number of recorded statements.
    const MAX_STATEMENTS: usize = 100_000;

    /// The work of one run of a write closure.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Closure {
        /// Statements run.
        pub statements: u64,
        /// Those among them whose answer it waited for.
        pub waits: u64,
        /// Rows that they returned or changed.
        pub rows: u64,
        /// Bytes of their parameters.
        pub bytes: u64,
        /// How long it took.
        pub took: Duration,
    }

    /// Returns all statements that this process ran on such a database.
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

    /// Returns the write closures since the previous call.
    pub fn closures() -> Vec<Closure> {
        std::mem::take(&mut *CLOSURES.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The statements that were run since this was last asked, in the order in which they began.
    pub fn in_order() -> Vec<String> {
        std::mem::take(&mut *IN_ORDER.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn statement(dialect: Dialect, sql: &str, values: &[Value]) {
        let mut in_order = IN_ORDER.lock().unwrap_or_else(PoisonError::into_inner);
        if in_order.len() < MAX_STATEMENTS {
            in_order.push(sql.to_string());
        }
        drop(in_order);
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

    /// Counts the work of a transaction, and records it when it is dropped after a write.
    pub(crate) struct Tally {
        closure: Closure,
        started: Instant,
        wrote: bool,
        /// It is counted with the closure before it.
        added: bool,
    }

    impl Tally {
        pub(crate) fn start() -> Tally {
            Tally { closure: Closure::default(), started: Instant::now(), wrote: false, added: false }
        }

        /// The end of a transaction, which belongs to its last closure.
        pub(crate) fn added(mut self) -> Tally {
            self.added = true;
            self
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

        pub(crate) fn waited(&mut self) {
            self.closure.waits += 1;
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
            if self.added {
                if let Some(last) = closures.last_mut() {
                    last.statements += self.closure.statements;
                    last.waits += self.closure.waits;
                    last.rows += self.closure.rows;
                    last.bytes += self.closure.bytes;
                    last.took += self.started.elapsed();
                }
                return;
            }
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

        pub(crate) fn added(self) -> Tally {
            self
        }

        pub(crate) fn statement(&mut self, _: &[Value]) {}

        pub(crate) fn waited(&mut self) {}

        pub(crate) fn rows(&mut self, _: u64) {}

        pub(crate) fn wrote(&mut self) {}
    }
}

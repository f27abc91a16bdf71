//! A blocking connection to PostgreSQL with a deadline on every call.
//!
//! The driver's own blocking client waits as long as the server takes. A server that accepts bytes and never responds
//! (a paused machine, a broken network) would block every thread that queries it.
//!
//! Statements whose result is not needed are pipelined: the server executes them while this thread continues. Their
//! results are read, in order, before that of the next statement that waits.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::TryStreamExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::error::{Error as Fault, Severity};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Config, Connection, Row, SimpleQueryMessage, Socket, Statement};

use crate::{Error, Result, Value};

/// How many statements may be sent before their results are read: they take memory here and in the server's socket.
const IN_FLIGHT: usize = 128;

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A timeout, or no connection.
    Silence(Error),
    /// An error of the driver or the server.
    Said(Fault),
    /// An earlier pipelined statement failed, so this one was not executed.
    Earlier(Box<Failure>),
}

impl Failure {
    /// Whether PostgreSQL itself rejected the statement and keeps the connection: then it certainly had no effect.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Failure::Silence(_) => false,
            Failure::Said(fault) => {
                let severity = fault.as_db_error().and_then(|said| said.parsed_severity());
                severity == Some(Severity::Error) && !ends_connection(fault)
            }
            Failure::Earlier(failure) => failure.is_refusal(),
        }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        Failure::Said(fault)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        match failure {
            Failure::Silence(error) => error,
            Failure::Said(fault) => fault.into(),
            // It is unknown whose statement failed. Everything runs again, waiting for each statement.
            Failure::Earlier(failure) => match Error::from(*failure) {
                Error::Unique(_) | Error::Database(_) => Error::Undo,
                error => error,
            },
        }
    }
}

/// Whether the server closes the connection with this error. PgBouncer states the severity only in the field that PostgreSQL
/// translates, also when PostgreSQL disappeared while it committed.
pub(crate) fn ends_connection(fault: &Fault) -> bool {
    fault.as_db_error().is_some_and(|said| match said.parsed_severity() {
        Some(severity) => matches!(severity, Severity::Fatal | Severity::Panic),
        None => matches!(said.severity(), "FATAL" | "PANIC") || said.code().code().starts_with("08"),
    })
}

/// A statement that the server has parsed once.
#[derive(Clone)]
pub(crate) enum Prepared {
    /// The session has it.
    Named(Statement),
    /// It is sent and planned each time, with the types of its values.
    Typed(Arc<str>, Arc<[Type]>),
}

impl Prepared {
    async fn execute(&self, client: &tokio_postgres::Client, values: &[Value<'_>]) -> Result<u64, Fault> {
        match self {
            Prepared::Named(statement) => client.execute_raw(statement, values).await,
            Prepared::Typed(sql, types) => {
                let values: Vec<(&(dyn ToSql + Sync), Type)> =
                    typed(values, types).map(|(value, kind)| (value as _, kind)).collect();
                client.execute_typed(sql, &values).await
            }
        }
    }
}

/// The values with their types.
fn typed<'v, 'a>(values: &'v [Value<'a>], types: &'v [Type]) -> impl ExactSizeIterator<Item = (&'v Value<'a>, Type)> {
    values.iter().zip(types.iter().cloned())
}

/// A pending result.
type Answer = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

/// A connection. The client is dropped first, so that the wire can close the connection properly.
pub(crate) struct Client {
    sent: VecDeque<Answer>,
    client: Arc<tokio_postgres::Client>,
    wire: Wire,
}

/// The socket, and what drives it.
struct Wire {
    runtime: Option<Runtime>,
    connection: Box<dyn Messages>,
    deadline: Duration,
    /// It failed or timed out: further replies on it cannot be matched to requests.
    over: bool,
    warned: bool,
}

/// The driver's connection, over any kind of socket.
trait Messages: Send {
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<AsyncMessage, Fault>>>;
}

impl<S, T> Messages for Connection<S, T>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
    T: AsyncRead + AsyncWrite + Unpin + Send,
{
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<AsyncMessage, Fault>>> {
        Connection::poll_message(self, cx)
    }
}

impl Client {
    /// Connects; `deadline` covers everything from resolving the host name to the server's ready message.
    pub(crate) fn connect<T>(config: &Config, tls: T, deadline: Duration) -> Result<Client, Failure>
    where
        T: MakeTlsConnect<Socket>,
        T::Stream: Send + 'static,
    {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::Silence(Error::Unavailable(format!("cannot connect: {error}"))))?;
        match runtime.block_on(async { tokio::time::timeout(deadline, config.connect(tls)).await }) {
            Ok(Ok((client, connection))) => {
                let connection = Box::new(connection);
                let wire = Wire { runtime: Some(runtime), connection, deadline, over: false, warned: false };
                Ok(Client { sent: VecDeque::new(), client: Arc::new(client), wire })
            }
            Ok(Err(fault)) => Err(Failure::Said(fault)),
            Err(_) => {
                // It may still be looking up the name.
                runtime.shutdown_background();
                Err(silence(deadline))
            }
        }
    }

    /// Sets the timeout of all further calls, and returns the one before.
    pub(crate) fn set_deadline(&mut self, deadline: Duration) -> Duration {
        std::mem::replace(&mut self.wire.deadline, deadline)
    }

    /// Whether the server has warned since this was last asked.
    pub(crate) fn take_warned(&mut self) -> bool {
        std::mem::take(&mut self.wire.warned)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.wire.over || self.client.is_closed()
    }

    /// Prepares a statement. `pooled`: only its types are remembered, because the next transaction may have another session.
    pub(crate) fn prepare(&mut self, sql: &str, pooled: bool) -> Result<Prepared, Failure> {
        let Client { sent, client, wire } = self;
        let statement = wire.wait(sent, client.prepare(sql))?;
        if pooled {
            // Dropping the statement closes it on the server, within the same transaction.
            return Ok(Prepared::Typed(sql.into(), statement.params().into()));
        }
        Ok(Prepared::Named(statement))
    }

    pub(crate) fn execute(&mut self, prepared: &Prepared, values: &[Value]) -> Result<u64, Failure> {
        let Client { sent, client, wire } = self;
        wire.wait(sent, prepared.execute(client, values))
    }

    /// Calls `take` for every row as it arrives, until it returns false.
    pub(crate) fn each(
        &mut self,
        prepared: &Prepared,
        values: &[Value],
        take: &mut dyn FnMut(&Row) -> bool,
    ) -> Result<(), Failure> {
        let Client { sent, client, wire } = self;
        wire.wait(sent, async {
            let rows = match prepared {
                Prepared::Named(statement) => client.query_raw(statement, values).await?,
                Prepared::Typed(sql, types) => client.query_typed_raw(sql, typed(values, types)).await?,
            };
            let mut rows = pin!(rows);
            // The driver discards the rows that nobody takes.
            while rows.try_next().await?.is_some_and(|row| take(&row)) {}
            Ok(())
        })
    }

    pub(crate) fn script(&mut self, sql: &str) -> Result<(), Failure> {
        let Client { sent, client, wire } = self;
        wire.wait(sent, client.batch_execute(sql))
    }

    /// Runs statements and returns the first column of the last row.
    pub(crate) fn ask(&mut self, sql: &str) -> Result<Option<String>, Failure> {
        let Client { sent, client, wire } = self;
        Ok(last_row(&wire.wait(sent, client.simple_query(sql))?))
    }

    /// Sends a statement; the next call that waits reports its failure.
    pub(crate) fn send(&mut self, prepared: &Prepared, values: &[Value]) -> Result<(), Failure> {
        let (client, prepared) = (self.client.clone(), prepared.clone());
        let values: Vec<Value<'static>> = values.iter().map(Value::owned).collect();
        self.put(Box::pin(async move { Ok(prepared.execute(&client, &values).await.map(drop)?) }), true)
    }

    /// Sends statements that take no values; without `flush` they go with the next ones.
    pub(crate) fn send_script(&mut self, sql: impl Into<Cow<'static, str>>, flush: bool) -> Result<(), Failure> {
        let (client, sql) = (self.client.clone(), sql.into());
        self.put(Box::pin(async move { Ok(client.batch_execute(&sql).await?) }), flush)
    }

    /// Sends statements together with the next ones; `take` is given what [`Client::ask`] answers.
    pub(crate) fn send_ask(
        &mut self,
        sql: String,
        take: impl FnOnce(Option<String>) -> Result<(), Failure> + Send + 'static,
    ) -> Result<(), Failure> {
        let client = self.client.clone();
        self.put(Box::pin(async move { take(last_row(&client.simple_query(&sql).await?)) }), false)
    }

    /// Waits for the results of all statements that were sent.
    pub(crate) fn settle(&mut self) -> Result<(), Failure> {
        self.wire.wait(&mut self.sent, std::future::ready(Ok(())))
    }

    /// Ignores the results of the statements that were sent.
    pub(crate) fn ignore_sent(&mut self) {
        self.sent.clear();
    }

    fn put(&mut self, mut answer: Answer, flush: bool) -> Result<(), Failure> {
        if self.sent.len() >= IN_FLIGHT {
            self.settle()?;
        }
        // A result this early means that it was not sent: the values do not match the statement, or the connection is closed.
        if let Some(done) = self.wire.start(&mut answer, flush) {
            return done;
        }
        self.sent.push_back(answer);
        Ok(())
    }
}

fn last_row(messages: &[SimpleQueryMessage]) -> Option<String> {
    messages.iter().rev().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_string),
        _ => None,
    })
}

impl Wire {
    /// Sends `work` after all earlier statements, and waits for all results. Each has the full deadline, as if it were the
    /// only one: the server executes one statement at a time.
    fn wait<T>(
        &mut self,
        sent: &mut VecDeque<Answer>,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Failure> {
        let Wire { runtime, connection, deadline, over, warned } = self;
        let Some(runtime) = runtime.as_ref().filter(|_| !*over) else { return Err(closed()) };
        let (limit, mut work) = (*deadline, pin!(work));
        let (mut begun, mut done, mut earlier, mut failed) = (false, None, Ok(()), false);
        let answered = runtime.block_on(async {
            let mut late = pin!(tokio::time::sleep(limit));
            poll_fn(|cx| {
                if !begun && let Poll::Ready(known) = work.as_mut().poll(cx) {
                    done = Some(known);
                }
                begun = true;
                let fault = poll_messages(connection.as_mut(), warned, cx);
                while let Some(Poll::Ready(said)) = sent.front_mut().map(|answer| answer.as_mut().poll(cx)) {
                    sent.pop_front();
                    late.as_mut().reset(tokio::time::Instant::now() + limit);
                    // The first failure is the cause of the others.
                    if earlier.is_ok() {
                        earlier = said.map_err(|failure| Failure::Earlier(Box::new(failure)));
                    }
                }
                // The result may have arrived just before the deadline.
                failed = fault.is_some();
                if sent.is_empty() {
                    if let Err(failure) = std::mem::replace(&mut earlier, Ok(())) {
                        return Poll::Ready(Some(Err(failure)));
                    }
                    if done.is_none()
                        && let Poll::Ready(said) = work.as_mut().poll(cx)
                    {
                        done = Some(said);
                    }
                    if let Some(done) = done.take() {
                        return Poll::Ready(Some(done.map_err(Failure::Said)));
                    }
                }
                match fault {
                    Some(fault) => Poll::Ready(Some(Err(Failure::Said(fault)))),
                    None => late.as_mut().poll(cx).map(|()| None),
                }
            })
            .await
        });
        *over |= failed || answered.is_none();
        answered.unwrap_or_else(|| Err(silence(limit)))
    }

    /// Sends a request: with `flush` as far as the socket accepts it now, otherwise together with the next one. Returns its
    /// result if that is already known.
    fn start(&mut self, answer: &mut Answer, flush: bool) -> Option<Result<(), Failure>> {
        let Wire { runtime, connection, over, warned, .. } = self;
        let Some(runtime) = runtime.as_ref().filter(|_| !*over) else { return Some(Err(closed())) };
        let _inside = runtime.enter();
        let mut cx = Context::from_waker(Waker::noop());
        if let Poll::Ready(done) = answer.as_mut().poll(&mut cx) {
            return Some(done);
        }
        if flush {
            // The next call that waits reports a failure of the connection again.
            *over |= poll_messages(connection.as_mut(), warned, &mut cx).is_some();
        }
        None
    }
}

/// Reads and writes as much as the socket allows; returns the error if it failed.
fn poll_messages(connection: &mut dyn Messages, warned: &mut bool, cx: &mut Context<'_>) -> Option<Fault> {
    loop {
        match connection.poll_message(cx) {
            Poll::Ready(Some(Ok(AsyncMessage::Notice(notice)))) => {
                tracing::info!(said = %notice, "Notice from PostgreSQL.");
                *warned = true;
            }
            Poll::Ready(Some(Ok(_))) => {}
            Poll::Ready(Some(Err(fault))) => return Some(fault),
            Poll::Ready(None) | Poll::Pending => return None,
        }
    }
}

fn closed() -> Failure {
    Failure::Silence(Error::Disconnected("the connection is closed".into()))
}

fn silence(deadline: Duration) -> Failure {
    Failure::Silence(Error::Disconnected(format!("PostgreSQL has not responded for {} ms", deadline.as_millis())))
}

impl Drop for Wire {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        if !self.over {
            // Closes the connection properly if the socket accepts it immediately. A tokio thread must not block.
            let _inside = runtime.enter();
            let _ = self.connection.poll_message(&mut Context::from_waker(Waker::noop()));
        }
        runtime.shutdown_background();
    }
}

//! A blocking connection to PostgreSQL with a deadline on every call.
//!
//! The driver's own blocking client waits for as long as the server takes. A server that accepts bytes and
//! never answers (a paused machine, a broken network) would hold every thread that asks it something.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::error::{Error as Fault, Severity};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Config, Connection, Row, SimpleQueryMessage, Socket, Statement};

use crate::{Error, Result};

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No answer in time, or no connection to begin with.
    Silence(Error),
    /// What the driver or the server said.
    Said(Fault),
}

impl Failure {
    /// Whether the server itself refused the statement and goes on: then it is certain that it was not done.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Failure::Said(fault) if fault.as_db_error().is_some() && !ends_connection(fault))
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        match failure {
            Failure::Silence(error) => error,
            Failure::Said(fault) => fault.into(),
        }
    }
}

/// Whether the server closes the connection with these words.
pub(crate) fn ends_connection(fault: &Fault) -> bool {
    let severity = fault.as_db_error().and_then(|said| said.parsed_severity());
    matches!(severity, Some(Severity::Fatal | Severity::Panic))
}

/// A connection. The client goes first when it is dropped, so that the wire can say goodbye.
pub(crate) struct Client {
    client: tokio_postgres::Client,
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

/// The driver's connection, over whatever it runs.
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
    /// Connects; `deadline` is for all of it, from the name of the host to the server's welcome.
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
                Ok(Client { client, wire })
            }
            Ok(Err(fault)) => Err(Failure::Said(fault)),
            Err(_) => {
                // It may still be looking up the name.
                runtime.shutdown_background();
                Err(silence(deadline))
            }
        }
    }

    /// How long each call may take from now on.
    pub(crate) fn set_deadline(&mut self, deadline: Duration) {
        self.wire.deadline = deadline;
    }

    /// Whether the server has warned since this was last asked.
    pub(crate) fn take_warned(&mut self) -> bool {
        std::mem::take(&mut self.wire.warned)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.wire.over || self.client.is_closed()
    }

    pub(crate) fn prepare(&mut self, sql: &str) -> Result<Statement, Failure> {
        self.wire.drive(self.client.prepare(sql))
    }

    pub(crate) fn execute(&mut self, statement: &Statement, values: &[&(dyn ToSql + Sync)]) -> Result<u64, Failure> {
        self.wire.drive(self.client.execute(statement, values))
    }

    pub(crate) fn query(&mut self, statement: &Statement, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Failure> {
        self.wire.drive(self.client.query(statement, values))
    }

    pub(crate) fn script(&mut self, sql: &str) -> Result<(), Failure> {
        self.wire.drive(self.client.batch_execute(sql))
    }

    /// Runs statements and returns the first column of the last row.
    pub(crate) fn ask(&mut self, sql: &str) -> Result<Option<String>, Failure> {
        let messages = self.wire.drive(self.client.simple_query(sql))?;
        Ok(messages.iter().rev().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_string),
            _ => None,
        }))
    }
}

impl Wire {
    fn drive<T>(&mut self, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Failure> {
        let Wire { runtime, connection, deadline, over, warned } = self;
        let Some(runtime) = runtime.as_ref().filter(|_| !*over) else {
            return Err(Failure::Silence(Error::Disconnected("the connection is closed".into())));
        };
        let mut work = pin!(work);
        let mut failed = false;
        let both = poll_fn(|cx| {
            let fault = loop {
                match connection.poll_message(cx) {
                    Poll::Ready(Some(Ok(AsyncMessage::Notice(notice)))) => {
                        tracing::info!(said = %notice, "Notice from PostgreSQL.");
                        *warned = true;
                    }
                    Poll::Ready(Some(Ok(_))) => {}
                    Poll::Ready(Some(Err(fault))) => break Some(fault),
                    Poll::Ready(None) | Poll::Pending => break None,
                }
            };
            // The answer may have come just before the end.
            match (work.as_mut().poll(cx), fault) {
                (Poll::Ready(done), fault) => {
                    failed = fault.is_some();
                    Poll::Ready(done)
                }
                (Poll::Pending, Some(fault)) => {
                    failed = true;
                    Poll::Ready(Err(fault))
                }
                (Poll::Pending, None) => Poll::Pending,
            }
        });
        let limit = *deadline;
        let answered = runtime.block_on(async { tokio::time::timeout(limit, both).await });
        *over |= failed || answered.is_err();
        answered.map_err(|_| silence(limit))?.map_err(Failure::Said)
    }
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

//! Determines whether a commit whose response was lost took effect.
//!
//! A transaction id is not sufficient: after a crash or a failover PostgreSQL reuses ids, and the id of a lost
//! transaction may be that of another one that was committed. So each transaction first writes a random token to the
//! row of its writer. If the token is present, so is the rest of the transaction.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::client::{Client, Failure};
use crate::{Error, Result};

/// Timeout of a lookup: longer than PostgreSQL waits for a row lock.
const ANSWER: Duration = Duration::from_secs(6);

/// Rows of disconnected writers are deleted after a day. A user without the right to create or write the table goes
/// without.
const TABLE: &str = "
DO $$ BEGIN
    IF to_regclass('writer_marks') IS NULL THEN
        PERFORM pg_advisory_xact_lock(7120562);
        CREATE TABLE IF NOT EXISTS writer_marks (
            writer TEXT PRIMARY KEY, token TEXT NOT NULL, checks BIGINT NOT NULL, written_at TIMESTAMPTZ NOT NULL
        ) WITH (fillfactor = 50);
    END IF;
END $$;
DELETE FROM writer_marks WHERE writer IN (
    SELECT writer FROM writer_marks WHERE written_at < now() - INTERVAL '1 day' FOR UPDATE SKIP LOCKED)";
const INTRODUCE: &str =
    "INSERT INTO writer_marks (writer, token, checks, written_at) VALUES (gen_random_uuid()::TEXT, '', 0, now())
    RETURNING writer";

/// Returns the statement that writes a new token for a writer.
fn marking(writer: &str) -> String {
    format!(
        "INSERT INTO writer_marks (writer, token, checks, written_at) VALUES ({writer}, gen_random_uuid()::TEXT, 0, now())
         ON CONFLICT (writer) DO UPDATE SET token = excluded.token, written_at = excluded.written_at
         RETURNING token"
    )
}

/// Closures see what was committed while they waited for the account: READ COMMITTED, whatever the server's default is.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// The mark of one connection.
pub(crate) struct Mark {
    /// Empty if there is no table for it.
    writer: String,
    /// The statement that each transaction begins with.
    write: String,
    /// The token of the last transaction, once the server has returned it.
    token: Arc<OnceLock<String>>,
}

impl Mark {
    /// Creates a row for a new connection. A connection never reuses the row of another: a server process that is still
    /// committing for a lost connection locks its row.
    pub(crate) fn introduce(client: &mut Client, pooled: bool) -> Result<Mark> {
        // A pooler gives the next transaction another session, which does not know what was prepared in this one.
        let prepare = if pooled { String::new() } else { format!("PREPARE writer_mark (TEXT) AS {};", marking("$1")) };
        let writer = match client.ask(&format!("{TABLE}; {prepare} {INTRODUCE}")) {
            Ok(writer) => writer.unwrap_or_default(),
            Err(failure) => match Error::from(failure) {
                Error::Database(why) => {
                    tracing::warn!(%why, "Kantoor may not write to its table writer_marks: if the connection to PostgreSQL is lost during a commit, it cannot be determined whether the write was committed.");
                    String::new()
                }
                error => return Err(error),
            },
        };
        let quoted = format!("'{writer}'");
        let write = if pooled { marking(&quoted) } else { format!("EXECUTE writer_mark ({quoted})") };
        Ok(Mark { writer, write, token: Arc::default() })
    }

    /// Begins a transaction, with the mark as its first write. It locks the row, so a lookup of the mark waits until this
    /// transaction has ended. This does not wait for the result, which must arrive before the commit is sent. `settings`
    /// apply to this transaction.
    pub(crate) fn begin(&mut self, client: &mut Client, settings: &str) -> Result<(), Failure> {
        // An empty token belongs to a writer that has committed nothing; it must never match.
        self.token = Arc::default();
        if self.writer.is_empty() {
            return client.send_script(format!("{BEGIN}; {settings}"), false);
        }
        let token = self.token.clone();
        client.send_ask(format!("{BEGIN}; {settings}{}", self.write), move |said| {
            match said.filter(|said| !said.is_empty()).map(|said| token.set(said)) {
                Some(Ok(())) => Ok(()),
                _ => Err(Failure::Silence(Error::Disconnected("the transaction has no mark".into()))),
            }
        })
    }

    /// Whether the transaction can be committed: its token is known, so it can be looked up if the connection is lost.
    pub(crate) fn is_known(&self) -> bool {
        self.writer.is_empty() || self.is_set()
    }

    /// Whether there is a mark to look up when the connection is lost.
    pub(crate) fn is_set(&self) -> bool {
        self.token.get().is_some()
    }

    /// Whether the last transaction was committed; `None` if this cannot be determined now.
    ///
    /// The statement waits for the row lock, or for the insertion, so it sees how the transaction ended. It also
    /// writes: a commit that a synchronous standby confirms implies that the standby has everything before it.
    /// Otherwise, a server without its standby would report a transaction as committed that a failover loses.
    pub(crate) fn is_kept(&self, client: &mut Client) -> Option<bool> {
        client.set_deadline(ANSWER);
        client.take_warned();
        let found = client.ask(&format!(
            "INSERT INTO writer_marks (writer, token, checks, written_at) VALUES ('{}', '', 0, now())
             ON CONFLICT (writer) DO UPDATE SET checks = writer_marks.checks + 1, written_at = excluded.written_at
             RETURNING token",
            self.writer
        ));
        let found = found.ok().filter(|_| !client.take_warned())?;
        Some(found? == *self.token.get()?)
    }
}

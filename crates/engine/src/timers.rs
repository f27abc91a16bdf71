//! Timers: events that are emitted when nothing happens for a number of days. An event arms timers; an expired timer
//! checks whether its condition still holds and emits its event, once. The cost depends on the number of due timers,
//! not on their total.
//!
//! A timer stores the moment since which nothing has happened. The number of days is a setting that is added in the
//! query, so changing it also affects timers that are already running. The registry lists the timers; each is declared
//! in the file of its resource.

use store::{Gathered, Merge, Migration, Tx, Value};

use crate::clock::Moment;
use crate::context::Ctx;
use crate::error::{Code, Error, Result};
use crate::json::member;
use crate::log::Event;
use crate::slice::{Slice, TOGETHER};

/// The table of timers.
pub const MIGRATION: Migration = Migration {
    number: 13,
    name: "timers",
    sql: "
CREATE TABLE timers (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    cause TEXT NOT NULL,
    record_id TEXT NOT NULL,
    since BIGINT NOT NULL,
    PRIMARY KEY (account_id, cause, record_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX timers_due ON timers (account_id, cause, since, record_id);
",
};

const DAY: i64 = 24 * 3600;

/// A timer, whose days are in the settings `S`.
pub struct Timer<S> {
    /// The event that it emits.
    pub cause: &'static str,
    /// The types of record that it is about.
    pub about: &'static [&'static str],
    /// The events that arm it, and for which record.
    pub armed_by: &'static [(&'static str, Of)],
    /// Returns since when it waits after such an event.
    pub since: fn(&Ctx, &Data) -> Since,
    /// The number of days that it waits, 0 for never; `None` for a timer that is armed for a specific moment.
    pub days: Option<fn(&S) -> i64>,
    /// Emits the event of the record with this id, if the condition still holds.
    pub run_out: fn(&mut Tx, &Ctx, &str) -> Result<()>,
}

/// The record whose timer an event arms.
pub enum Of {
    /// The record of the event, if the timer is about such records.
    Itself,
    /// The record whose id is in this member of the event's data, such as `meta.owner_id`.
    Member(&'static str),
}

/// Since when a timer waits.
pub enum Since {
    /// Since the event.
    Now,
    /// Since this moment, which may be in the future.
    At(Moment),
    /// It is disarmed.
    Never,
    /// It does not change.
    AsBefore,
}

/// For timers that wait since the event.
pub const NOW: fn(&Ctx, &Data) -> Since = |_, _| Since::Now;

/// The data of an event, read when somebody looks and only as far as that: a document may have a thousand rows.
pub struct Data<'d> {
    json: &'d str,
}

impl<'d> Data<'d> {
    fn of(json: &'d str) -> Data<'d> {
        Data { json }
    }

    /// Returns the text at a path such as `owner_id` or `meta.owner_id`; `None` if it is empty or not a text.
    pub fn text(&self, path: &str) -> Option<String> {
        let (name, rest) = path.split_once('.').unwrap_or((path, ""));
        let member = member(self.json, name)?;
        match rest {
            "" => serde_json::from_str(member).ok().filter(|text: &String| !text.is_empty()),
            rest => Data::of(member).text(rest),
        }
    }
}

/// Arms and disarms timers after an event.
pub fn note<S>(tx: &mut Tx, ctx: &Ctx, timers: &[&Timer<S>], event: &Event) -> Result<()> {
    let data = Data::of(event.data);
    for timer in timers {
        // Most events arm nothing, and cost nothing here.
        for (_, of) in timer.armed_by.iter().filter(|(name, _)| *name == event.name) {
            let record = match of {
                Of::Itself => Some(event.entity_id.to_string()).filter(|_| timer.about.contains(&event.entity_type)),
                Of::Member(path) => data.text(path),
            };
            if let Some(record) = record {
                timer.apply(tx, ctx, &record, (timer.since)(ctx, &data))?;
            }
        }
    }
    Ok(())
}

static ARMED: Gathered = Gathered {
    table: "timers",
    columns: &["account_id", "cause", "record_id", "since"],
    key: 3,
    merge: Merge::Last,
    conflict: "ON CONFLICT (account_id, cause, record_id) DO UPDATE SET since = excluded.since",
};

impl<S> Timer<S> {
    fn apply(&self, tx: &mut Tx, ctx: &Ctx, record: &str, since: Since) -> Result<()> {
        match since {
            Since::Now => self.arm(tx, ctx, record, ctx.now),
            Since::At(moment) => self.arm(tx, ctx, record, moment),
            Since::Never => self.disarm(tx, ctx, record),
            Since::AsBefore => Ok(()),
        }
    }

    /// Arms the timer since this moment.
    pub fn arm(&self, tx: &mut Tx, ctx: &Ctx, record: &str, since: Moment) -> Result<()> {
        let row: [Value; 4] = [ctx.account.into(), self.cause.into(), record.into(), since.0.into()];
        Ok(tx.gather(&ARMED, &row)?)
    }

    /// Arms the timer since now, unless it is already armed.
    pub fn arm_first(&self, tx: &mut Tx, ctx: &Ctx, record: &str) -> Result<()> {
        let sql = "INSERT INTO timers (account_id, cause, record_id, since) VALUES ($1, $2, $3, $4)
                   ON CONFLICT DO NOTHING";
        tx.send(sql, &[ctx.account.into(), self.cause.into(), record.into(), ctx.now.0.into()])?;
        Ok(())
    }

    /// Disarms the timer.
    pub fn disarm(&self, tx: &mut Tx, ctx: &Ctx, record: &str) -> Result<()> {
        let sql = "DELETE FROM timers WHERE account_id = $1 AND cause = $2 AND record_id = $3";
        tx.send(sql, &[ctx.account.into(), self.cause.into(), record.into()])?;
        Ok(())
    }

    /// Returns how long it waits, in seconds; `None` if it is disabled.
    fn patience(&self, settings: &S) -> Option<i64> {
        let Some(days) = self.days else { return Some(0) };
        Some(days(settings) * DAY).filter(|seconds| *seconds > 0)
    }
}

/// Returns when the next timer expires.
pub fn next_moment<S>(tx: &mut Tx, ctx: &Ctx, timers: &[&Timer<S>], settings: &S) -> Result<Option<Moment>> {
    let index = tx.dialect().indexed_by("timers_due");
    let sql = format!("SELECT since FROM timers{index} WHERE account_id = $1 AND cause = $2 ORDER BY since LIMIT 1");
    let mut next: Option<Moment> = None;
    for timer in timers {
        let Some(seconds) = timer.patience(settings) else { continue };
        let values = [ctx.account.into(), timer.cause.into()];
        let since = tx.first(&sql, &values, |row| Ok::<_, Error>(Moment(row.int(0)?)))?;
        next = [next, since.map(|since| since.plus_seconds(seconds))].into_iter().flatten().min();
    }
    Ok(next)
}

/// Runs the expired timers, in order, as far as they fit in the slice; returns whether there may be more.
pub fn run_out<S>(tx: &mut Tx, ctx: &Ctx, timers: &[&Timer<S>], settings: &S, slice: &Slice) -> Result<bool> {
    let index = tx.dialect().indexed_by("timers_due");
    let sql = format!(
        "SELECT since, record_id FROM timers{index} WHERE account_id = $1 AND cause = $2 AND since <= $3
         ORDER BY since, record_id LIMIT $4"
    );
    let mut due: Vec<(i64, String, &Timer<S>)> = Vec::new();
    for timer in timers {
        let Some(seconds) = timer.patience(settings) else { continue };
        let before = ctx.now.plus_seconds(-seconds);
        let values = [ctx.account.into(), timer.cause.into(), before.0.into(), (TOGETHER as i64).into()];
        due.extend(tx.all(&sql, &values, |row| {
            Ok::<_, Error>((row.int(0)? + seconds * 1000, row.text(1)?.to_string(), *timer))
        })?);
    }
    due.sort_unstable_by(|(at, record, timer), (other_at, other, other_timer)| {
        (at, record, timer.cause).cmp(&(other_at, other, other_timer.cause))
    });
    let more = due.len() >= TOGETHER;
    due.truncate(TOGETHER);
    for (_, record, timer) in &due {
        if slice.is_over() {
            return Ok(true);
        }
        slice.did_one();
        timer.disarm(tx, ctx, record)?;
        match (timer.run_out)(tx, ctx, record) {
            // The timer of a deleted record is ignored.
            Err(error) if error.code == Code::NotFound => {}
            told => told?,
        }
    }
    Ok(more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_only_the_requested_member() {
        let data = Data::of(r#"{"owner_id":"a","rows":[1,{"x":2}],"empty":"","meta":{"owner_id":"\u0062","n":1}}"#);
        assert_eq!(data.text("owner_id").as_deref(), Some("a"));
        assert_eq!(data.text("meta.owner_id").as_deref(), Some("b"));
        for nothing in ["empty", "rows", "meta.n", "meta.none", "none", "owner_id.x"] {
            assert_eq!(data.text(nothing), None, "{nothing}");
        }
        assert_eq!(Data::of("not json").text("x"), None);
    }
}

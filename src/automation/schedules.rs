//! Flows that a schedule starts.

use engine::ahead::SKEW;
use engine::app::App;
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Error, Result};
use engine::log::Event;
use engine::record::{Data, Link, Record};
use engine::records;
use jiff::tz::TimeZone;
use serde_json::json;
use store::{Tx, Value};

use super::cron::Cron;
use super::matching;
use crate::automation::flow::Flow;
use crate::automation::run::{self, Run};

/// When a flow that cannot be read is retried.
const RETRY_SECONDS: i64 = 3600;

/// The event name of a scheduled run.
pub const EVENT: &str = "schedule";

/// The `data` of a scheduled run.
pub fn data(time: Moment, zone: &TimeZone) -> Data {
    Data::from(json!({"scheduled_for": time.to_string(), "date": time.date(zone).to_string()}))
}

/// Writes a run for each due schedule and computes its next time. Of several missed times, only the latest starts a
/// run.
pub fn fire(tx: &mut Tx, ctx: &Ctx) -> Result<usize> {
    let sql = format!(
        "{} WHERE account_id = $1 AND next_at > 0 AND next_at <= $2 ORDER BY next_at, id LIMIT 100",
        Flow::sql().select
    );
    let due = tx.all(&sql, &[ctx.account.into(), ctx.now.0.into()], |row| {
        Ok::<_, store::Error>((row.text(0)?.to_string(), Flow::from_row(row)))
    })?;
    for (id, flow) in &due {
        let flow = match flow {
            Ok(flow) => flow,
            Err(cause) => {
                // The other schedules continue; this one is retried in an hour.
                tracing::error!(%cause, "A scheduled flow does not start.");
                let later = "UPDATE flows SET next_at = $1 WHERE account_id = $2 AND id = $3";
                tx.execute(later, &[ctx.now.plus_seconds(RETRY_SECONDS).0.into(), ctx.account.into(), id.into()])?;
                continue;
            }
        };
        let Ok(cron) = Cron::parse(&flow.trigger_key) else { continue };
        let time = cron.latest(Moment(flow.next_at), ctx.now, &ctx.zone);
        let next = cron.next(ctx.now, &ctx.zone).map_or(0, |next| next.0);
        // This is not a visible change: it has no new version and no event.
        let moved = "UPDATE flows SET next_at = $1 WHERE account_id = $2 AND id = $3";
        tx.execute(moved, &[Value::from(next), ctx.account.into(), (&flow.base.id).into()])?;
        let data = data(time, &ctx.zone);
        let event = Event { name: EVENT, entity_type: "", entity_id: "", data: &data.0 };
        if !matching::matches(&flow.base.id, &flow.conditions.0.to_string(), &matching::condition_context(&event)) {
            continue;
        }
        let mut run = Run {
            flow_id: Link(flow.base.id.clone()),
            flow_name: flow.name.clone(),
            trigger_type: flow.trigger_type.wire().to_string(),
            trigger_key: flow.trigger_key.clone(),
            max_attempts: flow.max_attempts,
            flow_version: flow.definition_version,
            event: EVENT.to_string(),
            data,
            depth: 1,
            ..Run::default()
        };
        run.queue(ctx);
        run::insert(tx, ctx, &mut run)?;
        records::count::<Run>(tx, ctx, 1)?;
    }
    Ok(due.len())
}

/// Returns the next moment after now at which a schedule is due.
pub fn next_moment(tx: &mut Tx, ctx: &Ctx) -> Result<Option<Moment>> {
    let sql = "SELECT next_at FROM flows WHERE account_id = $1 AND next_at > 0 ORDER BY next_at LIMIT 1";
    Ok(tx.first(sql, &[ctx.account.into()], |row| row.int(0))?.map(Moment))
}

/// A schedule that a wrong clock moved too far ahead.
struct Ahead {
    account: i64,
    flow: String,
    next_at: i64,
    /// When it is due by the current clock.
    right: i64,
}

/// Reschedules flows after the clock jumped forward and back, in which case they would not start for as long as the jump
/// was. Returns how many there were.
pub fn pull_back(app: &App) -> Result<u64> {
    let now = app.clock.now();
    let mut pulled = 0;
    for one in app.store.read_now(move |tx| ahead(tx, now))? {
        // Another node may have rescheduled it, or a caller may have changed it.
        let sql = "UPDATE flows SET next_at = $1 WHERE account_id = $2 AND id = $3 AND next_at = $4";
        pulled += app.store.write_now(one.account, move |tx| {
            tx.hold("accounts", one.account)?;
            let values = [one.right.into(), one.account.into(), (&one.flow).into(), one.next_at.into()];
            Ok::<_, Error>(tx.execute(sql, &values)?)
        })?;
    }
    Ok(pulled)
}

/// Returns the schedules that are further ahead than any clock that is right can have moved them. The first hour is not
/// examined, since a flow that cannot be read waits for so long.
fn ahead(tx: &mut Tx, now: Moment) -> Result<Vec<Ahead>> {
    let sql = "SELECT flows.account_id, flows.id, trigger_key, next_at, zone FROM accounts
               JOIN flows ON flows.account_id = accounts.id
               WHERE test_clock = 0 AND next_at > 0 AND next_at > $1";
    let mut found = Vec::new();
    tx.each(sql, &[now.plus_seconds(RETRY_SECONDS + SKEW).0.into()], |row| {
        let next_at = row.int(3)?;
        let (Ok(cron), Ok(zone)) = (Cron::parse(row.text(2)?), TimeZone::get(row.text(4)?)) else { return Ok(()) };
        let latest = cron.next(now.plus_seconds(SKEW), &zone);
        if let Some(right) = cron.next(now, &zone).filter(|_| latest.is_some_and(|latest| next_at > latest.0)) {
            found.push(Ahead { account: row.int(0)?, flow: row.text(1)?.to_string(), next_at, right: right.0 });
        }
        Ok::<(), Error>(())
    })?;
    Ok(found)
}

//! Flows that a schedule starts.

use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::Result;
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
                tx.execute(later, &[ctx.now.plus_seconds(3600).0.into(), ctx.account.into(), id.into()])?;
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

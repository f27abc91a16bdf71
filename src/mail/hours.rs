//! When automatic mail leaves: in the office hours of the account, in its time zone.

use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Error, Result};
use engine::who::ActorType;
use jiff::ToSpan;
use jiff::civil::Date;
use store::Tx;

use crate::settings::Settings;
use crate::settings::office_hours::OfficeHours;

/// When a mail may leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// At once if a person or a key sends it; in office hours if a flow or a job does.
    #[default]
    BySender,
    /// In office hours, whoever sends it.
    OfficeHours,
    /// At once: somebody waits for it.
    AtOnce,
}

/// Returns the moment at which a mail leaves, on the account's clock.
pub fn leaves_at(tx: &mut Tx, ctx: &Ctx, timing: Timing) -> Result<Moment> {
    let is_automatic = matches!(ctx.actor.kind, ActorType::Job | ActorType::Other(_));
    match timing {
        Timing::AtOnce => Ok(ctx.now),
        Timing::BySender if !is_automatic => Ok(ctx.now),
        // Mail that really leaves does not wait for a clock that stands still.
        _ if ctx.has_test_clock && !Settings::is_sealed(tx, ctx)? => Ok(ctx.now),
        _ => Ok(next_in(&Settings::of(tx, ctx)?.office_hours(), ctx)),
    }
}

/// How long a job waits at most before it looks again, in seconds. Jobs that are due much later count as misplaced by a wrong
/// clock.
const LOOK: i64 = 1800;

/// Returns when a mail is looked at next that leaves at this moment.
pub fn next_look(leaves_at: Moment, now: Moment) -> Moment {
    leaves_at.max(now).min(now.plus_seconds(LOOK))
}

/// Returns when to look again at the mail of a delivery that does not leave yet. That of an account with a test clock has no
/// job before it leaves.
pub fn held_until(tx: &mut Tx, account: i64, delivery: &str, now: Moment) -> Result<Option<Moment>> {
    let sql = "SELECT leaves_at FROM mails WHERE account_id = $1
               AND id = (SELECT mail_id FROM deliveries WHERE account_id = $1 AND id = $2)
               AND (SELECT test_clock FROM accounts WHERE id = $1) = 0";
    let leaves = tx.first(sql, &[account.into(), delivery.into()], |row| Ok::<_, Error>(Moment(row.int(0)?)))?;
    Ok(leaves.filter(|leaves| *leaves > now).map(|leaves| next_look(leaves, now)))
}

/// Returns the current moment if it is in office hours, otherwise the next at which they begin.
pub(super) fn next_in(hours: &OfficeHours, ctx: &Ctx) -> Moment {
    let local = ctx.now.datetime(&ctx.zone);
    let minute = i64::from(local.hour()) * 60 + i64::from(local.minute());
    let today = local.date();
    if hours.includes(today.weekday()) && (hours.from..hours.until).contains(&minute) {
        return ctx.now;
    }
    let later_today = minute < hours.from;
    let mut days = (i64::from(!later_today)..=7).filter_map(|days| today.checked_add(days.days()).ok());
    let day = days.find(|day| hours.includes(day.weekday()));
    day.map_or(ctx.now, |day| at(ctx, day, hours.from))
}

/// Returns a time of day. Where the clocks skip it, the first moment after it.
fn at(ctx: &Ctx, day: Date, minute: i64) -> Moment {
    let time = day.to_datetime(jiff::civil::Time::midnight()).checked_add(minute.minutes());
    match time.ok().and_then(|time| time.to_zoned(ctx.zone.clone()).ok()) {
        Some(zoned) => Moment(zoned.timestamp().as_millisecond()),
        None => ctx.now,
    }
}

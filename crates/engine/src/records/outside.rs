//! Guarded records that were changed outside the program: users, keys, settings and the like, which give access or say where
//! money goes.

use serde_json::Value as Shown;
use store::{Tx, Value};

use super::counts::count_kind;
use super::image::Image;
use crate::accounts::Account;
use crate::context::Ctx;
use crate::error::{Error, Result};
use crate::inspect;
use crate::inspect::lines::{self, CHANGED_OUTSIDE};
use crate::json::write_text;
use crate::log::{self, Event};
use crate::record::{AnyRecord, Layout, Record, Shape};
use crate::search;
use crate::slice::TOGETHER;
use crate::who::Who;

/// Writes a line of its own about a guarded record that was changed outside the program: the next line has the whole record,
/// and would take the change over.
pub(super) fn note_outside(tx: &mut Tx, ctx: &Ctx, found: &dyn AnyRecord) -> Result<()> {
    let Some(what) = lines::changed_outside(tx, ctx.account, found)? else { return Ok(()) };
    let mut member = b"\"difference\":".to_vec();
    write_text(&mut member, &what);
    let image = Image::with(ctx, found, &String::from_utf8_lossy(&member))?;
    let shape = found.layout().shape;
    tell(shape, tx, ctx, &found.common().id, &what)?;
    image.tell(tx, &by_somebody(ctx), found, &name(shape))
}

/// Who finds the change did not make it.
fn by_somebody(ctx: &Ctx) -> Ctx {
    let who = Who { name: "outside Kantoor".into(), ..Who::from("operator") };
    ctx.acting_as(who, &ctx.request_id, ctx.depth, &ctx.chain)
}

fn name(shape: &Shape) -> String {
    format!("{}.{CHANGED_OUTSIDE}", shape.events)
}

/// What became of some records that were to be accepted as they are.
#[derive(Debug, Default)]
pub struct Accepted {
    /// The last id, or empty after the last record.
    pub last: String,
    /// The records that cannot be read, and so cannot be logged: an id and a sentence for each.
    pub unreadable: Vec<(String, String)>,
}

/// Makes the log, the counts and the search texts of an account match its guarded records, a hundred after an id at a time.
pub fn accept_some<R: Record>(tx: &mut Tx, ctx: &Ctx, after: &str) -> Result<Accepted> {
    let (last, found, unreadable) = inspect::read_some::<R>(tx, ctx.account, after, TOGETHER)?;
    let found: Vec<&dyn AnyRecord> = found.iter().map(|record| record as &dyn AnyRecord).collect();
    accept(&R::layout(), tx, ctx, &found, last.is_empty())?;
    Ok(Accepted { last, unreadable })
}

fn accept(layout: &Layout, tx: &mut Tx, ctx: &Ctx, found: &[&dyn AnyRecord], are_last: bool) -> Result<()> {
    for record in found {
        note_outside(tx, ctx, *record)?;
    }
    for (id, _) in inspect::unsearched(layout, tx, ctx.account, found)? {
        found.iter().filter(|record| record.common().id == id).try_for_each(|record| search::put(tx, ctx, *record))?;
    }
    if are_last {
        note_deleted(layout, tx, ctx)?;
        recount(layout.shape, tx, ctx)?;
    }
    Ok(())
}

/// Writes a line about each record that was deleted outside the program.
fn note_deleted(layout: &Layout, tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    let (shape, account) = (layout.shape, Value::from(ctx.account));
    let sql = format!(
        "SELECT max(seq) FROM log WHERE account_id = $1 AND entity_type = $2
         AND NOT EXISTS (SELECT 1 FROM {} AS own WHERE own.account_id = $1 AND own.id = entity_id) GROUP BY entity_id",
        shape.table
    );
    let last = tx.all(&sql, &[account, shape.name.into()], |row| Ok::<_, Error>(row.int(0)?))?;
    for some in last.chunks(TOGETHER) {
        for (_, id) in lines::gone(tx, ctx.account, some)? {
            let what = "Deleted outside the log";
            let (newest, _) = log::of_record(tx, ctx.account, shape.name, &id, 0, 1)?;
            let line = log::numbered(tx, ctx.account, &newest)?;
            let mut data =
                line.first().and_then(|line| serde_json::from_str::<Shown>(line.data()).ok()).unwrap_or_default();
            if let Some(members) = data.as_object_mut() {
                members.insert("difference".to_string(), what.into());
                members.insert(lines::DELETED.to_string(), true.into());
            }
            tell(shape, tx, ctx, &id, what)?;
            let logged = data.to_string();
            // What the API does not show is for the log alone.
            data.as_object_mut().map(|members| members.remove(lines::HIDDEN));
            let (name, data) = (name(shape), data.to_string());
            let event = Event { name: &name, entity_type: shape.name, entity_id: &id, data: &data };
            log::append_as(tx, &by_somebody(ctx), &event, &logged)?;
            search::remove(layout, tx, ctx, &id)?;
        }
    }
    Ok(())
}

fn recount(shape: &Shape, tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    let sql = format!("SELECT count(*) FROM {} WHERE account_id = $1", shape.table);
    let own = tx.int(&sql, &[ctx.account.into()])?;
    let sql = "SELECT coalesce((SELECT total FROM record_counts WHERE account_id = $1 AND kind = $2), 0)";
    let kept = tx.int(sql, &[ctx.account.into(), shape.name.into()])?;
    if own == kept { Ok(()) } else { count_kind(shape.name, tx, ctx, own - kept) }
}

fn tell(shape: &Shape, tx: &mut Tx, ctx: &Ctx, id: &str, what: &str) -> Result<()> {
    let account = Account::numbered(tx, ctx.account)?.uid;
    tracing::error!(account, "The {} {id} does not match the log. {what}.", shape.name);
    Ok(())
}

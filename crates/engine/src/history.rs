//! `GET …/{id}/history`: what happened to a record, from the log. Records that were deleted have one too.

use store::Tx;

use crate::call::{Answer, Call, Work};
use crate::context::Ctx;
use crate::error::{Error, Result};
use crate::inspect::lines::HIDDEN;
use crate::list::Page;
use crate::log::{self, Line};
use crate::record::{Part, Record, Shape};
use crate::records;
use crate::shown::Viewer;

/// The parameters.
pub const QUERY: &[Part] = &[
    Part("page", "integer 1", "The page number, starting at 1."),
    Part("per_page", "integer 1", "Events per page: 25 by default, 100 at most."),
];

/// How many rows are read at a time: each may have a megabyte.
const TOGETHER: usize = 10;

/// `GET …/{id}/history`
pub fn history<R: Record>(call: Call) -> Result<Work> {
    let page = Page::read(&call)?;
    Ok(Box::new(move |tx, ctx| read(R::shape(), tx, ctx, &call, &page, belongs::<R>)))
}

/// Rejects a record that is not under the parent in the path, given the number of its events.
type Belongs = fn(&mut Tx, &Ctx, &Call, i64) -> Result<()>;

fn read(shape: &Shape, tx: &mut Tx, ctx: &Ctx, call: &Call, page: &Page, belongs: Belongs) -> Result<Answer> {
    let (kind, id) = (shape.name, call.last_id());
    if id.contains('\0') {
        return Err(Error::not_found(kind));
    }
    let (numbers, total) = log::of_record(tx, ctx.account, kind, id, page.offset(), page.per_page)?;
    if total == 0 || !shape.parent.is_empty() {
        belongs(tx, ctx, call, total)?;
    }
    let (viewer, mut data) = (Viewer::of(ctx), vec![b'[']);
    for some in numbers.chunks(TOGETHER) {
        let mut lines = log::numbered(tx, ctx.account, some)?;
        lines.sort_by_key(|line| -line.seq);
        for line in &lines {
            if data.len() > 1 {
                data.push(b',');
            }
            viewer.write_change(line, &mut data);
            ctx.fits(data.len())?;
        }
    }
    data.push(b']');
    Ok(page.answer(data, total))
}

/// Rejects a record that is not under the parent in the path. One that was deleted has its parent in the log.
fn belongs<R: Record>(tx: &mut Tx, ctx: &Ctx, call: &Call, total: i64) -> Result<()> {
    let missing = match records::find_in_path::<R>(tx, ctx, call) {
        Ok(_) => return Ok(()),
        Err(missing) => missing,
    };
    let exists = !records::find_some::<R>(tx, ctx, &[call.last_id()])?.is_empty();
    if total == 0 || exists {
        return Err(missing);
    }
    belonged(R::shape(), tx, ctx, call, missing)
}

/// The same for a record that was deleted.
fn belonged(shape: &Shape, tx: &mut Tx, ctx: &Ctx, call: &Call, missing: Error) -> Result<()> {
    let (id, parent) = (call.last_id(), shape.parent);
    let (numbers, _) = log::of_record(tx, ctx.account, shape.name, id, 0, 1)?;
    let names = |line: &Line| {
        let data: serde_json::Value = serde_json::from_str(line.data()).unwrap_or_default();
        [&data, &data["meta"], &data[HIDDEN]].into_iter().any(|part| part[parent] == call.id())
    };
    match log::numbered(tx, ctx.account, &numbers)?.first() {
        Some(line) if names(line) => Ok(()),
        _ => Err(missing),
    }
}

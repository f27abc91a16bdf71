//! Tickets store the name of their status, so renaming a status changes all of its tickets: in slices, since there may be a
//! hundred thousand. The request processes all slices before it responds; if the process dies meanwhile, a job continues.

use engine::app::App;
use engine::call::{Answer, Call};
use engine::context::{Actor, Ctx};
use engine::error::Result;
use engine::jobs::{self, Claimed, Ending, Job, NewJob};
use engine::record::Record;
use engine::records::{self, Work};
use engine::slice::{Slice, TOGETHER};
use store::Tx;

use super::ticket::Ticket;
use super::ticket_status::{RENAME_JOB, RenameStatus, TicketStatus, rename_key};

/// The delay of the job, in seconds, during which the request does the work.
const REQUEST_SECONDS: i64 = 15;

impl Job for RenameStatus {
    const KIND: &'static str = RENAME_JOB;

    fn run(&self, app: &App, claimed: &Claimed) -> Result<Ending> {
        let caller = app.acting_in(claimed.account, Self::KIND)?;
        self.rename_all(app, &caller)?;
        Ok(Ending::Done)
    }
}

/// `PATCH …/{id}` of a status: a status that gets another name keeps its tickets.
pub fn patch_status(call: Call) -> Result<Work> {
    let write = records::patch::<TicketStatus>(call.clone())?;
    Ok(Box::new(move |tx, ctx| {
        let before: TicketStatus = records::find(tx, ctx, call.id())?;
        let answer = write(tx, ctx)?;
        let status: TicketStatus = records::find(tx, ctx, call.id())?;
        if status.name == before.name {
            return Ok(answer);
        }
        follow(tx, ctx, &status, before.name, answer, call.early)
    }))
}

/// Gives the tickets of a status its new name, and responds with `answer` when all of them have it. If the call is a part of
/// something else, which cannot wait for that, the job does it alone.
fn follow(tx: &mut Tx, ctx: &Ctx, status: &TicketStatus, old: String, answer: Answer, is_part: bool) -> Result<Answer> {
    let rename = RenameStatus { status: status.base.id.clone(), old };
    if rename.rename_slice(tx, ctx)? {
        return Ok(answer);
    }
    let delay = if is_part { 0 } else { REQUEST_SECONDS };
    let job = NewJob::of(ctx, &rename)?.keyed(rename_key(&rename.status)).after(delay);
    jobs::enqueue(tx, ctx, &job)?;
    if is_part {
        return Ok(answer);
    }
    Ok(Answer::after(move |app, caller| {
        rename.rename_all(app, caller)?;
        let (key, answer) = (rename_key(&rename.status), answer.clone());
        Ok(Box::new(move |tx, _| {
            // A worker that has already started the job finds no tickets.
            jobs::call_off(tx, &key)?;
            Ok(answer.clone())
        }))
    }))
}

impl RenameStatus {
    /// Renames all tickets, one slice per transaction.
    fn rename_all(&self, app: &App, caller: &Actor) -> Result<()> {
        loop {
            let (own, rename) = (caller.clone(), self.clone());
            let done = app.store.write_now(caller.account.number, move |tx| {
                let ctx = own.writing(tx)?;
                rename.rename_slice(tx, &ctx)
            })?;
            if done {
                return Ok(());
            }
        }
    }

    /// Renames the status of one slice of tickets; returns whether none is left. This is not a status change of the ticket.
    fn rename_slice(&self, tx: &mut Tx, ctx: &Ctx) -> Result<bool> {
        let status: TicketStatus = records::find(tx, ctx, &self.status)?;
        if status.name == self.old {
            return Ok(true);
        }
        let sql = format!(
            "{} WHERE account_id = $1 AND status = $2 ORDER BY created_at, id LIMIT {TOGETHER}",
            Ticket::sql().select
        );
        let tickets = tx.all(&sql, &[ctx.account.into(), (&self.old).into()], Ticket::from_row)?;
        let slice = Slice::start();
        for before in &tickets {
            if slice.is_over() {
                return Ok(false);
            }
            let mut ticket = before.clone();
            ticket.status.clone_from(&status.name);
            records::update(tx, ctx, before, &mut ticket, "updated")?;
            slice.did_one();
        }
        Ok(tickets.len() < TOGETHER)
    }
}

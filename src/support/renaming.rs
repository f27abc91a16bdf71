//! Tickets have the name of their status, so a new name of a status goes to all of its tickets: in slices, since there may be
//! a hundred thousand. The request goes through them and then answers. Should the process die on the way, a job does.

use engine::app::App;
use engine::call::Answer;
use engine::context::{Caller, Ctx};
use engine::error::{Code, Error, Result};
use engine::jobs::{self, Claimed, Ending, Job, NewJob};
use engine::record::Record;
use engine::records;
use engine::slice::{Slice, TOGETHER};
use serde::{Deserialize, Serialize};
use store::Tx;

use super::ticket::Ticket;
use super::ticket_status::TicketStatus;

/// How long the job leaves the work to the request, in seconds.
const PATIENCE: i64 = 15;

/// The job: gives tickets the new name of their status.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RenameStatus {
    status: String,
    old: String,
}

impl Job for RenameStatus {
    const KIND: &'static str = "rename_ticket_status";

    fn run(&self, app: &App, claimed: &Claimed) -> Result<Ending> {
        let caller = app.acting_in(claimed.account, Self::KIND)?;
        self.go_through(app, &caller)?;
        Ok(Ending::Done)
    }
}

/// Gives the tickets of a status its new name, and answers `answer` when all of them have it.
pub fn follow(tx: &mut Tx, ctx: &Ctx, status: &TicketStatus, old: String, answer: Answer) -> Result<Answer> {
    let rename = RenameStatus { status: status.base.id.clone(), old };
    if rename.some(tx, ctx)? {
        return Ok(answer);
    }
    let job = NewJob::of(ctx, &rename)?.keyed(key(&rename.status)).after(PATIENCE);
    jobs::enqueue(tx, &ctx.ids, &job, ctx.machine_now)?;
    Ok(Answer::after(move |app, caller| {
        rename.go_through(app, caller)?;
        let (key, answer) = (key(&rename.status), answer.clone());
        Ok(Box::new(move |tx, _| {
            // A worker that has it by now finds no ticket left.
            jobs::call_off(tx, &key)?;
            Ok(answer.clone())
        }))
    }))
}

/// Refuses a name while tickets still have it of another status, and a second new name before they have the first.
pub fn check_free(tx: &mut Tx, ctx: &Ctx, status: &str, name: &str) -> Result<()> {
    let sql = "SELECT jobs.payload FROM ticket_statuses JOIN jobs ON jobs.unique_key = $1 || ticket_statuses.id
               WHERE ticket_statuses.account_id = $2";
    let under_way = tx.all(sql, &[key("").into(), ctx.account.into()], |row| {
        let read = serde_json::from_str::<RenameStatus>(row.text(0)?);
        read.map_err(|_| Error::internal("the payload of a rename cannot be read"))
    })?;
    match under_way.iter().find(|rename| rename.status == status || rename.old.eq_ignore_ascii_case(name)) {
        Some(rename) => {
            let message =
                format!("Tickets with the status '{}' are still being renamed. Retry in a moment.", rename.old);
            Err(Error::new(Code::InvalidTransition, message))
        }
        None => Ok(()),
    }
}

/// Whether tickets of a status still have an earlier name of it.
pub fn is_under_way(tx: &mut Tx, status: &str) -> Result<bool> {
    Ok(tx.int("SELECT count(*) FROM jobs WHERE unique_key = $1", &[key(status).into()])? > 0)
}

/// The unique key of the job of a status.
fn key(status: &str) -> String {
    format!("{} {status}", RenameStatus::KIND)
}

impl RenameStatus {
    /// Goes through all tickets, a slice in a transaction.
    fn go_through(&self, app: &App, caller: &Caller) -> Result<()> {
        loop {
            let (own, rename) = (caller.clone(), self.clone());
            let done = app.store.write_now(caller.account.number, move |tx| {
                let ctx = own.writing(tx)?;
                rename.some(tx, &ctx)
            })?;
            if done {
                return Ok(());
            }
        }
    }

    /// Gives some tickets the name that the status has now; answers whether none is left. They are where they were, so this
    /// is no change of status.
    fn some(&self, tx: &mut Tx, ctx: &Ctx) -> Result<bool> {
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

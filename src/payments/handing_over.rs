//! Marks the collections of a bank file as pending. There may be thousands, so they are marked in slices: as many as fit
//! in the transaction that writes the file, the others by a job right after. The next file first completes this one, so no
//! collection is in two files. A collection that a caller changes before it is marked is marked first: it is in the file,
//! so it is pending, whether or not the job has reached it.

use std::collections::HashSet;

use engine::app::App;
use engine::call::Call;
use engine::context::{Actor, Ctx};
use engine::error::{Error, Result};
use engine::jobs::{self, Claimed, Ending, Job, NewJob};
use engine::record::{Day, Record};
use engine::records::{self, Work};
use engine::resource::Handler;
use engine::slice::{Slice, TOGETHER};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::Tx;

use super::mandate::{self, MandateStatus};
use super::payment::{self, Payment, Status};
use crate::documents::Invoice;
use crate::settings::ProviderName;

/// A payment and the client who pays.
pub type Collection = (String, String);

/// A job that marks the remaining collections of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HandOver {
    /// The batch.
    pub batch: String,
    /// The message id of its file.
    pub message_id: String,
    /// The collection date of the file.
    pub date: String,
    /// The collections that are not marked yet.
    pub collections: Vec<Collection>,
}

impl Job for HandOver {
    const KIND: &'static str = "hand_over";
    const AWAITED: bool = true;

    fn run(&self, app: &App, claimed: &Claimed) -> Result<Ending> {
        self.go_through(app, &app.acting_in(claimed.account, Self::KIND)?)?;
        Ok(Ending::Done)
    }
}

/// Returns the unique key of the job: an account has at most one.
fn key(account: i64) -> String {
    format!("{} {account}", HandOver::KIND)
}

/// `PATCH …/payments/{payment_id}`
pub fn patch(call: Call) -> Result<Work> {
    marked_first(payment::patch, call)
}

/// `DELETE …/payments/{payment_id}`
pub fn delete(call: Call) -> Result<Work> {
    marked_first(payment::delete, call)
}

/// Does the work of `handler` on a payment, which is marked before if it is in a file.
fn marked_first(handler: Handler, call: Call) -> Result<Work> {
    let work = handler(call.clone())?;
    Ok(Box::new(move |tx, ctx| {
        let payment: Payment = records::find_in_path(tx, ctx, &call)?;
        if payment.status == Status::Created && payment.provider == ProviderName::Manual.wire() {
            mark_one(tx, ctx, &payment.base.id)?;
        }
        work(tx, ctx)
    }))
}

/// Marks a payment if it is one of the remaining collections of a file.
pub(super) fn mark_one(tx: &mut Tx, ctx: &Ctx, payment: &str) -> Result<()> {
    // Searched as text first: there may be thousands of others.
    let sql = "SELECT payload FROM jobs WHERE unique_key = $1 AND payload LIKE $2";
    let values = [key(ctx.account).into(), format!("%\"{payment}\"%").into()];
    let Some(left) = tx.first(sql, &values, |row| HandOver::parse(row.text(0)?))? else { return Ok(()) };
    match left.collections.iter().find(|(id, _)| id == payment) {
        Some((id, client)) => left.mark(tx, ctx, id, client),
        None => Ok(()),
    }
}

/// Returns the payments that a file has, also those that are not marked yet.
pub(super) fn in_a_file(tx: &mut Tx, ctx: &Ctx) -> Result<HashSet<String>> {
    let sql = "SELECT payload FROM jobs WHERE unique_key = $1";
    let left = tx.first(sql, &[key(ctx.account).into()], |row| HandOver::parse(row.text(0)?))?;
    Ok(left.into_iter().flat_map(|left| left.collections).map(|(payment, _)| payment).collect())
}

/// Marks the remaining collections of an earlier file.
pub fn finish(app: &App, caller: &Actor) -> Result<()> {
    let key = key(caller.account.number);
    let unique = key.clone();
    let found = app.store.read_now(move |tx| {
        let sql = "SELECT payload FROM jobs WHERE unique_key = $1";
        tx.first(sql, &[(&unique).into()], |row| HandOver::parse(row.text(0)?))
    })?;
    let Some(left) = found else { return Ok(()) };
    left.go_through(app, caller)?;
    // A worker that has already claimed the job finds nothing to do.
    app.store.write_now(caller.account.number, move |tx| jobs::call_off(tx, &key)).map(drop)
}

impl HandOver {
    fn parse(payload: &str) -> Result<HandOver> {
        serde_json::from_str(payload).map_err(|error| Error::internal(error.to_string()))
    }

    /// Marks some collections in the transaction that writes the file, and leaves the others to the job.
    pub fn begin(mut self, tx: &mut Tx, ctx: &Ctx) -> Result<()> {
        let marked = self.some(tx, ctx, 0)?;
        self.collections.drain(..marked);
        if self.collections.is_empty() {
            return Ok(());
        }
        jobs::enqueue(tx, ctx, &NewJob::of(ctx, &self)?.keyed(key(ctx.account)))
    }

    /// Marks all collections, one slice per transaction.
    fn go_through(&self, app: &App, caller: &Actor) -> Result<()> {
        let shared = std::sync::Arc::new(self.clone());
        let mut marked = 0;
        while marked < shared.collections.len() {
            let (own, all) = (caller.clone(), shared.clone());
            marked += app.store.write_now(caller.account.number, move |tx| {
                let ctx = own.writing(tx)?;
                all.some(tx, &ctx, marked)
            })?;
        }
        Ok(())
    }

    /// Marks collections from index `from`, as many as fit in a transaction and at least one; returns how many.
    fn some(&self, tx: &mut Tx, ctx: &Ctx, from: usize) -> Result<usize> {
        let slice = Slice::start();
        let mut marked = 0;
        for (payment, client) in self.collections.iter().skip(from).take(TOGETHER) {
            if slice.is_over() {
                break;
            }
            self.mark(tx, ctx, payment, client)?;
            slice.did_one();
            marked += 1;
        }
        Ok(marked)
    }

    /// Marks a payment as pending, unless its status has changed since.
    fn mark(&self, tx: &mut Tx, ctx: &Ctx, payment: &str, client: &str) -> Result<()> {
        let found = tx.first(&Payment::sql().get, &[ctx.account.into(), payment.into()], Payment::from_row)?;
        let Some(payment) = found.filter(|payment| payment.status == Status::Created) else { return Ok(()) };
        let said = json!({"batch_id": self.batch, "message_id": self.message_id});
        payment::apply_provider_status(tx, ctx, &payment, Status::Pending, Some(&said))?;
        self.tell_invoice(tx, ctx, &payment.invoice_id.0)?;
        match mandate::of(tx, ctx, client)? {
            Some(mandate) if mandate.status == MandateStatus::Authorized => {
                mandate::change(tx, ctx, client, |mandate| mandate.status = MandateStatus::Active)
            }
            _ => Ok(()),
        }
    }

    /// Records the date of the file in the invoice, which said another if the file has one of its own.
    fn tell_invoice(&self, tx: &mut Tx, ctx: &Ctx, invoice: &str) -> Result<()> {
        let Ok(date) = self.date.parse() else { return Ok(()) };
        let before: Invoice = records::find(tx, ctx, invoice)?;
        let mut invoice = before.clone();
        if invoice.is_collected() {
            invoice.collection_date = Day(Some(date));
        }
        records::change(tx, ctx, &before, &mut invoice, "updated")
    }
}

//! Collections that wait for a bank file follow their client: they are from the account that the client has, and end when the
//! client has no account or no signed mandate any more.

use engine::app::App;
use engine::context::{Actor, Ctx};
use engine::error::{Code, Error, Result};
use engine::jobs::{self, Claimed, Ending, Job, NewJob};
use engine::log::Event;
use engine::records;
use engine::slice::{Slice, TOGETHER};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::Tx;

use super::handing_over;
use super::mandate::{self, Mandate};
use super::payment::{self, Payment, Status};
use crate::documents::Invoice;
use crate::relations::client::Client;
use crate::settings::ProviderName;

/// The place of a collection among those that wait: when it was created, and its id.
type Place = (i64, String);

/// A job that goes on with the collections of a client, of which not all fitted into the transaction of the cause.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FollowClient {
    /// The client.
    pub client: String,
    /// The last collection that was handled.
    pub after: Place,
}

impl Job for FollowClient {
    const KIND: &'static str = "follow_client";
    const AWAITED: bool = true;

    fn run(&self, app: &App, claimed: &Claimed) -> Result<Ending> {
        self.go_through(app, &app.acting_in(claimed.account, Self::KIND)?)?;
        Ok(Ending::Done)
    }
}

impl FollowClient {
    fn parse(payload: &str) -> Result<FollowClient> {
        serde_json::from_str(payload).map_err(|error| Error::internal(error.to_string()))
    }

    /// Handles all collections, one slice per transaction.
    fn go_through(&self, app: &App, caller: &Actor) -> Result<()> {
        let mut left = Some(self.after.clone());
        while let Some(after) = left {
            let (own, client) = (caller.clone(), self.client.clone());
            left = app.store.write_now(caller.account.number, move |tx| {
                let ctx = own.writing(tx)?;
                follow(tx, &ctx, &client, &after)
            })?;
        }
        Ok(())
    }
}

/// What the unique keys of the jobs of an account start with.
fn keys_of(account: i64) -> String {
    format!("{} {account} ", FollowClient::KIND)
}

/// Handles what is left of earlier changes, before a file collects it.
pub(super) fn finish(app: &App, caller: &Actor) -> Result<()> {
    let account = caller.account.number;
    let left = app.store.read_now(move |tx| {
        // '~' comes after all letters and digits.
        let own = keys_of(account);
        let values = [(&own).into(), format!("{own}~").into()];
        let sql = "SELECT payload FROM jobs WHERE unique_key >= $1 AND unique_key < $2";
        tx.all(sql, &values, |row| FollowClient::parse(row.text(0)?))
    })?;
    left.iter().try_for_each(|job| job.go_through(app, caller))
}

/// Keeps the promises of invoices: what no file can collect is canceled, so the invoice asks for a transfer, and an invoice
/// names the account that the file will have. There may be thousands, so a job goes on with what does not fit into a slice.
pub(crate) fn follow_client(tx: &mut Tx, ctx: &Ctx, event: &Event) -> Result<()> {
    let client = match event.name {
        "customer.updated" | "customer.merged" => event.entity_id.to_string(),
        "mandate.updated" => records::find::<Mandate>(tx, ctx, event.entity_id)?.client_id.0,
        _ => return Ok(()),
    };
    let is_signed = mandate::of(tx, ctx, &client)?.is_some_and(|mandate| mandate.is_signed());
    match event.name {
        // Without a mandate nothing waits, since the change that ended it canceled everything.
        "customer.updated" if !is_signed => return Ok(()),
        // A mandate that moves to another client by a merge may come before the IBAN.
        "mandate.updated" if is_signed => return Ok(()),
        _ => {}
    }
    let Some(after) = follow(tx, ctx, &client, &Place::default())? else { return Ok(()) };
    // Each change has its own job: that of an earlier one may have passed some.
    let unique = format!("{}{}", keys_of(ctx.account), ctx.new_id());
    jobs::enqueue(tx, ctx, &NewJob::of(ctx, &FollowClient { client, after })?.keyed(unique))
}

/// Handles the collections of a client after a place, as many as fit into a slice; returns the place of the last one if there may be
/// more.
fn follow(tx: &mut Tx, ctx: &Ctx, client: &str, after: &Place) -> Result<Option<Place>> {
    let is_signed = mandate::of(tx, ctx, client)?.is_some_and(|mandate| mandate.is_signed());
    let client: Client = match records::find(tx, ctx, client) {
        // It was merged, and the other one has its collections.
        Err(error) if error.code == Code::NotFound => return Ok(None),
        found => found?,
    };
    let reason = match () {
        () if !is_signed => Some("The client no longer has a signed mandate."),
        () if client.iban.0.is_empty() => Some("The client no longer has an IBAN."),
        () => None,
    };
    let (slice, found) = (Slice::start(), waiting(tx, ctx, &client.base.id, after)?);
    let mut last = None;
    for place in &found {
        if slice.is_over() {
            return Ok(last);
        }
        // A large file marks its collections in slices.
        handing_over::mark_one(tx, ctx, &place.1)?;
        let payment: Payment = records::find(tx, ctx, &place.1)?;
        if payment.status == Status::Created {
            match reason {
                Some(reason) => {
                    let why = json!({"reason": reason});
                    payment::apply_provider_status(tx, ctx, &payment, Status::Canceled, Some(&why))?;
                }
                None => name_account(tx, ctx, &payment, &client)?,
            }
        }
        slice.did_one();
        last = Some(place.clone());
    }
    Ok(last.filter(|_| found.len() == TOGETHER))
}

/// Returns the next collections of a client that no bank file has yet.
fn waiting(tx: &mut Tx, ctx: &Ctx, client: &str, (created_at, id): &Place) -> Result<Vec<Place>> {
    let sql = format!(
        "SELECT payments.created_at, payments.id FROM payments{} JOIN invoices
             ON invoices.account_id = payments.account_id AND invoices.id = payments.invoice_id
         WHERE payments.account_id = $1 AND payments.provider = '{}' AND payments.status = '{}' AND invoices.client_id = $2
             AND (payments.created_at, payments.id) > ($3, $4)
         ORDER BY payments.created_at, payments.id LIMIT {TOGETHER}",
        tx.dialect().indexed_by("payments_awaited"),
        ProviderName::Manual.wire(),
        Status::Created.wire()
    );
    let values = [ctx.account.into(), client.into(), (*created_at).into(), id.into()];
    tx.all(&sql, &values, |row| Ok::<_, Error>((row.int(0)?, row.text(1)?.to_string())))
}

/// Names the account of the client in an invoice that is collected.
fn name_account(tx: &mut Tx, ctx: &Ctx, payment: &Payment, client: &Client) -> Result<()> {
    let before: Invoice = records::find(tx, ctx, &payment.invoice_id.0)?;
    let mut invoice = before.clone();
    if let Some(day) = before.collection_date.0 {
        invoice.begin_collection(day, &client.iban.0);
    }
    records::change(tx, ctx, &before, &mut invoice, "updated")
}

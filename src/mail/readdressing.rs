//! Mail that waited goes to the address that its client has when it leaves, and so does mail that is sent again.

use engine::context::Ctx;
use engine::error::{Class, Code, Error, Result};
use engine::jobs::{self, NewJob};
use store::Tx;

use super::outcome::{Followers, Told};
use super::{Deliver, Standing, distinct, write_delivery};

/// Why a delivery was canceled.
const MOVED: &str = "Not sent: the client had another address when it was about to leave.";

/// Gives a mail that waited its recipients when the first delivery of it leaves; the others follow. Returns what became of the
/// delivery that leaves if it is canceled.
pub(super) fn readdress(tx: &mut Tx, ctx: &Ctx, told: &Told, to: &[String]) -> Result<Option<Told>> {
    let (account, mail) = (ctx.account, told.mail.as_str());
    let sql = "SELECT recipients, copies FROM mails WHERE account_id = $1 AND id = $2";
    let listed = tx.first(sql, &[account.into(), mail.into()], |row| {
        Ok::<_, Error>((row.text(0)?.to_string(), row.text(1)?.to_string()))
    })?;
    let Some((old, copies)) = listed else { return Ok(None) };
    let copies: Vec<String> = copies.split(", ").filter(|one| !one.is_empty()).map(str::to_string).collect();
    let (to, cc) = distinct(to, &copies);
    if to.join(", ") == old {
        return Ok(None);
    }
    let sql = "SELECT id, recipient, attempts FROM deliveries WHERE account_id = $1 AND about_id = $2 AND mail_id = $3
               ORDER BY id";
    let deliveries = tx.all(sql, &[account.into(), (&told.about_id).into(), mail.into()], |row| {
        Ok::<_, Error>((row.text(0)?.to_string(), row.text(1)?.to_string(), row.int(2)?))
    })?;
    if deliveries.iter().any(|(_, _, attempts)| *attempts > 0) {
        return Ok(None);
    }
    tx.execute(
        "UPDATE mails SET recipients = $1, copies = $2 WHERE account_id = $3 AND id = $4",
        &[to.join(", ").into(), cc.join(", ").into(), account.into(), mail.into()],
    )?;
    let same = |one: &str, other: &str| one.to_lowercase() == other.to_lowercase();
    let all = || to.iter().chain(&cc);
    let mut new = all().filter(|address| !deliveries.iter().any(|(_, own, _)| same(own, address)));
    // The one that leaves now gets the first new address.
    let mut gone: Vec<&String> =
        deliveries.iter().filter(|(_, own, _)| !all().any(|address| same(own, address))).map(|(id, ..)| id).collect();
    gone.sort_by_key(|id| **id != told.delivery);
    let mut canceled = None;
    for id in gone {
        match new.next() {
            Some(address) => {
                let sql = "UPDATE deliveries SET recipient = $1 WHERE account_id = $2 AND id = $3";
                tx.execute(sql, &[address.into(), account.into(), id.into()])?;
            }
            None => {
                set(tx, ctx, id, Standing::Canceled, MOVED)?;
                if *id == told.delivery {
                    canceled = Some(Told { reason: MOVED.to_string(), ..told.clone() });
                }
            }
        }
    }
    for address in new {
        let delivery = write_delivery(tx, ctx, (mail, &told.about_id), address, (Standing::Queued, ""))?;
        // What waits on a test clock has no jobs.
        if !ctx.has_test_clock {
            jobs::enqueue(tx, ctx, &NewJob::of(ctx, &Deliver { delivery })?)?;
        }
    }
    Ok(canceled)
}

/// Gives a delivery that is tried again the address that its client has now, if the mail went to that of the client; a client
/// that has more addresses now gets more deliveries. Returns these.
pub(super) fn follow_client(tx: &mut Tx, ctx: &Ctx, followers: &Followers, delivery: &str) -> Result<Vec<String>> {
    let Some(Addressed { mail, about, about_id, kind, to, recipient }) = Addressed::find(tx, ctx, delivery)? else {
        return Ok(Vec::new());
    };
    let Some(follower) = followers.of(&about) else { return Ok(Vec::new()) };
    let now = match (follower.addresses)(tx, ctx, &about_id, &kind) {
        Err(error) if error.code.class() == Class::NotFound => return Ok(Vec::new()),
        now => now?,
    };
    let has = |all: &[String], one: &str| all.iter().any(|own| own.to_lowercase() == one.to_lowercase());
    if !has(&to, &recipient) || has(&now, &recipient) {
        return Ok(Vec::new());
    }
    let sql = "SELECT recipient FROM deliveries WHERE account_id = $1 AND about_id = $2 AND mail_id = $3";
    let values = [ctx.account.into(), (&about_id).into(), (&mail).into()];
    let reached = tx.all(sql, &values, |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
    let new: Vec<&String> = now.iter().filter(|address| !has(&reached, address)).collect();
    let Some((first, more)) = new.split_first() else {
        let message = match now.as_slice() {
            [] => "The client has no e-mail address any more. Add one, or send the mail to an address of your own."
                .to_string(),
            now => format!("The client now has the address {}, which has its own delivery.", now.join(", ")),
        };
        return Err(Error::new(Code::InvalidTransition, message));
    };
    let to: Vec<String> = to.into_iter().filter(|own| *own != recipient).chain(new.iter().copied().cloned()).collect();
    let sql = "UPDATE mails SET recipients = $1 WHERE account_id = $2 AND id = $3";
    tx.execute(sql, &[to.join(", ").into(), ctx.account.into(), (&mail).into()])?;
    let sql = "UPDATE deliveries SET recipient = $1 WHERE account_id = $2 AND id = $3";
    tx.execute(sql, &[(*first).into(), ctx.account.into(), delivery.into()])?;
    let mut added = Vec::new();
    for address in more {
        added.push(write_delivery(tx, ctx, (&mail, &about_id), address, (Standing::Queued, ""))?);
    }
    Ok(added)
}

/// A delivery of a mail to the addresses of a client.
struct Addressed {
    mail: String,
    about: String,
    about_id: String,
    kind: String,
    to: Vec<String>,
    recipient: String,
}

impl Addressed {
    fn find(tx: &mut Tx, ctx: &Ctx, delivery: &str) -> Result<Option<Addressed>> {
        let sql = "SELECT mails.id, mails.about, mails.about_id, mails.kind, mails.recipients, deliveries.recipient
                   FROM deliveries JOIN mails ON mails.account_id = deliveries.account_id AND mails.id = deliveries.mail_id
                   WHERE deliveries.account_id = $1 AND deliveries.id = $2 AND mails.to_client = 1";
        tx.first(sql, &[ctx.account.into(), delivery.into()], |row| {
            let text = |column: usize| row.text(column).map(str::to_string);
            let to = text(4)?.split(", ").map(str::to_string).collect();
            Ok(Addressed {
                mail: text(0)?,
                about: text(1)?,
                about_id: text(2)?,
                kind: text(3)?,
                to,
                recipient: text(5)?,
            })
        })
    }
}

/// Records the status of a delivery, and why it has it.
pub(super) fn set(tx: &mut Tx, ctx: &Ctx, delivery: &str, status: Standing, reason: &str) -> Result<()> {
    tx.execute(
        "UPDATE deliveries SET status = $1, reason = $2, changed_at = $3 WHERE account_id = $4 AND id = $5",
        &[status.wire().into(), reason.into(), ctx.now.0.into(), ctx.account.into(), delivery.into()],
    )?;
    Ok(())
}

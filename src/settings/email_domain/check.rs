//! Verifies domains: by a TXT record that names the record of the account, or by the operator. Domains that are verified
//! by DNS are checked again every day, and others every hour at first.

use dns::Dns;
use engine::app::App;
use engine::config::Config;
use engine::context::{Actor, Ctx};
use engine::due::DueWork;
use engine::error::{Code, Error, Result};
use engine::jobs::{self, Claimed, Ending, Job, Lane, NewJob};
use engine::record::{Record, When};
use engine::records;
use engine::services::Services;
use serde::{Deserialize, Serialize};
use store::Tx;
use tokio::runtime::Handle;

use super::{DomainStatus, EmailDomain, Verifier};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// How long a new domain is checked every hour.
const NEW: i64 = 30 * DAY;
/// How long the record of a verified domain may be missing.
const PATIENCE: i64 = 3 * DAY;

/// What a lookup found: the texts, or why it failed.
pub type Found = std::result::Result<Vec<String>, String>;

/// Opens the resolver of the settings.
pub(crate) fn open(config: &Config, _: &str, services: &mut Services) -> Result<()> {
    let wrong = |why: String| Error::new(Code::Unavailable, format!("dns_server: {why}."));
    services.add(Dns::new(&config.dns_server).map_err(wrong)?);
    Ok(())
}

/// Looks up the TXT record of a domain, outside any transaction. Blocks.
pub(super) fn look_up(app: &App, name: &str) -> Found {
    let found = Handle::current().block_on(app.services.get::<Dns>().txt(name));
    if let Err(why) = &found {
        tracing::warn!(name, reason = why, "A DNS lookup failed; it will be repeated.");
    }
    found
}

/// The job that checks a domain.
#[derive(Serialize, Deserialize)]
pub struct CheckDomain {
    id: String,
}

impl Job for CheckDomain {
    const KIND: &'static str = "check_domain";
    const LANE: Lane = Lane::Outside;

    fn run(&self, app: &App, claimed: &Claimed) -> Result<Ending> {
        let caller = app.acting_in(claimed.account, Self::KIND)?;
        let Some(domain) = find(app, &caller, &self.id)? else { return Ok(Ending::Done) };
        let found = look_up(app, &domain.txt_name);
        let id = self.id.clone();
        app.store.write_now(claimed.account, move |tx| {
            let ctx = caller.writing(tx)?;
            let own = [ctx.account.into(), (&id).into()];
            match tx.first(&EmailDomain::sql().get, &own, EmailDomain::from_row)? {
                Some(now) => apply(tx, &ctx, &now, &domain.txt_name, &found).map(drop),
                None => Ok(()),
            }
        })?;
        Ok(Ending::Done)
    }
}

fn find(app: &App, caller: &Actor, id: &str) -> Result<Option<EmailDomain>> {
    let (number, id) = (caller.account.number, id.to_string());
    let sql = &EmailDomain::sql().get;
    app.store.read_now(move |tx| Ok(tx.first(sql, &[number.into(), (&id).into()], EmailDomain::from_row)?))
}

/// The checks of domains, every hour.
pub const DUE: DueWork = DueWork { hourly: enqueue, ..DueWork::NOTHING };

fn enqueue(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    let sql = "SELECT id FROM email_domains WHERE account_id = $1 AND verified_by <> $2
               AND (checked_at <= $3 OR status = $4 AND created_at > $5 AND checked_at <= $6) LIMIT 100";
    let before = |seconds: i64| ctx.machine_now.plus_seconds(-seconds).0;
    let values = [
        ctx.account.into(),
        Verifier::Operator.wire().into(),
        // A little less, because the work of an hour does not begin at the same second.
        before(DAY - 600).into(),
        DomainStatus::Pending.wire().into(),
        before(NEW).into(),
        before(HOUR - 600).into(),
    ];
    let ids = tx.all(sql, &values, |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
    for id in ids {
        let key = format!("check_domain {id}");
        jobs::enqueue(tx, ctx, &NewJob::of(ctx, &CheckDomain { id })?.keyed(key))?;
    }
    Ok(())
}

/// Records what a lookup of `name` found; returns the domain as it is now. A domain that was renamed in the meantime
/// stays as it is: the lookup proves nothing about its new name.
pub(super) fn apply(tx: &mut Tx, ctx: &Ctx, before: &EmailDomain, name: &str, found: &Found) -> Result<EmailDomain> {
    if before.txt_name != name {
        return Ok(before.clone());
    }
    let mut domain = before.clone();
    let now = ctx.machine_now;
    domain.checked_at = When(Some(now));
    let is_there = found.as_ref().is_ok_and(|texts| texts.iter().any(|text| text.trim() == before.txt_value));
    let by_operator = before.verified_by == Verifier::Operator;
    match found {
        Err(_) => domain.check_result = FAILED.to_string(),
        Ok(_) if is_there && !by_operator && is_taken(tx, before)? => {
            domain.check_result = TAKEN.to_string();
        }
        Ok(_) if is_there => {
            domain.check_result = "The TXT record is in place.".to_string();
            domain.missing_since = When(None);
            if !by_operator {
                (domain.status, domain.verified_by) = (DomainStatus::Verified, Verifier::Dns);
            }
        }
        Ok(texts) => {
            domain.check_result = match texts.len() {
                0 => "There is no TXT record with this name.".to_string(),
                _ => "The TXT record has another value.".to_string(),
            };
            domain.missing_since = When(Some(before.missing_since.0.unwrap_or(now)));
            let missing = now.0 - before.missing_since.0.unwrap_or(now).0;
            // A status that nobody verified proves nothing.
            if before.verified_by == Verifier::Nobody
                || before.verified_by == Verifier::Dns && missing >= PATIENCE * 1000
            {
                (domain.status, domain.verified_by) = (DomainStatus::Pending, Verifier::Nobody);
            }
        }
    }
    if (domain.status, domain.verified_by) != (before.status, before.verified_by) {
        records::change(tx, ctx, before, &mut domain, "updated")?;
        return Ok(domain);
    }
    let moment = |when: When| when.0.map_or(0, |moment| moment.0);
    tx.execute(
        "UPDATE email_domains SET checked_at = $1, check_result = $2, missing_since = $3
         WHERE account_id = $4 AND id = $5",
        &[
            moment(domain.checked_at).into(),
            (&domain.check_result).into(),
            moment(domain.missing_since).into(),
            ctx.account.into(),
            (&domain.base.id).into(),
        ],
    )?;
    Ok(domain)
}

/// Why a domain cannot be verified.
pub(super) const TAKEN: &str = "This domain is already verified elsewhere.";

/// What callers see of a failed lookup. The reason is for the operator: it may name servers of the network.
const FAILED: &str = "The DNS lookup failed. It is repeated later.";

/// Whether another record has verified the same domain.
fn is_taken(tx: &mut Tx, domain: &EmailDomain) -> Result<bool> {
    let sql = format!(
        "SELECT count(*) FROM email_domains WHERE host = $1 AND verified_by <> '{}' AND id <> $2",
        Verifier::Nobody.wire()
    );
    Ok(tx.int(&sql, &[(&domain.host).into(), (&domain.base.id).into()])? > 0)
}

/// Finds the account and the id of the domain with this name or id.
fn named(app: &App, domain: &str) -> Result<(i64, String)> {
    let own = domain.to_lowercase();
    let mut found = app.store.read_now(move |tx| {
        let sql = "SELECT account_id, id FROM email_domains WHERE id = $1 OR host = $2 ORDER BY id";
        tx.all(sql, &[(&own).into(), own.trim_end_matches('.').into()], |row| {
            Ok::<_, Error>((row.int(0)?, row.text(1)?.to_string()))
        })
    })?;
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => {
            let message = format!("No account has the e-mail domain {domain}: see `kantoor domain list`.");
            Err(Error::new(Code::NotFound, message))
        }
        many => {
            let ids: Vec<&str> = found.iter().map(|(_, id)| id.as_str()).collect();
            let message =
                format!("{many} accounts have the e-mail domain {domain}. Choose one by its id: {}.", ids.join(", "));
            Err(Error::new(Code::Duplicate, message))
        }
    }
}

/// Verifies a domain, given by its name or id, or revokes its verification, at the word of the operator; returns its name.
pub(crate) fn decide(app: &App, domain: &str, verified: bool) -> Result<String> {
    let (account, id) = named(app, domain)?;
    let caller = app.acting_in(account, "operator")?;
    app.store.write_now(account, move |tx| {
        let ctx = caller.writing(tx)?;
        let before: EmailDomain = records::find(tx, &ctx, &id)?;
        if verified && is_taken(tx, &before)? {
            return Err(Error::new(Code::Duplicate, TAKEN));
        }
        let mut domain = before.clone();
        (domain.status, domain.verified_by) = match verified {
            true => (DomainStatus::Verified, Verifier::Operator),
            false => (DomainStatus::Pending, Verifier::Nobody),
        };
        domain.missing_since = When(None);
        records::change(tx, &ctx, &before, &mut domain, "updated")?;
        Ok(domain.host)
    })
}

//! The usage and quotas of an account. Usage is updated in the transaction that causes it, so the limits also hold for
//! concurrent requests.

use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use jiff::tz::TimeZone;
use store::{Migration, Tx};

/// The table of usage.
pub const MIGRATION: Migration = Migration {
    number: 15,
    name: "quota usage",
    sql: "
CREATE TABLE quota_usage (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    name TEXT NOT NULL,
    day TEXT NOT NULL,
    value BIGINT NOT NULL,
    PRIMARY KEY (account_id, name)
) STRICT, WITHOUT ROWID;
",
};

/// The usage of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Total size of its files, in bytes.
    pub file_bytes: i64,
    /// Number of its files.
    pub files: i64,
    /// Number of mail recipients today.
    pub mails_today: i64,
}

impl Usage {
    /// Returns the current usage of the account.
    pub fn of(tx: &mut Tx, ctx: &Ctx) -> Result<Usage> {
        let value = "SELECT value FROM quota_usage WHERE account_id = $1 AND name = $2 AND day = $3";
        let files = "SELECT total FROM record_counts WHERE account_id = $1 AND kind = 'file'";
        let today = today(ctx);
        Ok(Usage {
            file_bytes: tx.int(value, &[ctx.account.into(), "file_bytes".into(), "".into()])?,
            files: tx.int(files, &[ctx.account.into()])?,
            mails_today: tx.int(value, &[ctx.account.into(), "mails".into(), today.into()])?,
        })
    }
}

/// Mail is sent on the machine's clock, also for an account with a test clock.
fn today(ctx: &Ctx) -> String {
    ctx.machine_now.date(&ctx.zone).to_string()
}

/// An error that names the quota, its limit and the remedy.
fn exceeded(what: &str, setting: &str, way: &str) -> Error {
    let message = format!("{what} (quota {setting}). {way}, or ask the operator of this server to raise the quota.");
    Error::new(Code::QuotaExceeded, message)
}

/// Rejects a file that exceeds the quotas of the account.
pub fn room_for_file(tx: &mut Tx, ctx: &Ctx, size: i64) -> Result<()> {
    let (limit, usage) = (&ctx.quotas, Usage::of(tx, ctx)?);
    if limit.files > 0 && usage.files >= limit.files {
        let what = format!("Your account may store {} files and has {}", limit.files, usage.files);
        return Err(exceeded(&what, "quota_files", "Delete files that you no longer need"));
    }
    // An empty file also requires some room.
    room_for_bytes(tx, ctx, size.max(1))
}

/// Rejects a number of bytes that exceeds the quota of the account.
pub fn room_for_bytes(tx: &mut Tx, ctx: &Ctx, size: i64) -> Result<()> {
    let (limit, usage) = (&ctx.quotas, Usage::of(tx, ctx)?);
    if limit.file_bytes > 0 && usage.file_bytes.saturating_add(size) > limit.file_bytes {
        let what = format!(
            "Your account may store {} bytes of files and has {}, so this file does not fit",
            limit.file_bytes, usage.file_bytes
        );
        return Err(exceeded(&what, "quota_file_mib", "Delete files that you no longer need"));
    }
    Ok(())
}

/// Adds to the total size of the files.
pub fn count_file(tx: &mut Tx, ctx: &Ctx, size: i64) -> Result<()> {
    tx.execute(
        "INSERT INTO quota_usage (account_id, name, day, value) VALUES ($1, 'file_bytes', '', $2)
         ON CONFLICT (account_id, name) DO UPDATE SET value = quota_usage.value + excluded.value",
        &[ctx.account.into(), size.into()],
    )?;
    Ok(())
}

/// Counts the recipients of a mail, unless they exceed the daily quota.
pub fn count_mails(tx: &mut Tx, ctx: &Ctx, recipients: usize) -> Result<()> {
    let (limit, recipients) = (ctx.quotas.mails_per_day, i64::try_from(recipients).unwrap_or(i64::MAX));
    let sent = tx.int(
        "INSERT INTO quota_usage (account_id, name, day, value) VALUES ($1, 'mails', $2, $3)
         ON CONFLICT (account_id, name) DO UPDATE SET day = excluded.day, value = excluded.value
            + CASE WHEN quota_usage.day = excluded.day THEN quota_usage.value ELSE 0 END
         RETURNING value",
        &[ctx.account.into(), today(ctx).into(), recipients.into()],
    )?;
    if limit == 0 || sent <= limit {
        return Ok(());
    }
    let what = format!(
        "Your account may mail {limit} recipients per day and has mailed {}; this mail has {recipients}",
        sent - recipients
    );
    let mut error = exceeded(&what, "quota_mails_per_day", "Send the mail tomorrow");
    // One that has more recipients than a day allows does not fit tomorrow either.
    if recipients <= limit {
        error.retry_after = u32::try_from(seconds_left(ctx.machine_now, &ctx.zone)).ok();
    }
    Err(error)
}

/// Removes mail that is never sent from the count.
pub fn forget_mails(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    tx.execute("DELETE FROM quota_usage WHERE account_id = $1 AND name = 'mails'", &[ctx.account.into()])?;
    Ok(())
}

/// Returns the seconds until the next day starts in `zone`.
fn seconds_left(now: Moment, zone: &TimeZone) -> i64 {
    let tomorrow = now.date(zone).tomorrow().map_or(now, |day| Moment::start_of(day, zone));
    ((tomorrow.0 - now.0) / 1000).max(1)
}

/// Rejects another endpoint at the host of `url` beyond the quota; `id` is the endpoint that moves there, or empty.
pub fn room_for_endpoint(tx: &mut Tx, ctx: &Ctx, id: &str, url: &str) -> Result<()> {
    let limit = ctx.quotas.endpoints_per_host;
    if limit == 0 {
        return Ok(());
    }
    // There are at most a hundred.
    let sql = "SELECT url FROM webhook_endpoints WHERE account_id = $1 AND id <> $2";
    let urls = tx.all(sql, &[ctx.account.into(), id.into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
    let host = host_of(url);
    let there = urls.iter().filter(|own| host_of(own) == host).count();
    if i64::try_from(there).unwrap_or(i64::MAX) < limit {
        return Ok(());
    }
    let what = format!("Your account may have {limit} webhook endpoints at one host and has {there} at {host}");
    Err(exceeded(&what, "quota_endpoints_per_host", "Delete one of these first"))
}

/// Returns the host of a URL in canonical form.
fn host_of(url: &str) -> String {
    web::host(url).unwrap_or_else(|| url.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_found_in_addresses() {
        for (url, host) in [
            ("https://Example.com/a", "example.com"),
            ("http://example.com.:8080?x", "example.com"),
            ("https://me:secret@example.com#x", "example.com"),
            ("https://[2001:DB8::1]:443/", "2001:db8::1"),
            ("https://ex%61mple.com/a", "example.com"),
            ("http://127.1:1/a", "127.0.0.1"),
            ("http://2130706433/", "127.0.0.1"),
            ("http://[::ffff:127.0.0.1]/", "127.0.0.1"),
        ] {
            assert_eq!(host_of(url), host, "{url}");
        }
    }

    #[test]
    fn a_day_ends_at_midnight_where_the_account_is() {
        let zone = TimeZone::get("Europe/Amsterdam").unwrap();
        let late = Moment::parse("2026-05-04T21:59:00Z").unwrap();
        assert_eq!(seconds_left(late, &zone), 60);
    }
}

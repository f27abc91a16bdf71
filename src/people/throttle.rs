//! Limits how often passwords can be guessed, across all nodes: per e-mail address, and per IP address.
//!
//! An attempt is committed before the attempts are counted, so however many requests arrive together on however many
//! nodes, no more than the limit see a count within it.

use engine::accounts::SHARED;
use engine::app::App;
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use store::Tx;

use crate::people::person::folded;

/// The attempts are counted over this time.
const WINDOW_SECONDS: i64 = 15 * 60;
const PER_EMAIL: i64 = 10;
const PER_ADDRESS: i64 = 50;

/// What attempts are counted by.
#[derive(Clone)]
pub struct Attempt {
    email: String,
    address: String,
}

impl Attempt {
    /// An attempt to sign in with this e-mail address, from this IP address.
    pub fn new(email: &str, address: &str) -> Attempt {
        Attempt::to("e-mail", email, address)
    }

    /// An attempt to do something else with this e-mail address, which is counted apart.
    pub fn to(what: &str, email: &str, address: &str) -> Attempt {
        // A longer text is no e-mail address.
        let email: String = folded(email).chars().take(255).collect();
        Attempt { email: format!("{what} {email}"), address: format!("address {address}") }
    }

    /// Counts the attempt, or rejects it if there were too many. An attempt that is rejected before
    /// it is written does not count.
    pub async fn count(&self, app: &App) -> Result<()> {
        let now = app.clock.now();
        let own = self.clone();
        app.store.read(move |tx| own.check(tx, now, 0)).await?;
        let (own, ids) = (self.clone(), [app.ids.next(), app.ids.next()]);
        let written = app.store.write(SHARED, move |tx| {
            for (subject, id) in [&own.email, &own.address].into_iter().zip(&ids) {
                let sql = "INSERT INTO sign_in_attempts (id, subject, at) VALUES ($1, $2, $3)";
                tx.execute(sql, &[id.into(), subject.into(), now.0.into()])?;
            }
            Ok::<_, Error>(())
        });
        written.await?;
        let own = self.clone();
        app.store.read(move |tx| own.check(tx, now, 1)).await
    }

    /// Rejects the attempt if there were too many; `counted` of them is this one.
    fn check(&self, tx: &mut Tx, now: Moment, counted: i64) -> Result<()> {
        for (subject, limit) in [(&self.email, PER_EMAIL), (&self.address, PER_ADDRESS)] {
            let sql = "SELECT count(*), coalesce(min(at), 0) FROM sign_in_attempts WHERE subject = $1 AND at > $2";
            let since = now.plus_seconds(-WINDOW_SECONDS).0;
            let found =
                tx.first(sql, &[subject.into(), since.into()], |row| Ok::<_, Error>((row.int(0)?, row.int(1)?)))?;
            let (count, oldest) = found.unwrap_or_default();
            if count - counted >= limit {
                let seconds = ((oldest - since + 999) / 1000).clamp(1, WINDOW_SECONDS);
                let minutes = (seconds + 59) / 60;
                let message = format!("Too many attempts. Try again in {minutes} min.");
                let retry_after = u32::try_from(seconds).ok();
                return Err(Error { retry_after, ..Error::new(Code::TooManyRequests, message) });
            }
        }
        Ok(())
    }

    /// Forgets the attempts with an e-mail address after one succeeded. Those of the IP address still count, since its
    /// other attempts may concern other people.
    pub async fn forgive(&self, app: &App) -> Result<()> {
        let email = self.email.clone();
        let sql = "DELETE FROM sign_in_attempts WHERE subject = $1";
        let written = app.store.write(SHARED, move |tx| Ok::<_, Error>(tx.execute(sql, &[(&email).into()])?));
        written.await.map(drop)
    }
}

/// Deletes attempts that no longer count.
pub fn purge(tx: &mut Tx, ctx: &Ctx) -> Result<u64> {
    let index = |name: &str| tx.dialect().indexed_by(name);
    let (by_id, by_age) = (index("sqlite_autoindex_sign_in_attempts_1"), index("sign_in_attempts_age"));
    let sql = format!(
        "DELETE FROM sign_in_attempts{by_id} WHERE id IN
         (SELECT id FROM sign_in_attempts{by_age} WHERE at < $1 ORDER BY at LIMIT 200)"
    );
    Ok(tx.execute(&sql, &[ctx.machine_now.plus_seconds(-WINDOW_SECONDS).0.into()])?)
}

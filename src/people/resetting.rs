//! Choosing a new password with a link that is mailed.

use engine::accounts::{Account, SHARED};
use engine::app::App;
use engine::context::{Actor, Ctx};
use engine::error::{Error, Result};
use engine::jobs::{Claimed, Ending, Job, NewJob};
use engine::records;
use engine::who::Who;
use serde::{Deserialize, Serialize};
use store::Tx;

use crate::people::entering::{
    Outcome, Proof, Visit, accounts_of, activate, check_password, set_password, user_of_link, with_accounts,
};
use crate::people::person::{self, Person};
use crate::people::status::Status;
use crate::people::throttle::{self, Attempt};
use crate::people::token::{self, Purpose};
use crate::people::user::{User, invitations, of_any_status};
use crate::people::{factor, letters, session};
use crate::settings::Settings;

impl Visit {
    /// Sets a new password with the link of a reset, and ends all sessions of the person. If the person has a second factor,
    /// this waits until it is proven, and the link works until then: whoever reads the mail of somebody cannot shut them out.
    pub async fn reset(&self, secret: &str, password: String) -> Result<Outcome> {
        let (token, account) = self.open_link(Purpose::Reset, secret).await?;
        let (caller, own) = (self.acting(account.clone(), Who::visitor("link")), token.clone());
        let read = self.app.store.read(move |tx| {
            let ctx = caller.reading(tx)?;
            user_of_link(tx, &ctx, &own, Purpose::Reset.statuses())
        });
        let user = read.await?;
        check_password(&password, &user.email.0)?;
        let hash = self.passwords().hash(password).await?;
        let (number, own, new) = (account.number, secret.to_string(), hash.clone());
        let proof = Proof::Link { new_password: hash, shown: token.shown };
        let entered = self.enter(account, proof, move |tx, ctx| {
            let token = token::find(tx, &ctx.site.vault, Purpose::Reset, &own, ctx.machine_now)?;
            let mut user = user_of_link(tx, ctx, &token, Purpose::Reset.statuses())?;
            // It may have been shown when it opened test accounts alone.
            if ctx.has_test_clock && token.shown && has_real_account(tx, &user.person_id)? {
                return Err(token::refused(token::Dead::Withdrawn, Purpose::Reset));
            }
            if factor::of_person(tx, &user.person_id)?.is_empty() {
                token.use_up(tx, Purpose::Reset, ctx.machine_now)?;
                user = replace_password(tx, ctx, user, &new)?;
                // A password that somebody else could choose must not open an account that the person joins later.
                match token.shown {
                    true => Person::doubt(tx, ctx, &user.person_id)?,
                    false => Person::prove(tx, ctx, &user.person_id)?,
                }
            }
            Ok(user)
        });
        let entered = entered.await?;
        if let Outcome::Entered(_) = &entered {
            self.replaced_password(&user, number).await;
        }
        Ok(entered)
    }

    /// Does what follows after the password of a user was replaced in this account.
    pub(crate) async fn replaced_password(&self, user: &User, account: i64) {
        Attempt::new(&user.email.0, &self.device.address).forgive(&self.app).await;
        self.tell_others(&user.person_id, account, "password_changed").await;
    }

    /// Mails a link for a new password, if somebody has this e-mail address. Whether somebody does is found out later,
    /// by a job, so that nothing tells the visitor.
    pub async fn forgot(&self, email: &str) -> Result<()> {
        // A longer text is no e-mail address.
        let email: String = person::folded(email).chars().take(255).collect();
        let mut attempt = Attempt::reset(&email, &self.device.address);
        attempt.count(&self.app).await?;
        if !email.contains('@') {
            return Ok(());
        }
        let job = MailReset { email, is_known: !attempt.is_strange() };
        let (now, ids, vault) = (self.app.clock.now(), self.app.ids, self.app.site.vault.clone());
        let payload = serde_json::to_string(&job).map_err(|error| Error::internal(error.to_string()))?;
        let new = NewJob {
            account: SHARED,
            kind: MailReset::KIND,
            lane: MailReset::LANE,
            payload,
            run_at: now,
            max_attempts: MailReset::TRIES,
            unique_key: None,
        };
        self.app.store.write(SHARED, move |tx| new.enqueue(tx, &ids, &vault, now)).await.map(drop)
    }
}

/// Stores a new password, whatever the current one is, and ends all sessions of the person. A user who was invited is active
/// then; returns the user.
pub(crate) fn replace_password(tx: &mut Tx, ctx: &Ctx, user: User, hash: &str) -> Result<User> {
    let user = activate(tx, ctx, user)?;
    token::withdraw(tx, ctx.account, Purpose::Invite, &user.base.id)?;
    let replaced = Person::locked(tx, &user.person_id)?.password;
    set_password(tx, ctx, &user, &replaced, hash)?;
    session::end_others(tx, &user.person_id, "")?;
    Ok(user)
}

/// The job that mails the link for a new password.
#[derive(Serialize, Deserialize)]
pub struct MailReset {
    email: String,
    /// Whether the request came from an IP address from which the person has signed in.
    is_known: bool,
}

impl Job for MailReset {
    const KIND: &'static str = "mail_reset";

    fn run(&self, app: &App, _: &Claimed) -> Result<Ending> {
        let (email, secret) = (self.email.clone(), token::new_secret()?);
        let found = app.store.read_now(move |tx| match Person::with_email(tx, &email)? {
            Some(person) => mailing(tx, &person),
            None => Ok(Vec::new()),
        })?;
        // Not through an account whose mail is not sent, if there is another.
        let mut sealed = Vec::new();
        let mut failed = None;
        for (account, user) in found.into_iter().filter(|(account, _)| !account.is_closed()) {
            // The visitor asked for it; the job only mails it.
            let caller = app.acting(account, Who::visitor("sign-in"));
            let own = caller.clone();
            let is_sealed = app.store.read_now(move |tx| {
                let ctx = own.reading(tx)?;
                Settings::is_sealed(tx, &ctx)
            });
            if is_sealed? {
                // Whoever has a test account can invite anybody to it.
                if user.status == Status::Active {
                    sealed.push((caller, user));
                }
                continue;
            }
            match self.mail(app, &caller, user, &secret) {
                Ok(()) => return Ok(Ending::Done),
                Err(error) => failed = Some(error),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        sealed.into_iter().take(1).try_for_each(|(caller, user)| self.mail(app, &caller, user, &secret))?;
        Ok(Ending::Done)
    }
}

impl MailReset {
    /// Mails the link through the account of the caller, unless strangers request too many.
    fn mail(&self, app: &App, caller: &Actor, user: User, secret: &str) -> Result<()> {
        let (number, caller, secret) = (caller.account.number, caller.clone(), secret.to_string());
        let is_known = self.is_known;
        app.store.write_now(number, move |tx| {
            let ctx = caller.writing(tx)?;
            match records::find_some::<User>(tx, &ctx, &[&user.base.id])?.pop() {
                Some(user) if Purpose::Reset.statuses().contains(&user.status) => {
                    if !throttle::note_reset(tx, &user.person_id, ctx.machine_now)? && !is_known {
                        return Ok(());
                    }
                    create_reset(tx, &ctx, &user, &secret)?;
                    // Whoever may read the mail of the account may see the link.
                    if ctx.has_test_clock || !ctx.quotas.provided.mail {
                        token::show(tx, &ctx, &secret)?;
                    }
                    letters::reset(tx, &ctx, &user, &secret)
                }
                _ => Ok(()),
            }
        })
    }
}

/// Returns the users of a person through whose accounts a link may be mailed, in the order to try. Somebody else may have
/// chosen the password, in an account that sends no mail; a person who is invited elsewhere must be able to replace it.
fn mailing(tx: &mut Tx, person: &Person) -> Result<Vec<(Account, User)>> {
    let mut users = accounts_of(tx, &person.id)?;
    if !users.is_empty() {
        let invited = invitations(tx, &person.id)?;
        users.extend(with_accounts(tx, invited)?);
    }
    // A test account may record its mail, and show the link.
    users.sort_by_key(|(account, _)| account.has_test_clock);
    Ok(users)
}

/// Whether a person has access to an account without a test clock, even if it is suspended.
fn has_real_account(tx: &mut Tx, person: &str) -> Result<bool> {
    let users = of_any_status(tx, person)?;
    let mut users = with_accounts(tx, users)?.into_iter();
    Ok(users.any(|(account, user)| user.status != Status::Invited && !account.has_test_clock))
}

/// Creates the link for a new password of a user.
pub fn create_reset(tx: &mut Tx, ctx: &Ctx, user: &User, secret: &str) -> Result<()> {
    token::create(tx, ctx, Purpose::Reset, &user.base.id, secret)?;
    records::happened(tx, ctx, user, "reset_requested")
}

//! Accepting an invitation: with a password, or in a session of the same person.

use std::sync::{Arc, Mutex, PoisonError};

use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use engine::records;
use engine::who::Who;
use store::Tx;

use crate::people::entering::{
    Outcome, Proof, Visit, activate, check_choosing, check_unchanged, set_password, user_of_link,
};
use crate::people::person::Person;
use crate::people::session::{self, Held, Via};
use crate::people::throttle::Attempt;
use crate::people::token::{self, Purpose, Token};
use crate::people::user::{User, of_any_status};
use crate::people::{factor, sealing};

impl Visit {
    /// Accepts an invitation. A person without a password chooses one; others confirm theirs. If the person has a second
    /// factor, they are a user after it is proven, and the link works until then.
    pub async fn accept(&self, secret: &str, password: String) -> Result<Outcome> {
        let (token, account) = self.open_link(Purpose::Invite, secret).await?;
        let (caller, own) = (self.acting(account.clone(), Who::visitor("link")), token.clone());
        let read = self.app.store.read(move |tx| {
            let ctx = caller.reading(tx)?;
            let user = user_of_link(tx, &ctx, &own, Purpose::Invite.statuses())?;
            Person::find(tx, &user.person_id)
        });
        let person = read.await?;
        self.check_choosing(Some(&person), token.shown).await?;
        let hash = self.known_or_new(Some(&person), &person.email, password).await?;
        let attempt = Attempt::new(&person.email, &self.device.address);
        let proof = Proof::Link { new_password: hash.clone(), shown: token.shown };
        let own = secret.to_string();
        let entered = self.enter(account, proof, move |tx, ctx| {
            let token = token::find(tx, &ctx.site.vault, Purpose::Invite, &own, ctx.machine_now)?;
            let invited = user_of_link(tx, ctx, &token, Purpose::Invite.statuses())?;
            // The person may have got access elsewhere while the password was hashed.
            sealing::lock(tx, &invited.person_id)?;
            check_choosing(tx, &invited.person_id, token.shown)?;
            if !factor::of_person(tx, &invited.person_id)?.is_empty() {
                check_unchanged(tx, &invited.person_id, &person.password)?;
                return Ok(invited);
            }
            let user = become_user(tx, ctx, &token, invited)?;
            set_password(tx, ctx, &user, &person.password, &hash)?;
            if token.shown && !hash.is_empty() {
                Person::doubt(tx, ctx, &user.person_id)?;
            }
            Ok(user)
        });
        let entered = entered.await?;
        attempt.forgive(&self.app).await;
        Ok(entered)
    }

    /// Accepts an invitation in a session of the person who is invited, which continues in the account.
    pub async fn join(&self, held: &Held, secret: &str) -> Result<Outcome> {
        let (token, account) = self.open_link(Purpose::Invite, secret).await?;
        let (person, ended) = (held.person.clone(), held.key.session.clone());
        let (via, created_at, confirmed_at) = (held.via, held.key.created_at, held.confirmed_at);
        let removed = Removed::default();
        let own = removed.clone();
        let entered = self.enter(account, Proof::Session { via, created_at, confirmed_at }, move |tx, ctx| {
            let invited = user_of_link(tx, ctx, &token, Purpose::Invite.statuses())?;
            if invited.person_id != person {
                let message = "This invitation is for another e-mail address than yours. Sign out, then open it again.";
                return Err(Error::new(Code::Forbidden, message));
            }
            sealing::lock(tx, &person)?;
            if !session::end(tx, &person, &ended)? {
                return Err(Error::new(Code::Unauthorized, "The session has ended. Sign in again."));
            }
            // The session was not started with the password, which somebody else may have chosen.
            if via != Via::Password {
                vouch(tx, ctx, &invited, &own)?;
            }
            become_user(tx, ctx, &token, invited)
        });
        let entered = entered.await?;
        self.tell_removed(&entered, &removed).await;
        Ok(entered)
    }

    /// Tells the other accounts of a person who entered one what [`vouch`] removed.
    pub(crate) async fn tell_removed(&self, entered: &Outcome, removed: &Removed) {
        let Outcome::Entered(entered) = entered else { return };
        for event in removed.events() {
            self.tell_others(&entered.user.person_id, entered.account.number, event).await;
        }
    }
}

/// The events of what [`vouch`] removed in a transaction, for what follows it.
#[derive(Clone, Default)]
pub(crate) struct Removed(Arc<Mutex<Vec<&'static str>>>);

impl Removed {
    fn events(&self) -> Vec<&'static str> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A transaction may run again: the last run counts.
    fn replace(&self, events: Vec<&'static str>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = events;
    }
}

/// Makes the user of an invitation active, and records whether it confirms the e-mail address.
fn become_user(tx: &mut Tx, ctx: &Ctx, token: &Token, invited: User) -> Result<User> {
    token.use_up(tx, Purpose::Invite, ctx.machine_now)?;
    let user = activate(tx, ctx, invited)?;
    if !token.shown {
        Person::prove(tx, ctx, &user.person_id)?;
    }
    Ok(user)
}

/// Records that somebody vouches for the e-mail address of a user. What the person signs in with is removed if nothing has
/// confirmed the address before: somebody else may have chosen it.
pub(crate) fn vouch(tx: &mut Tx, ctx: &Ctx, user: &User, removed: &Removed) -> Result<()> {
    removed.replace(Vec::new());
    let person = &user.person_id;
    sealing::lock(tx, person)?;
    if Person::is_proven(tx, person)? {
        return Ok(());
    }
    let events = Person::forget_secrets(tx, ctx, person)?;
    for (account, user) in of_any_status(tx, person)? {
        token::withdraw(tx, account, Purpose::Reset, &user.base.id)?;
        token::withdraw(tx, account, Purpose::SecondStep, &user.base.id)?;
    }
    Person::prove(tx, ctx, person)?;
    let by_user = ctx.acting_as(user.who(), &ctx.request_id, 0, "");
    for event in &events {
        records::happened(tx, &by_user, user, event)?;
    }
    removed.replace(events);
    Ok(())
}

//! The second factors of a person who has signed in: adding and removing them, and recovery codes. All of it requires that
//! the password was entered in the last 15 minutes.

use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Code, Error, FieldCode, Result, violation};
use engine::records;
use engine::text::check_name;
use engine::who::Who;
use store::Tx;

use crate::people::entering::Visit;
use crate::people::factor::{self, Factor, Method};
use crate::people::failures::Reason;
use crate::people::session::{self, Held};
use crate::people::throttle::Attempt;
use crate::people::user::User;
use crate::people::{recovery, sealing, totp};

/// A new authenticator app, which has to be confirmed with a code.
pub struct NewApp {
    /// The id of the factor.
    pub id: String,
    /// Its secret.
    pub shown: totp::NewSecret,
}

/// The second factors of a person.
pub struct Factors {
    /// The factors, oldest first.
    pub all: Vec<Factor>,
    /// How many recovery codes are left.
    pub codes_left: i64,
}

impl Visit {
    /// Returns the second factors of the person.
    pub async fn factors(&self, held: &Held) -> Result<Factors> {
        let person = held.person.clone();
        let read = self.app.store.read(move |tx| {
            Ok::<_, Error>(Factors { all: factor::of_person(tx, &person)?, codes_left: recovery::left(tx, &person)? })
        });
        read.await
    }

    /// Records that the person entered the password again.
    pub async fn confirm(&self, held: &Held, password: String) -> Result<()> {
        let person = self.person(held).await?;
        let mut attempt = Attempt::admitted(&person.email, &self.device.address);
        attempt.count(&self.app).await?;
        if person.password.is_empty() {
            let message = "You have no password. Sign out, then sign in again in the same way as before.";
            return Err(Error::new(Code::Forbidden, message));
        }
        if !self.passwords().matches(attempt.line(), password, person.password).await? {
            self.failed(attempt, Reason::Password, person.id);
            return Err(Error::new(Code::Forbidden, "The password is wrong."));
        }
        attempt.forgive(&self.app).await;
        let (session, now, vault) = (held.key.session.clone(), self.app.clock.now(), self.app.site.vault.clone());
        self.app.store.write(held.account.number, move |tx| session::confirm(tx, &vault, &session, now)).await
    }

    /// Starts the enrolment of an authenticator app.
    pub async fn begin_app(&self, held: &Held) -> Result<NewApp> {
        held.check_confirmed(self.app.clock.now())?;
        let email = self.person(held).await?.email;
        let shown = totp::generate(&email, &held.account.name)?;
        let (id, now) = (self.app.ids.next(), self.app.clock.now());
        let secret = self.app.site.vault.seal_text(&factor::place(&id), &shown.secret)?;
        self.begin(held, Factor { secret, ..Factor::new(id.clone(), Method::Totp, now) }).await?;
        Ok(NewApp { id, shown })
    }

    /// Starts the enrolment of a factor.
    pub(crate) async fn begin(&self, held: &Held, factor: Factor) -> Result<()> {
        let person = held.person.clone();
        let written = self.app.store.write(held.account.number, move |tx| {
            factor::check_room(tx, &person)?;
            factor::begin(tx, &person, &factor)
        });
        written.await
    }

    /// Completes the enrolment of an authenticator app with a code that it shows. Returns the recovery codes if it is the
    /// first factor.
    pub async fn complete_app(&self, held: &Held, id: &str, name: &str, code: &str) -> Result<Vec<String>> {
        let code: String = code.chars().filter(char::is_ascii_digit).take(7).collect();
        let (id, name, vault) = (id.to_string(), name.trim().to_string(), self.app.site.vault.clone());
        let added = self.add(held, &id, Method::Totp, move |factor, now| {
            let step = totp::step_of(&vault, factor, &code, now)?.ok_or_else(|| {
                let message = "is wrong: check that the clock of your device is right, and enter the current code";
                Error::field("code", violation(FieldCode::InvalidFormat, message))
            })?;
            let name = if name.is_empty() { "Authenticator" } else { &name };
            Ok(Factor { name: name.to_string(), counter: step, ..factor.clone() })
        });
        added.await
    }

    /// Completes an enrolment with the factor that `work` returns for it. The first factor comes with recovery codes and
    /// ends all other sessions, in which nobody proved it.
    pub(crate) async fn add(
        &self,
        held: &Held,
        id: &str,
        method: Method,
        work: impl Fn(&Factor, Moment) -> Result<Factor> + Send + Sync + 'static,
    ) -> Result<Vec<String>> {
        held.check_confirmed(self.app.clock.now())?;
        let (codes, person, session) = (recovery::generate()?, held.person.clone(), held.key.session.clone());
        let id = id.replace('\0', "");
        let added = self.logged(held, "two_factor_added", move |tx, ctx| {
            factor::check_room(tx, &person)?;
            let is_first = factor::of_person(tx, &person)?.is_empty();
            let message = "This enrolment was completed, replaced or has expired. Start again.";
            let missing = || Error::new(Code::NotFound, message);
            let begun = factor::unfinished(tx, &person, &id, ctx.machine_now)?;
            let begun = begun.filter(|begun| begun.method == method).ok_or_else(missing)?;
            let factor = work(&begun, ctx.machine_now)?;
            check_name(&factor.name).map_err(|wrong| Error::field("name", wrong))?;
            if !factor::complete(tx, &factor, ctx.machine_now)? {
                return Err(missing());
            }
            if !is_first {
                return Ok(Vec::new());
            }
            recovery::replace(tx, &person, &codes)?;
            session::end_others(tx, &person, &session)?;
            Ok(codes.clone())
        });
        added.await
    }

    /// Removes a factor. The recovery codes disappear with the last one.
    pub async fn remove_factor(&self, held: &Held, id: &str) -> Result<()> {
        held.check_confirmed(self.app.clock.now())?;
        let (id, person) = (id.to_string(), held.person.clone());
        let removed = self.logged(held, "two_factor_removed", move |tx, _| {
            if id.contains('\0') || !factor::remove(tx, &person, &id)? {
                return Err(Error::new(Code::NotFound, "You have no second factor with this id."));
            }
            match factor::of_person(tx, &person)?.is_empty() {
                true => recovery::remove_all(tx, &person),
                false => Ok(()),
            }
        });
        removed.await
    }

    /// Replaces the recovery codes.
    pub async fn renew_codes(&self, held: &Held) -> Result<Vec<String>> {
        held.check_confirmed(self.app.clock.now())?;
        let (codes, person) = (recovery::generate()?, held.person.clone());
        let renewed = self.logged(held, "recovery_codes_created", move |tx, _| {
            if factor::of_person(tx, &person)?.is_empty() {
                let message = "You have no second factor, so there is nothing to recover. Add one first.";
                return Err(Error::new(Code::InvalidTransition, message));
            }
            recovery::replace(tx, &person, &codes)?;
            Ok(codes.clone())
        });
        renewed.await
    }

    /// Changes something about the person, and logs it in all of their accounts.
    async fn logged<T: Send + 'static>(
        &self,
        held: &Held,
        event: &'static str,
        work: impl Fn(&mut Tx, &Ctx) -> Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        let (acting, id) = (self.acting(held.account.clone(), Who::of_key(&held.key)), held.key.id.clone());
        let person = held.person.clone();
        let written = self.app.store.write(held.account.number, move |tx| {
            let ctx = acting.writing(tx)?;
            let done = sealing::change(tx, &ctx.site.vault, &person, |tx| work(tx, &ctx))?;
            let user: User = records::find(tx, &ctx, &id)?;
            records::happened(tx, &ctx, &user, event)?;
            Ok::<_, Error>(done)
        });
        let done = written.await?;
        self.app.listeners.wrote(held.account.number);
        self.tell_others(&held.person, held.account.number, event).await;
        Ok(done)
    }
}

//! Signing in and out: with a password, or with a link that works once. Passwords are hashed between the transactions,
//! never inside one.

use std::sync::Arc;

use engine::accounts::{Account, SHARED};
use engine::app::App;
use engine::clock::Moment;
use engine::context::{Actor, Ctx};
use engine::error::{Code, Error, FieldCode, Result, violation};
use engine::record::Email;
use engine::records;
use engine::who::Who;
use store::Tx;

use crate::people::failures::{self, Reason};
use crate::people::password::{self, Passwords};
use crate::people::person::Person;
use crate::people::role::Role;
use crate::people::session::{self, Device, Held, Via};
use crate::people::status::{Language, Status};
use crate::people::throttle::Attempt;
use crate::people::token::{self, Purpose, Token};
use crate::people::user::{User, memberships, of_any_status};
use crate::people::{LINK_INVALID, PASSWORD_REQUIRED, USER_SUSPENDED, factor, passkey, sealing};
use crate::settings::account;

/// Somebody who is about to sign in.
pub struct Visit {
    /// The program.
    pub app: Arc<App>,
    /// The id of the request.
    pub request_id: Arc<str>,
    /// Where the session is started.
    pub device: Device,
}

/// How somebody proved who they are.
pub enum Proof {
    /// With the password. A person with a second factor has to prove that too.
    Password,
    /// With a link that was mailed. What it is for happens after the second step of a person who has a second factor.
    Link {
        /// The hash of the password that is set then; empty if the person keeps theirs.
        new_password: String,
        /// Whether somebody else could read the link.
        shown: bool,
    },
    /// With the password and a second factor.
    Both,
    /// With a link of the operator.
    Operator,
    /// At an OpenID Connect issuer, which may say when, in seconds since 1970.
    Issuer(Option<i64>),
    /// With another session of the same person.
    Session {
        /// How the person signed in.
        via: Via,
        /// When the person signed in.
        created_at: Moment,
        /// When the person last proved who they are.
        confirmed_at: Moment,
    },
}

/// What signing in leads to.
pub enum Outcome {
    /// A session.
    Entered(Entered),
    /// The second step.
    SecondStep(SecondStep),
}

/// The second step of signing in: the person still has to prove a second factor.
pub struct SecondStep {
    /// The token that takes the place of the password.
    pub token: String,
    /// The types of the person's second factors.
    pub methods: Vec<factor::Method>,
    /// What a browser needs to use a passkey of the person, if there is one.
    pub passkey: Option<serde_json::Value>,
    /// The language of the user.
    pub language: Language,
}

/// A new session.
pub struct Entered {
    /// The secret for the cookie.
    pub secret: String,
    /// The user.
    pub user: User,
    /// The account.
    pub account: Account,
}

/// Who a link is for, as its page shows it.
pub struct Invited {
    /// The name of the account.
    pub business: String,
    /// The e-mail address of the user; empty for the set-up of an account.
    pub email: String,
    /// The name of the user.
    pub name: String,
    /// The language of the user.
    pub language: String,
    /// The id of the person; empty for the set-up of an account.
    pub person: String,
    /// Whether the person already has a password, which is asked for instead of a new one.
    pub has_password: bool,
    /// Whether the person signs in to another account without a password, and must not choose one here.
    pub signs_in_otherwise: bool,
}

/// The person who sets up an account.
#[derive(Clone)]
pub struct FirstOwner {
    /// E-mail address.
    pub email: String,
    /// Name.
    pub name: String,
    /// The language that they, or their browser, asked for.
    pub language: Option<Language>,
    /// The name of the business; empty if the account keeps its name, which it must have been given then.
    pub business: String,
}

/// The same words for an unknown e-mail address, a wrong password and a user without access.
fn wrong() -> Error {
    Error::new(Code::Unauthorized, "The e-mail address or the password is wrong.")
}

impl Visit {
    /// Starts a session with a password, in the account with this id, or the first one of the person.
    pub async fn sign_in(&self, email: &str, password: String, account: &str) -> Result<Outcome> {
        let mut attempt = Attempt::new(email, &self.device.address);
        attempt.count(&self.app).await?;
        let own = email.to_string();
        let person = self.app.store.read(move |tx| Person::with_email(tx, &own)).await?;
        let (id, hash) = person.map(|person| (person.id, person.password)).unwrap_or_default();
        if !self.passwords().matches(attempt.line(), password, hash.clone()).await? {
            self.failed(attempt, Reason::Password, id);
            return Err(wrong());
        }
        let mut accounts = self.app.store.read(move |tx| accounts_of(tx, &id)).await?;
        // A closed account is only chosen if there is no other, to say so.
        accounts.sort_by_key(|(account, _)| account.is_closed());
        let chosen = accounts.into_iter().find(|(own, _)| account.is_empty() || own.uid == account);
        let (account, user) = chosen.ok_or_else(wrong)?;
        attempt.forgive(&self.app).await;
        let entered = self.enter(account, Proof::Password, move |tx, ctx| {
            // The password may have been replaced while this one was compared.
            match active(tx, ctx, &user.base.id)? {
                Some(user) if Person::locked(tx, &user.person_id)?.password == hash => Ok(user),
                _ => Err(wrong()),
            }
        });
        entered.await
    }

    /// Returns who a link is for.
    pub async fn invited(&self, purpose: Purpose, secret: &str) -> Result<Invited> {
        let (token, account) = self.open_link(purpose, secret).await?;
        let caller = self.acting(account.clone(), Who::visitor("link"));
        let read = self.app.store.read(move |tx| {
            if token.user.is_empty() {
                return Ok(None);
            }
            let ctx = caller.reading(tx)?;
            let user = user_of_link(tx, &ctx, &token, purpose.statuses())?;
            let has_password = !Person::find(tx, &user.person_id)?.password.is_empty();
            let signs_in_otherwise = !has_password && !memberships(tx, &user.person_id)?.is_empty();
            Ok::<_, Error>(Some((user, has_password, signs_in_otherwise)))
        });
        let found = read.await?;
        let (user, has_password, signs_in_otherwise) = found.unwrap_or_default();
        Ok(Invited {
            business: account.name,
            email: user.email.0,
            name: user.name,
            language: user.language.wire().to_string(),
            person: user.person_id,
            has_password,
            signs_in_otherwise,
        })
    }

    /// Creates the first owner of an account, with the link of its set-up.
    pub async fn set_up(&self, secret: &str, owner: FirstOwner, password: String) -> Result<Outcome> {
        let (token, account) = self.open_link(Purpose::SetUp, secret).await?;
        if owner.business.is_empty() && account.name == account::UNNAMED {
            return Err(Error::field("business", violation(FieldCode::Required, "is required")));
        }
        let email = owner.email.clone();
        let person = self.app.store.read(move |tx| Person::with_email(tx, &email)).await?;
        self.check_choosing(person.as_ref(), true).await?;
        let hash = self.known_or_new(person.as_ref(), &owner.email, password).await?;
        let (person, known) = person.map(|person| (person.id, person.password)).unzip();
        let known: String = known.unwrap_or_default();
        let attempt = Attempt::new(&owner.email, &self.device.address);
        let entered = self.enter(account, Proof::Password, move |tx, ctx| {
            token.use_up(tx, Purpose::SetUp, ctx.machine_now)?;
            // The person may have got access elsewhere while the password was hashed.
            if let Some(person) = &person {
                sealing::lock(tx, person)?;
                check_choosing(tx, person, true)?;
            }
            let mut user = User {
                email: Email(owner.email.clone()),
                name: owner.name.clone(),
                role: Role::Owner,
                status: Status::Active,
                language: match owner.language {
                    Some(language) => language,
                    None => Language::of_account(tx, ctx)?,
                },
                ..User::default()
            };
            records::add(tx, ctx, &mut user)?;
            set_password(tx, ctx, &user, &known, &hash)?;
            if !hash.is_empty() {
                Person::doubt(tx, ctx, &user.person_id)?;
            }
            if !owner.business.is_empty() {
                account::name_business(tx, ctx, &account::one_line("business", &owner.business)?)?;
            }
            Ok(user)
        });
        let entered = entered.await?;
        attempt.forgive(&self.app).await;
        Ok(entered)
    }

    /// Ends the session of the caller.
    pub async fn sign_out(&self, held: &Held) -> Result<()> {
        let (acting, key) = (self.acting(held.account.clone(), Who::of_key(&held.key)), held.key.clone());
        let written = self.app.store.write(held.account.number, move |tx| {
            let ctx = acting.writing(tx)?;
            let user: User = records::find(tx, &ctx, &key.id)?;
            if session::end(tx, &user.person_id, &key.session)? {
                records::happened(tx, &ctx, &user, "signed_out")?;
            }
            Ok::<_, Error>(())
        });
        written.await
    }

    /// Replaces the password of the caller, and ends all other sessions of the person.
    pub async fn change_password(&self, held: &Held, current: String, password: String) -> Result<()> {
        let person = self.person(held).await?;
        let mut attempt = Attempt::admitted(&person.email, &self.device.address);
        attempt.count(&self.app).await?;
        if !self.passwords().matches(attempt.line(), current, person.password.clone()).await? {
            self.failed(attempt, Reason::Password, person.id);
            return Err(Error::new(Code::Forbidden, "The current password is wrong."));
        }
        check_password(&password, &person.email)?;
        let hash = self.passwords().hash(password).await?;
        attempt.forgive(&self.app).await;
        let (acting, key) = (self.acting(held.account.clone(), Who::of_key(&held.key)), held.key.clone());
        let replaced = person.password;
        let written = self.app.store.write(held.account.number, move |tx| {
            let ctx = acting.writing(tx)?;
            let user: User = records::find(tx, &ctx, &key.id)?;
            set_password(tx, &ctx, &user, &replaced, &hash)?;
            session::end_others(tx, &user.person_id, &key.session).map(drop)
        });
        written.await?;
        self.tell_others(&person.id, held.account.number, "password_changed").await;
        Ok(())
    }

    /// Starts a session in another account of the caller, in place of the current one.
    pub async fn switch(&self, held: &Held, account: &str) -> Result<Outcome> {
        let person = held.person.clone();
        let id = person.clone();
        let accounts = self.app.store.read(move |tx| accounts_of(tx, &id)).await?;
        let missing = || Error::new(Code::NotFound, "You have no active user in an account with this id.");
        let (account, own) = accounts.into_iter().find(|(own, _)| own.uid == account).ok_or_else(missing)?;
        let ended = held.key.session.clone();
        let (via, created_at, confirmed_at) = (held.via, held.key.created_at, held.confirmed_at);
        let entered = self.enter(account, Proof::Session { via, created_at, confirmed_at }, move |tx, ctx| {
            sealing::lock(tx, &person)?;
            // It may have ended in the meantime, such as by a new password.
            if !session::end(tx, &person, &ended)? {
                return Err(Error::new(Code::Unauthorized, "The session has ended. Sign in again."));
            }
            active(tx, ctx, &own.base.id)?.ok_or_else(missing)
        });
        entered.await
    }

    /// Notes that an attempt failed; the person is empty if nobody has the e-mail address. What is stored about somebody is
    /// stored after the response, which would otherwise take longer for those who exist.
    pub(crate) fn failed(&self, attempt: Attempt, reason: Reason, person: String) {
        failures::note(&self.app, reason, &self.device.address, &person, &self.request_id);
        if person.is_empty() {
            return;
        }
        let (app, address, now) = (self.app.clone(), self.device.address.clone(), self.app.clock.now());
        tokio::spawn(async move {
            let kept = app.store.write(SHARED, move |tx| failures::keep(tx, reason, &address, &person, now));
            if let Err(cause) = kept.await {
                tracing::warn!(%cause, "A failed sign-in is not shown to the owners.");
            }
            // Its turns bound how many are stored at a time.
            drop(attempt);
        });
    }

    /// Finds the person of a session.
    pub(crate) async fn person(&self, held: &Held) -> Result<Person> {
        let id = held.person.clone();
        self.app.store.read(move |tx| Person::find(tx, &id)).await
    }

    /// Starts a session for the user that `work` returns, in the same transaction; or the second step, if the person has a
    /// second factor that is not proven.
    pub(crate) async fn enter(
        &self,
        account: Account,
        proof: Proof,
        work: impl Fn(&mut Tx, &Ctx) -> Result<User> + Send + Sync + 'static,
    ) -> Result<Outcome> {
        let (caller, secret) = (self.acting(account.clone(), Who::visitor("sign-in")), token::new_secret()?);
        let (own, device) = (secret.clone(), self.device.clone());
        let written = self.app.store.write(account.number, move |tx| {
            let ctx = caller.writing(tx)?;
            Account::numbered(tx, ctx.account)?.check_open()?;
            let user = work(tx, &ctx)?;
            let now = ctx.machine_now;
            let (via, created_at, confirmed_at) = match &proof {
                Proof::Password | Proof::Link { .. } => {
                    let factors = factor::of_person(tx, &user.person_id)?;
                    if !factors.is_empty() {
                        second_step(tx, &ctx, &user, &own, &proof)?;
                        return Ok((user, factors, Account::numbered(tx, ctx.account)?));
                    }
                    (Via::Password, now, now)
                }
                Proof::Both => (Via::Password, now, now),
                Proof::Operator => (Via::Operator, now, now),
                Proof::Issuer(at) => {
                    let at = at.map_or(now, |seconds| Moment(seconds.saturating_mul(1000)));
                    (Via::Issuer, now, at.min(now))
                }
                Proof::Session { via, created_at, confirmed_at } => (*via, *created_at, *confirmed_at),
            };
            let new = session::New { secret: &own, device: &device, via, confirmed_at, created_at };
            session::create(tx, &ctx, &user.base.id, &user.person_id, &new)?;
            let by_user = ctx.acting_as(user.who(), &ctx.request_id, 0, "");
            records::happened(tx, &by_user, &user, "signed_in")?;
            // Setting up an account names it.
            Ok::<_, Error>((user, Vec::new(), Account::numbered(tx, ctx.account)?))
        });
        let (user, factors, account) = written.await?;
        self.app.listeners.wrote(account.number);
        if !factors.is_empty() {
            let (methods, passkey) = (factor::methods(&factors), passkey::request(&self.app.site, &secret, &factors));
            return Ok(Outcome::SecondStep(SecondStep { token: secret, methods, passkey, language: user.language }));
        }
        Ok(Outcome::Entered(Entered { secret, user, account }))
    }

    /// Rejects a link with which somebody else could choose the password of a person; see [`check_choosing`].
    pub(crate) async fn check_choosing(&self, person: Option<&Person>, shown: bool) -> Result<()> {
        let Some(id) = person.map(|person| person.id.clone()) else { return Ok(()) };
        self.app.store.read(move |tx| check_choosing(tx, &id, shown)).await
    }

    /// Returns the hash of a new password, or an empty string if the person has this password already.
    pub(crate) async fn known_or_new(&self, person: Option<&Person>, email: &str, password: String) -> Result<String> {
        match person.filter(|person| !person.password.is_empty()) {
            None => {
                check_password(&password, email)?;
                self.passwords().hash(password).await
            }
            Some(person) => {
                let mut attempt = Attempt::admitted(email, &self.device.address);
                attempt.count(&self.app).await?;
                if !self.passwords().matches(attempt.line(), password, person.password.clone()).await? {
                    self.failed(attempt, Reason::Password, person.id.clone());
                    let message = "The password is wrong. Use the password that you have on this server already, or request a link for a new one.";
                    return Err(Error::new(Code::Unauthorized, message));
                }
                attempt.forgive(&self.app).await;
                Ok(String::new())
            }
        }
    }

    /// Writes to the logs of a person's other accounts what happened to the person. It has happened already, so a failure
    /// does not fail the request.
    pub(crate) async fn tell_others(&self, person: &str, except: i64, event: &'static str) {
        if let Err(cause) = self.log_elsewhere(person, except, event).await {
            tracing::error!(%cause, event, "The other accounts of a person have no log line about a change.");
        }
    }

    async fn log_elsewhere(&self, person: &str, except: i64, event: &'static str) -> Result<()> {
        let id = person.to_string();
        let accounts = self.app.store.read(move |tx| accounts_of(tx, &id)).await?;
        for (account, user) in accounts.into_iter().filter(|(account, _)| account.number != except) {
            let (number, caller) = (account.number, self.acting(account, user.who()));
            let written = self.app.store.write(number, move |tx| {
                let ctx = caller.writing(tx)?;
                match active(tx, &ctx, &user.base.id)? {
                    Some(user) => records::happened(tx, &ctx, &user, event),
                    None => Ok(()),
                }
            });
            written.await?;
        }
        Ok(())
    }

    pub(crate) async fn open_link(&self, purpose: Purpose, secret: &str) -> Result<(Token, Account)> {
        let (secret, now, vault) = (secret.to_string(), self.app.clock.now(), self.app.site.vault.clone());
        let read = self.app.store.read(move |tx| {
            let token = token::find(tx, &vault, purpose, &secret, now)?;
            let account = Account::numbered(tx, token.account)?;
            account.check_open()?;
            Ok((token, account))
        });
        read.await
    }

    pub(crate) fn acting(&self, account: Account, actor: impl Into<Who>) -> Actor {
        Actor { request_id: self.request_id.clone(), ..self.app.acting(account, actor) }
    }

    pub(crate) fn passwords(&self) -> &Passwords {
        self.app.services.get()
    }
}

/// Returns the accounts in which a person is an active user.
pub fn accounts_of(tx: &mut Tx, person: &str) -> Result<Vec<(Account, User)>> {
    let users = memberships(tx, person)?;
    with_accounts(tx, users)
}

/// Returns users with their accounts instead of the numbers of these.
pub(crate) fn with_accounts(tx: &mut Tx, users: Vec<(i64, User)>) -> Result<Vec<(Account, User)>> {
    users.into_iter().map(|(number, user)| Ok((Account::numbered(tx, number)?, user))).collect()
}

/// Returns the user with this id as it is now, if it is active. A user that was read before the transaction may have
/// changed, and a log line shows the current one.
pub fn active(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<Option<User>> {
    let found = records::find_some::<User>(tx, ctx, &[id])?.pop();
    Ok(found.filter(|user| user.status == Status::Active))
}

pub(crate) fn check_password(password: &str, email: &str) -> Result<()> {
    password::check(password, email).map_err(|wrong| Error::field("password", wrong))
}

/// Stores a new password, if there is one, in place of `replaced`, and logs it. Rejects the request if the password was
/// changed in the meantime. Links for a new password that were requested before it stop working, and so does signing in
/// that was begun with the old one.
pub(crate) fn set_password(tx: &mut Tx, ctx: &Ctx, user: &User, replaced: &str, hash: &str) -> Result<()> {
    if hash.is_empty() {
        return check_unchanged(tx, &user.person_id, replaced);
    }
    if !Person::set_password(tx, ctx, &user.person_id, replaced, hash)? {
        return Err(Error::new(Code::Forbidden, "The password was changed in the meantime. Sign in with the new one."));
    }
    for (account, user) in of_any_status(tx, &user.person_id)? {
        token::withdraw(tx, account, Purpose::Reset, &user.base.id)?;
        token::withdraw(tx, account, Purpose::SecondStep, &user.base.id)?;
    }
    let by_user = ctx.acting_as(user.who(), &ctx.request_id, 0, "");
    records::happened(tx, &by_user, user, "password_changed")
}

/// Rejects a link with which somebody else could choose the password of a person: one who has none, but signs in to another
/// account in another way. Neither an invitation nor the set-up of an account proves the e-mail address, as a link for a new
/// password does. Somebody who is suspended elsewhere may choose one with an invitation that only they could read.
pub(crate) fn check_choosing(tx: &mut Tx, person: &str, shown: bool) -> Result<()> {
    if !Person::find(tx, person)?.password.is_empty() {
        return Ok(());
    }
    let users = of_any_status(tx, person)?;
    let keeps_out = |status: Status| status == Status::Active || (shown && status == Status::Suspended);
    if !users.iter().any(|(_, user)| keeps_out(user.status)) {
        return Ok(());
    }
    let message = "You already sign in to another account on this server. Sign in there first, or request a link for a new password.";
    Err(Error::new(PASSWORD_REQUIRED, message))
}

/// Rejects the request if the password that the person entered was replaced meanwhile, in any account.
pub(crate) fn check_unchanged(tx: &mut Tx, person: &str, entered: &str) -> Result<()> {
    match Person::locked(tx, person)?.password == entered {
        true => Ok(()),
        false => Err(Error::new(Code::Forbidden, "The password was changed in the meantime. Enter the new one.")),
    }
}

/// Creates the token of the second step, which does what a link is for.
fn second_step(tx: &mut Tx, ctx: &Ctx, user: &User, secret: &str, proof: &Proof) -> Result<()> {
    let Proof::Link { new_password, shown } = proof else {
        return token::create(tx, ctx, Purpose::SecondStep, &user.base.id, secret);
    };
    token::create_with(tx, ctx, Purpose::SecondStep, &user.base.id, secret, new_password)?;
    if *shown { token::show(tx, ctx, secret) } else { Ok(()) }
}

/// Makes an invited user active.
pub(crate) fn activate(tx: &mut Tx, ctx: &Ctx, user: User) -> Result<User> {
    if user.status != Status::Invited {
        return Ok(user);
    }
    let mut active = User { status: Status::Active, ..user.clone() };
    records::change(tx, ctx, &user, &mut active, "activated")?;
    Ok(active)
}

/// Finds the user of a link, who must have one of these statuses, but may have been suspended or deleted since the link was
/// created.
pub(crate) fn user_of_link(tx: &mut Tx, ctx: &Ctx, token: &Token, statuses: &[Status]) -> Result<User> {
    match records::find_some::<User>(tx, ctx, &[&token.user])?.pop() {
        Some(user) if statuses.contains(&user.status) => Ok(user),
        Some(user) if user.status == Status::Suspended => Err(suspended()),
        _ => {
            let message = "This link no longer works, since the user was changed meanwhile. Ask for a new one.";
            Err(Error::new(LINK_INVALID, message))
        }
    }
}

pub(crate) fn suspended() -> Error {
    Error::new(USER_SUSPENDED, "Your access is suspended. Ask an owner of the account to restore it.")
}

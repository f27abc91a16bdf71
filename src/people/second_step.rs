//! The second step of signing in: a code of an authenticator app, a passkey, or a recovery code. And the links of the operator, which
//! need neither a password nor a second factor.

use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use engine::records;
use store::Tx;

use crate::people::entering::{Outcome, Proof, Visit, activate, user_of_link};
use crate::people::failures::Reason;
use crate::people::passkey::{self, Used};
use crate::people::person::Person;
use crate::people::resetting::replace_password;
use crate::people::status::Status;
use crate::people::throttle::Attempt;
use crate::people::token::{self, Purpose};
use crate::people::user::User;
use crate::people::{factor, recovery, sealing, totp};

/// Digits of a code of an authenticator app.
const DIGITS: usize = 6;

/// What somebody proves in the second step.
pub enum Given {
    /// A code of an authenticator app, or a recovery code.
    Code(String),
    /// A passkey.
    Passkey(Used),
}

impl Visit {
    /// Starts a session with a second factor, after the password was right.
    pub async fn second_step(&self, secret: &str, given: Given) -> Result<Outcome> {
        let (token, account) = self.open_link(Purpose::SecondStep, secret).await?;
        let (caller, own) = (self.acting(account.clone(), "sign-in"), token.clone());
        let read = self.app.store.read(move |tx| {
            let ctx = caller.reading(tx)?;
            let user = user_of_link(tx, &ctx, &own, Purpose::SecondStep.statuses())?;
            let email = Person::find(tx, &user.person_id)?.email;
            Ok::<_, Error>((user, email))
        });
        let (user, email) = read.await?;
        // Counted apart from passwords: a right password does not clear these.
        let mut attempt = match token.new_password.is_empty() {
            true => Attempt::code(&email, &self.device.address),
            false => Attempt::code_of_reset(&email, &self.device.address),
        };
        attempt.count(&self.app).await?;
        let (own, challenge) = (self.app.site.clone(), passkey::challenge_of(secret));
        let (number, sets_password) = (account.number, !token.new_password.is_empty());
        let entered = self.enter(account, Proof::Both, move |tx, ctx| {
            token.use_up(tx, Purpose::SecondStep, ctx.machine_now)?;
            let mut user = user_of_link(tx, ctx, &token, Purpose::SecondStep.statuses())?;
            sealing::lock(tx, &user.person_id)?;
            match &given {
                Given::Code(code) => prove(tx, ctx, &user, code)?,
                Given::Passkey(used) => used.prove(tx, &own, &user.person_id, &challenge, ctx.machine_now)?,
            }
            // A link waited for this.
            let (is_invited, sets_password) = (user.status == Status::Invited, !token.new_password.is_empty());
            if is_invited {
                token::use_up_all(tx, ctx, Purpose::Invite, &token.user)?;
                user = activate(tx, ctx, user)?;
            }
            if sets_password {
                token::use_up_all(tx, ctx, Purpose::Reset, &token.user)?;
                user = replace_password(tx, ctx, user, &token.new_password)?;
            }
            if (is_invited || sets_password) && !token.shown {
                Person::prove(tx, ctx, &user.person_id)?;
            }
            Ok(user)
        });
        let entered = match entered.await {
            Err(error) if error.code == Code::Unauthorized => {
                self.failed(attempt, Reason::Code, user.person_id);
                return Err(error);
            }
            entered => entered?,
        };
        attempt.forgive(&self.app).await;
        if sets_password {
            self.replaced_password(&user, number).await;
        }
        Ok(entered)
    }

    /// Starts a session with a link of the operator.
    pub async fn sign_in_by_link(&self, secret: &str) -> Result<Outcome> {
        let (token, account) = self.open_link(Purpose::SignIn, secret).await?;
        let entered = self.enter(account, Proof::Operator, move |tx, ctx| {
            token.use_up(tx, Purpose::SignIn, ctx.machine_now)?;
            user_of_link(tx, ctx, &token, Purpose::SignIn.statuses())
        });
        entered.await
    }
}

/// Uses a code up; an error if it is wrong or was used before.
fn prove(tx: &mut Tx, ctx: &Ctx, user: &User, code: &str) -> Result<()> {
    let code: String = code.chars().filter(char::is_ascii_alphanumeric).take(recovery::LENGTH + 1).collect();
    let wrong = || Error::new(Code::Unauthorized, "The code is wrong, or it has been used before.");
    if code.len() == DIGITS {
        let factors = factor::of_person(tx, &user.person_id)?;
        let is_right = totp::use_code(tx, &ctx.site.vault, &factors, &code, ctx.machine_now)?;
        return is_right.then_some(()).ok_or_else(wrong);
    }
    let person = &user.person_id;
    if !sealing::change(tx, &ctx.site.vault, person, |tx| recovery::use_code(tx, person, &code))? {
        return Err(wrong());
    }
    let by_user = ctx.acting_as(user.who(), &ctx.request_id, 0, "");
    records::happened(tx, &by_user, user, "recovery_code_used")
}

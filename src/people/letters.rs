//! Mail to people: invitations and new passwords.

use engine::accounts::Account;
use engine::context::Ctx;
use engine::error::Result;
use store::Tx;

use crate::mail::hours::Timing;
use crate::mail::link::{self, Link};
use crate::mail::{self, Letter};
use crate::people::status::Language;
use crate::people::token::Purpose;
use crate::people::user::{User, is_elsewhere};
use crate::settings::Settings;

/// Mails an invitation with its link.
pub fn invite(tx: &mut Tx, ctx: &Ctx, user: &User, secret: &str) -> Result<()> {
    let url = Purpose::Invite.link(&ctx.site, secret);
    let business = Account::numbered(tx, ctx.account)?.name;
    let name = &user.name;
    let (subject, body) = match user.language {
        Language::Dutch => (
            format!("Uitnodiging voor {business}"),
            format!(
                "Hallo {name},\n\nU hebt een uitnodiging gekregen voor de administratie van {business}. Open deze link om de uitnodiging te accepteren:\n\n{url}\n\nDe link is zeven dagen geldig en werkt één keer.\n"
            ),
        ),
        Language::English => (
            format!("Invitation to {business}"),
            format!(
                "Hello {name},\n\nYou have been invited to join {business} on Kantoor. Open this link to accept the invitation:\n\n{url}\n\nThe link works once, for seven days.\n"
            ),
        ),
    };
    put(tx, ctx, user, (link::INVITE, subject, body), (Purpose::Invite, url))
}

/// Mails the link to choose a new password.
pub fn reset(tx: &mut Tx, ctx: &Ctx, user: &User, secret: &str) -> Result<()> {
    let url = Purpose::Reset.link(&ctx.site, secret);
    let name = &user.name;
    let (subject, body) = match user.language {
        Language::Dutch => (
            "Nieuw wachtwoord".to_string(),
            format!(
                "Hallo {name},\n\nOpen deze link om een nieuw wachtwoord te kiezen:\n\n{url}\n\nDe link is een uur geldig en werkt één keer. Hebt u hier niet om gevraagd? Dan hoeft u niets te doen.\n"
            ),
        ),
        Language::English => (
            "New password".to_string(),
            format!(
                "Hello {name},\n\nOpen this link to choose a new password:\n\n{url}\n\nThe link works once, for an hour. If you did not ask for it, you need not do anything.\n"
            ),
        ),
    };
    put(tx, ctx, user, (link::RESET, subject, body), (Purpose::Reset, url))
}

fn put(
    tx: &mut Tx,
    ctx: &Ctx,
    user: &User,
    (kind, subject, body): (&str, String, String),
    (purpose, url): (Purpose, String),
) -> Result<()> {
    let (from_name, reply_to) = mail::identity_of(tx, ctx, "")?;
    // A new password opens every account of the person.
    let is_hidden =
        purpose == Purpose::Reset && Settings::is_sealed(tx, ctx)? && is_elsewhere(tx, ctx.account, &user.person_id)?;
    let letter = Letter {
        about: "user",
        about_id: user.base.id.clone(),
        kind: kind.to_string(),
        to: vec![user.email.0.clone()],
        subject: subject.replace(['\n', '\r'], " "),
        body,
        from_name,
        reply_to,
        timing: Timing::AtOnce,
        link: Link { url, scopes: user.role.scopes(), expires_at: purpose.ends_at(ctx.machine_now), is_hidden },
        ..Letter::default()
    };
    mail::put(tx, ctx, &letter).map(drop)
}

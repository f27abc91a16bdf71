//! People: the users of an account with their roles, and how they sign in. A person has one password and may be a user
//! of several accounts.

pub(crate) mod access;
pub(crate) mod assigned;
pub mod enrolling;
pub mod entering;
pub mod entrances;
pub mod factor;
pub mod failures;
pub(crate) mod here;
pub mod inviting;
pub mod issuer;
pub mod joining;
pub mod letters;
pub mod me;
pub mod new_passkey;
pub mod operator;
pub mod passkey;
pub mod password;
pub mod person;
pub(crate) mod preferences;
pub mod recovery;
pub mod resetting;
pub mod role;
pub mod sealing;
pub mod second_step;
pub mod session;
pub mod status;
pub mod throttle;
pub mod token;
pub mod totp;
pub mod user;

use engine::error_codes;

/// The tables of what opens the console without a password: sessions, and links that work once.
pub(crate) const ENTRANCES: [&str; 2] = ["sessions", "one_time_tokens"];

error_codes! {
    /// The user is the last active owner of the account. Make another user an owner first.
    LAST_OWNER = "last_owner", Conflict, retry: true;
    /// The link has been used, has expired, was replaced or withdrawn, or is not complete. The message says how to get a new one.
    LINK_INVALID = "link_invalid", Conflict, retry: false;
    /// The account requires a second factor, and the person of the session has none yet. Add one at `/two-factor`.
    TWO_FACTOR_REQUIRED = "two_factor_required", Forbidden, retry: false;
    /// The action is dangerous, and the password was entered more than 15 minutes ago. Enter it again (`POST /console/confirm`), or sign in again, then retry.
    CONFIRMATION_REQUIRED = "confirmation_required", Forbidden, retry: true;
    /// The person has no password, but already signs in to another account. Sign in there first, or request a link for a new password.
    PASSWORD_REQUIRED = "password_required", Forbidden, retry: false;
    /// Signing in at the OpenID Connect issuer failed. The log of the server has the reason.
    ISSUER_FAILED = "issuer_failed", Forbidden, retry: true;
    /// No user has the e-mail address with which the person signed in at the OpenID Connect issuer.
    NO_SUCH_USER = "no_such_user", Forbidden, retry: true;
    /// The access of the person who signs in, with a link or at the OpenID Connect issuer, is suspended. An owner can restore it.
    USER_SUSPENDED = "user_suspended", Forbidden, retry: true;
}

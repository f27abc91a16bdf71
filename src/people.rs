//! People: the users of an account with their roles, and how they sign in. A person has one password and may be a user
//! of several accounts.

pub(crate) mod assigned;
pub mod entering;
pub mod inviting;
pub mod letters;
pub mod me;
pub mod operator;
pub mod password;
pub mod person;
pub mod role;
pub mod session;
pub mod status;
pub mod throttle;
pub mod token;
pub mod user;

use engine::error_codes;

error_codes! {
    /// The user is the last active owner of the account. Make another user an owner first.
    LAST_OWNER = "last_owner", Conflict, retry: true;
    /// The link has been used, has expired or is not complete. The message says how to get a new one.
    LINK_INVALID = "link_invalid", Conflict, retry: false;
}

//! The status and the language of a user.

use engine::choice;
use engine::context::Ctx;
use engine::error::Result;
use engine::record::Transitions;
use store::Tx;

use crate::settings::Settings;

choice! {
    /// The status of a user.
    pub enum Status {
        /// Has not accepted the invitation yet.
        #[default]
        Invited = "invited",
        /// Can sign in.
        Active = "active",
        /// Cannot sign in.
        Suspended = "suspended",
    }
}

choice! {
    /// The language of a user.
    pub enum Language {
        /// Dutch.
        #[default]
        Dutch = "nl",
        /// English.
        English = "en",
    }
}

/// The allowed changes of the status. Only accepting an invitation makes a user active; an invitation is withdrawn by
/// deleting the user.
pub const TRANSITIONS: Transitions<Status> =
    &[(Status::Invited, &[]), (Status::Active, &[Status::Suspended]), (Status::Suspended, &[Status::Active])];

impl Language {
    /// Returns the language of the account, for a user whose language is not chosen.
    pub fn of_account(tx: &mut Tx, ctx: &Ctx) -> Result<Language> {
        Ok(Language::from_wire(Settings::of(tx, ctx)?.language.wire()).unwrap_or_default())
    }

    /// Returns the first known language of an `Accept-Language` header.
    pub fn asked(header: &str) -> Option<Language> {
        header.split(',').find_map(|one| Language::from_wire(one.trim().get(..2)?))
    }
}

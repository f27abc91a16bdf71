//! The status and the language of a user.

use engine::choice;
use engine::record::Transitions;

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

/// The allowed changes of the status. Accepting an invitation makes a user active.
pub const TRANSITIONS: Transitions<Status> = &[
    (Status::Invited, &[Status::Suspended]),
    (Status::Active, &[Status::Suspended]),
    (Status::Suspended, &[Status::Active]),
];

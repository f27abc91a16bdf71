//! Roles: what a user may do, as the scopes that a key would have.

use engine::accounts;
use engine::choice;
use engine::context::Ctx;
use engine::error::{Code, Error, Result};

choice! {
    /// The role of a user.
    pub enum Role {
        /// May do everything.
        Owner = "owner",
        /// Does the daily work: reads everything except keys and webhooks, and changes records, but no settings.
        #[default]
        Member = "member",
        /// Reads everything, and changes what concerns money: also subscriptions, direct debit, tax rates and payment terms.
        Bookkeeper = "bookkeeper",
        /// Reads everything except keys and webhooks.
        Reader = "reader",
    }
}

/// The scopes of a role: the areas that it does not read, and those that it writes. An owner has `*`.
struct Scopes {
    role: Role,
    unread: &'static [&'static str],
    written: &'static [&'static str],
}

/// The scopes of each role but the owner's.
const SCOPES: &[Scopes] = &[
    Scopes {
        role: Role::Member,
        unread: &["keys", "webhooks"],
        written: &["invoices", "relations", "tickets", "deals", "projects", "products", "tasks", "notes", "files"],
    },
    Scopes { role: Role::Bookkeeper, unread: &[], written: &["invoices", "products", "finance"] },
    Scopes { role: Role::Reader, unread: &["keys", "webhooks"], written: &[] },
];

impl Role {
    /// Returns the scopes of the role.
    pub fn scopes(self) -> Vec<String> {
        let Some(own) = SCOPES.iter().find(|own| own.role == self) else { return vec!["*".to_string()] };
        let has = |scope: &&String| match scope.split_once('.') {
            Some((area, "read")) => !own.unread.contains(&area),
            Some((area, _)) => own.written.contains(&area),
            None => false,
        };
        accounts::scopes().iter().filter(has).cloned().collect()
    }

    /// Rejects a caller who lacks a scope of the role: nobody can give, change or take away what they do not have.
    pub fn check_grant(self, ctx: &Ctx) -> Result<()> {
        let Some(missing) = self.scopes().into_iter().find(|scope| !ctx.may(scope)) else { return Ok(()) };
        let role = self.wire();
        let message = format!("The role '{role}' includes the scope '{missing}', which you do not have yourself.");
        Err(Error::new(Code::Forbidden, message))
    }
}

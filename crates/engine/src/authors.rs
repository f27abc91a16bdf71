//! Authors: who stands behind something that acts later, when no request is in progress. It acts with the scopes that its
//! author has at that time, and no longer acts when the author has lost access.

use std::collections::HashMap;
use std::sync::Arc;

use store::Tx;

use crate::accounts::Key;
use crate::choice;
use crate::context::Ctx;
use crate::error::Result;
use crate::registry::registry;

choice! {
    /// The type of an author.
    pub enum AuthorType {
        /// The operator of the server, or the program itself. Not limited by scopes.
        #[default]
        Operator = "operator",
        /// An API key.
        Key = "key",
        /// A user of the account.
        User = "user",
    }
}

/// An author.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Author {
    /// Its type.
    pub kind: AuthorType,
    /// The id of the key or the user; empty for the operator.
    pub id: String,
}

impl Author {
    /// Returns the caller as an author.
    pub fn calling(ctx: &Ctx) -> Author {
        match &ctx.key {
            None => Author::default(),
            Some(key) if key.session.is_empty() => Author { kind: AuthorType::Key, id: key.id.clone() },
            Some(key) => Author { kind: AuthorType::User, id: key.id.clone() },
        }
    }

    /// Returns what the author may do now.
    pub fn authority(&self, tx: &mut Tx, ctx: &Ctx) -> Result<Authority> {
        let found = match self.kind {
            AuthorType::Operator => return Ok(Authority::Unlimited),
            AuthorType::Key => key(tx, ctx, &self.id)?,
            AuthorType::User => {
                let user = registry().user.map(|find| find(tx, ctx.account, &self.id)).transpose()?.flatten();
                user.map(Arc::new)
            }
        };
        let Some(key) = found else {
            return Ok(Authority::Ended(match self.kind {
                AuthorType::User => "its author is no longer an active user of the account".to_string(),
                _ => "the key of its author no longer exists".to_string(),
            }));
        };
        Ok(if key.revoked_at.0 > 0 {
            Authority::Ended(format!("the key '{}' of its author has been revoked", key.name))
        } else if !key.is_live(ctx.machine_now) {
            Authority::Ended(format!("the key '{}' of its author has expired", key.name))
        } else {
            Authority::Limited(key)
        })
    }
}

/// The keys that a transaction has read.
#[derive(Default)]
struct Known(HashMap<String, Option<Arc<Key>>>);

/// Finds a key. Many actions of one transaction may have the same author.
fn key(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<Option<Arc<Key>>> {
    if let Some(known) = tx.memory::<Known>("keys", ctx.account).0.get(id) {
        return Ok(known.clone());
    }
    let found = Key::find(tx, ctx.account, id)?.map(Arc::new);
    tx.memory::<Known>("keys", ctx.account).0.insert(id.to_string(), found.clone());
    Ok(found)
}

/// What an author may do.
#[derive(Clone, Debug)]
pub enum Authority {
    /// Everything.
    Unlimited,
    /// What this key may do.
    Limited(Arc<Key>),
    /// Nothing, for this reason.
    Ended(String),
}

impl Authority {
    /// Returns what the caller may do.
    pub fn calling(ctx: &Ctx) -> Authority {
        ctx.key.clone().map_or(Authority::Unlimited, Authority::Limited)
    }

    /// Whether it includes this scope.
    pub fn may(&self, scope: &str) -> bool {
        match self {
            Authority::Unlimited => true,
            Authority::Limited(key) => key.may(scope),
            Authority::Ended(_) => false,
        }
    }

    /// Returns the key under which the author acts; none for unlimited authority.
    pub fn key(&self) -> Option<Arc<Key>> {
        match self {
            Authority::Limited(key) => Some(key.clone()),
            _ => None,
        }
    }
}

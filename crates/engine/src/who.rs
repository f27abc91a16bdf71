//! Who causes a change, as the log names it.

use std::sync::Arc;

use crate::accounts::Key;

/// The type of an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActorType {
    /// A person who has signed in.
    User,
    /// An API key.
    Key,
    /// The program itself.
    Job,
    /// Somebody without a key: a client on a public page, or a person who has not signed in yet.
    Visitor,
    /// Somebody at the command line of the server.
    Operator,
    /// Another type of the business code, with its name. Its ids start with the name.
    Other(&'static str),
}

impl ActorType {
    /// Returns its name in the log and in events.
    pub fn wire(self) -> &'static str {
        match self {
            ActorType::User => "user",
            ActorType::Key => "key",
            ActorType::Job => "job",
            ActorType::Visitor => "visitor",
            ActorType::Operator => "operator",
            ActorType::Other(name) => name,
        }
    }
}

const OPERATOR: &str = "operator";
/// The pages of people without a key.
const VISITORS: [&str; 4] = ["visitor", "sandbox", "link", "sign-in"];

/// Who causes a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// The type.
    pub kind: ActorType,
    /// The id of the key or the user, or the name of what else it is.
    pub id: Arc<str>,
    /// The name at that time.
    pub name: Arc<str>,
}

impl Who {
    /// Returns the caller that a key stands for: the key itself, or the user of a session.
    pub fn of_key(key: &Key) -> Who {
        let kind = if key.session.is_empty() { ActorType::Key } else { ActorType::User };
        Who { kind, id: key.id.as_str().into(), name: key.name.as_str().into() }
    }

    /// Returns a user.
    pub fn user(id: &str, name: &str) -> Who {
        Who { kind: ActorType::User, id: id.into(), name: name.into() }
    }

    /// Returns an actor of another type.
    pub fn other(kind: &'static str, id: &str, name: &str) -> Who {
        Who { kind: ActorType::Other(kind), id: format!("{kind} {id}").into(), name: name.into() }
    }

    /// Returns a visitor of these pages.
    pub fn visitor(of: &str) -> Who {
        Who { kind: ActorType::Visitor, ..Who::from(of) }
    }
}

/// The program itself, under the name of a job; or the operator or a visitor, under theirs.
impl From<&str> for Who {
    fn from(name: &str) -> Who {
        let kind = match name {
            OPERATOR => ActorType::Operator,
            _ if VISITORS.contains(&name) => ActorType::Visitor,
            _ => ActorType::Job,
        };
        Who { kind, id: name.into(), name: name.into() }
    }
}

impl From<&Who> for Who {
    fn from(who: &Who) -> Who {
        who.clone()
    }
}

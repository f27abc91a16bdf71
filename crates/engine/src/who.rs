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
    /// An automation.
    Flow,
    /// The program itself.
    Job,
    /// Somebody without a key: a client on a public page, or a person who has not signed in yet.
    Visitor,
    /// Somebody at the command line of the server.
    Operator,
}

impl ActorType {
    /// Every type.
    pub const ALL: [ActorType; 6] =
        [ActorType::User, ActorType::Key, ActorType::Flow, ActorType::Job, ActorType::Visitor, ActorType::Operator];

    /// Returns its name in the log and in events.
    pub fn wire(self) -> &'static str {
        match self {
            ActorType::User => "user",
            ActorType::Key => "key",
            ActorType::Flow => "flow",
            ActorType::Job => "job",
            ActorType::Visitor => "visitor",
            ActorType::Operator => "operator",
        }
    }

    /// Returns the type of an actor that an earlier version logged by its id alone. Users did not exist then.
    pub fn of_id(id: &str) -> ActorType {
        match id {
            OPERATOR => ActorType::Operator,
            _ if VISITORS.contains(&id) => ActorType::Visitor,
            _ if id.starts_with(FLOW) => ActorType::Flow,
            // Ids of keys are UUIDs; names of jobs are shorter.
            _ if id.len() == 36 && id.bytes().filter(|byte| *byte == b'-').count() == 4 => ActorType::Key,
            _ => ActorType::Job,
        }
    }
}

const OPERATOR: &str = "operator";
/// The pages of people without a key.
const VISITORS: [&str; 4] = ["visitor", "sandbox", "link", "sign-in"];
/// What the id of a flow follows.
const FLOW: &str = "flow ";

/// Who causes a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// The type.
    pub kind: ActorType,
    /// The id of the key or the user, `flow` and the id of the flow, or the name of what else it is.
    pub id: Arc<str>,
    /// The name at that time: of the key, the user, the flow or the job.
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

    /// Returns a flow.
    pub fn flow(id: &str, name: &str) -> Who {
        Who { kind: ActorType::Flow, id: format!("{FLOW}{id}").into(), name: name.into() }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actors_of_earlier_versions_have_a_type() {
        for (id, kind) in [
            ("0198d1c2-7b7e-7c3a-9d53-2f1d8c6a0b11", ActorType::Key),
            ("flow 0198d1c2-7b7e-7c3a-9d53-2f1d8c6a0b11", ActorType::Flow),
            ("days", ActorType::Job),
            ("operator", ActorType::Operator),
            ("visitor", ActorType::Visitor),
        ] {
            assert_eq!(ActorType::of_id(id), kind, "{id}");
        }
    }
}

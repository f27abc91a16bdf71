//! Sets of values: those that callers may extend with words of their own, and the moves between values.

use crate::error::{Code, Error, Result};

/// The moves of a status: from where, and to where. A move that is not listed is refused.
pub type Transitions<S> = &'static [(S, &'static [S])];

/// Whether the table lists this move.
pub fn may_become<S: PartialEq>(table: Transitions<S>, from: &S, to: &S) -> bool {
    table.iter().any(|(own, targets)| own == from && targets.contains(to))
}

/// Refuses a move that the table does not list, in the words of `message`.
pub fn check_transition<S: PartialEq>(
    table: Transitions<S>,
    from: &S,
    to: &S,
    message: impl FnOnce() -> String,
) -> Result<()> {
    if may_become(table, from, to) { Ok(()) } else { Err(Error::new(Code::InvalidTransition, message())) }
}

/// Declares an enum with the name of each value on the wire.
#[macro_export]
macro_rules! words {
    ($(#[doc = $about:literal])+ $vis:vis enum $name:ident { $( $(#[doc = $doc:literal])+ $(#[$flag:meta])? $variant:ident = $wire:literal, )+ }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        $vis enum $name { $( $(#[doc = $doc])+ $(#[$flag])? $variant, )+ }

        impl $name {
            /// Every value.
            pub const ALL: &[$name] = &[$( $name::$variant, )+];

            /// Every value as it goes over the wire.
            pub const WIRE: &[&str] = &[$( $wire, )+];

            /// As it goes over the wire.
            pub const fn wire(self) -> &'static str {
                match self { $( $name::$variant => $wire, )+ }
            }

            /// Some of them as SQL lists them: `'one', 'another'`.
            pub fn sql_list(values: &[$name]) -> String {
                values.iter().map(|value| format!("'{}'", value.wire())).collect::<Vec<_>>().join(", ")
            }

            /// The value with this name, in British or American spelling.
            pub fn from_wire(text: &str) -> Option<$name> {
                let find = |text: &str| match text { $( $wire => Some($name::$variant), )+ _ => None };
                find(text).or_else(|| find($crate::record::other_spelling(text)?))
            }
        }
    };
}

/// Declares a set of values that have a meaning here, to which callers may add words of their own. Stored, filtered and
/// described like any text; the default is no value.
#[macro_export]
macro_rules! open_choice {
    ($(#[doc = $about:literal])+ $vis:vis enum $name:ident { $( $(#[doc = $doc:literal])+ $variant:ident = $wire:literal, )+ }) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, Eq)]
        $vis enum $name {
            $( $(#[doc = $doc])+ $variant, )+
            /// A word of the caller's own, or no value when it is empty.
            Other(String),
        }

        impl $name {
            /// The values that have a meaning here.
            pub const KNOWN: &[$name] = &[$( $name::$variant, )+];

            /// As it goes over the wire.
            pub fn wire(&self) -> &str {
                match self { $( $name::$variant => $wire, )+ $name::Other(word) => word }
            }
        }

        impl Default for $name {
            fn default() -> $name {
                $name::Other(String::new())
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> $name {
                match text { $( $wire => $name::$variant, )+ other => $name::Other(other.to_string()) }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.wire())
            }
        }

        impl $crate::record::Kind for $name {
            fn to_db(&self) -> store::Value<'_> {
                self.wire().into()
            }

            fn from_db(row: &store::Row, column: usize) -> store::Result<Self> {
                Ok($name::from(row.text(column)?))
            }

            fn from_json(json: &$crate::json::Json, rules: &$crate::record::Rules) -> Result<Self, $crate::error::Violation> {
                let text = <String as $crate::record::Kind>::from_json(json, rules)?;
                Ok($name::from(text.as_str()))
            }

            fn to_json(&self, rules: &$crate::record::Rules, out: &mut Vec<u8>) {
                $crate::record::Kind::to_json(&self.wire().to_string(), rules, out);
            }

            fn schema(rules: &$crate::record::Rules) -> serde_json::Value {
                <String as $crate::record::Kind>::schema(rules)
            }

            fn is_empty(&self) -> bool {
                self.wire().trim().is_empty()
            }
        }
    };
}

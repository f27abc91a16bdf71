//! Enumerations that callers can extend with custom values, and transitions between statuses.

use crate::error::{Code, Error, Result};

/// The transitions of a status: from which, to which. A transition that is not listed is rejected.
pub type Transitions<S> = &'static [(S, &'static [S])];

/// Whether the table has this transition.
pub fn may_become<S: PartialEq>(table: Transitions<S>, from: &S, to: &S) -> bool {
    table.iter().any(|(own, targets)| own == from && targets.contains(to))
}

/// Rejects a transition that is not in the table, with `message`.
pub fn check_transition<S: PartialEq>(
    table: Transitions<S>,
    from: &S,
    to: &S,
    message: impl FnOnce() -> String,
) -> Result<()> {
    if may_become(table, from, to) { Ok(()) } else { Err(Error::new(Code::InvalidTransition, message())) }
}

/// Declares an enum with the API name of each value.
#[macro_export]
macro_rules! words {
    ($(#[doc = $about:literal])+ $vis:vis enum $name:ident { $( $(#[doc = $doc:literal])+ $(#[$flag:meta])? $variant:ident = $wire:literal, )+ }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        $vis enum $name { $( $(#[doc = $doc])+ $(#[$flag])? $variant, )+ }

        impl $name {
            /// All values.
            pub const ALL: &[$name] = &[$( $name::$variant, )+];

            /// The API names of all values.
            pub const WIRE: &[&str] = &[$( $wire, )+];

            /// Returns its API name.
            pub const fn wire(self) -> &'static str {
                match self { $( $name::$variant => $wire, )+ }
            }

            /// Some of them as SQL lists them: `'one', 'another'`.
            pub fn sql_list(values: &[$name]) -> String {
                values.iter().map(|value| format!("'{}'", value.wire())).collect::<Vec<_>>().join(", ")
            }

            /// Returns the value with this name, in British or American spelling.
            pub fn from_wire(text: &str) -> Option<$name> {
                let find = |text: &str| match text { $( $wire => Some($name::$variant), )+ _ => None };
                find(text).or_else(|| find($crate::record::other_spelling(text)?))
            }
        }
    };
}

/// Declares an enumeration that callers can extend with custom values. Stored, filtered and described as a string; the
/// default is no value.
#[macro_export]
macro_rules! open_choice {
    ($(#[doc = $about:literal])+ $vis:vis enum $name:ident { $( $(#[doc = $doc:literal])+ $variant:ident = $wire:literal, )+ }) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, Eq)]
        $vis enum $name {
            $( $(#[doc = $doc])+ $variant, )+
            /// A custom value, or no value if it is empty.
            Other(String),
        }

        impl $name {
            /// The values that have a meaning to the server.
            pub const KNOWN: &[$name] = &[$( $name::$variant, )+];

            /// Returns its API name.
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
            const NAME: &'static str = "choice";
            const CHOICES: &'static [&'static str] = &[$( $wire, )+];

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

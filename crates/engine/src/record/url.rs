//! The URLs that a record shows.

use super::rules::Views;
use crate::clock::Moment;
use crate::site::Site;

/// A URL that a record shows.
pub struct ShownUrl {
    /// The name of the field.
    pub name: &'static str,
    /// Its path, with `{id}` and the names of other fields as placeholders.
    pub path: &'static str,
    /// Whether it is signed, for a day of access without a key.
    pub signed: bool,
    /// The views that include it.
    pub views: Views,
    /// Who may see it, if not everybody who may see the record.
    pub needs: Option<Needs>,
    /// Its description in the documentation.
    pub doc: &'static str,
}

/// The scope that a URL requires for some of the records.
pub struct Needs {
    /// A column of the record.
    pub column: &'static str,
    /// The value of the column in records that require the scope.
    pub value: &'static str,
    /// The scope.
    pub scope: &'static str,
}

impl ShownUrl {
    /// Whether a caller with the scopes for which `may` is true may see the URL of a record with these values. Without
    /// the column, the scope is required.
    pub fn is_for(&self, may: impl Fn(&str) -> bool, value: impl Fn(&str) -> String) -> bool {
        let Some(needs) = &self.needs else { return true };
        may(needs.scope) || !["", needs.value].contains(&value(needs.column).as_str())
    }

    /// Whether its path contains the value of this field.
    pub(super) fn names(&self, field: &str) -> bool {
        let placeholder = |part: &str| part.split_once('}').is_some_and(|(name, _)| name == field);
        self.path.split('{').skip(1).any(placeholder)
    }

    /// Returns the URL with this path.
    pub fn url(&self, site: &Site, account: i64, now: Moment, path: &str) -> String {
        if self.signed { site.signed(account, now, path) } else { site.address(path) }
    }

    /// Returns its path with these values of its placeholders.
    pub fn path_with(&self, value: impl Fn(&str) -> String) -> String {
        let mut parts = self.path.split('{');
        let mut path = parts.next().unwrap_or_default().to_string();
        for part in parts {
            let (name, rest) = part.split_once('}').unwrap_or((part, ""));
            path.push_str(&value(name));
            path.push_str(rest);
        }
        path
    }
}

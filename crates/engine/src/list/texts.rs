//! Searches that compare the texts of the account, since many records have the words.

use store::Value;

use super::{ListQuery, Selection};
use crate::record::Layout;

/// A page that is expected within this part of the list is read in its order.
const PART: i64 = 40;
/// More matches are never sorted.
const MOST_SORTED: i64 = 5_000;

impl ListQuery {
    /// Whether the records are in the order of their ids, as their texts are.
    pub(super) fn is_by_id(&self, layout: &Layout) -> bool {
        self.sort == "id" || self.sort == "created_at" && layout.shape.created_by_id
    }

    /// Whether it is faster to read all matches and sort them than to look for the page in the order of the list.
    pub(super) fn is_few(&self, total: i64) -> bool {
        total <= self.offset().saturating_add(self.per_page).saturating_mul(PART).min(MOST_SORTED)
    }

    /// Returns the statement for a page of the texts, which are in the order of the list: it ends with the last of the page.
    pub(super) fn page_by_texts(&self, layout: &Layout, selection: Selection) -> (String, Vec<Value<'static>>) {
        let Selection { texts, mut values, .. } = selection;
        let (table, columns, order) = (layout.shape.table, &layout.sql.list_columns, self.order);
        let limited = self.limit(&mut values);
        let page = format!(
            "SELECT {columns} FROM (SELECT record_id {texts} ORDER BY record_id {order} {limited}) found
             CROSS JOIN {table} WHERE {table}.account_id = $1 AND {table}.id = found.record_id ORDER BY {table}.id {order}"
        );
        (page, values)
    }

    /// Returns the statement that counts what comes after the page, whose last id is to be added to the values.
    pub(super) fn rest_statement(&self, selection: &Selection) -> (String, Vec<Value<'static>>) {
        let after = if self.order == "desc" { "<" } else { ">" };
        let place = selection.values.len() + 1;
        let rest = format!("SELECT count(*) {} AND record_id {after} ${place}", selection.texts);
        (rest, selection.values.clone())
    }
}

impl Selection {
    /// The same for few matches: the records of the texts that have the words.
    pub(super) fn of_few(&self, layout: &Layout) -> Selection {
        let table = layout.shape.table;
        Selection {
            from: format!("{} CROSS JOIN {table}", self.only_found),
            conditions: format!("{table}.account_id = $1 AND {table}.id = found.record_id"),
            ..self.clone()
        }
    }
}

//! Searches: how the page and the total are found.

use store::{Tx, Value, placed};

use super::{Condition, ListQuery, MAX_COUNTED, MOST_SORTED, Selection, Statements};
use crate::context::Ctx;
use crate::error::{Error, Result};
use crate::record::Layout;
use crate::search::{self, Sought, Wanted, Way};

/// A page that is expected within this part of the list is read in its order.
const PART: i64 = 40;
/// So many matches are remembered when they are counted, and need not be searched for again.
const REMEMBERED: i64 = 64;
/// More texts than any database has.
const NEVER_REACHED: i64 = 1_000_000_000_000;

impl ListQuery {
    /// Whether the records are in the order of their ids, as their texts are.
    pub(super) fn is_by_id(&self, layout: &Layout) -> bool {
        self.sort == "id" || self.sort == "created_at" && layout.shape.created_by_id
    }

    /// Returns the same list for a search with further filters if few texts have the words: their records are looked up. Otherwise
    /// the records that satisfy the filters are compared, which may be all of the account.
    pub(super) fn by_few_texts(&self, layout: &Layout, tx: &mut Tx, ctx: &Ctx) -> Result<Option<ListQuery>> {
        let is_wide = !self.conditions.is_empty() && !self.conditions.iter().any(Condition::is_narrow);
        let sought = if is_wide && !self.starts_from_texts { self.sought(layout, tx, ctx)? } else { None };
        let Some(sought) = sought else { return Ok(None) };
        let Way::Texts(patterns) = sought.all(tx) else { return Ok(None) };
        let texts = match sought.in_table() {
            true => search::texts_in_table(tx, patterns.len()),
            false => search::texts(tx, patterns.len(), Wanted::First) + " ORDER BY record_id",
        };
        let sql = format!("SELECT record_id {texts} LIMIT {}", MOST_SORTED + 1);
        let mut values: Vec<Value> = vec![ctx.account.into(), layout.shape.name.into()];
        values.extend(patterns);
        let (total, mut ids) = first_of(tx, &remembering(&sql), &values)?;
        if total > MOST_SORTED {
            return Ok(None);
        }
        let (mut conditions, mut search) = (self.conditions.clone(), self.search.clone());
        if total <= REMEMBERED {
            // A few lengths need only a few prepared statements; no record has this id.
            ids.resize(ids.len().next_power_of_two(), String::new());
            conditions.push(Condition::In(ids));
            search = None;
        }
        Ok(Some(ListQuery {
            search,
            conditions,
            sums: self.sums.clone(),
            ignored: self.ignored.clone(),
            doubts: Vec::new(),
            starts_from_texts: true,
            ..*self
        }))
    }

    /// Returns how the matches of the search are found, with further filters.
    pub(super) fn way(&self, tx: &Tx, sought: &Sought) -> Way {
        if self.starts_from_texts { sought.few(tx, MOST_SORTED) } else { sought.all(tx) }
    }

    /// Returns the statements of a search in the order of the texts: the page ends with its last match.
    pub(super) fn search_by_id(&self, layout: &Layout, tx: &mut Tx, ctx: &Ctx, sought: &Sought) -> Result<Statements> {
        let (of_page, of_total) =
            (sought.first(tx, self.offset().saturating_add(self.per_page)), sought.any(tx, MAX_COUNTED + 1));
        let end = self.offset().saturating_add(self.per_page);
        let from_texts = matches!(of_page, Way::Texts(_));
        if from_texts && sought.are_far(tx, ctx.account, layout.shape.name, self.order, end)? {
            return self.search_in_table(layout, tx, ctx, sought, of_total);
        }
        // Texts that were compared for the page are not compared again for the total.
        let goes_on = matches!((&of_page, &of_total), (Way::Texts(_), Way::Texts(_)));
        let selection = self.selection(layout, tx, ctx, Some(of_page));
        let (total, total_values) = limited(&self.selection(layout, tx, ctx, Some(of_total)), "1");
        let rest = goes_on.then(|| self.rest_statement(&selection));
        let (page, page_values) = self.page_by_id(layout, selection);
        Ok(Statements { page, page_values, total: counting(&total), total_values, counts: true, few: None, rest })
    }

    /// Returns the statements of a search in the order of the texts, whose first matches are far from its start: reading the table finds
    /// them. Of many matches it finds the first one, from which on the texts are compared in order; few are sorted.
    fn search_in_table(
        &self,
        layout: &Layout,
        tx: &mut Tx,
        ctx: &Ctx,
        sought: &Sought,
        of_total: Way,
    ) -> Result<Statements> {
        let (table, columns, order) = (layout.shape.table, &layout.sql.list_columns, self.order);
        let (Way::Texts(patterns) | Way::Index(_, patterns)) = sought.in_turn();
        let in_table = search::texts_in_table(tx, patterns.len());
        let mut texts = search::texts(tx, patterns.len(), Wanted::First);
        let mut values: Vec<Value<'static>> = vec![ctx.account.into(), layout.shape.name.into()];
        values.extend(patterns);
        let found = if sought.is_common(tx)? {
            // Ids are shorter than these, and none is empty.
            let (first, beyond, from) = if order == "desc" { ("max", "", "<=") } else { ("min", "~", ">=") };
            let first = format!("SELECT coalesce({first}(record_id), '{beyond}') {in_table}");
            let first = tx.first(&first, &values, |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
            values.push(first.unwrap_or_default().into());
            texts.push_str(&format!(" AND record_id {from} ${}", values.len()));
            format!("SELECT record_id {texts}")
        } else {
            texts.clone_from(&in_table);
            // The limit is never reached. With it, no index is read in the order of the page.
            format!("SELECT record_id FROM (SELECT record_id {in_table} LIMIT {NEVER_REACHED}) matches")
        };
        let (total, total_values) = match of_total {
            Way::Texts(_) => (format!("SELECT 1 {texts} LIMIT {}", MAX_COUNTED + 1), values.clone()),
            by_index @ Way::Index(..) => limited(&self.selection(layout, tx, ctx, Some(by_index)), "1"),
        };
        let limit = self.limit(&mut values);
        let page = format!(
            "SELECT {columns} FROM ({found} ORDER BY record_id {order} {limit}) found
             CROSS JOIN {table} WHERE {table}.account_id = $1 AND {table}.id = found.record_id ORDER BY {table}.id {order}"
        );
        let total = counting(&total);
        Ok(Statements { page, page_values: values, total, total_values, counts: true, few: None, rest: None })
    }

    /// Returns the statements of a search in another order. Of many matches, the first come soon in the order of the list, whose
    /// records are compared one by one; few are read and sorted.
    pub(super) fn search_in_other_order(&self, layout: &Layout, tx: &mut Tx, ctx: &Ctx, sought: &Sought) -> Statements {
        let way = sought.any(tx, MAX_COUNTED + 1);
        let (total, total_values) = limited(&self.selection(layout, tx, ctx, Some(way)), "record_id");
        let way = match sought.all(tx) {
            Way::Texts(_) => sought.few(tx, MOST_SORTED),
            by_index @ Way::Index(..) => by_index,
        };
        let mut found = self.selection(layout, tx, ctx, Some(way));
        // With a limit, which they do not reach, PostgreSQL finds them before it looks at the order.
        let few = format!("(SELECT record_id FROM {} LIMIT {MOST_SORTED}) found", found.only_found);
        found.from = format!("{few} CROSS JOIN {}", layout.shape.table);
        found.conditions = format!("{0}.account_id = $1 AND {0}.id = found.record_id", layout.shape.table);
        let few = Some(self.page_statement(layout, found, true));
        let in_turn = self.selection(layout, tx, ctx, Some(sought.in_turn()));
        let (page, page_values) = self.page_statement(layout, in_turn, true);
        Statements { page, page_values, total: remembering(&total), total_values, counts: true, few, rest: None }
    }

    /// Counts the matches of a search in another order, and chooses how the page is read.
    pub(super) fn choose_page(
        &self,
        layout: &Layout,
        tx: &mut Tx,
        ctx: &Ctx,
        statements: &mut Statements,
        of_few: (String, Vec<Value<'static>>),
    ) -> Result<i64> {
        let (total, ids) = first_of(tx, &statements.total, &statements.total_values)?;
        let place = self.offset().saturating_add(self.per_page);
        if total > 0 && total <= REMEMBERED {
            (statements.page, statements.page_values) = self.page_of(layout, tx, ctx, ids);
        } else if total <= place.saturating_mul(PART).min(MOST_SORTED) {
            (statements.page, statements.page_values) = of_few;
        }
        Ok(total)
    }

    /// Returns the statement for a page in the order of the texts.
    fn page_by_id(&self, layout: &Layout, selection: Selection) -> (String, Vec<Value<'static>>) {
        let Selection { texts, only_found, mut values, .. } = selection;
        let (table, columns, order) = (layout.shape.table, &layout.sql.list_columns, self.order);
        let limit = self.limit(&mut values);
        let matches = if texts.is_empty() { format!("FROM {only_found}") } else { texts };
        let page = format!(
            "SELECT {columns} FROM (SELECT record_id {matches} ORDER BY record_id {order} {limit}) found
             CROSS JOIN {table} WHERE {table}.account_id = $1 AND {table}.id = found.record_id ORDER BY {table}.id {order}"
        );
        (page, values)
    }

    /// Returns the statement for a page of the records with these ids.
    fn page_of(&self, layout: &Layout, tx: &Tx, ctx: &Ctx, ids: Vec<String>) -> (String, Vec<Value<'static>>) {
        let (table, columns) = (layout.shape.table, &layout.sql.list_columns);
        let mut values: Vec<Value<'static>> = vec![ctx.account.into()];
        let places = placed(&mut values, ids.into_iter().map(Value::from)).join(", ");
        let sorted = self.sorted(layout, &tx.dialect().by_no_index(table));
        let limit = self.limit(&mut values);
        let page = format!(
            "SELECT {columns} FROM {table} WHERE {table}.account_id = $1 AND {table}.id IN ({places}) {sorted} {limit}"
        );
        (page, values)
    }

    /// Returns the statement that counts what comes after the page.
    fn rest_statement(&self, selection: &Selection) -> (String, Vec<Value<'static>>) {
        let after = if self.order == "desc" { "<" } else { ">" };
        let place = selection.values.len() + 1;
        let rest = format!(
            "SELECT 1 {} AND record_id {after} ${place} ORDER BY record_id {} LIMIT ${}",
            selection.texts,
            self.order,
            place + 1
        );
        (counting(&rest), selection.values.clone())
    }
}

/// Returns the statement that counts what another one selects, and returns the first ids.
fn remembering(matches: &str) -> String {
    format!("SELECT record_id, count(*) OVER () FROM ({matches}) found LIMIT {REMEMBERED}")
}

/// Runs a statement of `remembering`.
fn first_of(tx: &mut Tx, sql: &str, values: &[Value]) -> Result<(i64, Vec<String>)> {
    let rows = tx.all(sql, values, |row| Ok::<_, Error>((row.int(1)?, row.text(0)?.to_string())))?;
    let total = rows.first().map_or(0, |(total, _)| *total);
    Ok((total, rows.into_iter().map(|(_, id)| id).collect()))
}

/// Returns the statement that selects up to [`MAX_COUNTED`] matches, and one more.
fn limited(selection: &Selection, what: &str) -> (String, Vec<Value<'static>>) {
    let matches = match selection.texts.is_empty() {
        true => format!("FROM {}", selection.only_found),
        // In order: a small account has less than the limit, and PostgreSQL would look for more among the texts of all accounts.
        false => format!("{} ORDER BY record_id", selection.texts),
    };
    (format!("SELECT {what} {matches} LIMIT {}", MAX_COUNTED + 1), selection.values.clone())
}

fn counting(matches: &str) -> String {
    format!("SELECT count(*) FROM ({matches}) found")
}

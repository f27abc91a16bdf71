//! The parameters of all lists: pages, sorting, filters, ranges and search, driven by the fields.

pub mod batch;
mod conditions;
mod doubts;
mod page;
pub mod sums;
mod texts;

use store::{Row, Tx, Value};

use crate::call::{Answer, Call, Outcome};
use crate::context::Ctx;
use crate::error::{FieldCode, FieldErrors, Result, Violation, violation};
use crate::record::{LIST, Layout, Record, parse_date};
use crate::records::{self, Work};
use crate::search::{self, MOST_SORTED, Sought, Wanted, Way};
use crate::text::not_allowed;
use conditions::{Condition, Filter, filter, ids};
use doubts::Doubt;
pub use page::Page;
use page::{MAX_PER_PAGE, PER_PAGE, Total, whole_from_one};

/// Maximum length of a list without pages.
const MAX_WHOLE: i64 = 10_000;
/// Maximum number of matches of a search that are counted.
pub const MAX_COUNTED: i64 = 10_000;
/// Maximum length of a search: longer than any name.
pub const MAX_SEARCH: usize = 255;

/// The parameters of every list.
pub const COMMON: &[(&str, &str)] = &[
    ("page", "The page number, starting at 1."),
    ("per_page", "Records per page: 25 by default, 100 at most."),
    ("sort", "The field to sort by: `created_at` by default."),
    ("order", "Ascending or descending; `desc` by default."),
    ("id", "One id, or several separated by commas."),
    ("created_from", "Created on or after this date (YYYY-MM-DD)."),
    ("created_to", "Created on or before this date (YYYY-MM-DD)."),
];

/// Returns the fields by which lists can be sorted.
pub fn sorts(layout: &Layout) -> Vec<&'static str> {
    let fields = layout.fields.iter().filter(|field| field.rules.sort).map(|field| field.name);
    fields.chain(["created_at", "id"]).collect()
}

/// `GET …` of a paginated list.
pub fn list<R: Record>(call: Call) -> Result<Work> {
    read_list::<R>(call, Form::Pages)
}

/// `GET …` of a short list without pages.
pub fn all<R: Record>(call: Call) -> Result<Work> {
    read_list::<R>(call, Form::Whole)
}

/// `GET …/{id}/…`: lists the records of `R` whose `field` refers to the record of `P` in the path, with pages.
pub fn belonging<P: Record, R: Record>(call: Call, field: &'static str) -> Result<Work> {
    let mut request = ListQuery::read(&R::layout(), &call, Form::Pages)?;
    request.conditions.push(Condition::Under(field, call.id().to_string().into()));
    Ok(Box::new(move |tx, ctx| {
        records::find::<P>(tx, ctx, call.id())?;
        request.run(&R::layout(), tx, ctx, write_row::<R>)
    }))
}

/// `GET …` of the records of `R` under all parents.
pub fn across<R: Record>(call: Call) -> Result<Work> {
    let request = ListQuery::across(&R::layout(), &call)?;
    Ok(Box::new(move |tx, ctx| request.run(&R::layout(), tx, ctx, write_row::<R>)))
}

/// `GET …` of a list with pages on request, otherwise without pages.
pub fn either<R: Record>(call: Call) -> Result<Work> {
    let in_pages = ["page", "per_page"].iter().any(|name| call.query.get(name).is_some());
    read_list::<R>(call, if in_pages { Form::Pages } else { Form::Newest })
}

fn read_list<R: Record>(call: Call, form: Form) -> Result<Work> {
    let request = ListQuery::read(&R::layout(), &call, form)?;
    Ok(Box::new(move |tx, ctx| {
        records::check_parent::<R>(tx, ctx, &call)?;
        request.run(&R::layout(), tx, ctx, write_row::<R>)
    }))
}

/// Writes a row of a list as the API shows it.
type WriteRow = fn(&Row, &Ctx, &mut Vec<u8>) -> store::Result<()>;

fn write_row<R: Record>(row: &Row, ctx: &Ctx, out: &mut Vec<u8>) -> store::Result<()> {
    R::from_list_row(row)?.write_json(LIST, ctx, out);
    Ok(())
}

/// The form of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// With pages.
    Pages,
    /// Without pages, in the order of the record.
    Whole,
    /// Without pages, newest first.
    Newest,
    /// All records in the order of their ids, batch by batch, without the assumed filters.
    Batch,
}

/// The parameters of a list request.
pub struct ListQuery {
    form: Form,
    page: i64,
    per_page: i64,
    sort: &'static str,
    order: &'static str,
    search: Option<String>,
    sums: Vec<&'static str>,
    conditions: Vec<Condition>,
    ignored: Vec<String>,
    doubts: Vec<Doubt>,
    strict: bool,
    /// Whether the filters are checked for the matches of the search, which are few, rather than the other way round.
    starts_from_texts: bool,
}

impl ListQuery {
    /// Parses the query.
    pub fn read(layout: &Layout, call: &Call, form: Form) -> Result<ListQuery> {
        let mut request = ListQuery::parse(layout, call, form)?;
        if let Some((_, parent)) = layout.parent() {
            request.conditions.push(Condition::Is(parent.name, call.id().to_string().into()));
        }
        Ok(request)
    }

    /// Parses the query of a list of records under all parents, with pages.
    pub fn across(layout: &Layout, call: &Call) -> Result<ListQuery> {
        ListQuery::parse(layout, call, Form::Pages)
    }

    fn parse(layout: &Layout, call: &Call, form: Form) -> Result<ListQuery> {
        let query = &call.query;
        let mut faults = FieldErrors::default();
        let (sort, order) = match form {
            Form::Pages | Form::Newest => ("created_at", "desc"),
            Form::Whole => (layout.shape.order, "asc"),
            Form::Batch => ("id", "asc"),
        };
        let mut request = ListQuery {
            form,
            page: 1,
            per_page: if form == Form::Pages { PER_PAGE } else { MAX_WHOLE },
            sort,
            order,
            search: None,
            sums: Vec::new(),
            conditions: Vec::new(),
            ignored: Vec::new(),
            doubts: Vec::new(),
            strict: call.strict,
            starts_from_texts: false,
        };
        for name in query.names() {
            let text = query.get(name).unwrap_or_default();
            let taken = request.take(layout, name, text);
            request.doubts.extend(taken.is_ok().then(|| Doubt::of(layout, name, text)).flatten());
            if faults.take(name, taken) == Some(false) {
                request.ignored.push(name.to_string());
            }
        }
        let assumes = form != Form::Batch;
        for field in layout.fields.iter().filter(|field| assumes && !field.rules.assumed.is_empty()) {
            if query.get(field.name).is_none() {
                let taken = request.take_field(layout, field.name, field.rules.assumed);
                faults.take(field.name, taken);
            }
        }
        if call.strict {
            call.refuse_unknown(&request.ignored, &parameters(layout, form), &mut faults);
        }
        faults.into_result()?;
        Ok(request)
    }

    /// Applies a parameter; returns whether it is known.
    fn take(&mut self, layout: &Layout, name: &str, text: &str) -> Result<bool, Violation> {
        match name {
            _ if self.form == Form::Whole => return self.take_field(layout, name, text),
            "page" | "per_page" | "sort" | "order" | "sums" if self.form == Form::Batch => return Ok(false),
            "page" => self.page = whole_from_one(text)?,
            "per_page" => self.per_page = whole_from_one(text)?.min(MAX_PER_PAGE),
            "sort" => self.sort = one_of(text, &sorts(layout))?,
            "order" => self.order = one_of(text, &["asc", "desc"])?,
            "search" if text.chars().count() > MAX_SEARCH => {
                return Err(violation(FieldCode::TooLong, format!("may have at most {MAX_SEARCH} characters")));
            }
            "search" if layout.is_searched() => {
                self.search = Some(text.trim().to_string()).filter(|words| !words.is_empty());
            }
            "sums" if !sums::names(layout).is_empty() => self.sums = sums::read(layout, text)?,
            "id" => self.conditions.push(Condition::In(ids(text)?)),
            "created_from" => self.conditions.push(Condition::From(parse_date(text)?)),
            "created_to" => self.conditions.push(Condition::Until(parse_date(text)?)),
            _ => return self.take_field(layout, name, text),
        }
        Ok(true)
    }

    fn take_field(&mut self, layout: &Layout, name: &str, text: &str) -> Result<bool, Violation> {
        match filter(layout.fields, name, text)? {
            Filter::By(condition) => self.conditions.push(condition),
            Filter::Anything => {}
            Filter::Unknown => return Ok(false),
        }
        Ok(true)
    }

    fn run(&self, layout: &Layout, tx: &mut Tx, ctx: &Ctx, write: WriteRow) -> Result<Answer> {
        let warnings = doubts::warnings(layout.shape.table, tx, ctx, &self.doubts, self.strict)?;
        if let Some(same) = self.by_few_texts(layout, tx, ctx)? {
            return Ok(same.run(layout, tx, ctx, write)?.with_texts("warnings", &warnings));
        }
        let mut statements = self.statements(layout, tx, ctx)?;
        let mut known_total = None;
        if let Some(few) = statements.few.take() {
            known_total = Some(self.choose_page(layout, tx, ctx, &mut statements, few)?);
        }
        let (mut rows, mut last) = (0, String::new());
        let mut data = Vec::with_capacity(256 * self.per_page.min(MAX_PER_PAGE).unsigned_abs() as usize);
        data.push(b'[');
        let is_empty = known_total.is_some_and(|total| total <= self.offset().min(MAX_COUNTED));
        if !is_empty {
            tx.each(&statements.page, &statements.page_values, |row| {
                if data.len() > 1 {
                    data.push(b',');
                }
                write(row, ctx, &mut data)?;
                if !statements.counts && rows == 0 {
                    known_total = Some(row.int(layout.sql.list_width())?);
                }
                rows += 1;
                if rows == self.per_page && statements.rest.is_some() {
                    last = row.text(0)?.to_string();
                }
                ctx.fits(data.len())
            })?;
        }
        data.push(b']');
        // A page that is not full is the last one, so the total follows without another query.
        let is_last = statements.counts && rows < self.per_page && (rows > 0 || self.page == 1);
        let total = match (known_total, statements.rest) {
            _ if is_last => self.offset() + rows,
            (Some(total), _) => total,
            (None, Some((rest, mut values))) if !last.is_empty() => {
                let seen = self.offset() + rows;
                values.extend([last.into(), (MAX_COUNTED + 1 - seen).max(0).into()]);
                seen + tx.int(&rest, &values)?
            }
            _ => tx.int(&statements.total, &statements.total_values)?,
        };
        let counted = match self.search.is_some() && total > MAX_COUNTED && !is_last {
            true => Total::AtLeast(MAX_COUNTED),
            false => Total::Exactly(total),
        };
        let mut answer = self.answer(data, rows, counted);
        if !self.sums.is_empty() {
            let limit = if self.search.is_some() { MAX_COUNTED } else { sums::MAX_RECORDS };
            let is_known = self.search.is_some() || !statements.counts;
            let member = match is_known && total > limit {
                true => sums::too_many(limit),
                false => self.sum(layout, tx, ctx)?,
            };
            answer.meta.push(member);
        }
        Ok(answer.with_texts("warnings", &warnings))
    }

    /// Returns the member with the sums.
    fn sum(&self, layout: &Layout, tx: &mut Tx, ctx: &Ctx) -> Result<String> {
        let way = self.sought(layout, tx, ctx)?.map(|sought| self.way(tx, &sought));
        let Selection { from, conditions, values, .. } = self.selection(layout, tx, ctx, way);
        sums::member(layout, tx, &self.sums, &from, &conditions, &values)
    }

    fn offset(&self) -> i64 {
        self.place().offset()
    }

    fn place(&self) -> Page {
        Page { page: self.page, per_page: self.per_page, ignored: self.ignored.clone() }
    }

    fn answer(&self, data: Vec<u8>, rows: i64, total: Total) -> Answer {
        if self.form != Form::Pages {
            let mut answer = Answer::data(Outcome::Done, data);
            answer.meta = vec![total.member()];
            return answer.with_texts("ignored_params", &self.ignored);
        }
        self.place().answer_of(data, rows, total)
    }

    fn sought(&self, layout: &Layout, tx: &mut Tx, ctx: &Ctx) -> Result<Option<Sought>> {
        let words = self.search.as_ref();
        words.map(|words| Sought::of(tx, ctx.account, layout.shape.name, words)).transpose()
    }

    /// Returns the two statements of a list. Public for the tests of their plans.
    pub fn statements(&self, layout: &Layout, tx: &mut Tx, ctx: &Ctx) -> Result<Statements> {
        let sought = self.sought(layout, tx, ctx)?;
        match sought {
            Some(sought) if self.conditions.is_empty() && self.is_by_id(layout) => {
                self.search_by_id(layout, tx, ctx, &sought)
            }
            Some(sought) if self.conditions.is_empty() && !sought.finds_at_most(MOST_SORTED) => {
                Ok(self.search_in_other_order(layout, tx, ctx, &sought))
            }
            sought => {
                let way = sought.map(|sought| self.way(tx, &sought));
                let selection = self.selection(layout, tx, ctx, way);
                let counts = selection.values.len() > 1 || !self.conditions.is_empty();
                let (total, total_values) = self.total_statement(layout, &selection, counts);
                let (page, page_values) = self.page_statement(layout, selection, counts);
                Ok(Statements { page, page_values, total, total_values, counts, few: None, rest: None })
            }
        }
    }

    /// Returns the tables and conditions of the list, with a way to find the words of a search.
    fn selection(&self, layout: &Layout, tx: &mut Tx, ctx: &Ctx, way: Option<Way>) -> Selection {
        let table = layout.shape.table;
        let mut values: Vec<Value<'static>> = vec![ctx.account.into()];
        let mut from = table.to_string();
        let mut only_found = String::new();
        let mut conditions = format!("{table}.account_id = $1");
        let mut texts = String::new();
        let by_index = matches!(way, Some(Way::Index(..)));
        if let Some(way) = way {
            values.push(layout.shape.name.into());
            match way {
                Way::Index(found, wanted) => {
                    values.extend(wanted);
                    only_found = format!("({found}) found");
                    // CROSS JOIN keeps SQLite from scanning the whole sort index for a few matches.
                    from = format!("{only_found} CROSS JOIN {table}");
                    conditions.push_str(&format!(" AND {table}.id = found.record_id"));
                }
                Way::Texts(patterns) => {
                    texts = search::texts(tx, patterns.len(), Wanted::First);
                    only_found = format!("(SELECT record_id {}) found", search::texts(tx, patterns.len(), Wanted::All));
                    conditions.push_str(&format!(" AND {}", search::has_words(tx, table, patterns.len())));
                    values.extend(patterns);
                }
            }
        }
        // Few records belong to one parent or share an address: that condition chooses the index, and the others are checked
        // per row.
        let aside = tx.dialect().by_no_index(table);
        let belongs = |condition: &Condition| matches!(condition, Condition::Of(..) | Condition::Under(..));
        let shares = |condition: &Condition| matches!(condition, Condition::Folded(..));
        let under_one = self.conditions.iter().any(belongs);
        let narrow = under_one || self.conditions.iter().any(shares);
        let mut several = Vec::new();
        for condition in &self.conditions {
            if let (Condition::Among(column, wanted), false) = (condition, narrow) {
                several = (1..=wanted.len()).map(|n| format!("{table}.\"{column}\" = ${}", values.len() + n)).collect();
            }
            let chooses = !narrow
                || belongs(condition)
                || !under_one && shares(condition)
                || matches!(condition, Condition::In(_));
            let table = if chooses { table } else { &aside };
            conditions.push_str(" AND ");
            conditions.push_str(&condition.sql(table, ctx, &mut values));
        }
        // Otherwise, the index of few records is chosen: by another one, SQLite would look through all records of the account.
        let has_ids = self.conditions.iter().any(|one| matches!(one, Condition::In(_) | Condition::One(..)));
        let few = self.conditions.iter().find_map(|condition| match condition {
            Condition::When(_, index) if !index.is_empty() && !narrow && !has_ids && !by_index => Some(index),
            _ => None,
        });
        if let Some(index) = few {
            from = format!("{table}{}", tx.dialect().indexed_by(&format!("{table}_{index}")));
            several.clear();
        }
        // The indexes of narrow fields continue with the creation time.
        let sort_by = if !narrow || self.sort == "created_at" { table.to_string() } else { aside };
        Selection { from, only_found, texts, conditions, values, several, sort_by, is_few: few.is_some() }
    }

    /// Returns the statement for the total: a count, or the stored number.
    fn total_statement(&self, layout: &Layout, selection: &Selection, counts: bool) -> (String, Vec<Value<'static>>) {
        let Selection { from, only_found, conditions, .. } = selection;
        let mut values = selection.values.clone();
        let total = if !counts {
            values.push(layout.shape.name.into());
            "SELECT total FROM record_counts WHERE account_id = $1 AND kind = $2".to_string()
        } else if self.search.is_none() {
            format!("SELECT count(*) FROM {from} WHERE {conditions}")
        } else {
            // Each search text has one record, so the records need not be read to count them.
            let matches = match self.conditions.is_empty() {
                true => only_found.clone(),
                false => format!("{from} WHERE {conditions}"),
            };
            format!("SELECT count(*) FROM (SELECT 1 FROM {matches} LIMIT {}) found", MAX_COUNTED + 1)
        };
        (total, values)
    }

    /// How the page is sorted, by columns of `table`.
    fn sorted(&self, layout: &Layout, table: &str) -> String {
        let is_unique = |name: &str| layout.fields.iter().any(|field| field.name == name && field.rules.is_unique());
        let filters =
            |condition: &Condition| !matches!(condition, Condition::In(_) | Condition::From(_) | Condition::Until(_));
        let order = self.order;
        if self.conditions.iter().any(|condition| matches!(condition, Condition::One(..))) {
            // There is one at most. The databases need not look for it in the order of another index.
            return String::new();
        }
        match self.sort {
            "created_at" if layout.shape.created_by_id && self.conditions.iter().any(filters) => {
                format!("ORDER BY {table}.id {order}")
            }
            sort if sort == "id" || is_unique(sort) => format!("ORDER BY {table}.\"{sort}\" {order}"),
            sort => format!("ORDER BY {table}.\"{sort}\" {order}, {}.id {order}", layout.shape.table),
        }
    }

    /// Returns the statement for the records of the page. A stored total comes with each of them, which saves a statement.
    fn page_statement(&self, layout: &Layout, selection: Selection, counts: bool) -> (String, Vec<Value<'static>>) {
        let Selection { from, conditions, mut values, several, sort_by, is_few, .. } = selection;
        let (table, columns, order) = (layout.shape.table, &layout.sql.list_columns, self.order);
        let sorted = self.sorted(layout, &sort_by);
        let merges = several.len() > 1 && self.sort == "created_at";
        let until = values.len() + 1;
        if merges {
            values.push(self.offset().saturating_add(self.per_page).into());
        }
        let limited = self.limit(&mut values);
        let part = format!("WHERE {conditions} {sorted} {limited}");
        let ranges = self.conditions.iter().any(|condition| matches!(condition, Condition::Range(..)));
        let found = if merges {
            // Each value has its own range of the index, in the order of the list; the candidates of each are merged.
            let of_each = several.iter().enumerate().map(|(n, one)| {
                format!(
                    "SELECT * FROM (SELECT {table}.id AS record_id, {table}.created_at AS moment FROM {from}
                     WHERE {conditions} AND {one} {sorted} LIMIT ${until}) part{n}"
                )
            });
            let of_each: Vec<String> = of_each.collect();
            let first = if layout.shape.created_by_id { String::new() } else { format!("moment {order}, ") };
            Some(format!(
                "SELECT record_id FROM ({}) parts ORDER BY {first}record_id {order} {limited}",
                of_each.join(" UNION ALL ")
            ))
        } else if is_few || ranges && self.sort == "created_at" {
            // It can be large: it is sorted by columns of the index, and only the page is read from the table.
            Some(format!("SELECT {table}.id AS record_id FROM {from} {part}"))
        } else {
            None
        };
        let page = match found {
            Some(found) => format!(
                "SELECT {columns} FROM ({found}) found
                 CROSS JOIN {table} WHERE {table}.account_id = $1 AND {table}.id = found.record_id {sorted}"
            ),
            None if counts => format!("SELECT {columns} FROM {from} {part}"),
            None => format!(
                "SELECT {columns}, coalesce((SELECT total FROM record_counts WHERE account_id = $1 AND kind = '{}'), 0)
                 FROM {from} {part}",
                layout.shape.name
            ),
        };
        (page, values)
    }

    /// Returns the LIMIT and OFFSET of the page. Those of the default page are literals: PostgreSQL assumes that a LIMIT in a
    /// placeholder returns a tenth of the rows, and would plan the statement each time.
    fn limit(&self, values: &mut Vec<Value<'static>>) -> String {
        if self.per_page == PER_PAGE && self.offset() == 0 && self.search.is_none() {
            return format!("LIMIT {PER_PAGE}");
        }
        values.extend([self.per_page.into(), self.offset().into()]);
        format!("LIMIT ${} OFFSET ${}", values.len() - 1, values.len())
    }
}

/// What both statements of a list select from.
#[derive(Clone)]
struct Selection {
    /// The table, after the results of a search.
    from: String,
    /// The results of a search; empty without one.
    only_found: String,
    /// The texts that are compared with the words of a search: `FROM … WHERE …`; empty without a search, and with one that the
    /// index serves.
    texts: String,
    /// The conditions, as SQL.
    conditions: String,
    /// The values of the conditions and of `only_found`.
    values: Vec<Value<'static>>,
    /// A condition for each value of a filter with several values.
    several: Vec<String>,
    /// The table in `ORDER BY`: written as it is, or so that no index is used for the order.
    sort_by: String,
    /// Whether they are found by an index of few records.
    is_few: bool,
}

/// The two statements of a list.
pub struct Statements {
    /// The statement for the records of the page.
    pub page: String,
    /// Its values.
    pub page_values: Vec<Value<'static>>,
    /// The statement for the total.
    pub total: String,
    /// Its values.
    pub total_values: Vec<Value<'static>>,
    /// Whether it counts rows, rather than reading a stored number.
    pub counts: bool,
    /// For a search that is not in the order of the texts: the statement for the total selects ids, and what it finds decides
    /// how the page is read. This is the page of few, which are sorted.
    few: Option<(String, Vec<Value<'static>>)>,
    /// Counts what comes after a full page, from an id on that is the last value but one, up to a number that is the last.
    rest: Option<(String, Vec<Value<'static>>)>,
}

fn one_of(text: &str, allowed: &[&'static str]) -> Result<&'static str, Violation> {
    let found = allowed.iter().find(|allowed| **allowed == text).copied();
    found.ok_or_else(|| not_allowed(text, allowed))
}

/// Returns the parameters that lists of a kind of record have.
fn parameters(layout: &Layout, form: Form) -> Vec<&'static str> {
    let mut names = Vec::new();
    if form == Form::Batch {
        names.extend(["id", "created_from", "created_to"]);
        names.extend(layout.is_searched().then_some("search"));
    }
    if matches!(form, Form::Pages | Form::Newest) {
        names.extend(COMMON.iter().map(|(name, _)| *name));
        names.extend(layout.is_searched().then_some("search"));
        names.extend((!sums::names(layout).is_empty()).then_some("sums"));
    }
    for field in layout.fields {
        let rules = &field.rules;
        names.extend(rules.filter.then_some(field.name));
        let others = [rules.filter_as, rules.filter_also, rules.filter_filled, rules.filter_when.parameter];
        names.extend(others.into_iter().filter(|name| !name.is_empty()));
        names.extend(rules.range.into_iter().flat_map(|(from, to)| [from, to]));
    }
    names
}

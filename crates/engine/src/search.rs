//! Full-text search: ignores case and accents, matches inside words, and uses a trigram index on both databases.

mod pieces;

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use store::{Gathered, Merge, Migration, Row, Store, Tx, Value, like_all, placed};

use crate::accounts::SHARED;
use crate::app::App;
use crate::context::Ctx;
use crate::error::{Error, Result};
use crate::loops::{self, Poll};
use crate::record::{AnyRecord, Layout, search_text};
use crate::text::fold;
use pieces::{Asked, Sizes};

/// The tables behind searches.
pub const MIGRATION: Migration = Migration {
    number: 2,
    name: "search",
    sql: "
-- sqlite
CREATE TABLE search_texts (
    number INTEGER PRIMARY KEY,
    account_id INTEGER NOT NULL REFERENCES accounts (id),
    kind TEXT NOT NULL,
    record_id TEXT NOT NULL,
    folded TEXT NOT NULL,
    pending INTEGER NOT NULL DEFAULT 1 CHECK (pending IN (0, 1))
) STRICT;
CREATE VIRTUAL TABLE search_index USING fts5 (
    folded, content = 'search_texts', content_rowid = 'number', tokenize = 'trigram', detail = 'none', columnsize = 0
);
CREATE TRIGGER search_indexed AFTER UPDATE OF pending ON search_texts WHEN old.pending = 1 AND new.pending = 0 BEGIN
    INSERT INTO search_index (rowid, folded) VALUES (new.number, new.folded);
END;
CREATE TRIGGER search_changed AFTER UPDATE OF folded ON search_texts WHEN old.pending = 0 BEGIN
    INSERT INTO search_index (search_index, rowid, folded) VALUES ('delete', old.number, old.folded);
    UPDATE search_texts SET pending = 1 WHERE number = new.number;
END;
CREATE TRIGGER search_removed AFTER DELETE ON search_texts WHEN old.pending = 0 BEGIN
    INSERT INTO search_index (search_index, rowid, folded) VALUES ('delete', old.number, old.folded);
END;
-- SQLite would merge parts of its index in the transaction that adds to it, up to some hundred pages at a time.
INSERT INTO search_index (search_index, rank) VALUES ('automerge', 0);
-- postgres
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE TABLE search_texts (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    kind TEXT NOT NULL,
    record_id TEXT NOT NULL,
    folded TEXT NOT NULL,
    pending BIGINT NOT NULL DEFAULT 0
);
-- Every search looks through what waits for the index (in kB); 4 MB of it would take most of the time.
CREATE INDEX search_index ON search_texts USING gin (folded gin_trgm_ops) WITH (gin_pending_list_limit = 512);
-- both
CREATE UNIQUE INDEX search_texts_record ON search_texts (account_id, kind, record_id);
-- A search looks through the pending texts of its own account.
CREATE INDEX search_texts_pending ON search_texts (account_id, number) WHERE pending = 1;
-- In how many texts of a sample of all accounts a piece of three letters is; '' has the size of the sample.
CREATE TABLE search_pieces (
    piece TEXT NOT NULL PRIMARY KEY,
    texts BIGINT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO search_pieces (piece, texts) VALUES ('', 0);
",
};

/// How the records of a kind that have some words are found.
pub enum Way {
    /// By a `SELECT` of their ids, which asks the index, and its values from $3 on.
    Index(String, Vec<Value<'static>>),
    /// By comparing the texts of the account with patterns, the values from $3 on: the index has nothing for less than three
    /// letters, and is slower where it has more texts than the account.
    Texts(Vec<Value<'static>>),
}

/// A search in the records of a kind, with what the sample says of its words. $1 of the statements is the account, $2 the name of
/// the record.
pub struct Sought {
    parts: Parts,
    /// None for words that the index does not have.
    asked: Option<Asked>,
    sizes: Sizes,
}

impl Sought {
    /// Looks up the words in the sample.
    pub fn of(tx: &mut Tx, account: i64, kind: &'static str, words: &str) -> Result<Sought> {
        let parts = Parts::of(words);
        let asked = match parts.are_short() {
            true => None,
            false => Some(pieces::to_ask_for(tx, account, &[kind], parts.longest())?),
        };
        let sizes = match &asked {
            Some(asked) => asked.sizes,
            None => pieces::sizes(tx, account, &[kind])?,
        };
        Ok(Sought { parts, asked, sizes })
    }

    /// Returns how to find all records that have the words.
    pub fn all(&self, tx: &Tx) -> Way {
        self.way(tx, Asked::is_faster)
    }

    /// Returns how to find `most` of them, in any order.
    pub fn any(&self, tx: &Tx, most: i64) -> Way {
        self.way(tx, |asked| asked.is_faster_for_any(most.unsigned_abs()))
    }

    /// Returns how to find the first `count` of them, by their ids.
    pub fn first(&self, tx: &Tx, count: i64) -> Way {
        self.way(tx, |asked| asked.is_faster_for_first(count.unsigned_abs()))
    }

    /// Returns how to find them by comparing the texts, if at most this many have the words.
    pub fn few(&self, tx: &Tx, most: i64) -> Way {
        let found = texts(tx, self.parts.0.len(), Wanted::First);
        Way::Index(format!("SELECT record_id {found} ORDER BY record_id LIMIT {most}"), self.parts.patterns())
    }

    /// Whether the first `count` of them are far from the start of the list, so that reading the table is faster than comparing the
    /// texts in that order.
    pub fn are_far(&self, tx: &mut Tx, account: i64, kind: &'static str, order: &str, count: i64) -> Result<bool> {
        if !self.sizes.are_most() || count > WINDOW / 2 {
            return Ok(false);
        }
        let parts = self.parts.0.len();
        let sql = format!(
            "SELECT count(*) FROM (SELECT 1 FROM ({}) latest WHERE {} LIMIT ${}) found",
            first_texts(tx, 2, order),
            like_all("folded", 3, parts),
            parts + 3
        );
        let mut values: Vec<Value> = vec![account.into(), kind.into()];
        values.extend(self.parts.patterns());
        values.push(count.into());
        Ok(tx.int(&sql, &values)? < count)
    }

    /// Whether more texts seem to have the words than are worth sorting.
    pub fn is_common(&self, tx: &mut Tx) -> Result<bool> {
        let most = match &self.asked {
            Some(asked) => asked.most,
            None => pieces::starting_with(tx, self.parts.longest())?,
        };
        Ok(most > MOST_SORTED.unsigned_abs())
    }

    /// Whether to read the table to find all of them.
    pub fn in_table(&self) -> bool {
        self.sizes.are_most()
    }

    /// Returns how to find them among records that are read in the order of a list.
    pub fn in_turn(&self) -> Way {
        Way::Texts(self.parts.patterns())
    }

    /// Whether the index finds all records that have the words, and at most this many of them.
    pub fn finds_at_most(&self, most: i64) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked.is_faster() && asked.most <= most.unsigned_abs())
    }

    fn way(&self, tx: &Tx, is_faster: impl Fn(&Asked) -> bool) -> Way {
        match self.asked.as_ref().filter(|asked| is_faster(asked)) {
            Some(asked) => {
                let (sql, values) = by_index(tx, 1, &self.parts, asked);
                Way::Index(sql, values)
            }
            None => Way::Texts(self.parts.patterns()),
        }
    }
}

/// Which of the texts an account's search wants: PostgreSQL cannot estimate how many match, so the condition tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The first that match, in order: most do, so it reads them in this order, and stops.
    First,
    /// All that match, which are few.
    All,
}

/// A condition on the text of a row that has `parts` patterns, with values from `first` on. Neither database asks the index of
/// trigrams for it.
fn compared(first: usize, parts: usize, wanted: Wanted) -> String {
    let holds = if wanted == Wanted::First { "<> 0" } else { "= 1" };
    format!("CASE WHEN {} THEN 1 ELSE 0 END {holds}", like_all("folded", first, parts))
}

/// `FROM … WHERE …` of the texts of an account, by their records, that have `parts` patterns; the kind is at `kind`, the patterns
/// are at $3 and further.
fn texts_of(tx: &Tx, kind: usize, parts: usize, wanted: Wanted) -> String {
    let index = tx.dialect().indexed_by("search_texts_record");
    format!("FROM search_texts{index} WHERE account_id = $1 AND kind = ${kind} AND {}", compared(3, parts, wanted))
}

/// Returns `FROM … WHERE …` of the texts that [`Way::Texts`] finds.
pub fn texts(tx: &Tx, parts: usize, wanted: Wanted) -> String {
    texts_of(tx, 2, parts, wanted)
}

/// As [`texts`], in the order of the table, where most texts are of the account: its pages are read one after the other, instead of
/// one for each text.
pub fn texts_in_table(tx: &Tx, parts: usize) -> String {
    let table = tx.dialect().by_no_index("search_texts");
    let holds = compared(3, parts, Wanted::All);
    format!("FROM search_texts WHERE {table}.account_id = $1 AND {table}.kind = $2 AND {holds}")
}

/// The first texts of an account, in an order of their records; the kind is at `kind`.
fn first_texts(tx: &Tx, kind: usize, order: &str) -> String {
    let index = tx.dialect().indexed_by("search_texts_record");
    format!(
        "SELECT kind, record_id, folded FROM search_texts{index} WHERE account_id = $1 AND kind = ${kind}
         ORDER BY record_id {order} LIMIT {WINDOW}"
    )
}

/// Of so many matches, all are sorted; more never are.
pub const MOST_SORTED: i64 = 5_000;
/// How many texts are compared first, in the order of a list, before the table is read: a millisecond or two.
const WINDOW: i64 = 4_000;

/// Returns the condition that a record of `table` has the patterns of [`Way::Texts`].
pub fn has_words(tx: &Tx, table: &str, parts: usize) -> String {
    let index = tx.dialect().indexed_by("search_texts_record");
    // A count, not EXISTS: of that, the databases might make a join that reads all texts.
    format!(
        "(SELECT count(*) FROM search_texts{index} WHERE account_id = $1 AND kind = $2 AND record_id = {table}.id AND {}) > 0",
        compared(3, parts, Wanted::First)
    )
}

/// The shortest text that the index can look up.
const TRIGRAM: usize = 3;
/// A list of more parts is searched for as it is: few statements have to be prepared.
const MAX_PARTS: usize = 4;

/// What is searched for, folded, the longest part first. People write names as in a register, "Vries, Karin": what commas
/// separate may be in any order, and in different fields.
struct Parts(Vec<String>);

impl Parts {
    fn of(words: &str) -> Parts {
        let folded = fold(words);
        let is_digit = |c: char| c.is_ascii_digit();
        let mut parts: Vec<String> = Vec::new();
        for part in folded.split(',') {
            // A comma in a number separates nothing.
            match parts.last_mut().filter(|before| before.ends_with(is_digit) && part.starts_with(is_digit)) {
                Some(number) => {
                    number.push(',');
                    number.push_str(part);
                }
                None => parts.push(part.to_string()),
            }
        }
        let mut parts: Vec<String> = parts.iter().map(|part| part.trim().to_string()).collect();
        parts.retain(|part| !part.is_empty());
        if parts.is_empty() || parts.len() > MAX_PARTS {
            return Parts(vec![folded]);
        }
        parts.sort_by_key(|part| Reverse(part.chars().count()));
        Parts(parts)
    }

    /// The one that the index is asked for.
    fn longest(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    fn are_short(&self) -> bool {
        self.longest().chars().count() < TRIGRAM
    }

    fn patterns(&self) -> Vec<Value<'static>> {
        self.0.iter().map(|part| format!("%{part}%").into()).collect()
    }
}

/// Returns the statement that finds texts of some kinds by the index, and its values after the account and the kinds.
fn by_index(tx: &Tx, kinds: usize, parts: &Parts, asked: &Asked) -> (String, Vec<Value<'static>>) {
    let (sql, values) = tx.dialect().search(kinds, parts.0.len(), &asked.pieces, asked.found);
    (sql, parts.patterns().into_iter().chain(values.map(Value::from)).collect())
}

/// How many of the latest records of a kind are compared with one or two letters.
pub const LATEST: i64 = 500;

/// Returns the kind and id of up to `most` records of each of these kinds that contain `words`, the newest first.
/// One or two letters are not in the index: they are compared with the [`LATEST`] records of each kind.
pub fn among_kinds(
    tx: &mut Tx,
    ctx: &Ctx,
    kinds: &[&'static str],
    words: &str,
    most: i64,
) -> Result<Vec<(String, String)>> {
    let parts = Parts::of(words);
    let named = |row: &Row| Ok::<_, Error>((row.text(0)?.to_string(), row.text(1)?.to_string()));
    if kinds.is_empty() {
        return Ok(Vec::new());
    }
    if parts.are_short() {
        let (all, count) = (like_all("folded", 3, parts.0.len()), parts.0.len() + 3);
        let sql = format!(
            "SELECT kind, record_id FROM (SELECT kind, record_id, folded FROM search_texts
             WHERE account_id = $1 AND kind = $2 ORDER BY record_id DESC LIMIT {LATEST}) latest
             WHERE {all} ORDER BY record_id DESC LIMIT ${count}"
        );
        let mut found = Vec::new();
        for kind in kinds {
            let mut values: Vec<Value> = vec![ctx.account.into(), (*kind).into()];
            values.extend(parts.patterns());
            values.push(most.into());
            found.extend(tx.all(&sql, &values, named)?);
        }
        return Ok(found);
    }
    let asked = pieces::to_ask_for(tx, ctx.account, kinds, parts.longest())?;
    if !asked.is_faster() && asked.sizes.are_most() {
        return newest_of_most(tx, ctx, kinds, &parts, most);
    }
    if !asked.is_faster() {
        let (sql, values) = newest_by_texts(tx, ctx, kinds, &parts, most);
        return tx.all(&sql, &values, named);
    }
    let (found, asked) = by_index(tx, kinds.len(), &parts, &asked);
    let mut values: Vec<Value> = vec![ctx.account.into()];
    values.extend(kinds.iter().map(|kind| Value::from(*kind)));
    values.extend(asked);
    values.push(most.into());
    let sql = format!(
        "SELECT kind, record_id FROM (SELECT kind, record_id, row_number() OVER (PARTITION BY kind ORDER BY record_id DESC) AS place
         FROM ({found}) found) ranked WHERE place <= ${} ORDER BY kind, record_id DESC",
        values.len()
    );
    tx.all(&sql, &values, named)
}

/// Returns the statement for the newest records of each kind, which compares the texts of the account from the newest on.
fn newest_by_texts(
    tx: &Tx,
    ctx: &Ctx,
    kinds: &[&'static str],
    parts: &Parts,
    most: i64,
) -> (String, Vec<Value<'static>>) {
    let (mut values, mut selects): (Vec<Value>, Vec<String>) = (vec![ctx.account.into()], Vec::new());
    let limit = parts.0.len() + 3;
    for kind in kinds {
        values.push((*kind).into());
        let texts = texts_of(tx, values.len(), parts.0.len(), Wanted::First);
        if selects.is_empty() {
            values.extend(parts.patterns());
            values.push(most.into());
        }
        selects.push(format!(
            "SELECT * FROM (SELECT kind, record_id {texts} ORDER BY record_id DESC LIMIT ${limit}) newest{}",
            selects.len()
        ));
    }
    (selects.join(" UNION ALL "), values)
}

/// Returns the newest records of each kind for an account that has most of the texts: among its newest texts, or else from the newest
/// match on, which is found by reading the table.
fn newest_of_most(
    tx: &mut Tx,
    ctx: &Ctx,
    kinds: &[&'static str],
    parts: &Parts,
    most: i64,
) -> Result<Vec<(String, String)>> {
    let named = |row: &Row| Ok::<_, Error>((row.text(0)?.to_string(), row.text(1)?.to_string()));
    let all = like_all("folded", 3, parts.0.len());
    let first = format!(
        "SELECT kind, record_id FROM ({}) latest WHERE {all} ORDER BY record_id DESC LIMIT ${}",
        first_texts(tx, 2, "DESC"),
        parts.0.len() + 3
    );
    let (mut found, mut left) = (Vec::new(), Vec::new());
    for kind in kinds {
        let of_kind = |last: Value<'static>| {
            let values = [Value::from(ctx.account), (*kind).into()].into_iter();
            values.chain(parts.patterns()).chain([last]).collect::<Vec<Value>>()
        };
        let newest = tx.all(&first, &of_kind(most.into()), named)?;
        let is_full = newest.len() as u64 >= most.unsigned_abs();
        if is_full || pieces::sizes(tx, ctx.account, &[kind])?.own <= WINDOW.unsigned_abs() {
            found.extend(newest);
        } else {
            left.push(*kind);
        }
    }
    if left.is_empty() {
        return Ok(found);
    }
    let table = tx.dialect().by_no_index("search_texts");
    let mut values: Vec<Value> = vec![ctx.account.into()];
    let places = placed(&mut values, left.iter().map(|kind| Value::from(*kind))).join(", ");
    let holds = compared(values.len() + 1, parts.0.len(), Wanted::All);
    values.extend(parts.patterns());
    let sql = format!(
        "SELECT kind, max(record_id) FROM search_texts
         WHERE {table}.account_id = $1 AND {table}.kind IN ({places}) AND {holds} GROUP BY kind"
    );
    for (kind, newest) in tx.all(&sql, &values, named)? {
        let texts = texts_of(tx, 2, parts.0.len(), Wanted::First);
        let place = parts.0.len() + 3;
        let sql = format!(
            "SELECT kind, record_id {texts} AND record_id <= ${place} ORDER BY record_id DESC LIMIT ${}",
            place + 1
        );
        let values = [Value::from(ctx.account), kind.into()].into_iter().chain(parts.patterns());
        let values: Vec<Value> = values.chain([newest.into(), most.into()]).collect();
        found.extend(tx.all(&sql, &values, named)?);
    }
    Ok(found)
}

/// Number of pending texts at which they are added to the index.
const MAX_TEXTS: i64 = 256;
/// Maximum number of texts to add at a time, and of their characters together: some milliseconds of the writer.
const CHUNK: i64 = 1000;
const MAX_CHARACTERS: i64 = 32 * 1024;
/// Number of pages of the index to merge at a time: some milliseconds of the writer as well.
const MERGED: i64 = 16;

/// How often pending texts are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Starts to tidy the index, until the process ends.
pub fn start(app: &Arc<App>) {
    loops::keep(app, "search", loops::STALL_TIMEOUT, |app, pulse| async move {
        let mut poll = Poll::every(POLL_INTERVAL);
        loop {
            poll.wait(&pulse).await;
            let own = app.clone();
            let tidied = tokio::task::spawn_blocking(move || tidy(&own.store)).await;
            let tidied = tidied.unwrap_or_else(|panic| Err(Error::internal(panic.to_string())));
            poll.turned(tidied, "Cannot update the search index at the moment.");
        }
    });
}

/// Adds pending texts to the index, if there are enough, and new ones to the sample; returns whether there may be more.
pub fn tidy(store: &Store) -> Result<bool> {
    let (waiting, unsampled) = store.read_now(|tx| {
        // Counts only up to the limit: after an import a million may be pending.
        let index = tx.dialect().indexed_by("search_texts_pending");
        let waiting =
            format!("SELECT count(*) FROM (SELECT 1 FROM search_texts{index} WHERE pending = 1 LIMIT $1) waiting");
        Ok::<_, Error>((tx.int(&waiting, &[(CHUNK + 1).into()])?, pieces::unsampled(tx)?))
    })?;
    if waiting < MAX_TEXTS && unsampled < CHUNK {
        return Ok(false);
    }
    let adding = if waiting < MAX_TEXTS { 0 } else { CHUNK };
    let added = store.write_now(SHARED, move |tx| {
        pieces::sample(tx)?;
        add_pending(tx, adding)
    })?;
    if added > 0 {
        while store.write_now(SHARED, |tx| tx.merge_index("search_index", MERGED))? {}
    }
    Ok(added > 0 && waiting > added || unsampled >= 2 * CHUNK)
}

/// Adds up to `most` pending texts to the index, account by account; returns how many.
fn add_pending(tx: &mut Tx, most: i64) -> Result<i64> {
    let index = tx.dialect().indexed_by("search_texts_pending");
    let sql = format!(
        "SELECT account_id, number, length(folded) FROM search_texts{index} WHERE pending = 1
         ORDER BY account_id, number LIMIT $1"
    );
    let waiting = tx.all(&sql, &[most.into()], |row| Ok::<_, Error>(((row.int(0)?, row.int(1)?), row.int(2)?)))?;
    let (mut last, mut added, mut characters) = ((0, 0), 0, 0);
    for (place, length) in waiting {
        characters += length;
        if added > 0 && characters > MAX_CHARACTERS {
            break;
        }
        (last, added) = (place, added + 1);
    }
    // In the order of their numbers: SQLite collects what it adds to the index as long as they increase.
    let sql = format!(
        "UPDATE search_texts SET pending = 0 WHERE number IN
         (SELECT number FROM search_texts{index} WHERE pending = 1 AND (account_id, number) <= ($1, $2))"
    );
    tx.execute(&sql, &[last.0.into(), last.1.into()])?;
    Ok(added)
}

/// Adds or updates the search text of a record.
pub fn put(tx: &mut Tx, ctx: &Ctx, record: &dyn AnyRecord) -> Result<()> {
    let layout = record.layout();
    if layout.is_searched() {
        let (kind, id, text) = (layout.shape.name, &record.common().id, search_text(record));
        tx.gather(&TEXTS, &[ctx.account.into(), kind.into(), id.into(), text.into()])?;
    }
    Ok(())
}

static TEXTS: Gathered = Gathered {
    table: "search_texts",
    columns: &["account_id", "kind", "record_id", "folded"],
    key: 3,
    merge: Merge::Last,
    conflict: "ON CONFLICT (account_id, kind, record_id) DO UPDATE SET folded = excluded.folded",
};

/// Removes the search text of a record.
pub fn remove(layout: &Layout, tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<()> {
    if layout.is_searched() {
        tx.send(
            "DELETE FROM search_texts WHERE account_id = $1 AND kind = $2 AND record_id = $3",
            &[ctx.account.into(), layout.shape.name.into(), id.into()],
        )?;
    }
    Ok(())
}

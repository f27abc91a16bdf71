//! Compares the definitions that runs follow with the log lines of their flows. They are no records, so the checks of records
//! do not see them.

use engine::error::{Error, Result};
use engine::log;
use serde_json::Value;
use store::{Row, Tx};

/// How many definitions are checked per transaction: each may have a quarter of a megabyte.
const BATCH: usize = 20;
/// How many lines of a flow are read at a time.
const TOGETHER: i64 = 10;

/// The flow and the version of a definition.
pub type Version = (String, i64);

/// A stored definition.
#[derive(PartialEq)]
struct Stored {
    of: Version,
    definition: Value,
    author: [String; 2],
}

const COLUMNS: &str = "flow_id, version, definition, author_type, author_id";

impl Stored {
    fn from_row(row: &Row) -> Result<Stored> {
        Ok(Stored {
            of: (row.text(0)?.to_string(), row.int(1)?),
            definition: serde_json::from_str(row.text(2)?).unwrap_or_default(),
            author: [row.text(3)?.to_string(), row.text(4)?.to_string()],
        })
    }

    fn find(tx: &mut Tx, account: i64, (flow, version): &Version) -> Result<Option<Stored>> {
        let sql =
            format!("SELECT {COLUMNS} FROM flow_definitions WHERE account_id = $1 AND flow_id = $2 AND version = $3");
        tx.first(&sql, &[account.into(), flow.into(), (*version).into()], Stored::from_row)
    }
}

/// A flow, and what is wrong with one of its definitions.
type Problem = (String, String);

/// Checks the definitions of an account after this one; returns the last one, if there may be more, and a flow and a sentence
/// for each problem.
pub fn check_some(tx: &mut Tx, account: i64, after: &Version) -> Result<(Option<Version>, Vec<Problem>)> {
    let (last, found) = some_after(tx, account, after)?;
    let mut problems = Vec::new();
    for stored in &found {
        if let Some(what) = differs(tx, account, stored)?
            // It may have changed since it was read.
            && Stored::find(tx, account, &stored.of)?.as_ref() == Some(stored)
        {
            problems.push((stored.of.0.clone(), what));
        }
    }
    Ok((last, problems))
}

/// Returns some definitions after this one, and the last of them if there may be more.
fn some_after(tx: &mut Tx, account: i64, after: &Version) -> Result<(Option<Version>, Vec<Stored>)> {
    let sql = format!(
        "SELECT {COLUMNS} FROM flow_definitions WHERE account_id = $1 AND (flow_id, version) > ($2, $3)
         ORDER BY flow_id, version LIMIT {BATCH}"
    );
    let found = tx.all(&sql, &[account.into(), (&after.0).into(), after.1.into()], Stored::from_row)?;
    let last = found.last().filter(|_| found.len() == BATCH).map(|stored| stored.of.clone());
    Ok((last, found))
}

/// Returns the flows whose current definition is missing.
pub fn missing(tx: &mut Tx, account: i64) -> Result<Vec<String>> {
    let sql = "SELECT id FROM flows WHERE account_id = $1 AND NOT EXISTS (
                   SELECT 1 FROM flow_definitions AS own WHERE own.account_id = $1 AND own.flow_id = flows.id
                   AND own.version = flows.definition_version)";
    tx.all(sql, &[account.into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))
}

/// Describes the difference between a definition and the last line of its flow with its version.
fn differs(tx: &mut Tx, account: i64, stored: &Stored) -> Result<Option<String>> {
    let version = stored.of.1;
    Ok(match logged(tx, account, stored)? {
        Some(line) => compare(stored, &line),
        None => Some(format!("Version {version} of the flow was created outside the log, which has no line about it")),
    })
}

/// Returns the data of the last line of its flow with its version.
fn logged(tx: &mut Tx, account: i64, stored: &Stored) -> Result<Option<Value>> {
    let (flow, version) = &stored.of;
    let mut offset = 0;
    loop {
        let (numbers, total) = log::of_record(tx, account, "flow", flow, offset, TOGETHER)?;
        let mut lines = log::numbered(tx, account, &numbers)?;
        lines.sort_by_key(|line| -line.seq);
        for line in &lines {
            let data: Value = serde_json::from_str(line.data()).unwrap_or_default();
            if value(&data, "definition_version").and_then(Value::as_i64) == Some(*version) {
                return Ok(Some(data));
            }
        }
        offset += TOGETHER;
        if offset >= total {
            return Ok(None);
        }
    }
}

/// Makes the definitions of an account after this one match the log; returns the last one, if there may be more. They are
/// copies, so unlike a record they are not accepted as they are.
pub fn restore_some(tx: &mut Tx, account: i64, after: &Version) -> Result<Option<Version>> {
    let (last, found) = some_after(tx, account, after)?;
    for stored in &found {
        let (flow, version) = &stored.of;
        let of: [store::Value; 3] = [account.into(), flow.into(), (*version).into()];
        let Some(line) = logged(tx, account, stored)? else {
            tx.execute("DELETE FROM flow_definitions WHERE account_id = $1 AND flow_id = $2 AND version = $3", &of)?;
            continue;
        };
        if compare(stored, &line).is_some() {
            let sql = "UPDATE flow_definitions SET definition = $1, author_type = $2, author_id = $3
                       WHERE account_id = $4 AND flow_id = $5 AND version = $6";
            let definition = value(&line, "definition").map(Value::to_string).unwrap_or_default();
            let author = ["author_type", "author_id"].map(|name| text(&line, name).into());
            tx.execute(sql, &[&[(&definition).into()], &author[..], &of].concat())?;
        }
    }
    if last.is_none() {
        let sql = "INSERT INTO flow_definitions (account_id, flow_id, version, definition, author_type, author_id)
                   SELECT account_id, id, definition_version, definition, author_type, author_id FROM flows
                   WHERE account_id = $1 AND NOT EXISTS (
                       SELECT 1 FROM flow_definitions AS own WHERE own.account_id = $1 AND own.flow_id = flows.id
                       AND own.version = flows.definition_version)";
        tx.execute(sql, &[account.into()])?;
    }
    Ok(last)
}

fn compare(stored: &Stored, line: &Value) -> Option<String> {
    let version = stored.of.1;
    if value(line, "definition") != Some(&stored.definition) {
        return Some(format!(
            "Version {version} of the flow was changed outside the log: its definition is not the one that was saved"
        ));
    }
    let [kind, id] = &stored.author;
    let same = |name: &str, own: &str| value(line, name).is_some_and(|logged| logged == own);
    if same("author_type", kind) && same("author_id", id) {
        return None;
    }
    let named = |kind: &str, id: &str| format!("{kind} {id}").trim_end().to_string();
    Some(format!(
        "Version {version} of the flow was changed outside the log: its author is {}, but the log says {}",
        named(kind, id),
        named(text(line, "author_type"), text(line, "author_id"))
    ))
}

/// Returns a column of the flow in a line.
fn value<'l>(line: &'l Value, name: &str) -> Option<&'l Value> {
    [line, &line["meta"], &line["hidden"]].into_iter().find_map(|part| part.get(name))
}

fn text<'l>(line: &'l Value, name: &str) -> &'l str {
    value(line, name).and_then(Value::as_str).unwrap_or_default()
}

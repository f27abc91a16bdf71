//! Checks that numbers have no gaps: every number that a counter assigned is on a document.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use engine::accounts::Account;
use engine::error::{Error, Result};
use engine::log::{self, Line};
use store::Tx;

use super::Inspection;
use crate::documents::Which;

/// A series by the name of its counter: its table, the prefix of its numbers and the event of a deletion.
const SERIES: &[(&str, &str, char, &str)] = &[
    ("invoice", "invoices", Which::Invoice.letter(), "invoice.deleted"),
    ("quote", "quotes", Which::Quote.letter(), "quote.deleted"),
    ("workorder", "workorders", Which::Workorder.letter(), "workorder.deleted"),
    ("subscription", "subscriptions", 'S', "subscription.deleted"),
];

/// More than any account assigns in a year: a higher counter is damaged.
const MAX_COUNTER: i64 = 50_000_000;

impl Inspection<'_> {
    /// Checks that every number up to the counter of its series exists. Numbers that callers set count like any other,
    /// and can be higher than the counter.
    pub(super) fn numbers(&mut self, account: &Account) {
        self.plain_numbers(account);
        let number = account.number;
        let counters = self.look(account, "counters", |tx| {
            let sql = "SELECT name, value FROM counters WHERE account_id = $1 ORDER BY name";
            tx.all(sql, &[number.into()], |row| Ok::<_, Error>((row.text(0)?.to_string(), row.int(1)?)))
        });
        for (name, value) in counters.unwrap_or_default() {
            let Some((series, year)) = name.split_once(' ') else { continue };
            let Some((_, table, letter, deleted)) = SERIES.iter().find(|(own, ..)| *own == series) else { continue };
            if !(0..=MAX_COUNTER).contains(&value) {
                self.problem(&account.uid, "counters", &name, format!("The counter is at {value}"));
                continue;
            }
            let prefix = format!("{letter}{year}-");
            self.beyond(account, series, table, &prefix, value);
            let Some(missing) = self.look(account, table, |tx| missing(tx, number, table, &prefix, value)) else {
                continue;
            };
            if missing.is_empty() {
                continue;
            }
            // A draft with a number set by its caller can be deleted; the log explains that gap.
            let gone = self.look(account, "log", |tx| numbers_of_deleted(tx, number, deleted)).unwrap_or_default();
            for lost in missing.iter().map(|n| format!("{prefix}{n:04}")).filter(|lost| !gone.contains(lost)) {
                let what = format!("The number was assigned (the counter is at {value}), but no record has it");
                self.problem(&account.uid, table, &lost, what);
            }
        }
    }
}

/// Counters of numbers without a year, which callers cannot set: their table and prefix.
const PLAIN: &[(&str, &str, &str)] = &[("project", "projects", "P"), ("ticket", "tickets", "T")];

impl Inspection<'_> {
    /// Checks that no number without a year is higher than its counter.
    fn plain_numbers(&mut self, account: &Account) {
        let number = account.number;
        for (counter, table, letter) in PLAIN {
            let sql = format!(
                "SELECT number, coalesce((SELECT value FROM counters WHERE account_id = $1 AND name = $2), 0) FROM {table}
                 WHERE account_id = $1 AND number LIKE $3 ORDER BY length(number) DESC, number DESC LIMIT 1"
            );
            let values = [number.into(), (*counter).into(), format!("{letter}%").into()];
            let highest = self.look(account, table, |tx| {
                tx.first(&sql, &values, |row| Ok::<_, Error>((row.text(0)?.to_string(), row.int(1)?)))
            });
            let Some((highest, value)) = highest.flatten() else { continue };
            if highest[letter.len()..].parse::<i64>().is_ok_and(|given| given > value) {
                let what = format!("The counter is at {value}, but {highest} was assigned");
                self.problem(&account.uid, "counters", counter, what);
            }
        }
    }

    /// Checks the numbers beyond the counter. Callers may have set them, but one that the server assigned proves that
    /// the counter was set back.
    fn beyond(&mut self, account: &Account, series: &str, table: &str, prefix: &str, value: i64) {
        let number = account.number;
        let Some(beyond) = self.look(account, table, |tx| beyond(tx, number, table, prefix, value)) else { return };
        // The number of a subscription cannot be set by a caller.
        let given = match series {
            "subscription" => beyond.last_key_value().map(|(highest, _)| *highest),
            _ if beyond.is_empty() => None,
            _ => self.look(account, "log", |tx| highest_given(tx, number, prefix, &beyond)).flatten(),
        };
        let counter = format!("{series} {}", &prefix[1..prefix.len() - 1]);
        if let Some(highest) = given {
            let what = format!("The counter is at {value}, but {prefix}{highest:04} was assigned");
            self.problem(&account.uid, "counters", &counter, what);
        }
    }
}

/// Returns the numbers beyond `value` with the ids of their rows.
fn beyond(tx: &mut Tx, account: i64, table: &str, prefix: &str, value: i64) -> Result<BTreeMap<i64, String>> {
    let sql = format!("SELECT number, id FROM {table} WHERE account_id = $1 AND number > $2 AND number < $3");
    let end = format!("{}.", prefix.trim_end_matches('-'));
    let rows = tx.all(&sql, &[account.into(), prefix.into(), end.into()], |row| {
        let (number, id) = (row.text(0)?, row.text(1)?);
        let place =
            number[prefix.len()..].parse::<i64>().ok().filter(|n| *n > value && number == format!("{prefix}{n:04}"));
        Ok::<_, Error>(place.map(|place| (place, id.to_string())))
    })?;
    Ok(rows.into_iter().flatten().collect())
}

/// Returns the highest of these numbers that was assigned on finalization: before that, the document had a draft
/// number.
fn highest_given(tx: &mut Tx, account: i64, prefix: &str, beyond: &BTreeMap<i64, String>) -> Result<Option<i64>> {
    let numbers: HashMap<&str, i64> = beyond.iter().map(|(number, id)| (id.as_str(), *number)).collect();
    let (mut drafts, mut seq, mut highest) = (BTreeSet::new(), 0, None);
    loop {
        let lines = log::after(tx, account, seq, 1000, 8 * 1024 * 1024)?;
        let Some(last) = lines.last() else { return Ok(highest) };
        seq = last.seq;
        for line in lines.into_iter().filter(Line::shows_record) {
            let Some((id, number)) = numbers.get_key_value(line.entity_id()) else { continue };
            let data: serde_json::Value = serde_json::from_str(line.data()).unwrap_or_default();
            let shown = data["number"].as_str().unwrap_or_default();
            if shown.starts_with("DRAFT-") {
                drafts.insert(*id);
            } else if drafts.contains(id) && shown == format!("{prefix}{number:04}") {
                highest = highest.max(Some(*number));
            }
        }
    }
}

/// Returns the numbers up to `value` that no row has.
fn missing(tx: &mut Tx, account: i64, table: &str, prefix: &str, value: i64) -> Result<Vec<usize>> {
    let mut given = vec![false; usize::try_from(value).unwrap_or_default()];
    let sql = format!(
        "SELECT number FROM {table} WHERE account_id = $1 AND number > $2 AND number < $3 ORDER BY number LIMIT 1000"
    );
    // The character that follows the last one of the prefix.
    let end = format!("{}.", prefix.trim_end_matches('-'));
    let mut after = prefix.to_string();
    loop {
        let values = [account.into(), (&after).into(), (&end).into()];
        let numbers = tx.all(&sql, &values, |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
        let Some(last) = numbers.last() else { break };
        after.clone_from(last);
        for number in &numbers {
            let place = number[prefix.len()..].parse::<usize>().ok().and_then(|n| n.checked_sub(1));
            // `F2026-7` is a number that a caller set, not the seventh.
            let own = place.filter(|place| *number == format!("{prefix}{:04}", place + 1));
            if let Some(given) = own.and_then(|place| given.get_mut(place)) {
                *given = true;
            }
        }
    }
    Ok(given.iter().enumerate().filter(|(_, given)| !**given).map(|(place, _)| place + 1).collect())
}

fn numbers_of_deleted(tx: &mut Tx, account: i64, event: &str) -> Result<BTreeSet<String>> {
    let sql = format!("SELECT {} FROM log WHERE account_id = $1 AND type = $2", log::DATA);
    let numbers = tx.all(&sql, &[account.into(), event.into()], |row| {
        let data: serde_json::Value = serde_json::from_str(row.text(0)?).unwrap_or_default();
        Ok::<_, Error>(data["number"].as_str().unwrap_or_default().to_string())
    })?;
    Ok(numbers.into_iter().collect())
}

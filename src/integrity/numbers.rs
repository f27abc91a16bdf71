//! Numbers without gaps: every number that a counter has given is on a document.

use std::collections::BTreeSet;

use store::Tx;

use super::Inspection;
use crate::accounts::Account;
use crate::error::{Error, Result};
use crate::resources::document::Which;

/// A series by the name of its counter: its table, the letter of its numbers and the event of a deletion.
const SERIES: &[(&str, &str, char, &str)] = &[
    ("invoice", "invoices", Which::Invoice.letter(), "invoice.deleted"),
    ("quote", "quotes", Which::Quote.letter(), "quote.deleted"),
    ("workorder", "workorders", Which::Workorder.letter(), "workorder.deleted"),
    ("subscription", "subscriptions", 'S', "subscription.deleted"),
];

/// More than any account gives in a year: a counter beyond it is damaged.
const MOST: i64 = 50_000_000;

impl Inspection<'_> {
    /// Every number up to the counter of its series is there. Numbers that callers brought along count like any other,
    /// and may lie beyond the counter.
    pub(super) fn numbers(&mut self, account: &Account) {
        let number = account.number;
        let counters = self.look(account, "counters", |tx| {
            let sql = "SELECT name, value FROM counters WHERE account_id = $1 ORDER BY name";
            tx.all(sql, &[number.into()], |row| Ok::<_, Error>((row.text(0)?.to_string(), row.int(1)?)))
        });
        for (name, value) in counters.unwrap_or_default() {
            let Some((series, year)) = name.split_once(' ') else { continue };
            let Some((_, table, letter, deleted)) = SERIES.iter().find(|(own, ..)| *own == series) else { continue };
            if !(0..=MOST).contains(&value) {
                self.problem(&account.uid, "counters", &name, format!("The counter is at {value}"));
                continue;
            }
            let prefix = format!("{letter}{year}-");
            let Some(missing) = self.look(account, table, |tx| missing(tx, number, table, &prefix, value)) else {
                continue;
            };
            if missing.is_empty() {
                continue;
            }
            // A draft with a number that its caller chose can be deleted, and leaves a gap that the log explains.
            let gone = self.look(account, "log", |tx| numbers_of_deleted(tx, number, deleted)).unwrap_or_default();
            for lost in missing.iter().map(|n| format!("{prefix}{n:04}")).filter(|lost| !gone.contains(lost)) {
                let what = format!("The number was assigned (the counter is at {value}), but no record has it");
                self.problem(&account.uid, table, &lost, what);
            }
        }
    }
}

/// The numbers up to `value` that no row has.
fn missing(tx: &mut Tx, account: i64, table: &str, prefix: &str, value: i64) -> Result<Vec<usize>> {
    let mut given = vec![false; usize::try_from(value).unwrap_or_default()];
    let sql = format!(
        "SELECT number FROM {table} WHERE account_id = $1 AND number > $2 AND number < $3 ORDER BY number LIMIT 1000"
    );
    // The character after the one that ends the prefix.
    let end = format!("{}.", prefix.trim_end_matches('-'));
    let mut after = prefix.to_string();
    loop {
        let values = [account.into(), (&after).into(), (&end).into()];
        let numbers = tx.all(&sql, &values, |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
        let Some(last) = numbers.last() else { break };
        after.clone_from(last);
        for number in &numbers {
            let place = number[prefix.len()..].parse::<usize>().ok().and_then(|n| n.checked_sub(1));
            // `F2026-7` is a number that a caller brought along, not the seventh.
            let own = place.filter(|place| *number == format!("{prefix}{:04}", place + 1));
            if let Some(given) = own.and_then(|place| given.get_mut(place)) {
                *given = true;
            }
        }
    }
    Ok(given.iter().enumerate().filter(|(_, given)| !**given).map(|(place, _)| place + 1).collect())
}

fn numbers_of_deleted(tx: &mut Tx, account: i64, event: &str) -> Result<BTreeSet<String>> {
    let sql = "SELECT data FROM log WHERE account_id = $1 AND type = $2";
    let numbers = tx.all(sql, &[account.into(), event.into()], |row| {
        let data: serde_json::Value = serde_json::from_str(row.text(0)?).unwrap_or_default();
        Ok::<_, Error>(data["number"].as_str().unwrap_or_default().to_string())
    })?;
    Ok(numbers.into_iter().collect())
}

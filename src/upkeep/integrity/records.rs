//! Checks of tables that are not resources.

use engine::accounts::{self, Account};
use engine::error::Error;
use engine::inspect::lines::CHANGED_OUTSIDE;
use engine::log;
use engine::registry::registry;
use engine::resource::Resource;
use serde_json::Value;

use super::Inspection;
use crate::automation::versions;
use crate::mail::Standing;

/// Checks of such tables: the table, a `SELECT` of the ids of invalid rows, and the problem.
const RELATIONS: &[(&str, &str, &str)] = &[
    (
        "document_pdfs",
        "SELECT document_id FROM document_pdfs p WHERE account_id = $1 AND (
            NOT EXISTS (SELECT 1 FROM files WHERE account_id = $1 AND id = p.file_id)
            OR NOT EXISTS (SELECT 1 FROM invoices WHERE account_id = $1 AND id = p.document_id)
            AND NOT EXISTS (SELECT 1 FROM quotes WHERE account_id = $1 AND id = p.document_id)
            AND NOT EXISTS (SELECT 1 FROM workorders WHERE account_id = $1 AND id = p.document_id))",
        "The PDF of this document has no file, or the document does not exist",
    ),
    (
        "deliveries",
        "SELECT id FROM deliveries d WHERE account_id = $1
            AND NOT EXISTS (SELECT 1 FROM mails WHERE account_id = $1 AND id = d.mail_id)",
        "The mail that it delivers does not exist",
    ),
    (
        "deliveries",
        "SELECT id FROM deliveries WHERE account_id = $1 AND status NOT IN ({standings})",
        "Column status cannot be read: it is not one of: {standings}",
    ),
    (
        "webhook_cursors",
        "SELECT endpoint_id FROM webhook_cursors c WHERE account_id = $1 AND (
            NOT EXISTS (SELECT 1 FROM webhook_endpoints WHERE account_id = $1 AND id = c.endpoint_id)
            OR sent_seq > (SELECT coalesce(max(seq), 0) FROM log WHERE account_id = $1))",
        "The endpoint does not exist, or was sent events that are not in the log",
    ),
    (
        "subscription_periods",
        "SELECT subscription_id || ' ' || period_start FROM subscription_periods p WHERE account_id = $1 AND (
            period_end < period_start
            OR NOT EXISTS (SELECT 1 FROM subscriptions WHERE account_id = $1 AND id = p.subscription_id)
            OR EXISTS (SELECT 1 FROM invoices i WHERE account_id = $1 AND id = p.invoice_id
                AND (i.subscription_id <> p.subscription_id OR i.period_start <> p.period_start)))",
        "The period ends before it begins, or its subscription does not exist, or its invoice belongs to another",
    ),
];

impl Inspection<'_> {
    /// Checks the stored count of a resource.
    pub(super) fn counts(&mut self, account: &Account, resource: &Resource) {
        let (number, shape) = (account.number, resource.shape);
        let sql = format!(
            "SELECT coalesce((SELECT total FROM record_counts WHERE account_id = $1 AND kind = $2), 0),
                    (SELECT count(*) FROM {} WHERE account_id = $1)",
            shape.table
        );
        let counts = self.look(account, "record_counts", |tx| {
            let counts =
                tx.first(&sql, &[number.into(), shape.name.into()], |row| Ok::<_, Error>((row.int(0)?, row.int(1)?)));
            Ok(counts?.unwrap_or_default())
        });
        if let Some((kept, counted)) = counts.filter(|(kept, counted)| kept != counted) {
            let what = format!("The stored count of {} is {kept}, but there are {counted}", shape.table);
            self.problem(&account.uid, "record_counts", shape.name, what);
        }
    }

    /// Checks that every search text of a resource has its record.
    pub(super) fn texts(&mut self, account: &Account, resource: &Resource) {
        let (number, shape) = (account.number, resource.shape);
        let mut after = String::new();
        loop {
            let sql = format!(
                "SELECT record_id, (SELECT count(*) FROM {} WHERE account_id = $1 AND id = record_id) FROM search_texts
                 WHERE account_id = $1 AND kind = $2 AND record_id > $3 ORDER BY record_id LIMIT 1000",
                shape.table
            );
            let from = after.clone();
            let read = self.look(account, "search_texts", |tx| {
                let values = [number.into(), shape.name.into(), (&from).into()];
                tx.all(&sql, &values, |row| Ok::<_, Error>((row.text(0)?.to_string(), row.int(1)?)))
            });
            let Some(last) = read.as_ref().and_then(|rows| rows.last()).map(|(id, _)| id.clone()) else { return };
            for (id, there) in read.unwrap_or_default() {
                if there == 0 {
                    let what = format!("There is a search text, but no such record in {}", shape.table);
                    self.problem(&account.uid, "search_texts", &id, what);
                }
            }
            after = last;
        }
    }

    /// Reports guarded records that the program found changed when it wrote its next line about them, since the operator last
    /// accepted the database as it is.
    pub(super) fn changed_outside(&mut self, account: &Account) {
        let number = account.number;
        let sql = format!(
            "SELECT seq, entity_id, {} FROM log WHERE account_id = $1 AND type = $2 AND seq > coalesce(
                (SELECT max(trusted.seq) FROM log trusted WHERE trusted.account_id = $1 AND trusted.type = $3), 0)
             ORDER BY seq LIMIT 1000",
            log::DATA
        );
        for resource in registry().resources.iter().filter(|resource| resource.guarded) {
            let name = format!("{}.{CHANGED_OUTSIDE}", resource.shape.events);
            let found = self.look(account, "log", |tx| {
                let values = [number.into(), (&name).into(), accounts::TRUSTED.into()];
                tx.all(&sql, &values, |row| {
                    let data: Value = serde_json::from_str(row.text(2)?).unwrap_or_default();
                    let what = data["difference"].as_str().unwrap_or("Changed outside the log").to_string();
                    Ok::<_, Error>((row.int(0)?, row.text(1)?.to_string(), what))
                })
            });
            for (seq, id, what) in found.unwrap_or_default() {
                self.problem(&account.uid, resource.shape.table, &id, format!("{what}; line {seq} recorded it"));
            }
        }
    }

    /// Checks that such rows refer to existing records.
    pub(super) fn relations(&mut self, account: &Account) {
        let number = account.number;
        for (table, sql, what) in RELATIONS {
            self.witness.sees(table, 0);
            let sql = sql.replace("{standings}", &Standing::sql_list(Standing::ALL));
            let what = what.replace("{standings}", &Standing::WIRE.join(", "));
            let wrong = self.look(account, table, |tx| {
                tx.all(&sql, &[number.into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))
            });
            for id in wrong.unwrap_or_default() {
                self.problem(&account.uid, table, &id, what.as_str());
            }
        }
    }

    /// Compares the definitions that runs follow with the log.
    pub(super) fn flows(&mut self, account: &Account) {
        let (number, table) = (account.number, "flow_definitions");
        let missing = self.look(account, table, |tx| versions::missing(tx, number));
        for id in missing.unwrap_or_default() {
            self.problem(&account.uid, table, &id, "The definition of the flow was deleted outside the log");
        }
        let mut after = Some((String::new(), 0));
        while let Some(from) = after {
            let found = self.look(account, table, |tx| versions::check_some(tx, number, &from));
            let (last, problems) = found.unwrap_or_default();
            problems.into_iter().for_each(|(id, what)| self.problem(&account.uid, table, &id, what));
            after = last;
        }
    }
}

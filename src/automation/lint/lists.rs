//! The account's own lists of values: ticket statuses, codes of tax rates, and the options of custom fields.

use engine::context::Ctx;
use engine::error::Result;
use engine::input::did_you_mean;
use engine::record::Record;
use store::Tx;

use crate::settings::custom_field::{CustomField, FieldType};
use crate::settings::office_hours::DAYS;
use crate::settings::tax_rate;
use crate::support::ticket_status;

/// The values that fields of this account can have.
#[derive(Default)]
pub struct Lists {
    statuses: Vec<String>,
    rates: Vec<String>,
    custom: Vec<CustomField>,
}

impl Lists {
    /// Reads the lists of the account.
    pub fn read(tx: &mut Tx, ctx: &Ctx) -> Result<Lists> {
        let sql = format!("{} WHERE account_id = $1 ORDER BY created_at, id", CustomField::sql().select);
        let custom = tx.all(&sql, &[ctx.account.into()], CustomField::from_row)?;
        let rates = tax_rate::all(tx, ctx)?.iter().map(|rate| rate.code.clone()).collect();
        Ok(Lists { statuses: ticket_status::names(tx, ctx)?, rates, custom })
    }

    /// Returns why a field of a record never has a value, if so. `path` is that of the field in the record, and `same`
    /// compares names: requests ignore case where conditions do not.
    pub fn exclude(&self, kind: &str, path: &[&str], value: &str, same: fn(&str, &str) -> bool) -> Option<String> {
        match (kind, path) {
            ("ticket", ["status"]) => {
                let has = self.statuses.iter().any(|status| same(status, value));
                (!has).then(|| never(value, &self.statuses))
            }
            ("settings", ["mail_days"]) => {
                let days = DAYS.map(String::from);
                let has = days.iter().any(|day| same(day, value));
                (!has).then(|| never(value, &days))
            }
            ("settings", ["default_vat_code"]) => {
                let has = self.rates.iter().any(|code| same(code, value));
                (!has).then(|| never(value, &self.rates))
            }
            (_, ["custom_fields", key, ..]) => {
                let of_kind = || self.custom.iter().filter(|field| field.entity.wire() == kind);
                match of_kind().find(|field| field.key.0 == **key) {
                    None => {
                        let hint = did_you_mean(key, of_kind().map(|field| field.key.0.as_str()));
                        Some(format!("is not a custom field of a {kind}{hint}"))
                    }
                    Some(field) if field.r#type == FieldType::Select => {
                        let has = field.options.0.iter().any(|option| option == value);
                        (!has).then(|| never(value, &field.options.0))
                    }
                    Some(_) => None,
                }
            }
            _ => None,
        }
    }
}

fn never(value: &str, choices: &[String]) -> String {
    let hint = did_you_mean(value, choices.iter().map(String::as_str));
    format!("is never \"{value}\"; it is one of: {}{hint}", choices.join(", "))
}

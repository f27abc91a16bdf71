//! The quotas of accounts, from the settings.

use crate::config::{Config, Provided};

/// The quotas of every account; 0 for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Total size of files, in bytes.
    pub file_bytes: i64,
    /// Number of files.
    pub files: i64,
    /// Number of mail recipients per day.
    pub mails_per_day: i64,
    /// Number of endpoints per host.
    pub endpoints_per_host: i64,
    /// What the operator provides beside these.
    pub provided: Provided,
}

impl Quotas {
    /// Returns the quotas of the settings.
    pub fn of(config: &Config) -> Quotas {
        let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        Quotas {
            file_bytes: whole(config.quota_file_mib).saturating_mul(1024 * 1024),
            files: whole(config.quota_files),
            mails_per_day: whole(config.quota_mails_per_day),
            endpoints_per_host: whole(config.quota_endpoints_per_host),
            provided: config.provided(),
        }
    }
}

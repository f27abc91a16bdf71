//! Quotas: how much an account may store and send, from the settings.

use crate::config::Config;

/// The limits of every account; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Bytes of files.
    pub file_bytes: i64,
    /// Files.
    pub files: i64,
    /// Recipients of mail in a day.
    pub mails_per_day: i64,
    /// Endpoints at one host.
    pub endpoints_per_host: i64,
}

impl Quotas {
    /// Those that the settings say.
    pub fn of(config: &Config) -> Quotas {
        let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        Quotas {
            file_bytes: whole(config.quota_file_mib).saturating_mul(1024 * 1024),
            files: whole(config.quota_files),
            mails_per_day: whole(config.quota_mails_per_day),
            endpoints_per_host: whole(config.quota_endpoints_per_host),
        }
    }
}

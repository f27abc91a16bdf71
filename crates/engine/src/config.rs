//! Settings: the built-in defaults, overridden by a file, the environment and flags.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::text::did_you_mean;

/// Every setting with its default and a comment.
pub const DEFAULTS: &str = include_str!("../../../config.default.toml");

/// The effective settings, described in `config.default.toml`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "said once, in config.default.toml")]
pub struct Config {
    pub listen: String,
    pub data: PathBuf,
    pub secret_key_file: String,
    pub secret_key: String,
    pub database_url: String,
    pub database_standby: String,
    pub public_url: String,
    pub files: String,
    pub s3_endpoint: String,
    pub s3_region: String,
    pub s3_access_key: String,
    pub s3_secret_key: String,
    pub database_readers: usize,
    pub database_writers: usize,
    pub database_timeout_seconds: u64,
    pub write_queue: usize,
    pub metrics_listen: String,
    pub log_level: String,
    pub log_format: LogFormat,
    pub log_requests: bool,
    pub trace_to: String,
    pub trace_one_in: u64,
    pub rate_limit_per_minute: u32,
    pub account_limit_keys: u32,
    /// Requests per minute that a key may make to the webhook trigger route, across all nodes; 0 for no limit.
    pub trigger_limit_per_minute: u32,
    pub public_limit_per_minute: u32,
    pub trusted_proxies: String,
    pub max_connections: usize,
    pub connections_per_address: usize,
    pub first_byte_timeout_seconds: u64,
    pub write_timeout_seconds: u64,
    pub header_timeout_seconds: u64,
    pub body_timeout_seconds: u64,
    pub upload_timeout_seconds: u64,
    pub template: String,
    pub typeset_apart: bool,
    pub typeset_timeout_seconds: u64,
    pub typeset_memory_mib: u64,
    pub read_apart: bool,
    pub read_timeout_seconds: u64,
    pub read_memory_mib: u64,
    pub mail_from: String,
    pub smtp_host: String,
    pub smtp_port: u16,
    pub smtp_security: String,
    pub smtp_user: String,
    pub smtp_password: String,
    pub smtp_timeout_seconds: u64,
    pub smtp_ca_file: String,
    pub allow_private_addresses: String,
    pub dns_server: String,
    pub audit_anchor: String,
    pub backup_to: String,
    pub backup_at: String,
    pub backup_keep: String,
    pub backup_recipient: String,
    pub backup_with_key: bool,
    pub backup_check: String,
    pub backup_identity: String,
    pub backup_before_migration: BeforeMigration,
    pub mollie_url: String,
    pub mollie_key: String,
    pub allow_sandbox: bool,
    pub oidc_issuer: String,
    pub oidc_client_id: String,
    pub oidc_client_secret: String,
    pub oidc_name: String,
    pub webhook_timeout_seconds: u64,
    pub streams_per_key: usize,
    pub max_streams: usize,
    pub stream_heartbeat_seconds: u64,
    pub shutdown_seconds: u64,
    pub threads: usize,
    pub workers: usize,
    pub min_free_disk_mib: u64,
    pub quota_file_mib: u64,
    pub quota_files: u64,
    pub quota_mails_per_day: u64,
    pub quota_endpoints_per_host: u64,
    pub bodies_mib: u64,
    pub bodies_per_account_mib: u64,
    pub responses_mib: u64,
    pub responses_per_account_mib: u64,
}

/// The smallest limit on request bodies that allows a file upload, in MiB.
pub const LEAST_BODIES_MIB: u64 = 5;

/// The settings whose values are secrets.
const SECRETS: &[&str] = &[
    "database_url",
    "database_standby",
    "secret_key",
    "s3_secret_key",
    "smtp_password",
    "mollie_key",
    "oidc_client_secret",
];

/// Settings whose value is no secret, unless somebody put an age identity there: they name its file and its public key.
const NO_IDENTITY: &[&str] = &["backup_identity", "backup_recipient"];

/// Those that are secret if they contain a password.
const URLS: &[&str] = &["database_url", "database_standby"];

/// The start of the names of environment variables.
pub const PREFIX: &str = "KANTOOR_";

/// Environment variables that are not settings: the configuration file, the key and the address that programs use that call the
/// API, the binary that the benchmarks measure, and the databases of `kantoor copy`.
const OTHERS: &[&str] =
    &["KANTOOR_CONFIG", "KANTOOR_KEY", "KANTOOR_URL", "KANTOOR_BIN", "KANTOOR_COPY_FROM", "KANTOOR_COPY_TO"];

/// The variables of the tests, and those that Kubernetes and Docker set for a service that is called kantoor.
const OTHER_PREFIXES: &[&str] = &["KANTOOR_TEST_", "KANTOOR_SERVICE_", "KANTOOR_PORT"];

/// What the operator provides for all accounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Provided {
    /// Whether every account may use the sandbox.
    pub sandbox: bool,
    /// Whether the server has a Mollie key for accounts without one.
    pub mollie: bool,
    /// Whether that key is one of Mollie's test keys, with which no money moves.
    pub mollie_test: bool,
    /// Whether mail is handed to a mail server.
    pub mail: bool,
}

/// The format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Whether the database is copied before it is migrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BeforeMigration {
    /// Always on SQLite; on PostgreSQL if pg_dump is installed.
    Auto,
    /// Always; otherwise it is not migrated.
    Require,
    /// Never.
    Skip,
}

impl Config {
    /// Returns the folder of file contents, if they are not in an S3 store.
    pub fn files_folder(&self) -> PathBuf {
        if self.files.is_empty() { self.data.join("files") } else { PathBuf::from(&self.files) }
    }

    /// Loads the defaults, `file`, the `environment` (`KANTOOR_…` pairs) and `flags`, in that order. An error has a line for
    /// each thing that is wrong.
    pub fn load(
        file: Option<&Path>,
        environment: impl Iterator<Item = (String, String)>,
        flags: &[(String, String)],
    ) -> Result<Config, String> {
        let (config, wrong) = Config::read(file, environment, flags)?;
        if wrong.is_empty() { Ok(config) } else { Err(wrong.join("\n")) }
    }

    /// Loads the settings like [`Config::load`]; returns what is wrong beside what can be read, so that others can add to it.
    /// A wrong value is replaced by the default if it does not fit its type.
    pub fn read(
        file: Option<&Path>,
        environment: impl Iterator<Item = (String, String)>,
        flags: &[(String, String)],
    ) -> Result<(Config, Vec<String>), String> {
        let defaults: toml::Table = DEFAULTS.parse().map_err(|error| format!("config.default.toml: {error}"))?;
        let mut table = defaults.clone();
        let known: Vec<String> = table.keys().cloned().collect();
        let mut wrong = Vec::new();
        if let Some(path) = file {
            let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            let (own, unreadable) = read_file(&text);
            wrong.extend(unreadable.iter().map(|why| format!("{}: {why}", path.display())));
            let odd = own.keys().filter(|key| !known.contains(key));
            wrong.extend(odd.map(|key| format!("{}: {}", path.display(), unknown_setting(key, &known))));
            table.extend(own.into_iter().filter(|(key, _)| known.contains(key)));
        }
        for (name, text) in environment {
            let Some(key) = name.strip_prefix(PREFIX).map(str::to_lowercase) else { continue };
            if known.contains(&key) {
                set(&mut table, &defaults, (&name, &key), &text, &mut wrong);
            } else if !OTHERS.contains(&name.as_str()) && !OTHER_PREFIXES.iter().any(|start| name.starts_with(start)) {
                wrong.push(unknown_variable(&name, &known));
            }
        }
        for (key, text) in flags {
            match known.contains(key) {
                true => set(&mut table, &defaults, (key, key), text, &mut wrong),
                false => wrong.push(unknown_setting(key, &known)),
            }
        }
        check_values(&table, &mut wrong);
        unfit(&mut table, &defaults, &mut wrong);
        let config = table.try_into::<Config>().map_err(|error| format!("invalid setting: {}", error.message()))?;
        config.check(&mut wrong);
        Ok((config, wrong))
    }

    /// Adds what is wrong with values that fit their types.
    fn check(&self, wrong: &mut Vec<String>) {
        let anchors = ["", "file:", "mailto:", "http://", "https://"];
        let anchor = self.audit_anchor.as_str();
        if !anchors.iter().any(|start| if start.is_empty() { anchor.is_empty() } else { anchor.starts_with(start) }) {
            wrong.push("audit_anchor: must start with file:, mailto:, http:// or https://".to_string());
        }
        if is_url(&self.data.to_string_lossy()) {
            // It may be the address of a database, with its password.
            wrong.push("data: must be a folder; database_url is for PostgreSQL".to_string());
        }
        if is_foreign_url(&self.files) {
            wrong.push(format!("files: '{}' must be a folder or s3://bucket/prefix", self.files));
        }
        for (name, mib) in [("bodies_mib", self.bodies_mib), ("bodies_per_account_mib", self.bodies_per_account_mib)] {
            if (1..LEAST_BODIES_MIB).contains(&mib) {
                wrong.push(format!(
                    "{name}: must be 0 (no limit) or at least {LEAST_BODIES_MIB}, since a file upload counts for {LEAST_BODIES_MIB} MiB"
                ));
            }
        }
    }

    /// Returns what is provided for all accounts.
    pub fn provided(&self) -> Provided {
        let key = &self.mollie_key;
        Provided {
            sandbox: self.allow_sandbox,
            mollie: !key.is_empty(),
            mollie_test: key.starts_with("test_"),
            mail: !self.smtp_host.is_empty(),
        }
    }

    /// Returns the settings as a file, with secrets hidden.
    pub fn shown(&self) -> String {
        let mut shown = self.clone();
        shown.database_url = hide_password(&self.database_url);
        shown.database_standby = hide_password(&self.database_standby);
        let Ok(mut table) = toml::Table::try_from(&shown) else { return String::new() };
        for name in SECRETS.iter().chain(NO_IDENTITY).filter(|name| !URLS.contains(name)) {
            if let Some(toml::Value::String(secret)) = table.get_mut(*name)
                && Config::is_secret(name, secret)
            {
                *secret = "(hidden)".to_string();
            }
        }
        toml::to_string(&table).unwrap_or_default()
    }

    /// Whether a value of this setting is a secret. An address of a database is one only if it has a password.
    pub fn is_secret(name: &str, value: &str) -> bool {
        if NO_IDENTITY.contains(&name) {
            return value.to_ascii_uppercase().contains("AGE-SECRET-KEY-");
        }
        SECRETS.contains(&name) && !value.is_empty() && (!URLS.contains(&name) || has_password(value))
    }
}

/// Whether a text starts with `scheme://`: as a path, it would name a folder that nobody means.
pub fn is_url(text: &str) -> bool {
    let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
    !scheme.is_empty() && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
}

/// Whether a text is a URL other than `s3://bucket` with or without more.
pub fn is_foreign_url(text: &str) -> bool {
    is_url(text) && text.strip_prefix("s3://").is_none_or(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The settings with a fixed set of values.
const CHOICES: &[(&str, &[&str])] = &[
    ("smtp_security", &["starttls", "tls", "none"]),
    ("log_format", &["text", "json"]),
    ("backup_before_migration", &["auto", "require", "skip"]),
];

/// What other programs call some of these values.
const OTHER_NAMES: &[(&str, &str)] = &[("ssl", "tls"), ("smtps", "tls"), ("plain", "none"), ("off", "none")];

/// The levels of the log.
const LEVELS: &[&str] = &["off", "error", "warn", "info", "debug", "trace"];

/// Reads a settings file; returns what is wrong with it beside what can be read. A setting is a line, so those that are
/// well-formed are read although others are not.
fn read_file(text: &str) -> (toml::Table, Vec<String>) {
    let error = match text.parse::<toml::Table>() {
        Ok(own) => return (own, Vec::new()),
        Err(error) => error.to_string().trim_end().to_string(),
    };
    let (mut own, mut wrong, mut in_table) = (toml::Table::new(), Vec::new(), false);
    for (number, line) in (1..).zip(text.lines()) {
        let found = match line.parse::<toml::Table>() {
            Ok(found) => found,
            Err(error) => {
                wrong.push(format!("line {number}: {}", error.message()));
                continue;
            }
        };
        let begins_table = line.trim_start().starts_with('[');
        in_table |= begins_table;
        for (key, value) in found.into_iter().filter(|_| begins_table || !in_table) {
            if own.contains_key(&key) {
                wrong.push(format!("line {number}: duplicate key '{key}'"));
            } else {
                own.insert(key, value);
            }
        }
    }
    (own, if wrong.len() > 1 { wrong } else { vec![error] })
}

/// Sets a value that was given as text.
fn set(
    table: &mut toml::Table,
    defaults: &toml::Table,
    (name, key): (&str, &str),
    text: &str,
    wrong: &mut Vec<String>,
) {
    let old = &defaults[key];
    match typed(old, text) {
        Some(value) => drop(table.insert(key.to_string(), value)),
        None => wrong.push(bad_value(name, text, old)),
    }
}

/// Adds the values that are understood by nobody.
fn check_values(table: &toml::Table, wrong: &mut Vec<String>) {
    let text = |name: &str| table.get(name).and_then(toml::Value::as_str).unwrap_or_default();
    let is_text = |name: &str| table.get(name).is_some_and(toml::Value::is_str);
    let choices = CHOICES.iter().filter(|(name, _)| is_text(name));
    wrong.extend(choices.filter_map(|(name, choices)| wrong_choice(name, text(name), choices)));
    // `info`, or `warn,store=debug`. A word alone would be the name of a module, and everything else silent.
    let levels = text("log_level").split(',').map(str::trim).filter(|part| !part.is_empty() && !part.contains('='));
    wrong.extend(levels.filter_map(|part| wrong_choice("log_level", &part.to_lowercase(), LEVELS)));
    let from = text("mail_from");
    if !from.is_empty() && !from.contains('@') {
        wrong.push(format!("mail_from: '{from}' is no e-mail address"));
    }
    let url = text("public_url");
    let host = ["https://", "http://"].iter().find_map(|start| url.strip_prefix(start));
    if !url.is_empty() && host.is_none_or(str::is_empty) {
        wrong.push(format!("public_url: '{url}' must start with https:// or http://"));
    }
}

fn wrong_choice(name: &str, value: &str, choices: &[&str]) -> Option<String> {
    if choices.contains(&value) {
        return None;
    }
    let small = value.to_lowercase();
    let other = OTHER_NAMES.iter().find(|(other, own)| *other == small && choices.contains(own));
    let meant = other.map_or(small.as_str(), |(_, own)| own);
    let guess = did_you_mean(meant, choices.iter().copied());
    Some(format!("{name}: '{value}' is none of {}{guess}", choices.join(", ")))
}

/// Adds the settings whose values do not fit their types, and replaces these by the defaults: the error of the whole table
/// names only the first.
fn unfit(table: &mut toml::Table, defaults: &toml::Table, wrong: &mut Vec<String>) {
    for (name, value) in table.iter_mut().filter(|(name, value)| defaults.get(name.as_str()) != Some(*value)) {
        let mut one = defaults.clone();
        one.insert(name.clone(), value.clone());
        let Some(error) = one.try_into::<Config>().err() else { continue };
        let start = format!("{name}: ");
        if !wrong.iter().any(|known| known.starts_with(&start)) {
            wrong.push(format!("{start}{}", expected(error.message(), value)));
        }
        *value = defaults[name.as_str()].clone();
    }
}

/// Says which values a setting takes.
fn expected(message: &str, value: &toml::Value) -> String {
    let range = match message.rsplit_once("expected ").map_or("", |(_, kind)| kind.trim()) {
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number, 0 or more",
        "i64" | "i32" => "a whole number",
        "a boolean" => "true or false",
        "a string" | "path string" => "a text in quotes",
        _ => return message.to_string(),
    };
    match value {
        // A text may be a secret.
        toml::Value::Integer(number) => format!("{number} is not {range}"),
        _ => format!("must be {range}"),
    }
}

fn unknown_setting(key: &str, known: &[String]) -> String {
    format!("unknown setting '{key}'{}", did_you_mean(key, known.iter().map(String::as_str)))
}

fn unknown_variable(name: &str, known: &[String]) -> String {
    // All names begin alike, which says nothing about how near they are.
    let rest = |name: &str| name.strip_prefix(PREFIX).unwrap_or(name).to_uppercase();
    let all: Vec<String> = known.iter().map(|key| rest(key)).chain(OTHERS.iter().map(|name| rest(name))).collect();
    let guess = did_you_mean(&rest(name), all.iter().map(String::as_str)).replacen('\'', &format!("'{PREFIX}"), 1);
    format!("unknown environment variable {name}{guess}")
}

/// Parses `text` as the type of `old`.
fn typed(old: &toml::Value, text: &str) -> Option<toml::Value> {
    Some(match old {
        toml::Value::Integer(_) => toml::Value::Integer(text.parse().ok()?),
        toml::Value::Boolean(_) => match text {
            "1" | "true" => toml::Value::Boolean(true),
            "0" | "false" => toml::Value::Boolean(false),
            _ => return None,
        },
        _ => toml::Value::String(text.to_string()),
    })
}

fn bad_value(name: &str, text: &str, old: &toml::Value) -> String {
    format!(
        "{name}: '{text}' is not {}",
        match old {
            toml::Value::Integer(_) => "an integer",
            _ => "true or false",
        }
    )
}

/// Whether the address of a database has a password.
fn has_password(url: &str) -> bool {
    let user = url.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@')).map_or("", |(user, _)| user);
    user.contains(':') || url.contains("password=")
}

/// Hides the password in a URL; hides all of it unless it has the form `scheme://user:password@host/name`.
fn hide_password(url: &str) -> String {
    if url.is_empty() {
        return String::new();
    }
    let Some((scheme, rest)) = url.split_once("://") else { return "(hidden)".to_string() };
    let rest = rest.split('?').next().unwrap_or_default();
    match rest.rsplit_once('@') {
        Some((user, host)) => format!("{scheme}://{}:***@{host}", user.split(':').next().unwrap_or_default()),
        None => format!("{scheme}://{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(environment: &[(&str, &str)], flags: &[(&str, &str)]) -> Result<Config, String> {
        let own = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect()
        };
        Config::load(None, own(environment).into_iter(), &own(flags))
    }

    #[test]
    fn flags_override_the_environment_which_overrides_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("k.toml");
        std::fs::write(&file, "listen = \"1.1.1.1:1\"\nworkers = 7\nwrite_queue = 9\n").unwrap();
        let environment =
            [("KANTOOR_WORKERS".to_string(), "8".to_string()), ("KANTOOR_WRITE_QUEUE".into(), "10".into())];
        let flags = [("write_queue".to_string(), "11".to_string())];
        let config = Config::load(Some(&file), environment.into_iter(), &flags).unwrap();
        assert_eq!((config.listen.as_str(), config.workers, config.write_queue), ("1.1.1.1:1", 8, 11));
    }

    #[test]
    fn reports_invalid_settings() {
        assert_eq!(load(&[("KANTOOR_WORKERS", "many")], &[]).unwrap_err(), "KANTOOR_WORKERS: 'many' is not an integer");
        assert_eq!(load(&[], &[("nope", "1")]).unwrap_err(), "unknown setting 'nope'");
        let all = load(&[("KANTOOR_WORKRES", "1"), ("KANTOOR_QWERTY", "1")], &[("listn", "1")]).unwrap_err();
        let expected = "unknown environment variable KANTOOR_WORKRES; did you mean 'KANTOOR_WORKERS'?
unknown environment variable KANTOOR_QWERTY
unknown setting 'listn'; did you mean 'listen'?";
        assert_eq!(all, expected);
        let others = ["KANTOOR_CONFIG", "KANTOOR_KEY", "KANTOOR_TEST_POSTGRES", "KANTOOR_SERVICE_HOST", "PATH"];
        assert!(load(&others.map(|name| (name, "x")), &[]).is_ok());
        assert!(load(&[("KANTOOR_LOG_FORMAT", "xml")], &[]).unwrap_err().contains("xml"));
        assert!(load(&[("KANTOOR_WORKERS", "-1")], &[]).is_err());
        for (value, meant) in [("ssl", "tls"), ("STARTTLS", "starttls"), ("tsl", "tls")] {
            let refused = load(&[("KANTOOR_SMTP_SECURITY", value)], &[]).unwrap_err();
            let expected = format!("smtp_security: '{value}' is none of starttls, tls, none; did you mean '{meant}'?");
            assert_eq!(refused, expected);
        }
        let all = load(&[], &[("log_level", "inof"), ("mail_from", "nobody"), ("public_url", "foo")]).unwrap_err();
        let expected = "log_level: 'inof' is none of off, error, warn, info, debug, trace; did you mean 'info'?
mail_from: 'nobody' is no e-mail address
public_url: 'foo' must start with https:// or http://";
        assert_eq!(all, expected);
        assert!(load(&[], &[("log_level", "WARN,store=debug"), ("public_url", "https://k.example")]).is_ok());
        let wide = load(&[], &[("smtp_port", "99999"), ("workers", "-1")]).unwrap_err();
        assert_eq!(
            wide,
            "smtp_port: 99999 is not a whole number from 0 to 65535\nworkers: -1 is not a whole number, 0 or more"
        );
        for name in ["bodies_mib", "bodies_per_account_mib"] {
            let wrong = load(&[], &[(name, "4")]).unwrap_err();
            assert!(wrong.starts_with(&format!("{name}: must be 0 (no limit) or at least 5")), "{wrong}");
            assert!(load(&[], &[(name, "5")]).is_ok() && load(&[], &[(name, "0")]).is_ok());
        }
    }

    #[test]
    fn reports_all_errors_of_a_file_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("k.toml");
        let refused = |text: &str, flags: &[(&str, &str)]| {
            std::fs::write(&file, text).unwrap();
            let flags: Vec<(String, String)> = flags.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
            let refused = Config::load(Some(&file), std::iter::empty(), &flags).unwrap_err();
            refused.replace(&file.display().to_string(), "k.toml")
        };
        let text = "listn = \"x\"\nsmtp_port = 99999\nsmtp_security = \"ssl\"\nlog_requests = \"yes\"\nmail_from = 7\n\
                    audit_anchor = \"ftp://x\"\nbodies_mib = 4\nlog_format = \"xml\"\n";
        assert_eq!(
            refused(text, &[("workers", "many"), ("nope", "1")]),
            "k.toml: unknown setting 'listn'; did you mean 'listen'?
workers: 'many' is not an integer
unknown setting 'nope'
smtp_security: 'ssl' is none of starttls, tls, none; did you mean 'tls'?
log_format: 'xml' is none of text, json
log_requests: must be true or false
mail_from: 7 is not a text in quotes
smtp_port: 99999 is not a whole number from 0 to 65535
audit_anchor: must start with file:, mailto:, http:// or https://
bodies_mib: must be 0 (no limit) or at least 5, since a file upload counts for 5 MiB"
        );
        let torn = refused("listen = \nsmtp_port = 99999\nworkers = 2 2\n", &[]);
        let lines: Vec<&str> = torn.lines().collect();
        assert!(lines.len() == 3 && lines[0].starts_with("k.toml: line 1: "), "{torn}");
        assert!(lines[1].starts_with("k.toml: line 3: ") && lines[2].starts_with("smtp_port: 99999"), "{torn}");
        assert!(refused("workers = 2\nworkers = 3\n", &[]).contains("duplicate"));
    }

    #[test]
    fn every_setting_has_a_comment_and_passwords_are_hidden() {
        let lines: Vec<&str> = DEFAULTS.lines().collect();
        for (number, line) in lines.iter().enumerate().filter(|(_, line)| line.contains(" = ")) {
            assert!(number > 0 && lines[number - 1].starts_with("# "), "{line} has no comment");
        }
        for (number, line) in lines.iter().enumerate().filter(|(_, line)| line.contains("(secret)")) {
            let setting = lines[number..].iter().find_map(|line| line.split_once(" = ").map(|(name, _)| name)).unwrap();
            assert!(SECRETS.contains(&setting), "{line}");
            let secret = "postgres://me:hush@db/k";
            assert!(Config::is_secret(setting, secret) && !Config::is_secret(setting, ""), "{setting}");
            let shown = load(&[], &[(setting, secret)]).unwrap().shown();
            assert!(!shown.contains("hush"), "{shown}");
        }
        for setting in NO_IDENTITY {
            let shown = |value: &str| load(&[], &[(*setting, value)]).unwrap().shown();
            assert!(!shown("AGE-SECRET-KEY-1HUSH").contains("HUSH") && !shown("age-secret-key-1hush").contains("hush"));
            assert!(shown("age1public").contains("age1public"), "{setting}");
        }
        assert!(!Config::is_secret("database_url", "postgres://me@db:5432/k?sslmode=disable"));
        assert!(Config::is_secret("database_url", "host=db password=x"));
        assert!(!Config::is_secret("database_url", "postgres://db/k") && !Config::is_secret("listen", "x"));
        let config = load(&[("KANTOOR_DATABASE_URL", "postgres://me:secret@db/kantoor")], &[]).unwrap();
        assert!(config.shown().contains("postgres://me:***@db/kantoor"), "{}", config.shown());
        for url in ["host=db password=secret", "postgres://db/k?password=secret", "postgres://a:secret@db/k?x=secret"] {
            assert!(!hide_password(url).contains("secret"), "{url}");
        }
    }
}

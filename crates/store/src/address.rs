//! The address of a PostgreSQL: what it says of TLS, and the one way to a connection.
//!
//! The driver knows `sslmode` up to `require`. `verify-ca`, `verify-full` and `sslrootcert` are
//! taken out before it reads the address, and mean what they mean to every other program.

use std::error::Error as _;
use std::path::Path;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use postgres::config::{Host, SslMode, SslNegotiation};
use postgres::{Client, Config, NoTls};
use rustls::CertificateError;

use crate::tls::{Connector, Trust};
use crate::{Error, Result};

/// Where the server is and how it is spoken to. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Address {
    config: Config,
    mode: Mode,
    roots: String,
    tls: Connector,
}

/// How much a connection is protected, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
enum Mode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl Mode {
    const ALL: [(&str, Mode); 5] = [
        ("disable", Mode::Disable),
        ("prefer", Mode::Prefer),
        ("require", Mode::Require),
        ("verify-ca", Mode::VerifyCa),
        ("verify-full", Mode::VerifyFull),
    ];

    fn named(name: &str) -> Result<Mode> {
        let found = Mode::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, mode)| *mode).ok_or_else(|| {
            wrong(&format!("sslmode is disable, prefer, require, verify-ca or verify-full, and not '{name}'"))
        })
    }

    fn name(self) -> &'static str {
        Mode::ALL.iter().find(|(_, mode)| *mode == self).map_or("", |(name, _)| name)
    }
}

impl Address {
    /// Reads an address, and the file with certificates that it may name.
    pub(crate) fn parse(text: &str) -> Result<Address> {
        let (ours, rest) = take_out(text);
        let mut config: Config = rest.parse().map_err(|error: postgres::Error| {
            // Which part of it is wrong stands in the cause.
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            wrong(&format!("{error}{cause}"))
        })?;
        set_defaults(&mut config);
        let given = |name: &str| ours.iter().rfind(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let mut mode = match (given("sslmode"), config.get_ssl_mode()) {
            (Some(name), _) => Mode::named(name)?,
            (None, SslMode::Disable) => Mode::Disable,
            (None, SslMode::Require) => Mode::Require,
            (None, _) => Mode::Prefer,
        };
        let roots = given("sslrootcert").filter(|file| !file.is_empty());
        match (mode, roots) {
            (Mode::Disable | Mode::Prefer, Some(_)) => {
                return Err(wrong(&format!("sslrootcert needs sslmode=verify-full, and not {}", mode.name())));
            }
            // What libpq does, for those who set the one and forget the other.
            (Mode::Require, Some("system")) => mode = Mode::VerifyFull,
            (Mode::Require, Some(_)) => mode = Mode::VerifyCa,
            _ => {}
        }
        // Nobody listens in on a socket of the machine, and PostgreSQL has no TLS there.
        if !config.get_hosts().is_empty() && config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_))) {
            mode = Mode::Disable;
        }
        config.ssl_mode(match mode {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            _ => SslMode::Require,
        });
        let trust = match (mode, roots) {
            (Mode::Disable | Mode::Prefer | Mode::Require, _) => Trust::anybody(),
            (_, None | Some("system")) => Trust::of_system(mode == Mode::VerifyFull).map_err(Error::Unavailable)?,
            (_, Some(file)) => Trust::of_file(Path::new(file), mode == Mode::VerifyFull).map_err(|why| wrong(&why))?,
        };
        let direct = config.get_ssl_negotiation() == SslNegotiation::Direct;
        let tls = Connector::new(trust, direct).map_err(Error::Unavailable)?;
        let roots = roots.unwrap_or_default().to_string();
        Ok(Address { config, mode, roots, tls })
    }

    /// Makes a connection. All connections are made here.
    pub(crate) fn connect(&self) -> Result<Client> {
        match self.config.connect(self.tls.clone()) {
            Ok(client) => Ok(client),
            // `prefer` is content with less: a server whose TLS does not work, or that wants this
            // user without it, is asked once more, as libpq does.
            Err(error) if self.mode == Mode::Prefer && refuses_tls(&error) => {
                let mut plain = self.config.clone();
                plain.ssl_mode(SslMode::Disable).connect(NoTls).map_err(|_| self.explained(&error))
            }
            Err(error) => Err(self.explained(&error)),
        }
    }

    /// The same address as PostgreSQL's own programs read it from their environment, where a password is seen by nobody.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let config = &self.config;
        let hosts = config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(folder) => folder.display().to_string(),
        });
        let ports = config.get_ports().iter().map(ToString::to_string);
        let mut pairs = vec![
            ("PGHOST", hosts.collect::<Vec<_>>().join(",")),
            ("PGPORT", ports.collect::<Vec<_>>().join(",")),
            ("PGUSER", config.get_user().unwrap_or_default().to_string()),
            ("PGDATABASE", config.get_dbname().or(config.get_user()).unwrap_or_default().to_string()),
            ("PGPASSWORD", String::from_utf8_lossy(config.get_password().unwrap_or_default()).into_owned()),
            ("PGSSLMODE", self.mode.name().to_string()),
            ("PGSSLROOTCERT", self.roots.clone()),
        ];
        pairs.retain(|(_, value)| !value.is_empty());
        pairs
    }

    /// Trouble that does not pass by itself says what to do about it.
    fn explained(&self, error: &postgres::Error) -> Error {
        let cause = error.source().map(ToString::to_string).unwrap_or_default();
        if cause == "server does not support TLS" {
            let mode = self.mode.name();
            return Error::Unavailable(format!("PostgreSQL offers no TLS, and sslmode={mode} asks for it"));
        }
        let Some(fault) = tls_fault(error) else {
            // A refusal in the server's own words has no further cause.
            return match error.as_db_error() {
                Some(said) => Error::Disconnected(said.to_string()),
                None if cause.is_empty() => Error::Disconnected(error.to_string()),
                None => Error::Disconnected(format!("{error}: {cause}")),
            };
        };
        Error::Unavailable(match fault {
            rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
                "the certificate of PostgreSQL is not trusted here: name the certificate of who signed it \
                 with sslrootcert=FILE in the address of the database"
                    .to_string()
            }
            rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext { expected, presented }) => {
                let there: Vec<&str> = presented.iter().map(|name| bare(name)).collect();
                let there = if there.is_empty() { "no name (subjectAltName)".to_string() } else { there.join(", ") };
                format!("the certificate of PostgreSQL is not for {}: it is for {there}", expected.to_str())
            }
            rustls::Error::InvalidCertificate(why) => format!("the certificate of PostgreSQL is not valid: {why}"),
            fault => format!("PostgreSQL and Kantoor could not agree on TLS: {fault}"),
        })
    }
}

/// `localhost` of `DnsName("localhost")`, which is how rustls tells the names in a certificate.
fn bare(name: &str) -> &str {
    name.split_once('(').map_or(name, |(_, rest)| rest.trim_end_matches(')').trim_matches('"'))
}

fn wrong(what: &str) -> Error {
    Error::Unavailable(format!("the database address is not right: {what}"))
}

fn set_defaults(config: &mut Config) {
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(5));
    }
    // A host that is gone without a word is noticed in seconds, not in the two hours of the system.
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(Duration::from_secs(15));
        config.keepalives_idle(Duration::from_secs(15));
        config.keepalives_interval(Duration::from_secs(5));
        config.keepalives_retries(3);
    }
    if config.get_application_name().is_none() {
        config.application_name("kantoor");
    }
}

/// What was wrong with the handshake, when that is what failed.
fn tls_fault(error: &postgres::Error) -> Option<&rustls::Error> {
    error.source()?.downcast_ref::<std::io::Error>()?.get_ref()?.downcast_ref()
}

/// Whether the same server may take a connection without TLS: the handshake failed, or its list of
/// who may connect (`pg_hba.conf`) says no.
fn refuses_tls(error: &postgres::Error) -> bool {
    tls_fault(error).is_some() || error.code().is_some_and(|state| state.code() == "28000")
}

/// The options that are ours, and the address without them.
fn take_out(text: &str) -> (Vec<(String, String)>, String) {
    let mut ours = Vec::new();
    if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
        let rest: Vec<&str> = words(text).filter(|word| !is_ours(word, &mut ours)).collect();
        return (
            ours.into_iter().map(|(key, value)| (key, value.trim_matches('\'').to_string())).collect(),
            rest.join(" "),
        );
    }
    // A password may have a question mark in it.
    let user = text.find('@').unwrap_or(0);
    let Some(start) = text[user..].find('?').map(|at| user + at) else { return (ours, text.to_string()) };
    let options = text[start + 1..].split('&').filter(|option| !is_ours(option, &mut ours));
    let rest = options.collect::<Vec<_>>().join("&");
    let decoded = |value: String| percent_decode_str(&value).decode_utf8_lossy().into_owned();
    let ours = ours.into_iter().map(|(key, value)| (key, decoded(value))).collect();
    (ours, if rest.is_empty() { text[..start].to_string() } else { format!("{}?{rest}", &text[..start]) })
}

fn is_ours(option: &str, ours: &mut Vec<(String, String)>) -> bool {
    match option.split_once('=') {
        Some((key @ ("sslmode" | "sslrootcert"), value)) => {
            ours.push((key.to_string(), value.to_string()));
            true
        }
        _ => false,
    }
}

/// The parts of an address of the form `host=db password='a b'`.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |letter: char| {
        if std::mem::take(&mut escaped) {
            return false;
        }
        escaped = letter == '\\';
        quoted ^= letter == '\'';
        letter.is_whitespace() && !quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(text: &str) -> Mode {
        Address::parse(text).unwrap().mode
    }

    fn refused(text: &str) -> String {
        Address::parse(text).err().unwrap().to_string()
    }

    #[test]
    fn the_mode_is_read_in_both_forms() {
        assert_eq!(mode("postgres://db/k"), Mode::Prefer);
        assert_eq!(mode("postgres://a:what?@db/k?sslmode=disable&application_name=x"), Mode::Disable);
        assert_eq!(mode("postgresql://db/k?application_name=x&sslmode=require"), Mode::Require);
        assert_eq!(mode("host=db sslmode=require password='a sslmode=disable'"), Mode::Require);
        assert_eq!(mode("host=db sslmode = require"), Mode::Require);
        assert_eq!(mode("host=/run/postgresql sslmode=require"), Mode::Disable);
    }

    #[test]
    fn the_rest_of_the_address_stays_as_it_is() {
        let (ours, rest) =
            take_out("postgres://a:b@db/k?connect_timeout=3&sslrootcert=%2Fetc%2Fr%20t.pem&sslmode=verify-full");
        let expected = [("sslrootcert", "/etc/r t.pem"), ("sslmode", "verify-full")];
        assert_eq!(ours, expected.map(|(key, value)| (key.to_string(), value.to_string())));
        assert_eq!(rest, "postgres://a:b@db/k?connect_timeout=3");
        let (ours, rest) = take_out(r"host=db sslrootcert='/a b' password='it\'s  x' user=me");
        assert_eq!(ours, [("sslrootcert".to_string(), "/a b".to_string())]);
        assert_eq!(rest, r"host=db password='it\'s  x' user=me");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(refused("postgres://db/k?sslmode=verify").contains("and not 'verify'"));
        assert!(refused("postgres://db/k?sslrootcert=/etc/root.pem").contains("sslrootcert needs sslmode=verify-full"));
        assert!(refused("postgres://db/k?sslmode=verify-full&sslrootcert=/not/there").contains("/not/there"));
        assert!(refused("postgres://db/k?sslcert=x").contains("sslcert"));
    }
}

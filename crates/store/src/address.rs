//! The address of a PostgreSQL: what it says of TLS, and the one way to a connection.
//!
//! The driver knows `sslmode` up to `require`. `verify-ca`, `verify-full` and `sslrootcert` are
//! taken out before it reads the address, and mean what they mean to every other program. `pool_mode` is our own.

use std::error::Error as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use percent_encoding::percent_decode_str;
use rustls::CertificateError;
use tokio_postgres::config::{Host, SslMode, SslNegotiation, TargetSessionAttrs};
use tokio_postgres::{Config, NoTls};

use crate::client::{Client, Failure};
use crate::tls::{Connector, Trust};
use crate::{Error, Result};

/// Time limit from the first packet to the server's ready message, unless the URL sets another.
const CONNECT: Duration = Duration::from_secs(5);

/// How to connect to the server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Address {
    /// One for each server in the URL, so that an unresponsive one does not block the next.
    servers: Vec<Config>,
    /// The server that responded last.
    last: Arc<AtomicUsize>,
    mode: Mode,
    roots: String,
    tls: Connector,
    /// Whether a pooler may give each transaction another session.
    pooled: bool,
}

/// Checks the form of the URL of a database; an empty one is that of none. Nothing is called.
pub fn check_url(url: &str) -> Result<(), String> {
    explained(url, Address::parse)
}

/// Checks the form of the URL of a standby.
pub fn check_standby_url(url: &str) -> Result<(), String> {
    explained(url, Address::parse_standby)
}

fn explained(url: &str, parse: fn(&str) -> Result<Address>) -> Result<(), String> {
    match if url.is_empty() { return Ok(()) } else { parse(url) } {
        Err(Error::Unavailable(why)) => Err(why),
        Err(error) => Err(error.to_string()),
        Ok(_) => Ok(()),
    }
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
            wrong(&format!("sslmode must be disable, prefer, require, verify-ca or verify-full, not '{name}'"))
        })
    }

    fn name(self) -> &'static str {
        Mode::ALL.iter().find(|(_, mode)| *mode == self).map_or("", |(name, _)| name)
    }
}

impl Address {
    /// Reads an address, and the file with certificates that it may name.
    pub(crate) fn parse(text: &str) -> Result<Address> {
        Address::read(text, TargetSessionAttrs::ReadWrite)
    }

    /// Reads the address of a standby. Its connections may also lead to a primary: the replica that was promoted.
    pub(crate) fn parse_standby(text: &str) -> Result<Address> {
        Address::read(text, TargetSessionAttrs::Any).map_err(|error| match error {
            Error::Unavailable(what) => Error::Unavailable(what.replace("the database URL", "the URL of the standby")),
            error => error,
        })
    }

    fn read(text: &str, target: TargetSessionAttrs) -> Result<Address> {
        let (ours, rest) = take_out(text);
        let mut config: Config = rest.parse().map_err(|error: tokio_postgres::Error| {
            // Which part of it is wrong stands in the cause.
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            wrong(&format!("{error}{cause}"))
        })?;
        set_defaults(&mut config, target);
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
                return Err(wrong(&format!("sslrootcert requires sslmode=verify-full, not {}", mode.name())));
            }
            // What libpq does, for those who set the one and forget the other.
            (Mode::Require, Some("system")) => mode = Mode::VerifyFull,
            (Mode::Require, Some(_)) => mode = Mode::VerifyCa,
            _ => {}
        }
        // A Unix socket cannot be intercepted, and PostgreSQL has no TLS there.
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
        let pooled = match given("pool_mode") {
            None | Some("session") => false,
            Some("transaction") => true,
            Some(other) => return Err(wrong(&format!("pool_mode must be session or transaction, not '{other}'"))),
        };
        let direct = config.get_ssl_negotiation() == SslNegotiation::Direct;
        let tls = Connector::new(trust, direct).map_err(Error::Unavailable)?;
        let roots = roots.unwrap_or_default().to_string();
        Ok(Address { servers: one_by_one(&config)?, last: Arc::default(), mode, roots, tls, pooled })
    }

    /// Makes a connection to the server that takes writes. All connections are made here.
    pub(crate) fn connect(&self) -> Result<Client> {
        let first = self.last.load(Ordering::Relaxed);
        let mut failed = Error::Disconnected("the database URL names no server".into());
        for number in (0..self.servers.len()).map(|next| (first + next) % self.servers.len()) {
            match self.connect_to(&self.servers[number]) {
                Ok(client) => {
                    self.last.store(number, Ordering::Relaxed);
                    return Ok(client);
                }
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    fn connect_to(&self, server: &Config) -> Result<Client> {
        let deadline = server.get_connect_timeout().copied().unwrap_or(CONNECT);
        match Client::connect(server, self.tls.clone(), deadline) {
            Ok(client) => Ok(client),
            Err(failure @ (Failure::Silence(_) | Failure::Earlier(_))) => Err(failure.into()),
            // `prefer` is content with less: a server whose TLS does not work, or that wants this
            // user without it, is asked once more, as libpq does.
            Err(Failure::Said(error)) if self.mode == Mode::Prefer && refuses_tls(&error) => {
                let mut plain = server.clone();
                plain.ssl_mode(SslMode::Disable);
                Client::connect(&plain, NoTls, deadline).map_err(|_| self.explained(&error))
            }
            Err(Failure::Said(error)) => Err(self.explained(&error)),
        }
    }

    /// Whether the server is reached through a pooler that may give each transaction another session.
    pub(crate) fn is_pooled(&self) -> bool {
        self.pooled
    }

    /// Returns the name of the database.
    pub(crate) fn database(&self) -> String {
        let config = self.servers.first();
        config.and_then(|config| config.get_dbname().or(config.get_user())).unwrap_or_default().to_string()
    }

    /// Returns the settings as the environment of PostgreSQL's own programs, which keeps the password out of the
    /// process list.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let Some(config) = self.servers.first() else { return Vec::new() };
        let hosts = self.servers.iter().flat_map(Config::get_hosts).map(|host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(folder) => folder.display().to_string(),
        });
        let ports = self.servers.iter().flat_map(Config::get_ports).map(ToString::to_string);
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

    /// Adds the remedy to an error that is permanent.
    fn explained(&self, error: &tokio_postgres::Error) -> Error {
        let cause = error.source().map(ToString::to_string).unwrap_or_default();
        if cause == "server does not support TLS" {
            let mode = self.mode.name();
            return Error::Unavailable(format!("PostgreSQL does not support TLS, but sslmode={mode} requires it"));
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
                "PostgreSQL's certificate is not trusted: specify the certificate of its authority with sslrootcert=FILE in the database URL"
                    .to_string()
            }
            rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext { expected, presented }) => {
                let there: Vec<&str> = presented.iter().map(|name| bare(name)).collect();
                let there = if there.is_empty() { "no name (subjectAltName)".to_string() } else { there.join(", ") };
                format!("PostgreSQL's certificate is not valid for {}: it is for {there}", expected.to_str())
            }
            rustls::Error::InvalidCertificate(why) => format!("PostgreSQL's certificate is not valid: {why}"),
            fault => format!("the TLS handshake with PostgreSQL failed: {fault}"),
        })
    }
}

/// `localhost` of `DnsName("localhost")`, which is how rustls tells the names in a certificate.
fn bare(name: &str) -> &str {
    name.split_once('(').map_or(name, |(_, rest)| rest.trim_end_matches(')').trim_matches('"'))
}

fn wrong(what: &str) -> Error {
    Error::Unavailable(format!("the database URL is not valid: {what}"))
}

fn set_defaults(config: &mut Config, target: TargetSessionAttrs) {
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT);
    }
    // A host that is gone without a word is noticed in seconds, not in the two hours of the system.
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(Duration::from_secs(10));
        config.keepalives_idle(Duration::from_secs(5));
        config.keepalives_interval(Duration::from_secs(2));
        config.keepalives_retries(2);
    }
    if config.get_application_name().is_none() {
        config.application_name("kantoor");
    }
    // A standby would answer with what was, and take no writes; after a failover it may be the first that is named.
    if config.get_target_session_attrs() == TargetSessionAttrs::Any {
        config.target_session_attrs(target);
    }
}

/// The same address for each of its servers. The driver tries them in turn by itself, but has no deadline for one
/// that accepts the connection and says nothing.
fn one_by_one(config: &Config) -> Result<Vec<Config>> {
    let (hosts, addresses, ports) = (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let count = hosts.len().max(addresses.len());
    let fits = |length: usize, most: usize| length <= most || length == count;
    if count == 0 || !fits(hosts.len(), 0) || !fits(addresses.len(), 0) || !fits(ports.len(), 1) {
        return Err(wrong("it requires a host, and either one port or as many ports as hosts"));
    }
    Ok((0..count)
        .map(|number| {
            let mut one = Config::new();
            match hosts.get(number) {
                Some(Host::Tcp(name)) => {
                    one.host(name);
                }
                Some(Host::Unix(path)) => {
                    one.host_path(path);
                }
                None => {}
            }
            if let Some(address) = addresses.get(number) {
                one.hostaddr(*address);
            }
            if let Some(port) = ports.get(number).or(ports.first()) {
                one.port(*port);
            }
            copy_options(config, &mut one);
            one
        })
        .collect())
}

fn copy_options(from: &Config, to: &mut Config) {
    if let Some(user) = from.get_user() {
        to.user(user);
    }
    if let Some(name) = from.get_dbname() {
        to.dbname(name);
    }
    if let Some(options) = from.get_options() {
        to.options(options);
    }
    if let Some(name) = from.get_application_name() {
        to.application_name(name);
    }
    if let Some(password) = from.get_password() {
        to.password(password);
    }
    if let Some(time) = from.get_connect_timeout() {
        to.connect_timeout(*time);
    }
    if let Some(time) = from.get_tcp_user_timeout() {
        to.tcp_user_timeout(*time);
    }
    if let Some(time) = from.get_keepalives_interval() {
        to.keepalives_interval(time);
    }
    if let Some(count) = from.get_keepalives_retries() {
        to.keepalives_retries(count);
    }
    to.keepalives(from.get_keepalives()).keepalives_idle(from.get_keepalives_idle());
    to.ssl_mode(from.get_ssl_mode()).ssl_negotiation(from.get_ssl_negotiation());
    to.target_session_attrs(from.get_target_session_attrs()).channel_binding(from.get_channel_binding());
}

/// What was wrong with the handshake, when that is what failed.
fn tls_fault(error: &tokio_postgres::Error) -> Option<&rustls::Error> {
    error.source()?.downcast_ref::<std::io::Error>()?.get_ref()?.downcast_ref()
}

/// Whether the same server may take a connection without TLS: the handshake failed, or its list of
/// who may connect (`pg_hba.conf`) says no.
fn refuses_tls(error: &tokio_postgres::Error) -> bool {
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
        Some((key @ ("sslmode" | "sslrootcert" | "pool_mode"), value)) => {
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
    fn each_server_of_the_address_is_tried_on_its_own() {
        let text = "postgres://me:secret@a:1,b:2/k?sslmode=require&keepalives_idle=7&options=-c%20x%3Dy";
        let servers = Address::parse(text).unwrap().servers;
        let places: Vec<_> = servers.iter().map(|server| (server.get_hosts(), server.get_ports())).collect();
        assert_eq!(places, [(&[Host::Tcp("a".into())][..], &[1][..]), (&[Host::Tcp("b".into())][..], &[2][..])]);
        for server in &servers {
            assert_eq!((server.get_user(), server.get_password()), (Some("me"), Some(&b"secret"[..])));
            assert_eq!((server.get_dbname(), server.get_options()), (Some("k"), Some("-c x=y")));
            assert_eq!(server.get_ssl_mode(), SslMode::Require);
            assert_eq!(server.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        }
        let same = Address::parse("host=a,b port=5 hostaddr=127.0.0.1,127.0.0.2").unwrap().servers;
        assert_eq!(same.iter().map(|server| server.get_ports()).collect::<Vec<_>>(), [[5], [5]]);
        assert!(refused("host=a,b,c port=1,2").contains("as many ports as hosts"));
        assert!(refused("user=me").contains("requires a host"));
    }

    #[test]
    fn rejects_invalid_urls() {
        assert!(refused("postgres://db/k?sslmode=verify").contains("not 'verify'"));
        assert!(
            refused("postgres://db/k?sslrootcert=/etc/root.pem").contains("sslrootcert requires sslmode=verify-full")
        );
        assert!(refused("postgres://db/k?sslmode=verify-full&sslrootcert=/not/there").contains("/not/there"));
        assert!(refused("postgres://db/k?sslcert=x").contains("sslcert"));
    }
}

//! TLS from the start and by STARTTLS, with our own authority.

use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;

use mail::sink::{Act, Options, Rule, Sink, Stream, Verb, Wrap};
use mail::{Failure, Security, SmtpSettings};
use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

use crate::{deliver, hasty, sender};

struct Authority {
    folder: TempDir,
    wrap: Wrap,
}

/// An authority, and a server with its certificate for `name`.
fn authority(name: &str) -> Authority {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    let server_key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&server_key, &issuer).unwrap();
    serving(&root, &server, &server_key)
}

/// A server that signed its own certificate, as `openssl req -x509` creates it: it calls itself an authority.
fn self_signed(name: &str) -> Authority {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let own = params.self_signed(&key).unwrap();
    serving(&own, &own, &key)
}

/// A server with this certificate, and a file with the one to trust.
fn serving(trusted: &Certificate, server: &Certificate, key: &KeyPair) -> Authority {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ca.pem"), trusted.pem()).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![server.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let wrap = move |tcp: TcpStream| {
        let tls = ServerConnection::new(config.clone()).map_err(std::io::Error::other)?;
        Ok(Box::new(StreamOwned::new(tls, tcp)) as Box<dyn Stream>)
    };
    Authority { folder, wrap: Arc::new(wrap) }
}

impl Authority {
    fn ca_file(&self) -> Option<PathBuf> {
        Some(self.folder.path().join("ca.pem"))
    }

    fn sink(&self, security: Security) -> Sink {
        let login = Some(("jo".to_owned(), "secret".to_owned()));
        Sink::with(Options { security, wrap: Some(self.wrap.clone()), login, ..Options::default() }).unwrap()
    }

    fn settings(&self, sink: &Sink) -> SmtpSettings {
        SmtpSettings { ca_file: self.ca_file(), ..sink.settings() }
    }
}

#[test]
fn mail_goes_over_tls() {
    let authority = authority("127.0.0.1");
    for security in [Security::Tls, Security::StartTls] {
        let sink = authority.sink(security);
        let sender = sender(authority.settings(&sink));
        assert_eq!(sender.check(), Ok(()));
        deliver(&sender).unwrap();
        deliver(&sender).unwrap();
        let mails = sink.mails();
        assert_eq!(mails.len(), 2);
        assert!(mails.iter().all(|kept| kept.encrypted && kept.user == "jo"), "{security:?}");
        assert_eq!(sink.connections(), 2, "one for the check, one for both mails");
    }
}

#[test]
fn trusts_the_certificate_of_the_server_itself() {
    for name in ["127.0.0.1", "mail.local"] {
        let server = self_signed(name);
        for security in [Security::Tls, Security::StartTls] {
            let sink = server.sink(security);
            deliver(&sender(server.settings(&sink))).unwrap();
            assert!(sink.mails().iter().all(|kept| kept.encrypted), "{security:?}");
            let other = self_signed(name);
            let refused = deliver(&sender(SmtpSettings { ca_file: other.ca_file(), ..sink.settings() })).unwrap_err();
            assert!(
                matches!(&refused, Failure::Settings(words) if words.contains("self-signed. The operator of this server can trust it with smtp_ca_file")),
                "{refused:?}"
            );
            assert_eq!(sink.mails().len(), 1);
        }
    }
}

#[test]
fn a_name_is_checked_as_well() {
    let authority = authority("localhost");
    let sink = authority.sink(Security::Tls);
    let named = SmtpSettings { host: "localhost".into(), ..authority.settings(&sink) };
    deliver(&sender(named)).unwrap();
    let other = sender(authority.settings(&sink));
    let refused = deliver(&other).unwrap_err();
    assert!(
        refused.words().ends_with(
            "its certificate is for another host name; the operator of this server can set smtp_host to that name"
        ),
        "{refused}"
    );
    assert_eq!(sink.mails().len(), 1);
}

#[test]
fn rejects_an_untrusted_certificate() {
    let ours = authority("127.0.0.1");
    let theirs = authority("127.0.0.1");
    for security in [Security::Tls, Security::StartTls] {
        let sink = theirs.sink(security);
        let failure = deliver(&sender(ours.settings(&sink))).unwrap_err();
        assert!(
            matches!(&failure, Failure::Settings(words) if words.contains("can trust it with smtp_ca_file")),
            "{failure:?}"
        );
        assert!(!sink.lines().iter().any(|line| line.starts_with("AUTH")));
    }
}

#[test]
fn starttls_is_never_skipped() {
    let authority = authority("127.0.0.1");
    let sink = authority.sink(Security::None);
    let settings = SmtpSettings { security: Security::StartTls, ..authority.settings(&sink) };
    let failure = deliver(&sender(settings)).unwrap_err();
    assert!(matches!(&failure, Failure::Settings(words) if words.contains("STARTTLS")), "{failure:?}");
    for words in ["454 4.7.0 Not now", "502 5.5.1 Never"] {
        let sink = authority.sink(Security::StartTls);
        sink.rule(Rule::new(Verb::StartTls, Act::answer(words)));
        let failure = deliver(&sender(authority.settings(&sink))).unwrap_err();
        assert!(matches!(failure, Failure::Later(_) | Failure::Settings(_)), "{failure:?}");
        assert_eq!(matches!(failure, Failure::Later(_)), words.starts_with('4'));
        assert!(sink.lines().iter().all(|line| line.starts_with("EHLO") || line == "STARTTLS"));
    }
}

#[test]
fn rejects_data_injected_before_tls() {
    let authority = authority("127.0.0.1");
    let sink = authority.sink(Security::StartTls);
    sink.rule(Rule::new(Verb::StartTls, Act::answer("220 Go ahead\r\n250-me\r\n250 AUTH PLAIN")));
    let failure = deliver(&sender(authority.settings(&sink))).unwrap_err();
    assert!(matches!(&failure, Failure::Settings(words) if words.contains("before TLS began")), "{failure:?}");
}

#[test]
fn reports_a_failed_handshake() {
    let authority = authority("127.0.0.1");
    // A server without TLS: a wrong port.
    let sink = authority.sink(Security::None);
    let settings = SmtpSettings { security: Security::Tls, ..authority.settings(&sink) };
    let failure = deliver(&sender(settings)).unwrap_err();
    assert!(matches!(failure, Failure::Settings(_)), "{failure:?}");
    for (act, words) in [(Act::Silence, "did not respond"), (Act::Close, "closed")] {
        let sink = authority.sink(Security::None);
        sink.rule(Rule::new(Verb::Greeting, act));
        let settings = SmtpSettings { security: Security::Tls, ca_file: authority.ca_file(), ..hasty(&sink) };
        let failure = deliver(&sender(settings)).unwrap_err();
        assert!(matches!(&failure, Failure::Later(said) if said.contains(words)), "{failure:?}");
    }
}

#[test]
fn the_final_dot_counts_under_tls_too() {
    let authority = authority("127.0.0.1");
    for (at, unknown) in [(Verb::End, true), (Verb::Data, false)] {
        let sink = authority.sink(Security::Tls);
        sink.rule(Rule::new(at, Act::Close));
        let failure = deliver(&sender(authority.settings(&sink))).unwrap_err();
        assert_eq!(matches!(failure, Failure::Unknown(_)), unknown, "{failure:?}");
    }
}

#[test]
fn rejects_a_file_without_a_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let ca_file = folder.path().join("ca.pem");
    std::fs::write(&ca_file, "nothing").unwrap();
    let settings = SmtpSettings { ca_file: Some(ca_file), ..SmtpSettings::new("mail.example", 465) };
    let refused = mail::Sender::new(mail::Route::Smtp(settings)).unwrap_err();
    assert!(refused.contains("no certificate"), "{refused}");
}

//! Verifies the server's identity.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// The settings of a handshake.
#[derive(Clone)]
pub(crate) struct Trust {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
}

impl Trust {
    /// Trusts the authorities of this machine, those in `ca_file`, and a server whose own certificate is in `ca_file`.
    pub(crate) fn new(host: &str, ca_file: Option<&Path>) -> Result<Trust, String> {
        let mut roots = RootCertStore::empty();
        // Some certificates of the system's store may be unsupported; the others are still used.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let own = match ca_file {
            Some(path) => add_file(&mut roots, path).map_err(|e| format!("{}: {e}", path.display()))?,
            None => Vec::new(),
        };
        if roots.is_empty() {
            return Err("this machine has no CA certificates (the package is often called ca-certificates), and no certificate file is configured"
                .into());
        }
        let name = match host.is_ascii() {
            true => host.to_owned(),
            false => idna::domain_to_ascii(host).map_err(|_| format!("'{host}' is not a valid host name"))?,
        };
        let name = ServerName::try_from(name).map_err(|_| format!("'{host}' is not a valid host name"))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        let authorities = authorities.build().map_err(|e| e.to_string())?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| e.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Verifier { authorities, own }))
            .with_no_client_auth();
        Ok(Trust { config: Arc::new(config), name })
    }
}

/// Says why a handshake failed, and what the operator can do about it. The texts of the library are those of a debugger.
pub(crate) fn words(error: &rustls::Error) -> String {
    let words = match error {
        rustls::Error::InvalidCertificate(reason) => match reason {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "its certificate is not signed by an authority that this server trusts. If the certificate is your own, the operator of this server can trust it with smtp_ca_file"
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => "its certificate has expired",
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "its certificate is not valid yet; check the clocks of both machines"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "its certificate is for another host name; the operator of this server can set smtp_host to that name"
            }
            CertificateError::Revoked => "its certificate has been revoked",
            // What `openssl req -x509` creates calls itself an authority.
            CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
                "its certificate is self-signed. The operator of this server can trust it with smtp_ca_file"
            }
            _ => {
                "its certificate is invalid. If it is your own, the operator of this server can trust it with smtp_ca_file"
            }
        },
        rustls::Error::InvalidMessage(_) => {
            "it does not answer with TLS; the operator of this server can check smtp_port and smtp_security"
        }
        other => return other.to_string(),
    };
    words.to_string()
}

/// Checks that a file has certificates (PEM).
pub fn check_certificates(path: &Path) -> Result<(), String> {
    add_file(&mut RootCertStore::empty(), path).map(drop)
}

/// Adds the certificates in a file to the authorities, and returns them.
fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let mut own = Vec::new();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|e| e.to_string())? {
        let certificate = certificate.map_err(|e| e.to_string())?;
        own.push(certificate.clone());
        roots.add(certificate).map_err(|e| e.to_string())?;
    }
    if own.is_empty() { Err("the file contains no certificate (PEM)".into()) } else { Ok(own) }
}

/// Accepts what an authority signed, and the certificates of the file as they are. A self-signed certificate usually calls
/// itself an authority, which the check of signatures does not accept of a server, and its name is often another one. Only
/// the server has its key, which the handshake proves.
#[derive(Debug)]
struct Verifier {
    authorities: Arc<WebPkiServerVerifier>,
    own: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.own.contains(certificate) {
            return Ok(ServerCertVerified::assertion());
        }
        self.authorities.verify_server_cert(certificate, others, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

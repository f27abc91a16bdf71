//! TLS for the connections to PostgreSQL: whom we take for the server, and the stream itself.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::TlsConnector;

/// Whose certificates are good.
#[derive(Debug)]
pub(crate) struct Trust {
    /// `None` trusts any certificate: the connection is protected against eavesdropping, but not against a man in the
    /// middle.
    roots: Option<RootCertStore>,
    /// Certificates that are trusted as they are.
    own: Vec<CertificateDer<'static>>,
    /// Whether a certificate must be for the host that we asked for.
    by_name: bool,
}

impl Trust {
    /// Trusts every server.
    pub(crate) fn anybody() -> Trust {
        Trust { roots: None, own: Vec::new(), by_name: false }
    }

    /// Trusts the authorities of this machine.
    pub(crate) fn of_system(by_name: bool) -> Result<Trust, String> {
        let mut roots = RootCertStore::empty();
        // Single certificates of the system's store may be beyond us; that is no reason to refuse the others.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err("this machine has no CA certificates (the package is often called ca-certificates), and sslrootcert is not set"
                .into());
        }
        Ok(Trust { roots: Some(roots), own: Vec::new(), by_name })
    }

    /// Trusts only the certificates in a file (PEM).
    pub(crate) fn of_file(path: &Path, by_name: bool) -> Result<Trust, String> {
        let told = |error: &dyn std::fmt::Display| format!("sslrootcert {}: {error}", path.display());
        let (mut roots, mut own) = (RootCertStore::empty(), Vec::new());
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| told(&error))? {
            let certificate = certificate.map_err(|error| told(&error))?;
            own.push(certificate.clone());
            roots.add(certificate).map_err(|error| told(&error))?;
        }
        if roots.is_empty() {
            return Err(told(&"the file contains no PEM certificate"));
        }
        Ok(Trust { roots: Some(roots), own, by_name })
    }
}

#[derive(Debug)]
struct Verifier {
    trust: Trust,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(roots) = &self.trust.roots else { return Ok(ServerCertVerified::assertion()) };
        let parsed = ParsedCertificate::try_from(certificate)?;
        // A certificate that people made for their own server has signed itself, and often calls
        // itself an authority, which the check of signatures does not accept of a server.
        if !self.trust.own.contains(certificate) {
            verify_server_cert_signed_by_trust_anchor(&parsed, roots, others, now, self.algorithms.all)?;
        }
        if self.trust.by_name {
            verify_server_name(&parsed, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    // Also when any certificate is trusted: a password bound to the certificate (see `end_point`) is only safe with the
    // holder of its key.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Makes handshakes.
#[derive(Clone)]
pub(crate) struct Connector {
    config: Arc<ClientConfig>,
    by_name: bool,
}

impl Connector {
    /// `direct`: without asking in PostgreSQL's own words first whether there is TLS.
    pub(crate) fn new(trust: Trust, direct: bool) -> Result<Connector, String> {
        let provider: CryptoProvider = rustls::crypto::ring::default_provider();
        let by_name = trust.by_name;
        let verifier = Verifier { trust, algorithms: provider.signature_verification_algorithms };
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        if direct {
            config.alpn_protocols = vec![b"postgresql".to_vec()];
        }
        Ok(Connector { config: Arc::new(config), by_name })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Connector {
    type Stream = Stream<S>;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Handshake> {
        let name = match ServerName::try_from(host.to_string()) {
            Ok(name) => name,
            // Asked for every connection, also for those that will have no TLS or check no name.
            Err(_) if !self.by_name => ServerName::from(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
            Err(_) => {
                return Err(io::Error::other(format!("'{host}' is not a name that a certificate can be issued for")));
            }
        };
        Ok(Handshake { connector: TlsConnector::from(self.config.clone()), name })
    }
}

/// A handshake about to be made.
pub(crate) struct Handshake {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Handshake {
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move { Ok(Stream(self.connector.connect(self.name, stream).await?)) })
    }
}

/// A connection with TLS.
pub(crate) struct Stream<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> tokio_postgres::tls::TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        let certificates = self.0.get_ref().1.peer_certificates();
        match certificates.and_then(|all| all.first()).and_then(|certificate| end_point(certificate)) {
            Some(hash) => ChannelBinding::tls_server_end_point(hash),
            None => ChannelBinding::none(),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// Returns the hash of the server's certificate, to which a password is bound so that a man in the middle cannot
/// forward it (RFC 5929, `tls-server-end-point`). Uses the hash function of the certificate's signature, or SHA-256
/// instead of weak ones. `None` for signatures without a suitable hash: the password is then not bound.
fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];
    let (whole, _) = element(certificate)?;
    let (_signed, rest) = element(whole)?;
    let (algorithm, _) = element(rest)?;
    let (id, _) = element(algorithm)?;
    match (id.strip_prefix(RSA), id.strip_prefix(ECDSA)) {
        // With MD5, SHA-1 and SHA-256; with SHA-1 and SHA-256.
        (Some([4 | 5 | 11]), _) | (_, Some([1] | [3, 2])) => Some(Sha256::digest(certificate).to_vec()),
        (Some([12]), _) | (_, Some([3, 3])) => Some(Sha384::digest(certificate).to_vec()),
        (Some([13]), _) | (_, Some([3, 4])) => Some(Sha512::digest(certificate).to_vec()),
        _ => None,
    }
}

/// The contents of the first element of DER, and what follows it.
fn element(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[_tag, first], rest) = bytes.split_first_chunk::<2>()?;
    let (length, rest) = match first {
        ..=0x7f => (usize::from(first), rest),
        // The length of the length, then that.
        0x81..=0x83 => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, SignatureAlgorithm};

    use super::*;

    fn self_signed(algorithm: &'static SignatureAlgorithm) -> (String, CertificateDer<'static>) {
        let mut params = CertificateParams::new(["db.example".to_string()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let made = params.self_signed(&KeyPair::generate_for(algorithm).unwrap()).unwrap();
        (made.pem(), made.der().clone())
    }

    #[test]
    fn trusts_a_self_signed_certificate_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let (pem, own) = self_signed(&rcgen::PKCS_ECDSA_P256_SHA256);
        let (_, other) = self_signed(&rcgen::PKCS_ECDSA_P256_SHA256);
        let file = folder.path().join("own.pem");
        std::fs::write(&file, pem).unwrap();
        let algorithms = rustls::crypto::ring::default_provider().signature_verification_algorithms;
        let verifier = Verifier { trust: Trust::of_file(&file, true).unwrap(), algorithms };
        let passes = |certificate: &CertificateDer, name: &'static str| {
            let name = ServerName::try_from(name).unwrap();
            verifier.verify_server_cert(certificate, &[], &name, &[], UnixTime::now()).is_ok()
        };
        assert!(passes(&own, "db.example"));
        assert!(!passes(&own, "other.example"));
        assert!(!passes(&other, "db.example"));
    }

    #[test]
    fn rejects_a_file_without_certificates() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("empty.pem");
        std::fs::write(&file, "nothing\n").unwrap();
        assert!(Trust::of_file(&file, true).unwrap_err().ends_with("the file contains no PEM certificate"));
    }

    #[test]
    fn the_hash_is_the_one_of_the_signature() {
        for (algorithm, bytes) in
            [(&rcgen::PKCS_ECDSA_P256_SHA256, Some(32)), (&rcgen::PKCS_ECDSA_P384_SHA384, Some(48))]
        {
            assert_eq!(end_point(&self_signed(algorithm).1).map(|hash| hash.len()), bytes);
        }
        assert_eq!(end_point(&self_signed(&rcgen::PKCS_ED25519).1), None);
        assert_eq!(end_point(b""), None);
        assert_eq!(end_point(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
    }
}

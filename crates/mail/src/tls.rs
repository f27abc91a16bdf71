//! Verifies the server's identity.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

/// The settings of a handshake.
#[derive(Clone)]
pub(crate) struct Trust {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
}

impl Trust {
    /// Trusts the authorities of this machine, and those in `ca_file`.
    pub(crate) fn new(host: &str, ca_file: Option<&Path>) -> Result<Trust, String> {
        let mut roots = RootCertStore::empty();
        // Some certificates of the system's store may be unsupported; the others are still used.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(path) = ca_file {
            add_file(&mut roots, path).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        if roots.is_empty() {
            return Err("this machine has no CA certificates (the package is often called ca-certificates), and no certificate file is configured"
                .into());
        }
        let name = match host.is_ascii() {
            true => host.to_owned(),
            false => idna::domain_to_ascii(host).map_err(|_| format!("'{host}' is not a valid host name"))?,
        };
        let name = ServerName::try_from(name).map_err(|_| format!("'{host}' is not a valid host name"))?;
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|e| e.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Trust { config: Arc::new(config), name })
    }
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), String> {
    let mut found = false;
    for certificate in CertificateDer::pem_file_iter(path).map_err(|e| e.to_string())? {
        roots.add(certificate.map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
        found = true;
    }
    if found { Ok(()) } else { Err("the file contains no certificate (PEM)".into()) }
}

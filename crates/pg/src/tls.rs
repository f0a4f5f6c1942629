//! TLS to the database, with rustls. The cryptography is that of `ring`: it builds without cmake and C++.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{DatabaseError, DatabaseTrouble};

/// How TLS is used, from the weakest to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TlsMode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl TlsMode {
    pub const WORDS: &[&str] = &["disable", "prefer", "require", "verify-ca", "verify-full"];
    const ALL: [TlsMode; 5] =
        [TlsMode::Disable, TlsMode::Prefer, TlsMode::Require, TlsMode::VerifyCa, TlsMode::VerifyFull];

    pub fn from_word(word: &str) -> Option<TlsMode> {
        TlsMode::ALL.into_iter().find(|mode| TlsMode::WORDS[*mode as usize] == word)
    }
}

/// The certificates that are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Roots {
    None,
    /// Those of the operating system.
    System,
    File(PathBuf),
}

/// Returns what makes TLS connections. Reads the trusted certificates.
pub(crate) fn connector(mode: TlsMode, roots: &Roots) -> Result<MakeRustlsConnect, DatabaseError> {
    let provider = Arc::new(ring::default_provider());
    let trusted = load(roots)?;
    let mut anchors = RootCertStore::empty();
    anchors.add_parsable_certificates(trusted.iter().cloned());
    let verifier = Verifier { mode, anchors, trusted, provider: provider.clone() };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| tls_error(&error))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn tls_error(reason: &dyn std::fmt::Display) -> DatabaseError {
    DatabaseTrouble::Tls { reason: reason.to_string() }.into()
}

fn load(roots: &Roots) -> Result<Vec<CertificateDer<'static>>, DatabaseError> {
    let (place, found) = match roots {
        Roots::None => return Ok(Vec::new()),
        // Certificates that cannot be read are left out; the others may be enough.
        Roots::System => {
            (String::from("the operating system"), rustls_native_certs::load_native_certs().certs)
        }
        Roots::File(path) => {
            let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
            (
                path.display().to_string(),
                read.map_err(|error| tls_error(&format!("{}: {error}", path.display())))?,
            )
        }
    };
    if found.is_empty() {
        return Err(tls_error(&format!(
            "{place} has no certificates of authorities; name a file with sslrootcert"
        )));
    }
    Ok(found)
}

/// Checks the certificate of a server as far as the mode asks for.
#[derive(Debug)]
struct Verifier {
    mode: TlsMode,
    anchors: RootCertStore,
    /// The certificates of `anchors`.
    trusted: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.mode >= TlsMode::VerifyCa {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            // A server may have a certificate that it signed itself. It is trusted if it is one of the roots.
            if !self.trusted.contains(end_entity) {
                let algorithms = self.provider.signature_verification_algorithms.all;
                verify_server_cert_signed_by_trust_anchor(
                    &certificate,
                    &self.anchors,
                    intermediates,
                    now,
                    algorithms,
                )?;
            }
            if self.mode == TlsMode::VerifyFull {
                verify_server_name(&certificate, server_name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

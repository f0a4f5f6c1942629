//! The certificate and the key of a server, which can be replaced while it runs. The cryptography is that of `ring`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The files of a certificate and its key.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate of the server, then those of its intermediate authorities, as PEM.
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// Why a certificate and its key cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", file.display())]
pub struct TlsError {
    pub file: PathBuf,
    pub reason: String,
}

/// The certificate and the key in use.
pub struct TlsPair {
    files: TlsFiles,
    current: RwLock<Arc<ServerConfig>>,
}

impl TlsPair {
    pub fn load(files: TlsFiles) -> Result<TlsPair, TlsError> {
        let current = RwLock::new(read(&files)?);
        Ok(TlsPair { files, current })
    }

    /// Reads both files again, for new connections. If they cannot be used, the pair in use stays.
    pub fn reload(&self) -> Result<(), TlsError> {
        let new = read(&self.files)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn read(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let certs: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect)
        .map_err(|error| pem_error(&files.cert, &error))?;
    if certs.is_empty() {
        return Err(pem_error(&files.cert, &PemError::NoItemsFound));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| pem_error(&files.key, &error))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map(|builder| builder.with_no_client_auth())
        .and_then(|builder| builder.with_single_cert(certs, key))
        .map_err(|error| TlsError { file: files.cert.clone(), reason: error.to_string() })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Describes an error without the content of the file.
fn pem_error(file: &Path, error: &PemError) -> TlsError {
    let reason = match error {
        PemError::Io(error) => error.to_string(),
        PemError::NoItemsFound => String::from("the file has no PEM section of this kind"),
        _ => String::from("the file is not valid PEM"),
    };
    TlsError { file: file.to_owned(), reason }
}

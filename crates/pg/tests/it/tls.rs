//! TLS to a server with a certificate of an own authority, and to one without TLS.

use std::net::TcpListener;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tanmi_base::fs;
use tanmi_pg::{Address, DatabaseError, DatabaseTrouble, migrate};

use crate::cluster::{Cluster, hand_over};

/// The names that the certificate of the server is valid for.
const NAMES: &[&str] = &["localhost"];

/// Certificates in files.
struct Certificates {
    authority: std::path::PathBuf,
    stranger: std::path::PathBuf,
}

impl Certificates {
    /// Creates an authority and a stranger in `dir`, and a certificate of the authority for a server in `data`.
    fn create(dir: &Path, data: &Path) -> Certificates {
        let issuer = || {
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
        };
        let (authority, stranger) = (issuer(), issuer());
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = NAMES.iter().map(|name| (*name).to_owned()).collect();
        let server = CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
        let write = |path: &Path, text: &str| {
            fs::write_private(path, text.as_bytes()).unwrap();
        };
        write(&data.join("server.crt"), &server.pem());
        write(&data.join("server.key"), &key.serialize_pem());
        hand_over(&data.join("server.crt"), 0o600);
        hand_over(&data.join("server.key"), 0o600);
        let files = Certificates { authority: dir.join("authority.pem"), stranger: dir.join("stranger.pem") };
        write(&files.authority, &authority.pem());
        write(&files.stranger, &stranger.pem());
        files
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn connect(port: u16, host: &str, options: &str) -> Result<(), DatabaseTrouble> {
    let text = format!("postgres://tanmi@{host}:{port}/postgres?{options}");
    match migrate(&Address::parse(&text).unwrap()) {
        Ok(()) => Ok(()),
        Err(DatabaseError::Trouble(trouble)) => Err(trouble),
        Err(other) => panic!("{other}"),
    }
}

/// Returns the reason of a refused certificate.
fn refusal(port: u16, host: &str, options: &str) -> String {
    match connect(port, host, options) {
        Err(DatabaseTrouble::Tls { reason }) => reason,
        other => panic!("{options}: {other:?}"),
    }
}

#[test]
fn server_with_certificate_is_checked_as_the_mode_asks() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let settings = ["listen_addresses=127.0.0.1", &format!("port={port}"), "ssl=on"];
    let mut files = None;
    // Without TLS the server refuses connections over the network.
    let prepare = |data: &Path| {
        files = Some(Certificates::create(dir.path(), data));
        let rules = "local all all trust\nhostssl all all 127.0.0.1/32 trust\n";
        fs::write_private(&data.join("pg_hba.conf"), rules.as_bytes()).unwrap();
        hand_over(&data.join("pg_hba.conf"), 0o600);
    };
    let Some(cluster) = Cluster::start_with(&settings, prepare) else { return };
    let files = files.unwrap();
    let root = |path: &Path| format!("sslrootcert={}", path.display());
    let (known, unknown) = (root(&files.authority), root(&files.stranger));

    for options in ["sslmode=prefer", "sslmode=require", ""] {
        connect(port, "localhost", options).unwrap();
    }
    assert!(matches!(
        connect(port, "localhost", "sslmode=disable"),
        Err(DatabaseTrouble::LoginRefused { .. })
    ));
    connect(port, "localhost", &format!("sslmode=verify-full&{known}")).unwrap();
    connect(port, "localhost", &known).unwrap();
    connect(port, "127.0.0.1", &format!("sslmode=verify-ca&{known}")).unwrap();
    connect(port, "127.0.0.1", &format!("sslmode=require&{known}")).unwrap();
    let reason = refusal(port, "127.0.0.1", &format!("sslmode=verify-full&{known}"));
    assert!(reason.contains("not valid for name"), "{reason}");
    for mode in ["verify-full", "verify-ca", "require"] {
        let reason = refusal(port, "localhost", &format!("sslmode={mode}&{unknown}"));
        assert!(reason.contains("invalid peer certificate"), "{mode}: {reason}");
    }
    let own = root(&cluster.data().join("server.crt"));
    connect(port, "localhost", &format!("sslmode=verify-full&{own}")).unwrap();
    let missing = refusal(port, "localhost", "sslmode=verify-full&sslrootcert=/nonexistent.pem");
    assert!(missing.contains("/nonexistent.pem"), "{missing}");
    let empty = dir.path().join("empty.pem");
    fs::write_private(&empty, b"").unwrap();
    let empty = refusal(port, "localhost", &format!("sslmode=verify-ca&{}", root(&empty)));
    assert!(empty.contains("has no certificates"), "{empty}");
}

#[test]
fn server_without_tls_is_refused_unless_the_address_allows_it() {
    let port = free_port();
    let settings = ["listen_addresses=127.0.0.1", &format!("port={port}")];
    let Some(_cluster) = Cluster::start_with(&settings, |_| {}) else { return };
    for options in ["sslmode=disable", "sslmode=prefer", ""] {
        connect(port, "localhost", options).unwrap();
    }
    assert_eq!(connect(port, "localhost", "sslmode=require"), Err(DatabaseTrouble::NoTls));
}

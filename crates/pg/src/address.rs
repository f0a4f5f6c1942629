//! The address of a database: parses it, completes its password, and connects.
//!
//! An address is a URL or a list of `key=value` pairs, as `psql` takes it. The options about TLS mean what
//! they mean there:
//!
//! - `sslmode=disable`: without TLS. `prefer`: with TLS if the server offers it. `require`: with TLS, without a check who the
//!   server is. `verify-ca`: its certificate must be signed by a known authority. `verify-full`: it must also be valid for
//!   the name of the host.
//! - `sslrootcert=FILE`: the certificates of the authorities, or that of the server itself. `sslrootcert=system`: those of the
//!   operating system.
//!
//! Three defaults are stricter than those of `psql`. Without `sslmode`, a host that is not this machine needs
//! TLS (`require`); a trusted network without TLS is named by `sslmode=disable`. Without `sslmode`, an
//! address with `sslrootcert` is checked with `verify-full`. `verify-ca` and `verify-full` without
//! `sslrootcert` use the authorities of the operating system: they are kept up to date there, and an
//! administrator can add one. A socket of this machine never uses TLS.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Config, NoTls};

use crate::connection::{Connection, Link};
use crate::error::DatabaseError;
use crate::tls::{self, Roots, TlsMode};

mod options;
mod passfile;

pub use passfile::find_password;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// After this time without an answer from its network, a connection is closed.
const NETWORK_TIMEOUT: Duration = Duration::from_secs(10);
const KEEPALIVE: Duration = Duration::from_secs(30);
const DEFAULT_PORT: u16 = 5432;

/// Where the database is, and as whom to connect. Its texts (`Display` and `Debug`) do not contain the password.
#[derive(Clone)]
pub struct Address {
    config: Config,
    tls: TlsMode,
    roots: Roots,
    passfile: Option<PathBuf>,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, port) = self.first_host();
        let user = self.config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        write!(f, "postgres://{user}{host}:{port}/{}", self.config.get_dbname().unwrap_or_default())
    }
}

impl Address {
    /// Parses a URL (`postgres://user@host/database`) or a list of `key=value` pairs. Reads no file.
    pub fn parse(text: &str) -> Result<Address, DatabaseError> {
        let (rest, options) = options::split(text).map_err(DatabaseError::Address)?;
        let mut config: Config =
            rest.parse().map_err(|error: tokio_postgres::Error| DatabaseError::Address(cause_of(&error)))?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(NETWORK_TIMEOUT);
        }
        config.keepalives_idle(KEEPALIVE);
        config.application_name("tanmi");
        let (tls, roots) = options.tls(is_local(&config)).map_err(DatabaseError::Address)?;
        Ok(Address { config, tls, roots, passfile: options.passfile.map(PathBuf::from) })
    }

    /// Returns whether the address contains a password.
    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    /// Returns the address with the password from a passfile (`PGPASSFILE` or `~/.pgpass`), unless it has
    /// one. A file that the address names comes before `default`. A file that other users can read is
    /// refused.
    pub fn with_passfile(mut self, default: Option<&Path>) -> Result<Address, DatabaseError> {
        let Some(path) =
            self.passfile.as_deref().or(default).filter(|_| self.config.get_password().is_none())
        else {
            return Ok(self);
        };
        let Some(text) = passfile::read(path)? else { return Ok(self) };
        let (host, port) = self.first_host();
        let user = self.config.get_user().unwrap_or_default();
        let database = self.config.get_dbname().unwrap_or(user);
        if let Some(password) = find_password(&text, &host, port, database, user) {
            self.config.password(password);
        }
        Ok(self)
    }

    /// Opens a connection that takes `role`, if one is given.
    pub(crate) fn connect(&self, role: Option<&str>) -> Result<Connection, DatabaseError> {
        Connection::open(self.open()?, role)
    }

    fn open(&self) -> Result<Link, DatabaseError> {
        let mut config = self.config.clone();
        config.ssl_mode(match self.tls {
            TlsMode::Disable => SslMode::Disable,
            TlsMode::Prefer => SslMode::Prefer,
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => SslMode::Require,
        });
        // The driver limits how long each host takes to accept the connection, and not how long it takes to greet.
        let hosts = config.get_hosts().len().max(config.get_hostaddrs().len()).max(1) as u32;
        let limit = config.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT) * hosts;
        match self.tls {
            TlsMode::Disable => Ok(Link::connect(limit, config.connect(NoTls))?),
            mode => Ok(Link::connect(limit, config.connect(tls::connector(mode, &self.roots)?))?),
        }
    }

    /// Returns the first host, as a passfile names it, and its port.
    fn first_host(&self) -> (String, u16) {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(name)) => name.clone(),
            #[cfg(unix)]
            Some(Host::Unix(path)) => path.display().to_string(),
            None => self.config.get_hostaddrs().first().map(IpAddr::to_string).unwrap_or_default(),
        };
        (host, self.config.get_ports().first().copied().unwrap_or(DEFAULT_PORT))
    }
}

/// Where the servers of an address are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Locality {
    /// Sockets in the file system.
    Socket,
    Loopback,
    Remote,
}

fn is_local(config: &Config) -> Locality {
    let is_loopback =
        |name: &str| name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let addresses = config.get_hostaddrs();
    if !addresses.is_empty() {
        let is_loopback = addresses.iter().all(IpAddr::is_loopback);
        return if is_loopback { Locality::Loopback } else { Locality::Remote };
    }
    let localities = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) if is_loopback(name) => Locality::Loopback,
        Host::Tcp(_) => Locality::Remote,
        #[cfg(unix)]
        Host::Unix(_) => Locality::Socket,
    });
    let localities: Vec<Locality> = localities.collect();
    let has = |locality: Locality| localities.contains(&locality);
    match (has(Locality::Remote), has(Locality::Loopback)) {
        (true, _) => Locality::Remote,
        (false, true) => Locality::Loopback,
        (false, false) => Locality::Socket,
    }
}

/// Returns what is wrong with an address. The first line of the driver's error does not repeat the text.
fn cause_of(error: &tokio_postgres::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), |source| source.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tls_of(text: &str) -> Result<(TlsMode, Roots), String> {
        let address = Address::parse(text).map_err(|error| error.to_string())?;
        Ok((address.tls, address.roots))
    }

    #[test]
    fn tls_mode_follows_options_and_host() {
        let file = || Roots::File(PathBuf::from("/etc/a b.pem"));
        let cases: &[(&str, TlsMode, Roots)] = &[
            ("postgres://u@localhost/d", TlsMode::Prefer, Roots::None),
            ("postgres://u@[::1]/d", TlsMode::Prefer, Roots::None),
            ("host=/run/postgresql user=u", TlsMode::Disable, Roots::None),
            ("host=/run/postgresql user=u sslmode=require", TlsMode::Disable, Roots::None),
            ("postgres://u@db.example/d", TlsMode::Require, Roots::None),
            ("postgres://u@localhost,db.example/d", TlsMode::Require, Roots::None),
            ("host=localhost hostaddr=192.0.2.1 user=u", TlsMode::Require, Roots::None),
            ("postgres://u@db.example/d?sslmode=disable", TlsMode::Disable, Roots::None),
            ("postgres://u@db.example/d?sslmode=prefer&connect_timeout=3", TlsMode::Prefer, Roots::None),
            ("postgres://u@db.example/d?sslrootcert=%2Fetc%2Fa%20b.pem", TlsMode::VerifyFull, file()),
            ("host=db.example user=u sslmode=require sslrootcert='/etc/a b.pem'", TlsMode::VerifyCa, file()),
            ("host = db.example user = u sslmode = verify-ca", TlsMode::VerifyCa, Roots::System),
            ("postgres://u@localhost/d?sslmode=verify-full", TlsMode::VerifyFull, Roots::System),
            ("postgres://u@db.example/d?sslrootcert=system", TlsMode::VerifyFull, Roots::System),
        ];
        for (text, mode, roots) in cases {
            assert_eq!(tls_of(text), Ok((*mode, roots.clone())), "{text}");
        }
    }

    #[test]
    fn bad_options_are_refused_without_repeating_the_address() {
        for (text, reason) in [
            (
                "postgres://u:hush@db.example/d?sslmode=strict",
                "disable, prefer, require, verify-ca, verify-full",
            ),
            ("host=db password=hush sslmode=require sslrootcert=system", "verify-full"),
            ("host=db password=hush sslmode", "sslmode"),
            ("host=db password='hush", "quote"),
            ("postgres://u:hush@db/d?sslcert=/x", "sslcert"),
        ] {
            let error = tls_of(text).unwrap_err();
            assert!(error.contains(reason) && !error.contains("hush"), "{text}: {error}");
        }
    }

    #[test]
    fn texts_of_an_address_have_no_password() {
        for (text, want) in [
            ("postgres://ada:hush@db.example:6432/app", "postgres://ada@db.example:6432/app"),
            ("host=/run/pg user=ada password=hush dbname=app", "postgres://ada@/run/pg:5432/app"),
            ("postgres://ada:hush@[::1]/app", "postgres://ada@[::1]:5432/app"),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.to_string(), want);
            assert_eq!(format!("{address:?}"), format!("Address({want})"));
        }
    }

    #[test]
    fn passfile_completes_an_address_without_password() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pass");
        tanmi_base::fs::write_private(&path, b"db:5432:app:ada:from file\n").unwrap();
        let password = |text: &str, default: Option<&Path>| {
            let address = Address::parse(text).unwrap().with_passfile(default);
            address.map(|address| address.config.get_password().map(<[u8]>::to_vec))
        };
        let from_file = Some(b"from file".to_vec());
        assert_eq!(password("postgres://ada@db/app", Some(&path)).unwrap(), from_file);
        assert_eq!(password("postgres://ada@db/other", Some(&path)).unwrap(), None);
        assert_eq!(password("postgres://ada:own@db/app", Some(&path)).unwrap(), Some(b"own".to_vec()));
        assert_eq!(password("postgres://ada@db/app", Some(&dir.path().join("none"))).unwrap(), None);
        let named = format!("host=db user=ada dbname=app passfile='{}'", path.display());
        assert_eq!(password(&named, None).unwrap(), from_file);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
            let error = password("postgres://ada@db/app", Some(&path)).unwrap_err().to_string();
            assert!(error.contains("chmod 600"), "{error}");
        }
    }
}

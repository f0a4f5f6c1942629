//! The kinds of trouble with a database.

use tanmi_base::{Bilingual, Lang};
use tanmi_workspace::error::{Error, UnavailableCause};

use super::{PLACE, describe};
use crate::schema::APP_ROLE;

/// What is wrong with the database.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text().en)]
pub enum DatabaseTrouble {
    /// It does not answer, is starting or is shutting down.
    Away,
    LoginRefused {
        reason: String,
    },
    /// The server does not offer TLS, and the address asks for it.
    NoTls,
    /// The certificate of the server does not fit, or a file of certificates cannot be used.
    Tls {
        reason: String,
    },
    /// A statement or the wait for a lock took too long.
    Slow,
    /// Every connection of this process is in use.
    PoolBusy,
    /// The server accepts no further connection.
    TooManyConnections,
    ReadOnly,
    DiskFull,
    MissingSchema,
    OlderSchema {
        found: i32,
        known: i32,
    },
    NewerSchema {
        found: i32,
        known: i32,
    },
    /// The role of the program would see the rows of every project.
    UnsafeRole,
    /// The role may not do what the program needs.
    NotAllowed {
        reason: String,
    },
    Other {
        reason: String,
    },
}

impl DatabaseTrouble {
    /// Returns a code that stays the same.
    pub fn code(&self) -> &'static str {
        match self {
            DatabaseTrouble::Away => "DATABASE_AWAY",
            DatabaseTrouble::LoginRefused { .. } => "DATABASE_LOGIN",
            DatabaseTrouble::NoTls | DatabaseTrouble::Tls { .. } => "DATABASE_TLS",
            DatabaseTrouble::Slow => "DATABASE_SLOW",
            DatabaseTrouble::PoolBusy | DatabaseTrouble::TooManyConnections => "DATABASE_BUSY",
            DatabaseTrouble::ReadOnly => "DATABASE_READ_ONLY",
            DatabaseTrouble::DiskFull => "DATABASE_FULL",
            DatabaseTrouble::MissingSchema
            | DatabaseTrouble::OlderSchema { .. }
            | DatabaseTrouble::NewerSchema { .. } => "DATABASE_SCHEMA",
            DatabaseTrouble::UnsafeRole | DatabaseTrouble::NotAllowed { .. } => "DATABASE_ROLE",
            DatabaseTrouble::Other { .. } => "DATABASE",
        }
    }

    /// Returns whether the same call can succeed in a moment although no person changes anything. A server that is
    /// read-only may be about to take over from another one.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            DatabaseTrouble::Away
                | DatabaseTrouble::Slow
                | DatabaseTrouble::PoolBusy
                | DatabaseTrouble::TooManyConnections
                | DatabaseTrouble::ReadOnly
        )
    }

    /// Returns what is wrong, in one sentence.
    pub fn message(&self, lang: Lang) -> String {
        let (zh, en) = match self {
            DatabaseTrouble::Away => ("数据库没有响应", "the database does not answer"),
            DatabaseTrouble::LoginRefused { reason } => {
                return lang.pick(
                    format!("数据库拒绝登录：{reason}"),
                    format!("the database refused the login: {reason}"),
                );
            }
            DatabaseTrouble::NoTls => ("数据库服务器不提供 TLS", "the database server does not offer TLS"),
            DatabaseTrouble::Tls { reason } => {
                let en = format!("no secure connection to the database: {reason}");
                return lang.pick(format!("无法与数据库建立安全连接：{reason}"), en);
            }
            DatabaseTrouble::Slow => (
                "数据库太慢，或另一个事务持有锁",
                "the database is too slow, or another transaction holds the lock",
            ),
            DatabaseTrouble::PoolBusy => {
                ("所有数据库连接都在使用中", "every connection to the database is in use")
            }
            DatabaseTrouble::TooManyConnections => {
                ("数据库不再接受连接", "the database accepts no further connection")
            }
            DatabaseTrouble::ReadOnly => ("数据库是只读的", "the database is read-only"),
            DatabaseTrouble::DiskFull => ("数据库的磁盘已满", "the disk of the database is full"),
            DatabaseTrouble::MissingSchema => {
                ("数据库中没有 Tanmi 的表", "the database has no tables of Tanmi")
            }
            DatabaseTrouble::OlderSchema { found, known } => {
                let en =
                    format!("the schema of the database has version {found}, and this program needs {known}");
                return lang.pick(format!("数据库结构的版本是 {found}，此程序需要 {known}"), en);
            }
            DatabaseTrouble::NewerSchema { found, known } => {
                let en =
                    format!("the schema has version {found}, and this program knows versions up to {known}");
                return lang.pick(format!("数据库结构的版本是 {found}，此程序最高支持 {known}"), en);
            }
            DatabaseTrouble::UnsafeRole => (
                "角色 tanmi_app 可以绕过行级安全，会看到所有项目",
                "the role tanmi_app can bypass row-level security and would see every project",
            ),
            DatabaseTrouble::NotAllowed { reason } => {
                let en = format!("the database does not allow it: {reason}");
                return lang.pick(format!("数据库不允许：{reason}"), en);
            }
            DatabaseTrouble::Other { reason } => {
                let en = format!("the database cannot be used: {reason}");
                return lang.pick(format!("无法使用数据库：{reason}"), en);
            }
        };
        lang.pick(zh, en).to_owned()
    }

    /// Returns what to do.
    pub fn hint(&self, lang: Lang) -> &'static str {
        let (zh, en) = match self {
            DatabaseTrouble::Away => {
                ("启动它，或检查地址和网络", "start it, or check the address and the network")
            }
            DatabaseTrouble::LoginRefused { .. } => (
                "检查用户、密码、数据库名和 pg_hba.conf",
                "check the user, the password, the name of the database and pg_hba.conf",
            ),
            DatabaseTrouble::NoTls => (
                "在服务器上打开 TLS（ssl = on）；若网络可信，在地址中加上 sslmode=disable",
                "turn TLS on at the server (ssl = on), or add sslmode=disable to the address if the network is trusted",
            ),
            DatabaseTrouble::Tls { .. } => (
                "用 sslrootcert=FILE 指定颁发机构的证书，并使用证书中的主机名",
                "name the certificate of the authority with sslrootcert=FILE, and use the host name of the certificate",
            ),
            DatabaseTrouble::Slow | DatabaseTrouble::PoolBusy => ("稍后重试", "retry in a moment"),
            DatabaseTrouble::TooManyConnections => {
                ("稍后重试，或提高 max_connections", "retry in a moment, or raise max_connections")
            }
            DatabaseTrouble::ReadOnly => {
                ("连接主服务器，或结束只读模式", "connect to the primary server, or end the read-only mode")
            }
            DatabaseTrouble::DiskFull => ("在服务器上释放空间", "free space on the server"),
            DatabaseTrouble::MissingSchema | DatabaseTrouble::OlderSchema { .. } => {
                ("运行 `tanmi team setup`", "run `tanmi team setup`")
            }
            DatabaseTrouble::NewerSchema { .. } => ("更新此程序", "update the program"),
            DatabaseTrouble::UnsafeRole => (
                "运行 `ALTER ROLE tanmi_app NOSUPERUSER NOBYPASSRLS`",
                "run `ALTER ROLE tanmi_app NOSUPERUSER NOBYPASSRLS`",
            ),
            DatabaseTrouble::NotAllowed { .. } => (
                "以表的所有者身份运行 `tanmi team setup`",
                "run `tanmi team setup` as the owner of the tables",
            ),
            DatabaseTrouble::Other { .. } => ("查看数据库的日志", "look at the log of the database"),
        };
        lang.pick(zh, en)
    }

    /// Returns what is wrong and what to do.
    pub(crate) fn text(&self) -> Bilingual {
        let line = |lang: Lang| format!("{}{}{}", self.message(lang), lang.pick("；", "; "), self.hint(lang));
        Bilingual::new(line(Lang::Zh), line(Lang::En))
    }

    /// Returns the trouble behind the error of a store, if the database is the reason.
    pub fn of(error: &Error) -> Option<DatabaseTrouble> {
        match error {
            Error::Unavailable { cause: UnavailableCause::Io(error), .. } => {
                std::error::Error::source(error)?.downcast_ref::<DatabaseTrouble>().cloned()
            }
            Error::Unavailable { place, cause: UnavailableCause::Busy } if place == PLACE => {
                Some(DatabaseTrouble::Slow)
            }
            _ => None,
        }
    }

    /// Returns the trouble behind an error of the driver.
    pub(crate) fn of_driver(error: &tokio_postgres::Error) -> DatabaseTrouble {
        let reason = || describe(error);
        let Some(db) = error.as_db_error() else { return of_connection(error) };
        match db.code().code() {
            "28000" | "28P01" | "3D000" => DatabaseTrouble::LoginRefused { reason: reason() },
            "55P03" | "57014" => DatabaseTrouble::Slow,
            "25006" => DatabaseTrouble::ReadOnly,
            "53100" => DatabaseTrouble::DiskFull,
            "53300" => DatabaseTrouble::TooManyConnections,
            "57P01" | "57P02" | "57P03" => DatabaseTrouble::Away,
            "42P01" | "42703" | "3F000" => DatabaseTrouble::MissingSchema,
            // The role of the program does not exist.
            "22023" if db.message().contains(APP_ROLE) => DatabaseTrouble::MissingSchema,
            "42501" => DatabaseTrouble::NotAllowed { reason: reason() },
            code if code.starts_with("08") => DatabaseTrouble::Away,
            _ => DatabaseTrouble::Other { reason: reason() },
        }
    }
}

/// Returns the trouble behind an error that does not come from the server. The driver tells these apart only by their
/// texts.
fn of_connection(error: &tokio_postgres::Error) -> DatabaseTrouble {
    let source = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    match error.to_string().as_str() {
        "error performing TLS handshake" if source == "server does not support TLS" => DatabaseTrouble::NoTls,
        "error performing TLS handshake" => DatabaseTrouble::Tls { reason: source },
        "authentication error" => DatabaseTrouble::LoginRefused { reason: source },
        "invalid configuration" if source.contains("password") => {
            DatabaseTrouble::LoginRefused { reason: source }
        }
        "connection closed"
        | "error communicating with the server"
        | "error connecting to server"
        | "timeout waiting for server" => DatabaseTrouble::Away,
        _ => DatabaseTrouble::Other { reason: describe(error) },
    }
}

//! Every answer other than success: a code, what is wrong and what to do, as JSON.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};
use tanmi_base::{Interface, Lang};
use tanmi_pg::{AdminError, DatabaseError, DatabaseTrouble, Role, RunError};
use tanmi_workspace::error::Error;

use crate::http::responses;

/// How long a caller waits before it tries again, in seconds.
const RETRY_AFTER: u64 = 2;

/// Why a request was not carried out.
#[derive(Debug)]
pub enum Refusal {
    NoToken,
    UnknownToken,
    NotMember {
        project: String,
    },
    SeveralProjects {
        names: Vec<String>,
    },
    Forbidden {
        has: Role,
        needs: Role,
    },
    /// A page of another site made the browser send the request.
    ForeignOrigin,
    /// The token made more requests than it may.
    TooManyRequests {
        seconds: u64,
    },
    /// The address tried too many unknown tokens.
    TooManyLogins {
        seconds: u64,
    },
    NotFound,
    WrongMethod,
    TooLarge,
    Invalid {
        field: &'static str,
        reason: String,
    },
    UnknownCommand {
        word: String,
    },
    Run(Box<RunError>),
    Admin(AdminError),
    Database(DatabaseError),
    Internal,
}

impl From<RunError> for Refusal {
    fn from(error: RunError) -> Refusal {
        Refusal::Run(Box::new(error))
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        RunError::Store(error).into()
    }
}

impl From<DatabaseError> for Refusal {
    fn from(error: DatabaseError) -> Refusal {
        Refusal::Database(error)
    }
}

impl From<AdminError> for Refusal {
    fn from(error: AdminError) -> Refusal {
        match error {
            AdminError::Database(error) => Refusal::Database(error),
            other => Refusal::Admin(other),
        }
    }
}

impl Refusal {
    pub fn invalid(field: &'static str, reason: String) -> Refusal {
        Refusal::Invalid { field, reason }
    }

    /// Returns the response, in English if the request asked for no language.
    pub fn respond(self, lang: Option<Lang>) -> Response {
        let wait = match self {
            Refusal::TooManyRequests { seconds } | Refusal::TooManyLogins { seconds } => Some(seconds),
            _ => None,
        };
        let (status, error) = self.describe(lang.unwrap_or(Lang::En));
        let mut response = responses::json(status, &json!({"error": error}));
        let extra: Option<(HeaderName, HeaderValue)> = match status {
            StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
            StatusCode::SERVICE_UNAVAILABLE => Some((header::RETRY_AFTER, RETRY_AFTER.into())),
            _ => wait.map(|seconds| (header::RETRY_AFTER, seconds.into())),
        };
        if let Some((name, value)) = extra {
            response.headers_mut().insert(name, value);
        }
        response
    }

    fn describe(self, lang: Lang) -> (StatusCode, Value) {
        let error = |code: &str, zh: String, en: String| json!({"code": code, "message": lang.pick(zh, en)});
        match self {
            Refusal::NoToken => (
                StatusCode::UNAUTHORIZED,
                error(
                    "UNAUTHORIZED",
                    String::from("请求没有令牌；请发送 Authorization: Bearer tnm_…"),
                    String::from("the request has no token; send Authorization: Bearer tnm_…"),
                ),
            ),
            Refusal::UnknownToken => (
                StatusCode::UNAUTHORIZED,
                error(
                    "UNAUTHORIZED",
                    String::from(
                        "令牌未知、已过期或已撤销；请向管理员索取新的令牌（tanmi team token create）",
                    ),
                    String::from(
                        "the token is unknown, expired or revoked; ask an admin for a new one (tanmi team token create)",
                    ),
                ),
            ),
            Refusal::NotMember { project } => (
                StatusCode::NOT_FOUND,
                error(
                    "PROJECT_NOT_FOUND",
                    format!("没有项目 {project:?}，或者你不是它的成员"),
                    format!("there is no project {project:?}, or you are not a member of it"),
                ),
            ),
            Refusal::SeveralProjects { names } => (
                StatusCode::BAD_REQUEST,
                error(
                    "PROJECT_REQUIRED",
                    format!("你有多个项目；请在查询中用 project= 指定其一：{}", names.join("、")),
                    format!(
                        "you have several projects; name one in the query with project=: {}",
                        names.join(", ")
                    ),
                ),
            ),
            Refusal::Forbidden { has, needs } => (
                StatusCode::FORBIDDEN,
                error(
                    "FORBIDDEN",
                    format!("此请求需要角色 {}，令牌的角色是 {}", needs.as_str(), has.as_str()),
                    format!(
                        "the request needs the role {}, and the token has the role {}",
                        needs.as_str(),
                        has.as_str()
                    ),
                ),
            ),
            Refusal::ForeignOrigin => (
                StatusCode::FORBIDDEN,
                error(
                    "FOREIGN_ORIGIN",
                    String::from("不允许跨源请求"),
                    String::from("cross-origin requests are not allowed"),
                ),
            ),
            Refusal::TooManyRequests { seconds } => (
                StatusCode::TOO_MANY_REQUESTS,
                error(
                    "TOO_MANY",
                    format!("此令牌的请求过多；请在 {seconds} 秒后重试"),
                    format!("too many requests with this token; try again in {seconds} s"),
                ),
            ),
            Refusal::TooManyLogins { seconds } => (
                StatusCode::TOO_MANY_REQUESTS,
                error(
                    "TOO_MANY",
                    format!("此地址尝试了太多未知令牌；请在 {seconds} 秒后重试"),
                    format!("too many unknown tokens from this address; try again in {seconds} s"),
                ),
            ),
            Refusal::NotFound => (
                StatusCode::NOT_FOUND,
                error("NOT_FOUND", String::from("没有这个路径"), String::from("path not found")),
            ),
            Refusal::WrongMethod => (
                StatusCode::METHOD_NOT_ALLOWED,
                error(
                    "METHOD_NOT_ALLOWED",
                    String::from("此路径不支持该方法"),
                    String::from("method not allowed for this path"),
                ),
            ),
            Refusal::TooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                error(
                    "TOO_LARGE",
                    format!("请求正文超过 {} 字节", super::MAX_BODY),
                    format!("the request body is larger than {} bytes", super::MAX_BODY),
                ),
            ),
            Refusal::Invalid { field, reason } => {
                let mut value =
                    error("INVALID_ARGUMENT", format!("{field}：{reason}"), format!("{field}: {reason}"));
                value["field"] = json!(field);
                (StatusCode::BAD_REQUEST, value)
            }
            Refusal::UnknownCommand { word } => (
                StatusCode::BAD_REQUEST,
                error(
                    "UNKNOWN_COMMAND",
                    format!("此服务器不认识命令 {word:?}；请更新服务器"),
                    format!("this server does not know the command {word:?}; update the server"),
                ),
            ),
            Refusal::Run(run) => describe_run(*run, lang),
            Refusal::Admin(refused) => {
                let status = match refused.code() {
                    "FORBIDDEN" => StatusCode::FORBIDDEN,
                    "LAST_ADMIN" | "PERSON_DISABLED" | "TOKEN_ENDED" => StatusCode::CONFLICT,
                    _ => StatusCode::NOT_FOUND,
                };
                let message = refused.message(lang, Interface::Page);
                (status, json!({"code": refused.code(), "message": message}))
            }
            Refusal::Database(database) => describe_database(database, lang),
            Refusal::Internal => (
                StatusCode::INTERNAL_SERVER_ERROR,
                error(
                    "INTERNAL",
                    String::from("服务器内部错误"),
                    String::from("internal error of the server"),
                ),
            ),
        }
    }
}

fn describe_run(error: RunError, lang: Lang) -> (StatusCode, Value) {
    let value = |code: &str, zh: &str, en: &str| json!({"code": code, "message": lang.pick(zh, en)});
    match error {
        RunError::Store(error) => describe_domain(&error.into(), lang),
        RunError::Memory(error) => describe_domain(&error.into(), lang),
        RunError::KeyReused => (
            StatusCode::CONFLICT,
            value(
                "KEY_REUSED",
                "该键已用于另一个请求；请为每个请求生成新的键",
                "the key was used for another request; make a new key for each request",
            ),
        ),
        RunError::ForeignSession => (
            StatusCode::FORBIDDEN,
            value(
                "FOREIGN_SESSION",
                "该会话属于另一个人；请使用自己的会话",
                "the session belongs to another person; use a session of your own",
            ),
        ),
        RunError::Outdated { expected, current } => {
            let mut json = value(
                "OUTDATED",
                "工作区在此期间有变更；请重新读取后再试",
                "the workspace changed in the meantime; read it again, then try again",
            );
            json["details"] = json!({"expected": expected, "current": current});
            (StatusCode::PRECONDITION_FAILED, json)
        }
    }
}

/// Returns an error of the domain as a tool would. A request that found the database busy may be tried again.
fn describe_domain(error: &tanmi_app::Error, lang: Lang) -> (StatusCode, Value) {
    if let tanmi_app::Error::Domain(error) = error
        && let Some(trouble) = DatabaseTrouble::of(error)
    {
        return describe_trouble(&trouble, lang);
    }
    let status = match error.code() {
        "BUSY" | "CONTENDED" => StatusCode::SERVICE_UNAVAILABLE,
        code => responses::status_of(code),
    };
    let mut json = error.to_json(lang, Interface::Mcp);
    // The machine of the caller shows its own texts of the error, in the language and for the interface of its reader.
    if let tanmi_app::Error::Domain(error) = error
        && let Ok(data) = serde_json::to_value(error)
    {
        json["data"] = data;
    }
    (status, json)
}

/// Returns what is wrong with the database. Nothing was changed, or the outcome is unknown; the same request
/// with the same key settles it.
fn describe_database(error: DatabaseError, lang: Lang) -> (StatusCode, Value) {
    let trouble = match error {
        DatabaseError::Trouble(trouble) => trouble,
        other => DatabaseTrouble::Other { reason: other.message(lang) },
    };
    describe_trouble(&trouble, lang)
}

fn describe_trouble(trouble: &DatabaseTrouble, lang: Lang) -> (StatusCode, Value) {
    let json = json!({
        "code": trouble.code(), "message": trouble.message(lang), "hint": trouble.hint(lang),
        "details": {"retryable": trouble.is_retryable()},
    });
    (StatusCode::SERVICE_UNAVAILABLE, json)
}

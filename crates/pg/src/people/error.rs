//! Why the administration of a team refused a request.

use tanmi_base::{Interface, Lang};

use super::Role;
use crate::connection::CallError;
use crate::error::DatabaseError;

#[derive(Debug, thiserror::Error)]
#[error("{}", self.message(Lang::En, Interface::CommandLine))]
pub enum AdminError {
    UnknownPerson {
        name: String,
    },
    /// The person exists, and is disabled.
    PersonDisabled {
        name: String,
    },
    NotMember {
        name: String,
    },
    UnknownToken {
        id: String,
    },
    /// The token expired or was revoked.
    TokenEnded {
        id: String,
    },
    UnknownProject {
        name: String,
    },
    UnknownTeam {
        wanted: Option<String>,
        known: Vec<String>,
    },
    /// The project would have no admin.
    LastAdmin {
        name: String,
        project: String,
    },
    /// The token would allow more than the one that creates it.
    WiderToken {
        has: Role,
        wants: Role,
    },
    /// What was asked for concerns projects that the caller does not administer.
    ForeignProjects {
        name: String,
        projects: Vec<String>,
    },
    Database(DatabaseError),
}

impl From<DatabaseError> for AdminError {
    fn from(error: DatabaseError) -> AdminError {
        AdminError::Database(error)
    }
}

impl From<CallError> for AdminError {
    fn from(error: CallError) -> AdminError {
        AdminError::Database(error.into())
    }
}

impl AdminError {
    /// Returns a code that stays the same.
    pub fn code(&self) -> &'static str {
        match self {
            AdminError::UnknownPerson { .. } | AdminError::NotMember { .. } => "PERSON_NOT_FOUND",
            AdminError::PersonDisabled { .. } => "PERSON_DISABLED",
            AdminError::UnknownToken { .. } => "TOKEN_NOT_FOUND",
            AdminError::TokenEnded { .. } => "TOKEN_ENDED",
            AdminError::UnknownProject { .. } => "PROJECT_NOT_FOUND",
            AdminError::UnknownTeam { .. } => "TEAM_NOT_FOUND",
            AdminError::LastAdmin { .. } => "LAST_ADMIN",
            AdminError::WiderToken { .. } | AdminError::ForeignProjects { .. } => "FORBIDDEN",
            AdminError::Database(DatabaseError::Trouble(trouble)) => trouble.code(),
            AdminError::Database(_) => "DATABASE",
        }
    }

    /// Returns what is wrong and what to do, as a command or as a request.
    pub fn message(&self, lang: Lang, interface: Interface) -> String {
        let is_command = matches!(interface, Interface::CommandLine | Interface::AgentShell);
        let how = |command: &'static str, request: &'static str| if is_command { command } else { request };
        let (zh, en) = match self {
            AdminError::UnknownPerson { name } => {
                let how = how("tanmi team person add", "POST /api/v1/team/people");
                (
                    format!("没有名为 {name:?} 的人；请先添加（{how}）"),
                    format!("there is no person named {name:?}; add the person first ({how})"),
                )
            }
            AdminError::PersonDisabled { name } => (
                format!("{name:?} 已停用；请先启用（tanmi team person enable）"),
                format!("{name:?} is disabled; enable the person first (tanmi team person enable)"),
            ),
            AdminError::NotMember { name } => {
                let how = how("tanmi team member set", "PUT /api/v1/team/members/{name}");
                (
                    format!("{name:?} 不是项目成员；请先设置角色（{how}）"),
                    format!("{name:?} is not a member of the project; set a role first ({how})"),
                )
            }
            AdminError::UnknownToken { id } => {
                let how = how("tanmi team token list", "GET /api/v1/team/tokens");
                (format!("没有令牌 {id:?}；请查看 {how}"), format!("there is no token {id:?}; see {how}"))
            }
            AdminError::TokenEnded { id } => {
                let how = how("tanmi team token create", "POST /api/v1/team/tokens");
                (
                    format!("令牌 {id} 已过期或已撤销；请创建新的令牌（{how}）"),
                    format!("the token {id} expired or was revoked; create a new one ({how})"),
                )
            }
            AdminError::UnknownProject { name } => {
                (format!("没有项目 {name:?}"), format!("there is no project {name:?}"))
            }
            AdminError::UnknownTeam { wanted: Some(name), known } => (
                format!("没有团队 {name:?}；已有：{}", known.join("、")),
                format!("there is no team {name:?}; there are: {}", known.join(", ")),
            ),
            AdminError::UnknownTeam { wanted: None, known } if known.is_empty() => (
                String::from("数据库中还没有团队；请先运行 tanmi team setup"),
                String::from("the database has no team yet; run tanmi team setup first"),
            ),
            AdminError::UnknownTeam { wanted: None, known } => (
                format!("有多个团队；请用 --team 指定其一：{}", known.join("、")),
                format!("there are several teams; name one with --team: {}", known.join(", ")),
            ),
            AdminError::LastAdmin { name, project } => (
                format!("{name:?} 是项目 {project:?} 的最后一位管理员；请先让另一个人成为管理员"),
                format!(
                    "{name:?} is the last admin of project {project:?}; make another person an admin first"
                ),
            ),
            AdminError::WiderToken { has, wants } => (
                format!("角色为 {} 的令牌不能创建角色为 {} 的令牌", has.as_str(), wants.as_str()),
                format!(
                    "a token with the role {} cannot create one with the role {}",
                    has.as_str(),
                    wants.as_str()
                ),
            ),
            AdminError::ForeignProjects { name, projects } => (
                format!("这也涉及 {name:?} 的其他项目，而你的令牌不能管理它们：{}", projects.join("、")),
                format!(
                    "this concerns other projects of {name:?} too, which your token does not administer: {}",
                    projects.join(", ")
                ),
            ),
            AdminError::Database(error) => return error.message(lang),
        };
        lang.pick(zh, en)
    }
}

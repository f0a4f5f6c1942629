//! `tanmi team`: sets up the database of a team and its people.

use std::process::ExitCode;

use serde_json::json;
use tanmi_base::{Lang, Millis, clock};
use tanmi_pg::{Address, DatabaseError, People, Role};

use crate::cli::{DatabaseArgs, TeamCommand, TeamProjectArgs, TokenCommand};
use crate::{env, out};

const DAY: Millis = 24 * 60 * 60 * 1000;

/// Why a command changed nothing.
enum TeamError {
    NoAddress,
    /// Several projects, or none with this name.
    Project {
        wanted: Option<String>,
        known: Vec<String>,
    },
    UnknownPerson(String),
    Name(&'static str),
    Database(DatabaseError),
}

impl From<DatabaseError> for TeamError {
    fn from(error: DatabaseError) -> TeamError {
        TeamError::Database(error)
    }
}

impl TeamError {
    fn code(&self) -> &'static str {
        match self {
            TeamError::NoAddress | TeamError::Name(_) => "INVALID_ARGUMENT",
            TeamError::Project { .. } => "PROJECT_NOT_FOUND",
            TeamError::UnknownPerson(_) => "PERSON_NOT_FOUND",
            TeamError::Database(DatabaseError::Trouble(trouble)) => trouble.code(),
            TeamError::Database(_) => "DATABASE",
        }
    }

    fn message(&self, lang: Lang) -> String {
        match self {
            TeamError::NoAddress => lang.pick(
                "没有数据库地址；请使用 --database，或设置环境变量 TANMI_DATABASE_URL".to_owned(),
                "there is no address of a database; use --database, or set the variable TANMI_DATABASE_URL"
                    .to_owned(),
            ),
            TeamError::Project { wanted: Some(name), known } => lang.pick(
                format!("没有项目 {name:?}；已有：{}", known.join("、")),
                format!("there is no project {name:?}; there are: {}", known.join(", ")),
            ),
            TeamError::Project { wanted: None, known } if known.is_empty() => lang.pick(
                "数据库中还没有项目；请先运行 tanmi team setup".to_owned(),
                "the database has no project yet; run tanmi team setup first".to_owned(),
            ),
            TeamError::Project { wanted: None, known } => lang.pick(
                format!("有多个项目；请用 --project-name 指定其一：{}", known.join("、")),
                format!("there are several projects; name one with --project-name: {}", known.join(", ")),
            ),
            TeamError::UnknownPerson(name) => lang.pick(
                format!("项目中没有名为 {name:?} 的人"),
                format!("the project has no person named {name:?}"),
            ),
            TeamError::Name(option) => lang.pick(
                format!("{option} 必须是一行不为空的文字，最多 100 字节，不含 / 和 @"),
                format!("{option} must be one line of 1 to 100 bytes without / and @"),
            ),
            TeamError::Database(error) => error.message(lang),
        }
    }
}

/// Returns the address of the database, with a password from a passfile if it has none. Warns if the command line contains a password, which other users of the machine
/// can see there.
pub fn address(given: Option<&str>, lang: Lang) -> Result<Option<Address>, DatabaseError> {
    let Some(text) = given.map(str::to_owned).or_else(env::database_url) else { return Ok(None) };
    let address = Address::parse(&text)?;
    if given.is_some() && address.has_password() {
        out::labelled(
            out::YELLOW,
            "警告",
            "warning",
            lang.pick(
                "命令行中的密码对本机的其他用户可见；请改用环境变量 TANMI_DATABASE_URL",
                "other users of this machine can see a password on the command line; use the variable TANMI_DATABASE_URL",
            ),
            lang,
        );
    }
    let passfile = env::passfile();
    address.with_passfile(passfile.as_deref()).map(Some)
}

pub fn run(command: &TeamCommand, json: bool) -> ExitCode {
    let lang = env::language();
    match execute(command, json, lang) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let message = error.message(lang);
            if json {
                out::json_error(error.code(), &message);
            } else {
                out::labelled(out::RED.bold(), "错误", "error", &message, lang);
            }
            ExitCode::FAILURE
        }
    }
}

fn execute(command: &TeamCommand, json: bool, lang: Lang) -> Result<(), TeamError> {
    match command {
        TeamCommand::Setup { database, team, project_name, admin } => {
            for (option, text) in [("--team", team), ("--project-name", project_name), ("--admin", admin)] {
                check_name(option, text)?;
            }
            let (address, now) = (connect(database, lang)?, clock::now());
            tanmi_pg::migrate(&address)?;
            let project = tanmi_pg::create_project(&address, team, project_name, now)?;
            let mut people = People::open(&address, &project)?;
            let person = people.set_member(admin, Role::Admin, now)?;
            let token = people.create_token(&person, Role::Admin, now, None)?;
            print_token(project_name, admin, Role::Admin, &token, None, json, lang);
        }
        TeamCommand::Token(TokenCommand::Create { project, person, role, days }) => {
            check_name("--person", person)?;
            let now = clock::now();
            let (address, project, name) = find_project(project, lang)?;
            let role = Role::from_word(role).unwrap_or(Role::Reader);
            let expires_at = days.map(|days| now + Millis::from(days) * DAY);
            let mut people = People::open(&address, &project)?;
            let id = people.ensure_member(person, role, now)?;
            let token = people.create_token(&id, role, now, expires_at)?;
            print_token(&name, person, role, &token, expires_at, json, lang);
        }
        TeamCommand::Token(TokenCommand::Revoke { project, person }) => {
            let (address, project, _) = find_project(project, lang)?;
            let mut people = People::open(&address, &project)?;
            let Some(count) = people.revoke_tokens(person, clock::now())? else {
                return Err(TeamError::UnknownPerson(person.clone()));
            };
            if json {
                out::json(&json!({"person": person, "revoked": count}));
            } else {
                let zh = format!("已撤销 {person} 的 {count} 个令牌");
                let en = match count {
                    1 => format!("revoked 1 token of {person}"),
                    _ => format!("revoked {count} tokens of {person}"),
                };
                out::text(&format!("{}\n", lang.pick(zh, en)));
            }
        }
    }
    Ok(())
}

fn connect(database: &DatabaseArgs, lang: Lang) -> Result<Address, TeamError> {
    address(database.database.as_deref(), lang)?.ok_or(TeamError::NoAddress)
}

/// Names stand in addresses and in front of texts that agents read.
fn check_name(option: &'static str, text: &str) -> Result<(), TeamError> {
    let is_bad = |c: char| c.is_control() || matches!(c, '/' | '@');
    match text.trim().is_empty() || text.trim() != text || text.len() > 100 || text.chars().any(is_bad) {
        true => Err(TeamError::Name(option)),
        false => Ok(()),
    }
}

/// Returns the database, and the id and the name of a project: the named one, or the only one.
fn find_project(args: &TeamProjectArgs, lang: Lang) -> Result<(Address, String, String), TeamError> {
    let (address, wanted) = (connect(&args.database, lang)?, args.project_name.as_deref());
    let projects = tanmi_pg::projects(&address)?;
    let matching: Vec<_> =
        projects.iter().filter(|(_, name)| wanted.is_none_or(|wanted| wanted == name)).collect();
    match matching.as_slice() {
        [(id, name)] => Ok((address, id.clone(), name.clone())),
        _ => Err(TeamError::Project {
            wanted: wanted.map(str::to_owned),
            known: projects.into_iter().map(|(_, name)| name).collect(),
        }),
    }
}

fn print_token(
    project: &str,
    person: &str,
    role: Role,
    token: &str,
    expires_at: Option<Millis>,
    json: bool,
    lang: Lang,
) {
    let role = role.as_str();
    if json {
        let mut value = json!({"project": project, "person": person, "role": role, "token": token});
        if let Some(expires_at) = expires_at {
            value["expiresAt"] = json!(expires_at);
        }
        out::json(&value);
        return;
    }
    let text = lang.pick(
        format!("{person} 在项目 {project} 中的令牌（{role}），只显示这一次：\n{token}\n"),
        format!("token of {person} in project {project} ({role}), shown only this once:\n{token}\n"),
    );
    out::text(&text);
}

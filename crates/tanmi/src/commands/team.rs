//! `tanmi team`: sets up the database of a team and administers it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;
use tanmi_base::{Interface, Lang, clock};
use tanmi_pg::{Address, AdminError, DatabaseError, IssuedToken, People, Role};
use tanmi_team::LoginError;

use crate::cli::{DatabaseArgs, TeamCommand, TeamProjectArgs};
use crate::{env, out};

mod admin;
mod transfer;

const MAX_TOKEN_FILE: u64 = 4096;

/// Why a command changed nothing.
enum TeamError {
    NoAddress,
    /// Several projects, or none with this name.
    Project {
        wanted: Option<String>,
        known: Vec<String>,
    },
    Name(&'static str),
    /// Not a time, such as 90d.
    Time {
        option: &'static str,
        text: String,
    },
    /// The folder of an export has content.
    FolderNotEmpty(PathBuf),
    /// The folder of an import has no workspaces and no memory.
    NoProject(PathBuf),
    /// What the project has with other content.
    ImportConflict(Vec<String>),
    Admin(AdminError),
    /// An error of files or of the domain.
    App(tanmi_app::Error),
    TokenFile {
        path: PathBuf,
        reason: String,
    },
    Login {
        url: String,
        error: LoginError,
    },
}

impl From<DatabaseError> for TeamError {
    fn from(error: DatabaseError) -> TeamError {
        TeamError::Admin(error.into())
    }
}

impl From<AdminError> for TeamError {
    fn from(error: AdminError) -> TeamError {
        TeamError::Admin(error)
    }
}

impl From<tanmi_workspace::Error> for TeamError {
    fn from(error: tanmi_workspace::Error) -> TeamError {
        TeamError::App(error.into())
    }
}

impl From<tanmi_memory::Error> for TeamError {
    fn from(error: tanmi_memory::Error) -> TeamError {
        TeamError::App(error.into())
    }
}

impl TeamError {
    fn code(&self) -> &'static str {
        match self {
            TeamError::NoAddress
            | TeamError::Name(_)
            | TeamError::Time { .. }
            | TeamError::FolderNotEmpty(_)
            | TeamError::NoProject(_) => "INVALID_ARGUMENT",
            TeamError::Project { .. } => "PROJECT_NOT_FOUND",
            TeamError::ImportConflict(_) => "IMPORT_CONFLICT",
            TeamError::Admin(error) => error.code(),
            TeamError::App(error) => error.code(),
            TeamError::TokenFile { .. } | TeamError::Login { error: LoginError::Address, .. } => {
                "INVALID_ARGUMENT"
            }
            TeamError::Login { error: LoginError::Unreachable { .. }, .. } => "TEAM_UNREACHABLE",
            TeamError::Login { error: LoginError::Refused { .. }, .. } => "TEAM_REFUSED",
        }
    }

    fn message(&self, lang: Lang) -> String {
        let (zh, en) = match self {
            TeamError::NoAddress => (
                "没有数据库地址；请使用 --database，或设置环境变量 TANMI_DATABASE_URL".to_owned(),
                "there is no address of a database; use --database, or set the variable TANMI_DATABASE_URL"
                    .to_owned(),
            ),
            TeamError::Project { wanted: Some(name), known } => (
                format!("没有项目 {name:?}；已有：{}", known.join("、")),
                format!("there is no project {name:?}; there are: {}", known.join(", ")),
            ),
            TeamError::Project { wanted: None, known } if known.is_empty() => (
                "数据库中还没有项目；请先运行 tanmi team setup".to_owned(),
                "the database has no project yet; run tanmi team setup first".to_owned(),
            ),
            TeamError::Project { wanted: None, known } => (
                format!("有多个项目；请用 --project-name 指定其一：{}", known.join("、")),
                format!("there are several projects; name one with --project-name: {}", known.join(", ")),
            ),
            TeamError::Name(option) => (
                format!("{option} 必须是一行不为空的文字，最多 100 字节，不含 / 和 @"),
                format!("{option} must be one line of 1 to 100 bytes without / and @"),
            ),
            TeamError::Time { option, text } => (
                format!("{option}：{text:?} 不是时间；请使用 90d、12h 或 30m 这样的写法"),
                format!("{option}: {text:?} is not a time; write it as 90d, 12h or 30m"),
            ),
            TeamError::FolderNotEmpty(dir) => (
                format!("目录 {} 不为空；请指定空目录或不存在的目录", dir.display()),
                format!("the folder {} is not empty; name an empty or a new one", dir.display()),
            ),
            TeamError::NoProject(dir) => (
                format!("目录 {} 中没有 .tanmi-workspace；请指定本地项目的目录", dir.display()),
                format!(
                    "the folder {} has no .tanmi-workspace; name the folder of a local project",
                    dir.display()
                ),
            ),
            TeamError::ImportConflict(names) => (
                format!("项目中已有内容不同的：{}；没有导入任何内容；请导入到另一个项目", names.join("、")),
                format!(
                    "the project has other content for: {}; nothing was imported; import into another project",
                    names.join(", ")
                ),
            ),
            TeamError::TokenFile { path, reason } => (
                format!("无法从 {} 读取令牌：{reason}", path.display()),
                format!("cannot read a token from {}: {reason}", path.display()),
            ),
            TeamError::Login { url, error: LoginError::Address } => (
                format!("{url:?} 不是 https 地址，也不是本机的 http 地址；令牌不会以明文发送"),
                format!(
                    "{url:?} is neither https, nor http on this machine; a token is not sent in plain text"
                ),
            ),
            TeamError::Login { url, error: LoginError::Unreachable { reason } } => (
                format!("无法连接 {url}：{reason}；请检查 --url 和 --ca"),
                format!("cannot reach {url}: {reason}; check --url and --ca"),
            ),
            TeamError::Login { error: LoginError::Refused { message, .. }, .. } => return message.clone(),
            TeamError::Admin(error) => return error.message(lang, Interface::CommandLine),
            TeamError::App(error) => return error.message(lang),
        };
        lang.pick(zh, en)
    }
}

/// Returns the address of the database, with a password from a passfile if it has none. Warns if the command
/// line contains a password, which other users of the machine can see there.
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

pub fn run(command: &TeamCommand, home: &Path, json: bool) -> ExitCode {
    let lang = env::language();
    match execute(command, home, json, lang) {
        Ok(code) => code,
        Err(TeamError::App(error)) => {
            out::error(&error.to_json(lang, Interface::CommandLine), lang, json);
            ExitCode::FAILURE
        }
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

fn execute(command: &TeamCommand, home: &Path, json: bool, lang: Lang) -> Result<ExitCode, TeamError> {
    match command {
        TeamCommand::Setup { database, team, project_name, admin } => {
            for (option, text) in [("--team", team), ("--project-name", project_name), ("--admin", admin)] {
                check_name(option, text)?;
            }
            let (address, now) = (connect(database, lang)?, clock::now());
            tanmi_pg::migrate(&address)?;
            let project = tanmi_pg::create_project(&address, team, project_name, now)?;
            let mut people = People::open(&address, &project)?;
            let person = people.set_member(admin, Role::Admin)?;
            let token = people.create_token(&person, Role::Admin, now, None)?;
            let issued = IssuedToken {
                id: tanmi_pg::token_id(&token).unwrap_or_default().to_owned(),
                token,
                person: admin.clone(),
                role: Role::Admin,
                expires_at: None,
            };
            admin::print_token(Some(project_name), &issued, json, lang);
        }
        TeamCommand::Upgrade { database } => {
            tanmi_pg::migrate(&connect(database, lang)?)?;
            let version = tanmi_pg::VERSION;
            if json {
                out::json(&json!({"schema": version}));
            } else {
                let text = lang.pick(
                    format!("数据库结构为当前版本：{version}"),
                    format!("the schema of the database is current: version {version}"),
                );
                out::text(&format!("{text}\n"));
            }
        }
        TeamCommand::Login { url, token_file, project_name, ca, open } => {
            let token = read_token(token_file)?;
            let link =
                tanmi_team::request_link(url, project_name.as_deref(), &token, ca.as_deref(), lang.as_str())
                    .map_err(|error| TeamError::Login { url: url.clone(), error })?;
            print_link(&link, json, lang);
            if *open {
                super::serve::open_browser(home, || Some(link), lang);
            }
        }
        TeamCommand::Person(command) => admin::person(command, json, lang)?,
        TeamCommand::Member(command) => admin::member(command, json, lang)?,
        TeamCommand::Project(command) => admin::project(command, json, lang)?,
        TeamCommand::Token(command) => admin::token(command, json, lang)?,
        TeamCommand::Audit(args) => admin::audit(args, json, lang)?,
        TeamCommand::Check { database, project_name } => {
            return transfer::check(database, project_name.as_deref(), json, lang);
        }
        TeamCommand::Export { project, dir } => transfer::export(project, dir, json, lang)?,
        TeamCommand::Import { project, dir } => transfer::import(project, dir, json, lang)?,
        // Needs no database; see `team_machine`.
        TeamCommand::Machine(_) => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a token from a file, or from standard input for `-`. On the command line, other users could see it.
fn read_token(file: &Path) -> Result<String, TeamError> {
    let failed = |reason: String| TeamError::TokenFile { path: file.to_owned(), reason };
    let read = match file == Path::new("-") {
        true => std::io::read_to_string(std::io::stdin().lock().take(MAX_TOKEN_FILE)),
        false => {
            std::fs::File::open(file).and_then(|file| std::io::read_to_string(file.take(MAX_TOKEN_FILE)))
        }
    };
    let text = read.map_err(|error| failed(error.to_string()))?;
    let token = text.trim();
    // A header cannot contain other characters, and the error of the request would show them.
    match token.starts_with("tnm_") && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    {
        true => Ok(token.to_owned()),
        false => Err(failed(String::from("it does not contain one token (tnm_…)"))),
    }
}

fn print_link(link: &str, json: bool, lang: Lang) {
    if json {
        out::json(&json!({"link": link}));
        return;
    }
    let once = lang.pick(
        "打开页面（链接在五分钟内可以使用一次）：",
        "open the page (this link works once, within five minutes):",
    );
    out::text(&format!("{once}\n  {link}\n"));
}

fn connect(database: &DatabaseArgs, lang: Lang) -> Result<Address, TeamError> {
    address(database.database.as_deref(), lang)?.ok_or(TeamError::NoAddress)
}

fn check_name(option: &'static str, text: &str) -> Result<(), TeamError> {
    tanmi_pg::is_valid_name(text).then_some(()).ok_or(TeamError::Name(option))
}

/// Returns the database, and the id and the name of a project: the named one, or the only one.
fn find_project(args: &TeamProjectArgs, lang: Lang) -> Result<(Address, String, String), TeamError> {
    let address = connect(&args.database, lang)?;
    let (id, name) = project_named(&address, args.project_name.as_deref())?;
    Ok((address, id, name))
}

/// Returns the id and the name of a project: the named one, or the only one.
fn project_named(address: &Address, wanted: Option<&str>) -> Result<(String, String), TeamError> {
    let projects = tanmi_pg::projects(address)?;
    let matching: Vec<_> =
        projects.iter().filter(|(_, name)| wanted.is_none_or(|wanted| wanted == name)).collect();
    match matching.as_slice() {
        [(id, name)] => Ok((id.clone(), name.clone())),
        _ => Err(TeamError::Project {
            wanted: wanted.map(str::to_owned),
            known: projects.into_iter().map(|(_, name)| name).collect(),
        }),
    }
}

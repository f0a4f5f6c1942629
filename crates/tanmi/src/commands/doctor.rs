//! `tanmi doctor`

use std::path::Path;

use serde_json::json;
use tanmi_app::doctor::{CheckResult, Health};
use tanmi_base::Lang;
use tanmi_install::agent::Folders;
use tanmi_install::probe::{self, ProbeError};
use tanmi_install::{AGENTS, Agent, ChangeOutcome, InstallOptions, InstalledState, Scope};

use super::install::{failed, folders, program};
use super::{Context, Result};
use crate::cli::DoctorArgs;
use crate::show;

pub fn run(context: &Context, args: &DoctorArgs) -> Result {
    let folders = folders(context)?;
    let mut checks = vec![version()?];
    for agent in AGENTS {
        checks.extend(agent_checks(context, agent, &folders, args.fix)?);
    }
    checks.extend(context.app.run_checks(args.fix));
    let is_well = checks.iter().all(|check| !matches!(check.health, Health::Mendable | Health::ByHand));
    if !is_well {
        context.failed.set(true);
    }
    let lang = context.app.lang(None);
    context.answer(&json!({"ok": is_well, "checks": checks}), |_| show::doctor::text(&checks, lang));
    Ok(())
}

fn version() -> Result<CheckResult> {
    Ok(CheckResult::new(
        "version",
        Health::Fine,
        format!("tanmi {}: {}", env!("CARGO_PKG_VERSION"), program()?),
    ))
}

/// What is the matter with one agent in one scope.
enum InstallIssue {
    /// Events that have no hook of ours.
    Missing(Vec<&'static str>),
    /// The program of a hook or of the server is not there.
    Gone(String),
    /// Another program of ours than this one.
    Other(String),
    Twice(Vec<String>),
    /// A hook of ours runs for another event or platform than it stands under.
    Altered(Vec<String>),
    NoServer,
    Silent(ProbeError),
}

/// One agent, wherever it is installed.
struct AgentChecks<'a> {
    context: &'a Context,
    agent: &'static Agent,
    folders: &'a Folders,
    fix: bool,
    lang: Lang,
    out: Vec<CheckResult>,
}

fn agent_checks(
    context: &Context,
    agent: &'static Agent,
    folders: &Folders,
    fix: bool,
) -> Result<Vec<CheckResult>> {
    let mut visit =
        AgentChecks { context, agent, folders, fix, lang: context.app.lang(None), out: Vec::new() };
    let (mut installed, mut with_hooks) = (0, 0);
    for scope in folders.scopes() {
        let found = tanmi_install::inspect(agent, *scope, folders);
        let has_hooks = found.iter().any(|file| !file.hooks.is_empty());
        visit.files(&found);
        installed += usize::from(visit.scope(*scope, &found)?);
        with_hooks += usize::from(has_hooks);
    }
    if with_hooks > 1 {
        visit.out.push(doubled(context, agent, folders, fix)?);
    }
    let is_here = agent.is_here(folders, crate::env::search_path().as_deref());
    if installed == 0 && is_here && visit.out.is_empty() {
        let (zh, en) = (
            format!("{}：未安装钩子和 MCP 服务器", agent.name),
            format!("{}: hooks and MCP server are not installed", agent.name),
        );
        let advice = format!("tanmi install --platform {}", agent.id());
        visit.say(Health::Note, visit.lang.pick(zh, en), advice);
    }
    Ok(visit.out)
}

impl AgentChecks<'_> {
    fn say(&mut self, health: Health, text: String, advice: String) {
        self.out.push(CheckResult::new("install", health, text).with(advice));
    }

    /// What is wrong with the files themselves.
    fn files(&mut self, found: &[InstalledState]) {
        for file in found {
            let path = format!("{}{} {}", self.agent.name, self.lang.pick("：", ":"), file.path.display());
            if let Some(refusal) = &file.refusal {
                let line = refusal.line().map_or(String::new(), |line| format!(":{line}"));
                let advice = self.lang.pick(
                    "手动修正该文件；在此之前 Tanmi 不会修改它",
                    "fix the file by hand; Tanmi does not change it until then",
                );
                let text = format!("{path}{line}: {}", refusal.message(self.lang));
                self.say(Health::ByHand, text, advice.to_owned());
            }
            let is_ours = !file.hooks.is_empty() || file.server.is_some();
            for key in file.off.iter().filter(|_| is_ours) {
                let (zh, en) = (format!("{key} 停用了 Tanmi"), format!("{key} disables Tanmi"));
                let advice =
                    self.lang.pick("在该文件中修改此设置", "change this setting in the file").to_owned();
                self.say(Health::ByHand, format!("{path}: {}", self.lang.pick(zh, en)), advice);
            }
        }
    }

    /// What is installed in one scope, and whether it works. `false` if nothing is.
    fn scope(&mut self, scope: Scope, found: &[InstalledState]) -> Result<bool> {
        let (agent, folders) = (self.agent, self.folders);
        // Once installed and gone since is not the same as never installed.
        let receipts = tanmi_install::Receipts::load(self.context.app.home());
        let file = agent.hooks_file(scope, folders);
        let is_due = receipts.has_hooks(&file.canonicalize().unwrap_or(file));
        let has_hooks = is_due || found.iter().any(|file| !file.hooks.is_empty());
        if !has_hooks && !found.iter().any(|file| file.server.is_some()) {
            return Ok(false);
        }
        let wants_server = agent.mcp_file(scope, folders).is_some();
        let look = || -> Result<Vec<InstallIssue>> {
            let found = tanmi_install::inspect(agent, scope, folders);
            diagnose(agent, &found, has_hooks, !wants_server || server_of(agent, folders).is_some())
        };
        let ills = look()?;
        let is_tried = self.fix && !ills.is_empty();
        let is_mended =
            is_tried && reinstall(self.context, agent, scope, folders, has_hooks)? && look()?.is_empty();
        let name = match (self.lang, scope) {
            (Lang::Zh, Scope::User) => format!("{}（用户级）：", agent.name),
            (Lang::Zh, Scope::Project) => format!("{}（项目级）：", agent.name),
            (Lang::En, _) => format!("{} ({}): ", agent.name, scope.as_str()),
        };
        for ill in &ills {
            let advice = format!("tanmi install --platform {} --scope {}", agent.id(), scope.as_str());
            let (health, advice) = match (is_tried, is_mended) {
                (_, true) => (Health::Mended, String::new()),
                (true, false) => (Health::ByHand, advice),
                (false, false) => (Health::Mendable, advice),
            };
            self.say(health, format!("{name}{}", ill.text(self.lang)), advice);
        }
        if ills.is_empty() {
            let (zh, en) = match has_hooks {
                true if wants_server => (
                    "已安装钩子和 MCP 服务器，钩子测试通过",
                    "hooks and MCP server are installed; the hook test passed",
                ),
                true => ("已安装钩子，钩子测试通过", "hooks are installed; the hook test passed"),
                false => ("已安装 MCP 服务器，未安装钩子", "the MCP server is installed, hooks are not"),
            };
            self.say(Health::Fine, format!("{name}{}", self.lang.pick(zh, en)), String::new());
        }
        Ok(true)
    }
}

/// The server serves both scopes, wherever it stands.
fn server_of(agent: &'static Agent, folders: &Folders) -> Option<String> {
    let scopes = folders.scopes().iter();
    scopes.flat_map(|scope| tanmi_install::inspect(agent, *scope, folders)).find_map(|file| file.server)
}

/// Installed for the user and for the project: everything would run twice.
fn doubled(context: &Context, agent: &'static Agent, folders: &Folders, fix: bool) -> Result<CheckResult> {
    let lang = context.app.lang(None);
    let (zh, en) = (
        format!("{}：用户级和项目级都安装了钩子，会运行两次", agent.name),
        format!("{}: hooks are installed for both the user and the project, so they run twice", agent.name),
    );
    let mut health = Health::Mendable;
    if fix {
        let receipts = tanmi_install::Receipts::load(context.app.home());
        let hooks = InstallOptions {
            hooks: true,
            server: false,
            guide: false,
            status_line: false,
            program: String::new(),
            lang,
        };
        let target_files =
            tanmi_install::target_files(agent, Scope::Project, folders, Some(&hooks)).into_iter();
        let plans =
            target_files.filter_map(|target| tanmi_install::plan_removal(target, &receipts)).collect();
        tanmi_install::remove(context.app.home(), plans).map_err(failed)?;
        health = Health::Mended;
    }
    let advice = format!("tanmi uninstall --platform {} --scope project", agent.id());
    let advice = if fix { String::new() } else { advice };
    Ok(CheckResult::new("install", health, lang.pick(zh, en)).with(advice))
}

fn reinstall(
    context: &Context,
    agent: &'static Agent,
    scope: Scope,
    folders: &Folders,
    has_hooks: bool,
) -> Result<bool> {
    let lang = context.app.lang(None);
    // One that was left out is not put in by mending something else.
    let status_line =
        tanmi_install::inspect(agent, scope, folders).iter().any(|file| file.status_line.is_some());
    let options = InstallOptions {
        program: program()?,
        lang,
        hooks: has_hooks,
        server: true,
        guide: false,
        status_line,
    };
    let target_files = tanmi_install::target_files(agent, scope, folders, Some(&options)).into_iter();
    let plans = target_files.map(|target| tanmi_install::plan(target, &options)).collect();
    let done =
        tanmi_install::apply(context.app.home(), plans, &options, context.app.now()).map_err(failed)?;
    Ok(!done.iter().any(|done| matches!(done.planned.outcome, ChangeOutcome::Refused(_))))
}

fn diagnose(
    agent: &'static Agent,
    found: &[InstalledState],
    has_hooks: bool,
    has_server: bool,
) -> Result<Vec<InstallIssue>> {
    let mut ills = Vec::new();
    let hooks: Vec<_> = found.iter().flat_map(|file| &file.hooks).collect();
    let own = program()?;
    let mut programs: Vec<&str> = hooks.iter().map(|(_, _, ours)| ours.program.as_str()).collect();
    programs.extend(found.iter().filter_map(|file| file.server.as_deref()));
    programs.extend(found.iter().filter_map(|file| file.status_line.as_deref()));
    programs.sort_unstable();
    programs.dedup();
    // A bare name is looked up by whoever runs it; whether it is there is heard below.
    let is_path = |program: &&str| program.contains(['/', '\\']);
    for program in programs.into_iter().filter(|program| *program != own).filter(is_path) {
        let is_there = Path::new(program).is_file();
        ills.push(if is_there {
            InstallIssue::Other(program.to_owned())
        } else {
            InstallIssue::Gone(program.to_owned())
        });
    }
    if has_hooks {
        let has = |event: &str| hooks.iter().filter(|(known, _, _)| known == event).count();
        let events = || agent.hooks.iter().map(|hook| hook.event);
        let missing: Vec<&'static str> = events().filter(|event| has(event) == 0).collect();
        if !missing.is_empty() {
            ills.push(InstallIssue::Missing(missing));
        }
        let twice: Vec<String> = events().filter(|event| has(event) > 1).map(String::from).collect();
        if !twice.is_empty() {
            ills.push(InstallIssue::Twice(twice));
        }
        let altered: Vec<String> = found.iter().flat_map(|file| file.altered.clone()).collect();
        if !altered.is_empty() {
            ills.push(InstallIssue::Altered(altered));
        }
        if !has_server {
            ills.push(InstallIssue::NoServer);
        }
    }
    if ills.is_empty() {
        ills.extend(probe_hooks(agent, &hooks).map(InstallIssue::Silent));
    }
    Ok(ills)
}

/// Runs the hook of a start as the agent would, and looks for the session's id in what it answers.
fn probe_hooks(
    agent: &Agent,
    hooks: &[&(String, String, tanmi_install::TanmiCommand)],
) -> Option<ProbeError> {
    let (event, payload) = tanmi_platform::sample(agent.platform)?;
    let (_, command, _) = hooks.iter().find(|(known, _, _)| known == event)?;
    let scratch = std::env::temp_dir().join(format!("tanmi-doctor-{}", std::process::id()));
    let answer = probe::run_hook(command, payload, &scratch);
    let _ = tanmi_base::fs::remove_tree(&scratch);
    let id = tanmi_platform::read(agent.platform, Some(event), payload.as_bytes())?.session;
    match answer {
        Err(trouble) => Some(trouble),
        Ok(answer) => {
            let is_json = serde_json::from_str::<serde_json::Value>(&answer).is_ok();
            (!is_json || !answer.contains(&id))
                .then(|| ProbeError::Answer(tanmi_base::text::fit(&answer, 60)))
        }
    }
}

impl InstallIssue {
    fn text(&self, lang: Lang) -> String {
        let (zh, en) = match self {
            InstallIssue::Missing(events) => {
                (format!("缺少钩子：{}", events.join("、")), format!("missing hooks: {}", events.join(", ")))
            }
            InstallIssue::Gone(program) => {
                (format!("找不到程序 {program}"), format!("program not found: {program}"))
            }
            InstallIssue::Other(program) => (
                format!("指向另一个 tanmi 程序：{program}"),
                format!("points to another tanmi program: {program}"),
            ),
            InstallIssue::Twice(events) => (
                format!("重复的钩子：{}", events.join("、")),
                format!("duplicate hooks: {}", events.join(", ")),
            ),
            InstallIssue::Altered(events) => (
                format!("被修改过的钩子：{}", events.join("、")),
                format!("modified hooks: {}", events.join(", ")),
            ),
            InstallIssue::NoServer => {
                (String::from("未安装 MCP 服务器"), String::from("the MCP server is not installed"))
            }
            InstallIssue::Silent(trouble) => {
                let (zh, en) = match trouble {
                    ProbeError::Missing => {
                        (String::from("命令无法运行"), String::from("the command cannot be run"))
                    }
                    ProbeError::Exit(code) => (format!("退出码 {code}"), format!("exit code {code}")),
                    ProbeError::Slow => (String::from("超时"), String::from("timed out")),
                    ProbeError::Answer(answer) => {
                        (format!("输出不符合预期：{answer}"), format!("unexpected output {answer:?}"))
                    }
                };
                (format!("钩子测试失败：{zh}"), format!("the hook test failed: {en}"))
            }
        };
        lang.pick(zh, en)
    }
}

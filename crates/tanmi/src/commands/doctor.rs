//! `tanmi doctor`

use std::path::Path;

use serde_json::json;
use tanmi_app::doctor::{CheckResult, Health};
use tanmi_base::Lang;
use tanmi_install::probe::{self, ProbeError};
use tanmi_install::{ChangeOutcome, Folders, InstallOptions, InstalledState};
use tanmi_platform::{CLIENTS, ClientSpec, Scope};

use super::install::{folders, program_path, to_app_error};
use super::{CommandContext, Result};
use crate::cli::DoctorArgs;
use crate::show;

pub fn run(context: &CommandContext, args: &DoctorArgs) -> Result {
    let folders = folders(context)?;
    let mut checks = vec![version()?];
    for client in CLIENTS.iter() {
        checks.extend(agent_checks(context, client, &folders, args.fix)?);
    }
    checks.extend(context.app.maintenance.run_checks(args.fix));
    let is_ok = checks.iter().all(|check| !matches!(check.health, Health::Fixable | Health::ByHand));
    if !is_ok {
        context.failed.set(true);
    }
    let lang = context.app.lang();
    context.print_result(&json!({"ok": is_ok, "checks": checks}), |_| show::doctor::text(&checks, lang));
    Ok(())
}

fn version() -> Result<CheckResult> {
    Ok(CheckResult::new(
        "version",
        Health::Fine,
        format!("tanmi {}: {}", env!("CARGO_PKG_VERSION"), program_path()?),
    ))
}

/// Returns what to do so that rules for tool calls run: one sentence per agent whose installed hooks lack the one for
/// tool calls.
pub fn missing_tool_hooks(context: &CommandContext) -> Result<Vec<String>> {
    let folders = folders(context)?;
    let mut notes = Vec::new();
    for scope in folders.scopes() {
        let rules = context.app.rules.tool_rules(*scope == Scope::User);
        for client in CLIENTS.iter().filter(|client| rules.needs_hook(client.platform)) {
            let found = tanmi_install::inspect(client, *scope, &folders);
            let has_hooks = found.iter().any(|file| !file.hooks.is_empty());
            if !has_hooks || found.iter().any(|file| file.has_tool_hook) {
                continue;
            }
            let (name, command) = (client.name, install_command(client, *scope));
            notes.push(context.app.lang().pick(
                format!("{name}：没有安装 pre_tool_use 的钩子；运行 `{command}`"),
                format!("{name}: the hook for pre_tool_use is not installed; run `{command}`"),
            ));
        }
    }
    Ok(notes)
}

fn install_command(client: &ClientSpec, scope: Scope) -> String {
    format!("tanmi install --platform {} --scope {}", client.id(), scope.as_str())
}

/// A problem with the installation for one agent in one scope.
enum InstallIssue {
    /// Events without a Tanmi hook.
    MissingHooks(Vec<&'static str>),
    /// The hook for tool calls is missing although a rule needs it, or there although no rule does.
    ToolHook {
        is_needed: bool,
    },
    /// The program of a hook or of the server does not exist.
    MissingProgram(String),
    /// A hook or the server runs another tanmi program than this one.
    OtherProgram(String),
    DuplicateHooks(Vec<String>),
    /// A Tanmi hook names another event or platform than the one it is registered for.
    AlteredHooks(Vec<String>),
    NoServer,
    ProbeFailed(ProbeError),
}

/// The checks of one agent in all scopes.
struct AgentChecks<'a> {
    context: &'a CommandContext,
    client: &'static ClientSpec,
    folders: &'a Folders,
    fix: bool,
    lang: Lang,
    results: Vec<CheckResult>,
}

fn agent_checks(
    context: &CommandContext,
    client: &'static ClientSpec,
    folders: &Folders,
    fix: bool,
) -> Result<Vec<CheckResult>> {
    let mut checks =
        AgentChecks { context, client, folders, fix, lang: context.app.lang(), results: Vec::new() };
    let (mut installed, mut with_hooks) = (0, 0);
    for scope in folders.scopes() {
        let found = tanmi_install::inspect(client, *scope, folders);
        let has_hooks = found.iter().any(|file| !file.hooks.is_empty());
        checks.check_files(&found);
        installed += usize::from(checks.check_scope(*scope, &found)?);
        with_hooks += usize::from(has_hooks);
    }
    if with_hooks > 1 {
        checks.results.push(check_both_scopes(context, client, folders, fix)?);
    }
    let is_detected = folders.has_client(client, crate::env::search_path().as_deref());
    if installed == 0 && is_detected && checks.results.is_empty() {
        let (zh, en) = (
            format!("{}：未安装钩子和 MCP 服务器", client.name),
            format!("{}: hooks and MCP server are not installed", client.name),
        );
        let advice = format!("tanmi install --platform {}", client.id());
        checks.add(Health::Note, checks.lang.pick(zh, en), advice);
    }
    Ok(checks.results)
}

impl AgentChecks<'_> {
    fn add(&mut self, health: Health, text: String, advice: String) {
        self.results.push(CheckResult::new("install", health, text).with(advice));
    }

    /// Reports files that cannot be edited and settings that disable Tanmi.
    fn check_files(&mut self, found: &[InstalledState]) {
        for file in found {
            let path = format!("{}{} {}", self.client.name, self.lang.pick("：", ":"), file.path.display());
            if let Some(refusal) = &file.refusal {
                let line = refusal.line().map_or(String::new(), |line| format!(":{line}"));
                let advice = self.lang.pick(
                    "手动修正该文件；在此之前 Tanmi 不会修改它",
                    "fix the file by hand; Tanmi does not change it until then",
                );
                let text = format!("{path}{line}: {}", refusal.message(self.lang));
                self.add(Health::ByHand, text, advice.to_owned());
            }
            let is_installed = !file.hooks.is_empty() || file.server.is_some();
            for key in file.disabling_keys.iter().filter(|_| is_installed) {
                let (zh, en) = (format!("{key} 停用了 Tanmi"), format!("{key} disables Tanmi"));
                let advice =
                    self.lang.pick("在该文件中修改此设置", "change this setting in the file").to_owned();
                self.add(Health::ByHand, format!("{path}: {}", self.lang.pick(zh, en)), advice);
            }
        }
    }

    /// Checks, and with `fix` repairs, what is installed in one scope. Returns whether anything is installed there.
    fn check_scope(&mut self, scope: Scope, found: &[InstalledState]) -> Result<bool> {
        let (client, folders) = (self.client, self.folders);
        // Hooks that were installed and have disappeared are a problem; hooks that were never installed are not.
        let receipts = tanmi_install::Receipts::load(self.context.app.home());
        let file = folders.hook_file(client, scope);
        let was_installed = receipts.has_hooks(&file.canonicalize().unwrap_or(file));
        let has_hooks = was_installed || found.iter().any(|file| !file.hooks.is_empty());
        if !has_hooks && !found.iter().any(|file| file.server.is_some()) {
            return Ok(false);
        }
        let needs_tool_hook =
            self.context.app.rules.tool_rules(scope == Scope::User).needs_hook(client.platform);
        let supports_server = folders.server_file(client, scope).is_some();
        let find_issues = || -> Result<Vec<InstallIssue>> {
            let found = tanmi_install::inspect(client, scope, folders);
            let has_server = !supports_server || server_of(client, folders).is_some();
            diagnose(client, &found, has_hooks, has_server, needs_tool_hook)
        };
        let issues = find_issues()?;
        let was_tried = self.fix && !issues.is_empty();
        let was_fixed = was_tried
            && reinstall(self.context, client, scope, folders, has_hooks, needs_tool_hook)?
            && find_issues()?.is_empty();
        let name = match (self.lang, scope) {
            (Lang::Zh, Scope::User) => format!("{}（用户级）：", client.name),
            (Lang::Zh, Scope::Project) => format!("{}（项目级）：", client.name),
            (Lang::En, _) => format!("{} ({}): ", client.name, scope.as_str()),
        };
        for issue in &issues {
            let advice = install_command(client, scope);
            let (health, advice) = match (was_tried, was_fixed) {
                (_, true) => (Health::Fixed, String::new()),
                (true, false) => (Health::ByHand, advice),
                (false, false) => (Health::Fixable, advice),
            };
            self.add(health, format!("{name}{}", issue.text(self.lang)), advice);
        }
        if issues.is_empty() {
            let (zh, en) = match has_hooks {
                true if supports_server => (
                    "已安装钩子和 MCP 服务器，钩子测试通过",
                    "hooks and MCP server are installed; the hook test passed",
                ),
                true => ("已安装钩子，钩子测试通过", "hooks are installed; the hook test passed"),
                false => ("已安装 MCP 服务器，未安装钩子", "the MCP server is installed, hooks are not"),
            };
            self.add(Health::Fine, format!("{name}{}", self.lang.pick(zh, en)), String::new());
        }
        Ok(true)
    }
}

/// Returns the program of the MCP server in any scope: a server that is configured in one scope works in both.
fn server_of(client: &'static ClientSpec, folders: &Folders) -> Option<String> {
    let scopes = folders.scopes().iter();
    scopes.flat_map(|scope| tanmi_install::inspect(client, *scope, folders)).find_map(|file| file.server)
}

/// Reports hooks that are installed in both scopes and would run twice. With `fix`, removes those of the project.
fn check_both_scopes(
    context: &CommandContext,
    client: &'static ClientSpec,
    folders: &Folders,
    fix: bool,
) -> Result<CheckResult> {
    let lang = context.app.lang();
    let (zh, en) = (
        format!("{}：用户级和项目级都安装了钩子，会运行两次", client.name),
        format!("{}: hooks are installed for both the user and the project, so they run twice", client.name),
    );
    let mut health = Health::Fixable;
    if fix {
        let receipts = tanmi_install::Receipts::load(context.app.home());
        let hooks = InstallOptions {
            hooks: true,
            server: false,
            guide: false,
            status_line: false,
            allow_tools: false,
            has_tool_rules: false,
            program: String::new(),
            lang,
        };
        let target_files =
            tanmi_install::target_files(client, Scope::Project, folders, Some(&hooks)).into_iter();
        let plans =
            target_files.filter_map(|target| tanmi_install::plan_removal(target, &receipts)).collect();
        tanmi_install::remove(context.app.home(), plans).map_err(to_app_error)?;
        health = Health::Fixed;
    }
    let advice = format!("tanmi uninstall --platform {} --scope project", client.id());
    let advice = if fix { String::new() } else { advice };
    Ok(CheckResult::new("install", health, lang.pick(zh, en)).with(advice))
}

fn reinstall(
    context: &CommandContext,
    client: &'static ClientSpec,
    scope: Scope,
    folders: &Folders,
    has_hooks: bool,
    needs_tool_hook: bool,
) -> Result<bool> {
    let lang = context.app.lang();
    // A status line that is not installed, perhaps on purpose, is not added by a repair.
    let status_line =
        tanmi_install::inspect(client, scope, folders).iter().any(|file| file.status_line.is_some());
    let options = InstallOptions {
        program: program_path()?,
        lang,
        hooks: has_hooks,
        server: true,
        guide: false,
        status_line,
        allow_tools: false,
        has_tool_rules: needs_tool_hook,
    };
    let target_files = tanmi_install::target_files(client, scope, folders, Some(&options)).into_iter();
    let plans = target_files.map(|target| tanmi_install::plan(target, &options)).collect();
    let done = match tanmi_install::apply(context.app.home(), plans, &options, context.app.now()) {
        // The check of the file has reported the link.
        Err(tanmi_install::Error::LeavesProject { .. }) => return Ok(false),
        done => done.map_err(to_app_error)?,
    };
    Ok(!done.iter().any(|done| matches!(done.planned.outcome, ChangeOutcome::Refused(_))))
}

fn diagnose(
    client: &'static ClientSpec,
    found: &[InstalledState],
    has_hooks: bool,
    has_server: bool,
    needs_tool_hook: bool,
) -> Result<Vec<InstallIssue>> {
    let mut issues = Vec::new();
    let hooks: Vec<_> = found.iter().flat_map(|file| &file.hooks).collect();
    let own = program_path()?;
    let mut programs: Vec<&str> = hooks.iter().map(|(_, _, ours)| ours.program.as_str()).collect();
    programs.extend(found.iter().filter_map(|file| file.server.as_deref()));
    programs.extend(found.iter().filter_map(|file| file.status_line.as_deref()));
    programs.sort_unstable();
    programs.dedup();
    // A bare name is resolved by the client; the hook test below shows whether it works.
    let is_path = |program: &&str| program.contains(['/', '\\']);
    for program in programs.into_iter().filter(|program| *program != own).filter(is_path) {
        let exists = Path::new(program).is_file();
        issues.push(if exists {
            InstallIssue::OtherProgram(program.to_owned())
        } else {
            InstallIssue::MissingProgram(program.to_owned())
        });
    }
    if has_hooks {
        let count = |event: &str| hooks.iter().filter(|(known, _, _)| known == event).count();
        let events = || client.recipe.hooks.iter().map(|hook| hook.event);
        let wanted = client.recipe.hooks.iter().filter_map(|hook| hook.to_install(false));
        let missing: Vec<&'static str> =
            wanted.map(|hook| hook.event).filter(|event| count(event) == 0).collect();
        if !missing.is_empty() {
            issues.push(InstallIssue::MissingHooks(missing));
        }
        let has_tool_hook = found.iter().any(|file| file.has_tool_hook);
        if has_tool_hook != needs_tool_hook {
            issues.push(InstallIssue::ToolHook { is_needed: needs_tool_hook });
        }
        let duplicate: Vec<String> = events().filter(|event| count(event) > 1).map(String::from).collect();
        if !duplicate.is_empty() {
            issues.push(InstallIssue::DuplicateHooks(duplicate));
        }
        let altered: Vec<String> = found.iter().flat_map(|file| file.altered.clone()).collect();
        if !altered.is_empty() {
            issues.push(InstallIssue::AlteredHooks(altered));
        }
        if !has_server {
            issues.push(InstallIssue::NoServer);
        }
    }
    if issues.is_empty() {
        issues.extend(probe_hooks(client, &hooks).map(InstallIssue::ProbeFailed));
    }
    Ok(issues)
}

/// Runs the session start hook as the client would. Its output must be JSON and contain the session id.
fn probe_hooks(
    client: &ClientSpec,
    hooks: &[&(String, String, tanmi_install::TanmiCommand)],
) -> Option<ProbeError> {
    let (event, payload) = client.wire.sample;
    let (_, command, _) = hooks.iter().find(|(known, _, _)| known == event)?;
    let scratch = std::env::temp_dir().join(format!("tanmi-doctor-{}", std::process::id()));
    let answer = probe::run_hook(command, payload, &scratch);
    let _ = tanmi_base::fs::remove_tree(&scratch);
    let id = CLIENTS.read(client.platform, Some(event), payload.as_bytes())?.session;
    match answer {
        Err(error) => Some(error),
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
            InstallIssue::MissingHooks(events) => {
                (format!("缺少钩子：{}", events.join("、")), format!("missing hooks: {}", events.join(", ")))
            }
            InstallIssue::ToolHook { is_needed: true } => (
                String::from("一条规则需要工具调用（pre_tool_use）的钩子，但它没有安装"),
                String::from("a rule needs the hook for tool calls (pre_tool_use), which is not installed"),
            ),
            InstallIssue::ToolHook { is_needed: false } => (
                String::from("已安装工具调用（pre_tool_use）的钩子，但没有规则需要它"),
                String::from("the hook for tool calls (pre_tool_use) is installed, but no rule needs it"),
            ),
            InstallIssue::MissingProgram(program) => {
                (format!("找不到程序 {program}"), format!("program not found: {program}"))
            }
            InstallIssue::OtherProgram(program) => (
                format!("指向另一个 tanmi 程序：{program}"),
                format!("points to another tanmi program: {program}"),
            ),
            InstallIssue::DuplicateHooks(events) => (
                format!("重复的钩子：{}", events.join("、")),
                format!("duplicate hooks: {}", events.join(", ")),
            ),
            InstallIssue::AlteredHooks(events) => (
                format!("被修改过的钩子：{}", events.join("、")),
                format!("modified hooks: {}", events.join(", ")),
            ),
            InstallIssue::NoServer => {
                (String::from("未安装 MCP 服务器"), String::from("the MCP server is not installed"))
            }
            InstallIssue::ProbeFailed(error) => {
                let (zh, en) = match error {
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

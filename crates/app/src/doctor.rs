//! Checks of the project store and the home store, and repairs that need no decision by the user.
//!
//! The installation in the files of clients is checked by the command line, not here.

use serde::Serialize;
use tanmi_base::clock::DAY;
use tanmi_base::paths::CONFIG_DIR;
use tanmi_base::{Interface, Lang, Millis, paths};
use tanmi_session::pause;
use tanmi_workspace::store::Fix;

use crate::core::Core;
use crate::memory::MemoryService;
use crate::rules::RuleService;
use crate::trust::ProjectStatus;
use crate::{Result, config};

mod files;
mod home;
mod team;

use files::{find_leftovers, remove};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    Fine,
    /// For information; there is nothing to fix.
    Note,
    /// `--fix` repairs it.
    #[serde(rename = "mendable")]
    Fixable,
    /// It was repaired.
    #[serde(rename = "mended")]
    Fixed,
    /// Only the user can fix it.
    ByHand,
}

#[derive(Clone, Debug, Serialize)]
pub struct CheckResult {
    pub check: &'static str,
    pub health: Health,
    pub text: String,
    /// What the user can do about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub advice: String,
}

impl CheckResult {
    pub fn new(check: &'static str, health: Health, text: String) -> CheckResult {
        CheckResult { check, health, text, advice: String::new() }
    }

    pub fn with(self, advice: String) -> CheckResult {
        CheckResult { advice, ..self }
    }
}

/// The state of a session that was inactive for longer can be deleted.
const INACTIVE_AFTER: Millis = 30 * DAY;
/// A younger state file is not reported as broken, because it may be just being written.
const MIN_AGE: Millis = 60_000;

struct Doctor<'a> {
    core: &'a Core,
    rules: &'a RuleService,
    memory: &'a MemoryService,
    lang: Lang,
    fix: bool,
    out: Vec<CheckResult>,
}

/// Runs all checks. With `fix`, repairs what needs no decision by the user.
pub(crate) fn run_checks(
    core: &Core,
    rules: &RuleService,
    memory: &MemoryService,
    fix: bool,
) -> Vec<CheckResult> {
    let mut doctor = Doctor { core, rules, memory, lang: core.lang(), fix, out: Vec::new() };
    doctor.injection();
    doctor.settings();
    doctor.home();
    doctor.sessions();
    // Nothing is read or repaired in a project that is not used.
    let is_usable = doctor.check_project();
    doctor.leftovers(is_usable);
    if is_usable {
        doctor.rules();
    }
    // A check that fails is reported as one result, and the other checks still run.
    let outcome = doctor.bindings();
    doctor.report_error("bindings", outcome);
    if is_usable {
        doctor.project_access();
        let outcome = doctor.workspaces();
        doctor.report_error("workspaces", outcome);
        let outcome = doctor.memory();
        doctor.report_error("memory", outcome);
    }
    doctor.team();
    doctor.out
}

impl Doctor<'_> {
    fn report(&mut self, check: &'static str, health: Health, zh: String, en: String) {
        self.out.push(CheckResult::new(check, health, self.lang.pick(zh, en)));
    }

    fn report_error(&mut self, check: &'static str, outcome: Result<()>) {
        if let Err(error) = outcome {
            let message = error.message(self.lang);
            self.report(check, Health::ByHand, message.clone(), message);
            self.advise("检查该文件及其权限", "check the file and its permissions");
        }
    }

    fn advise(&mut self, zh: &str, en: &str) {
        let advice = self.lang.pick(zh, en).to_owned();
        if let Some(last) = self.out.last_mut() {
            last.advice = advice;
        }
    }

    /// Reports a problem, and runs `repair` if `fix` is set.
    fn repair(&mut self, check: &'static str, zh: String, en: String, repair: impl FnOnce() -> Result<()>) {
        let (health, failure) = match self.fix.then(repair) {
            None => (Health::Fixable, None),
            Some(Ok(())) => (Health::Fixed, None),
            Some(Err(error)) => (Health::ByHand, Some(error)),
        };
        self.report(check, health, zh, en);
        if let Some(error) = failure {
            self.advise(&error.message(Lang::Zh), &error.message(Lang::En));
        }
    }

    fn report_fine(&mut self, check: &'static str, zh: String, en: String) {
        self.report(check, Health::Fine, zh, en);
    }

    fn injection(&mut self) {
        if self.core.env.disabled {
            let (zh, en) =
                ("注入已停用：设置了 TANMI_DISABLE", "injection is disabled: TANMI_DISABLE is set");
            self.report("silence", Health::ByHand, zh.into(), en.into());
            self.advise("取消环境变量 TANMI_DISABLE", "unset TANMI_DISABLE");
        } else if pause::paused_until(self.core.home(), self.core.now()).is_some() {
            self.report("silence", Health::ByHand, "注入已暂停".into(), "injection is paused".into());
            self.advise("tanmi resume", "tanmi resume");
        }
    }

    fn settings(&mut self) {
        let trust = self.core.trust().of_project(self.core.folder());
        let (_, mut errors) = config::read_all(self.core.home(), Some(&trust));
        // A file that the user did not agree to is not wrong. The check of trust reports it.
        errors.retain(|error| !matches!(error, crate::Error::NotAgreed { .. }));
        for error in &errors {
            let message = error.message(self.lang);
            self.report("settings", Health::ByHand, message.clone(), message);
            self.advise("修正该文件，或运行 tanmi config set", "fix the file, or run tanmi config set");
        }
        if errors.is_empty() {
            self.report_fine("settings", "设置：没有错误".into(), "settings: no errors".into());
        }
    }

    /// Checks that the project belongs to the user, and returns whether it can be used.
    fn check_project(&mut self) -> bool {
        let Err(error) = self.core.project.check() else { return true };
        let message = error.message(self.lang);
        self.report("project", Health::ByHand, message.clone(), message);
        if let Some(hint) = error.hint(self.lang, Interface::CommandLine) {
            self.advise(&hint, &hint);
        }
        false
    }

    fn sessions(&mut self) {
        let states = self.core.states();
        let now = self.core.now();
        let (latest, broken, old) = states.summarize(now - INACTIVE_AFTER, now - MIN_AGE);
        match latest {
            Some((at, platform)) => {
                let when = tanmi_base::clock::local_stamp(at);
                self.report_fine(
                    "sessions",
                    format!("会话：最近活动 {when}，{platform}"),
                    format!("sessions: last activity {when}, {platform}"),
                );
            }
            None => {
                self.report(
                    "sessions",
                    Health::Note,
                    "会话：还没有运行过钩子".into(),
                    "sessions: no hook has run yet".into(),
                );
                self.advise("在智能体中开始一个新会话", "start a new session in your agent");
            }
        }
        if !broken.is_empty() {
            let count = broken.len();
            let (zh, en) = (
                format!("会话：{count} 个会话状态文件无法读取；--fix 会删除它们"),
                format!("sessions: state files cannot be read ({count}); --fix deletes them"),
            );
            self.repair("sessions", zh, en, || broken.iter().try_for_each(|path| remove(path)));
        }
        if old > 0 {
            let (zh, en) = (
                format!("会话：{old} 个会话超过 30 天没有活动；--fix 会删除其状态"),
                format!("sessions: {old} inactive for more than 30 days; --fix deletes the state"),
            );
            self.repair("sessions", zh, en, || {
                states.prune(now - INACTIVE_AFTER, usize::MAX);
                Ok(())
            });
        }
    }

    /// Checks for temporary files that interrupted processes left behind.
    fn leftovers(&mut self, with_project: bool) {
        let mut found = Vec::new();
        let store = with_project.then(|| paths::project_store(self.core.folder()));
        for root in std::iter::once(self.core.home().to_owned()).chain(store) {
            find_leftovers(&root, 6, &mut found);
        }
        if !found.is_empty() {
            let count = found.len();
            let (zh, en) = (
                format!("临时文件：中断的进程遗留了 {count} 个；--fix 会删除它们"),
                format!("temporary files: {count} left by interrupted processes; --fix deletes them"),
            );
            self.repair("leftovers", zh, en, || found.iter().try_for_each(|path| remove(path)));
        }
    }

    fn workspaces(&mut self) -> Result<()> {
        let project = self.core.project.clone();
        let ids = project.feed().ids()?;
        for id in &ids {
            let Some(local) = project.maintenance() else { continue };
            let report = match local.check(id, self.fix, self.core.now()) {
                Ok(report) => report,
                // A workspace that cannot be checked does not stop the checks of the others.
                Err(error) => {
                    self.report_error("workspaces", Err(error.into()));
                    continue;
                }
            };
            for finding in &report.findings {
                let health = match finding.fix {
                    Fix::Repaired => Health::Fixed,
                    Fix::Repairable => Health::Fixable,
                    Fix::ByHand => Health::ByHand,
                };
                let position = finding.line.map_or(String::new(), |line| format!(":{line}"));
                let flaw = finding.flaw.message(self.lang);
                let text = format!("{}{position}: {flaw}", finding.path.display());
                self.report("workspaces", health, text.clone(), text);
                if health == Health::ByHand {
                    self.advise("手动修正该文件", "fix the file by hand");
                }
            }
            if report.findings.is_empty() {
                let nodes = report.nodes;
                self.report_fine(
                    "workspaces",
                    format!("工作区 {id}：没有损坏（节点：{nodes}）"),
                    format!("workspace {id}: no damage (nodes: {nodes})"),
                );
            }
        }
        if ids.is_empty() {
            self.report_fine(
                "workspaces",
                "工作区：此项目中没有".into(),
                "workspaces: none in this project".into(),
            );
        }
        Ok(())
    }

    fn memory(&mut self) -> Result<()> {
        if let Some(Err(error)) = self.memory.load_model() {
            let (zh, en) = (error.message(Lang::Zh), error.message(Lang::En));
            self.report(
                "memory",
                Health::ByHand,
                format!("记忆：{zh}；只能按关键词搜索"),
                format!("memory: {en}; search uses keywords only"),
            );
            self.advise(
                "运行 tanmi memory model add DIR 重新指定模型，或 tanmi memory model remove 移除",
                "run tanmi memory model add DIR to set the model again, or tanmi memory model remove",
            );
        }
        let store = self.core.project.memory();
        if !store.exists() {
            self.report_fine("memory", "记忆：此项目中没有".into(), "memory: none in this project".into());
            return Ok(());
        }
        if let Some(folder) = store.local_folder().filter(|folder| !folder.is_index_sound()) {
            let (zh, en) = ("记忆：索引已损坏", "memory: the index is damaged");
            self.repair("memory", zh.into(), en.into(), || {
                folder.discard_index();
                Ok(())
            });
            if !self.fix {
                return Ok(());
            }
        }
        let stats = self.memory.stats()?;
        if stats.bad_lines > 0 {
            let count = stats.bad_lines;
            let shown = &stats.place;
            self.report(
                "memory",
                Health::ByHand,
                format!("记忆：{shown} 中有 {count} 行无法解析"),
                format!("memory: lines in {shown} cannot be parsed ({count})"),
            );
            self.advise(
                "这些行会被忽略；请手动修正或删除",
                "these lines are ignored; fix or delete them by hand",
            );
        } else {
            let (facts, summaries) = (stats.facts, stats.summaries);
            self.report_fine(
                "memory",
                format!("记忆：没有损坏（事实：{facts}，摘要：{summaries}）"),
                format!("memory: no damage (facts: {facts}, summaries: {summaries})"),
            );
        }
        Ok(())
    }

    /// Reports content of the project that does not count without the user's consent.
    fn trust(&mut self) {
        // Without the file no project is trusted, which the check of the home store has reported.
        if self.core.trust().damage().is_some() {
            return;
        }
        let project = self.core.folder();
        let (status, pending) = (self.core.trust().of_project(project).status(), self.rules.pending());
        let has_content = !pending.files.is_empty() || pending.memory.is_some();
        let (zh, en) = match status {
            ProjectStatus::Replaced => (
                "信任：此文件夹不是你同意过的那个（或其标识已被删除，例如被 git clean -fdx 删除），其中的内容不会注入",
                "trust: this is not the folder that you agreed to (or its id was deleted, for example by git clean -fdx); \
                 its content is not injected",
            ),
            ProjectStatus::Unknown if has_content => (
                "信任：此项目未被信任，随项目而来的记忆、声明的上下文和设置不会生效",
                "trust: this project is not trusted; memory, declared context and settings that came with it do not count",
            ),
            ProjectStatus::Trusted if has_content => (
                "信任：声明的上下文、设置或记忆在你同意之后有变化，不会生效",
                "trust: declared context, settings or memory changed since you agreed and do not count",
            ),
            _ => ("", ""),
        };
        if !en.is_empty() {
            self.report("trust", Health::ByHand, zh.into(), en.into());
            self.advise("查看这些内容，然后运行 tanmi trust", "review this content, then run tanmi trust");
        }
        let dir = project.join(CONFIG_DIR);
        if tanmi_base::fs::is_link(&dir) && self.core.env.user.as_deref() != Some(project) {
            let dir = dir.display();
            self.report(
                "trust",
                Health::ByHand,
                format!("信任：{dir} 是符号链接，不会读取其中的文件"),
                format!("trust: {dir} is a symbolic link, so its files are not read"),
            );
            self.advise("用真实的文件夹替换该链接", "replace the link with a real folder");
        }
    }

    fn rules(&mut self) {
        self.trust();
        for (path, reason) in self.rules.declared_flaws() {
            let path = path.display();
            let (zh, en) =
                (format!("声明的上下文：{path}: {reason}"), format!("declared context: {path}: {reason}"));
            self.report("context", Health::ByHand, zh, en);
            self.advise(
                "修正该文件；运行 tanmi context show 查看结果",
                "fix the file; run tanmi context show to see the result",
            );
        }
        for checked in self.rules.check(None) {
            for flaw in &checked.flaws {
                let text = format!("{}:{}: {}", checked.path, flaw.line, flaw.message);
                self.report("rules", Health::ByHand, format!("规则：{text}"), format!("rules: {text}"));
                self.advise(
                    "修正该文件；运行 tanmi rules check 验证",
                    "fix the file; run tanmi rules check to verify it",
                );
            }
            if !checked.trusted {
                let path = &checked.path;
                self.report(
                    "rules",
                    Health::ByHand,
                    format!("规则：{path} 未被信任，其中的规则不会执行"),
                    format!("rules: {path} is not trusted, so its rules do not run"),
                );
                self.advise(
                    "查看该文件，然后运行 tanmi rules trust",
                    "review the file, then run tanmi rules trust",
                );
            }
        }
    }
}

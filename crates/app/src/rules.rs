//! Use cases for rules: list, check, explain and trust.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use tanmi_base::{Lang, Millis, text};
pub use tanmi_engine::Verdict;
use tanmi_engine::{BUILTIN_RULES, CustomRule, RuleFlaw, RuleSource, RuleTrace};
use tanmi_event::{Event, EventKind, Payload, Platform, RuleId, StartSource};
use tanmi_session::ClientProcess;

use crate::core::Core;
use crate::error::{Error, Result};
use crate::pipeline::rules::{self, RuleFile};
use crate::pipeline::{self, PipelineTrace};
use crate::resolver::Resolver;
use crate::trust::pending::{PendingFile, pending_files};
use crate::trust::{ProjectFile, ProjectTrust};

mod tools;

pub use tools::ToolRules;

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleLine {
    pub id: RuleId,
    pub name: String,
    pub source: &'static str,
    pub priority: i32,
    /// Empty means all events.
    pub events: Vec<EventKind>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub platforms: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    pub state: RuleState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// Whether a rule can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleState {
    Active,
    /// Disabled by a setting or by the `enabled` field of the rule.
    Off,
    /// The user does not trust its file.
    Untrusted,
}

impl RuleState {
    pub fn as_str(self) -> &'static str {
        match self {
            RuleState::Active => "active",
            RuleState::Off => "off",
            RuleState::Untrusted => "untrusted",
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct RuleLines {
    pub rules: Vec<RuleLine>,
    pub total: usize,
}

#[derive(Clone, Debug, Default)]
pub struct RuleFilter {
    pub source: Option<String>,
    pub event: Option<String>,
    pub limit: usize,
}

#[derive(Clone, Debug, Serialize)]
pub struct CheckedRules {
    pub path: String,
    pub source: &'static str,
    pub trusted: bool,
    /// Whether the file changed since the user trusted it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
    pub rules: usize,
    pub flaws: Vec<FlawLine>,
    /// Limits of rules that are not mistakes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Whether a rule names tool calls.
    #[serde(skip)]
    pub has_tool_rules: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct FlawLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// 0 if unknown.
    pub line: usize,
    pub message: String,
    /// Whether the rule is ignored because of it.
    pub fatal: bool,
}

/// The result of a rule for an explained event.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedRule {
    pub id: RuleId,
    pub name: String,
    pub source: &'static str,
    pub priority: i32,
    pub matched: bool,
    #[serde(serialize_with = "as_word")]
    pub verdict: Verdict,
    pub why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    pub bytes: usize,
    pub tokens: usize,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    pub event: &'static str,
    pub platform: &'static str,
    pub session_id: String,
    pub workspace_id: Option<String>,
    pub node_id: Option<String>,
    /// Whether injection is paused or disabled, so that nothing is injected regardless of the rules.
    pub silenced: bool,
    pub rules: Vec<ExplainedRule>,
    pub files: Vec<CheckedRules>,
    /// The exact text that would be injected.
    pub text: String,
    pub bytes: usize,
    pub tokens: usize,
}

/// The event to explain.
#[derive(Clone, Debug, Default)]
pub struct ExplainRequest {
    pub event: Option<String>,
    pub session: Option<String>,
    pub platform: Option<&'static Platform>,
    pub prompt: Option<String>,
    pub workspace: Option<String>,
    pub node: Option<String>,
    pub start: Option<String>,
}

/// A rules file that is not trusted yet.
#[derive(Clone, Debug, Serialize)]
pub struct PendingRules {
    pub path: String,
    pub hash: String,
    /// Whether the user trusted other content of the file before.
    pub changed: bool,
    /// One line per rule: `id: content [if condition] [stopPropagation]`.
    pub rules: Vec<String>,
    #[serde(skip)]
    file: ProjectFile,
}

/// What the user is asked to agree to.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PendingTrust {
    pub rules: Vec<PendingRules>,
    pub files: Vec<PendingFile>,
    /// The memory folder, if it is not yet trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
}

impl PendingTrust {
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.files.is_empty() && self.memory.is_none()
    }
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TrustView {
    pub project: String,
    pub trusted: bool,
    /// What this call asked the user to agree to.
    #[serde(flatten)]
    pub pending: PendingTrust,
    /// Whether the call changed anything.
    pub done: bool,
}

/// The use cases for rules and trust.
#[derive(Clone)]
pub struct RuleService {
    pub(crate) core: Arc<Core>,
    resolver: Resolver,
}

impl RuleService {
    pub(crate) fn new(core: Arc<Core>) -> RuleService {
        RuleService { resolver: Resolver::new(core.clone()), core }
    }

    fn files(&self) -> Vec<RuleFile> {
        self.files_of(self.core.folder())
    }

    /// Returns the rules files of the user, of a project and of its workspaces.
    fn files_of(&self, folder: &Path) -> Vec<RuleFile> {
        let project = match folder == self.core.folder() {
            true => self.core.project.clone(),
            false => self.core.stores.projects.in_folder(folder),
        };
        let workspaces = project.feed().ids().unwrap_or_default();
        let trust = self.core.trust().of_project(folder);
        let mut files: Vec<RuleFile> = Vec::new();
        for id in workspaces.iter().map(Some).chain([None]) {
            for file in rules::load(self.core.env.user.as_deref(), Some(&trust), id) {
                if !files.iter().any(|known| known.path == file.path) {
                    files.push(file);
                }
            }
        }
        files.sort_by_key(|file| file.source);
        files
    }

    pub fn list(&self, filter: &RuleFilter) -> Result<RuleLines> {
        let lang = self.core.lang();
        let event = filter.event.as_deref().map(parse_event_kind).transpose()?;
        if let Some(source) = filter.source.as_deref().filter(|source| !SOURCES.contains(source)) {
            let expected = SOURCES.join(" | ");
            return Err(Error::BadValue { key: "source", value: source.to_owned(), expected });
        }
        let builtin = BUILTIN_RULES.iter().map(|rule| RuleLine {
            id: rule.id.into(),
            name: lang.pick(rule.about.0, rule.about.1).to_owned(),
            source: RuleSource::Builtin.as_str(),
            priority: rule.priority,
            events: rule.events.to_vec(),
            platforms: Vec::new(),
            condition: None,
            state: match pipeline::disabled_rules(&self.core.config).contains(&rule.id) {
                true => RuleState::Off,
                false => RuleState::Active,
            },
            path: None,
        });
        let files = self.files();
        let custom = files.iter().flat_map(|file| file.rules.iter().map(move |rule| (file, rule)));
        let custom = custom.map(|(file, rule)| self.rule_line(file, rule));
        let mut lines: Vec<RuleLine> = builtin.chain(custom).collect();
        lines.sort_by_key(|line| line.priority);
        lines.retain(|line| {
            filter.source.as_deref().is_none_or(|source| source == line.source)
                && event.is_none_or(|kind| line.events.is_empty() || line.events.contains(&kind))
        });
        let total = lines.len();
        lines.truncate(filter.limit);
        Ok(RuleLines { rules: lines, total })
    }

    fn rule_line(&self, file: &RuleFile, rule: &CustomRule) -> RuleLine {
        RuleLine {
            id: RuleId::Custom(rule.id.clone()),
            name: rule.name.clone(),
            source: rule.source.as_str(),
            priority: rule.priority,
            events: rule.events.clone(),
            platforms: rule.platforms.iter().map(|platform| platform.id).collect(),
            condition: rule.condition.clone(),
            state: match (rule.trusted, rule.enabled && self.core.config.custom_rules) {
                (false, _) => RuleState::Untrusted,
                (true, true) => RuleState::Active,
                (true, false) => RuleState::Off,
            },
            path: Some(file.path.display().to_string()),
        }
    }

    /// Checks the given rules file, or all rules files of the user, this project and its workspaces.
    pub fn check(&self, file: Option<&Path>) -> Vec<CheckedRules> {
        let lang = self.core.lang();
        match file {
            Some(path) => vec![check_file(&rules::read_as_trusted(path), lang)],
            None => self.files().iter().map(|file| check_file(file, lang)).collect(),
        }
    }

    /// Returns the event of a request, as a hook would report it.
    pub fn event_to_explain(&self, request: ExplainRequest) -> Result<Event> {
        let kind = parse_event_kind(request.event.as_deref().unwrap_or(EventKind::PromptSubmit.as_str()))?;
        let start = parse_start_source(kind, request.start.as_deref())?;
        let mut payload = Payload {
            prompt: request.prompt,
            cwd: Some(self.core.folder().display().to_string()),
            start,
            node_id: request.node,
            ..Payload::default()
        };
        if let Some(workspace) = &request.workspace {
            let ws = self.resolver.workspace(workspace)?;
            if let Some(node) = &mut payload.node_id {
                let id = self.resolver.node_id(&ws, "nodeId", node)?;
                ws.project.workspaces().node(&ws.id, &id, self.core.now())?;
                *node = id.to_string();
            }
            payload.project = Some(ws.project.folder().to_owned());
            payload.workspace_id = Some(ws.id.to_string());
        }
        Ok(self.hook_event(kind, request.session, request.platform, payload))
    }

    /// Returns what would be injected at this event, and why. Writes nothing.
    pub fn explain(
        &self,
        event: &Event,
        edited: Option<&Path>,
        at: Option<Millis>,
        client: Option<ClientProcess>,
    ) -> Explanation {
        let mut caller = self.core.caller();
        caller.client = client;
        (caller.uses_tags, caller.reader) = (true, None);
        caller.now = at.unwrap_or(caller.now);
        let explained = pipeline::explain(&caller, event, edited);
        // Reasons are for the person who asks; only the injected text has the language of the agent.
        let lang = self.core.lang();
        let PipelineTrace { response, rules, facts, files, silenced } = explained;
        let text = response.text;
        Explanation {
            event: event.kind.as_str(),
            platform: event.platform.id,
            session_id: event.session.clone(),
            workspace_id: facts.workspace.map(|workspace| workspace.id),
            node_id: facts.node.map(|node| node.id),
            silenced,
            rules: rules.into_iter().map(|trace| explained_rule(trace, lang)).collect(),
            files: files.iter().map(|file| check_file(file, lang)).collect(),
            bytes: text.len(),
            tokens: text::estimate_tokens(&text),
            text,
        }
    }

    /// Returns the rules files here that are not trusted.
    pub fn pending_rules(&self) -> Vec<PendingRules> {
        let trust = self.core.trust().of_project(self.core.folder());
        let untrusted = self.files().into_iter().filter(|file| !file.trusted);
        untrusted.filter_map(|file| read_pending(&trust, &file)).collect()
    }

    /// Returns everything in this project that the user has not agreed to yet.
    pub fn pending(&self) -> PendingTrust {
        let trust = self.core.trust().of_project(self.core.folder());
        let memory = self.core.project.memory();
        let folder =
            memory.local_folder().filter(|folder| folder.exists() && !trust.has_memory(folder.dir()));
        PendingTrust {
            rules: self.pending_rules(),
            files: pending_files(&trust),
            memory: folder.map(|folder| folder.dir().display().to_string()),
        }
    }

    /// Trusts exactly the content that [`RuleService::pending_rules`] returned.
    pub fn trust_rules(&self, pending: &[PendingRules]) -> Result<()> {
        let files: Vec<ProjectFile> = pending.iter().map(|rules| rules.file.clone()).collect();
        self.core.trust().add_files(self.core.folder(), &files, self.core.now())
    }

    /// Trusts this project, and exactly the content that [`RuleService::pending`] returned.
    pub fn trust_project(&self, pending: &PendingTrust) -> Result<()> {
        let rules = pending.rules.iter().map(|rules| rules.file.clone());
        let files: Vec<ProjectFile> =
            rules.chain(pending.files.iter().map(|pending| pending.file.clone())).collect();
        self.core.trust().add_project(self.core.folder(), "trusted", &files, self.core.now())
    }

    pub fn is_project_trusted(&self) -> bool {
        self.core.trust().has_project(self.core.folder())
    }

    /// Returns whether the folder has anything of Tanmi that could be trusted.
    pub fn has_project_content(&self) -> bool {
        !crate::trust::is_clean(self.core.folder())
    }

    /// Removes trust from this project. Returns whether there was any.
    pub fn distrust_project(&self) -> Result<bool> {
        self.core.trust().remove_project(self.core.folder())
    }
}

const SOURCES: &[&str] = &["built-in", "workspace", "project", "global"];

/// Parses how a session started. Returns `None` if the event is not a session start.
pub(crate) fn parse_start_source(kind: EventKind, word: Option<&str>) -> Result<Option<StartSource>> {
    let start = StartSource::from_word(word.unwrap_or_default());
    if let Some(word) = word.filter(|word| *word != start.as_str()) {
        let words: Vec<&str> = StartSource::ALL.iter().map(|start| start.as_str()).collect();
        return Err(Error::bad_value("start", word, words.join(" | ")));
    }
    Ok((kind == EventKind::SessionStart).then_some(start))
}

pub(crate) fn parse_event_kind(word: &str) -> Result<EventKind> {
    EventKind::from_word(word).ok_or_else(|| {
        let words: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
        Error::BadValue { key: "event", value: word.to_owned(), expected: words.join(" | ") }
    })
}

/// Reads an untrusted file again, so that its content can be trusted. Returns `None` if the content changed since the
/// file was parsed.
fn read_pending(trust: &ProjectTrust, file: &RuleFile) -> Option<PendingRules> {
    let read = rules::read_project_file(trust, file.source, &file.path).ok()??;
    (tanmi_base::hash::sha256_hex(&read.bytes) == file.hash).then(|| PendingRules {
        path: read.path.display().to_string(),
        hash: file.hash.clone(),
        changed: file.is_changed,
        rules: file.rules.iter().map(describe_rule).collect(),
        file: read,
    })
}

/// Returns the line that shows a rule to the user before they trust it.
fn describe_rule(rule: &CustomRule) -> String {
    let mut line = format!("{}: {}", rule.id, rule.content);
    if let Some(condition) = &rule.condition {
        line.push_str(&format!(" [if {condition}]"));
    }
    if rule.stops {
        line.push_str(" [stopPropagation]");
    }
    line
}

fn check_file(file: &RuleFile, lang: Lang) -> CheckedRules {
    let line = |flaw: RuleFlaw| FlawLine {
        rule: flaw.rule.filter(|rule| !rule.is_empty()),
        line: flaw.line,
        message: lang.pick(flaw.zh, flaw.en),
        fatal: flaw.fatal,
    };
    let (tool_flaws, notes) = tools::check(file, lang);
    CheckedRules {
        path: file.path.display().to_string(),
        source: file.source.as_str(),
        trusted: file.trusted,
        changed: file.is_changed,
        rules: file.rules.len(),
        flaws: rules::check(file).into_iter().chain(tool_flaws).map(line).collect(),
        notes,
        has_tool_rules: file.rules.iter().any(tools::names_tools),
    }
}

fn explained_rule(trace: RuleTrace, lang: Lang) -> ExplainedRule {
    let content = match &trace.verdict {
        Verdict::Injected { content } => Some(content.clone()),
        _ => None,
    };
    ExplainedRule {
        id: trace.rule,
        name: lang.pick(trace.name.0, trace.name.1),
        source: trace.source.as_str(),
        priority: trace.priority,
        matched: trace.verdict.is_match(),
        why: describe_verdict(&trace.verdict, lang),
        verdict: trace.verdict,
        bytes: content.as_ref().map_or(0, String::len),
        tokens: content.as_deref().map_or(0, text::estimate_tokens),
        content,
    }
}

fn as_word<S: serde::Serializer>(verdict: &Verdict, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(verdict.as_str())
}

/// Returns a sentence for people.
fn describe_verdict(verdict: &Verdict, lang: Lang) -> String {
    let plain = |zh: &str, en: &str| lang.pick(zh, en).to_owned();
    match verdict {
        Verdict::Injected { .. } => plain("已匹配，注入其文本", "matched; its text is injected"),
        Verdict::Matched => plain("已匹配，没有文本", "matched; it has no text"),
        Verdict::Repeated => plain("另一条规则已注入相同的文本", "another rule injects the same text"),
        Verdict::Throttled { left } => {
            let seconds = (left + 999) / 1000;
            lang.pick(format!("节流中，还剩 {seconds} 秒"), format!("throttled for another {seconds} s"))
        }
        Verdict::Skipped((zh, en)) => plain(zh, en),
        Verdict::ConditionFalse => plain("条件不成立", "the condition is false"),
        Verdict::ConditionFailed(reason) => {
            let en = format!("the condition cannot be evaluated: {reason}");
            lang.pick(format!("条件无法求值：{reason}"), en)
        }
        Verdict::OtherEvent => plain("不适用于此事件", "does not apply to this event"),
        Verdict::OtherPlatform => plain("不适用于此平台", "does not apply to this platform"),
        Verdict::Disabled => plain("已停用", "disabled"),
        Verdict::Untrusted => plain(
            "规则文件未受信任；在终端运行 `tanmi rules trust`",
            "the rules file is not trusted; run `tanmi rules trust` in a terminal",
        ),
        Verdict::Shadowed { by } => {
            let by = by.as_str();
            let en = format!("overridden by the rule with the same id in the {by} rules file");
            lang.pick(format!("被 {by} 规则文件中 id 相同的规则覆盖"), en)
        }
        Verdict::Stopped { by } => {
            lang.pick(format!("规则 {by} 终止了后续规则"), format!("stopped by rule {by}"))
        }
        Verdict::OverCap => {
            plain("已匹配，但超出平台的字节上限", "matched, but over the byte limit of the platform")
        }
        Verdict::Suppressed => plain("钩子已注入，不再重复", "a hook has already injected it"),
    }
}

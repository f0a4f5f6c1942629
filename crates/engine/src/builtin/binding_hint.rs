//! Tells an unbound session how to bind when the prompt mentions workspaces or asks to continue, and once what is
//! in progress in the latest workspace of the project. Ignores prompts that are mostly code.

use tanmi_base::text;
use tanmi_event::{ActionKind, BuiltinRuleId, Event, EventKind, Throttle};

use super::hint_words::{asks_to_continue, mentions_workspaces};
use super::session_info::NAME_COLUMNS;
use super::{BOUND, BuiltinRule, RuleInput, RuleOutput, SkipReason, default_throttle, session_info};
use crate::context_text::overview_text;
use crate::decide::time_left;
use crate::escape_tags::escape_line;
use crate::facts::{AvailableFacts, AvailableWorkspace, Facts};

pub const RULE: BuiltinRule = BuiltinRule {
    id: BuiltinRuleId::BindingHint,
    about: ("未绑定时的绑定提示", "tells an unbound session how to bind when the prompt mentions workspaces"),
    priority: 30,
    events: &[EventKind::PromptSubmit],
    run,
};

/// The key of the throttle.
pub(super) const KEY: &str = "binding_hint";

/// Returns whether a rule is about to inject a text that depends on the workspaces of the project: at the start of an
/// unbound session, and for this hint. Only then does the caller have to look for them.
pub fn needs_workspaces(event: &Event, facts: &Facts) -> bool {
    let is_unbound_start = event.kind == EventKind::SessionStart
        && facts.workspace.is_none()
        && !facts.disabled_rules.contains(&session_info::RULE.id);
    is_unbound_start || needs_workspaces_for_hint(event, facts)
}

fn needs_workspaces_for_hint(event: &Event, facts: &Facts) -> bool {
    RULE.events.contains(&event.kind)
        && !facts.disabled_rules.contains(&RULE.id)
        && time_left(&throttle(), facts).is_none()
        && check(&RuleInput { event, facts, bytes_left: 0, has_context: false }).is_ok()
}

fn throttle() -> Throttle {
    default_throttle(KEY, RULE.id)
}

fn check(ctx: &RuleInput<'_>) -> Result<(), SkipReason> {
    let facts = ctx.facts;
    if facts.workspace.is_some() {
        return Err(BOUND);
    }
    ctx.check_workspace_not_lost()?;
    let prompt = ctx.event.payload.prompt.as_deref().unwrap_or_default();
    let was_unbound = facts.session.was_unbound_by_user;
    let is_first = facts.session.total_prompts <= 1 && !was_unbound;
    let is_meant = mentions_workspaces(prompt, was_unbound) || (is_first && asks_to_continue(prompt));
    if !is_meant {
        return Err(("提示词没有提到工作区", "the prompt does not mention workspaces"));
    }
    if is_mostly_code(prompt) {
        return Err(("提示词主要是代码", "the prompt is mostly code"));
    }
    Ok(())
}

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    check(ctx)?;
    let facts = ctx.facts;
    let AvailableFacts { total, archived, damaged, .. } = facts.available;
    let prompt = ctx.event.payload.prompt.as_deref().unwrap_or_default();
    if total + archived + damaged == 0 && asks_to_continue(prompt) {
        return Err(("本项目没有可以继续的工作区", "the project has no workspace to continue"));
    }
    let is_new = |workspace: &AvailableWorkspace| workspace.created_at > facts.session.started_at;
    let is_told = facts.session.hooks_seen.contains(&EventKind::SessionStart)
        && !facts.available.first.iter().any(is_new);
    let mut content = match is_told {
        false => session_info::how_to_bind(facts),
        true if total == 0 && damaged > 0 => session_info::how_to_bind(facts),
        // The session start told the id and the workspaces.
        true if total == 0 && archived > 0 => {
            let zh = format!(
                "本会话未绑定，本项目的 {archived} 个工作区均已归档。要继续其中一个：workspace_list 列出，workspace_restore 恢复，session_bind 绑定。"
            );
            let en = format!(
                "Tanmi: not bound; {archived} archived and no active workspace in this project. To continue one: workspace_list names it, workspace_restore restores it, session_bind binds it."
            );
            facts.lang.pick(zh, en)
        }
        true if total == 0 => {
            let zh = "本会话未绑定，本项目没有活跃的工作区；workspace_init 创建工作区，session_bind 绑定它。";
            let en = "Tanmi: not bound, and no active workspace in this project. workspace_init creates one; session_bind binds it.";
            facts.lang.pick(zh, en).to_owned()
        }
        true => {
            let zh = "本会话未绑定工作区；session_bind 绑定，session_status 列出工作区。";
            let en = "Tanmi: this session is not bound. session_bind binds a workspace; session_status lists them.";
            facts.lang.pick(zh, en).to_owned()
        }
    };
    // Once: the agent still knows it at the next hint.
    if let Some((workspace, overview)) = latest_overview(facts).filter(|_| !facts.session.told_latest) {
        if total > 1 {
            let name = escape_line(&text::fit(&text::one_line(&workspace.name), NAME_COLUMNS));
            let name = format!("{name} ({})", escape_line(&workspace.id));
            let line =
                facts.lang.pick(format!("\n最近的工作区：{name}"), format!("\nLatest workspace: {name}"));
            content.push_str(&line);
        }
        content.push('\n');
        content.push_str(&overview);
    }
    Ok(RuleOutput { kind: ActionKind::BindingHint, content, throttle: Some(throttle()) })
}

/// Returns the workspace that was worked on last, and what is in progress and next there. `None` if there is nothing.
fn latest_overview(facts: &Facts) -> Option<(&AvailableWorkspace, String)> {
    let latest = facts.available.first.first()?;
    let overview = overview_text(&latest.overview, &facts.session.id, facts.lang);
    Some((latest, overview)).filter(|(_, overview)| !overview.is_empty())
}

/// Returns whether a hint tells what is in progress in the latest workspace.
pub fn tells_latest(hint: &str, facts: &Facts) -> bool {
    latest_overview(facts).is_some_and(|(_, overview)| hint.ends_with(&overview))
}

/// How lines of code, of a shell and of a compiler begin.
const CODE_STARTS: &[&str] = &[
    "import ", "from ", "def ", "fn ", "#include", "//", "$ ", "at ", "error:", "error[", "warning:", "--> ",
    "= note:", "= help:",
];

/// Returns whether a line quotes source as compilers do: `12 | let x`, or ` | ^^^`.
fn is_quoted_source(line: &str) -> bool {
    let line = line.trim_start();
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.trim_start().starts_with('|') && (rest.len() < line.len() || rest.contains('^'))
}

fn is_mostly_code(prompt: &str) -> bool {
    let mut is_fenced = false;
    let (mut code, mut prose) = (0usize, 0usize);
    for line in prompt.lines().map(str::trim_end).filter(|line| !line.trim().is_empty()) {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
            continue;
        }
        let looks_like_code = line.ends_with([';', '{', '}', ')', ',', '>'])
            || line.starts_with("    ")
            || line.starts_with('\t')
            || CODE_STARTS.iter().any(|start| line.trim_start().starts_with(start))
            || is_quoted_source(line);
        if is_fenced || looks_like_code { code += line.len() } else { prose += line.len() }
    }
    code > prose
}

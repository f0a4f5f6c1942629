//! An unbound session whose user speaks of workspaces is told how to bind. Never for prompts that are mostly code.

use tanmi_event::{ActionKind, EventKind};

use super::{BOUND, BuiltinRule, RuleInput, RuleOutput, SkipReason, quiet, session_info};

pub const RULE: BuiltinRule = BuiltinRule {
    id: "binding-hint",
    about: ("未绑定时的绑定提示", "tells an unbound session how to bind when the prompt mentions workspaces"),
    priority: 30,
    events: &[EventKind::PromptSubmit],
    run,
};

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    let facts = ctx.facts;
    if facts.workspace.is_some() {
        return Err(BOUND);
    }
    ctx.refuse_if_lost()?;
    let prompt = ctx.event.payload.prompt.as_deref().unwrap_or_default();
    if !speaks_of_workspaces(prompt, facts.session.unbound) {
        return Err(("提示词没有提到工作区", "the prompt does not mention workspaces"));
    }
    if is_mostly_code(prompt) {
        return Err(("提示词主要是代码", "the prompt is mostly code"));
    }
    let content = if facts.has_workspaces {
        session_info::how_to_bind(facts)
    } else {
        let id = crate::escape_tags(&facts.session.id);
        let zh = format!(
            "你的会话 ID 是 {id}。\n还没有活跃的工作区；workspace_init 创建工作区，session_bind 绑定它。"
        );
        let en = format!(
            "Session ID: {id}\nThere is no active workspace yet. workspace_init creates one; session_bind binds it."
        );
        facts.lang.pick(zh, en)
    };
    Ok(RuleOutput { kind: ActionKind::BindingHint, content, throttle: Some(quiet("binding_hint", RULE.id)) })
}

/// After an unbind only the plainest words count: the person has just said no.
fn speaks_of_workspaces(prompt: &str, after_unbind: bool) -> bool {
    let prompt = prompt.to_lowercase();
    let (han, latin): (&[&str], &[&str]) = if after_unbind {
        (&["工作区"], &["workspace", "workspaces"])
    } else {
        (&["工作区", "任务", "节点"], &["workspace", "workspaces", "tanmi"])
    };
    han.iter().any(|word| prompt.contains(word)) || latin.iter().any(|word| has_word(&prompt, word))
}

/// A whole word: `workspace` but not `workspace_roots`, `tanmi` but not `tanmi.rs`.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | '\\' | '@');
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let mut after = text[at + word.len()..].chars();
        let next = after.next();
        // A full stop ends a sentence; inside a file name something follows it.
        let in_name = next == Some('.') && after.next().is_some_and(|c| c.is_ascii_alphanumeric());
        !before.is_some_and(|c| is_part(c) || c == '.') && !next.is_some_and(is_part) && !in_name
    })
}

fn is_mostly_code(prompt: &str) -> bool {
    let mut fenced = false;
    let (mut code, mut prose) = (0usize, 0usize);
    for line in prompt.lines().map(str::trim_end).filter(|line| !line.trim().is_empty()) {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        let looks = line.ends_with([';', '{', '}', ')', ',', '>'])
            || line.starts_with("    ")
            || line.starts_with('\t')
            || ["import ", "from ", "def ", "fn ", "#include", "//", "$ ", "at "]
                .iter()
                .any(|start| line.trim_start().starts_with(start));
        if fenced || looks { code += line.len() } else { prose += line.len() }
    }
    code > prose
}

//! Declared context in the pipeline: decides whether the files may have to be injected. They are read only if their
//! list or metadata changed since the last injection.

use std::path::Path;

use tanmi_engine::{DeclaredFacts, SkipReason};
use tanmi_event::{Event, EventKind, StartSource};
use tanmi_session::SessionState;

use super::Caller;
use crate::config::Config;
use crate::declared::{self, ContextLookup};
use crate::trust::ProjectTrust;

/// Returns the declared context to inject, or why there is none.
pub fn load(
    caller: &Caller<'_>,
    event: &Event,
    state: &SessionState,
    config: &Config,
    project: Option<&ProjectTrust>,
    warnings: &mut Vec<String>,
) -> Result<DeclaredFacts, SkipReason> {
    let kinds = [EventKind::SessionStart, EventKind::PromptSubmit, EventKind::SubagentStart];
    if !kinds.contains(&event.kind) {
        return Err(("此规则不处理该事件", "this rule does not handle the event"));
    }
    if !config.declared_context {
        return Err(("声明的上下文已关闭", "declared context is disabled"));
    }
    let mut declaration = declared::find(&lookup(caller, event, project));
    warnings.extend(declaration.flaws.iter().map(|(path, reason)| format!("{}: {reason}", path.display())));
    if declaration.included().next().is_none() {
        return Err(("没有声明的上下文", "no context is declared"));
    }
    if event.kind == EventKind::PromptSubmit && !caller.home.is_dir() {
        // Without a home store there is no session state, and the files would be injected at every prompt.
        return Err((
            "无法保存会话状态，仅在会话开始时注入",
            "session state cannot be saved, so it is injected only at session start",
        ));
    }
    let is_for_subagent = event.kind == EventKind::SubagentStart;
    let known =
        state.declared.as_deref().filter(|_| !is_for_subagent).and_then(|known| known.split_once('.'));
    // `advance` clears `state.declared` when a session starts, so the text is injected into a new session. A resumed
    // session keeps it, because its history still contains the text.
    if known.is_some_and(|(known, _)| known == declaration.digest()) {
        return Err(ALREADY_INJECTED);
    }
    let read = declaration.read(project);
    if declaration.included().next().is_none() {
        return Err((
            "声明的上下文在用户同意之后有变化；运行 tanmi trust",
            "declared context changed since the user agreed; run tanmi trust",
        ));
    }
    let all: String = read.iter().map(|file| format!("{}\0{}\0", file.path, file.text)).collect();
    let content_digest = tanmi_base::hash::md5_hex(all.as_bytes());
    // Only of the files that were injected: the others are injected as soon as the user agrees to them.
    let digest = format!("{}.{content_digest}", declaration.digest());
    let prompt = event.payload.prompt.as_deref().unwrap_or_default();
    let known_because = match known {
        // The metadata changed, but not the content.
        Some((_, known)) if known == content_digest => Some(ALREADY_INJECTED),
        _ if declaration.is_in_prompt(prompt) => Some(("提示词中已包含", "the prompt already contains it")),
        _ => None,
    };
    Ok(DeclaredFacts { files: read, digest, known_because })
}

/// Returns the lookup of declared context for this event.
pub fn lookup<'a>(
    caller: &'a Caller<'_>,
    event: &'a Event,
    project: Option<&'a ProjectTrust>,
) -> ContextLookup<'a> {
    ContextLookup {
        user: caller.user,
        project,
        container: caller.context,
        platform: event.platform,
        client_version: caller.client_version,
        cwd: event.payload.cwd.as_deref().map(Path::new),
        agent: (event.kind == EventKind::SubagentStart)
            .then(|| event.payload.agent_type.as_deref().unwrap_or_default()),
        mount: caller.mount,
    }
}

const ALREADY_INJECTED: SkipReason = ("已注入且未变化", "already injected and unchanged");

/// Updates the session state for an event, before the decision: a new session and a compaction lose the declared
/// context.
pub fn advance(state: &mut SessionState, event: &Event) {
    let is_new = event.kind == EventKind::SessionStart && event.payload.start != Some(StartSource::Resume);
    if is_new || event.kind == EventKind::PreCompact {
        state.declared = None;
    }
}

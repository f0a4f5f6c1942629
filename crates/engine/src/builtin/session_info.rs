//! Tells an unbound session its id when it starts, so that it can be bound.

use tanmi_base::text;
use tanmi_event::{ActionKind, BuiltinRuleId, EventKind, StartSource};

use super::{BOUND, BuiltinRule, NO_PROJECT_DATA, RuleInput, RuleOutput, SkipReason, binding_hint};
use crate::escape_tags::escape_line;
use crate::facts::{AvailableFacts, AvailableWorkspace, Facts};

pub const RULE: BuiltinRule = BuiltinRule {
    id: BuiltinRuleId::SessionInfo,
    about: (
        "未绑定会话开始时告知会话 ID 和可用的工作区",
        "tells an unbound session its ID and the workspaces at session start",
    ),
    priority: 10,
    events: &[EventKind::SessionStart],
    run,
};

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    let facts = ctx.facts;
    if facts.workspace.is_some() {
        return Err(BOUND);
    }
    ctx.check_workspace_not_lost()?;
    // Nothing is lost by a compaction where nothing was told.
    if ctx.event.payload.start == Some(StartSource::Compact) && !facts.has_project_data {
        return Err(NO_PROJECT_DATA);
    }
    let hint_at = facts.session.last_injected.get(binding_hint::KEY);
    let is_just_told = hint_at.is_some_and(|at| facts.now - at < JUST_TOLD);
    if ctx.event.platform.start_may_follow_prompt && is_just_told {
        return Err(("第一条提示词刚刚告知", "the first prompt has just told it"));
    }
    RuleOutput::unthrottled(ActionKind::SessionInfo, how_to_bind(facts))
}

/// Clients that run the hook of the start after that of the first prompt do so within this time, in milliseconds.
const JUST_TOLD: i64 = 10_000;

/// The maximum width of a name in the list of workspaces.
pub(super) const NAME_COLUMNS: usize = 40;

/// Returns a text with the session id, the workspaces of the project and how to bind. The rule `binding-hint`
/// uses it, too.
pub(super) fn how_to_bind(facts: &Facts) -> String {
    let id = escape_line(&facts.session.id);
    let (zh, en) = available(facts);
    let zh = match facts.available.total {
        0 => format!("会话 {id} 未绑定。{zh}"),
        _ => format!("你的会话 ID 是 {id}，可以用它调用 session_bind。\n本会话未绑定工作区。{zh}"),
    };
    let en = format!("Tanmi: session {id}, not bound. {en}");
    facts.lang.pick(zh, en)
}

/// Returns which workspaces the session can be bound to, in Chinese and English.
fn available(facts: &Facts) -> (String, String) {
    let AvailableFacts { total, archived, damaged, first } = &facts.available;
    if *total == 0 && *damaged > 0 {
        // Otherwise the agent creates one that exists.
        return (
            format!("本项目有 {damaged} 个工作区无法读取；请告知用户：tanmi doctor 显示原因。"),
            format!(
                "Workspaces here that cannot be read: {damaged}. Please tell the user: tanmi doctor shows the reason."
            ),
        );
    }
    if *total == 0 {
        return match archived {
            0 => (
                String::from("本项目还没有工作区；workspace_init 可创建。"),
                String::from("No workspace in this project yet; workspace_init creates one."),
            ),
            archived => (
                format!("本项目的 {archived} 个工作区均已归档；workspace_init 可新建。"),
                format!("No active workspace here ({archived} archived); workspace_init creates one."),
            ),
        };
    }
    if first.is_empty() {
        return (
            format!("本项目的工作区：{total} 个，用户尚未信任本项目（tanmi trust）。"),
            format!("Workspaces here: {total}; the user has not agreed to this project yet (tanmi trust)."),
        );
    }
    let name = |workspace: &AvailableWorkspace| {
        let name = escape_line(&text::fit(&text::one_line(&workspace.name), NAME_COLUMNS));
        let progress =
            workspace.progress.map(|(done, total)| format!(", {done}/{total}")).unwrap_or_default();
        format!("{name} ({}{progress})", escape_line(&workspace.id))
    };
    let names: Vec<String> = first.iter().map(name).collect();
    let (zh, en) = match total - first.len() {
        0 => (String::new(), String::new()),
        more => {
            (format!("，另有 {more} 个（session_status 列出）"), format!(" and {more} more (session_status)"))
        }
    };
    let (zh_damaged, en_damaged) = match damaged {
        0 => (String::new(), String::new()),
        damaged => (
            format!("另有 {damaged} 个无法读取（tanmi doctor）。"),
            format!(" {damaged} more cannot be read (tanmi doctor)."),
        ),
    };
    (
        format!("本项目的工作区：{}{zh}。session_bind 可继续其中一个。{zh_damaged}", names.join("，")),
        format!("Workspaces here: {}{en}. session_bind continues one.{en_damaged}", names.join(", ")),
    )
}

//! An unbound session learns its id when it starts, so that it can be bound.

use tanmi_event::{ActionKind, EventKind};

use super::{Ctx, Rule, Said};

pub const RULE: Rule = Rule {
    id: "session-info",
    about: ("未绑定会话开始时告知会话 ID", "tells an unbound session its id when it starts"),
    priority: 10,
    events: &[EventKind::SessionStart],
    run,
};

fn run(ctx: &Ctx<'_>) -> Option<Said> {
    let facts = ctx.facts;
    if facts.workspace.is_some() {
        return None;
    }
    let id = crate::neutral(&facts.session.id);
    let zh = format!(
        "会话 ID：{id}\n本会话未绑定工作区。session_status 列出可用的工作区，session_bind 绑定其中一个。"
    );
    let en = format!(
        "Session id: {id}\nThis session is not bound to a workspace. session_status lists them, session_bind binds one."
    );
    let text = facts.lang.pick(&zh, &en);
    Said::always(
        ActionKind::SessionInfo,
        format!("<tanmi-workspace-context>\n{text}\n</tanmi-workspace-context>"),
    )
}

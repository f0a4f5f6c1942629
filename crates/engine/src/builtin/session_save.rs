//! Asks a stopping agent for a summary, if enough happened since the last one. The stop that follows the request is
//! ignored, so that there is no loop.

use tanmi_base::Millis;
use tanmi_event::{ActionKind, BuiltinRuleId, EventKind};

use super::{BuiltinRule, NO_PROJECT_DATA, RuleInput, RuleOutput, SkipReason};

pub const RULE: BuiltinRule = BuiltinRule {
    id: BuiltinRuleId::SessionSave,
    about: ("智能体停止时请求会话摘要", "asks for a session summary when the agent stops"),
    priority: 40,
    events: &[EventKind::Stop],
    run,
};

/// Without a completed node, fewer prompts since the last summary are too few for a new one.
const MIN_PROMPTS: u32 = 5;
const MIN_SESSION_AGE: Millis = 15 * 60_000;
const MIN_REQUEST_INTERVAL: Millis = 30 * 60_000;

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    let (payload, facts, session) = (&ctx.event.payload, ctx.facts, &ctx.facts.session);
    if !facts.memory_enabled {
        return Err(("记忆已关闭", "memory is disabled"));
    }
    if !facts.has_project_data {
        return Err(NO_PROJECT_DATA);
    }
    if payload.in_loop {
        return Err(("本次停止由摘要请求引起", "this stop follows a summary request"));
    }
    if payload.status.as_deref().is_some_and(|status| status != "completed") {
        return Err(("没有正常完成", "the agent did not complete normally"));
    }
    if session.completed_since_summary == 0 && session.prompts_since_summary < MIN_PROMPTS {
        return Err(("上次摘要之后内容太少", "too little happened since the last summary"));
    }
    if facts.now - session.started_at < MIN_SESSION_AGE {
        return Err(("会话开始不到 15 分钟", "the session started less than 15 minutes ago"));
    }
    if session.summary_requested_at.is_some_and(|at| facts.now - at < MIN_REQUEST_INTERVAL) {
        return Err(("30 分钟内已请求过摘要", "a summary was requested less than 30 minutes ago"));
    }
    let zh = "[Session Save] 自上次摘要以来有决策吗？如有，请在结束本轮前调用 memory_summary（topic、summary、decisions、todos）；没有则继续。";
    let en = "[Session Save] Decisions since the last summary? Then call memory_summary (topic, summary, decisions, todos) before you end this turn; otherwise continue.";
    RuleOutput::unthrottled(ActionKind::Save, facts.lang.pick(zh, en).to_owned())
}

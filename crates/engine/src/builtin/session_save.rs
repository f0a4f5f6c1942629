//! Asks a stopping agent for a summary: once per session, and only if enough happened. The stop that follows the
//! request is ignored, so that there is no loop.

use tanmi_event::{ActionKind, BuiltinRuleId, EventKind};

use super::{BuiltinRule, RuleInput, RuleOutput, SkipReason, session_flag};

pub const RULE: BuiltinRule = BuiltinRule {
    id: BuiltinRuleId::SessionSave,
    about: ("智能体停止时请求一次会话摘要", "asks once for a session summary when the agent stops"),
    priority: 40,
    events: &[EventKind::Stop],
    run,
};

/// A session with fewer prompts is considered too short for a summary.
const MIN_PROMPTS: u32 = 3;

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    let (payload, session) = (&ctx.event.payload, &ctx.facts.session);
    if !ctx.facts.memory_enabled {
        return Err(("记忆已关闭", "memory is disabled"));
    }
    if payload.in_loop {
        return Err(("本次停止由摘要请求引起", "this stop follows a summary request"));
    }
    if payload.status.as_deref().is_some_and(|status| status != "completed") {
        return Err(("没有正常完成", "the agent did not complete normally"));
    }
    if session.summarized || session.summary_requested {
        return Err(("摘要已保存或已请求", "a summary was already saved or requested"));
    }
    if session.total_prompts < MIN_PROMPTS && session.transitions == 0 && session.saved_facts == 0 {
        return Err(("内容太少", "too little happened in this session"));
    }
    let id = session_flag(&session.id);
    let zh = format!(
        "[Session Save]\n\n\
         任务已完成。请生成本次会话的摘要并保存：调用 memory_summary，或在终端执行 tanmi memory save-summary --topic \"主题\" --summary \"摘要内容\" --decisions \"决策1\" --todos \"待办1\"{id}\n\n\
         摘要要求：主题（一句话）、摘要（100-200 字）、关键决策（列表）、待办事项（如有）\n\n\
         同时：如有尚未保存的关键事实，请一并提取并用 memory_save 写入\n\n\
         注意：内容太少则不操作；完成后不向用户报告"
    );
    let en = format!(
        "[Session Save]\n\n\
         The task is complete. Please summarize this session and save the summary: call memory_summary, or run in a terminal: tanmi memory save-summary --topic \"topic\" --summary \"summary\" --decisions \"decision 1\" --todos \"todo 1\"{id}\n\n\
         Contents: topic (one sentence), summary (60 to 120 words), key decisions (list), todos (if any)\n\n\
         Also: save key facts that are not saved yet with memory_save\n\n\
         Note: do nothing if there is too little content; do not report to the user afterwards"
    );
    RuleOutput::unthrottled(ActionKind::Save, ctx.facts.lang.pick(zh, en))
}

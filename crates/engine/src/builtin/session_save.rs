//! An agent that stops is asked for a summary: once per session, when there is something to sum up, and not in a loop.

use tanmi_event::{ActionKind, EventKind};

use super::{BuiltinRule, RuleInput, RuleOutput, SkipReason, session_flag};

pub const RULE: BuiltinRule = BuiltinRule {
    id: "session-save",
    about: ("会话停下时请求一次摘要", "asks once for a summary of the session"),
    priority: 40,
    events: &[EventKind::Stop],
    run,
};

/// Fewer prompts than these are a quick question.
const PROMPTS: u32 = 3;

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    let (payload, session) = (&ctx.event.payload, &ctx.facts.session);
    if !ctx.facts.memory_on {
        return Err(("记忆已关闭", "memory is switched off"));
    }
    if payload.in_loop {
        return Err(("已在后续回合中", "this stop follows from a question like this one"));
    }
    if payload.status.as_deref().is_some_and(|status| status != "completed") {
        return Err(("没有正常完成", "it did not end by completing"));
    }
    if session.summarized || session.summary_requested {
        return Err(("已保存或已询问", "a summary was saved or asked for already"));
    }
    if session.total_prompts < PROMPTS && session.transitions == 0 && session.saved_facts == 0 {
        return Err(("内容太少", "too little happened"));
    }
    let id = session_flag(&session.id);
    let zh = format!(
        "[Session Save]\n\n\
         本轮即将结束。请生成本次会话的摘要并保存：调用 memory_summary，或在终端执行 tanmi memory save-summary --topic \"主题\" --summary \"摘要内容\" --decisions \"决策1\" --todos \"待办1\"{id}\n\n\
         摘要要求：主题（一句话）、摘要（100-200 字）、关键决策（列表）、待办事项（如有）\n\n\
         同时：若有尚未保存的关键事实，请用 memory_save 一并保存\n\n\
         注意：内容太少则不操作；完成后不向用户报告"
    );
    let en = format!(
        "[Session Save]\n\n\
         You are about to stop. Please sum up this session and save it: call memory_summary, or in a terminal tanmi memory save-summary --topic \"topic\" --summary \"summary\" --decisions \"decision\" --todos \"to do\"{id}\n\n\
         The summary has: a topic (one sentence), a summary (60 to 120 words), key decisions (a list), what is left to do (if anything)\n\n\
         Also: save key facts that were not saved yet with memory_save\n\n\
         Note: do nothing if there is too little to tell; no report to the user is needed afterwards"
    );
    RuleOutput::always(ActionKind::Save, ctx.facts.lang.pick(zh, en))
}

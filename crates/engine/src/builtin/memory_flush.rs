//! Texts around a compaction: before it, what the summary should keep; after it, a request to save facts that may
//! have been lost.
//!
//! No client lets an agent act before it compacts, so nothing depends on that: facts can be saved at any time.

use tanmi_event::{ActionKind, BuiltinRuleId, CompactionRecipient, EventKind, StartSource};

use super::{BuiltinRule, NO_PROJECT_DATA, RuleInput, RuleOutput, SkipReason, session_flag};

pub const RULE: BuiltinRule = BuiltinRule {
    id: BuiltinRuleId::MemoryFlush,
    about: ("压缩前后保存关键事实", "asks the agent to save key facts around a compaction"),
    priority: 40,
    events: &[EventKind::PreCompact, EventKind::SessionStart],
    run,
};

fn run(ctx: &RuleInput<'_>) -> Result<RuleOutput, SkipReason> {
    let (event, facts) = (ctx.event, ctx.facts);
    if !facts.memory_enabled {
        return Err(("记忆已关闭", "memory is disabled"));
    }
    let is_start = event.kind == EventKind::SessionStart;
    if is_start && event.payload.start != Some(StartSource::Compact) {
        return Err(("不是压缩之后", "not after a compaction"));
    }
    if !facts.has_project_data {
        return Err(NO_PROJECT_DATA);
    }
    if is_start {
        let zh = "上下文刚刚压缩。若摘要中有尚未保存的关键决策或用户偏好，请用 memory_save 保存；没有则不操作，不向用户报告。";
        let en = "The conversation was just compacted. If its summary contains decisions or preferences that are not saved yet, save them with memory_save; otherwise do nothing. The user does not need a report.";
        return RuleOutput::unthrottled(ActionKind::Reminder, facts.lang.pick(zh, en).to_owned());
    }
    if event.platform.compaction == CompactionRecipient::None {
        return Err(("该平台在压缩前不接受文本", "this client accepts no text before a compaction"));
    }
    if event.platform.compaction == CompactionRecipient::Summariser {
        let zh = "摘要中请保留：已做的决策及其理由、用户偏好、未解决的问题和下一步、当前工作区与节点的 ID。";
        let en = "Keep in the summary: decisions and their reasons, user preferences, open problems and next steps, the IDs of the current workspace and node.";
        return RuleOutput::unthrottled(ActionKind::Flush, facts.lang.pick(zh, en).to_owned());
    }
    let (usage_zh, usage_en) = usage_texts(event.payload.usage_percent, event.payload.message_count);
    let session = session_flag(&facts.session.id);
    let zh = format!(
        "[Memory Flush]\n\n\
         上下文即将压缩{usage_zh}。请回顾当前对话，将关键事实保存到记忆。\n\n\
         写入规则：提取关键事实（技术决策、架构选择）、用户偏好（编码风格、工具选择）、项目经历（里程碑、重要变更）\n\n\
         写入方式：每条事实调用一次 memory_save，或在终端执行 tanmi memory save-fact \"事实内容\" --type W --entities \"相关实体\" --confidence 0.9{session}\n\n\
         type 分类：W(客观事实) / B(项目经历) / O(用户偏好，需标注 confidence)\n\n\
         注意：无需保存则不操作；静默继续，不向用户报告；不重复 MEMORY.md 已有内容"
    );
    let en = format!(
        "[Memory Flush]\n\n\
         The context is about to be compacted{usage_en}. Please review this conversation and save its key facts to memory.\n\n\
         What to save: key facts (technical decisions, architecture choices), user preferences (coding style, tools), project history (milestones, important changes)\n\n\
         How to save: call memory_save once per fact, or run in a terminal: tanmi memory save-fact \"the fact\" --type W --entities \"related entities\" --confidence 0.9{session}\n\n\
         type: W (objective fact) / B (project history) / O (user preference, needs confidence)\n\n\
         Note: do nothing if there is nothing to save; continue silently without reporting to the user; do not repeat what MEMORY.md contains"
    );
    RuleOutput::unthrottled(ActionKind::Flush, facts.lang.pick(zh, en))
}

/// Returns how full the context is, in Chinese and English, as far as the client tells.
fn usage_texts(usage: Option<i64>, messages: Option<i64>) -> (String, String) {
    let usage = usage.map(|usage| (format!("当前使用率 {usage}%"), format!("{usage}% used")));
    let messages = messages.map(|messages| (format!("消息数 {messages}"), format!("{messages} messages")));
    let (zh, en): (Vec<String>, Vec<String>) = usage.into_iter().chain(messages).unzip();
    match zh.is_empty() {
        true => (String::new(), String::new()),
        false => (format!("（{}）", zh.join("，")), format!(" ({})", en.join(", "))),
    }
}

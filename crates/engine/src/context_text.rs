//! The context text of a bound session, and the text about what changed in it.

use tanmi_base::Lang;
use tanmi_base::text::{self, one_line};
use tanmi_event::ActionKind;
use tanmi_workspace::model::PERSON;

use crate::builtin::REMINDER_RESERVE;
use crate::capped_text::CappedText;
use crate::context_hash::ContextHash;
use crate::facts::{
    DamagedNodeFacts, Facts, HolderFacts, InProgressFacts, NextFacts, NodeFacts, OverviewFacts, ProblemFacts,
    SurroundingsFacts, WaitsFor, WorkspaceFacts,
};
use crate::told_rules::{ADDED_MARK, RULE_MARK, RuleChanges, rule_changes};

/// Returns the context text. Together with its surrounding tags it has at most `max_bytes` bytes. The most
/// important lines come first and are cut last.
pub fn context_text(facts: &Facts, workspace: &WorkspaceFacts, max_bytes: usize) -> String {
    let lang = facts.lang;
    let label = |zh: &str, en: &str| label(lang, zh, en);
    let (mut body, pointer) = new_body(lang, max_bytes);
    let mut surroundings_bytes = SURROUNDINGS_BYTES - PATH_BYTES;
    add_goal(&mut body, lang, workspace);
    body.line(&label("会话", "Session"), &one_line(&facts.session.id));
    if !workspace.rules.is_empty() {
        body.line(&label("规则", "Rules"), &format!("rulesHash {}", workspace.rules_hash));
        let rest = focus_bytes(facts, workspace) + surroundings_size(facts);
        body.leaving(rest.min(REST_BYTES), |body| {
            workspace.rules.iter().for_each(|rule| body.line(RULE_MARK, rule));
        });
    }
    add_workspace_problem(&mut body, lang, workspace.problem.as_ref(), LINE_COLUMNS);
    match (&facts.node, &workspace.damaged_focus) {
        (None, Some(damaged)) => add_damaged(&mut body, lang, damaged),
        (None, None) => {
            body.line(
                &label("聚焦节点", "Focused node"),
                lang.pick("（无；node_list 列出节点）", "(none; node_list lists the nodes)"),
            );
            body.within(SURROUNDINGS_BYTES, |body| {
                add_overview(body, lang, &facts.session.id, &workspace.overview);
            });
        }
        (Some(node), _) => {
            let path = path_text(&node.surroundings.ancestors, PATH_BYTES);
            body.within(PATH_BYTES, |body| body.line(&label("路径", "Path"), &path));
            body.line(&label("聚焦节点", "Focused node"), &node_line(node));
            add_holder(&mut body, lang, node);
            add_requirement(&mut body, lang, node);
            add_problem(&mut body, lang, node);
            add_note(&mut body, lang, node);
            // Empty unless the root is focused, which has no path.
            let before = body.bytes_left();
            body.within(SURROUNDINGS_BYTES, |body| {
                add_overview(body, lang, &facts.session.id, &workspace.overview);
            });
            surroundings_bytes = surroundings_bytes.saturating_sub(before - body.bytes_left());
        }
    }
    if let Some((done, total)) = workspace.progress {
        body.line(&label("进度", "Progress"), &format!("{done}/{total}"));
    }
    if !workspace.docs.is_empty() {
        body.leaving(surroundings_size(facts).min(surroundings_bytes), |body| {
            body.line(&label("文档", "Docs"), " ");
            workspace.docs.iter().for_each(|doc| body.line("- ", &one_line(doc)));
        });
    }
    if let Some(node) = &facts.node {
        body.within(surroundings_bytes, |body| add_surroundings(body, lang, &node.surroundings));
    }
    body.finish(pointer)
}

/// The maximum length of the goal, in bytes, so that the rules fit after it.
const GOAL_BYTES: usize = 2500;
/// What the rules leave for the focus and what surrounds it, in bytes, if those are as long.
const REST_BYTES: usize = 2500;
/// What one text of the focus counts at most there.
const TEXT_BYTES: usize = 600;
/// The maximum length of what surrounds the focus, in bytes.
const SURROUNDINGS_BYTES: usize = 2000;
/// The part of it for the titles of the ancestors.
const PATH_BYTES: usize = 300;
/// The maximum width of one line about another node, or of one log entry.
const LINE_COLUMNS: usize = 200;

/// Returns the titles of ancestors as a path of at most about `max` bytes. The nearest ancestors tell most, so the others
/// are left out first.
fn path_text(ancestors: &[String], max: usize) -> String {
    const LEFT_OUT: &str = "… › ";
    // The line has a label and an end.
    let max = max - LEFT_OUT.len() - 16;
    let mut path = String::new();
    for title in ancestors.iter().rev() {
        let title = text::fit(&one_line(title), TITLE_COLUMNS);
        let separator = if path.is_empty() { "" } else { " › " };
        if path.len() + title.len() + separator.len() > max {
            return format!("{LEFT_OUT}{path}");
        }
        path.insert_str(0, &format!("{title}{separator}"));
    }
    path
}

/// What a line of a list gets at least, in bytes. A shorter text is not useful.
const MIN_LINE_BYTES: usize = 100;

/// Adds the lists of what surrounds the focus. Each list gets an equal share of what the lists before it left, and so does
/// each line of a list: long lines are cut before others are left out.
fn add_surroundings(body: &mut CappedText, lang: Lang, surroundings: &SurroundingsFacts) {
    let lists = [
        ("最近日志", "Last log entries", &surroundings.log),
        ("依赖的结论", "Dependency conclusions", &surroundings.dependencies),
        ("子节点结论", "Child conclusions", &surroundings.conclusions),
        ("引用", "References", &surroundings.references),
    ];
    let lists: Vec<_> = lists.into_iter().filter(|(.., lines)| !lines.is_empty()).collect();
    for (n, (zh, en, lines)) in lists.iter().enumerate() {
        body.within(body.bytes_left() / (lists.len() - n), |body| {
            let heading = label(lang, zh, en);
            // A heading without a line says nothing.
            if body.bytes_left() < heading.len() + MIN_LINE_BYTES {
                return body.leave_out();
            }
            body.line(&heading, " ");
            for (n, line) in lines.iter().enumerate() {
                body.within((body.bytes_left() / (lines.len() - n)).max(MIN_LINE_BYTES), |body| {
                    body.line("- ", &fit(line));
                });
            }
        });
    }
}

/// Returns what is in progress, open problems and what comes next, for a session that was bound without a focus.
pub fn overview_text(overview: &OverviewFacts, session: &str, lang: Lang) -> String {
    let mut body = CappedText::new(SURROUNDINGS_BYTES);
    add_overview(&mut body, lang, session, overview);
    body.finish("…")
}

/// The maximum widths of the texts in an overview, so that all its lines fit, also in Chinese.
const TITLE_COLUMNS: usize = 36;
const TEXT_COLUMNS: usize = 54;
const NEXT_STEP_COLUMNS: usize = 32;
const WAITS_FOR_COLUMNS: usize = 16;

/// Adds what is in progress, open problems and what comes next.
fn add_overview(body: &mut CappedText, lang: Lang, session: &str, overview: &OverviewFacts) {
    let title = |text: &str| text::fit(&one_line(text), TITLE_COLUMNS);
    let text = |text: &str| text::fit(&one_line(text), TEXT_COLUMNS);
    add_workspace_problem(body, lang, overview.problem.as_ref(), TEXT_COLUMNS);
    for node in &overview.in_progress {
        let mut line = format!("{} ({}) {}", title(&node.title), node.status, node.id);
        if let Some((at, log)) = &node.last_log {
            let at = at.to_short(lang);
            line.push_str(&format!("{}{at} {}", lang.pick("；最近日志 ", "; last log "), text(log)));
        }
        line.push_str(&holder_text(node, session, lang));
        body.line(&label(lang, "进行中", "In progress"), &one_line(&line));
    }
    for node in &overview.problems {
        let mut line = format!("{} {}: {}", title(&node.title), node.id, text(&node.problem.description));
        if !node.problem.next_step.is_empty() {
            line.push_str(lang.pick("；下一步：", "; next step: "));
            line.push_str(&text::fit(&one_line(&node.problem.next_step), NEXT_STEP_COLUMNS));
        }
        body.line(&label(lang, "未解决的问题", "Open problem"), &one_line(&line));
    }
    if overview.has_more {
        let en = "More nodes are in progress or have problems; node_list lists them.";
        body.line("", lang.pick("还有更多进行中或有问题的节点；node_list 列出。", en));
    }
    let next = |node: &NextFacts| {
        let name = format!("{} {}", title(&node.title), node.id);
        let Some(WaitsFor { title: on, status }) = &node.waits_for else { return name };
        let on = text::fit(&one_line(on), WAITS_FOR_COLUMNS);
        match status.as_deref() {
            None => lang.pick(format!("{name}（在「{on}」之后）"), format!("{name} (after {on})")),
            Some(status) => lang.pick(
                format!("{name}（等待「{on}」：{status}）"),
                format!("{name} (waits for {on}: {status})"),
            ),
        }
    };
    let next: Vec<String> = overview.next.iter().map(next).collect();
    body.line(&label(lang, "接下来", "Next"), &next.join(lang.pick("；", "; ")));
}

/// Adds the open problem of the workspace itself. It says how to address it, because most problems are those of a node.
fn add_workspace_problem(body: &mut CappedText, lang: Lang, problem: Option<&ProblemFacts>, columns: usize) {
    let Some(ProblemFacts { description, next_step }) = problem else { return };
    let fit = |text: &str| text::fit(&one_line(text), columns);
    let mut line = fit(description);
    if !next_step.is_empty() {
        line.push_str(&format!("{}{}", lang.pick("；下一步：", "; next step: "), fit(next_step)));
    }
    let name = label(
        lang,
        "工作区的问题（nodeId: \"workspace\"）",
        "Problem of the workspace (nodeId: \"workspace\")",
    );
    body.line(&name, &line);
}

/// Returns who holds a node in progress, since when, and how another session continues it if that session ended.
fn holder_text(node: &InProgressFacts, session: &str, lang: Lang) -> String {
    let at = node.since.to_short(lang);
    let name = node.holder_name.as_deref().map(fit);
    let (zh, en) = match (node.holder.as_deref(), name) {
        (Some(holder), _) if holder == session => {
            (format!("本会话 {at} 开始"), format!("started by this session {at}"))
        }
        (Some(PERSON), _) => (format!("用户 {at} 亲自开始"), format!("started by the user in person {at}")),
        (Some(_), Some(name)) if node.has_holder_ended => (
            format!("{name} {at} 开始（会话已结束；node_transition start 继续它）"),
            format!("started by {name} {at} (session ended; node_transition start continues it)"),
        ),
        (Some(_), Some(name)) => (format!("{name} {at} 开始"), format!("started by {name} {at}")),
        (Some(_), None) if node.has_holder_ended => (
            format!("由已结束的会话 {at} 开始；node_transition start 继续它"),
            format!("started by a session that ended, {at}; node_transition start continues it"),
        ),
        (Some(_), None) => {
            (format!("另一个运行中的会话 {at} 开始"), format!("started by another running session {at}"))
        }
        (None, _) => (format!("无会话认领，自 {at}"), format!("no session holds it since {at}")),
    };
    lang.pick(format!("；{zh}"), format!("; {en}"))
}

fn fit(text: &str) -> String {
    text::fit(&one_line(text), LINE_COLUMNS)
}

/// Returns the text about what changed since the session was told the context with the hash `seen`, and the
/// open problem, if the session does not know it.
pub fn changes_text(
    facts: &Facts,
    workspace: &WorkspaceFacts,
    seen: &ContextHash,
    max_bytes: usize,
) -> String {
    let lang = facts.lang;
    let label = |zh: &str, en: &str| label(lang, zh, en);
    let now = ContextHash::of(workspace, facts.node.as_ref());
    let (mut body, pointer) = new_body(lang, max_bytes);
    if now.goal != seen.goal {
        let what = label("工作区的名称或目标有变化，现为", "Name or goal of the workspace changed, now");
        body.line(&what, &workspace_name(workspace));
        body.within(GOAL_BYTES, |body| body.line(&label("目标", "Goal"), &workspace.goal));
    }
    if now.rules != seen.rules {
        let rest = focus_bytes(facts, workspace).min(REST_BYTES);
        body.leaving(rest, |body| {
            add_rule_changes(body, lang, workspace, facts.session.told_rules.as_deref());
        });
    }
    match (&facts.node, &workspace.damaged_focus) {
        _ if now.node == seen.node => {}
        (Some(node), _) => {
            let is_same = facts.session.seen_focus.as_ref() == Some(&node.id);
            let what = match is_same {
                true => label("聚焦节点有变化，现为", "The focused node changed, now"),
                false => label("聚焦节点现为", "Focus is now"),
            };
            body.line(&what, &node_line(node));
            add_holder(&mut body, lang, node);
            add_requirement(&mut body, lang, node);
            add_note(&mut body, lang, node);
            // It may have had one before.
            if is_same && node.requirement.trim().is_empty() {
                body.line(&label("需求", "Requirement"), lang.pick("无", "none"));
            }
        }
        (None, Some(damaged)) => add_damaged(&mut body, lang, damaged),
        (None, None) => body.line("", lang.pick("现在没有聚焦的节点。", "No node is focused now.")),
    }
    let is_new = |node: &&NodeFacts| match node.problem.is_empty() {
        true => now.node != seen.node,
        false => !facts.session.knows_problem_of(node),
    };
    if let Some(node) = facts.node.as_ref().filter(is_new) {
        add_problem(&mut body, lang, node);
    }
    if now.docs != seen.docs {
        let value = if workspace.docs.is_empty() { lang.pick("无", "none") } else { " " };
        body.line(&label("文档现为", "Docs are now"), value);
        workspace.docs.iter().for_each(|doc| body.line("- ", &one_line(doc)));
    }
    body.finish(pointer)
}

fn label(lang: Lang, zh: &str, en: &str) -> String {
    match lang {
        Lang::Zh => format!("{zh}："),
        Lang::En => format!("{en}: "),
    }
}

/// Returns an empty text that leaves room for its tags and a reminder, and the line that follows it if it is cut.
fn new_body(lang: Lang, max_bytes: usize) -> (CappedText, &'static str) {
    let pointer =
        lang.pick("（已截断；完整内容见 context_get）\n", "(truncated; context_get returns the full text)\n");
    let budget = max_bytes - ActionKind::InjectContext.overhead() - pointer.len() - REMINDER_RESERVE;
    (CappedText::new(budget), pointer)
}

/// Returns about how many bytes the focus takes, or what is told without one.
fn focus_bytes(facts: &Facts, workspace: &WorkspaceFacts) -> usize {
    let Some(node) = &facts.node else {
        let overview = &workspace.overview;
        return TEXT_BYTES + (overview.in_progress.len() + overview.problems.len()) * LINE_COLUMNS;
    };
    let texts = [&node.title, &node.requirement, &node.note, &node.problem, &node.next_step];
    PATH_BYTES + texts.iter().map(|text| text.len().min(TEXT_BYTES)).sum::<usize>()
}

/// Returns about how many bytes the surroundings of the focus take.
fn surroundings_size(facts: &Facts) -> usize {
    let Some(SurroundingsFacts { log, conclusions, dependencies, references, .. }) =
        facts.node.as_ref().map(|node| &node.surroundings)
    else {
        return 0;
    };
    let lists = [log, conclusions, dependencies, references];
    lists
        .iter()
        .flat_map(|lines| lines.iter())
        .map(|line| MIN_LINE_BYTES + line.len().min(LINE_COLUMNS))
        .sum()
}

fn add_goal(body: &mut CappedText, lang: Lang, workspace: &WorkspaceFacts) {
    body.line(&label(lang, "当前工作区", "Workspace"), &workspace_name(workspace));
    let max = GOAL_BYTES.min(body.bytes_left() / 2);
    body.within(max, |body| body.line(&label(lang, "目标", "Goal"), &workspace.goal));
}

fn workspace_name(workspace: &WorkspaceFacts) -> String {
    one_line(&format!("{} ({})", workspace.name, workspace.id))
}

fn node_line(node: &NodeFacts) -> String {
    one_line(&format!("{} ({}) {}", node.title, node.status, node.id))
}

/// Adds that another agent works on the node, so that this one does not.
fn add_holder(body: &mut CappedText, lang: Lang, node: &NodeFacts) {
    if let Some(holder) = &node.held_by {
        let mut line = holder_name(holder, lang);
        // The user can let the agent work on a node that the user started.
        if *holder != HolderFacts::User {
            line.push_str(lang.pick("；node_next 给出其他工作", "; node_next gives other work"));
        }
        body.line(&label(lang, "持有者", "Held by"), &line);
    }
}

/// Returns the name of who else works on a node.
pub fn holder_name(holder: &HolderFacts, lang: Lang) -> String {
    match holder {
        HolderFacts::Named(name) => fit(name),
        HolderFacts::Session => lang.pick("另一个运行中的会话", "another running session").to_owned(),
        HolderFacts::User => lang.pick("用户本人", "the user in person").to_owned(),
    }
}

/// Adds that the file of the focused node cannot be read, so that the agent neither works on the node nor takes it for
/// missing.
fn add_damaged(body: &mut CappedText, lang: Lang, damaged: &DamagedNodeFacts) {
    let DamagedNodeFacts { id, place, reason } = damaged;
    let (place, reason_zh, reason_en) = (one_line(place), fit(&reason.zh), fit(&reason.en));
    let zh = format!("{id} 无法读取：{place}：{reason_zh}。告知用户；文件修正后它会恢复。");
    let en = format!(
        "{id} cannot be read: {place}: {reason_en}. Tell the user; it returns when the file is fixed."
    );
    body.line(&label(lang, "聚焦节点", "Focused node"), &lang.pick(zh, en));
}

/// Adds the requirement, unless it only repeats the title.
fn add_requirement(body: &mut CappedText, lang: Lang, node: &NodeFacts) {
    if node.requirement.trim() != node.title.trim() {
        add_half(body, &label(lang, "需求", "Requirement"), &node.requirement);
    }
}

fn add_problem(body: &mut CappedText, lang: Lang, node: &NodeFacts) {
    add_half(body, &label(lang, "问题", "Problem"), &node.problem);
    add_half(body, &label(lang, "下一步", "Next step"), &node.next_step);
}

fn add_note(body: &mut CappedText, lang: Lang, node: &NodeFacts) {
    add_half(body, &label(lang, "备注", "Note"), &node.note);
}

/// Adds a text that leaves half of the rest for what follows it, however long it is.
fn add_half(body: &mut CappedText, label: &str, text: &str) {
    body.within(body.bytes_left() / 2, |body| body.line(label, text));
}

/// Adds the rules that are new and the rules that no longer apply. `told` is `None` if the rules were too long to keep.
fn add_rule_changes(body: &mut CappedText, lang: Lang, workspace: &WorkspaceFacts, told: Option<&[String]>) {
    if workspace.rules.is_empty() {
        return body.line("", lang.pick("规则已全部移除。", "Rules changed: none apply any more."));
    }
    let hash = &workspace.rules_hash;
    let heading =
        lang.pick(format!("规则已变化（rulesHash {hash}）："), format!("Rules changed (rulesHash {hash}): "));
    let Some(told) = told else {
        let count = workspace.rules.len();
        let zh = format!("现有 {count} 条；workspace_get 返回全部");
        return body.line(&heading, &lang.pick(zh, format!("{count} now; workspace_get returns them")));
    };
    let RuleChanges { added, removed, removed_unnamed } = rule_changes(told, &workspace.rules);
    if added.is_empty() && removed.is_empty() && removed_unnamed == 0 {
        return body.line(&heading, lang.pick("只是顺序不同", "only their order"));
    }
    body.line(&heading, " ");
    added.iter().for_each(|rule| body.line(ADDED_MARK, rule));
    removed.iter().for_each(|rule| body.line("− ", rule));
    if removed_unnamed > 0 {
        let zh = format!("先前的 {removed_unnamed} 条；workspace_get 返回现有规则");
        let en = format!("{removed_unnamed} earlier rules; workspace_get returns the rules that apply");
        body.line("− ", &lang.pick(zh, en));
    }
}

//! The guide: tells an agent when to offer a workspace, when not to, and when to save memory. Hooks do not inject this.

use tanmi_base::Lang;

use crate::doc;
use crate::folders::GuideFile;

/// The marks before and after our block, each on its own line. The first one contains a digest of the text, so that an
/// edited block is recognized.
const BEGIN: &str = "<!-- tanmi:begin ";
const END: &str = "<!-- tanmi:end -->";
/// The mark in files that contain only our guide.
const OWN_FILE_MARK: &str = "<!-- written by tanmi install; tanmi uninstall takes it away; ";

const ZH: &str = "## Tanmi 使用指南

### 何时询问是否使用工作区

当用户请求涉及以下情况时，主动询问是否需要工作区：

1. 复杂的多步骤任务（预计超过 3 个步骤）
2. 用户提及“继续之前的任务”“上次做到哪了”
3. 涉及项目规划、架构设计、重构
4. 用户主动提及“工作区”

用户同意后：用 workspace_list 查看已有的工作区，或用 workspace_init 新建，再用 session_bind 绑定本会话。

### 何时不要打扰用户

以下情况直接回答，不提工作区：

1. 简单问答（概念解释、语法问题）
2. 单文件的小修改
3. 用户明确说“快速帮我看一下”
4. 已经解绑工作区后的对话

### 绑定工作区后的行为

1. 规划：用 context_get 读取规则和 rulesHash，再用 node_plan 一次创建全部节点（单个节点用 node_create）；向用户展示计划，确认后再开始执行
2. 开始任务前：调用 node_next(start=true) 开始下一个节点，或用 node_transition(action='start') 开始指定的节点
3. 重要进展时：调用 log_append 记录
4. 遇到问题时：调用 problem_update 记录，解决后调用 problem_clear
5. 完成任务后：调用 node_transition(action='complete', conclusion='...')

### 记忆

1. 用户问到以前的决定、偏好或经过时，先用 memory_search 查找，再回答
2. 做出技术决策、得知用户偏好、完成里程碑时，用 memory_save 保存一条事实（W 客观事实 / B 项目经历 / O 用户偏好，附 confidence）
3. 收到 [Memory Flush]：把尚未保存的关键事实逐条用 memory_save 保存，不向用户报告
4. 收到 [Session Save]：用 memory_summary 保存本次会话的主题、摘要、决策和待办；内容太少则不操作
";

const EN: &str = "## Working with Tanmi

### When to offer a workspace

Ask the user whether to use a workspace when the request involves:

1. a complex task with more than three steps
2. continuing earlier work (\"where were we?\")
3. planning, architecture or refactoring
4. the word \"workspace\"

If the user agrees, call workspace_list to find an existing workspace or workspace_init to create one. Then call session_bind to bind this session.

### When not to offer a workspace

Answer directly and do not mention workspaces when:

1. the question is simple (concepts, syntax)
2. the change is small and in one file
3. the user asks for a quick look
4. this session was unbound from its workspace

### In a bound session

1. To plan: read the rules and rulesHash with context_get, then add all nodes in one call with node_plan, or a single one with node_create. Show the plan to the user and wait for confirmation before you start.
2. Before a task: node_next(start=true) starts the next node, node_transition(action='start') a certain one
3. After each important step: log_append
4. When a problem blocks you: problem_update. When it is solved: problem_clear
5. After a task: node_transition(action='complete', conclusion='...')

### Memory

1. When the user asks about an earlier decision, preference or event, call memory_search before you answer.
2. After a technical decision, a stated preference or a milestone, save one fact with memory_save (type W: world, B: project history, O: preference, with confidence).
3. On [Memory Flush], save each key fact that is not saved yet with memory_save. Do not report this to the user.
4. On [Session Save], save topic, summary, decisions and to-dos of this session with memory_summary. If there is little to summarize, do nothing.
";

pub fn text(lang: Lang) -> &'static str {
    lang.pick(ZH, EN)
}

/// The state of the guide in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuideState {
    None,
    /// Unchanged since we wrote it: start and end offset.
    Ours(usize, usize),
    /// Edited or incomplete: the line where it begins.
    Changed(usize),
}

fn digest(text: &str) -> String {
    tanmi_base::hash::sha256_hex(text.replace("\r\n", "\n").as_bytes())[..12].to_owned()
}

/// Returns the content of a file that contains only our guide, in the format of its client.
fn own_file_text(path: &std::path::Path, lang: Lang) -> String {
    let about = lang.pick(
        "何时使用工作区（任务树）和记忆：多步骤任务、继续之前的工作、查找或保存决定与偏好",
        "When to use workspaces (a tree of planned work) and memory: tasks with several steps, continuing earlier work, finding or saving decisions and preferences",
    );
    let head = if path.extension().is_some_and(|extension| extension == "mdc") {
        format!("---\ndescription: \"{about}\"\nalwaysApply: true\n---\n")
    } else {
        format!("---\nname: tanmi\ndescription: \"{about}\"\n---\n")
    };
    let text = text(lang);
    format!("{head}\n{OWN_FILE_MARK}{} -->\n\n{text}", digest(&format!("{head}{text}")))
}

fn line_at(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

pub fn guide_state(file: &GuideFile, text: &str) -> GuideState {
    match file {
        GuideFile::OwnFile(_) => {
            let Some(at) = text.find(OWN_FILE_MARK) else { return GuideState::None };
            let rest = &text[at + OWN_FILE_MARK.len()..];
            let (written, body) = rest.split_once(" -->").unwrap_or((rest, ""));
            let head = text[..at].replace("\r\n", "\n");
            let now =
                digest(&format!("{}{}", head.trim_end_matches('\n').to_owned() + "\n", body.trim_start()));
            if written == now {
                GuideState::Ours(0, text.len())
            } else {
                GuideState::Changed(line_at(text, at))
            }
        }
        GuideFile::Block(_) => block(text),
    }
}

/// Finds our block. Marks count only alone on a line and outside of code. A fence that is never closed is not code,
/// because our block is found after it, too.
fn block(text: &str) -> GuideState {
    let (mut begins, mut ends) = (Vec::new(), Vec::new());
    let mut at = 0;
    loop {
        // The mark of the open fence and the end of its line.
        let mut fence: Option<(&str, usize)> = None;
        for line in text[at..].split_inclusive('\n') {
            let (start, end) = (at, at + line.len());
            let bare = line.trim_end_matches(['\n', '\r']);
            let mark = ["```", "~~~"].into_iter().find(|mark| bare.trim_start().starts_with(mark));
            match (fence, mark) {
                (None, Some(mark)) => fence = Some((mark, end)),
                (Some((open, _)), Some(mark)) if open == mark => fence = None,
                (None, None) if bare.starts_with(BEGIN) && bare.ends_with("-->") => {
                    begins.push((start, end, bare))
                }
                (None, None) if bare == END => ends.push((start, end)),
                _ => {}
            }
            at = end;
        }
        match fence {
            Some((_, end)) => at = end,
            None => break,
        }
    }
    match (begins.as_slice(), ends.as_slice()) {
        ([], []) => GuideState::None,
        ([(start, after, line)], [(before, end)]) if after <= before => {
            let written = line[BEGIN.len()..].trim_end_matches("-->").trim();
            let is_ours = written == digest(&text[*after..*before]);
            if is_ours { GuideState::Ours(*start, *end) } else { GuideState::Changed(line_at(text, *start)) }
        }
        ([(start, ..), ..], _) | ([], [(start, _), ..]) => GuideState::Changed(line_at(text, *start)),
    }
}

/// Returns the file content with our guide. The error is the line of an edited guide, or `None` if the file
/// is not ours.
pub fn add(file: &GuideFile, before: Option<&str>, lang: Lang) -> Result<String, Option<usize>> {
    let guide_state = before.map_or(GuideState::None, |before| guide_state(file, before));
    if let GuideState::Changed(line) = guide_state {
        return Err(Some(line));
    }
    let is_free = before.is_none_or(|before| before.trim().is_empty()) || guide_state != GuideState::None;
    let before = before.unwrap_or_default();
    let line_end = doc::line_end(before);
    let own = match file {
        GuideFile::OwnFile(_) if !is_free => return Err(None),
        GuideFile::OwnFile(path) => own_file_text(path, lang),
        GuideFile::Block(_) => format!("{BEGIN}{} -->\n{text}{END}\n", digest(text(lang)), text = text(lang)),
    };
    let block = own.replace('\n', line_end);
    if let GuideState::Ours(start, end) = guide_state {
        let is_current = before[start..end].replace("\r\n", "\n") == own;
        return Ok(match is_current {
            true => before.to_owned(),
            false => format!("{}{block}{}", &before[..start], &before[end..]),
        });
    }
    if let GuideFile::OwnFile(_) = file {
        return Ok(block);
    }
    let gap = match before {
        "" => "",
        _ if before.ends_with(&line_end.repeat(2)) => "",
        _ if before.ends_with('\n') => line_end,
        _ => &line_end.repeat(2),
    };
    Ok(format!("{before}{gap}{block}"))
}

/// Returns the file content without our guide: `None` if there is no guide, `Some(None)` if nothing else is left. The
/// error is the line of an edited guide.
pub fn remove(file: &GuideFile, now: &str) -> Result<Option<Option<String>>, usize> {
    let (start, end) = match guide_state(file, now) {
        GuideState::None => return Ok(None),
        GuideState::Changed(line) => return Err(line),
        GuideState::Ours(start, end) => (start, end),
    };
    // We also added the blank line before the block.
    let (mut head, tail) = (&now[..start], &now[end..]);
    let line_end = doc::line_end(now);
    if head.ends_with(&line_end.repeat(2)) {
        head = &head[..head.len() - line_end.len()];
    }
    let left = format!("{head}{tail}");
    Ok(Some(Some(left).filter(|left| !left.trim().is_empty())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guide_block_add_update_remove_keeps_other_text() {
        let file = GuideFile::Block("AGENTS.md".into());
        for before in ["", "# Mine\n", "# Mine", "# Mine\n\n", "# Mine\r\n", "# 我的\n\n- a\n"] {
            let with = add(&file, Some(before), Lang::En).unwrap();
            assert_eq!(with.matches(BEGIN).count(), 1);
            assert!(
                with.starts_with(before)
                    && !before.contains("\r\n") | !with.replace("\r\n", "").contains('\n')
            );
            assert_eq!(add(&file, Some(&with), Lang::En).unwrap(), with, "once");
            let zh = add(&file, Some(&with), Lang::Zh).unwrap();
            assert!(zh.contains("使用指南") && !zh.contains("Working with") && zh.starts_with(before));
            let left = remove(&file, &zh).unwrap().unwrap();
            assert_eq!(left.unwrap_or_default().trim_end(), before.trim_end());
        }
        let more = format!("{}after\n", add(&file, Some("# Mine\n"), Lang::En).unwrap());
        assert_eq!(remove(&file, &more).unwrap().unwrap().unwrap(), "# Mine\nafter\n");
        assert_eq!(remove(&file, "# Mine"), Ok(None));
    }

    /// Text near our marks and edited marks belong to the user.
    #[test]
    fn guide_block_foreign_or_changed_marks_are_kept_or_refused() {
        let file = GuideFile::Block("AGENTS.md".into());
        for foreign in [
            "```\n<!-- tanmi:begin x -->\nexample\n<!-- tanmi:end -->\n```\n",
            "text `<!-- tanmi:begin x -->` and `<!-- tanmi:end -->` here\n",
            "    <!-- tanmi:begin x -->\n    <!-- tanmi:end -->\n",
        ] {
            assert_eq!(guide_state(&file, foreign), GuideState::None, "{foreign}");
            let with = add(&file, Some(foreign), Lang::En).unwrap();
            assert_eq!(remove(&file, &with).unwrap().unwrap().unwrap(), foreign);
        }
        let ours = add(&file, Some("# Mine\n"), Lang::En).unwrap();
        for (changed, line) in [
            ("a\n<!-- tanmi:begin x -->\nMY TEXT\n".to_owned(), 2),
            ("<!-- tanmi:end -->\n".to_owned(), 1),
            ("<!-- tanmi:begin x -->\nMINE\n<!-- tanmi:end -->\n".to_owned(), 1),
            (ours.replace("### Memory", "### Memory, and mine"), 3),
            (ours.replace("<!-- tanmi:end -->\n", "mine\n"), 3),
            (format!("{ours}{ours}"), 3),
        ] {
            assert_eq!(add(&file, Some(&changed), Lang::En), Err(Some(line)), "{changed}");
            assert_eq!(remove(&file, &changed), Err(line));
        }
    }

    #[test]
    fn guide_file_of_other_author_is_kept() {
        for file in [GuideFile::OwnFile("SKILL.md".into()), GuideFile::OwnFile("tanmi.mdc".into())] {
            let ours = add(&file, None, Lang::Zh).unwrap();
            assert_eq!(add(&file, Some("# Mine"), Lang::Zh), Err(None));
            assert_eq!(remove(&file, "# Mine"), Ok(None));
            assert_eq!(remove(&file, &ours), Ok(Some(None)));
            assert_eq!(remove(&file, &ours.replace('\n', "\r\n")), Ok(Some(None)));
            let changed = format!("{ours}\n## My rules\n");
            assert!(remove(&file, &changed).is_err() && add(&file, Some(&changed), Lang::En).is_err());
        }
    }
}

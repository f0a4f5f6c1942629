//! The words of a prompt that mention workspaces of this program. Many other tools have workspaces, tasks and nodes
//! too, so the word before or after decides.
//!
//! Everything is searched byte by byte and without a copy, because it runs at every prompt of an unbound session.

use std::cell::LazyCell;

/// Words in Latin script that count after an unbind, too, in lower case.
const WORKSPACE: &[&str] = &["workspace", "workspaces"];
/// Other words and sentences in Latin script, in lower case. The sentences ask for the work of an earlier session.
const OTHERS: &[&str] =
    &["tanmi", "tanmi-workspace", "where we left off", "where you left off", "where i left off"];
/// First prompts of a session that can only mean the work of an earlier session, in lower case.
const CONTINUE: &[&str] = &[
    "go on",
    "continue",
    "continue the plan",
    "continue the work",
    "continue with the plan",
    "continue with the work",
    "continue working",
    "continue working on it",
    "carry on",
    "keep going",
    "let's continue",
    "let's go on",
    "pick up where you stopped",
    "pick up where we stopped",
    "resume",
    "resume the work",
    "resume work",
    "next task",
    "what is next",
    "what's next",
    "what next",
    "next step",
    "what is the next step",
    "what's the next step",
    "what is the next task",
    "what's the next task",
    "what should i do next",
    "what should we do next",
    "where were we",
    "where did we stop",
    "where did we leave off",
    "continue from where we stopped",
    "continue yesterday's work",
    "what were we working on",
    "下一步",
    "下一步是什么",
    "下一步做什么",
    "下一步要做什么",
    "下一步该做什么",
    "接下来做什么",
];
/// What may follow such a request.
const CONTINUE_ENDS: &[&str] = &["from yesterday", "from last time"];
/// The beginnings of short prompts in Chinese that ask for the work of an earlier session.
const CONTINUE_HAN: &[&str] = &["继续", "接着", "我们继续", "我们接着", "从上次", "从昨天"];
/// The words by which such a prompt names the earlier session.
const EARLIER_HAN: &[&str] = &["上次", "昨天", "之前", "前面", "未完成"];
/// What a short prompt contains that asks how far the work is.
const HOW_FAR_HAN: &str = "做到哪";
/// The ends of such a prompt that names no earlier session.
const GO_HAN: &[&str] = &["", "做", "来", "干", "走", "工作"];
/// The maximum length of such a prompt, in characters.
const MAX_CONTINUE_HAN: usize = 12;
/// What makes a request to continue polite, before and after it, in lower case.
const POLITE_STARTS: &[&str] = &["ok", "okay", "yes", "please", "好的", "好", "请"];
const POLITE_ENDS: &[&str] = &["please", "吧"];
/// A word directly after `workspace` that makes it a part of another tool, in lower case.
const PARTS: &[&str] = &[
    "cargo.toml",
    "package.json",
    "crate",
    "crates",
    "dependencies",
    "dependency",
    "manifest",
    "member",
    "members",
];
/// What a prompt about the workspaces of another tool contains, in lower case.
const OTHER_FILES: &[&str] = &["cargo.toml", "cargo test", "cargo build", "package.json", "go.work"];
/// A word shortly before `workspace` that names a tool with workspaces of its own, in lower case.
const NEAR_TOOLS: &[&str] = &["cargo", "monorepo", "npm", "pnpm", "turborepo", "yarn"];
/// How many characters before the word count as near.
const NEAR_LATIN: usize = 24;
/// A word directly before `workspace` that names another tool, in lower case.
const OTHER_TOOLS: &[&str] = &[
    "bazel",
    "berry",
    "bun",
    "cargo",
    "code",
    "deno",
    "eclipse",
    "git",
    "go",
    "google",
    "gradle",
    "lerna",
    "multi root",
    "multi-root",
    "npm",
    "nx",
    "pnpm",
    "postman",
    "rush",
    "rust",
    "slack",
    "terraform",
    "turborepo",
    "uv",
    "vscode",
    "xcode",
    "yarn",
    "谷歌",
];

/// A word in Chinese, with the texts directly before and after it that make it another thing.
struct HanWord {
    word: &'static str,
    not_after: &'static [&'static str],
    not_before: &'static [&'static str],
    /// Texts shortly before it that make it another thing.
    not_near: &'static [&'static str],
}

/// The distance in characters up to which a text counts as near.
const NEAR: usize = 10;

const HAN: &[HanWord] = &[
    HanWord {
        word: "工作区",
        not_after: OTHER_TOOLS,
        // Git calls the files of a checkout so, too.
        not_before: &["有未提交", "未提交", "的未提交", "干净", "不干净", "有改动", "没有改动"],
        not_near: &[],
    },
    HanWord {
        word: "任务",
        not_after: &[
            "定时",
            "计划",
            "后台",
            "异步",
            "调度",
            "批处理",
            "并发",
            "cron",
            "crontab",
            "celery",
            "gradle",
            "jira",
        ],
        not_before: &["栏", "管理器", "队列", "调度", "计划程序"],
        not_near: &["定时"],
    },
    HanWord {
        word: "节点",
        not_after: &[
            "集群",
            "dom",
            "dom 树",
            "dom树",
            "语法树",
            "文本",
            "元素",
            "叶子",
            "工作",
            "控制",
            "计算",
            "边缘",
            "服务器",
            "链表",
            "k8s",
            "kubernetes",
            "xml",
            "html",
            "ast",
            "redis",
            "哨兵",
        ],
        not_before: &["池", "亲和"],
        not_near: &["集群", "dom", "DOM", "语法树", "二叉树", "链表", "XML", "HTML", "React", "Vue"],
    },
];

/// Returns whether a prompt mentions workspaces. After an unbind fewer words count, because the user has just
/// declined to work in a workspace.
pub fn mentions_workspaces(prompt: &str, after_unbind: bool) -> bool {
    let others = if after_unbind { &[] } else { OTHERS };
    let han = if after_unbind { &HAN[..1] } else { HAN };
    has_latin_word(prompt, others) || (!prompt.is_ascii() && han.iter().any(|han| has_han_word(prompt, han)))
}

/// Returns whether a prompt consists of nothing but the request to continue.
pub fn asks_to_continue(prompt: &str) -> bool {
    let prompt = trim(prompt);
    let prompt = POLITE_STARTS.iter().find_map(|word| without_start(prompt, word)).unwrap_or(prompt);
    let prompt = POLITE_ENDS.iter().find_map(|word| without_end(prompt, word)).unwrap_or(prompt);
    let prompt = CONTINUE_ENDS.iter().find_map(|words| without_end(prompt, words)).unwrap_or(prompt);
    CONTINUE.iter().any(|text| prompt.eq_ignore_ascii_case(text)) || asks_to_continue_in_chinese(prompt)
}

/// Returns whether a short prompt asks to continue, and if it says what, then the earlier work.
fn asks_to_continue_in_chinese(prompt: &str) -> bool {
    let is_one_phrase =
        |text: &str| !text.contains(|c: char| c.is_ascii_punctuation() || "：，。；、".contains(c));
    let rests = CONTINUE_HAN.iter().filter_map(|start| Some((*start, prompt.strip_prefix(start)?)));
    let is_request = |(start, rest): (&str, &str)| match start.starts_with('从') {
        true => rest.contains("继续") || rest.contains("接着"),
        false => GO_HAN.contains(&rest) || EARLIER_HAN.iter().any(|word| rest.contains(word)),
    };
    !prompt.is_ascii()
        && prompt.chars().count() <= MAX_CONTINUE_HAN
        && is_one_phrase(prompt)
        && (prompt.contains(HOW_FAR_HAN) || rests.into_iter().any(is_request))
}

fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| {
        c.is_whitespace() || matches!(c, '.' | ',' | '!' | '?' | '。' | '，' | '！' | '？')
    })
}

/// Returns a text without this word at its start; `None` if it starts with another one.
fn without_start<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(word.len())?;
    let is_word = !word.is_ascii() || !rest.starts_with(|c: char| c.is_ascii_alphanumeric());
    (start.eq_ignore_ascii_case(word) && is_word).then(|| trim(rest))
}

/// Returns a text without this word at its end; `None` if it ends with another one.
fn without_end<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let (rest, end) = text.split_at_checked(text.len().checked_sub(word.len())?)?;
    let is_word = !word.is_ascii() || !rest.ends_with(|c: char| c.is_ascii_alphanumeric());
    (end.eq_ignore_ascii_case(word) && is_word).then(|| trim(rest))
}

/// Returns whether `text` contains one of [`WORKSPACE`] or of `others`, in any case, as a separate word:
/// `Workspace` but not `workspace_roots`, `tanmi` but not `tanmi.rs`, and not after the name of another tool.
fn has_latin_word(text: &str, others: &[&str]) -> bool {
    // Looked for only once, and only in a text with one of the words for workspaces.
    let names_other = LazyCell::new(|| OTHER_FILES.iter().any(|name| contains_ignoring_case(text, name)));
    let is_word_at = |at: usize, word: &str| {
        let end = at + word.len();
        text.as_bytes().get(at..end).is_some_and(|found| found.eq_ignore_ascii_case(word.as_bytes()))
            && is_separate(&text[..at], &text[end..])
    };
    let is_of_another_tool = |at: usize, word: &str| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        OTHER_TOOLS.iter().any(|tool| ends_with(before, tool))
            || NEAR_TOOLS.iter().any(|tool| contains_ignoring_case(near(before, NEAR_LATIN), tool))
            || PARTS.iter().any(|part| starts_with(after, part))
            || is_in_another_tool(after)
            || is_syntax(before, after)
    };
    let is_workspace_at = |at: usize, word: &str| is_word_at(at, word) && !is_of_another_tool(at, word);
    // Every word begins with one of these letters.
    let starts = text.bytes().enumerate().filter(|(_, byte)| matches!(byte | 0x20, b'w' | b't'));
    starts.map(|(at, _)| at).any(|at| {
        others.iter().any(|word| is_word_at(at, word))
            || (WORKSPACE.iter().any(|word| is_workspace_at(at, word)) && !*names_other)
    })
}

/// Returns whether a word between these texts is a separate word, not part of an identifier, option or path.
fn is_separate(before: &str, after: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | '\\' | '@');
    let mut after = after.chars();
    let next = after.next();
    // A full stop may end a sentence. If a letter or digit follows, it is part of a file name.
    let is_in_file_name = next == Some('.') && after.next().is_some_and(|c| c.is_ascii_alphanumeric());
    let previous = before.chars().next_back();
    !previous.is_some_and(|c| is_part(c) || c == '.') && !next.is_some_and(is_part) && !is_in_file_name
}

/// Returns whether a word between these texts is syntax of another tool: `[workspace]`, `workspace = true`, or the
/// protocol `workspace:*`.
fn is_syntax(before: &str, after: &str) -> bool {
    let value = after.trim_start().strip_prefix([':', '=']).map(str::trim_start);
    (before.ends_with('[') && after.starts_with(']'))
        || value.is_some_and(|value| value.starts_with(['`', '*', '^', '~']) || value.starts_with("true"))
}

fn contains_ignoring_case(text: &str, word: &str) -> bool {
    text.as_bytes().windows(word.len()).any(|found| found.eq_ignore_ascii_case(word.as_bytes()))
}

/// Returns the last characters of a text.
fn near(text: &str, characters: usize) -> &str {
    text.char_indices().rev().take(characters).last().map_or("", |(at, _)| &text[at..])
}

fn has_han_word(text: &str, han: &HanWord) -> bool {
    text.match_indices(han.word).any(|(at, word)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        let near = near(before, NEAR);
        !han.not_after.iter().any(|other| ends_with(before, other))
            && !han.not_near.iter().any(|other| near.contains(other))
            && !han.not_before.iter().any(|other| after.starts_with(other))
    })
}

/// Returns whether `text` starts with `word`, in any case, after a space.
fn starts_with(text: &str, word: &str) -> bool {
    let text = text.trim_start();
    let is_word = text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    is_word && !text[word.len()..].starts_with(|c: char| c.is_ascii_alphanumeric())
}

/// Returns whether a text after `workspace` says directly that it is one of another tool: `in Cargo.toml`.
fn is_in_another_tool(text: &str) -> bool {
    let rest = without_start(text.trim_start(), "in");
    rest.is_some_and(|rest| OTHER_TOOLS.iter().any(|tool| starts_with(rest, tool)))
}

/// Returns whether `text` ends with `word`, in any case, also if a space, a quote, `'s`, `的` or `中的` follows it. A word
/// in Latin script must be separate.
fn ends_with(text: &str, word: &str) -> bool {
    let text = text.trim_end_matches([' ', '\u{3000}', '"', '`', '的', '中', '里']);
    let text = text.strip_suffix("'s").or_else(|| text.strip_suffix("’s")).unwrap_or(text);
    let Some(at) = text.len().checked_sub(word.len()) else { return false };
    let is_word = text.is_char_boundary(at) && text[at..].eq_ignore_ascii_case(word);
    is_word && !(word.is_ascii() && text[..at].ends_with(|c: char| c.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_workspaces_own_words_count() {
        for prompt in [
            "继续工作区任务",
            "continue the workspace",
            "which node? 节点",
            "Use Tanmi please",
            "WORKSPACE.",
            "下一个任务",
            "完成这个任务",
            "聚焦到下一个节点",
            "从节点 3 开始",
            "按计划完成这个任务",
            "create a workspace for code review",
            "set up a workspace for Google sign-in",
            "the workspace: continue it",
            "Continue where we left off",
            "please pick up where you left off.",
            "list what tanmi-workspace has",
            "run yarn, then ask tanmi what is open",
            "take up the code where we left off",
            "what is in this workspace, cargo or not",
            "a google doc about my workspace",
            "the workspace of the cargo project",
        ] {
            assert!(mentions_workspaces(prompt, false), "{prompt}");
        }
    }

    #[test]
    fn mentions_workspaces_things_of_other_tools_do_not_count() {
        for prompt in [
            "how do I install node.js?",
            "workspace_roots is empty",
            "open tanmi.rs",
            "my-workspace/file",
            "run cargo test --workspace",
            "Python 的 list 和 tuple 有什么区别？",
            "add a crate to the Cargo workspace",
            "npm workspaces are slow",
            "does pnpm workspace support this",
            "Yarn workspaces",
            "connect Google Workspace",
            "a VS Code workspace setting",
            "the vscode workspace file",
            "写一个定时任务",
            "添加一个定时的任务",
            "集群节点挂了",
            "删除 DOM 节点",
            "删除DOM节点",
            "打开任务管理器",
            "Cargo 工作区里有几个包",
            "edit the workspace Cargo.toml",
            "what are workspaces in Cargo.toml for",
            "a workspace dependency in Cargo",
            "cargo's workspace",
            "npm’s workspaces feature",
            "open the VS Code's workspace",
            "集群中的节点",
            "集群的主节点",
            "集群里每个节点",
            "DOM 树节点",
            "添加 DOM 子节点",
            "删除定时清理任务",
            "定时执行的任务",
            "Cargo.toml has a [workspace] section",
            "the `workspace:` protocol of pnpm",
            "use workspace:* in package.json",
            "open a multi-root workspace in VS Code",
            "yarn berry workspaces",
            "git 工作区干净吗",
            "工作区有未提交的改动",
            "cargo test in the whole workspace",
            "Cargo virtual workspace",
            "in our cargo-based workspace",
            "pnpm -r build in the workspace",
            "React 的下一个节点",
            "删除链表的倒数第 N 个节点",
            "set workspace = true in the dependency",
            "what does `workspace: true` mean",
            "the workspaces field of package.json",
            "谷歌工作区",
            "multi root workspaces",
            "二叉树的节点",
            "React 节点渲染",
            "crontab 任务",
            "",
        ] {
            assert!(!mentions_workspaces(prompt, false), "{prompt}");
        }
    }

    #[test]
    fn asks_to_continue_only_whole_prompts_count() {
        for prompt in [
            "go on",
            "Continue.",
            " 继续。\n",
            "请继续",
            "Let's continue!",
            "what is next?",
            "let's go on",
            "resume",
            "接着上次的来",
            "继续昨天的工作",
            "接着干",
            "我们继续吧",
            "continue please",
            "ok, continue",
            "Okay, let's go on.",
            "please continue",
            "继续做",
            "继续工作",
            "好的，继续",
            "接着昨天的做",
            "继续之前的工作",
            "继续上次",
            "从上次停下的地方继续",
            "下一步",
            "上次做到哪了？",
            "Continue with the plan.",
            "What should I do next?",
            "where were we?",
            "continue from yesterday",
            "what's the next step?",
            "接下来做什么",
            "Continue the work from yesterday, please.",
            "resume work",
            "next task",
            "昨天做到哪了",
            "我们上次做到哪里了？",
            "继续未完成的工作",
        ] {
            assert!(asks_to_continue(prompt) && !mentions_workspaces(prompt, false), "{prompt}");
        }
        for prompt in [
            "",
            "go on with the parser",
            "continue: fix the bug",
            "不继续",
            "resume the download",
            "ok",
            "pleased to continue",
            "继续昨天的工作：改 README",
            "继续昨天的工作，改文档",
            "继续重构登录模块",
            "继续优化工作流",
            "从上次的提交新建分支",
            "下一步部署到测试环境",
            "把按钮改成\"走吧\"",
            "继续吧\"",
            "改成`开始吧`",
        ] {
            assert!(!asks_to_continue(prompt), "{prompt}");
        }
    }

    #[test]
    fn mentions_workspaces_after_unbind_needs_the_word_workspace() {
        assert!(!mentions_workspaces("下一个任务", true));
        assert!(!mentions_workspaces("continue where we left off", true));
        assert!(mentions_workspaces("继续工作区", true));
        assert!(mentions_workspaces("bind a workspace", true));
    }
}

//! The words of a prompt that mention workspaces of this program. Many other tools have workspaces, tasks and nodes
//! too, so the word before or after decides.
//!
//! Everything is searched byte by byte and without a copy, because it runs at every prompt of an unbound session.

/// Words in Latin script that count after an unbind, too, in lower case.
const WORKSPACE: &[&str] = &["workspace", "workspaces"];
/// Other words and sentences in Latin script, in lower case. The sentences ask for the work of an earlier session.
const OTHERS: &[&str] =
    &["tanmi", "tanmi-workspace", "where we left off", "where you left off", "where i left off"];
/// First prompts of a session that can only mean the work of an earlier session, in lower case.
const CONTINUE: &[&str] = &[
    "go on",
    "continue",
    "carry on",
    "keep going",
    "let's continue",
    "let's go on",
    "resume",
    "what is next",
    "what's next",
    "继续",
    "继续做",
    "继续工作",
    "接着做",
    "接着来",
    "接着干",
    "接着上次的来",
    "继续昨天的工作",
    "继续上次的工作",
    "我们继续",
];
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
/// A word directly before `workspace` that names another tool, in lower case.
const OTHER_TOOLS: &[&str] = &[
    "bazel",
    "bun",
    "cargo",
    "code",
    "deno",
    "eclipse",
    "go",
    "google",
    "gradle",
    "lerna",
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
];

/// A word in Chinese, with the texts directly before and after it that make it another thing.
struct HanWord {
    word: &'static str,
    not_after: &'static [&'static str],
    not_before: &'static [&'static str],
}

const HAN: &[HanWord] = &[
    HanWord { word: "工作区", not_after: OTHER_TOOLS, not_before: &[] },
    HanWord {
        word: "任务",
        not_after: &["定时", "计划", "后台", "异步", "调度", "批处理", "并发", "cron", "celery", "gradle"],
        not_before: &["栏", "管理器", "队列", "调度", "计划程序"],
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
    CONTINUE.iter().any(|text| prompt.eq_ignore_ascii_case(text))
}

fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| {
        c.is_whitespace() || matches!(c, '.' | ',' | '!' | '?' | '。' | '，' | '！' | '？')
    })
}

/// Returns a text without this word at its start; `None` if it starts with another one.
fn without_start<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let rest = text.get(word.len()..).filter(|_| text[..word.len()].eq_ignore_ascii_case(word))?;
    let is_word = !word.is_ascii() || !rest.starts_with(|c: char| c.is_ascii_alphanumeric());
    is_word.then(|| trim(rest))
}

/// Returns a text without this word at its end; `None` if it ends with another one.
fn without_end<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    ends_with(text, word).then(|| trim(&text[..text.len() - word.len()]))
}

/// Returns whether `text` contains one of [`WORKSPACE`] or of `others`, in any case, as a separate word:
/// `Workspace` but not `workspace_roots`, `tanmi` but not `tanmi.rs`, and not after the name of another tool.
fn has_latin_word(text: &str, others: &[&str]) -> bool {
    let is_word_at = |at: usize, word: &str| {
        let end = at + word.len();
        text.as_bytes().get(at..end).is_some_and(|found| found.eq_ignore_ascii_case(word.as_bytes()))
            && is_separate(&text[..at], &text[end..])
            && !OTHER_TOOLS.iter().any(|tool| ends_with(&text[..at], tool))
            && !PARTS.iter().any(|part| starts_with(&text[end..], part))
            && !is_in_another_tool(&text[end..])
    };
    // Every word begins with one of these letters.
    let starts = text.bytes().enumerate().filter(|(_, byte)| matches!(byte | 0x20, b'w' | b't'));
    starts.map(|(at, _)| at).any(|at| WORKSPACE.iter().chain(others).any(|word| is_word_at(at, word)))
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

fn has_han_word(text: &str, han: &HanWord) -> bool {
    text.match_indices(han.word).any(|(at, word)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        !han.not_after.iter().any(|other| ends_with(before, other))
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
    let text = text.trim_start();
    let rest = ["in ", "of ", "for "].iter().find_map(|word| without_start(text, word.trim_end()));
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
            "Continue where we left off",
            "please pick up where you left off.",
            "list what tanmi-workspace has",
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
            "DOM 树节点",
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

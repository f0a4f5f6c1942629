//! Output of `memory`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::Value;
use tanmi_app::memory::{
    FactFile, ImportResult, Lexicon, Memory, MemoryResults, MemoryStats, ReplacedFact, SaveResult, StaleFacts,
};
use tanmi_app::transcripts::IngestResult;
use tanmi_base::{Lang, text};
use tanmi_memory::Author;
use tanmi_memory::anchors::FileState;
use tanmi_memory::sync::SyncResult;

use super::table::{self, Cell, NotedRow, cell, shrinkable, styled};
use super::{counted, short_ids};
use crate::out::{self, paint};

/// Formats the result of a save. `supersedes` are the ids of the facts that the saved fact supersedes.
pub fn saved(saved: &SaveResult, supersedes: &[String], lang: Lang) -> String {
    let mut out = String::new();
    let word = if saved.duplicate {
        lang.pick("已有相同的记忆", "already saved")
    } else if saved.queued {
        lang.pick("等待发送", "queued")
    } else {
        lang.pick("已保存", "saved")
    };
    let superseded = if saved.duplicate { now_supersedes(supersedes, lang) } else { String::new() };
    let _ = writeln!(out, "{word} {}{superseded}", paint(out::DIM, &saved.id));
    if !saved.masked.is_empty() {
        let _ = writeln!(out, "{}", paint(out::YELLOW, &super::masked(&saved.masked, lang)));
    }
    if let Some(notice) = saved.notice {
        let _ = writeln!(out, "{}", paint(out::YELLOW, notice));
    }
    if !saved.similar.is_empty() {
        let heading = lang.pick("可能是同一件事的记忆：", "memories that look like the same matter:");
        let _ = writeln!(out, "{}", paint(out::DIM, heading));
        out.push_str(&table::render_with_notes(rows(&saved.similar, lang), 80));
        if let Some(hint) = &saved.hint {
            let _ = writeln!(out, "{}", paint(out::DIM, hint));
        }
    }
    out
}

/// Returns what a save did if the fact existed already: it supersedes these facts from now on.
fn now_supersedes(ids: &[String], lang: Lang) -> String {
    if ids.is_empty() {
        return String::new();
    }
    let ids: Vec<String> = ids.iter().map(|id| text::one_line(id)).collect();
    let (zh, en) = (ids.join("、"), ids.join(", "));
    lang.pick(format!("，它现在取代 {zh}"), format!(", which now supersedes {en}"))
}

fn rows(memories: &[Memory], lang: Lang) -> Vec<NotedRow> {
    let ids = ShortIds::of(memories);
    let row = |memory| NotedRow { cells: row(memory, &ids, lang), notes: notes(memory, &ids, lang) };
    memories.iter().map(row).collect()
}

/// The short ids of a list of memories and of the facts that replace some of them.
struct ShortIds<'a>(BTreeMap<&'a str, &'a str>);

impl ShortIds<'_> {
    fn of(memories: &[Memory]) -> ShortIds<'_> {
        let newer = memories.iter().filter_map(|memory| memory.replaced.as_ref());
        let newer = newer.map(|newer| newer.by.as_str());
        let ids: BTreeSet<&str> = memories.iter().map(|memory| memory.id.as_str()).chain(newer).collect();
        ShortIds(ids.iter().copied().zip(short_ids(ids.iter().copied())).collect())
    }

    fn get<'b>(&'b self, id: &'b str) -> &'b str {
        self.0.get(id).copied().unwrap_or(id)
    }
}

fn row(memory: &Memory, ids: &ShortIds<'_>, lang: Lang) -> Vec<Cell> {
    let day = memory.timestamp.as_deref().map_or("", |stamp| text::prefix(stamp, 10));
    let mut row = vec![
        styled(out::DIM, day),
        cell(format!("[{}]", memory.letter)),
        shrinkable(styled(if memory.hidden { out::DIM } else { out::BOLD }, &memory.content)),
        styled(out::DIM, ids.get(&memory.id)),
    ];
    if let Some(author) = &memory.author {
        row.push(styled(out::DIM, format!("— {}", author.person)));
    }
    if memory.queued {
        row.push(styled(out::YELLOW, lang.pick("尚未发送", "not delivered")));
    }
    if memory.scope == "user" {
        row.push(styled(out::DIM, lang.pick("用户", "user")));
    }
    if memory.hidden {
        let is_replaced = !memory.replaced_by.is_empty();
        let (zh, en) = if is_replaced { ("已被取代", "superseded") } else { ("已忘记", "forgotten") };
        row.push(styled(out::DIM, lang.pick(zh, en)));
    }
    if let Some(score) = memory.score {
        row.insert(0, styled(out::GREEN, format!("{score:.2}")));
    }
    row
}

/// Returns what the reader should know about a memory before relying on it. These texts are too long for a column.
fn notes(memory: &Memory, ids: &ShortIds<'_>, lang: Lang) -> Vec<Cell> {
    let changed = memory.files.iter().filter(|file| file.state != FileState::Same);
    let changed = changed.map(|file| file_state(file, lang));
    let newer = memory.replaced.iter().map(|newer| replaced(newer, ids, lang));
    changed.chain(newer).map(|note| styled(out::YELLOW, note)).collect()
}

fn file_state(file: &FactFile, lang: Lang) -> String {
    let path = &file.path;
    match file.state {
        FileState::Same => path.clone(),
        FileState::Changed => lang.pick(format!("{path} 之后有改动"), format!("{path} changed since")),
        FileState::Gone => lang.pick(format!("{path} 已不存在"), format!("{path} is gone")),
    }
}

pub fn stale(stale: &StaleFacts, lang: Lang) -> String {
    if stale.results.is_empty() {
        let checked = stale.checked;
        let none = lang.pick(
            format!("没有过时的事实；检查了 {checked} 条关联文件的事实"),
            format!("no stale facts; {} with files checked", counted(checked, "fact")),
        );
        return format!("{}\n", paint(out::DIM, &none));
    }
    let mut out = table::render_with_notes(rows(&stale.results, lang), 90);
    let hint = lang.pick(
        "仍然成立：`tanmi memory edit ID TEXT`；不再成立：`tanmi memory forget ID`",
        "still true: `tanmi memory edit ID TEXT`; no longer true: `tanmi memory forget ID`",
    );
    let _ = writeln!(out, "{}", paint(out::DIM, hint));
    if stale.is_partial {
        let more = lang.pick("还有更多；用 --limit 显示", "there may be more; show them with --limit");
        let _ = writeln!(out, "{}", paint(out::DIM, more));
    }
    out
}

fn replaced(newer: &ReplacedFact, ids: &ShortIds<'_>, lang: Lang) -> String {
    let (by, on) = (ids.get(&newer.by), &newer.on);
    lang.pick(format!("{on} 被 {by} 替代"), format!("replaced on {on} by {by}"))
}

pub fn results(results: &MemoryResults, lang: Lang) -> String {
    let notice = results.notice.iter().map(|notice| format!("{}\n", paint(out::YELLOW, notice)));
    let notice: String = notice.collect();
    if results.results.is_empty() {
        return format!("{}\n{notice}", paint(out::DIM, lang.pick("没有找到记忆", "no memories found")));
    }
    let mut out = table::render_with_notes(rows(&results.results, lang), 90);
    out.push_str(&notice);
    if let Some(total) = results.total.filter(|total| *total > results.results.len() as u64) {
        let shown = results.results.len();
        let (zh, en) = (format!("显示 {shown} 条，共 {total} 条"), format!("showing {shown} of {total}"));
        let _ = writeln!(out, "{}", paint(out::DIM, &lang.pick(zh, en)));
    }
    out
}

pub fn full(memory: &Memory, lang: Lang) -> String {
    let label = |zh, en| styled(out::DIM, lang.pick(zh, en));
    let mut rows = vec![
        vec![label("ID", "id"), cell(&memory.id)],
        vec![label("类型", "type"), cell(memory.letter)],
        vec![label("范围", "scope"), cell(memory.scope)],
        vec![label("时间", "time"), cell(memory.timestamp.as_deref().unwrap_or("?"))],
        vec![label("文件", "file"), cell(&memory.source)],
    ];
    let mut add = |zh, en, value: String| {
        if !value.is_empty() {
            rows.push(vec![label(zh, en), cell(value)]);
        }
    };
    add("会话", "session", memory.session.clone());
    if let Some(Author { person, machine }) = &memory.author {
        let machine = if machine.is_empty() { String::new() } else { format!(" ({machine})") };
        add("作者", "author", format!("{person}{machine}"));
    }
    if memory.queued {
        add("状态", "state", lang.pick("尚未发送到服务器", "not delivered to the server").to_owned());
    }
    add("说话人", "speaker", memory.speaker.clone());
    add("实体", "entities", memory.entities.join(", "));
    add("置信度", "confidence", memory.confidence.map(|value| value.to_string()).unwrap_or_default());
    add(
        "涉及文件",
        "files",
        memory.files.iter().map(|file| file_state(file, lang)).collect::<Vec<_>>().join(", "),
    );
    add("提交", "commit", memory.commit.clone().unwrap_or_default());
    add("取代者", "superseded by", memory.replaced_by.clone());
    if memory.hidden && memory.replaced_by.is_empty() {
        add("状态", "state", lang.pick("已忘记", "forgotten").to_owned());
    }
    format!("{}\n{}\n", table::render(&rows, 90), text::printable(&memory.content))
}

pub fn marked(memories: &[Memory], word: &str, lang: Lang) -> String {
    memories.iter().fold(String::new(), |mut out, memory| {
        let newer = &memory.replaced_by;
        let word = match newer.is_empty() {
            true => word.to_owned(),
            false => lang.pick(format!("已被 {newer} 取代："), format!("superseded by {newer}:")),
        };
        let _ = writeln!(
            out,
            "{word} {} {}",
            paint(out::DIM, &memory.id),
            text::fit(&text::one_line(&memory.content), 80)
        );
        out
    })
}

pub fn imported(imported: &ImportResult, lang: Lang) -> String {
    let ImportResult { added, known, bad_lines, first_bad_line, masked } = imported;
    let zh = format!("新增 {added} 条，已有 {known} 条，无法解析 {bad_lines} 行，遮盖敏感信息 {masked} 处\n");
    let en = format!(
        "{added} added, {known} already saved, {} not parsed, {} masked\n",
        counted(bad_lines, "line"),
        counted(masked, "secret")
    );
    let mut out = lang.pick(zh, en);
    if let Some(line) = first_bad_line {
        let (zh, en) =
            (format!("第一处无法解析：第 {line} 行"), format!("first line that was not parsed: {line}"));
        let _ = writeln!(out, "{}", paint(out::YELLOW, &lang.pick(zh, en)));
    }
    out
}

pub fn ingested(ingested: &IngestResult, lang: Lang) -> String {
    let IngestResult { files, turns, unchanged, masked } = ingested;
    let zh = format!(
        "从 {files} 个会话记录收录 {turns} 个对话轮次；{unchanged} 个文件没有变化，遮盖敏感信息 {masked} 处\n"
    );
    let en = format!(
        "ingested {} from {}; {unchanged} unchanged, {} masked\n",
        counted(turns, "turn"),
        counted(files, "transcript"),
        counted(masked, "secret")
    );
    lang.pick(zh, en)
}

pub fn synced(synced: &SyncResult, lang: Lang) -> String {
    let (added, bad) = (synced.added, synced.bad_lines);
    let zh = format!("索引新增 {added} 条，无法解析 {bad} 行\n");
    lang.pick(zh, format!("{added} added to the index, {} not parsed\n", counted(bad, "line")))
}

pub fn stats(stats: &MemoryStats, lang: Lang) -> String {
    let label = |zh, en| styled(out::DIM, lang.pick(zh, en));
    let rows = vec![
        vec![label("文件夹", "folder"), cell(&stats.place)],
        vec![label("事实", "facts"), cell(stats.facts.to_string())],
        vec![label("摘要", "summaries"), cell(stats.summaries.to_string())],
        vec![label("对话轮次", "turns"), cell(stats.turns.to_string())],
        vec![label("已忘记或被取代", "forgotten or superseded"), cell(stats.hidden.to_string())],
        vec![label("文件", "files"), cell(stats.files.to_string())],
        vec![label("无法解析的行", "lines not parsed"), cell(stats.bad_lines.to_string())],
        vec![label("索引", "index"), cell(format!("{} KB", stats.index_bytes / 1024))],
    ];
    table::render(&rows, 90)
}

pub fn lexicon_added(added: &Lexicon, lang: Lang) -> String {
    let Lexicon { name, pairs, lines, bad_lines, .. } = added;
    let name = text::one_line(name);
    let bad = match bad_lines {
        0 => String::new(),
        bad => lang.pick(format!("，{bad} 行无法读取"), format!(", {bad} lines could not be read")),
    };
    lang.pick(
        format!("已添加 {name}：{lines} 行，{pairs} 对词{bad}\n"),
        format!("{name} added: {lines} lines, {pairs} pairs of words{bad}\n"),
    )
}

pub fn lexicons(value: &Value, lang: Lang) -> String {
    let all = value["lexicons"].as_array().map(Vec::as_slice).unwrap_or_default();
    if all.is_empty() {
        let none = lang
            .pick("没有词典；只使用内置的词汇表", "no dictionaries; search uses the built-in glossary only");
        return format!("{}\n", paint(out::DIM, none));
    }
    let label = |zh, en| styled(out::DIM, lang.pick(zh, en));
    let mut rows = vec![vec![
        label("名称", "name"),
        label("词对", "pairs"),
        label("行", "lines"),
        label("坏行", "bad lines"),
        label("添加时间", "added"),
    ]];
    rows.extend(all.iter().map(|one| {
        let text = |key: &str| match &one[key] {
            Value::String(text) => cell(text),
            other => cell(other.to_string()),
        };
        Vec::from(["name", "pairs", "lines", "badLines", "added"].map(text))
    }));
    table::render(&rows, 90)
}

pub fn model(value: &Value, lang: Lang) -> String {
    let text = match value {
        Value::Null => {
            lang.pick("没有模型；只按关键词搜索", "no model; search uses keywords only").to_owned()
        }
        value => match (value.get("removed"), value.get("error").and_then(Value::as_str)) {
            (Some(Value::Bool(true)), _) => lang.pick("已移除模型", "model removed").to_owned(),
            (Some(_), _) => lang.pick("没有可移除的模型", "no model to remove").to_owned(),
            (None, Some(error)) => text::one_line(error),
            (None, None) => {
                let (dir, size) = (value["dir"].as_str().unwrap_or_default(), &value["dimensions"]);
                lang.pick(format!("{dir}（{size} 维）"), format!("{dir} ({size} dimensions)"))
            }
        },
    };
    format!("{text}\n")
}

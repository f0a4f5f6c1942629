//! Memories.

use std::fmt::Write;

use serde_json::Value;
use tanmi_app::memory::{ImportResult, Memory, MemoryResults, MemoryStats, SaveResult};
use tanmi_app::transcripts::IngestResult;
use tanmi_base::{Lang, text};
use tanmi_memory::sync::SyncResult;

use super::table::{self, cell, styled};
use crate::out::{self, paint};

pub fn saved(saved: &SaveResult, lang: Lang) -> String {
    let mut out = String::new();
    let word = if saved.duplicate {
        lang.pick("已有相同的记忆", "known already")
    } else {
        lang.pick("已保存", "saved")
    };
    let _ = writeln!(out, "{word} {}", paint(out::DIM, &saved.id));
    if !saved.masked.is_empty() {
        let (zh, en) = (
            format!("保存前已遮盖：{}", saved.masked.join("、")),
            format!("masked before saving: {}", saved.masked.join(", ")),
        );
        let _ = writeln!(out, "{}", paint(out::YELLOW, &lang.pick(zh, en)));
    }
    if !saved.similar.is_empty() {
        let hint = lang.pick(
            "相近的记忆（若不再成立：--supersedes ID）：",
            "something like it (no longer true? --supersedes ID):",
        );
        let _ = writeln!(out, "{}", paint(out::DIM, hint));
        out.push_str(&table::render(
            &saved.similar.iter().map(|memory| row(memory, lang)).collect::<Vec<_>>(),
            80,
        ));
    }
    out
}

fn row(memory: &Memory, lang: Lang) -> Vec<table::Cell> {
    let day = memory.timestamp.as_deref().map_or("", |stamp| text::prefix(stamp, 10));
    let mut row = vec![
        styled(out::DIM, day),
        cell(format!("[{}]", memory.kind)),
        styled(if memory.hidden { out::DIM } else { out::BOLD }, &memory.content),
        styled(out::DIM, &memory.id),
    ];
    if memory.hidden {
        let is_replaced = !memory.replaced_by.is_empty();
        let (zh, en) = if is_replaced { ("被替换", "replaced") } else { ("已忘记", "forgotten") };
        row.push(styled(out::DIM, lang.pick(zh, en)));
    }
    if let Some(score) = memory.score {
        row.insert(0, styled(out::GREEN, format!("{score:.2}")));
    }
    row
}

pub fn results(results: &MemoryResults, lang: Lang) -> String {
    if results.results.is_empty() {
        return format!("{}\n", paint(out::DIM, lang.pick("（没有找到）", "(nothing found)")));
    }
    let mut out =
        table::render(&results.results.iter().map(|memory| row(memory, lang)).collect::<Vec<_>>(), 90);
    if let Some(total) = results.total.filter(|total| *total > results.results.len() as u64) {
        let shown = results.results.len();
        let (zh, en) = (format!("显示 {shown} / {total}"), format!("{shown} of {total} shown"));
        let _ = writeln!(out, "{}", paint(out::DIM, &lang.pick(zh, en)));
    }
    out
}

pub fn whole(memory: &Memory, lang: Lang) -> String {
    let label = |zh, en| styled(out::DIM, lang.pick(zh, en));
    let mut rows = vec![
        vec![label("编号", "id"), cell(&memory.id)],
        vec![label("类型", "type"), cell(&memory.kind)],
        vec![label("时间", "time"), cell(memory.timestamp.as_deref().unwrap_or("?"))],
        vec![label("文件", "file"), cell(&memory.source)],
    ];
    let mut add = |zh, en, value: String| {
        if !value.is_empty() {
            rows.push(vec![label(zh, en), cell(value)]);
        }
    };
    add("会话", "session", memory.session.clone());
    add("说话人", "speaker", memory.speaker.clone());
    add("实体", "entities", memory.entities.join(", "));
    add("可信度", "confidence", memory.confidence.map(|value| value.to_string()).unwrap_or_default());
    add("被替换", "replaced by", memory.replaced_by.clone());
    if memory.hidden && memory.replaced_by.is_empty() {
        add("状态", "state", lang.pick("已忘记", "forgotten").to_owned());
    }
    format!("{}\n{}\n", table::render(&rows, 90), text::printable(&memory.content))
}

pub fn marked(memories: &[Memory], word: &str) -> String {
    memories.iter().fold(String::new(), |mut out, memory| {
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
    let zh = format!("新增 {added}，已有 {known}，无法解析 {bad_lines}，遮盖 {masked}\n");
    let en = format!(
        "{added} added, {known} known already, {bad_lines} lines not understood, {masked} secrets masked\n"
    );
    let mut out = lang.pick(zh, en);
    if let Some(line) = first_bad_line {
        let (zh, en) =
            (format!("第一处无法解析：第 {line} 行"), format!("the first not understood: line {line}"));
        let _ = writeln!(out, "{}", paint(out::YELLOW, &lang.pick(zh, en)));
    }
    out
}

pub fn ingested(ingested: &IngestResult, lang: Lang) -> String {
    let IngestResult { files, turns, unchanged, masked } = ingested;
    let zh = format!("从 {files} 个文件收录 {turns} 段对话；{unchanged} 个没有变化，遮盖 {masked}\n");
    let en = format!("{turns} turns from {files} files; {unchanged} unchanged, {masked} secrets masked\n");
    lang.pick(zh, en)
}

pub fn synced(synced: &SyncResult, lang: Lang) -> String {
    let (added, bad) = (synced.added, synced.bad_lines);
    let zh = format!("索引新增 {added} 条；{bad} 行无法解析\n");
    lang.pick(zh, format!("{added} added to the index; {bad} lines not understood\n"))
}

pub fn stats(stats: &MemoryStats, lang: Lang) -> String {
    let label = |zh, en| styled(out::DIM, lang.pick(zh, en));
    let rows = vec![
        vec![label("文件夹", "folder"), cell(&stats.folder)],
        vec![label("事实", "facts"), cell(stats.facts.to_string())],
        vec![label("摘要", "summaries"), cell(stats.summaries.to_string())],
        vec![label("对话", "turns"), cell(stats.turns.to_string())],
        vec![label("已忘记或替换", "forgotten or replaced"), cell(stats.hidden.to_string())],
        vec![label("文件", "files"), cell(stats.files.to_string())],
        vec![label("无法解析的行", "lines not understood"), cell(stats.bad_lines.to_string())],
        vec![label("索引", "index"), cell(format!("{} KB", stats.index_bytes / 1024))],
    ];
    table::render(&rows, 90)
}

pub fn model(value: &Value, lang: Lang) -> String {
    let text = match value {
        Value::Null => lang.pick("没有模型；按词搜索", "no model; search goes by words").to_owned(),
        value => match (value.get("removed"), value.get("error").and_then(Value::as_str)) {
            (Some(Value::Bool(true)), _) => lang.pick("已移除", "removed").to_owned(),
            (Some(_), _) => lang.pick("原本没有模型", "there was none").to_owned(),
            (None, Some(error)) => text::one_line(error),
            (None, None) => {
                let (dir, size) = (value["dir"].as_str().unwrap_or_default(), &value["dimensions"]);
                lang.pick(format!("{dir}（{size} 维）"), format!("{dir} ({size} dimensions)"))
            }
        },
    };
    format!("{text}\n")
}

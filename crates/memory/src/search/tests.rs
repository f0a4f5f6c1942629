use serde_json::json;

use super::*;
use crate::rank::Doc;
use crate::record::{self, Line};

/// 2025-10-03 12:00 UTC.
const NOW: Millis = 1_759_492_800_000;

fn insert(index: &MemoryIndex, record: &serde_json::Value) {
    let Line::Record { mut row, .. } = record::read_line(record.to_string().as_bytes(), "daily/x.jsonl")
    else {
        panic!("{record}")
    };
    row.features = crate::answer::features(&row.content);
    let doc = Doc { content: &row.content, speaker: &row.speaker, entities: &row.entities, at: row.at };
    assert!(index.insert(&row, &rank::body_terms(&doc)).unwrap());
}

/// Returns an index of facts, each with its text as its id.
fn facts(texts: &[&str]) -> MemoryIndex {
    let index = MemoryIndex::in_memory().unwrap();
    for text in texts {
        insert(&index, &json!({"id": text, "content": text, "timestamp": "2025-01-01"}));
    }
    index
}

/// Returns an index of the turns of one conversation, each with its text as its id.
fn turns(texts: &[&str]) -> MemoryIndex {
    let index = MemoryIndex::in_memory().unwrap();
    for (at, text) in texts.iter().enumerate() {
        let speaker = if at % 2 == 0 { "Ann" } else { "Bob" };
        insert(
            &index,
            &json!({"id": text, "content": text, "type": "turn", "session": "s", "speaker": speaker}),
        );
    }
    index
}

fn ids(hits: &[Hit]) -> Vec<&str> {
    hits.iter().map(|hit| hit.row.id.as_str()).collect()
}

fn ask(index: &MemoryIndex, query: &str, limit: usize) -> Vec<Hit> {
    answer(index, query, &MemoryFilter::default(), limit, NOW, SearchAids::default()).unwrap()
}

fn first(hits: &[Hit]) -> &str {
    hits.first().map_or("", |hit| hit.row.id.as_str())
}

#[test]
fn answer_any_limit_returns_same_order() {
    let index = MemoryIndex::in_memory().unwrap();
    for n in 0..700 {
        let text = format!("{n} cache {} {}", ["redis", "limit", "pool"][n % 3], "word ".repeat(n % 7));
        let mut record = json!({"id": n.to_string(), "content": text, "timestamp": "2025-01-01"});
        if n % 2 == 0 {
            (record["type"], record["session"]) = ("turn".into(), format!("s{}", n / 50).into());
        }
        insert(&index, &record);
    }
    let all = ask(&index, "redis cache limit", 600);
    assert_eq!(all.len(), 600);
    for limit in [0, 1, 3, 10, 24, 25, 119, 121, 400] {
        assert_eq!(ids(&ask(&index, "redis cache limit", limit)), ids(&all)[..limit], "{limit}");
    }
    assert!(all.windows(2).all(|pair| pair[0].score >= pair[1].score));
}

#[test]
fn answer_question_in_other_language_finds_fact() {
    let english = "The rate limiter allows 100 requests";
    let chinese = "连接池最多四十个连接";
    let index = facts(&[english, chinese, "Invoices are sent on Monday", "周一发布新版本"]);
    assert_eq!(first(&ask(&index, "限流是多少", 5)), english);
    assert_eq!(first(&ask(&index, "size of the connection pool", 5)), chinese);
    let plain = search(&index, "限流是多少", &MemoryFilter::default(), 5, NOW).unwrap();
    assert_eq!(ids(&plain), Vec::<&str>::new(), "the memory for a session start is not translated");
}

#[test]
fn answer_word_with_many_hits_is_not_translated() {
    let own: Vec<String> = (0..30).map(|n| format!("缓存说明{n}")).collect();
    let mut texts: Vec<&str> = own.iter().map(String::as_str).collect();
    texts.push("cache warmup");
    let index = facts(&texts);
    assert!(!ids(&ask(&index, "缓存", 50)).contains(&"cache warmup"));
}

#[test]
fn answer_traditional_characters_find_simplified_ones() {
    // No character is the same in both scripts.
    for (stored, asked) in [("缓冲区", "緩衝區"), ("緩衝區", "缓冲区")] {
        assert_eq!(ids(&ask(&facts(&[stored, "x"]), asked, 5)), [stored]);
    }
}

#[test]
fn answer_named_day_finds_facts_without_common_term() {
    let index = facts(&["other one", "other two"]);
    insert(&index, &json!({"id": "day", "content": "Jenkins moved", "timestamp": "2025-10-02T10:00:00Z"}));
    for question in [
        "what was decided on 2025-10-02?",
        "yesterday",
        "昨天决定了哪些事",
        "10月2日有什么决定",
        "2025年10月2日",
    ] {
        assert_eq!(first(&ask(&index, question, 5)), "day", "{question}");
    }
    assert_eq!(ids(&ask(&index, "1999-10-02", 5)), Vec::<&str>::new());
    let plain = search(&index, "yesterday", &MemoryFilter::default(), 5, NOW).unwrap();
    assert_eq!(ids(&plain), Vec::<&str>::new(), "a word of a node's text names no day");
}

#[test]
fn answer_turn_after_question_inherits_its_terms() {
    let reply = "It is the one from the farm.";
    let index = turns(&[
        "Nothing here.",
        "Which bread recipe do you use?",
        reply,
        "Nice bread.",
        "The weather is good.",
    ]);
    assert_eq!(first(&ask(&index, "bread recipe", 5)), reply);
}

#[test]
fn answer_turn_with_asked_detail_comes_first() {
    let index = turns(&[
        "The visitors came to the garden.",
        "Ok.",
        "Fine.",
        "Sure.",
        "12 visitors came to the garden.",
    ]);
    assert_eq!(
        first(&ask(&index, "how many visitors came to the garden", 5)),
        "12 visitors came to the garden."
    );
}

#[test]
fn answer_fact_comes_before_turns_of_same_topic() {
    let index = turns(&["The cache is in Redis.", "Ok.", "Fine."]);
    let fact = "The cache is on the disk";
    insert(&index, &json!({"id": fact, "content": fact, "timestamp": "2025-01-01"}));
    assert_eq!(first(&ask(&index, "where is the cache", 5)), fact);
}

#[test]
fn answer_bilingual_questions_are_among_first_ten() {
    let lines = |text: &str| -> Vec<serde_json::Value> {
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let index = MemoryIndex::in_memory().unwrap();
    for doc in lines(include_str!("../../tests/bilingual/docs.jsonl")) {
        insert(&index, &json!({"id": doc["id"], "content": doc["text"]}));
    }
    let questions = lines(include_str!("../../tests/bilingual/queries.jsonl"));
    for half in ["tuned", "unseen"] {
        let of_half: Vec<_> =
            questions.iter().filter(|one| one["category"].as_str().unwrap().ends_with(half)).collect();
        let is_found = |question: &&&serde_json::Value| {
            let hits = ask(&index, question["query"].as_str().unwrap(), 10);
            ids(&hits).contains(&question["gold"][0].as_str().unwrap())
        };
        let found = of_half.iter().filter(is_found).count();
        assert!(
            of_half.len() >= 30 && found * 10 >= of_half.len() * 7,
            "{half}: {found} of {}",
            of_half.len()
        );
    }
}

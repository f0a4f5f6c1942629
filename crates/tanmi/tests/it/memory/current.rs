//! Facts that newer facts replace.

use serde_json::json;

use super::{DAY, save, search};
use crate::env::TestEnv;
use crate::mcp::Client;

#[test]
fn search_newer_fact_comes_first_and_marks_the_older() {
    for (lang, older, newer, query, mark) in [
        (
            "en_US.UTF-8",
            "Frontend tests run with Jest",
            "Frontend tests moved from Jest to Vitest",
            "jest",
            "replaced on 2025-12-12 by",
        ),
        ("zh_CN.UTF-8", "前端测试用 Jest", "前端测试从 Jest 换成了 Vitest", "前端测试 Jest", "2025-12-12 被"),
    ] {
        let env = TestEnv::with_lang(lang);
        let old = save(&env, older)["id"].clone();
        env.tick(DAY);
        let saved = save(&env, newer);
        assert_eq!(
            (&saved["similar"][0]["id"], &saved["similar"][0]["replaced"]["by"]),
            (&old, &saved["id"])
        );
        assert!(
            saved["hint"].as_str().unwrap().contains(&format!("--supersedes {}", old.as_str().unwrap())),
            "{saved}"
        );
        let found = env.json(&["memory", "search", query])["results"].clone();
        assert_eq!((&found[0]["content"], &found[1]["content"]), (&json!(newer), &json!(older)));
        assert_eq!(found[1]["replaced"], json!({"by": saved["id"], "on": "2025-12-12"}));
        assert!(
            found[0].get("replaced").is_none() && found[0]["score"].as_f64() >= found[1]["score"].as_f64()
        );
        assert_eq!(env.json(&["memory", "search", query, "--limit", "1"])["results"][0]["content"], newer);
        let text = env.ok(&["memory", "search", query]);
        let id = saved["id"].as_str().unwrap();
        let id = &id[id.len() - 4..];
        assert!(text.contains(mark) && text.matches(id).count() == 2, "{text}");
        let mut client = Client::connect(&env);
        let answer = client.expect_ok("memory_search", json!({"query": query}));
        assert_eq!(answer["results"][1]["replaced"]["by"], saved["id"], "{answer}");
        let again = client.expect_ok("memory_save", json!({"content": newer, "supersedes": [old]}));
        assert_eq!(
            (&again["id"], &again["duplicate"]),
            (&saved["id"], &json!(true)),
            "as the hint of a tool says"
        );
        assert_eq!(search(&env, query), [newer]);
        client.finish();
    }
}

#[test]
fn save_over_mcp_names_the_call_that_supersedes() {
    let env = TestEnv::new();
    let old = save(&env, "The API port is 8080")["id"].clone();
    env.tick(1000);
    let mut client = Client::connect(&env);
    let saved = client.expect_ok("memory_save", json!({"content": "The API port is 9090"}));
    let hint = saved["hint"].as_str().unwrap();
    assert!(hint.contains("memory_save") && hint.contains(&format!("supersedes: [{old}]")), "{hint}");
    let unrelated =
        client.expect_ok("memory_save", json!({"content": "Colours come from the design system"}));
    assert!(unrelated.get("hint").is_none() && unrelated.get("similar").is_none(), "{unrelated}");
    client.finish();
}

//! Search in two languages: the glossary, and dictionaries that the user adds.

use serde_json::json;

use super::{save, search};
use crate::env::TestEnv;

#[test]
fn search_in_other_language_uses_glossary() {
    let env = TestEnv::new();
    save(&env, "Retry payment requests only with an idempotency key");
    save(&env, "缓存雪崩的原因是所有键同时过期");
    save(&env, "周五不发布");
    assert_eq!(
        search(&env, "支付请求怎么保证幂等")[0],
        "Retry payment requests only with an idempotency key"
    );
    assert_eq!(search(&env, "cache avalanche")[0], "缓存雪崩的原因是所有键同时过期");
    assert_eq!(search(&env, "週五不發佈"), ["周五不发布"], "traditional characters");
}

#[test]
fn lexicon_added_is_used_listed_and_removed() {
    let env = TestEnv::new();
    save(&env, "The walrus sleeps on the pier");
    assert_eq!(search(&env, "海象"), [""; 0]);
    let file = env.root().join("cedict.u8");
    env.write(
        &file,
        "# comment\n海象 海象 [hai3 xiang4] /walrus/\nnot a line\n海獺 海獭 [hai3 ta3] /sea otter/\n"
            .as_bytes(),
    );
    let path = file.display().to_string();
    let added = env.json(&["memory", "lexicon", "add", &path]);
    assert_eq!((&added["pairs"], &added["lines"], &added["badLines"]), (&json!(2), &json!(3), &json!(1)));
    assert_eq!(search(&env, "海象"), ["The walrus sleeps on the pier"]);
    insta::assert_snapshot!("lexicon add", env.ok(&["memory", "lexicon", "add", &path]));
    insta::assert_snapshot!("lexicon list", env.ok(&["memory", "lexicon", "list"]));
    assert_eq!(env.json(&["memory", "lexicon", "list"])["lexicons"][0]["name"], "cedict.u8");
    assert_eq!(env.error(&["memory", "lexicon", "remove", "cedict"])["code"], "LEXICON_NOT_FOUND");
    assert_eq!(env.json(&["memory", "lexicon", "remove", "cedict.u8"])["removed"], "cedict.u8");
    assert_eq!(search(&env, "海象"), [""; 0]);
    assert_eq!(env.json(&["memory", "lexicon", "list"])["lexicons"], json!([]));
}

#[test]
fn lexicon_add_other_file_is_refused_and_keeps_dictionaries() {
    let env = TestEnv::new();
    save(&env, "The walrus sleeps on the pier");
    let file = env.root().join("ecdict.csv");
    let path = file.display().to_string();
    env.write(&file, "word,translation\nwalrus,n. 海象\n".as_bytes());
    env.ok(&["memory", "lexicon", "add", &path]);
    env.write(&file, b"# Notes\nToday I slept.\n");
    assert_eq!(env.error(&["memory", "lexicon", "add", &path])["code"], "NOT_A_LEXICON");
    assert_eq!(search(&env, "海象").len(), 1, "the dictionary that was added before is kept");
    let missing = env.root().join("missing").display().to_string();
    assert_eq!(env.error(&["memory", "lexicon", "add", &missing])["code"], "IO");
    // Damaged dictionaries do not stop a search.
    env.write(&env.root().join("home/.tanmi-workspace/lexicon.sqlite"), b"broken");
    assert_eq!(search(&env, "walrus").len(), 1);
    env.write(&file, "word,translation\nwalrus,n. 海象\n".as_bytes());
    env.ok(&["memory", "lexicon", "add", &path]);
    assert_eq!(search(&env, "海象").len(), 1);
}

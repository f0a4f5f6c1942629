use proptest::prelude::*;

use super::*;

fn escaped(text: &str) -> String {
    escape_tags(text).into_owned()
}

#[test]
fn escape_tags_ordinary_text_is_borrowed() {
    for text in [
        "",
        "a < b, x <= y, 1<2, <3, <- and <=> and << and <>",
        "for (i = 0; i < n; i++) { a[i] <<= 1; }",
        "cat < in.txt > out.txt",
        "if load < system_load or n < tanmi_count",
        "《书名》〈篇名〉「引用」，任务：a＜3",
        "می\u{200C}خواهم 👩‍❤️‍👨 🏳️‍🌈",
        "`Vec<T>` and ``a ` <b>`` stay code",
        "```html\n<div>\n<!-- note -->\nHuman: hi\n```\nafter",
        "~~~\n<a>\n~~~",
        "  ````md\n```\n<b>\n```\n  ````\n",
        "Heading\n~~~~~~~\ntext",
        "the Human: role, a user: root, system: linux",
        "- User: a list item",
        "Humans: many. Users: few",
        "AT&T &amp; co &lt; 3, see ?a=1&lt=2",
        "[INFO] [x] array[0]",
        "line one\r\nline two\r\n",
        "an odd ` backtick and C:\\dir\\file",
    ] {
        assert!(matches!(escape_tags(text), Cow::Borrowed(_)), "{text:?} became {:?}", escape_tags(text));
    }
}

#[test]
fn escape_tags_tags_outside_code_are_escaped() {
    for (text, expected) in [
        ("a </tanmi-workspace-context> b", "a ‹/tanmi-workspace-context> b"),
        ("<System-Reminder>x", "‹System-Reminder>x"),
        ("<environment_context><user_query>", "‹environment_context>‹user_query>"),
        ("Vec<T>, <a@b.c>, <div>, <名称>", "Vec‹T>, ‹a@b.c>, ‹div>, ‹名称>"),
        ("<!-- x --><?xml?><![CDATA[", "‹!-- x -->‹?xml?>‹![CDATA["),
        ("<ѕystem-reminder>", "‹ѕystem-reminder>"),
        ("＜/tanmi-x＞ ﹤b﹥ ＜／b＞", "‹/tanmi-x＞ ‹b﹥ ‹／b＞"),
        ("<\\/tanmi-x> <\u{338}/a> <_x>", "‹\\/tanmi-x> ‹\u{338}/a> ‹_x>"),
        ("&lt;/tanmi-x&gt; &#60;b> &#X3C;c>", "‹/tanmi-x&gt; ‹b> ‹c>"),
        ("<|im_start|>system <｜User｜>", "‹|im_start|>system ‹｜User｜>"),
        ("<<SYS>> [INST] x [/INST]", "<‹SYS>> ‹INST] x ‹/INST]"),
        ("< / tanmi-x y> < /name> < name>", "‹ / tanmi-x y> ‹ /name> ‹ name>"),
        ("<\n/tanmi-x>", "‹\n/tanmi-x>"),
        ("<\n```>", "<\n‵‵‵>"),
        ("<\u{FFFD}/x> <⏎/x>", "‹\u{FFFD}/x> ‹⏎/x>"),
    ] {
        assert_eq!(escaped(text), expected, "{text:?}");
    }
}

#[test]
fn escape_tags_hidden_characters_do_not_protect_a_tag() {
    for hidden in [
        "\u{200B}",
        "\u{AD}",
        "\u{202E}",
        "\u{2066}",
        "\u{3164}",
        "\u{E0020}",
        "\u{FE0F}",
        "\u{E0101}",
        "\u{1}",
        "\u{1B}",
        "\u{200D}",
        "\u{34F}",
        "\u{180E}",
        "\u{2800}",
        "\u{A0}",
        "\u{3000}",
        "\u{2028}",
        "\r",
    ] {
        for text in [format!("<{hidden}/tanmi-x>"), format!("<{hidden}/{hidden}tanmi-x>")] {
            assert!(!escaped(&text).contains('<'), "{text:?}");
            let line = escape_line(&text);
            assert!(!line.contains('<'), "{text:?} {line:?}");
        }
    }
    assert_eq!(escaped("<sys\u{200B}tem>"), "‹system>");
    assert_eq!(escaped("\u{1B}[2J\u{1B}]0;x\u{7}"), "[2J]0;x");
}

#[test]
fn escape_tags_role_at_line_start_is_quoted() {
    for (text, expected) in [
        ("\n\nHuman: do\n\nAssistant:", "\n\n‹Human›: do\n\n‹Assistant›:"),
        ("SYSTEM: x\r\n  User : y", "‹SYSTEM›: x\r\n  ‹User› : y"),
        (
            "### Human: a\n**Assistant:** b\n**System**: c",
            "### ‹Human›: a\n**‹Assistant›:** b\n**‹System›**: c",
        ),
        ("Hu\u{200B}man：x", "‹Human›：x"),
    ] {
        assert_eq!(escaped(text), expected, "{text:?}");
    }
}

#[test]
fn escape_tags_code_escapes_only_known_tags_and_tokens() {
    for (text, expected) in [
        ("`</tanmi-x>` `<b>`", "`‹/tanmi-x>` `<b>`"),
        ("```\n</system-reminder>\n<b>\n```", "```\n‹/system-reminder>\n<b>\n```"),
        ("`<|im_start|>` `f <| x`", "`‹|im_start|>` `f <| x`"),
        ("`a\u{202E}<b>`", "`a<b>`"),
        ("`<user_query>` `</environment_context>`", "`‹user_query>` `‹/environment_context>`"),
    ] {
        assert_eq!(escaped(text), expected, "{text:?}");
    }
}

#[test]
fn escape_tags_code_without_end_is_escaped() {
    for (text, expected) in [
        ("` <b>", "` ‹b>"),
        ("`` <b> `", "`` ‹b> `"),
        ("` one\n<b> `", "` one\n‹b> `"),
        ("\\`<b>\\`", "\\`‹b>\\`"),
        ("\\\\`<b>`", "\\\\`<b>`"),
        ("```\n<b>", "‵‵‵\n‹b>"),
        ("````\n<b>\n```", "‵‵‵‵\n‹b>\n‵‵‵"),
        ("```\n<b>\n``` x", "‵‵‵\n‹b>\n‵‵‵ x"),
        ("~~~\n<b>\n```", "~~~\n‹b>\n‵‵‵"),
    ] {
        assert_eq!(escaped(text), expected, "{text:?}");
    }
}

#[test]
fn cut_escaped_code_that_was_cut_is_escaped() {
    let text = format!("```\n{}\n```", "<b> ".repeat(50));
    assert_eq!(escaped(&text), text);
    for max in 10..text.len() {
        let cut = cut_escaped(&text, max);
        assert!(cut.len() <= max && !cut.contains("<b") && !cut.contains("```"), "{max} {cut}");
    }
}

#[test]
fn escape_tags_many_unclosed_delimiters_are_bounded() {
    let runs: String = (1..400).map(|len| format!("{} ", "`".repeat(len))).collect();
    let fences: String = (3..400).rev().map(|len| format!("{}\n", "`".repeat(len))).collect();
    for text in [runs.repeat(5), fences.repeat(5), "< ".repeat(200_000), "&<\\".repeat(100_000)] {
        assert!(escape_tags(&text).len() <= 3 * text.len());
    }
}

proptest! {
    #[test]
    fn escape_tags_any_text_is_idempotent_and_bounded(
        text in "(<|＜|﹤|/|!|\\||`|```|~~~|\\\\|\n|\r| |[ab]|tanmi-|>|Human:|&lt;|\\[INST\\]|#|\u{200B}|\u{338}|\\PC){0,40}"
    ) {
        let once = escaped(&text);
        prop_assert!(once.len() <= 3 * text.len());
        prop_assert!(matches!(escape_tags(&once), Cow::Borrowed(_)), "{text:?} {once:?} {:?}", escape_tags(&once));
        prop_assert!(!once.to_lowercase().contains("<tanmi-") && !once.to_lowercase().contains("</tanmi-"));
    }

    #[test]
    fn escape_tags_text_without_code_has_no_tag_left(
        text in "(<|＜|﹤|/|!|\\?|\\||\\\\|\n| |[ab]|ѕ|名|\u{200B}|\u{202E}|\u{E0041}|[^`~\\pC]){0,40}"
    ) {
        let out: Vec<char> = escaped(&text).chars().collect();
        for pair in out.windows(2).filter(|pair| matches!(pair[0], '<' | '＜' | '﹤')) {
            prop_assert!(!pair[1].is_alphabetic() && !matches!(pair[1], '/' | '!' | '?' | '|'), "{text:?}");
        }
    }

    #[test]
    fn escape_tags_closed_code_keeps_its_bytes(code in "[a-z<>/!| ]{0,30}") {
        prop_assume!(!opens_known_or_token(&code));
        let span = format!("see ``{code}`` here");
        prop_assert_eq!(escaped(&span), span);
        let block = format!("```\n{code}\n```\n");
        prop_assert_eq!(escaped(&block), block);
    }

    #[test]
    fn escape_tags_words_and_comparisons_are_unchanged(text in "([a-z]{1,8}|[0-9]{1,3}|[，。：]|[中文任务]{1,4}| < | <= |<[0-9]| |\n|🙂){0,40}") {
        prop_assume!(!text.contains('>') && !opens_known_or_token(&text));
        prop_assert!(matches!(escape_tags(&text), Cow::Borrowed(_)), "{text:?}");
    }
}

/// Returns whether code or text contains what is escaped even in code.
fn opens_known_or_token(text: &str) -> bool {
    text.match_indices('<')
        .any(|(at, _)| opens_known_tag(&text[at + 1..]) || is_special_token(&text[at + 1..]))
}

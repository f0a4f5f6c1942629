use proptest::prelude::*;

use super::*;

/// Returns the items as lines: level by indentation, `[x]`, title, dependencies, and the requirement if it differs.
fn shown(text: &str) -> String {
    let items = match parse(text) {
        Ok(items) => items,
        Err(error) => return format!("line {}", error.text(tanmi_base::Lang::En)),
    };
    let mut levels: Vec<usize> = Vec::new();
    let mut out = String::new();
    for item in &items {
        let level = item.parent.map_or(0, |parent| levels[parent] + 1);
        levels.push(level);
        let done = if item.is_completed { "[x] " } else { "" };
        let target = |target: &OutlineTarget| match target {
            OutlineTarget::Item(at) => format!("#{}", at + 1),
            OutlineTarget::Node(id) => id.to_string(),
        };
        let targets: Vec<String> = item.depends_on.iter().map(target).collect();
        let targets = if targets.is_empty() { String::new() } else { format!(" <- {}", targets.join(" ")) };
        let text = match item.requirement == item.title {
            true => String::new(),
            false => format!(" | {:?}", item.requirement),
        };
        out.push_str(&format!("{}{done}{}{targets}{text}\n", "  ".repeat(level), item.title));
    }
    out
}

#[test]
fn parse_items_have_titles_requirements_and_levels() {
    for (text, expected) in [
        ("- Title", "Title\n"),
        ("* Title\n+ Other\n1. First\n2) Second", "Title\nOther\nFirst\nSecond\n"),
        ("- Title: text", "Title | \"text\"\n"),
        ("- **Title**: text", "Title | \"text\"\n"),
        ("- **Title:** text", "Title | \"text\"\n"),
        ("- **A: b**: text", "A: b | \"text\"\n"),
        ("- 标题：需求: 细节", "标题 | \"需求: 细节\"\n"),
        ("- **标题**：需求", "标题 | \"需求\"\n"),
        ("- See http://example.org: it", "See http://example.org | \"it\"\n"),
        ("- **Bold** words: text", "**Bold** words | \"text\"\n"),
        ("- Title:\n  one\n\n  two\n\n- Next", "Title | \"one\\n\\ntwo\"\nNext\n"),
        ("- Title: one\n  two\n    three", "Title | \"one\\ntwo\\n  three\"\n"),
        ("- a\n  - b\n    - c\n  - d\n- e", "a\n  b\n    c\n  d\ne\n"),
        ("- a\n\t- b\n\t\ttext\n\t- c", "a\n  b | \"text\"\n  c\n"),
        ("- a\n    - b\n        - c\n    - d", "a\n  b\n    c\n  d\n"),
        ("- [x] a\n- [ ] b\n- [X] c", "[x] a\nb\n[x] c\n"),
        ("- a\r\n  - b: x\r\n    y\r\n", "a\n  b | \"x\\ny\"\n"),
        ("\u{FEFF}- a", "a\n"),
        // A fence keeps its lines, and list lines in it are not items.
        ("- a:\n  ```sh\n  - not an item\n  ```\n- b", "a | \"```sh\\n- not an item\\n```\"\nb\n"),
        ("- a:\n  ```requirement\n  - one\n   two\n\n  ```\n- b", "a | \"- one\\n two\\n\"\nb\n"),
        (
            "# Plan\nwhy\n\n## One: setup\n- a\n## Two (after: One: setup)\n- b",
            "Plan | \"why\"\n  One: setup\n    a\n  Two <- #2\n    b\n",
        ),
        (r"- **a \*\* b\: &#10;c**: x", "a ** b: \nc | \"x\"\n"),
        (r"- C:\new\*", "C:\\new\\*\n"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn parse_dependencies_are_resolved_wherever_they_stand() {
    for (text, expected) in [
        ("- a\n- b (after: a)", "a\nb <- #1\n"),
        ("- b (after: a)\n- a", "b <- #2\na\n"),
        ("- a\n- b: text (after: a)", "a\nb <- #1 | \"text\"\n"),
        ("- a\n- b (after: a): text", "a\nb <- #1 | \"text\"\n"),
        ("- a\n- **b** (After: a): text", "a\nb <- #1 | \"text\"\n"),
        ("- 甲\n- 乙（after：甲）：需求", "甲\n乙 <- #1 | \"需求\"\n"),
        ("- a\n- b\n- c (after: a, b, a)", "a\nb\nc <- #1 #2\n"),
        ("- Setup (shared), again\n- b (after: Setup (shared)\\, again)", "Setup (shared), again\nb <- #1\n"),
        ("- a\n- a\n- c (after: #2)", "a\na\nc <- #2\n"),
        ("- a (after: node-mj2hz4gy-ync1cu)", "a <- node-mj2hz4gy-ync1cu\n"),
        // Not at the end of the line or directly after the title: an ordinary text.
        ("- a: do it (after: lunch) today", "a | \"do it (after: lunch) today\"\n"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn parse_unclear_outline_names_line() {
    let deep: String = (0..7).map(|level| format!("{}- x{level}\n", "  ".repeat(level))).collect();
    let many = "- x\n".repeat(201);
    let long = format!("- {}", "x".repeat(201));
    let huge = "- x\n".repeat(10 << 18);
    let cases = [
        "",
        "text only",
        "- a\n- b (after: c)",
        "- a\n- a\n- c (after: a)",
        "- a\n- b (after: #3)",
        "- a (after: a)",
        "- p\n  - c (after: p)",
        "- p (after: c)\n  - c",
        "- a (after: b)\n- b (after: c)\n- c (after: a)",
        "- p (after: b)\n  - a\n- b (after: a)",
        "- a\n  - b\n \t- c",
        "- a\n  - b\n\t- c",
        "- a\n    - b\n  - c",
        "  - a\n- b",
        "- a\n - b",
        "- a\nloose text",
        "- a\n  - b\n  text at the level of b",
        "- a:\n  ```\n  open",
        "- a:\n  ```requirement\n  x\n  ```\n  more",
        "- [x] p\n  - [x] a\n  - b",
        "- ",
        "- : text",
        "- a\n- b\0",
        &deep,
        &many,
        &long,
        &huge,
    ];
    let mut out = String::new();
    for case in cases {
        let shown_case: String = case.escape_debug().take(60).collect();
        out.push_str(&format!("{shown_case}\n    {}\n", shown(case).trim_end()));
    }
    insta::assert_snapshot!(out);
}

/// Written after the format of spec-kit's `tasks.md`: explanations, phases, labels, dependencies in the text.
const TASKS: &str = "\
---
description: tasks
---
# Tasks: Login

**Input**: documents from `/specs/001-login/`

## Format: `[ID] [P?] [Story] Description`

- **[P]**: can run in parallel
- Include exact paths

## Phase 1: Setup (shared)

**Purpose**: initialization

- [x] T001 Create the project in src/
- [x] T002 [P] Configure the linter

**Checkpoint**: ready

---

## Phase 2: User Story 1 - Log in (Priority: P1)

### Tests

- [ ] T003 [P] [US1] Contract test in tests/contract/login.rs

### Implementation

- [ ] T004 [P] [US1] Model in src/user.rs
- [ ] T005 [US1] Service in src/login.rs (depends on T003, T004)

## Notes

- [P] tasks = different files
1. Complete Phase 1
";

#[test]
fn parse_broken_dependencies_is_an_error() {
    for line in [
        "- B (after: A",
        "- B (after: A) more words",
        "- B (after: A) (after: C)",
        "- B ( after: A )",
        "- B [after: A]",
        "- B (after:A).",
    ] {
        let text = format!("- A\n- C\n{line}\n");
        assert!(shown(&text).starts_with("line 3: unclear dependencies"), "{line}: {}", shown(&text));
    }
    assert!(shown("- **B (after: A)**: x\n- Clean up (after lunch)\n").starts_with("B (after: A)"));
}

#[test]
fn parse_spec_kit_tasks_keeps_phases_and_tasks_only() {
    assert_eq!(
        shown(TASKS),
        "[x] Phase 1: Setup (shared)
  [x] T001 Create the project in src/
  [x] T002 Configure the linter | \"T002 [P] Configure the linter\"
Phase 2: User Story 1 - Log in (Priority: P1)
  Tests
    T003 Contract test in tests/contract/login.rs | \"T003 [P] [US1] Contract test in tests/contract/login.rs\"
  Implementation
    T004 Model in src/user.rs | \"T004 [P] [US1] Model in src/user.rs\"
    T005 Service in src/login.rs (depends on T003, T004) <- #6 #8 | \"T005 [US1] Service in src/login.rs (depends on T003, T004)\"
"
    );
    assert_eq!(
        shown("- [ ] T001 a\n  more\n  - of it\n- [ ] T002 b\n"),
        "T001 a | \"T001 a\\nmore\\n- of it\"\nT002 b\n"
    );
    for mixed in ["- [ ] T001 a\n- other\n", "- other\n- [ ] T001 a\n", "- [ ] T001 a\n\n- [ ] no number\n"] {
        assert!(shown(mixed).contains("an item beside tasks is not a task"), "{mixed}: {}", shown(mixed));
    }
    let unknown = "## Phase\n- [ ] T001 a (depends on T009)\n";
    assert!(shown(unknown).starts_with("line 2: “T009”"), "{}", shown(unknown));
}

#[test]
fn write_special_texts_are_written_in_the_plainest_form() {
    let item = |title: &str, requirement: &str| OutlineItem {
        line: 0,
        parent: None,
        title: title.into(),
        requirement: requirement.into(),
        is_completed: false,
        depends_on: Vec::new(),
    };
    for (item, expected) in [
        (item("Title", "Title"), "- Title\n"),
        (item("Title", "text"), "- **Title**: text\n"),
        (item("A: b", "A: b"), "- **A\\: b**\n"),
        (item("Title", "one\n\ntwo"), "- **Title**: one\n\n  two\n"),
        (item("Title", "- one\n- two"), "- **Title**:\n  ```requirement\n  - one\n  - two\n  ```\n"),
        (item("Title", ""), "- **Title**:\n  ```requirement\n\n  ```\n"),
        (
            item("Title", "```\nx\n```\n- y"),
            "- **Title**:\n  ````requirement\n  ```\n  x\n  ```\n  - y\n  ````\n",
        ),
        (item("[x] odd", "[x] odd"), "- **[x] odd**\n"),
        (item("two\nlines ", "x"), "- **two&#10;lines&#32;**: x\n"),
    ] {
        assert_eq!(write(&[item]), expected);
    }
}

fn any_text() -> impl Strategy<Value = String> {
    let difficult = prop::sample::select(vec![
        "",
        "x",
        "任务：细节",
        "- a\n- b",
        "  - a",
        "```\nopen",
        "```requirement\nx\n```",
        "~~~",
        " a ",
        "\n",
        "a: b",
        "**b**: c",
        "x (after: y)",
        "\r\n",
        "a\r",
        "\ta",
        "# h",
        "[x] a",
        "1. a",
        "&#10;",
        "\\*",
        "a, b",
        "#1",
        "node-abc",
        "T001 x",
        "：",
        "a:",
    ]);
    prop_oneof![3 => difficult.prop_map(String::from), 1 => "[^\0]{0,12}"]
}

fn any_items() -> impl Strategy<Value = Vec<OutlineItem>> {
    let item = (
        any_text(),
        any_text(),
        any::<bool>(),
        any::<bool>(),
        0usize..8,
        prop::collection::vec(0usize..8, 0..3),
    );
    prop::collection::vec(item, 1..8).prop_map(|drafts| {
        let mut items: Vec<OutlineItem> = Vec::new();
        let mut levels: Vec<usize> = Vec::new();
        // The path from the top to the last item: only its nodes can have the next item as a child.
        let mut path: Vec<usize> = Vec::new();
        for (at, (title, requirement, same, is_completed, up, on)) in drafts.into_iter().enumerate() {
            let title = if title.trim().is_empty() { format!("t{title}") } else { title };
            path.truncate(up.min(MAX_LEVELS - 1));
            let parent = path.last().copied();
            levels.push(parent.map_or(1, |parent| levels[parent] + 1));
            path.push(at);
            items.push(OutlineItem {
                line: 0,
                parent,
                requirement: if same { title.clone() } else { requirement },
                title,
                is_completed,
                depends_on: Vec::new(),
            });
            for on in on.into_iter().filter(|on| *on < at) {
                let target = OutlineTarget::Item(on);
                if !items[at].depends_on.contains(&target) {
                    items[at].depends_on.push(target);
                    if check_dependencies(&items).is_err() {
                        items[at].depends_on.pop();
                    }
                }
            }
        }
        for at in (0..items.len()).rev() {
            if let Some(parent) = items[at].parent.filter(|_| !items[at].is_completed) {
                items[parent].is_completed = false;
            }
        }
        items
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn write_any_items_are_read_back(items in any_items()) {
        let text = write(&items);
        let mut read = parse(&text).map_err(|error| TestCaseError::fail(format!("{}\n{text}", error.text(tanmi_base::Lang::En))))?;
        read.iter_mut().for_each(|item| item.line = 0);
        prop_assert_eq!(&read, &items, "{}", text);
    }

    #[test]
    fn parse_any_text_returns(text in "([-*#\\[\\]x ():,`T0a\n\t]|\\(after: |\\PC){0,60}") {
        if let Ok(items) = parse(&text) {
            prop_assert!(items.iter().enumerate().all(|(at, item)| item.parent.is_none_or(|parent| parent < at)));
        }
    }
}

#[test]
fn spec_kit_dependencies_have_several_forms() {
    for form in [
        "(depends on T001, T002)",
        "(Depends on T001 and T002)",
        "(depends on: T001; T002)",
        "(DEPENDS ON T001) (depends on T002)",
    ] {
        let text = format!("- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 c {form}\n");
        let items = parse(&text).unwrap();
        assert_eq!(items[2].depends_on, [OutlineTarget::Item(0), OutlineTarget::Item(1)], "{form}");
    }
    let none = parse("- [ ] T001 a\n- [ ] T002 b (depends only on T001)\n").unwrap();
    assert!(none[1].depends_on.is_empty());
}

#[test]
fn spec_kit_dependency_on_a_repeated_number_is_refused() {
    let text = "- [ ] T001 a\n- [ ] T001 b\n- [ ] T002 c (depends on T001)\n";
    let error = parse(text).unwrap_err();
    assert_eq!(error.line, 3);
    assert_eq!(error.reason.en, "several tasks have the number T001 (lines 1, 2); give each its own number");
}

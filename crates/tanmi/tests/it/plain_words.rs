//! Keeps unclear words out of sources, documents and help texts.
//!
//! The words of the list hide the actor ("the agent", "the user", "another session") or are metaphors for things that
//! have a technical name. A hit is fixed by naming the actor or the thing. `ALLOWED` is for the rare line that needs
//! such a word, for example because it quotes another program.

use std::path::Path;

use crate::env::TestEnv;

/// Pronouns that hide the actor. They are forbidden everywhere. The literals are split, so that this file does not
/// contain the words.
const PRONOUNS: &[&str] = &[
    concat!("no", "body"),
    concat!("some", "body"),
    concat!("any", "body"),
    concat!("every", "body"),
    concat!("who", "ever"),
    concat!("who", "soever"),
    concat!("what", "ever"),
];

/// Former names of types and modules, forbidden in source files. Documents may use them as ordinary words.
const FORMER_NAMES: &[(&str, &str)] = &[
    (concat!("sp", "ine"), "pipeline"),
    (concat!("pu", "rse"), "byte budget"),
    (concat!("sh", "elf"), "workspace data"),
    (concat!("sh", "elves"), "workspace data"),
    (concat!("di", "ary"), "activity"),
    (concat!("pa", "pers"), "shell docs"),
    (concat!("mis", "fit"), "argument error"),
];

/// A line that may contain a forbidden word.
struct Allowed {
    path: &'static str,
    /// The line, without surrounding white space.
    line: &'static str,
    reason: &'static str,
}

const ALLOWED: &[Allowed] = &[];

/// A longer list would mean that the rule is not followed.
const MAX_ALLOWED: usize = 10;

struct TextFile {
    path: String,
    text: String,
}

/// Returns the parts of the identifiers and words of a text in lower case, split at `_` and at camel-case borders.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut previous = ' ';
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let is_border = c.is_uppercase()
            && (previous.is_lowercase() || characters.peek().is_some_and(|next| next.is_lowercase()));
        if is_border || !c.is_alphabetic() {
            words.push(String::new());
        }
        if c.is_alphabetic() {
            words.last_mut().unwrap().extend(c.to_lowercase());
        }
        previous = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the names of the functions that a line of Rust or JavaScript defines.
fn function_names(line: &str) -> Vec<&str> {
    let after = |keyword| line.split(keyword).skip(1).map(str::trim_start);
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let starts = after("fn ").chain(after("function "));
    starts.map(|rest| rest.split(|c| !is_name(c)).next().unwrap_or_default()).collect()
}

/// Returns what is wrong with a line.
fn problems(line: &str, is_source: bool) -> Vec<String> {
    let mut problems = Vec::new();
    for word in words(line) {
        if PRONOUNS.contains(&word.as_str()) {
            problems.push(format!("{word:?}: name the actor"));
        }
        let former = FORMER_NAMES.iter().find(|(name, _)| is_source && *name == word);
        problems.extend(former.map(|(name, instead)| format!("{name:?}: use {instead:?}")));
    }
    for name in function_names(line).into_iter().filter(|name| is_source && name.contains("_s_")) {
        problems.push(format!("{name}: function name with a possessive"));
    }
    problems
}

/// Returns every problem in the files that the list does not allow, and every problem of the list itself.
fn check(files: &[TextFile], allowed: &[Allowed]) -> Vec<String> {
    let mut found = Vec::new();
    let mut used = vec![false; allowed.len()];
    for file in files {
        let is_source = Path::new(&file.path).extension().is_some_and(|end| end == "rs" || end == "js");
        found
            .extend(problems(&file.path, is_source).into_iter().map(|text| format!("{}: {text}", file.path)));
        for (n, line) in file.text.lines().enumerate() {
            let problems = problems(line, is_source);
            let entry = allowed.iter().position(|entry| entry.path == file.path && entry.line == line.trim());
            match entry {
                Some(entry) if !problems.is_empty() => used[entry] = true,
                _ => {
                    found.extend(problems.iter().map(|text| format!("{}:{}: {text}", file.path, n + 1)));
                }
            }
        }
    }
    for (entry, _) in allowed.iter().zip(used).filter(|(_, used)| !used) {
        found.push(format!("allowed, but not found ({}): {}: {}", entry.reason, entry.path, entry.line));
    }
    if allowed.len() > MAX_ALLOWED {
        found.push(format!("{} lines are allowed, at most {MAX_ALLOWED} may be", allowed.len()));
    }
    found
}

/// Returns the text files of the repository that people read: sources, documents, configuration and scripts.
fn repository_files() -> Vec<TextFile> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut git = std::process::Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(&root);
    let output = git.output().expect("git lists the files");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listed = String::from_utf8(output.stdout).unwrap();
    let mut files = Vec::new();
    for path in listed.split_terminator('\0') {
        let end = Path::new(path).extension().map(|end| end.to_string_lossy().into_owned());
        let is_text =
            end.as_deref().is_some_and(|end| ["rs", "md", "js", "html", "css", "toml", "sh"].contains(&end));
        if !is_text && end.is_some() {
            continue;
        }
        // A deleted file is listed until the deletion is committed; a file of the fuzz corpus need not be text.
        let Ok(text) = std::fs::read_to_string(root.join(path)) else { continue };
        if is_text || text.starts_with("#!") {
            files.push(TextFile { path: path.to_owned(), text });
        }
    }
    files
}

#[test]
fn repository_and_help_texts_have_no_unclear_words() {
    let mut files = repository_files();
    assert!(files.len() > 100, "only {} files were found", files.len());
    for name in ["README.md", ".ci/run", "crates/tanmi/tests/it/plain_words.rs"] {
        assert!(files.iter().any(|file| file.path == name), "{name} was not found");
    }
    let path = String::from("tanmi reference");
    files.push(TextFile { path, text: TestEnv::new().ok(&["reference"]) });
    let found = check(&files, ALLOWED);
    assert!(found.is_empty(), "{} problems:\n{}", found.len(), found.join("\n"));
}

#[test]
fn forbidden_words_are_found_as_whole_words_and_parts_of_identifiers() {
    for (line, is_source, count) in [
        (concat!("No", "body"), false, 1),
        (concat!("there is no", "body."), false, 1),
        (concat!("no", "body's file"), false, 1),
        (concat!("NO", "BODY_ELSE"), true, 1),
        (concat!("let told_no", "body = 1;"), true, 1),
        (concat!("isNo", "bodyThere"), true, 1),
        (concat!("HTTPNo", "body"), true, 1),
        (concat!("what", "ever 没有 who", "ever"), false, 2),
        (concat!("is_no", "bodyish"), true, 0),
        (concat!("anti", "no", "body"), true, 0),
        ("no body, any body, what if ever", false, 0),
        ("anyBody(some_body)", true, 0),
        ("", true, 0),
        (concat!("mod sp", "ine;"), true, 1),
        (concat!("struct Pu", "rse;"), true, 1),
        (concat!("two pa", "pers on search"), false, 0),
        (concat!("fn agent", "_s_file() {"), true, 1),
        (concat!("fn no", "body_else", "_s_file() {"), true, 2),
        (concat!("async function page", "_s_title() {"), true, 1),
        (concat!("let milliseconds", "_s_ = 1;"), true, 0),
        ("fn files_of_agent() {", true, 0),
    ] {
        let found = problems(line, is_source);
        assert_eq!(found.len(), count, "{line:?}: {found:?}");
    }
}

#[test]
fn allow_list_entry_is_exact_and_needed() {
    let text = concat!("fine\n  // no", "body reads this\n// no", "body reads that\n");
    let files = [TextFile { path: String::from("a.rs"), text: String::from(text) }];
    let entry = |line| Allowed { path: "a.rs", line, reason: "a quotation" };
    let line = concat!("// no", "body reads this");
    assert_eq!(check(&files, &[entry(line)]), [concat!("a.rs:3: \"no", "body\": name the actor")]);
    let stale = check(&files, &[entry(line), entry("fine"), entry("gone")]);
    assert_eq!(
        stale.iter().filter(|text| text.starts_with("allowed, but not found")).count(),
        2,
        "{stale:?}"
    );
    let long: Vec<Allowed> = (0..=MAX_ALLOWED).map(|_| entry(line)).collect();
    assert!(check(&files, &long).iter().any(|text| text.contains("at most")));
}

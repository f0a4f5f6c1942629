//! Tests of the documents: runs every command in document order in a scratch home folder, compares the output that a
//! document shows with the real output, accepts JSON examples, and checks that commands and links in the text exist.
//!
//! `documents/rules.rs` tests the example rules, `documents/server.rs` the HTTP examples.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use tanmi_workspace::state::{Prerequisite, TRANSITION_RULES, TransitionRule};

use crate::env::TestEnv;
use markdown::{Block, Kind};

mod markdown;
mod rules;
mod server;

/// Lines of code blocks that are not run: how they start, and the reason.
const NOT_RUN: &[(&str, &str)] = &[
    ("cargo ", "builds and tests the program under test"),
    ("INSTA_UPDATE=always cargo ", "writes snapshots of these tests"),
    (".ci/run", "runs these tests"),
    ("scripts/install-clients", "fetches from npm; CI runs it"),
    ("scripts/check-page", "needs the type checker from npm; CI runs it"),
    ("<project>/", "a path, not a command"),
    ("<项目>/", "a path, not a command"),
    ("tanmi serve", "runs until it is stopped; documents/server.rs runs it"),
    ("TOKEN=", "documents/server.rs runs it, with the server"),
    ("URL=", "documents/server.rs runs it, with the server"),
    ("curl ", "documents/server.rs runs it, with the server"),
    ("-d ", "documents/server.rs runs it, with the server"),
];

/// Commands that ask a question on a terminal, and their form without a terminal.
const INTERACTIVE: &[(&str, &str)] = &[("tanmi rules trust", "tanmi rules trust --yes")];

/// Comments that mark a command as one that must fail.
const REFUSED: &[&str] = &["# refused", "# 会被拒绝"];

/// A command that runs longer than this fails the test.
const TIMEOUT: Duration = Duration::from_secs(120);

pub struct Document {
    /// The path below the root of the repository.
    pub name: String,
    pub text: String,
}

impl Document {
    pub fn is_chinese(&self) -> bool {
        self.name.contains("zh-CN")
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

pub fn documents() -> Vec<Document> {
    let root = root();
    let mut paths: Vec<PathBuf> =
        ["README.md", "README.zh-CN.md", "CONTRIBUTING.md"].iter().map(|name| root.join(name)).collect();
    let docs = std::fs::read_dir(root.join("docs")).unwrap().flatten().map(|entry| entry.path());
    paths.extend(docs.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    paths.sort();
    let read = |path: &PathBuf| Document {
        name: path.strip_prefix(&root).unwrap().display().to_string(),
        text: std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())),
    };
    paths.iter().map(read).collect()
}

/// Returns the lines of a block that a reader would type, with their line numbers. A fenced block without a language
/// shows output.
fn commands(block: &Block) -> Vec<(usize, &str)> {
    let is_output = block.kind == Kind::Fenced(String::new());
    if !is_output && block.kind != Kind::Indented && block.kind != Kind::Fenced(String::from("sh")) {
        return Vec::new();
    }
    let numbered = block.text.lines().enumerate().map(|(n, line)| (block.line + n, line.trim()));
    numbered
        .filter(|(_, line)| if is_output { line.starts_with("tanmi ") } else { !line.is_empty() })
        .collect()
}

fn is_not_run(line: &str) -> bool {
    NOT_RUN.iter().any(|(start, _)| line.starts_with(start))
}

/// Returns the command of a line without its comment.
fn without_comment(line: &str) -> &str {
    line.split(" #").next().unwrap_or(line).trim_end()
}

/// The ids of one kind that the commands have created so far, and the newest one.
#[derive(Default)]
struct SeenIds {
    seen: BTreeSet<String>,
    last: Option<String>,
}

impl SeenIds {
    fn add(&mut self, found: Vec<String>) {
        for id in found {
            if self.seen.insert(id.clone()) && id != "root" {
                self.last = Some(id);
            }
        }
    }
}

/// Runs the commands of one document in a scratch home folder.
struct DocumentRunner {
    env: TestEnv,
    workspaces: SeenIds,
    nodes: SeenIds,
    /// The planning nodes among `nodes`.
    planning_nodes: SeenIds,
    memories: SeenIds,
    /// The output of the last command.
    printed: String,
}

impl DocumentRunner {
    fn new(document: &Document) -> DocumentRunner {
        let env = TestEnv::with_lang(if document.is_chinese() { "zh_CN.UTF-8" } else { "en_US.UTF-8" });
        let bin = env.root().join("bin");
        std::fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tanmi"), bin.join("tanmi")).unwrap();
        let home = env.root().join("home");
        for folder in [".claude", ".cursor", ".codex", ".gemini", ".copilot"] {
            std::fs::create_dir(home.join(folder)).unwrap();
        }
        // Files that the documents mention.
        for (path, text) in [
            (home.join("docs/for-agents.md"), "# For agents\n\nTests first.\n"),
            (home.join("notes/style.md"), "# Style\n\nShort sentences.\n"),
            (env.project.join("docs/for-agents.md"), "# For agents\n\nTests first.\n"),
            (
                env.project.join("extensions/agents/helper.md"),
                "---\nname: helper\ndescription: Helps\n---\nHelp.\n",
            ),
            (env.project.join("payload.json"), "{\"prompt\": \"go on\", \"session_id\": \"s-1\"}"),
            (env.project.join("notes.jsonl"), "{\"content\": \"The port is 8080\"}\n"),
            (env.project.join("cedict_ts.u8"), "海象 海象 [hai3 xiang4] /walrus/\n"),
        ] {
            env.make(&path, text);
        }
        let none = SeenIds::default;
        let (workspaces, nodes, planning_nodes, memories) = (none(), none(), none(), none());
        DocumentRunner { env, workspaces, nodes, planning_nodes, memories, printed: String::new() }
    }

    /// Runs a line in a shell. Returns whether it succeeded, its standard output and its standard error.
    fn run_in_shell(&self, line: &str) -> (bool, String, String) {
        let (out, err) = (self.env.root().join("out"), self.env.root().join("err"));
        let mut command = self.env.command_in("sh", &self.env.project);
        command
            .args(["-c", &format!("exec {line}")])
            .env("PATH", format!("{}:/usr/bin:/bin", self.env.root().join("bin").display()))
            .stdin(Stdio::null())
            .stdout(std::fs::File::create(&out).unwrap())
            .stderr(std::fs::File::create(&err).unwrap());
        let mut child = command.spawn().unwrap();
        let started = Instant::now();
        let is_good = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status.success();
            }
            if started.elapsed() > TIMEOUT {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("{line}: still running after {TIMEOUT:?}; add it to NOT_RUN if this is intended");
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        (is_good, read(&out), read(&err))
    }

    /// Runs the commands of a block, or compares an output block with the output of the last command.
    fn process_block(&mut self, document: &Document, block: &Block) {
        if block.kind == Kind::Fenced(String::from("json")) {
            return self.write_json_file(document, block);
        }
        let commands = commands(block);
        if commands.is_empty() && block.follows && block.kind == Kind::Fenced(String::new()) {
            let trimmed = |text: &str| {
                let text = self.env.redact(text);
                text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
            };
            // The short ids that the documents show.
            let shown = ["tuim", "xq9a", "1mzc"].iter().zip(1..);
            let shown = shown.fold(block.text.clone(), |text, (id, n)| {
                text.replace(&format!(" {id}"), &format!(" #00{n}"))
            });
            let (shown, printed) = (trimmed(&shown), trimmed(&self.printed));
            assert_eq!(printed, shown, "{}:{}: output of the command above", document.name, block.line);
        }
        for (n, line) in commands {
            if !is_not_run(line) {
                self.run(&format!("{}:{n}", document.name), line);
            }
        }
    }

    fn run(&mut self, place: &str, line: &str) {
        let is_refused = REFUSED.iter().any(|mark| line.ends_with(mark));
        let line = without_comment(line);
        assert!(line.starts_with("tanmi "), "{place}: {line}: not a tanmi command and not in NOT_RUN");
        let line = INTERACTIVE.iter().find(|(shown, _)| *shown == line).map_or(line, |(_, typed)| typed);
        let typed = self.replace_placeholders(place, line);
        let (is_good, out, err) = self.run_in_shell(&typed);
        assert_eq!(is_good, !is_refused, "{place}: {typed}\n{out}{err}");
        self.printed = if is_good { out } else { err };
        self.collect_ids();
    }

    /// Writes an example file to the place that the document names.
    fn write_json_file(&self, document: &Document, block: &Block) {
        let value: Value = serde_json::from_str(&block.text)
            .unwrap_or_else(|error| panic!("{}:{}: {error}", document.name, block.line));
        let home = self.env.root().join("home/.tanmi");
        if value["customRules"].is_array() {
            self.env.make(&self.env.project.join(".tanmi/rules.json"), &block.text);
        } else if let Some(files) = value["files"].as_array() {
            self.env.make(&home.join("context.json"), &block.text);
            let shown = self.env.json(&["context", "show"]);
            let declared = shown["declared"].as_array().unwrap();
            let injected: Vec<&Value> =
                declared.iter().filter(|file| file["told"] == true).map(|file| &file["name"]).collect();
            assert_eq!(
                injected,
                files.iter().collect::<Vec<_>>(),
                "{}:{}: {shown}",
                document.name,
                block.line
            );
        } else if value["mcpServers"].is_object() {
            // The file of a client. The tests of real clients read it.
        } else {
            panic!("{}:{}: unknown kind of JSON file", document.name, block.line);
        }
    }

    /// Replaces placeholders such as `NODE` with the newest id of that kind.
    fn replace_placeholders(&mut self, place: &str, line: &str) -> String {
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let mut is_quoted = false;
        for n in 0..words.len() {
            let was_quoted = is_quoted;
            is_quoted ^= words[n].matches('"').count() % 2 == 1;
            if was_quoted {
                continue;
            }
            let before = n.checked_sub(1).map(|n| words[n].clone()).unwrap_or_default();
            words[n] = match (words[n].as_str(), before.as_str()) {
                ("WS", _) => self.workspace(),
                ("NODE", _) => self.node(),
                ("PLAN", _) => self.planning_nodes.last.clone().expect("a planning node was created before"),
                ("ID", "--session") => String::from("s-1"),
                ("ID", "restore" | "delete" | "archive") if words[1] == "workspace" => self.workspace(),
                ("ID", _) if words[1] == "memory" => {
                    self.memories.last.clone().expect("a memory was saved before")
                }
                ("DIR", _) => self.env.root().join("dir").display().to_string(),
                (word, _) => {
                    let is_name = word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase());
                    assert!(!is_name, "{place}: unknown placeholder {word}");
                    continue;
                }
            };
        }
        words.join(" ")
    }

    fn workspace(&mut self) -> String {
        if self.workspaces.last.is_none() {
            self.env.init();
            self.collect_ids();
        }
        self.workspaces.last.clone().unwrap()
    }

    fn node(&mut self) -> String {
        let workspace = self.workspace();
        if self.nodes.last.is_none() {
            let node = self.env.node("root", "execution", "Check tokens");
            self.env.ok(&["node", "transition", &node, "--workspace", &workspace, "--action", "start"]);
            self.collect_ids();
        }
        self.nodes.last.clone().unwrap()
    }

    /// Adds the ids that exist now.
    fn collect_ids(&mut self) {
        let ids = |found: &Value, list: &str, id: &str, filter: fn(&&Value) -> bool| -> Vec<String> {
            let items = found[list].as_array().unwrap().iter().filter(filter);
            items.map(|item| item[id].as_str().unwrap().to_owned()).collect()
        };
        let workspaces = self.env.json(&["workspace", "list"]);
        self.workspaces.add(ids(&workspaces, "workspaces", "workspaceId", |_| true));
        self.memories.add(ids(&self.env.json(&["memory", "list"]), "results", "id", |_| true));
        if let Some(workspace) = &self.workspaces.last {
            let nodes = self.env.json(&["node", "list", "--limit", "200", "-w", workspace]);
            self.nodes.add(ids(&nodes, "nodes", "id", |_| true));
            self.planning_nodes.add(ids(&nodes, "nodes", "id", |node| node["type"] == "planning"));
        }
    }
}

fn check(name: &str) {
    let documents = documents();
    let document = documents.iter().find(|document| document.name == name).unwrap();
    let mut runner = DocumentRunner::new(document);
    for block in markdown::blocks(&document.text) {
        runner.process_block(document, &block);
    }
}

/// Defines one test per document, so that they run in parallel and one failure does not hide another.
macro_rules! documents {
    ($($test:ident: $name:literal,)*) => {
        $(#[test] fn $test() { check($name); })*

        #[test]
        fn documents_with_code_blocks_all_have_a_test() {
            let tested: BTreeSet<&str> = [$($name),*].into();
            for document in documents() {
                let has_blocks = !markdown::blocks(&document.text).is_empty();
                assert_eq!(tested.contains(&*document.name), has_blocks, "{}", document.name);
            }
        }
    };
}

documents! {
    readme_commands_run: "README.md",
    readme_zh_commands_run: "README.zh-CN.md",
    benchmarks_commands_run: "docs/benchmarks.md",
    contributing_commands_run: "CONTRIBUTING.md",
    team_commands_run: "docs/team.md",
    team_zh_commands_run: "docs/team.zh-CN.md",
    guide_commands_run: "docs/guide.md",
    guide_zh_commands_run: "docs/guide.zh-CN.md",
    context_commands_run: "docs/context.md",
    rules_commands_run: "docs/rules.md",
    rules_zh_commands_run: "docs/rules.zh-CN.md",
    http_commands_run: "docs/http.md",
}

/// Returns the command names and options of every `tanmi` line, without values, which differ between languages.
fn command_shapes(document: &Document) -> Vec<Vec<String>> {
    let mut shapes = Vec::new();
    for block in markdown::blocks(&document.text) {
        for (_, line) in commands(&block) {
            if let Some(command) = without_comment(line).strip_prefix("tanmi ") {
                let options = command.split(' ').filter(|word| word.starts_with("--")).map(str::to_owned);
                shapes.push(names(command).into_iter().chain(options).collect());
            }
        }
    }
    shapes
}

#[test]
fn chinese_documents_have_the_commands_and_headings_of_the_english_ones() {
    let documents = documents();
    let chinese: Vec<&Document> = documents.iter().filter(|document| document.is_chinese()).collect();
    assert!(!chinese.is_empty());
    for document in chinese {
        let name = document.name.replace(".zh-CN.md", ".md");
        let english = documents.iter().find(|document| document.name == name).unwrap();
        assert_eq!(command_shapes(document), command_shapes(english), "{}", document.name);
        let levels = |document: &Document| -> Vec<usize> {
            let lines = document.text.lines().filter(|line| line.starts_with('#'));
            lines.map(|line| line.chars().take_while(|c| *c == '#').count()).collect()
        };
        assert_eq!(levels(document), levels(english), "{}", document.name);
        let scripts = |document: &Document| -> Vec<String> {
            let blocks = markdown::blocks(&document.text).into_iter();
            let scripts = blocks.filter(|block| block.kind == Kind::Fenced(String::from("bash")));
            scripts.map(|block| block.text).collect()
        };
        assert_eq!(scripts(document), scripts(english), "{}", document.name);
    }
}

#[test]
fn lines_that_are_not_run_exist_in_a_document() {
    let documents = documents();
    let blocks: Vec<Block> = documents.iter().flat_map(|document| markdown::blocks(&document.text)).collect();
    let lines: Vec<&str> = blocks.iter().flat_map(commands).map(|(_, line)| line).collect();
    for (start, why) in NOT_RUN {
        assert!(lines.iter().any(|line| line.starts_with(start)), "{start} ({why}): no document has it");
    }
    for (shown, _) in INTERACTIVE {
        assert!(lines.iter().any(|line| without_comment(line) == *shown), "{shown}: no document has it");
    }
}

#[test]
fn guide_transition_tables_match_the_state_machine() {
    // The words for a conclusion, children, and both.
    for (name, [conclusion, children, both]) in [
        ("docs/guide.md", ["a conclusion", "children", "all children done, a conclusion"]),
        ("docs/guide.zh-CN.md", ["填写结论", "已有子节点", "子节点全部结束，并填写结论"]),
    ] {
        let guide = std::fs::read_to_string(root().join(name)).unwrap();
        let table: Vec<&str> = guide
            .lines()
            .filter(|line| line.starts_with("| planning |") || line.starts_with("| execution |"))
            .collect();
        let row = |step: &TransitionRule| {
            let needs = match step.needs {
                Prerequisite::Nothing => String::new(),
                Prerequisite::Conclusion => format!("{conclusion} "),
                Prerequisite::Children => format!("{children} "),
                Prerequisite::ChildrenDoneAndConclusion => format!("{both} "),
            };
            format!("| {} | {} | {} | {} | {needs}|", step.kind, step.from, step.action, step.to)
        };
        assert_eq!(table, TRANSITION_RULES.iter().map(row).collect::<Vec<_>>(), "{name}");
    }
}

/// Checks inline code: `tanmi node create …` must name an existing command, and JSON must parse.
#[test]
fn inline_code_names_existing_commands_and_valid_json() {
    let reference = std::fs::read_to_string(root().join("docs/reference.md")).unwrap();
    let known: BTreeSet<&str> =
        reference.lines().filter_map(|line| line.strip_prefix("### tanmi ")).collect();
    for document in documents() {
        for code in markdown::inline(&document.text) {
            if code.starts_with("{\"") || code.starts_with("[{\"") {
                let parsed = serde_json::from_str::<Value>(&code);
                assert!(parsed.is_ok(), "{}: {code}: {parsed:?}", document.name);
            }
            for name in code.strip_prefix("tanmi ").map(names).unwrap_or_default() {
                assert!(known.contains(&*name), "{}: `{code}`: no command {name}", document.name);
            }
        }
    }
}

#[test]
fn relative_links_point_to_existing_files() {
    let mut seen = 0;
    for document in documents() {
        let folder = root().join(&document.name).parent().unwrap().to_owned();
        for link in document.text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (path, _) = link.split_once('#').unwrap_or((link, ""));
            if !path.is_empty() && !path.contains("://") {
                assert!(folder.join(path).exists(), "{}: {link}", document.name);
                seen += 1;
            }
        }
    }
    assert!(seen > 0, "no link was checked");
}

/// Returns the Rust sources below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    let is_source = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rs");
    let below = folders.iter().flat_map(|folder| sources(folder));
    files.into_iter().filter(is_source).chain(below).collect()
}

/// Returns the sources that a text names between backticks: paths with a folder.
fn named_sources(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    quoted.filter(|path| path.ends_with(".rs") && path.contains('/') && !path.contains(' '))
}

/// `CRATE/FILE` means `crates/CRATE/src/FILE` there. A sentence about one crate leaves out its first folders.
#[test]
fn sources_named_in_architecture_exist() {
    let folder = root().join("crates");
    let sources: Vec<String> = sources(&folder)
        .iter()
        .map(|path| path.strip_prefix(&folder).unwrap().display().to_string().replacen("/src/", "/", 1))
        .collect();
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let is_known =
        |path: &str| sources.iter().any(|known| format!("/{known}").ends_with(&format!("/{path}")));
    let missing: Vec<&str> = named_sources(&text).filter(|path| !is_known(path)).collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn tests_named_in_the_table_of_security_exist() {
    let text = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
    let mut seen = 0;
    for row in text.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let (_, tests) = row.trim_end_matches([' ', '|']).rsplit_once(" | ").unwrap();
        for path in tests.split('`').skip(1).step_by(2) {
            let path =
                path.strip_prefix("it/").map_or(path.to_owned(), |rest| format!("tanmi/tests/it/{rest}"));
            assert!(root().join("crates").join(&path).is_file(), "{path}");
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen}");
}

/// Returns the command names of a line: `session bind|unbind ID` gives `session bind` and `session unbind`.
fn names(code: &str) -> Vec<String> {
    let is_name = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-' || c == '|');
    let words: Vec<&str> =
        code.split(' ').take_while(|word| !word.starts_with('-') && is_name(word)).collect();
    match words.as_slice() {
        [] => Vec::new(),
        [before @ .., last] => {
            let before: String = before.iter().map(|word| format!("{word} ")).collect();
            last.split('|').map(|last| format!("{before}{last}")).collect()
        }
    }
}

#[test]
fn reference_matches_the_program() {
    let written = std::fs::read_to_string(root().join("docs/reference.md")).unwrap_or_default();
    let now = TestEnv::new().ok(&["reference"]);
    let differs = now.lines().zip(written.lines()).find(|(now, written)| now != written);
    assert!(now == written, "docs/reference.md is out of date ({differs:?}): cargo xtask reference");
}

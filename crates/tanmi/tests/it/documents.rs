//! The documents say what is so: every command in them is run, in their order, in a scratch home; what is shown below a
//! command is what it prints; examples of JSON are accepted; names in sentences exist.
//!
//! That the example rules also speak is in `documents/rules.rs`.

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

/// Lines in blocks of code that begin like this are not run.
const NOT_RUN: &[(&str, &str)] = &[
    ("cargo ", "builds and tests the program that runs here"),
    ("INSTA_UPDATE=always cargo ", "writes snapshots of these tests"),
    (".ci/run", "runs these tests"),
    ("scripts/install-clients", "fetches from npm; CI runs it"),
    ("<project>/", "a path, not a command"),
    ("<项目>/", "a path, not a command"),
    ("tanmi serve", "does not end by itself; documents/server.rs runs it"),
    ("TOKEN=", "documents/server.rs runs it, with the server"),
    ("URL=", "documents/server.rs runs it, with the server"),
    ("curl ", "documents/server.rs runs it, with the server"),
    ("-d ", "documents/server.rs runs it, with the server"),
];

/// What has to be typed where nobody is there to answer a question.
const ASKS: &[(&str, &str)] = &[("tanmi rules trust", "tanmi rules trust --yes")];

/// Said behind a command that must fail.
const REFUSED: &str = "# refused";

/// A command that is still running after this will not end by itself.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Document {
    pub name: String,
    pub text: String,
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

/// The lines of a block that somebody would type. Blocks between bare fences show what a program prints.
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

fn is_left_out(line: &str) -> bool {
    NOT_RUN.iter().any(|(start, _)| line.starts_with(start))
}

/// Without what is said about it.
fn without_comment(line: &str) -> &str {
    line.split(" #").next().unwrap_or(line).trim_end()
}

/// Ids of one kind that were seen, and the newest.
#[derive(Default)]
struct Made {
    seen: BTreeSet<String>,
    last: Option<String>,
}

impl Made {
    fn take(&mut self, found: Vec<String>) {
        for id in found {
            if self.seen.insert(id.clone()) && id != "root" {
                self.last = Some(id);
            }
        }
    }
}

/// A reader of one document, who does what it says.
struct Reader {
    env: TestEnv,
    workspaces: Made,
    nodes: Made,
    /// Those of the nodes that plan.
    plans: Made,
    memories: Made,
    /// By the last command.
    printed: String,
}

impl Reader {
    fn new(document: &Document) -> Reader {
        let is_chinese = document.name.contains("zh-CN");
        let env = TestEnv::with_lang(if is_chinese { "zh_CN.UTF-8" } else { "en_US.UTF-8" });
        let bin = env.root().join("bin");
        std::fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tanmi"), bin.join("tanmi")).unwrap();
        let home = env.root().join("home");
        for folder in [".claude", ".cursor", ".codex", ".gemini", ".copilot"] {
            std::fs::create_dir(home.join(folder)).unwrap();
        }
        // What the documents speak of as being there.
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
        ] {
            env.make(&path, text);
        }
        let none = Made::default;
        let (workspaces, nodes, plans, memories) = (none(), none(), none(), none());
        Reader { env, workspaces, nodes, plans, memories, printed: String::new() }
    }

    /// As it is typed.
    fn shell(&self, line: &str) -> (bool, String, String) {
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
            if started.elapsed() > PATIENCE {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("{line}: does not end; if that is right, it belongs into NOT_RUN");
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        (is_good, read(&out), read(&err))
    }

    /// Does what a block says, and compares what it shows.
    fn read(&mut self, document: &Document, block: &Block) {
        if block.kind == Kind::Fenced(String::from("json")) {
            return self.place(document, block);
        }
        let commands = commands(block);
        if commands.is_empty() && block.follows && block.kind == Kind::Fenced(String::new()) {
            let trimmed = |text: &str| {
                let text = self.env.redact(text);
                text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
            };
            let (shown, printed) = (trimmed(&block.text), trimmed(&self.printed));
            assert_eq!(printed, shown, "{}:{}: the command above prints this", document.name, block.line);
        }
        for (n, line) in commands {
            if !is_left_out(line) {
                self.run(&format!("{}:{n}", document.name), line);
            }
        }
    }

    fn run(&mut self, place: &str, line: &str) {
        let is_refused = line.contains(REFUSED);
        let line = without_comment(line);
        assert!(line.starts_with("tanmi "), "{place}: {line}: neither ours nor in NOT_RUN");
        let line = ASKS.iter().find(|(asks, _)| *asks == line).map_or(line, |(_, typed)| typed);
        let typed = self.fill(place, line);
        let (is_good, out, err) = self.shell(&typed);
        assert_eq!(is_good, !is_refused, "{place}: {typed}\n{out}{err}");
        self.printed = if is_good { out } else { err };
        self.look();
    }

    /// A file where its document says that it belongs.
    fn place(&self, document: &Document, block: &Block) {
        let value: Value = serde_json::from_str(&block.text)
            .unwrap_or_else(|error| panic!("{}:{}: {error}", document.name, block.line));
        let home = self.env.root().join("home/.tanmi");
        if value["customRules"].is_array() {
            self.env.make(&self.env.project.join(".tanmi/rules.json"), &block.text);
        } else if let Some(files) = value["files"].as_array() {
            self.env.make(&home.join("context.json"), &block.text);
            let shown = self.env.json(&["context", "show"]);
            let declared = shown["declared"].as_array().unwrap();
            let told: Vec<&Value> =
                declared.iter().filter(|file| file["told"] == true).map(|file| &file["name"]).collect();
            assert_eq!(told, files.iter().collect::<Vec<_>>(), "{}:{}: {shown}", document.name, block.line);
        } else if value["mcpServers"].is_object() {
            // A client's own file, which the real clients read in their tests.
        } else {
            panic!("{}:{}: which file is this?", document.name, block.line);
        }
    }

    /// Puts what was made before into the place of words that stand for it.
    fn fill(&mut self, place: &str, line: &str) -> String {
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
                ("PLAN", _) => self.plans.last.clone().expect("a plan was made before"),
                ("ID", "--session") => String::from("s-1"),
                ("ID", "restore" | "delete" | "archive") if words[1] == "workspace" => self.workspace(),
                ("ID", _) if words[1] == "memory" => {
                    self.memories.last.clone().expect("a memory was saved before")
                }
                ("DIR", _) => self.env.root().join("dir").display().to_string(),
                (word, _) => {
                    let is_name = word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase());
                    assert!(!is_name, "{place}: what does {word} stand for?");
                    continue;
                }
            };
        }
        words.join(" ")
    }

    fn workspace(&mut self) -> String {
        if self.workspaces.last.is_none() {
            self.env.init();
            self.look();
        }
        self.workspaces.last.clone().unwrap()
    }

    fn node(&mut self) -> String {
        let workspace = self.workspace();
        if self.nodes.last.is_none() {
            let node = self.env.node("root", "execution", "Check tokens");
            self.env.ok(&["node", "transition", &node, "--workspace", &workspace, "--action", "start"]);
            self.look();
        }
        self.nodes.last.clone().unwrap()
    }

    /// Finds what is new.
    fn look(&mut self) {
        let ids = |found: &Value, list: &str, id: &str, filter: fn(&&Value) -> bool| -> Vec<String> {
            let items = found[list].as_array().unwrap().iter().filter(filter);
            items.map(|item| item[id].as_str().unwrap().to_owned()).collect()
        };
        let workspaces = self.env.json(&["workspace", "list"]);
        self.workspaces.take(ids(&workspaces, "workspaces", "workspaceId", |_| true));
        self.memories.take(ids(&self.env.json(&["memory", "list"]), "results", "id", |_| true));
        if let Some(workspace) = &self.workspaces.last {
            let nodes = self.env.json(&["node", "list", "--limit", "200", "-w", workspace]);
            self.nodes.take(ids(&nodes, "nodes", "id", |_| true));
            self.plans.take(ids(&nodes, "nodes", "id", |node| node["type"] == "planning"));
        }
    }
}

fn check(name: &str) {
    let documents = documents();
    let document = documents.iter().find(|document| document.name == name).unwrap();
    let mut reader = Reader::new(document);
    for block in markdown::blocks(&document.text) {
        reader.read(document, &block);
    }
}

/// One test for each, so that one that fails does not hide the others, and they run side by side.
macro_rules! documents {
    ($($test:ident: $name:literal,)*) => {
        $(#[test] fn $test() { check($name); })*

        #[test]
        fn every_document_is_read() {
            let tested: BTreeSet<&str> = [$($name),*].into();
            for document in documents() {
                let has_blocks = !markdown::blocks(&document.text).is_empty();
                assert_eq!(tested.contains(&*document.name), has_blocks, "{}", document.name);
            }
        }
    };
}

documents! {
    the_readme: "README.md",
    the_chinese_readme: "README.zh-CN.md",
    benchmarks: "docs/benchmarks.md",
    contributing: "CONTRIBUTING.md",
    the_guide: "docs/guide.md",
    the_guide_to_context: "docs/context.md",
    the_guide_to_rules: "docs/rules.md",
    the_page_about_the_server: "docs/http.md",
}

#[test]
fn what_is_left_out_is_still_there() {
    let documents = documents();
    let blocks: Vec<Block> = documents.iter().flat_map(|document| markdown::blocks(&document.text)).collect();
    let lines: Vec<&str> = blocks.iter().flat_map(commands).map(|(_, line)| line).collect();
    for (start, why) in NOT_RUN {
        assert!(lines.iter().any(|line| line.starts_with(start)), "{start} ({why}): no document has it");
    }
    for (asks, _) in ASKS {
        assert!(lines.iter().any(|line| without_comment(line) == *asks), "{asks}: no document has it");
    }
}

/// The table of steps in the guide is the table of the program.
#[test]
fn the_steps_of_the_guide() {
    let guide = std::fs::read_to_string(root().join("docs/guide.md")).unwrap();
    let table: Vec<&str> = guide
        .lines()
        .filter(|line| line.starts_with("| planning |") || line.starts_with("| execution |"))
        .collect();
    let row = |step: &TransitionRule| {
        let needs = match step.needs {
            Prerequisite::Nothing => "",
            Prerequisite::Conclusion => "a conclusion ",
            Prerequisite::Children => "children ",
            Prerequisite::ChildrenDoneAndConclusion => "all children done, a conclusion ",
        };
        format!("| {} | {} | {} | {} | {needs}|", step.kind, step.from, step.action, step.to)
    };
    assert_eq!(table, TRANSITION_RULES.iter().map(row).collect::<Vec<_>>());
}

/// `tanmi node create …` in a sentence names a command that exists; JSON in a sentence is JSON.
#[test]
fn what_sentences_name_exists() {
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
fn every_link_leads_somewhere() {
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
    assert!(seen > 0, "nothing was looked at");
}

/// The commands that are meant: `session bind|unbind ID` is `session bind` and `session unbind`.
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
fn the_reference_is_of_this_program() {
    let written = std::fs::read_to_string(root().join("docs/reference.md")).unwrap_or_default();
    let now = TestEnv::new().ok(&["reference"]);
    let differs = now.lines().zip(written.lines()).find(|(now, written)| now != written);
    assert!(now == written, "docs/reference.md is out of date ({differs:?}): cargo xtask reference");
}

//! Real clients from npm, at pinned versions. `scripts/install-clients` installs them into `.clients/`. Without them
//! these tests print that they were skipped; in CI they fail.

use std::path::PathBuf;

use serde_json::{Value, json};
use tanmi_platform::CLIENTS;

use crate::env::TestEnv;
use crate::scripted_model::Model;
use crate::serve::Server;
use conversation::Conversation;

mod conversation;
mod moments;
mod plans;
mod stories;
mod team;

const DAY: i64 = 86_400_000;

/// Returns the program of an installed client.
fn client(name: &str) -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.clients/node_modules/.bin");
    let found = root.join(name).canonicalize().ok();
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "{name} is missing: .ci/run installs it");
        eprintln!("skipped: {name} is not installed (scripts/install-clients)");
    }
    found
}

/// Uses the command line of the official MCP Inspector.
#[test]
fn mcp_inspector_lists_and_calls_tools() {
    let Some(inspector) = client("mcp-inspector") else { return };
    let env = TestEnv::new();
    let inspect = |args: &[&str]| -> Value {
        let mut command = env.command_in("node", &env.project);
        command.arg(&inspector).args(["--cli", env!("CARGO_BIN_EXE_tanmi"), "mcp"]).args(args);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)))
    };
    let call = |tool: &str, arguments: &[&str]| {
        let mut args = vec!["--method", "tools/call", "--tool-name", tool];
        for argument in arguments {
            args.extend(["--tool-arg", argument]);
        }
        inspect(&args)
    };
    let tools = inspect(&["--method", "tools/list"]);
    assert!(tools["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "node_transition"));
    let made = call("workspace_init", &["name=Inspected", "goal=Be driven"]);
    assert_eq!(made["structuredContent"]["name"], "Inspected");
    let node = call("node_create", &["parentId=root", "type=execution", "title=t", "requirement=r"]);
    let id = node["structuredContent"]["nodeId"].as_str().unwrap().to_owned();
    let started = call("node_transition", &[&format!("nodeId={id}"), "action=start"]);
    assert_eq!(started["structuredContent"]["to"], "implementing");
    let refused = call("node_transition", &[&format!("nodeId={id}"), "action=retry"]);
    assert_eq!(refused["structuredContent"]["error"]["code"], "INVALID_TRANSITION");
    assert_eq!(env.status(&id), "implementing");
}

#[test]
fn mcp_inspector_works_over_http() {
    let Some(inspector) = client("mcp-inspector") else { return };
    let env = TestEnv::new();
    let server = Server::start(&env);
    let inspect = |args: &[&str]| -> Value {
        let (url, token) = (format!("http://127.0.0.1:{}/mcp", server.port), &server.token);
        let mut command = env.command_in("node", &env.project);
        command.arg(&inspector).args(["--cli", &url, "--transport", "http"]);
        command.args(["--header", &format!("Authorization: Bearer {token}")]).args(args);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)))
    };
    let tools = inspect(&["--method", "tools/list"]);
    assert!(tools["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "node_plan"), "{tools}");
    let init = ["--method", "tools/call", "--tool-name", "workspace_init"];
    let made = inspect(&[&init[..], &["--tool-arg", "name=Over HTTP", "--tool-arg", "goal=g"]].concat());
    assert_eq!(made["structuredContent"]["name"], "Over HTTP");
    assert_eq!(env.json(&["workspace", "list"])["total"], 1);
}

/// A real client (Claude Code, Codex, Gemini CLI or Copilot CLI) in a scratch home, set up only by
/// `tanmi install`, with a scripted model.
struct Agent {
    env: TestEnv,
    model: Model,
    id: &'static str,
    program: PathBuf,
    session: Option<String>,
    /// Additional arguments for the client.
    extra: Vec<String>,
    /// Whether the hooks use the clock of `env` instead of the system clock, which the clients use.
    is_clock_moved: bool,
    /// Whether the client runs only tools that its settings allow.
    checks_permissions: bool,
}

/// Returns the client's settings file as it is before the installation.
fn settings(id: &str, port: u16, project: &str) -> Option<(&'static str, String)> {
    match id {
        "codex" => Some((
            ".codex/config.toml",
            format!(
                "model = \"scripted\"\nmodel_provider = \"scripted\"\napproval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n\
                 check_for_update_on_startup = false\n\n[analytics]\nenabled = false\n\n[model_providers.scripted]\nname = \"scripted\"\n\
                 base_url = \"http://127.0.0.1:{port}/v1\"\nenv_key = \"SCRIPTED_KEY\"\nwire_api = \"responses\"\n\n\
                 [projects.\"{project}\"]\ntrust_level = \"trusted\"\n"
            ),
        )),
        "gemini-cli" => Some((
            ".gemini/settings.json",
            json!({
                "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
                "privacy": {"usageStatisticsEnabled": false},
                "general": {"enableAutoUpdate": false},
                "telemetry": {"enabled": false},
            })
            .to_string(),
        )),
        _ => None,
    }
}

impl Agent {
    /// Returns an agent whose client is a row of the client table, if that client is installed.
    fn new(id: &'static str) -> Option<Agent> {
        let spec = CLIENTS.iter().find(|client| client.platform.id == id).unwrap();
        let program = client(spec.recipe.program)?;
        let env = TestEnv::new();
        // Clients use the system clock.
        env.tick(tanmi_base::clock::now() - crate::env::NOW);
        let model = Model::start();
        let project = env.project.display().to_string();
        if let Some((path, text)) = settings(id, model.port, &project) {
            let path = env.root().join("home").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            env.write(&path, text.as_bytes());
        }
        env.ok(&["install", "--platform", id]);
        let session = (id == "claude-code").then(|| String::from("0a1b2c3d-1111-4222-8333-444455556666"));
        Some(Agent {
            env,
            model,
            id,
            program,
            session,
            extra: Vec::new(),
            is_clock_moved: false,
            checks_permissions: false,
        })
    }

    /// Forgets the session and moves the clock by a day, so that the next turn is the first one of the next day.
    fn begin_next_day(&mut self) {
        self.env.tick(DAY);
        self.is_clock_moved = true;
        self.session =
            self.session.as_ref().filter(|_| self.id == "claude-code").map(|id| id.replace('1', "2"));
        self.model.clear_requests();
    }

    /// Runs one prompt in a new process, in a new session or in that of the previous prompt. Returns the output.
    fn turn(&mut self, prompt: &str, resumes: bool) -> String {
        let mut command = self.env.command_in(self.program.to_str().unwrap(), &self.env.project);
        let own = PathBuf::from(env!("CARGO_BIN_EXE_tanmi"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::iter::once(own.parent().unwrap().to_owned()).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(path).unwrap());
        let base = format!("http://127.0.0.1:{}", self.model.port);
        let session = self.session.clone().unwrap_or_default();
        command.env("TERM", "dumb").env("TMPDIR", self.env.root());
        if !self.is_clock_moved {
            command.env_remove("TANMI_NOW");
        }
        match self.id {
            "claude-code" => {
                command.arg("-p").args(&self.extra);
                if !self.checks_permissions {
                    command.arg("--dangerously-skip-permissions");
                }
                command.args([if resumes { "--resume" } else { "--session-id" }, &session, "--", prompt]);
                command
                    .env("ANTHROPIC_BASE_URL", base)
                    .env("ANTHROPIC_API_KEY", "none")
                    .env("IS_SANDBOX", "1");
                for name in
                    ["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER"]
                {
                    command.env(name, "1");
                }
            }
            "codex" => {
                command.args(["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"]);
                command.args(if resumes { vec!["resume", &session, prompt] } else { vec![prompt] });
                command.env("SCRIPTED_KEY", "none");
            }
            "gemini-cli" => {
                command.arg("--yolo").args(if resumes { vec!["--resume", "latest"] } else { vec![] });
                command.args(["-p", prompt]);
                command.env("GEMINI_API_KEY", "none").env("GOOGLE_GEMINI_BASE_URL", base);
                command.env("GEMINI_TELEMETRY_ENABLED", "false").env("GEMINI_CLI_NO_RELAUNCH", "true");
            }
            _ => {
                command.args(["-p", prompt, "--allow-all-tools", "--disable-builtin-mcps"]);
                if resumes {
                    command.arg(format!("--resume={session}"));
                }
                command.env("COPILOT_OFFLINE", "true").env("COPILOT_AUTO_UPDATE", "false");
                command
                    .env("COPILOT_PROVIDER_BASE_URL", format!("{base}/v1"))
                    .env("COPILOT_PROVIDER_API_KEY", "none");
                command.env("COPILOT_MODEL", "gpt-4.1").env("COPILOT_PROVIDER_WIRE_API", "completions");
            }
        }
        finish(command, self.id)
    }

    /// Returns the relevant lines of the requests, for failure messages.
    fn context(&self, output: &str, requests: &[String]) -> String {
        let is_ours = |line: &&str| {
            let words =
                ["anmi", "SUBTASK", "Go on", "ubagent", "DONE", "ession", "roblem", "oal", "node-", "[["];
            words.iter().any(|word| line.contains(word)) && line.len() < 2000
        };
        let mut out = format!("{}: injected {:?}\noutput {output}\n", self.id, self.injections());
        for text in requests {
            let lines: Vec<&str> = text.lines().filter(is_ours).collect();
            out.push_str(&format!("=== request\n{}\n", lines.join("\n")));
        }
        out
    }

    /// Returns event and session of every text that hooks injected, from the ledger.
    fn injections(&self) -> Vec<(String, String)> {
        let entries = self.env.json(&["ledger"])["entries"].as_array().cloned().unwrap_or_default();
        let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        let hooks = entries.iter().filter(|entry| entry["source"] == "hook");
        hooks.map(|entry| (text(entry, "event"), text(entry, "session"))).collect()
    }
}

/// Runs a client to its end and returns its output. A client that hangs is killed, which fails the test.
fn finish(mut command: std::process::Command, id: &str) -> String {
    use std::io::Read;
    let piped = || std::process::Stdio::piped();
    let mut child = command.stdout(piped()).stderr(piped()).spawn().unwrap();
    let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let errors = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = stderr.read_to_end(&mut text);
        text
    });
    let pid = child.id();
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        if is_done.recv_timeout(std::time::Duration::from_secs(180)).is_err() {
            let _ = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
    });
    let mut text = Vec::new();
    let _ = stdout.read_to_end(&mut text);
    let status = child.wait().unwrap();
    let _ = done.send(());
    watch.join().unwrap();
    text.extend(errors.join().unwrap());
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(status.success(), "{id}: {status}\n{text}");
    text
}

/// Checks binding, context, reminders and subagents in a real client, and the uninstallation.
fn check_client(id: &'static str) {
    let Some(mut agent) = Agent::new(id) else { return };
    let goal = "Replace sessions by tokens";
    let made = agent.env.json(&["workspace", "init", "--name", "Auth", "--goal", goal]);
    let workspace = made["workspaceId"].as_str().unwrap().to_owned();
    let node = agent.env.node("root", "execution", "Check tokens");

    let bind = json!({"workspaceId": workspace, "nodeId": node});
    let output = agent.turn(&format!("How do I install node.js? [[tool session_bind {bind}]]"), false);
    let requests = agent.model.request_texts();
    let injections = agent.injections();
    let context = agent.context(&output, &requests);
    // An unbound session gets its id at the start, and nothing at an unrelated prompt.
    let events: Vec<&str> = injections.iter().map(|(event, _)| event.as_str()).collect();
    assert_eq!(events, ["session_start"], "{context}");
    let session = injections[0].1.clone();
    assert!(requests[0].contains(&session), "{context}");
    // The tool call without a session id bound the session that the hooks know.
    let status = agent.env.json(&["session", "status", "--session", &session]);
    assert_eq!(
        (&status["bound"], &status["workspace"]["id"]),
        (&json!(true), &json!(workspace)),
        "{context}"
    );
    let known = agent.session.get_or_insert_with(|| session.clone());
    assert_eq!(*known, session, "{context}");

    agent.env.ok(&["problem", "--node", &node, "The tests time out"]);
    agent.model.clear_requests();
    let output = agent.turn("Go on. [[agent SUBTASK: look around]]", true);
    let requests = agent.model.request_texts();
    let context = agent.context(&output, &requests);
    let is_subagent = |text: &&String| text.contains("SUBTASK") && text.contains("You are a subagent");
    let subagent = requests.iter().find(|text| is_subagent(text) && !text.contains("Go on."));
    assert!(
        subagent.is_some_and(|text| text.contains(goal) && text.contains(&node)),
        "the subagent gets the context: {context}"
    );
    let main = requests.iter().find(|text| text.contains("Go on.")).unwrap();
    assert!(main.contains(goal), "bound context: {context}");
    assert!(main.contains("The tests time out"), "the open problem: {context}");
    assert!(!main.contains("You are a subagent"), "{context}");

    // The uninstallation leaves the original settings.
    agent.env.ok(&["uninstall"]);
    if let Some((path, text)) = settings(id, agent.model.port, &agent.env.project.display().to_string()) {
        let left = std::fs::read_to_string(agent.env.root().join("home").join(path)).unwrap();
        assert!(!left.contains("tanmi") && left.contains(text.split('"').nth(1).unwrap()), "{left}");
    }
}

/// Declared context is injected once at the start and once after a compaction. A subagent gets the part of
/// its type; its parent does not.
#[test]
fn claude_code_gets_declared_context_once_and_after_compaction() {
    let Some(agent) = Agent::new("claude-code") else { return };
    let write = |path: &str, text: &str| {
        let path = agent.env.project.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        agent.env.write(&path, text.as_bytes());
    };
    write(".tanmi/context.json", r#"{"files": ["docs/ctx.md"]}"#);
    write("docs/ctx.md", "DECLARED-FOR-ALL");
    write(".tanmi/subagents/general-purpose.md", "ONLY-FOR-THIS-TYPE");
    agent.env.ok(&["trust", "--yes"]);
    let workspace = agent.env.init();
    agent.env.ok(&["workspace", "update", "--add-rule", "RULE-OF-THE-WORKSPACE"]);
    agent.env.ok(&["session", "bind", "-w", &workspace, "--session", agent.session.as_ref().unwrap()]);
    let mut conversation = Conversation::start(&agent, false);
    let prompts = ["ALPHA", "BRAVO", "/compact", "CHARLIE", "DELTA [[agent SUBTASK]]"];
    let output: String = prompts.iter().map(|prompt| conversation.say(prompt)).collect();
    conversation.finish();
    let requests = agent.model.request_texts();
    let context = agent.context(&output, &requests);
    let last = |word: &str| {
        requests.iter().rfind(|text| text.contains(word) && !text.contains("You are a subagent")).unwrap()
    };
    let count = |text: &str| text.matches("DECLARED-FOR-ALL").count();
    assert_eq!(count(last("BRAVO")), 1, "once at the start, not again at the next prompt: {context}");
    let after = last("DELTA");
    assert!(!after.contains("ALPHA"), "it was compacted: {context}");
    assert_eq!(count(after), 1, "once after the compaction: {context}");
    assert!(!after.contains("ONLY-FOR-THIS-TYPE"), "the parent does not have it: {context}");
    let subagent = requests.iter().find(|text| text.contains("You are a subagent")).unwrap();
    for part in ["RULE-OF-THE-WORKSPACE", "ONLY-FOR-THIS-TYPE", "DECLARED-FOR-ALL"] {
        assert!(subagent.contains(part), "{part}: {context}");
    }
}

/// With the plugin, and with plugin and installation together, every text is injected once.
#[test]
fn claude_code_with_plugin_gets_each_text_once() {
    let Some(mut agent) = Agent::new("claude-code") else { return };
    agent.env.ok(&["uninstall"]);
    let plugin = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../plugin").canonicalize().unwrap();
    agent.extra = vec![String::from("--plugin-dir"), plugin.display().to_string()];
    let workspace = agent.env.init();
    let bind = json!({"workspaceId": workspace});
    let output = agent.turn(&format!("Hello. [[tool session_bind {bind}]]"), false);
    let requests = agent.model.request_texts();
    assert_eq!(agent.injections().len(), 1, "{}", agent.context(&output, &requests));
    let bound = agent.env.json(&["session", "status", "--session", agent.session.as_ref().unwrap()]);
    assert_eq!(bound["bound"], true, "{}", agent.context(&output, &requests));

    agent.env.ok(&["install", "--platform", "claude-code"]);
    agent.model.clear_requests();
    let output = agent.turn("Go on.", true);
    let requests = agent.model.request_texts();
    let count = requests[0].matches("<tanmi-workspace-context>").count();
    assert_eq!(
        (count, agent.injections().len()),
        (2, 2),
        "once in each turn: {}",
        agent.context(&output, &requests)
    );
}

#[test]
fn claude_code_binds_and_gets_injected_texts() {
    check_client("claude-code");
}

#[test]
fn codex_binds_and_gets_injected_texts() {
    check_client("codex");
}

#[test]
fn gemini_cli_binds_and_gets_injected_texts() {
    check_client("gemini-cli");
}

#[test]
fn copilot_cli_binds_and_gets_injected_texts() {
    check_client("copilot-cli");
}

/// Checks that a rule for tool calls reaches the model of a client, or that it is not asked to where it cannot.
fn check_tool_rule(id: &'static str, can_inject: bool) {
    let Some(mut agent) = Agent::new(id) else { return };
    let rule = json!({"id": "r", "match": {"events": ["pre_tool_use"],
        "condition": "event.payload.toolName.includes('session_status')"}, "action": {"content": "BEFORE-THE-TOOL"}});
    let rules = json!({"customRules": [rule]}).to_string();
    agent.env.make(&agent.env.root().join("home/.tanmi/rules.json"), &rules);
    agent.env.ok(&["install", "--platform", id]);
    let output = agent.turn("Look. [[tool session_status {}]]", false);
    let requests = agent.model.request_texts();
    let context = agent.context(&output, &requests);
    let events: Vec<String> = agent.injections().into_iter().map(|(event, _)| event).collect();
    assert_eq!(events.iter().any(|event| event == "pre_tool_use"), can_inject, "{context}");
    let with_text: Vec<bool> = requests.iter().map(|text| text.contains("BEFORE-THE-TOOL")).collect();
    assert_eq!(with_text.last(), Some(&can_inject), "{context}");
    assert_eq!(with_text.first(), Some(&false), "not before the tool call: {context}");
    agent.env.ok(&["uninstall"]);
}

#[test]
fn claude_code_gets_rule_for_tool_calls() {
    check_tool_rule("claude-code", true);
}

#[test]
fn codex_gets_rule_for_tool_calls() {
    check_tool_rule("codex", true);
}

#[test]
fn copilot_cli_gets_rule_for_tool_calls() {
    check_tool_rule("copilot-cli", true);
}

#[test]
fn gemini_cli_has_no_hook_for_tool_calls() {
    check_tool_rule("gemini-cli", false);
}

/// Without a permission, Claude Code refuses our tools where it cannot ask. `install --allow-tools` permits them, until
/// the uninstallation.
#[test]
fn claude_code_uses_tools_without_asking_if_allowed() {
    let Some(mut agent) = Agent::new("claude-code") else { return };
    agent.checks_permissions = true;
    let workspace = agent.env.init();
    let session = agent.session.clone().unwrap();
    let bind = format!("Hello. [[tool session_bind {}]]", json!({"workspaceId": workspace}));
    let is_bound =
        |agent: &Agent| agent.env.json(&["session", "status", "--session", &session])["bound"] == true;
    let output = agent.turn(&bind, false);
    assert!(!is_bound(&agent), "refused: {}", agent.context(&output, &agent.model.request_texts()));
    agent.env.ok(&["install", "--platform", "claude-code", "--allow-tools"]);
    let output = agent.turn(&bind, true);
    assert!(is_bound(&agent), "allowed: {}", agent.context(&output, &agent.model.request_texts()));
    agent.env.ok(&["uninstall"]);
    let settings = agent.env.root().join("home/.claude/settings.json");
    let left = std::fs::read_to_string(settings).unwrap_or_default();
    assert!(!left.contains("mcp__tanmi"), "{left}");
}

#[test]
fn claude_code_gets_declared_agents_md_once() {
    let Some(mut agent) = Agent::new("claude-code") else { return };
    agent.env.make(&agent.env.project.join(".tanmi/context.json"), r#"{"files": ["AGENTS.md"]}"#);
    agent.env.make(&agent.env.project.join("AGENTS.md"), "FOR-ALL-AGENTS");
    agent.env.ok(&["trust", "--yes"]);
    let output = agent.turn("Hello.", false);
    let requests = agent.model.request_texts();
    let count = requests[0].matches("FOR-ALL-AGENTS").count();
    assert_eq!(count, 1, "{}", agent.context(&output, &requests));
}

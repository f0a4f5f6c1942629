//! Ids for people: the end of an id or a title stands for it, everywhere, and shells complete them.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::env::TestEnv;
use crate::mcp::Client;
use crate::serve::Server;

/// Returns the last characters of an id.
fn end(id: &str, length: usize) -> &str {
    &id[id.len() - length..]
}

#[test]
fn node_is_named_by_the_end_of_its_id_or_by_its_title() {
    let env = TestEnv::new();
    let ws = env.init();
    let plan = env.node("root", "planning", "Token service");
    let task = env.node(end(&plan, 4), "execution", "Sign tokens");
    let shown = |named: &str| env.json(&["node", "show", named])["nodeId"].clone();
    assert_eq!(shown(end(&task, 4)), task.as_str());
    assert_eq!(shown(end(&task, 9)), task.as_str());
    assert_eq!(shown("sign TOKENS"), task.as_str(), "the case of a title does not matter");
    assert_eq!(env.json(&["node", "show", "-w", end(&ws, 5), &task])["nodeId"], task.as_str());
    assert_eq!(env.json(&["node", "show", "-w", "auth", &task])["nodeId"], task.as_str());
    assert_eq!(env.json(&["tree", "--parent", "Token service"])["nodes"].as_array().unwrap().len(), 2);
    env.ok(&["log", "--node", end(&task, 4), "a line"]);
    env.ok(&["workspace", "focus", "Sign tokens"]);
    env.ok(&["node", "reference", end(&task, 4), "--target", end(&plan, 4)]);
    let references = env.json(&["node", "show", &task])["node"]["references"].clone();
    assert_eq!(references[0]["targetId"], plan.as_str());
    for (named, code) in [
        ("zzzz", "NODE_NOT_FOUND"),
        ("No such title", "NODE_NOT_FOUND"),
        ("ab", "NODE_NOT_FOUND"),
        ("界面", "NODE_NOT_FOUND"),
        ("../ab", "INVALID_ARGUMENT"),
    ] {
        assert_eq!(env.error(&["node", "show", named])["code"], code, "{named}");
    }
}

#[test]
fn ambiguous_name_lists_the_candidates() {
    let env = TestEnv::new();
    env.init();
    let ids = [env.node("root", "execution", "Same"), env.node("root", "execution", "Same")];
    let error = env.error(&["node", "show", "Same"]);
    assert_eq!((error["code"].as_str(), error["field"].as_str()), (Some("AMBIGUOUS_ID"), Some("nodeId")));
    let candidates = error["details"]["candidates"].as_array().unwrap();
    assert_eq!(candidates.len(), 2);
    for id in &ids {
        assert!(candidates.contains(&json!({"id": id, "title": "Same"})), "{error}");
        assert!(error["hint"].as_str().unwrap().contains(id.as_str()), "{error}");
    }
    // A change names its node in the same way, so nothing was changed.
    assert_eq!(env.error(&["done", "Same", "--conclusion", "x"])["code"], "AMBIGUOUS_ID");
}

#[test]
fn title_in_the_same_case_comes_before_others() {
    let env = TestEnv::new();
    env.init();
    let [upper, lower] = ["Tokens", "tokens"].map(|title| env.node("root", "execution", title));
    for (named, id) in [("Tokens", upper), ("tokens", lower)] {
        assert_eq!(env.json(&["node", "show", named])["nodeId"], id.as_str());
    }
    let error = env.error(&["node", "show", "TOKENS"]);
    assert!(error["hint"].as_str().unwrap().starts_with("name it by its id: node-"), "{error}");
}

#[test]
fn error_names_the_option_and_what_is_accepted() {
    for (lang, accepted) in [
        ("en_US.UTF-8", "its last four or more characters are enough, and so is a whole title"),
        ("zh_CN.UTF-8", "最后四个或更多字符也可以，完整的标题也可以"),
    ] {
        let env = TestEnv::with_lang(lang);
        env.init();
        env.node("root", "execution", "Task");
        for (args, option) in [
            (&["node", "depend", "Task", "--on", "NAME"][..], "--on"),
            (&["plan", "-", "--parent", "NAME"], "--parent"),
            (&["plan", "--export", "NAME"], "--export"),
            (&["node", "list", "--after", "NAME"], "--after"),
            (&["node", "move", "Task", "--before", "NAME"], "--before"),
            (&["node", "show", "NAME"], "NODE"),
            (&["node", "show", "--node", "NAME"], "--node"),
        ] {
            // The last one can be neither a part of an id nor a title.
            for named in ["after-export-before", "abc", "../abc"] {
                let args: Vec<&str> =
                    args.iter().map(|arg| arg.replace("NAME", named).leak() as &str).collect();
                let error = env.error(&args);
                let message = error["message"].as_str().unwrap();
                assert!(message.contains(option) && message.contains(named), "{args:?} {error}");
                let is_bad = named == "../abc";
                assert_eq!(error["hint"].as_str().unwrap().contains(accepted), is_bad, "{args:?} {error}");
            }
        }
        for named in ["nope", "abc", "No such title"] {
            let error = env.error(&["node", "restore", named]);
            assert_eq!(error["code"], "NOT_IN_TRASH", "{error}");
            assert!(error["hint"].as_str().unwrap().contains("tanmi trash list"), "{error}");
        }
    }
}

#[test]
fn node_move_without_target_names_all_options() {
    for lang in ["en_US.UTF-8", "zh_CN.UTF-8"] {
        let env = TestEnv::with_lang(lang);
        env.init();
        let run = env.run(&["node", "move", "root"]);
        assert!(
            !run.ok && run.stderr.contains("<--parent <NODE>|--before <NODE>|--after <NODE>>"),
            "{}",
            run.stderr
        );
        let both = env.run(&["node", "move", "root", "--parent", "root", "--before", "root"]);
        assert!(!both.ok && both.stderr.contains("--parent"), "{}", both.stderr);
    }
}

#[test]
fn tools_and_http_accept_the_end_of_an_id_and_no_title() {
    let env = TestEnv::new();
    let ws = env.init();
    let task = env.node("root", "execution", "Sign tokens");
    let mut client = Client::connect(&env);
    let arguments = json!({"workspaceId": end(&ws, 4), "nodeId": end(&task, 4)});
    assert_eq!(client.expect_ok("node_get", arguments)["nodeId"], task.as_str());
    for title in ["Sign tokens", "Sign"] {
        let error = client.expect_error("node_get", json!({"nodeId": title}));
        assert_eq!(error["code"], "NODE_NOT_FOUND", "{error}");
        let error = client.expect_error("session_bind", json!({"workspaceId": title, "sessionId": "s"}));
        assert_eq!(error["code"], "WORKSPACE_NOT_FOUND", "{error}");
        assert_eq!(error["details"]["workspaces"][0]["id"], ws.as_str(), "{error}");
    }
    let server = Server::start(&env);
    let path = format!("/workspaces/{}/nodes/{}", end(&ws, 4), end(&task, 4));
    assert_eq!(server.expect_ok("GET", &path, Value::Null)["nodeId"], task.as_str());
}

#[test]
fn session_is_named_by_the_end_of_its_id() {
    let env = TestEnv::new();
    let ws = env.init();
    let session = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";
    Agent::claude(&env, session).start("startup");
    env.ok(&["session", "bind", "--session", "e1f0", "--workspace", &ws]);
    let listed = env.json(&["session", "list", "--bound", "--workspace", "Auth"]);
    assert_eq!(listed["sessions"][0]["sessionId"], session);
    assert_eq!(env.json(&["session", "status", "--session", "e1f0"])["sessionId"], session);
    assert!(env.ok(&["session", "list"]).contains(" e1f0 "), "lists show short ids");
    assert_eq!(env.json(&["ledger", "--session", "e1f0"])["entries"][0]["session"], session);
    // A session that no hook reported yet can have any id.
    env.ok(&["session", "bind", "--session", "by-hand", "--workspace", &ws]);
    assert_eq!(env.json(&["session", "status", "--session", "by-hand"])["bound"], true);
    Agent::claude(&env, "another-long-session-e1f0").start("startup");
    let error = env.error(&["session", "unbind", "--session", "e1f0"]);
    assert_eq!(error["code"], "AMBIGUOUS_ID", "{error}");
}

#[test]
fn short_id_of_a_client_is_not_the_end_of_another() {
    let env = TestEnv::new();
    let ws = env.init();
    env.ok(&["session", "bind", "--session", "21001", "--workspace", &ws]);
    env.ok(&["session", "unbind", "--session", "1001"]);
    assert_eq!(env.json(&["session", "status", "--session", "21001"])["bound"], true);
}

#[test]
fn title_never_names_a_workspace_of_another_project() {
    let env = TestEnv::new();
    let elsewhere = env.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    assert!(env.run_in(&elsewhere, &["workspace", "init", "--name", "Backend", "--goal", "g"]).ok);
    env.init();
    assert_eq!(env.error(&["workspace", "delete", "Backend"])["code"], "WORKSPACE_NOT_FOUND");
}

#[test]
fn fact_is_named_by_the_end_of_its_id() {
    let env = TestEnv::new();
    let id =
        env.json(&["memory", "save-fact", "The API listens on port 8080"])["id"].as_str().unwrap().to_owned();
    let short = end(&id, 4);
    assert!(env.ok(&["memory", "list"]).trim_end().ends_with(short), "lists show short ids");
    assert_eq!(env.json(&["memory", "show", short])["id"], id.as_str());
    env.ok(&["memory", "forget", short]);
    assert_eq!(env.json(&["memory", "show", &id])["hidden"], true);
    env.ok(&["memory", "restore", short]);
    let saved = env.json(&["memory", "save-fact", "It listens on port 9090", "--supersedes", short]);
    assert_eq!(env.json(&["memory", "show", short])["replacedBy"], saved["id"]);
    assert_eq!(env.error(&["memory", "show", "zzzz"])["code"], "MEMORY_NOT_FOUND");
}

#[test]
fn completion_prints_ids_and_titles_of_the_argument() {
    let env = TestEnv::new();
    let ws = env.init();
    let task = env.node("root", "execution", "Sign tokens");
    let complete = |words: &[&str]| env.ok(&[&["complete-line", "--", "tanmi"], words].concat());
    assert_eq!(complete(&["node", "show", ""]), format!("root\tAuth\n{}\tSign tokens\n", end(&task, 4)));
    assert_eq!(complete(&["done", "Si"]), format!("Sign tokens\t{}\n", end(&task, 4)));
    assert_eq!(complete(&["tree", "--workspace", "au"]), format!("Auth\t{}\n", end(&ws, 4)));
    assert_eq!(complete(&["node", "show", "-w", "no such workspace", ""]), "", "errors print nothing");
    assert_eq!(complete(&["config", "get", ""]), "");
}

/// Runs the completion of bash for a command line and returns the candidates.
fn bash_candidates(env: &TestEnv, words: &[&str]) -> String {
    let script = env.root().join("completion.bash");
    env.write(&script, env.ok(&["completions", "bash"]).as_bytes());
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let commands = format!(
        "source {script}; COMP_WORDS=({words}); COMP_CWORD={last}; \
         _tanmi_with_ids tanmi '{current}' '{previous}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script = script.display(),
        words = quoted.join(" "),
        last = words.len() - 1,
        current = words[words.len() - 1],
        previous = words[words.len() - 2],
    );
    let mut bash: Command = env.command_in("bash", &env.project);
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_tanmi")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let output = bash.env("PATH", path).args(["-c", &commands]).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn bash_completes_commands_ids_and_titles() {
    let env = TestEnv::new();
    env.init();
    let task = env.node("root", "execution", "Sign tokens");
    assert!(bash_candidates(&env, &["tanmi", "stat"]).lines().any(|line| line == "status"));
    let candidates = bash_candidates(&env, &["tanmi", "node", "show", end(&task, 4)]);
    assert!(candidates.lines().any(|line| line == end(&task, 4)), "{candidates}");
    let candidates = bash_candidates(&env, &["tanmi", "log", "--node", ""]);
    assert_eq!(candidates, format!("root\n{}\n", end(&task, 4)), "no file names");
    let candidates = bash_candidates(&env, &["tanmi", "start", "Sig"]);
    assert!(candidates.lines().any(|line| line == "Sign\\ tokens"), "{candidates}");
}

#[test]
fn other_completion_scripts_call_the_completion_of_ids() {
    let env = TestEnv::new();
    for shell in ["zsh", "fish"] {
        let script = env.ok(&["completions", shell]);
        assert!(script.contains("tanmi complete-line -- "), "{shell}");
    }
    let zsh = env.ok(&["completions", "zsh"]);
    assert!(zsh.starts_with("#compdef tanmi") && zsh.contains(":_tanmi_ids'") && !zsh.contains(":_default'"));
}

//! What the machines of a team use: commands with keys, claims, the feed, whole workspaces.

use std::io::{Read, Write};

use serde_json::{Value, json};

use super::{Team, create_task, create_workspace, error_code, ok, run_body, send_as};
use crate::serve::Server;

fn transition(node: &str, action: &str) -> Value {
    json!({"command": "transition", "request": {
        "nodeId": node, "action": action, "conclusion": "done", "claimant": {},
    }})
}

/// Runs a command in a session on a machine. Returns the status and the body.
fn run_in_session(
    server: &Server,
    token: &str,
    session: &str,
    mut body: Value,
    fence: Option<&Value>,
) -> (u16, Value) {
    body["session"] = json!(session);
    body["machine"] = json!(format!("laptop of {session}"));
    if let Some(fence) = fence {
        body["fence"] = fence.clone();
    }
    let response = send_as(server, token, "POST", "shop/run", &[], &body);
    (response.status, serde_json::from_str(&response.body).unwrap())
}

#[test]
fn request_repeated_on_another_server_returns_stored_answer() {
    let Some(team) = Team::new() else { return };
    let (first, second) = (team.serve(), team.serve());
    let workspace = create_workspace(&first, "create-1");
    assert_eq!(create_workspace(&second, "create-1"), workspace, "created once");
    let body = run_body("task-0001", &workspace, create_task("Build"));
    let answer = ok(&first, "POST", "run", &body);
    assert_eq!(answer["seq"], 1);
    assert_eq!(answer["heads"], json!({&workspace: 1}));
    assert_eq!(ok(&second, "POST", "run", &body), answer);
    let other = run_body("task-0001", &workspace, create_task("Test"));
    let refused = send_as(&second, &team.admin, "POST", "shop/run", &[], &other);
    assert_eq!((refused.status, error_code(&refused).as_str()), (409, "KEY_REUSED"));
    let settled = ok(&second, "GET", "request/key-task-0001", &Value::Null);
    assert_eq!((&settled["committed"], &settled["answer"]["seq"]), (&json!(true), &json!(1)));
    let unknown = ok(&second, "GET", "request/key-task-0002", &Value::Null);
    assert_eq!(unknown, json!({"committed": false}));
    let mut outdated = run_body("task-0003", &workspace, create_task("Late"));
    outdated["expects"] = json!(0);
    let refused = send_as(&first, &team.admin, "POST", "shop/run", &[], &outdated);
    assert_eq!((refused.status, error_code(&refused).as_str()), (412, "OUTDATED"));
}

#[test]
fn feed_wakes_reader_of_another_server_with_documents() {
    let Some(team) = Team::new() else { return };
    let (first, second) = (team.serve(), team.serve());
    let workspace = create_workspace(&first, "create-1");
    let page = ok(&second, "GET", "feed?wait=25", &Value::Null);
    assert_eq!(page["heads"], json!({&workspace: 0}), "a new stream ends the wait");
    let path = format!("feed?have={workspace}:0&wait=25");
    let page = std::thread::scope(|scope| {
        let reader = scope.spawn(|| ok(&second, "GET", &path, &Value::Null));
        std::thread::sleep(std::time::Duration::from_millis(400));
        assert!(!reader.is_finished(), "there is nothing to tell yet");
        ok(&first, "POST", "run", &run_body("task-0001", &workspace, create_task("Build")));
        reader.join().unwrap()
    });
    assert_eq!(page["changes"][0]["seq"], 1);
    assert_eq!(page["changes"][0]["person"], "ada");
    let names: Vec<&str> = page["changes"][0]["docs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|doc| doc["name"].as_str().unwrap())
        .collect();
    let snapshot = ok(&second, "GET", &format!("snapshot?stream={workspace}"), &Value::Null);
    assert_eq!(snapshot["seq0"], 1);
    for name in names {
        let find = |docs: &Value| {
            docs.as_array().unwrap().iter().find(|doc| doc["name"] == name).map(|doc| doc["text"].clone())
        };
        assert_eq!(find(&page["changes"][0]["docs"]), find(&snapshot["docs"]), "{name}");
    }
    let known = ok(&second, "GET", &format!("feed?have={workspace}:-"), &Value::Null);
    assert_eq!(known["changes"], json!([]), "a stream that the reader does not follow");
    let gone = json!({"command": "delete_workspace", "workspaceId": workspace});
    ok(&first, "POST", "run", &json!({"key": "key-delete-1", "command": gone, "operator": "Human"}));
    let page = ok(&second, "GET", &format!("feed?have={workspace}:1&wait=25"), &Value::Null);
    assert_eq!((&page["gaps"], &page["heads"]), (&json!([workspace]), &json!({})));
}

#[test]
fn feed_with_positions_in_body_has_no_limit_of_streams() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let workspace = create_workspace(&server, "create-1");
    ok(&server, "POST", "run", &run_body("task-0001", &workspace, create_task("Build")));
    let mut have: serde_json::Map<String, Value> =
        (0..5000).map(|n| (format!("ws-{n:08}-aaaaaa"), json!(1))).collect();
    have.insert(workspace.clone(), json!(0));
    let page = ok(&server, "POST", "feed", &json!({"have": have}));
    assert_eq!((&page["changes"][0]["seq"], &page["heads"]), (&json!(1), &json!({&workspace: 1})));
    assert_eq!(page["gaps"].as_array().unwrap().len(), 5000, "streams that the project does not have");
    for bad in [json!({"a,b": 1}), json!({"ws-a": -1}), json!({"ws-a": 5_000_000_000_u64})] {
        let refused = send_as(&server, &team.admin, "POST", "shop/feed", &[], &json!({"have": bad}));
        assert_eq!((refused.status, error_code(&refused).as_str()), (400, "INVALID_ARGUMENT"), "{bad}");
    }
}

#[test]
fn feed_read_twice_without_wait_has_change_of_another_server() {
    let Some(team) = Team::new() else { return };
    let (first, second) = (team.serve(), team.serve());
    let workspace = create_workspace(&first, "create-1");
    let path = format!("feed?have={workspace}:0");
    assert_eq!(ok(&second, "GET", &path, &Value::Null)["changes"], json!([]));
    ok(&first, "POST", "run", &run_body("task-0001", &workspace, create_task("Build")));
    let page = ok(&second, "GET", &path, &Value::Null);
    assert_eq!(page["changes"][0]["seq"], 1, "{page}");
}

#[test]
fn feed_with_many_readers_disconnects_none() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let workspace = create_workspace(&server, "create-1");
    let request = format!(
        "GET /team/v1/shop/feed?have={workspace}:0&wait=25 HTTP/1.1\r\nHost: team\r\n\
         Authorization: Bearer {}\r\nConnection: close\r\n\r\n",
        team.admin
    );
    let open = |_| {
        let mut reader = server.connect();
        reader.write_all(request.as_bytes()).unwrap();
        reader
    };
    let mut readers: Vec<_> = (0..300).map(open).collect();
    ok(&server, "POST", "run", &run_body("task-0001", &workspace, create_task("Build")));
    for (n, reader) in readers.iter_mut().enumerate() {
        let mut response = String::new();
        reader.read_to_string(&mut response).unwrap();
        assert!(response.contains("\"seq\":1"), "reader {n}: {response:?}");
    }
}

#[test]
fn claim_of_another_person_is_refused_until_lease_ends() {
    let Some(team) = Team::new() else { return };
    let (server, bob) = (team.serve(), team.token("bob", "member"));
    let workspace = create_workspace(&server, "create-1");
    let made = ok(&server, "POST", "run", &run_body("task-0001", &workspace, create_task("Build")));
    let node = made["outcome"]["node"]["id"].as_str().unwrap().to_owned();
    let body = |key: &str, action: &str| run_body(key, &workspace, transition(&node, action));
    let (status, started) = run_in_session(&server, &team.admin, "ada-1", body("start-01", "start"), None);
    assert_eq!(status, 200, "{started}");
    let (status, taken) = run_in_session(&server, &bob, "bob-1", body("start-02", "start"), None);
    assert_eq!((status, &taken["error"]["code"]), (409, &json!("NODE_TAKEN")));
    assert!(taken["error"]["message"].as_str().unwrap().contains("ada on laptop of ada-1"), "{taken}");
    let (status, foreign) = run_in_session(&server, &bob, "ada-1", body("start-03", "complete"), None);
    assert_eq!((status, &foreign["error"]["code"]), (403, &json!("FOREIGN_SESSION")));
    // The lease ends, which changes no status.
    team.cluster.sql("UPDATE session SET lease_until = 1").unwrap();
    let (status, lost) = run_in_session(&server, &bob, "bob-1", body("done-001", "complete"), None);
    assert_eq!((status, &lost["error"]["code"]), (409, &json!("CLAIM_LOST")), "without a claim of its own");
    let (status, over) = run_in_session(&server, &bob, "bob-1", body("start-04", "start"), None);
    assert_eq!(status, 200, "{over}");
    let stale =
        run_in_session(&server, &team.admin, "ada-1", body("done-002", "complete"), Some(&started["fence"]));
    assert_eq!((stale.0, &stale.1["error"]["code"]), (409, &json!("CLAIM_LOST")));
    assert_eq!(stale.1["error"]["details"]["holder"]["person"], "bob");
    let beat = ok(&server, "POST", "beat", &json!({"sessions": ["ada-1", "bob-1", "unknown"]}));
    assert_eq!(beat["lost"], json!(["bob-1", "unknown"]), "the sessions of others and unknown ones");
    let (status, done) =
        run_in_session(&server, &bob, "bob-1", body("done-003", "complete"), Some(&over["fence"]));
    assert_eq!(status, 200, "{done}");
}

#[test]
fn person_without_session_holds_node_under_own_name() {
    let Some(team) = Team::new() else { return };
    let (server, bob) = (team.serve(), team.token("bob", "member"));
    let workspace = create_workspace(&server, "create-1");
    let made = ok(&server, "POST", "run", &run_body("task-0001", &workspace, create_task("Build")));
    let node = made["outcome"]["node"]["id"].as_str().unwrap().to_owned();
    ok(&server, "POST", "run", &run_body("start-01", &workspace, transition(&node, "start")));
    let done = run_body("done-001", &workspace, transition(&node, "complete"));
    let refused = send_as(&server, &bob, "POST", "shop/run", &[], &done);
    assert_eq!((refused.status, error_code(&refused).as_str()), (409, "NODE_TAKEN"));
    assert!(refused.body.contains("held by ada"), "{}", refused.body);
}

#[test]
fn log_written_by_server_in_another_zone_has_utc_stamps() {
    let Some(team) = Team::new() else { return };
    let mut command = team.env.command(&[]);
    command.env("TZ", "Asia/Shanghai");
    let server = Server::start_team_as(command, &team.cluster.address(), &team.admin, &[]);
    let workspace = create_workspace(&server, "create-1");
    let append = json!({"command": "append_log", "target": "workspace", "event": "noon"});
    let answer = ok(&server, "POST", "run", &run_body("log-0001", &workspace, append));
    let now = answer["now"].as_i64().unwrap();
    let (hour, minute) = (now / 3_600_000 % 24, now / 60_000 % 60);
    let minute = format!("{} {hour:02}:{minute:02}", tanmi_base::clock::utc_day(now));
    let stamp = answer["outcome"]["entry"]["timestamp"].as_str().unwrap();
    assert!(stamp.starts_with(&minute), "{stamp} is not {minute}");
    assert!(answer["docs"][0]["text"].as_str().unwrap().contains(&format!("[{minute}")), "{answer}");
}

#[cfg(target_os = "linux")]
#[test]
fn server_with_low_soft_limit_raises_it() {
    let Some(team) = Team::new() else { return };
    let mut command = team.env.command_in("sh", &team.env.project);
    command.args(["-c", r#"ulimit -Sn 256 && exec "$0" "$@""#, env!("CARGO_BIN_EXE_tanmi")]);
    let server = Server::start_team_as(command, &team.cluster.address(), &team.admin, &[]);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.pid())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let numbers: Vec<&str> = line.split_whitespace().skip(3).take(2).collect();
    assert_eq!(numbers[0], numbers[1], "{line}");
}

#[test]
fn beat_tells_who_works_on_what_and_when_token_expires() {
    let Some(team) = Team::new() else { return };
    let (server, bob) = (team.serve(), team.token("bob", "member"));
    let workspace = create_workspace(&server, "create-1");
    let made = ok(&server, "POST", "run", &run_body("task-0001", &workspace, create_task("Build")));
    let node = made["outcome"]["node"]["id"].as_str().unwrap().to_owned();
    let start = run_body("start-001", &workspace, transition(&node, "start"));
    assert_eq!(run_in_session(&server, &bob, "bob-1", start, None).0, 200);
    let log = json!({"command": "append_log", "target": null, "event": "Looks"});
    run_in_session(&server, &team.admin, "ada-1", run_body("log-00001", &workspace, log), None);
    let reader = team.token("rita", "reader");
    let presence = |token: &str| {
        let answer = send_as(&server, token, "POST", "shop/beat", &[], &json!({"sessions": []}));
        assert_eq!(answer.status, 200, "{}", answer.body);
        serde_json::from_str::<Value>(&answer.body).unwrap()
    };
    let beat = presence(&reader);
    let held = &beat["presence"][0];
    assert_eq!((&held["person"], &held["machine"]), (&json!("bob"), &json!("laptop of bob-1")), "{beat}");
    assert_eq!((&held["nodeId"], &held["nodeTitle"]), (&json!(node), &json!("Build")), "{beat}");
    assert_eq!((&held["workspaceId"], &held["isLive"]), (&json!(workspace), &json!(true)), "{beat}");
    assert!(held["since"].is_i64() && held["leaseUntil"].is_i64(), "{beat}");
    assert!(beat["schema"].is_i64() && beat["program"].is_string(), "{beat}");
    assert_eq!(beat["tokenExpiresAt"], Value::Null, "{beat}");
    team.cluster.sql("UPDATE session SET lease_until = 1").unwrap();
    team.cluster.sql("UPDATE token SET expires_at = 4102444800000").unwrap();
    let beat = presence(&reader);
    let held = &beat["presence"][0];
    assert_eq!((&held["session"], &held["isLive"]), (&json!("bob-1"), &json!(false)), "{beat}");
    assert_eq!(
        beat["presence"].as_array().unwrap().len(),
        1,
        "a dead session that holds nothing is not told"
    );
    assert_eq!(beat["tokenExpiresAt"], 4_102_444_800_000_i64, "{beat}");
    // A person without a session holds a node until it is done.
    let mut take = run_body("start-002", &workspace, transition(&node, "reopen"));
    take["command"]["request"]["action"] = json!("start");
    ok(&server, "POST", "run", &take);
    let beat = presence(&reader);
    let held = &beat["presence"][0];
    assert_eq!((&held["person"], &held["isLive"]), (&json!("ada"), &json!(true)), "{beat}");
}

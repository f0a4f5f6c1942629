//! Requests that the server refuses: each with a code, and nothing half done.

use serde_json::{Value, json};

use super::{Team, create_task, create_workspace, error_code, ok, run_body, send_as};

#[test]
fn token_missing_wrong_or_revoked_is_refused() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let none = server.send_with_headers("GET", "/team/v1/shop/feed", &[("Host", "team")], "");
    assert_eq!((none.status, error_code(&none).as_str()), (401, "UNAUTHORIZED"));
    assert!(none.head.to_lowercase().contains("www-authenticate: bearer"), "{}", none.head);
    let last = if team.admin.ends_with('x') { 'y' } else { 'x' };
    let forged = format!("{}{last}", &team.admin[..team.admin.len() - 1]);
    for bad in [forged.as_str(), "tnm_", "x"] {
        let refused = send_as(&server, bad, "GET", "shop/feed", &[], &Value::Null);
        assert_eq!((refused.status, error_code(&refused).as_str()), (401, "UNAUTHORIZED"), "{bad}");
    }
    let bob = team.token("bob", "member");
    assert_eq!(send_as(&server, &bob, "GET", "shop/feed", &[], &Value::Null).status, 200);
    let revoked = team.run(&["team", "token", "revoke", "--project-name", "shop", "--person", "bob"]);
    assert_eq!(revoked, json!({"person": "bob", "revoked": 1}));
    let limit = std::time::Instant::now() + std::time::Duration::from_secs(5);
    while send_as(&server, &bob, "GET", "shop/feed", &[], &Value::Null).status == 200 {
        assert!(std::time::Instant::now() < limit, "a revoked token still works after 5 seconds");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let zh = send_as(&server, "x", "GET", "shop/feed", &[("Accept-Language", "zh")], &Value::Null);
    assert!(zh.body.contains("令牌"), "{}", zh.body);
}

#[test]
fn foreign_project_is_refused_in_every_place() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let workspace = create_workspace(&server, "create-1");
    let eve = team.setup("other", "eve");
    for project in ["shop", "no-such-project"] {
        let refused = send_as(&server, &eve, "GET", &format!("{project}/feed"), &[], &Value::Null);
        assert_eq!((refused.status, error_code(&refused).as_str()), (404, "PROJECT_NOT_FOUND"), "{project}");
    }
    let expect = |refused: crate::serve::Response, code: &str| {
        assert_eq!((refused.status, error_code(&refused).as_str()), (404, code), "{}", refused.body);
    };
    let body = run_body("task-0001", &workspace, create_task("Steal"));
    expect(send_as(&server, &eve, "POST", "other/run", &[], &body), "WORKSPACE_NOT_FOUND");
    let delete = json!({"command": "delete_workspace", "workspaceId": workspace});
    let body = json!({"key": "key-delete-1", "command": delete, "operator": "AI"});
    expect(send_as(&server, &eve, "POST", "other/run", &[], &body), "WORKSPACE_NOT_FOUND");
    let path = format!("other/snapshot?stream={workspace}");
    expect(send_as(&server, &eve, "GET", &path, &[], &Value::Null), "WORKSPACE_NOT_FOUND");
    let path = format!("other/feed?have={workspace}:0");
    let page = send_as(&server, &eve, "GET", &path, &[], &Value::Null);
    let page: Value = serde_json::from_str(&page.body).unwrap();
    assert_eq!((&page["changes"], &page["heads"]), (&json!([]), &json!({})));
    let page = send_as(&server, &eve, "GET", "other/request/key-create-1", &[], &Value::Null);
    assert_eq!(page.body, json!({"committed": false}).to_string());
    assert_eq!(ok(&server, "GET", "feed", &Value::Null)["heads"], json!({&workspace: 0}));
}

#[test]
fn request_malformed_or_beyond_role_is_refused() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let workspace = create_workspace(&server, "create-1");
    let reader = team.token("rita", "reader");
    let body = run_body("task-0001", &workspace, create_task("Build"));
    let refused = send_as(&server, &reader, "POST", "shop/run", &[], &body);
    assert_eq!((refused.status, error_code(&refused).as_str()), (403, "FORBIDDEN"));
    let beat = send_as(&server, &reader, "POST", "shop/beat", &[], &json!({"sessions": ["s"]}));
    let beat: Value = serde_json::from_str(&beat.body).unwrap();
    assert_eq!(beat["lost"], json!(["s"]), "a reader has no sessions");
    let with = |change: &dyn Fn(&mut Value)| {
        let mut body = body.clone();
        change(&mut body);
        body
    };
    let cases = [
        (with(&|body| body["command"]["command"] = json!("fly")), "UNKNOWN_COMMAND"),
        (with(&|body| body["command"] = json!(null)), "UNKNOWN_COMMAND"),
        (with(&|body| body["command"]["node"] = json!(7)), "INVALID_ARGUMENT"),
        (with(&|body| body["key"] = json!("short")), "INVALID_ARGUMENT"),
        (with(&|body| body["key"] = json!("key with spaces")), "INVALID_ARGUMENT"),
        (with(&|body| body["session"] = json!("@ada")), "INVALID_ARGUMENT"),
        (with(&|body| body["machine"] = json!("a\nb")), "INVALID_ARGUMENT"),
        (with(&|body| body["stream"] = json!("../etc")), "INVALID_ARGUMENT"),
        (with(&|body| body["command"]["node"]["parentId"] = json!("node-none")), "NODE_NOT_FOUND"),
        (with(&|body| body["command"]["node"]["title"] = json!("")), "INVALID_ARGUMENT"),
        (json!([]), "INVALID_ARGUMENT"),
    ];
    for (body, code) in cases {
        let refused = send_as(&server, &team.admin, "POST", "shop/run", &[], &body);
        assert!((400..500).contains(&refused.status), "{body}: {} {}", refused.status, refused.body);
        assert_eq!(error_code(&refused), code, "{body}: {}", refused.body);
    }
    for path in [
        "feed?have=x",
        "feed?have=ws-a:-1",
        "feed?wait=x",
        "feed?no=1",
        "snapshot",
        "snapshot?stream=x&limit=y",
    ] {
        let refused = send_as(&server, &team.admin, "GET", &format!("shop/{path}"), &[], &Value::Null);
        assert_eq!((refused.status, error_code(&refused).as_str()), (400, "INVALID_ARGUMENT"), "{path}");
    }
    let large = json!({"key": "k".repeat(3 << 20)});
    assert_eq!(send_as(&server, &team.admin, "POST", "shop/run", &[], &large).status, 413);
    assert_eq!(ok(&server, "GET", "feed", &Value::Null)["heads"], json!({&workspace: 0}), "nothing changed");
}

#[test]
fn database_away_or_unfit_makes_server_unready_and_requests_retryable() {
    let Some(mut team) = Team::new() else { return };
    let server = team.serve();
    let workspace = create_workspace(&server, "create-1");
    let ready =
        |server: &crate::serve::Server| server.send_with_headers("GET", "/readyz", &[("Host", "team")], "");
    let body = run_body("task-0001", &workspace, create_task("Build"));
    assert_eq!(ready(&server).status, 200);
    let unready = |sql: &str, repair: &str, needle: &str| {
        team.cluster.sql(sql).unwrap();
        let response = ready(&server);
        assert_eq!(response.status, 503, "{sql}: {}", response.body);
        assert!(response.body.contains(needle), "{sql}: {}", response.body);
        team.cluster.sql(repair).unwrap();
    };
    unready("ALTER ROLE tanmi_app BYPASSRLS", "ALTER ROLE tanmi_app NOBYPASSRLS", "row-level security");
    unready(
        "UPDATE schema_version SET version = version - 1",
        "UPDATE schema_version SET version = version + 1",
        "tanmi team setup",
    );
    unready(
        "UPDATE schema_version SET oldest = 99",
        "UPDATE schema_version SET oldest = 1",
        "update the program",
    );
    assert_eq!(ready(&server).status, 200);
    team.cluster.shut_down().unwrap();
    let away = send_as(&server, &team.admin, "POST", "shop/run", &[], &body);
    assert_eq!((away.status, error_code(&away).as_str()), (503, "DATABASE_AWAY"), "{}", away.body);
    assert!(away.head.to_lowercase().contains("retry-after:"), "{}", away.head);
    assert_eq!(ready(&server).status, 503);
    assert_eq!(server.send_with_headers("GET", "/healthz", &[("Host", "team")], "").status, 200);
    team.cluster.resume().unwrap();
    assert_eq!(ok(&server, "POST", "run", &body)["seq"], 1, "the same request succeeds afterwards");
}

#[test]
fn serve_and_team_commands_name_what_is_missing() {
    let env = crate::env::TestEnv::new();
    let serve = env.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(serve.stderr.contains("TANMI_DATABASE_URL"), "{}", serve.stderr);
    let serve = env.run(&["serve", "--database", "postgres://x@localhost/x", "--listen", "0.0.0.0:0"]);
    assert!(serve.stderr.contains("without TLS"), "{}", serve.stderr);
    let serve = env.run(&["serve", "--database", "postgres://x:secret@localhost/x", "--listen", "0.0.0.0:0"]);
    assert!(serve.stderr.contains("can see a password"), "{}", serve.stderr);
    assert!(!serve.stderr.contains("secret"), "{}", serve.stderr);
    let setup = env.run(&["team", "setup", "--team", "a", "--project-name", "b", "--admin", "c"]);
    assert!(setup.stderr.contains("TANMI_DATABASE_URL"), "{}", setup.stderr);
}

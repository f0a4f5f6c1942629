//! No secret of a team is in a log, an error, an answer or a list of processes.

use std::io::Read;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::machines::{address, token_file};
use super::operations::{LoggedServer, get};
use super::{Team, create_workspace, send_as, write_file};

/// Returns the command lines of all processes, which every user of the machine can read.
fn command_lines() -> String {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " ")).collect::<Vec<_>>().join("\n")
}

/// Returns the address of a proxy that answers nothing, and what it got.
fn silent_proxy() -> (String, Arc<Mutex<String>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let got: Arc<Mutex<String>> = Arc::default();
    let seen = got.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut part = [0; 4096];
            let count = stream.read(&mut part).unwrap_or(0);
            seen.lock().unwrap().push_str(&String::from_utf8_lossy(&part[..count]));
        }
    });
    (address, got)
}

#[test]
fn token_is_not_sent_to_proxy_of_the_environment() {
    let Some(team) = Team::new() else { return };
    let server = team.serve();
    let (proxy, got) = silent_proxy();
    let (url, file) = (address(&server), token_file(&team.env, &team.admin));
    let login = ["team", "login", "--url", &url, "--token-file", &file];
    let join = ["team", "join", &url, "--project-name", "shop", "--token-file", &file];
    for args in [&login[..], &join] {
        let mut command = team.env.command(args);
        for name in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            command.env(name, &proxy);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(*got.lock().unwrap(), "");
}

#[test]
fn secrets_are_in_no_log_error_or_process_list() {
    let Some(mut team) = Team::new() else { return };
    let password = "hunter2-of-the-database";
    team.cluster.sql(&format!("ALTER ROLE tanmi PASSWORD '{password}'")).unwrap();
    let passfile = team.env.root().join("passfile");
    write_file(&passfile, format!("*:*:*:*:{password}\n")).unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&passfile, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let logged = LoggedServer::start_with(
        &team,
        "one",
        &["--log-level", "debug"],
        &[("PGPASSFILE", passfile.to_str().unwrap())],
    );
    let server = &logged.server;
    create_workspace(server, "create-1");
    let bob = team.token("bob", "member");
    let file = team.env.root().join("token");
    write_file(&file, &bob).unwrap();
    let login = ["team", "login", "--url", &server.link, "--token-file", file.to_str().unwrap()];
    let link = team.env.run(&login).stdout;
    let ticket = link.split_once("ticket=").unwrap().1.trim().to_owned();
    let opened = server.send_with_headers(
        "GET",
        &format!("/page/shop/login?ticket={ticket}"),
        &[("Host", "team")],
        "",
    );
    let cookie = opened.header("set-cookie").unwrap().split([';', '=']).nth(1).unwrap().to_owned();
    let mut seen = Vec::new();
    // A secret in a wrong place: the path, the query, another header.
    for path in [format!("/page/{bob}/x"), format!("/api/v1/workspaces?project={bob}"), format!("/{bob}")] {
        let answer = get(server, &bob, &path);
        seen.push(logged.text());
        assert!(answer.status >= 400, "{path}");
    }
    let wrong = format!("{bob}x");
    seen.push(get(server, &wrong, "/api/v1/workspaces").body);
    seen.push(send_as(server, &bob, "GET", "shop/feed", &[("X-Request-Id", &bob)], &Value::Null).body);
    write_file(&file, &wrong).unwrap();
    let refused = team.env.run(&login);
    seen.extend([refused.stdout, refused.stderr, command_lines()]);
    team.cluster.shut_down().unwrap();
    let away = get(server, &bob, "/api/v1/trash?project=shop");
    seen.extend([away.head, away.body, get(server, "", "/readyz").body]);
    let setup = team.env.run(&[
        "team",
        "token",
        "create",
        "--person",
        "x",
        "--role",
        "reader",
        "--database",
        &format!("postgres://tanmi:{password}@127.0.0.1:1/tanmi"),
    ]);
    seen.extend([setup.stdout, setup.stderr, logged.text()]);
    for (n, text) in seen.iter().enumerate() {
        for secret in [team.admin.as_str(), &bob, &ticket, &cookie, password] {
            assert!(!text.contains(secret), "{n}: {secret} in {text}");
        }
    }
    assert!(logged.text().lines().count() > 5, "{}", logged.text());
}

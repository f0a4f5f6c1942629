//! `tanmi serve`

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use tanmi_app::Env;
use tanmi_base::{Lang, clock};
use tanmi_server::http::instance::{AcquireOutcome, InstanceLock, ServeInfo, write_opener};
use tanmi_server::http::{self, RunningServer};

use super::serve_team;
use crate::cli::ServeArgs;
use crate::out;

pub fn run(env: Env, args: &ServeArgs, json: bool) -> ExitCode {
    if args.database.is_some() || args.listen.is_some() {
        return serve_team::run(env, args, json);
    }
    let app = tanmi_app::App::new(env.clone());
    let (lang, home, project) = (app.lang(), env.home.clone(), app.project().to_owned());
    for warning in &app.config().warnings {
        out::note(&warning.message(lang));
    }
    let outcome = match InstanceLock::acquire(&env.home, clock::now()) {
        Err(error) => Err(format!("{}: {error}", env.home.join("serve.lock").display())),
        Ok(AcquireOutcome::Acquired(instance)) => {
            if let Err(error) = tanmi_app::follow::start(&app) {
                out::note(&error.to_string());
            }
            let on_ready = |server: RunningServer<'_>| announce(&home, &server, args, json, lang);
            http::run(env, args.port.unwrap_or(0), instance, on_ready)
                .map_err(|error| failure_reason(args.port, &error, lang))
        }
        Ok(AcquireOutcome::Running(info)) => reuse_server(&home, &info, &project, args, json, lang),
        Ok(AcquireOutcome::Starting) => Err(lang
            .pick(
                "另一个 tanmi serve 正在启动；稍后再试",
                "another tanmi serve is starting; try again in a moment",
            )
            .to_owned()),
    };
    report(outcome, json, lang)
}

pub(super) fn report(outcome: Result<(), String>, json: bool, lang: Lang) -> ExitCode {
    let Err(reason) = outcome else { return ExitCode::SUCCESS };
    if json {
        out::json_error("SERVE", &reason);
    } else {
        out::labelled(out::RED.bold(), "错误", "error", &reason, lang);
    }
    ExitCode::FAILURE
}

pub(super) fn failure_reason(port: Option<u16>, error: &std::io::Error, lang: Lang) -> String {
    match port {
        Some(port) if error.kind() == std::io::ErrorKind::AddrInUse => lang.pick(
            format!("端口 {port} 已被占用；请换一个端口，或省略 --port 以使用空闲端口"),
            format!("port {port} is already in use; choose another, or omit --port to use a free one"),
        ),
        _ => error.to_string(),
    }
}

/// Prints the address of the new server and opens the page.
fn announce(home: &Path, server: &RunningServer<'_>, args: &ServeArgs, json: bool, lang: Lang) {
    let Some(info) = server.instance.info() else { return };
    print_server(info, &server.create_link(), true, json, lang);
    if !args.no_open {
        open_browser(home, || Some(server.create_link()), lang);
    }
}

/// Requests a link from the running server instead of starting a second one.
fn reuse_server(
    home: &Path,
    info: &ServeInfo,
    project: &Path,
    args: &ServeArgs,
    json: bool,
    lang: Lang,
) -> Result<(), String> {
    let Some(link) = info.request_link(project) else {
        let (url, pid) = (&info.url, info.pid);
        return Err(lang.pick(
            format!("位于 {url} 的服务（进程 {pid}）没有响应"),
            format!("the server at {url} (process {pid}) does not respond"),
        ));
    };
    print_server(info, &link, false, json, lang);
    if !args.no_open {
        open_browser(home, || info.request_link(project), lang);
    }
    Ok(())
}

fn print_server(info: &ServeInfo, link: &str, is_new: bool, json: bool, lang: Lang) {
    let (url, pid) = (&info.url, info.pid);
    if json {
        let started = info.started_at;
        out::json(&json!({
            "url": url, "link": link, "pid": pid, "started": is_new, "startedAt": started, "project": info.project,
        }));
        return;
    }
    let first = if is_new {
        lang.pick(format!("正在 {url} 提供服务"), format!("serving at {url}"))
    } else {
        lang.pick(
            format!("已在 {url} 运行（进程 {pid}）"),
            format!("already running at {url} (process {pid})"),
        )
    };
    let once = lang.pick("打开页面（链接只能使用一次）：", "open the page (this link works once):");
    out::text(&format!("{first}\n{once}\n  {link}\n"));
    if is_new {
        out::note(lang.pick("按 Ctrl-C 停止", "press Ctrl-C to stop"));
    }
}

/// Opens the page in a browser, with a second link: a link works once, and the printed one is for the user.
pub(super) fn open_browser(home: &Path, link: impl FnOnce() -> Option<String>, lang: Lang) {
    let path = link().and_then(|link| write_opener(home, &link).ok());
    if path.is_none_or(|path| open::that_detached(path).is_err()) {
        let (zh, en) =
            ("无法打开浏览器；请手动打开上面的链接", "could not open a browser; open the link above");
        out::note(lang.pick(zh, en));
    }
}

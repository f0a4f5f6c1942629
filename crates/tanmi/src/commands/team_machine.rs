//! `tanmi team join` and the other commands of a machine of a team.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use serde_json::json;
use tanmi_app::Error;
use tanmi_app::team::{JoinOffer, JoinRequest, JoinResult, LeaveResult, PushResult, SyncResult, TeamStatus};
use tanmi_base::{Lang, Millis};

use super::{CommandContext, Result, confirm, file_or_stdin, team_outbox};
use crate::cli::{JoinArgs, MachineCommand};
use crate::{env, out};

/// The longest token that is read.
const MAX_TOKEN: u64 = 4096;

pub fn run(context: &CommandContext, command: MachineCommand) -> Result {
    match command {
        MachineCommand::Join(args) => join(context, args),
        MachineCommand::Push(args) => push(context, args),
        MachineCommand::Leave { discard, yes } => leave(context, discard, yes),
        MachineCommand::Sync { check } => {
            let lang = context.app.lang();
            let result = context.app.team.sync(check, &mut show_progress(lang))?;
            warn_kept(&result.kept, lang);
            context.print_result(&result, |result| synced_text(result, lang));
            Ok(())
        }
        MachineCommand::Status => {
            let (status, now, lang) = (context.app.team.status()?, context.app.now(), context.app.lang());
            context.print_result(&status, |status| status_text(status, now, lang));
            Ok(())
        }
        MachineCommand::Outbox(command) => team_outbox::run(context, command),
    }
}

/// Returns a function that tells on standard error how many parts are done, where that is a terminal.
fn show_progress(lang: Lang) -> impl FnMut(usize) {
    let is_shown = std::io::stderr().is_terminal();
    let mut shown = 0;
    move |done| {
        if is_shown && done / 100 > shown {
            shown = done / 100;
            let text = lang.pick(format!("已完成 {done} 项"), format!("{done} done"));
            out::labelled(out::YELLOW, "进度", "progress", &text, lang);
        }
    }
}

fn warn_kept(kept: &[PathBuf], lang: Lang) {
    for path in kept {
        let path = path.display();
        let text = lang.pick(
            format!("副本中手工编辑的文字保留在 {path}"),
            format!("a text that was edited by hand in the replica is kept in {path}"),
        );
        out::labelled(out::YELLOW, "警告", "warning", &text, lang);
    }
}

fn push(context: &CommandContext, args: JoinArgs) -> Result {
    let lang = context.app.lang();
    let Some(request) = join_request(context, args)? else { return Ok(()) };
    let result = context.app.team.push(request, &mut show_progress(lang))?;
    context.print_result(&result, |result| {
        let PushResult { joined, pushed, lines, trash, .. } = result;
        let trash = trash.display();
        let moved = lang.pick(
            format!("已移到服务器：{pushed} 个工作区，{lines} 条记忆；本地文件在 {trash} 至少保留 30 天\n"),
            format!(
                "Moved to the server: {pushed} workspaces, {lines} memories; the local files are in {trash} for \
                 at least 30 days\n"
            ),
        );
        moved + &joined_text(joined, lang)
    });
    Ok(())
}

fn leave(context: &CommandContext, discard: bool, yes: bool) -> Result {
    let lang = context.app.lang();
    let JoinOffer { server, project } = context.app.team.joined_project()?;
    let question = lang.pick(
        format!("离开 {server} 的项目 {project}，并把工作区和记忆写回此文件夹？"),
        format!(
            "Leave the project {project} on {server} and write its workspaces and memory into this folder?"
        ),
    );
    if !yes && !confirm(&question, || json!({"server": server, "project": project}))? {
        return Ok(());
    }
    let result = context.app.team.leave(discard, &mut show_progress(lang))?;
    if let Some(reason) = result.unfetched.as_ref().filter(|_| !context.json) {
        let zh = format!("没有取得最新状态，使用了本机的副本：{reason}");
        let en = format!("the latest state was not fetched; the copy of this machine was used: {reason}");
        out::labelled(out::YELLOW, "警告", "warning", &lang.pick(zh, en), lang);
    }
    context.print_result(&result, |result| {
        let LeaveResult { server, project, workspaces, lines, .. } = result;
        let folder = result.folder.display();
        lang.pick(
            format!("{folder} 已离开 {server} 的项目 {project}：写回 {workspaces} 个工作区和 {lines} 条记忆\n"),
            format!(
                "{folder} left the project {project} on {server}: {workspaces} workspaces and {lines} memories \
                 were written back\n"
            ),
        )
    });
    Ok(())
}

fn join(context: &CommandContext, args: JoinArgs) -> Result {
    let lang = context.app.lang();
    let Some(request) = join_request(context, args)? else { return Ok(()) };
    let result = context.app.team.join(request)?;
    if let Some(reason) = result.unfetched.as_ref().filter(|_| !context.json) {
        let zh = format!("尚未取得工作区：{reason}；稍后运行 `tanmi team sync`");
        let en = format!("the workspaces were not fetched: {reason}; run `tanmi team sync` later");
        out::labelled(out::YELLOW, "警告", "warning", &lang.pick(zh, en), lang);
    }
    context.print_result(&result, |result| joined_text(result, lang));
    Ok(())
}

/// Returns what the user joins; `None` if the user declined what `.tanmi/team.json` names.
fn join_request(context: &CommandContext, args: JoinArgs) -> Result<Option<JoinRequest>> {
    let lang = context.app.lang();
    let JoinOffer { server, project } = match (args.url, args.project_name) {
        (Some(server), Some(project)) => JoinOffer { server, project },
        (Some(_), None) => return Err(missing("--project-name", lang)),
        (None, _) => {
            let offer = context.app.team.offer()?.ok_or_else(|| missing("URL", lang))?;
            let question = lang.pick(
                format!(".tanmi/team.json 指定了 {} 的项目 {}。加入？", offer.server, offer.project),
                format!(".tanmi/team.json names the project {} on {}. Join it?", offer.project, offer.server),
            );
            if !args.yes && !confirm(&question, || json!(offer))? {
                return Ok(None);
            }
            offer
        }
    };
    Ok(Some(JoinRequest {
        server,
        project,
        token: read_token(&args.token_file)?,
        ca: args.ca.map(|ca| certificates(ca, lang)).transpose()?,
        machine: args.machine.unwrap_or_else(env::machine_name),
    }))
}

/// Returns the absolute path of the certificates that the user names.
fn certificates(file: PathBuf, lang: Lang) -> Result<PathBuf> {
    let path = std::path::absolute(&file).unwrap_or(file);
    if path.is_file() {
        return Ok(path);
    }
    let expected = lang.pick("已存在的 PEM 文件", "an existing PEM file").to_owned();
    Err(Error::BadValue { key: "--ca", value: path.display().to_string(), expected })
}

fn missing(what: &'static str, lang: Lang) -> Error {
    let expected = match what {
        "URL" => lang.pick(
            "tanmi team join URL；此文件夹没有 .tanmi/team.json",
            "tanmi team join URL; this folder has no .tanmi/team.json",
        ),
        _ => lang.pick("项目在服务器上的名称", "the name of the project on the server"),
    };
    Error::BadValue { key: what, value: String::new(), expected: expected.to_owned() }
}

/// Reads a token from a file or standard input. It is never an argument, which other users of the machine could see.
fn read_token(file: &Path) -> Result<String> {
    let bytes = file_or_stdin(file, MAX_TOKEN)?;
    let token = String::from_utf8(bytes).unwrap_or_default().trim().to_owned();
    let is_token = token.starts_with("tnm_") && token.chars().all(|c| c.is_ascii_graphic());
    match is_token {
        true => Ok(token),
        false => Err(Error::BadValue {
            key: "--token-file",
            value: file.display().to_string(),
            expected: String::from("FILE: tnm_…"),
        }),
    }
}

fn joined_text(result: &JoinResult, lang: Lang) -> String {
    let JoinResult { server, project, person, role, machine, workspaces, .. } = result;
    let folder = result.folder.display();
    lang.pick(
        format!(
            "{folder} 已加入 {server} 的项目 {project}：{person}（{role}），机器 {machine}，{workspaces} 个工作区\n\
             共享：工作区、事实（W、B）和摘要。\n\
             只在本机：偏好（O）、用户记忆、会话记录、会话，以及 .tanmi/ 中的规则和设置。\n\
             接下来：重新启动此文件夹中的智能体，然后运行 `tanmi status`\n"
        ),
        format!(
            "{folder} joined the project {project} on {server}: {person} ({role}) on {machine}, \
             workspaces: {workspaces}\n\
             Shared: workspaces, facts (W, B) and summaries.\n\
             Only on this machine: preferences (O), memory of the user, transcripts, sessions, and the rules and \
             settings in .tanmi/.\n\
             Next: restart agents that run in this folder, then `tanmi status`\n"
        ),
    )
}

fn synced_text(result: &SyncResult, lang: Lang) -> String {
    let SyncResult { workspaces, changes, fetched, removed, delivered, different, .. } = result;
    let mut text = lang.pick(
        format!("{workspaces} 个工作区已是最新：{changes} 个更改，取得 {fetched} 个，移除 {removed} 个\n"),
        format!(
            "up to date; workspaces: {workspaces}, changes: {changes}, fetched: {fetched}, removed: {removed}\n"
        ),
    );
    if *delivered > 0 {
        text.push_str(&lang.pick(
            format!("已发送 {delivered} 次等待的写入\n"),
            format!("queued writes delivered: {delivered}\n"),
        ));
    }
    if let Some(different) = different {
        text += &lang.pick(
            format!("与服务器不同、已替换的文档：{}\n", different.len()),
            format!("documents that differed from the server and were replaced: {}\n", different.len()),
        );
        different.iter().for_each(|name| text += &format!("  {name}\n"));
    }
    text
}

fn status_text(status: &TeamStatus, now: Millis, lang: Lang) -> String {
    let TeamStatus { server, project, person, machine, role, outbox, .. } = status;
    let role = role.as_ref().map(|role| format!(" ({role})")).unwrap_or_default();
    let connection = match (&status.trouble, status.behind) {
        (Some(trouble), _) => trouble.clone(),
        (None, Some(0)) => lang.pick("可用，副本已是最新", "available, the replica is up to date").to_owned(),
        (None, behind) => {
            let behind = behind.unwrap_or_default();
            lang.pick(
                format!("可用，{behind} 个工作区有更新（`tanmi team sync`）"),
                format!("available, workspaces with newer changes: {behind} (`tanmi team sync`)"),
            )
        }
    };
    let contact = match status.contact_at.map(|at| (now - at).max(0) / 1000) {
        Some(seconds) => lang.pick(format!("{seconds} 秒前"), format!("{seconds} s ago")),
        None => lang.pick("从未", "never").to_owned(),
    };
    let (count, kib) = (status.positions.len(), status.replica_bytes.div_ceil(1024));
    let place = status.replica.display();
    let replica = lang.pick(
        format!("{count} 个工作区，{kib} KiB，{place}"),
        format!("workspaces: {count}, {kib} KiB, {place}"),
    );
    let mut lines = vec![
        (lang.pick("服务器", "server"), server.clone()),
        (lang.pick("项目", "project"), project.clone()),
        (lang.pick("人员", "person"), format!("{person}{role} · {machine}")),
        (lang.pick("连接", "connection"), connection),
        (lang.pick("上次联系", "last contact"), contact),
        (lang.pick("副本", "replica"), replica),
        (lang.pick("待送达", "outbox"), outbox.to_string()),
    ];
    if status.skew_ms.abs() >= 60_000 {
        lines.push((lang.pick("时钟偏差", "clock skew"), format!("{} s", status.skew_ms / 1000)));
    }
    let hint = lang
        .pick("不会发送；`tanmi team sync --check` 恢复", "not sent; `tanmi team sync --check` restores it");
    let edited = status.edited.iter().map(|name| format!("{name} ({hint})"));
    lines.extend(edited.map(|text| (lang.pick("手工编辑", "edited by hand"), text)));
    let kept = status.kept.iter().map(|path| path.display().to_string());
    lines.extend(kept.map(|text| (lang.pick("保留的编辑", "kept edit"), text)));
    let line = |(name, text): (&str, String)| format!("{name}{}{text}\n", lang.pick("：", ": "));
    lines.into_iter().map(line).collect()
}

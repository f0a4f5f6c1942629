//! `tanmi team join` and the other commands of a machine of a team.

use std::path::Path;

use serde_json::json;
use tanmi_app::Error;
use tanmi_app::team::{JoinOffer, JoinRequest, JoinResult, SyncResult};
use tanmi_base::Lang;

use super::{CommandContext, Result, confirm, file_or_stdin, team_outbox};
use crate::cli::{JoinArgs, MachineCommand};
use crate::{env, out};

/// The longest token that is read.
const MAX_TOKEN: u64 = 4096;

pub fn run(context: &CommandContext, command: MachineCommand) -> Result {
    match command {
        MachineCommand::Join(args) => join(context, args),
        MachineCommand::Sync => {
            let result = context.app.team.sync(&mut |_| {})?;
            context.print_result(&result, |result| synced_text(result, context.app.lang()));
            Ok(())
        }
        MachineCommand::Outbox(command) => team_outbox::run(context, command),
    }
}

fn join(context: &CommandContext, args: JoinArgs) -> Result {
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
                return Ok(());
            }
            offer
        }
    };
    let request = JoinRequest {
        server,
        project,
        token: read_token(&args.token_file)?,
        ca: args.ca.map(|ca| std::path::absolute(&ca).unwrap_or(ca)),
        machine: args.machine.unwrap_or_else(env::machine_name),
    };
    let result = context.app.team.join(request)?;
    if let Some(reason) = result.unfetched.as_ref().filter(|_| !context.json) {
        let zh = format!("尚未取得工作区：{reason}；稍后运行 `tanmi team sync`");
        let en = format!("the workspaces were not fetched: {reason}; run `tanmi team sync` later");
        out::labelled(out::YELLOW, "警告", "warning", &lang.pick(zh, en), lang);
    }
    context.print_result(&result, |result| joined_text(result, lang));
    Ok(())
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
            value: String::new(),
            expected: String::from("tnm_…"),
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
             {workspaces} workspaces\n\
             Shared: workspaces, facts (W, B) and summaries.\n\
             Only on this machine: preferences (O), memory of the user, transcripts, sessions, and the rules and \
             settings in .tanmi/.\n\
             Next: restart agents that run in this folder, then `tanmi status`\n"
        ),
    )
}

fn synced_text(result: &SyncResult, lang: Lang) -> String {
    let SyncResult { workspaces, changes, fetched, removed, delivered, .. } = result;
    let mut text = lang.pick(
        format!("{workspaces} 个工作区已是最新：{changes} 个更改，取得 {fetched} 个，移除 {removed} 个\n"),
        format!("{workspaces} workspaces are up to date: {changes} changes, {fetched} fetched, {removed} removed\n"),
    );
    if *delivered > 0 {
        text.push_str(&lang.pick(
            format!("已发送 {delivered} 次等待的写入\n"),
            format!("{delivered} queued writes delivered\n"),
        ));
    }
    text
}

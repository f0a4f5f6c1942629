//! `tanmi context`

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tanmi_app::Error;
use tanmi_app::events::parse_platform;
use tanmi_base::Lang;
use tanmi_base::fs::{self, Durability};
use tanmi_install::context::{self, BuildManifest, Notice, ProvisionOptions, ProvisionReport};

use super::{CommandContext, Result};
use crate::cli::{ContextCommand, ProvisionArgs};
use crate::out::progress::ProgressBar;
use crate::show;

pub fn run(context: &CommandContext, command: ContextCommand) -> Result {
    match command {
        ContextCommand::Show { platform, agent, session, user, root, container, text } => {
            let folder = user.map(|user| user_folder(&root, &user, context.app.lang())).transpose()?;
            let mount = (folder.as_deref(), container.trim_end_matches('/'));
            // The container of a provisioned user has sessions of its own.
            let session = match folder {
                Some(_) => None,
                None => context.caller_session(session.as_deref())?,
            };
            show(context, &platform, agent.as_deref(), session.as_deref(), mount, text)
        }
        ContextCommand::Build { check } => build(context, check),
        ContextCommand::Provision(args) => provision(context, &args),
    }
}

fn user_folder(root: &Path, user: &str, lang: Lang) -> Result<PathBuf> {
    context::check_user(user).map_err(|(zh, en)| Error::BadValue {
        key: "--user",
        value: user.to_owned(),
        expected: lang.pick(zh, en).to_owned(),
    })?;
    let folder = root.join(format!("user_{user}")).join("data");
    folder.canonicalize().map_err(Error::io(folder))
}

fn show(
    context: &CommandContext,
    platform: &str,
    agent: Option<&str>,
    session: Option<&str>,
    (folder, container): (Option<&Path>, &str),
    text: bool,
) -> Result {
    let app = &context.app;
    let platform = parse_platform("--platform", platform)?;
    let (declaration, explained) =
        app.rules.declared_context(platform, agent, session, folder.map(|folder| (folder, container)));
    let lang = app.lang();
    let value = show::context::json(&declaration, &explained, text);
    context
        .print_result(&value, |_| show::context::tree(platform, agent, &declaration, &explained, text, lang));
    Ok(())
}

fn build(context: &CommandContext, check: bool) -> Result {
    let base = context.app.project();
    let lang = context.app.lang();
    let manifest = BuildManifest::load_in(base).map_err(|notice| bad_file(&notice))?;
    let built = context::build(base, &manifest, lang).map_err(|mut notice| {
        if notice.line > 0 {
            notice.reason.zh.push_str("；然后运行 `tanmi context build`");
            notice.reason.en.push_str("; then run `tanmi context build`");
        }
        bad_file(&notice)
    })?;
    let is_current = built.is_current();
    if check && !is_current {
        context.failed.set(true);
    }
    if !check && !is_current {
        let dir = built.path.parent().unwrap_or(base).to_owned();
        std::fs::create_dir_all(&dir).map_err(Error::io(&dir))?;
        fs::write_atomic(&built.path, built.text.as_bytes(), &dir, Durability::Synced)
            .map_err(Error::io(&built.path))?;
    }
    let value = json!({
        "path": built.path, "current": is_current, "written": !check && !is_current, "bytes": built.text.len(),
        "agents": built.agents, "skills": built.skills, "commands": built.commands, "remarks": built.notices,
    });
    context.print_result(&value, |_| show::context::built(&built, check, lang));
    Ok(())
}

fn bad_file(notice: &Notice) -> Error {
    Error::BadFile { path: notice.path.clone().into(), line: notice.line, reason: notice.reason.clone() }
}

fn provision(context: &CommandContext, args: &ProvisionArgs) -> Result {
    let lang = context.app.lang();
    let users = match args.all {
        true => context::users(&args.root).map_err(super::install::to_app_error)?,
        false => args.users.clone(),
    };
    if users.is_empty() && args.all {
        let value = args.root.display().to_string();
        let expected =
            lang.pick("包含 user_ID 的文件夹", "a folder that contains user_ID folders").to_owned();
        return Err(Error::BadValue { key: "--root", value, expected });
    }
    if users.is_empty() {
        return Err(Error::BadValue {
            key: "--user",
            value: String::new(),
            expected: lang.pick("--user ID 或 --all", "--user ID or --all").to_owned(),
        });
    }
    let options = ProvisionOptions {
        root: args.root.clone(),
        extensions: args.extensions.clone(),
        manifest: args.manifest.clone(),
        program: args.tanmi_path.clone(),
        container: args.container.trim_end_matches('/').to_owned(),
        lang,
        dry_run: args.dry_run,
    };
    // An invalid manifest is reported once, before any user is provisioned.
    if let Some(path) = &options.manifest {
        BuildManifest::load(path).map_err(|notice| bad_file(&notice))?;
    }
    if let Some(extensions) = options.extensions.as_ref().filter(|dir| !dir.is_dir()) {
        let error =
            std::io::Error::new(std::io::ErrorKind::NotFound, lang.pick("不是文件夹", "not a folder"));
        return Err(Error::io(extensions)(error));
    }
    let mut progress = ProgressBar::new(lang.pick("用户", "users"));
    let total = users.len() as u64;
    let mut reports: Vec<ProvisionReport> = Vec::new();
    for (done, user) in users.iter().enumerate() {
        reports.push(context::provision(&options, user));
        progress.show(done as u64 + 1, total);
    }
    progress.end();
    if reports.iter().any(|report| !report.problems.is_empty()) {
        context.failed.set(true);
    }
    let value: Value = json!({"dryRun": args.dry_run, "users": reports});
    context.print_result(&value, |_| show::context::provisioned(&reports, args.dry_run, lang));
    Ok(())
}

//! `tanmi install` and `tanmi uninstall`

use std::path::PathBuf;

use serde_json::{Value, json};
use tanmi_app::Error;
use tanmi_app::registry::Registry;
use tanmi_base::paths::{self, CONFIG_DIR, STORE_DIR};
use tanmi_base::{Lang, fs};
use tanmi_install::{AppliedChange, ChangeOutcome, Folders, InstallOptions, PlannedChange, Receipts};
use tanmi_platform::{CLIENTS, ClientSpec, Scope};

use super::{CommandContext, Result, ask_yes_or_no, can_ask, confirm};
use crate::cli::{InstallArgs, ScopeArg, UninstallArgs};
use crate::{out, show};

impl From<ScopeArg> for Scope {
    fn from(scope: ScopeArg) -> Scope {
        match scope {
            ScopeArg::User => Scope::User,
            ScopeArg::Project => Scope::Project,
        }
    }
}

pub fn folders(context: &CommandContext) -> Result<Folders> {
    let user = paths::user_home().ok_or(Error::NoHome)?;
    // The folder itself, not a project above it, because agents are started in this folder.
    let project = context.app.project().to_owned();
    Ok(Folders::new(user, project, crate::env::path_variable))
}

/// Returns the path of this program that is written into hooks.
pub fn program_path() -> Result<String> {
    let path = crate::env::search_path();
    let found = tanmi_install::find_self(path.as_deref()).map_err(Error::io("tanmi"))?;
    Ok(found.to_string_lossy().into_owned())
}

/// Returns the agents with these names, or the detected agents if there are no names.
fn selected_agents(names: &[String], folders: &Folders) -> Result<Vec<&'static ClientSpec>> {
    if names.is_empty() {
        let path = crate::env::search_path();
        return Ok(CLIENTS.iter().filter(|client| folders.has_client(client, path.as_deref())).collect());
    }
    if names.iter().any(|name| name == "all") {
        return Ok(CLIENTS.iter().collect());
    }
    let named = names.iter().map(|name| {
        let client = CLIENTS.find_platform(name).and_then(|platform| CLIENTS.find(platform));
        let ids: Vec<&str> = CLIENTS.iter().map(ClientSpec::id).chain(["all"]).collect();
        let expected = ids.join(" | ");
        client.ok_or_else(|| Error::BadValue { key: "--platform", value: name.clone(), expected })
    });
    let mut agents: Vec<&'static ClientSpec> = Vec::new();
    for client in named {
        let client = client?;
        if !agents.iter().any(|known| known.id() == client.id()) {
            agents.push(client);
        }
    }
    Ok(agents)
}

/// Returns the scope. The project scope is refused in the home folder, whose files are those of the user scope.
fn scope_of(scope: ScopeArg, folders: &Folders, lang: Lang) -> Result<Scope> {
    let scope = Scope::from(scope);
    if scope == Scope::Project && folders.is_home() {
        let expected = lang.pick("user（这里是你的主目录）", "user (this is your home folder)").to_owned();
        return Err(Error::BadValue { key: "--scope", value: String::from("project"), expected });
    }
    Ok(scope)
}

pub fn install(context: &CommandContext, args: &InstallArgs) -> Result {
    let folders = folders(context)?;
    let lang = context.app.lang();
    let scope = scope_of(args.scope, &folders, lang)?;
    let options = InstallOptions {
        program: program_path()?,
        lang,
        hooks: !args.no_hooks,
        server: !args.no_mcp,
        guide: args.guide,
        status_line: !args.no_status_line,
        allow_tools: args.allow_tools,
        has_tool_rules: false,
    };
    if args.print {
        let agents = match args.agents.platform.is_empty() {
            true => CLIENTS.iter().collect(),
            false => selected_agents(&args.agents.platform, &folders)?,
        };
        return print_snippets(context, &agents, scope, &folders, &options);
    }
    let agents = selected_agents(&args.agents.platform, &folders)?;
    if agents.is_empty() {
        return Err(Error::NoAgents { known: CLIENTS.iter().map(ClientSpec::id).collect() });
    }
    let options =
        InstallOptions { allow_tools: allows_tools(context, args, &agents, scope, &folders), ..options };
    let tool_rules = context.app.rules.tool_rules(scope == Scope::User);
    let mut notes = Vec::new();
    let mut plans = Vec::new();
    for client in &agents {
        let has_tool_rules = tool_rules.needs_hook(client.platform);
        let mut options = InstallOptions { has_tool_rules, ..options.clone() };
        if scope == Scope::Project && has_hooks(client, Scope::User, &folders) {
            // The client would run the hooks of both scopes, and some agents would get every text twice.
            options.hooks = false;
            notes.push(show::install::Note::AlreadyForUser(client));
        }
        plans.extend(
            tanmi_install::target_files(client, scope, &folders, Some(&options))
                .into_iter()
                .map(|target| tanmi_install::plan(target, &options)),
        );
    }
    tanmi_install::check_links(&plans).map_err(to_app_error)?;
    let done = match args.agents.dry_run {
        true => plans.into_iter().map(|planned| AppliedChange { planned, copy: None }).collect(),
        false => tanmi_install::apply(context.app.home(), plans, &options, context.app.now())
            .map_err(to_app_error)?,
    };
    notes.extend(show::install::next(&agents, scope, &done, &folders, args.agents.dry_run));
    if !options.allow_tools && options.server {
        notes.extend(asking_agents(&agents, scope, &folders).map(show::install::Note::AsksForTools));
    }
    report(context, &done, &notes, args.agents.dry_run);
    Ok(())
}

/// Returns the agents that ask before they use our tools, and can be told in this scope not to.
fn asking_agents(
    agents: &[&'static ClientSpec],
    scope: Scope,
    folders: &Folders,
) -> impl Iterator<Item = &'static ClientSpec> {
    let scopes: &[Scope] = if scope == Scope::User { &[Scope::User] } else { &Scope::ALL };
    agents.iter().copied().filter(move |client| client.recipe.allowed_tools.is_some()).filter(move |client| {
        let mut files = scopes.iter().flat_map(|scope| tanmi_install::inspect(client, *scope, folders));
        !files.any(|file| file.allows_tools)
    })
}

/// Returns whether to allow the tools: as the user wants it, who is asked if there is a terminal.
fn allows_tools(
    context: &CommandContext,
    args: &InstallArgs,
    agents: &[&'static ClientSpec],
    scope: Scope,
    folders: &Folders,
) -> bool {
    let is_silent = args.agents.dry_run || args.agents.yes || args.no_mcp || context.json || !can_ask();
    if args.allow_tools || is_silent {
        return args.allow_tools;
    }
    let names: Vec<&str> = asking_agents(agents, scope, folders).map(|client| client.name).collect();
    let names = names.join(", ");
    let question = context.app.lang().pick(
        format!("允许 {names} 不经询问使用 Tanmi 的工具？"),
        format!("Allow {names} to use Tanmi's tools without asking?"),
    );
    !names.is_empty() && ask_yes_or_no(&question) == Some(true)
}

fn has_hooks(client: &'static ClientSpec, scope: Scope, folders: &Folders) -> bool {
    tanmi_install::inspect(client, scope, folders).iter().any(|found| !found.hooks.is_empty())
}

pub fn to_app_error(error: tanmi_install::Error) -> Error {
    match error {
        tanmi_install::Error::Io { path, error } => Error::io(path)(error),
        tanmi_install::Error::Busy => Error::Installing,
        tanmi_install::Error::LeavesProject { link, to } => Error::LinkLeavesProject { link, to },
    }
}

fn report(context: &CommandContext, done: &[AppliedChange], notes: &[show::install::Note], is_dry: bool) {
    let lang = context.app.lang();
    if done.iter().any(|done| matches!(done.planned.outcome, ChangeOutcome::Refused(_))) {
        context.failed.set(true);
    }
    let files: Vec<Value> = done.iter().map(|done| show::install::json(done, is_dry, lang)).collect();
    let texts: Vec<String> = notes.iter().map(|note| note.text(lang)).collect();
    let value = json!({"files": files, "dryRun": is_dry, "next": texts});
    context.print_result(&value, |_| show::install::text(done, &texts, is_dry, lang));
}

fn print_snippets(
    context: &CommandContext,
    agents: &[&'static ClientSpec],
    scope: Scope,
    folders: &Folders,
    options: &InstallOptions,
) -> Result {
    let mut out = Vec::new();
    for client in agents {
        for target in tanmi_install::target_files(client, scope, folders, Some(options)) {
            let text = tanmi_install::snippet(&target, options);
            out.push((client.name, target.path, text));
        }
    }
    let guide = tanmi_install::guide::text(options.lang);
    let files: Vec<Value> =
        out.iter().map(|(name, path, text)| json!({"agent": name, "path": path, "text": text})).collect();
    context.print_result(&json!({"files": files, "guide": guide}), |_| {
        show::install::snippets(&out, guide, options.lang)
    });
    Ok(())
}

pub fn uninstall(context: &CommandContext, args: &UninstallArgs) -> Result {
    let folders = folders(context)?;
    let home = context.app.home();
    let receipts = Receipts::load(home);
    // All agents, because a removed client may have left its files. A purge also deletes the install receipts, so it
    // must uninstall everything first.
    let agents: Vec<&'static ClientSpec> = match args.agents.platform.is_empty() || args.purge {
        true => CLIENTS.iter().collect(),
        false => selected_agents(&args.agents.platform, &folders)?,
    };
    let scopes = match args.scope.filter(|_| !args.purge) {
        Some(scope) => vec![scope_of(scope, &folders, context.app.lang())?],
        None => folders.scopes().to_vec(),
    };
    let mut places: Vec<(Folders, Scope)> = scopes.iter().map(|scope| (folders.clone(), *scope)).collect();
    if args.purge {
        let others = receipts.projects().into_iter().filter(|project| *project != folders.project);
        places.extend(others.map(|project| (Folders { project, ..folders.clone() }, Scope::Project)));
    }
    let mut plans: Vec<PlannedChange> = Vec::new();
    for client in &agents {
        for (folders, scope) in &places {
            let target_files = tanmi_install::target_files(client, *scope, folders, None).into_iter();
            plans.extend(target_files.filter_map(|target| tanmi_install::plan_removal(target, &receipts)));
        }
    }
    tanmi_install::check_links(&plans).map_err(to_app_error)?;
    let is_dry = args.agents.dry_run;
    let purged = match args.purge && !is_dry {
        true => match confirm_purge(context, args.agents.yes)? {
            Some(folders) => Some(folders),
            None => {
                out::note(context.app.lang().pick("没有做任何更改", "nothing was changed"));
                context.failed.set(true);
                return Ok(());
            }
        },
        false => None,
    };
    let mut done: Vec<AppliedChange> = match is_dry {
        true => plans.into_iter().map(|planned| AppliedChange { planned, copy: None }).collect(),
        false => tanmi_install::remove(home, plans).map_err(to_app_error)?,
    };
    // A receipt without parts of ours is removed without a word.
    done.retain(|done| done.planned.outcome != ChangeOutcome::Unchanged);
    let mut notes = Vec::new();
    match purged {
        Some(folders) => {
            for folder in folders {
                fs::remove_tree(&folder).map_err(Error::io(&folder))?;
                notes.push(show::install::Note::Purged(folder));
            }
        }
        None if is_dry && args.purge => {
            notes.extend(purge_folders(context)?.into_iter().map(show::install::Note::WouldPurge));
        }
        None if !is_dry && home.is_dir() => notes.push(show::install::Note::Kept(home.to_owned())),
        None => {}
    }
    report(context, &done, &notes, is_dry);
    Ok(())
}

/// Returns the folders with saved data: the home store and the stores of all registered projects.
fn purge_folders(context: &CommandContext) -> Result<Vec<PathBuf>> {
    let home = context.app.home();
    let projects = Registry::new(home).projects()?;
    let stores = projects.iter().flat_map(|project| [project.join(STORE_DIR), project.join(CONFIG_DIR)]);
    let mut folders: Vec<PathBuf> = stores.chain([context.app.project().join(STORE_DIR)]).collect();
    folders.push(home.to_owned());
    folders.sort();
    folders.dedup();
    folders.retain(|folder| folder.is_dir() && !fs::is_link(folder));
    Ok(folders)
}

/// Asks the user to confirm the purge. Returns the folders to delete, or `None` if the user declines.
fn confirm_purge(context: &CommandContext, is_confirmed: bool) -> Result<Option<Vec<PathBuf>>> {
    let folders = purge_folders(context)?;
    let lang = context.app.lang();
    let list: Vec<String> = folders.iter().map(|folder| format!("  {}", folder.display())).collect();
    let list = list.join("\n");
    let question = lang.pick(
        format!("将永久删除以下文件夹及其全部内容：\n{list}\n确定继续吗？"),
        format!("These folders and all their contents will be permanently deleted:\n{list}\nContinue?"),
    );
    let what = || {
        if !context.json {
            out::note(&question);
        }
        json!({"delete": folders})
    };
    let is_confirmed = is_confirmed || confirm(&question, what)?;
    Ok(is_confirmed.then_some(folders))
}

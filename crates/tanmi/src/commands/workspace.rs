//! `tanmi workspace …`

use serde_json::json;
use tanmi_app::workspaces::WorkspaceFilter;
use tanmi_app::{Error, WorkspaceRef};
use tanmi_base::{Lang, text};
use tanmi_workspace::model::{WorkspaceId, WorkspaceStatus};
use tanmi_workspace::ops::{ListEdit, NewWorkspace, WorkspaceChange};
use tanmi_workspace::store::Fix;

use super::{CommandContext, Result, confirm, docs, text_or_stdin};
use crate::cli::WorkspaceCommand;
use crate::show;

pub fn run(context: &CommandContext, command: WorkspaceCommand) -> Result {
    let app = &context.app;
    match command {
        WorkspaceCommand::Init { name, goal, rules, docs: raw, secrets } => {
            let goal = text_or_stdin("goal", goal)?;
            let workspaces = context.app_for(secrets).workspaces;
            let view = workspaces.create(NewWorkspace { name, goal, rules, docs: docs(&raw) })?;
            let here = WorkspaceFilter { limit: 2, ..WorkspaceFilter::default() };
            let is_only = app.workspaces.list(&here).is_ok_and(|here| here.total < 2);
            context.print_secrets(&view.masked, &view.warnings);
            context.print_result(&view, |view| show::workspace::created(view, is_only, context.app.lang()));
        }
        WorkspaceCommand::List { all, status, limit, scan } => {
            let status = status.map(|word| WorkspaceStatus::parse("status", &word)).transpose()?;
            let lines =
                app.workspaces.list(&WorkspaceFilter { all, status, limit, scan, projects: Vec::new() })?;
            context.print_read(&lines, |lines| {
                show::workspace::lines(lines, app.project(), app.now(), app.lang())
            });
        }
        WorkspaceCommand::Show { at } => {
            let view = app.workspaces.show(&context.scope(at.get())?.workspace)?;
            context.print_result(&view, |view| show::workspace::full(view, context.app.lang()));
        }
        WorkspaceCommand::Update {
            at,
            name,
            goal,
            rules,
            add_rules,
            remove_rules,
            no_rules,
            docs: raw,
            remove_docs,
            language,
            secret_masking,
            secrets,
        } => {
            let replaced = (no_rules || !rules.is_empty()).then_some(rules);
            let change = WorkspaceChange {
                name,
                goal: goal.map(|goal| text_or_stdin("goal", goal)).transpose()?,
                rules: ListEdit { set: replaced, add: add_rules, remove: remove_rules },
                docs: ListEdit { set: None, add: docs(&raw), remove: remove_docs },
                language: language.as_deref().and_then(Lang::from_word),
                mask_secrets: secret_masking.map(|word| word == "on"),
                expected_versions: None,
            };
            let workspaces = context.app_for(secrets).workspaces;
            let view = workspaces.update(&context.scope(at.get())?.workspace, change)?;
            context.print_secrets(&view.masked, &view.warnings);
            context.print_result(&view, |view| show::workspace::full(view, context.app.lang()));
        }
        WorkspaceCommand::Archive { at } => {
            let view = app.workspaces.archive(&context.scope(at.get())?.workspace)?;
            context.print_result(&view, |view| show::workspace::archived(view, context.app.lang()));
        }
        WorkspaceCommand::Restore { id } => {
            let view = app.workspaces.restore(&id)?;
            context.print_result(&view, |view| {
                show::workspace::line("恢复", "restored", view, context.app.lang())
            });
        }
        WorkspaceCommand::Delete { id, yes } => {
            let workspace = app.resolver.workspace(&id)?;
            if !yes && !confirm_delete(context, &workspace)? {
                return Ok(());
            }
            let deleted = app.workspaces.delete(&workspace)?;
            let days = app.config().trash_retain_days;
            context.print_result(&deleted, |deleted| {
                show::workspace::deleted(deleted, days, context.app.lang())
            });
        }
        WorkspaceCommand::Focus { at, node, clear } => {
            let workspace = context.scope(at.workspace.as_deref())?.workspace;
            let node = node.as_deref().map(|named| app.resolver.node_id(&workspace, "nodeId", named));
            let node = node.transpose()?;
            let view = match clear || node.is_some() {
                true => app.workspaces.focus(&workspace, node)?,
                false => app.workspaces.show(&workspace)?,
            };
            context.print_result(&view, |view| show::workspace::focus(view, context.app.lang()));
        }
        WorkspaceCommand::Check { at, fix } => {
            let workspaces = match context.scope(at.get()) {
                Ok(scope) => vec![scope.workspace],
                // Without a name, all active ones are meant.
                Err(Error::AmbiguousWorkspace { candidates }) => {
                    let find = |(id, _): &(WorkspaceId, String)| app.resolver.workspace(id.as_str());
                    candidates.iter().map(find).collect::<Result<_>>()?
                }
                Err(error) => return Err(error),
            };
            check(context, &workspaces, fix)?;
        }
    }
    Ok(())
}

fn check(context: &CommandContext, workspaces: &[WorkspaceRef], fix: bool) -> Result {
    let (app, lang) = (&context.app, context.app.lang());
    let mut checked = Vec::new();
    for workspace in workspaces {
        let (id, report) = app.maintenance.check_workspace(workspace, fix)?;
        if report.findings.iter().any(|finding| finding.fix != Fix::Repaired) {
            context.failed.set(true);
        }
        checked.push(show::check::CheckView::new(&id, &report, app.project(), lang));
    }
    match checked.as_slice() {
        [one] => context.print_result(one, |one| one.to_text(lang)),
        all => context
            .print_result(&json!({"workspaces": all}), |_| all.iter().map(|one| one.to_text(lang)).collect()),
    }
    Ok(())
}

/// Asks before a workspace with nodes is deleted. Returns whether to delete it.
fn confirm_delete(context: &CommandContext, workspace: &WorkspaceRef) -> Result<bool> {
    // A workspace that cannot be read is in the way of its user, and stays in the trash for 30 days.
    let Ok(view) = context.app.workspaces.show(workspace) else { return Ok(true) };
    let (name, total) = (text::one_line(&view.name), view.progress.total);
    if total == 0 {
        return Ok(true);
    }
    let question = context.app.lang().pick(
        format!("“{name}”有 {total} 个节点。移到回收站？"),
        format!("“{name}” has {}. Move it to the trash?", show::counted(total, "node")),
    );
    confirm(&question, || json!({"workspaceId": view.workspace_id, "name": view.name, "nodes": total}))
}

//! `tanmi workspace …`

use tanmi_app::workspaces::WorkspaceFilter;
use tanmi_base::Lang;
use tanmi_workspace::model::WorkspaceStatus;
use tanmi_workspace::ops::{ListEdit, NewWorkspace, WorkspaceChange};
use tanmi_workspace::store::Fix;

use super::{CommandContext, Result, docs, text_or_stdin};
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
        WorkspaceCommand::Delete { id } => {
            let deleted = app.workspaces.delete(&app.resolver.workspace(&id)?)?;
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
            let (id, report) = app.maintenance.check_workspace(&context.scope(at.get())?.workspace, fix)?;
            let lang = app.lang();
            if report.findings.iter().any(|finding| finding.fix != Fix::Repaired) {
                context.failed.set(true);
            }
            let shown = show::check::CheckView::new(&id, &report, app.project(), lang);
            context.print_result(&shown, |shown| shown.to_text(lang));
        }
    }
    Ok(())
}

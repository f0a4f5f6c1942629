//! `tanmi node …`

use serde::Serialize;
use tanmi_app::nodes::{InWorkspace, MoveTarget, NodeCreate, TransitionArgs, parse_role};
use tanmi_app::resolver::{CallScope, CallTarget};
use tanmi_base::text;
use tanmi_workspace::context::Context;
use tanmi_workspace::model::NodeId;
use tanmi_workspace::ops::{ListEdit, ListQuery, NodeChange, ReferenceEdit};

use super::{CommandContext, Result, ask, can_ask, confirm, docs, optional_text, statuses, text_or_stdin};
use crate::cli::{NodeCommand, NodeCreateArgs, NodeTarget, NodeTransitionArgs, NodeUpdateArgs};
use crate::show;

/// The result of `node context`.
#[derive(Serialize)]
struct NodeContext {
    /// The context in parts, as the tool `context_get` returns it.
    #[serde(flatten)]
    found: InWorkspace<Context>,
    /// The text that a hook injects at a session start.
    text: String,
}

pub fn run(context: &CommandContext, command: NodeCommand) -> Result {
    let app = &context.app;
    match command {
        NodeCommand::Create(args) => create(context, args)?,
        NodeCommand::Show { at } => {
            let (scope, id) = find(context, &at)?;
            let shown = app.nodes.show(&scope.workspace, &id)?;
            context.print_result(&shown, |shown| show::node::full(&shown.result.node, context.app.lang()));
        }
        NodeCommand::List { at, parent, status, query, depth, limit, after } => {
            let workspace = context.scope(at.workspace.as_deref())?.workspace;
            let node = |field, named: &str| app.resolver.node_id(&workspace, field, named);
            let query = ListQuery {
                under: node("parentId", &parent)?,
                depth,
                statuses: statuses(&status)?,
                words: ListQuery::split_search_words(&query),
                limit,
                after: after.map(|after| node("after", &after)).transpose()?,
                ..ListQuery::default()
            };
            let page = app.nodes.list(&workspace, &query)?;
            context.print_read(&page, |page| show::node::list(&page.result, app.lang()));
        }
        NodeCommand::Update(args) => update(context, args)?,
        NodeCommand::Move { at, parent, before, after } => {
            let (scope, id) = find(context, &at)?;
            let moved = app.nodes.move_to(&scope.workspace, &id, &MoveTarget { parent, before, after })?;
            context.print_result(&moved, |moved| show::node::moved(&moved.result, context.app.lang()));
        }
        NodeCommand::Restore { at } => {
            let scope = context.scope(at.at.workspace.as_deref())?;
            let restored = app.nodes.restore(&scope, at.node())?;
            context.print_change(&restored, |restored| show::node::restored(restored, context.app.lang()));
        }
        NodeCommand::Delete { at, yes, force } => {
            let (scope, id) = find(context, &at)?;
            if !yes && !confirm_delete(context, &scope, &id)? {
                return Ok(());
            }
            let deleted = app.nodes.delete(&scope, id, force)?;
            context.print_change(&deleted, |deleted| show::node::deleted(deleted, context.app.lang()));
        }
        NodeCommand::Transition(args) => transition(context, args)?,
        NodeCommand::Reference { at, target, description, remove, expire, activate, secrets } => {
            let edit = match (remove, expire, activate) {
                (true, _, _) => ReferenceEdit::Remove,
                (_, true, _) => ReferenceEdit::Expire,
                (_, _, true) => ReferenceEdit::Activate,
                _ => ReferenceEdit::Add { description },
            };
            let (scope, id) = find(context, &at)?;
            let nodes = context.app_for(secrets).nodes;
            let edited = nodes.edit_reference(&scope.workspace, &id, &target, edit)?;
            context.print_change(&edited, |edited| show::node::references(&edited.node, context.app.lang()));
        }
        NodeCommand::Depend { at, on, remove } => {
            let (scope, id) = find(context, &at)?;
            let find_dependency = |on: &String| app.resolver.node_id(&scope.workspace, "dependsOn", on);
            let on = on.iter().map(find_dependency).collect::<Result<Vec<_>>>()?;
            let depends_on = match remove {
                true => {
                    ListEdit { remove: on.iter().map(NodeId::to_string).collect(), ..ListEdit::default() }
                }
                false => ListEdit { add: on, ..ListEdit::default() },
            };
            let change = NodeChange { depends_on, ..NodeChange::default() };
            let updated = app.nodes.update(&scope.workspace, &id, change)?;
            context.print_change(&updated, |updated| show::node::full(&updated.node, context.app.lang()));
        }
        NodeCommand::Context { at, id, node, session } => {
            let (session, workspace) = (session.as_deref(), at.workspace.as_deref());
            let scope = context.scope_of(&CallTarget { session, workspace, ..CallTarget::default() })?;
            let node = match id.or(node) {
                Some(named) => Some(app.resolver.node(&scope, Some(&named))?),
                None => app.resolver.focus(&scope)?,
            };
            let found = app.nodes.context(&scope.workspace, node.as_ref().unwrap_or(&NodeId::root()))?;
            let text = app.rules.explain_session_start(&scope, node.as_ref()).text;
            let shown = NodeContext { found, text };
            context.print_result(&shown, |shown| tanmi_base::text::printable(&shown.text));
        }
    }
    Ok(())
}

/// Asks before a node with children is deleted. Returns whether to delete it.
fn confirm_delete(context: &CommandContext, scope: &CallScope, id: &NodeId) -> Result<bool> {
    let view = context.app.nodes.view(&scope.workspace, id)?.result;
    if view.children.total == 0 || id.is_root() {
        return Ok(true);
    }
    let (title, total) = (text::one_line(&view.node.title), view.children.total);
    let (zh, en) = (
        format!("“{title}”有 {total} 个子节点。全部移到回收站？"),
        format!("“{title}” has {}. Move all to the trash?", show::counted_children(total)),
    );
    let what = || serde_json::json!({"nodeId": id, "title": view.node.title, "children": total});
    confirm(&context.app.lang().pick(zh, en), what)
}

fn create(context: &CommandContext, args: NodeCreateArgs) -> Result {
    let new = NodeCreate {
        parent: Some(args.parent),
        kind: args.kind,
        title: args.title,
        requirement: text_or_stdin("requirement", args.requirement)?,
        role: args.role,
        note: args.note,
        docs: docs(&args.docs),
        isolated: args.isolated,
        rules_hash: args.rules_hash,
    };
    let workspace = context.scope(args.at.workspace.as_deref())?.workspace;
    let created = context.app_for(args.secrets).nodes.create(&workspace, new)?;
    context.print_change(&created, |created| show::node::created(created, context.app.lang()));
    Ok(())
}

fn update(context: &CommandContext, args: NodeUpdateArgs) -> Result {
    let change = NodeChange {
        title: args.title,
        requirement: optional_text("requirement", args.requirement)?,
        note: optional_text("note", args.note)?,
        role: args.role.map(|word| parse_role(Some(&word))).transpose()?,
        isolated: args.isolated,
        docs: ListEdit { set: None, add: docs(&args.docs), remove: args.remove_docs },
        depends_on: ListEdit::default(),
        expected_versions: None,
    };
    let (scope, id) = find(context, &args.at)?;
    let updated = context.app_for(args.secrets).nodes.update(&scope.workspace, &id, change)?;
    context.print_change(&updated, |updated| show::node::full(&updated.node, context.app.lang()));
    Ok(())
}

/// Ends a node. In a terminal, asks for a conclusion that is not given.
pub fn end(context: &CommandContext, mut args: NodeTransitionArgs) -> Result {
    let (scope, id) = find_for_transition(context, &args)?;
    if args.conclusion.is_none() && can_ask() {
        let title = context.app.nodes.view(&scope.workspace, &id)?.result.node.title;
        let title = text::fit(&text::one_line(&title), 60);
        let question =
            context.app.lang().pick(format!("“{title}”的结论："), format!("Conclusion of “{title}”: "));
        // Without an answer, the action reports that a conclusion is required.
        args.conclusion = ask(&question).filter(|answer| !answer.is_empty());
    }
    carry_out(context, args, &scope, id)
}

pub fn transition(context: &CommandContext, args: NodeTransitionArgs) -> Result {
    let (scope, id) = find_for_transition(context, &args)?;
    carry_out(context, args, &scope, id)
}

fn find_for_transition(context: &CommandContext, args: &NodeTransitionArgs) -> Result<(CallScope, NodeId)> {
    let (session, workspace) = (args.session.as_deref(), args.at.at.workspace.as_deref());
    let scope = context.scope_of(&CallTarget { session, workspace, ..CallTarget::default() })?;
    let id = context.app.resolver.node(&scope, args.at.named())?;
    Ok((scope, id))
}

fn carry_out(context: &CommandContext, args: NodeTransitionArgs, scope: &CallScope, id: NodeId) -> Result {
    let app = &context.app_for(args.secrets);
    let conclusion = optional_text("conclusion", args.conclusion)?;
    let args =
        TransitionArgs { action: &args.action, conclusion, agent: args.agent.as_deref(), force: args.force };
    // The session knows its own transition, so hooks need not tell it.
    let done =
        app.sessions.track_own_changes(scope.session.as_deref(), || app.nodes.transition(scope, id, args))?;
    context.print_change(&done, |result| {
        show::node::transitioned(result, &done.workspace_id, context.app.lang())
    });
    Ok(())
}

/// Returns the workspace and the node of a command.
fn find(context: &CommandContext, at: &NodeTarget) -> Result<(CallScope, NodeId)> {
    let scope = context.scope(at.at.workspace.as_deref())?;
    let id = context.app.resolver.node(&scope, Some(at.node()))?;
    Ok((scope, id))
}

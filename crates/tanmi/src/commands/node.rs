//! `tanmi node …`

use tanmi_app::node::{DeleteArgs, NodeCreate, TransitionArgs, parse_role};
use tanmi_workspace::model::NodeId;
use tanmi_workspace::ops::{ListEdit, ListQuery, NodeChange, ReferenceEdit};

use super::{CommandContext, Result, docs, optional_text, statuses, text_or_stdin};
use crate::cli::{NodeCommand, NodeCreateArgs, NodeTransitionArgs, NodeUpdateArgs};
use crate::show;

pub fn run(context: &CommandContext, command: NodeCommand) -> Result {
    let app = &context.app;
    match command {
        NodeCommand::Create(args) => create(context, args)?,
        NodeCommand::Show { at } => {
            let shown = app.node_show(at.at.workspace.as_deref(), at.node())?;
            context.print_result(&shown, |shown| {
                show::node::full(&shown.result.node, context.lang(&shown.result.node.title))
            });
        }
        NodeCommand::List { at, parent, status, query, depth, limit, after } => {
            let query = ListQuery {
                under: NodeId::parse_field("parentId", &parent)?,
                depth,
                statuses: statuses(&status)?,
                words: ListQuery::split_search_words(&query),
                limit,
                after: after.map(|after| NodeId::parse_field("after", &after)).transpose()?,
            };
            let page = app.node_list(at.workspace.as_deref(), &query)?;
            context.print_result(&page, |page| show::node::list(&page.result, app.lang(None)));
        }
        NodeCommand::Update(args) => update(context, args)?,
        NodeCommand::Move { at, parent } => {
            let moved = app.node_move(at.at.workspace.as_deref(), at.node(), &parent)?;
            context.print_result(&moved, |moved| {
                show::node::moved(&moved.result, context.lang(&moved.result.node.title))
            });
        }
        NodeCommand::Delete { at, force } => {
            let session = app.explicit_or_env_session(None);
            let deleted = app.node_delete(DeleteArgs {
                workspace: at.at.workspace.as_deref(),
                node: at.node(),
                session: session.as_deref(),
                bound: None,
                force,
            })?;
            context
                .print_change(&deleted, |deleted| show::node::deleted(deleted, context.lang(&deleted.title)));
        }
        NodeCommand::Transition(args) => transition(context, args)?,
        NodeCommand::Reference { at, target, description, remove, expire, activate } => {
            let edit = match (remove, expire, activate) {
                (true, _, _) => ReferenceEdit::Remove,
                (_, true, _) => ReferenceEdit::Expire,
                (_, _, true) => ReferenceEdit::Activate,
                _ => ReferenceEdit::Add { description },
            };
            let edited = app.node_reference(at.at.workspace.as_deref(), at.node(), &target, edit)?;
            context.print_result(&edited, |edited| {
                show::node::references(&edited.result.node, context.lang(&edited.result.node.title))
            });
        }
        NodeCommand::Context { at, id, node } => {
            let found = app.context(at.workspace.as_deref(), id.as_deref().or(node.as_deref()))?;
            context.print_result(&found, |found| {
                let workspace = &found.result.workspace;
                let lang = context.lang(&format!("{} {}", workspace.name, workspace.goal));
                tanmi_base::text::printable(&found.result.to_markdown(lang))
            });
        }
    }
    Ok(())
}

fn create(context: &CommandContext, args: NodeCreateArgs) -> Result {
    let created = context.app.node_create(NodeCreate {
        workspace: args.at.workspace,
        parent: Some(args.parent),
        kind: args.kind,
        title: args.title,
        requirement: text_or_stdin("requirement", args.requirement)?,
        role: args.role,
        note: args.note,
        docs: docs(&args.docs),
        isolated: args.isolated,
        rules_hash: args.rules_hash,
    })?;
    context.print_result(&created, |created| {
        show::node::created(&created.result, context.lang(&created.result.node.title))
    });
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
        expected_versions: None,
    };
    let at = args.at;
    let updated = context.app.node_update(at.at.workspace.as_deref(), at.node(), change)?;
    context.print_result(&updated, |updated| {
        show::node::full(&updated.result.node, context.lang(&updated.result.node.title))
    });
    Ok(())
}

fn transition(context: &CommandContext, args: NodeTransitionArgs) -> Result {
    let (app, at) = (&context.app, args.at);
    let conclusion = optional_text("conclusion", args.conclusion)?;
    let session = app.explicit_or_env_session(args.session.as_deref());
    let workspace = app.locate(at.at.workspace.as_deref())?;
    let binding = session.as_deref().map(|session| app.binding_of(session)).transpose()?.flatten();
    let transition = TransitionArgs {
        workspace: Some(workspace.id.as_str()),
        node: at.node(),
        action: &args.action,
        conclusion,
        session: session.as_deref(),
        bound: binding.as_ref().filter(|bound| bound.workspace_id == workspace.id.as_str()),
        agent: args.agent,
        force: args.force,
    };
    // The session knows its own transition, so hooks need not tell it.
    let done = app.track_own_changes(session.as_deref(), || app.node_transition(transition))?;
    context.print_change(&done, |result| {
        show::node::transitioned(result, &done.workspace_id, context.lang(&result.step.title))
    });
    Ok(())
}

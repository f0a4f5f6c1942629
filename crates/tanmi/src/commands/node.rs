//! `tanmi node …`

use tanmi_app::node::{NodeCreate, Step, role};
use tanmi_workspace::model::NodeId;
use tanmi_workspace::ops::{ListEdit, ListQuery, NodeChange, ReferenceEdit};

use super::{Context, Result, docs, optional_text, statuses, text_or_stdin};
use crate::cli::NodeCommand;
use crate::show;

pub fn run(context: &Context, command: NodeCommand) -> Result {
    let app = &context.app;
    match command {
        NodeCommand::Create {
            at,
            parent,
            kind,
            title,
            requirement,
            role,
            note,
            docs: raw,
            isolated,
            rules_hash,
        } => {
            let created = app.node_create(NodeCreate {
                workspace: at.workspace,
                parent: Some(parent),
                kind,
                title,
                requirement: text_or_stdin("requirement", requirement)?,
                role,
                note,
                docs: docs(&raw),
                isolated,
                rules_hash,
            })?;
            context.answer(&created, |created| {
                show::node::created(&created.result, context.lang(&created.result.node.title))
            });
        }
        NodeCommand::Show { at } => {
            let shown = app.node_show(at.at.workspace.as_deref(), at.node())?;
            context.answer(&shown, |shown| {
                show::node::whole(&shown.result.node, context.lang(&shown.result.node.title))
            });
        }
        NodeCommand::List { at, parent, status, query, depth, limit, after } => {
            let query = ListQuery {
                under: NodeId::parse_field("parentId", &parent)?,
                depth,
                statuses: statuses(&status)?,
                words: ListQuery::words_of(&query),
                limit,
                after: after.map(|after| NodeId::parse_field("after", &after)).transpose()?,
            };
            let page = app.node_list(at.workspace.as_deref(), &query)?;
            context.answer(&page, |page| show::node::list(&page.result, app.lang(None)));
        }
        NodeCommand::Update {
            at,
            title,
            requirement,
            note,
            role: word,
            isolated,
            docs: raw,
            remove_docs,
        } => {
            let change = NodeChange {
                title,
                requirement: optional_text("requirement", requirement)?,
                note: optional_text("note", note)?,
                role: word.map(|word| role(Some(&word))).transpose()?,
                isolated,
                docs: ListEdit { set: None, add: docs(&raw), remove: remove_docs },
                expects: None,
            };
            let updated = app.node_update(at.at.workspace.as_deref(), at.node(), change)?;
            context.answer(&updated, |updated| {
                show::node::whole(&updated.result.node, context.lang(&updated.result.node.title))
            });
        }
        NodeCommand::Move { at, parent } => {
            let moved = app.node_move(at.at.workspace.as_deref(), at.node(), &parent)?;
            context.answer(&moved, |moved| {
                show::node::moved(&moved.result, context.lang(&moved.result.node.title))
            });
        }
        NodeCommand::Delete { at } => {
            let deleted = app.node_delete(at.at.workspace.as_deref(), at.node(), None)?;
            context.answer(&deleted, |deleted| {
                show::node::deleted(&deleted.result, context.lang(&deleted.result.title))
            });
        }
        NodeCommand::Transition { at, action, conclusion, session, agent, force } => {
            let conclusion = optional_text("conclusion", conclusion)?;
            let session = app.session_named(session.as_deref());
            let place = app.locate(at.at.workspace.as_deref())?;
            let binding = session.as_deref().map(|session| app.binding_of(session)).transpose()?.flatten();
            let step = Step {
                workspace: Some(place.id.as_str()),
                node: at.node(),
                action: &action,
                conclusion,
                session: session.as_deref(),
                bound: binding.as_ref().filter(|bound| bound.workspace_id == place.id.as_str()),
                agent,
                force,
            };
            // Its own step is nothing the session has to be told.
            let done = app.knowing(session.as_deref(), || app.node_transition(step))?;
            context.answer(&done, |done| {
                show::node::stepped(&done.result, context.lang(&done.result.step.title))
            });
        }
        NodeCommand::Reference { at, target, description, remove, expire, activate } => {
            let edit = match (remove, expire, activate) {
                (true, _, _) => ReferenceEdit::Remove,
                (_, true, _) => ReferenceEdit::Expire,
                (_, _, true) => ReferenceEdit::Activate,
                _ => ReferenceEdit::Add { description },
            };
            let edited = app.node_reference(at.at.workspace.as_deref(), at.node(), &target, edit)?;
            context.answer(&edited, |edited| {
                show::node::references(&edited.result.node, context.lang(&edited.result.node.title))
            });
        }
        NodeCommand::Context { at, id, node } => {
            let told = app.context(at.workspace.as_deref(), id.as_deref().or(node.as_deref()))?;
            context.answer(&told, |told| {
                let lang =
                    context.lang(&format!("{} {}", told.result.workspace.name, told.result.workspace.goal));
                tanmi_base::text::printable(&told.result.to_markdown(lang))
            });
        }
    }
    Ok(())
}

//! The operations of the HTTP API that read the nodes of a workspace for the page.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use tanmi_workspace::limits::TEXT_BYTES;
use tanmi_workspace::model::{LogEntry, Node, NodeStatus};
use tanmi_workspace::ops::ListQuery;

use super::page_api::{LIMIT, NODE_ID, Result, WORKSPACE_ID, read_only};
use super::{ServerState, markdown};
use crate::tools::{self, Call, CallSpec, ID, LINE, ParamKind, optional, value, with_description};

pub const NODES: CallSpec = read_only(
    "nodes",
    "List nodes in tree order, one page per call; with `ids`, only those nodes.",
    &[
        WORKSPACE_ID,
        with_description(optional("parentId", ID), "only this node and its descendants"),
        optional("status", ParamKind::Words(NodeStatus::WORDS)),
        with_description(optional("query", LINE), "words the title must contain"),
        with_description(
            optional("texts", ParamKind::Flag),
            "the words may also be in the other texts and the log; a page can then have fewer nodes than `limit`",
        ),
        with_description(optional("conclusions", ParamKind::Flag), "include the conclusions"),
        optional("depth", ParamKind::Number { min: 0, max: 64 }),
        LIMIT,
        with_description(optional("after", ID), "nextAfter of the previous page"),
        optional("ids", ParamKind::Texts),
    ],
);

pub fn nodes(c: &Call<'_>, _: &ServerState) -> Result {
    let (workspace, p) = (c.workspace()?, &c.arguments);
    let flag = |name| p.flag(name).unwrap_or(false);
    let page = match p.texts("ids") {
        Some(ids) => c.app.nodes.rows(workspace, &ids)?,
        None => {
            let query = tools::handlers::node_query(c)?;
            let (in_texts, with_conclusions) = (flag("texts"), flag("conclusions"));
            c.app.nodes.list(workspace, &ListQuery { in_texts, with_conclusions, ..query })?
        }
    };
    let mut answer = value(&page)?;
    let branches = match page.result.nodes.iter().any(|row| row.children > 0) {
        true => c.app.nodes.branches(workspace)?,
        false => HashMap::new(),
    };
    for (n, row) in page.result.nodes.iter().enumerate() {
        let shown = &mut answer["nodes"][n];
        // The page sorts the children of a node by it when another program moved one.
        shown["order"] = json!(row.node.position.order);
        shown["statusChangedAt"] = json!(row.node.status_changed_at);
        if let Some(holder) = &row.node.holder {
            shown["holder"] = json!(holder);
        }
        if let Some(branch) = branches.get(&row.node.id) {
            shown["branch"] = value(branch)?;
        }
        if !row.ancestors.is_empty() {
            shown["ancestors"] = value(&row.ancestors)?;
        }
    }
    Ok(answer)
}

pub const NODE_VIEW: CallSpec = read_only(
    "node",
    "Get a node with all its fields, its ancestors, the allowed actions and its version.",
    &[
        WORKSPACE_ID,
        NODE_ID,
        with_description(
            optional("render", ParamKind::Flag),
            "also return the rendered Markdown as element trees",
        ),
    ],
);

pub fn node(c: &Call<'_>, _: &ServerState) -> Result {
    let view = c.app.nodes.view(c.workspace()?, &c.node()?)?;
    let mut result = value(&view)?;
    if c.arguments.flag("render") == Some(true) {
        result["rendered"] = rendered_texts(&view.result.node);
        result["rendered"]["log"] = rendered_log(&view.result.node);
    }
    Ok(result)
}

/// Returns the texts of a node as element trees, and in `plainFrom` where the plain rest of a long text begins, in
/// UTF-16 units as JavaScript counts them.
fn rendered_texts(node: &Node) -> Value {
    let problem = node.activity.problem.as_ref();
    let (mut rendered, mut plain_from) = (Map::new(), Map::new());
    for (key, text) in [
        ("requirement", node.requirement.as_str()),
        ("note", &node.note),
        ("conclusion", node.conclusion.as_deref().unwrap_or_default()),
        ("problem", problem.map_or("", |problem| &problem.description)),
        ("nextStep", problem.and_then(|problem| problem.next_step.as_deref()).unwrap_or_default()),
    ] {
        let part = markdown::rendered_part(text);
        rendered.insert(key.to_owned(), markdown::render(part));
        if part.len() < text.len() {
            plain_from.insert(key.to_owned(), json!(part.encode_utf16().count()));
        }
    }
    if !plain_from.is_empty() {
        rendered.insert(String::from("plainFrom"), Value::Object(plain_from));
    }
    Value::Object(rendered)
}

/// The maximum number of bytes of the log that are rendered, the latest entries first.
const LOG_BYTES: usize = TEXT_BYTES;

/// Returns the log entries as element trees, in their order. `null` for an entry that is shown as plain text
/// because the entries after it use up [`LOG_BYTES`].
fn rendered_log(node: &Node) -> Value {
    let mut left = LOG_BYTES;
    let render = |entry: &LogEntry| {
        left = left.saturating_sub(entry.event.len());
        if left > 0 { markdown::render(&entry.event) } else { Value::Null }
    };
    let mut rendered: Vec<Value> = node.activity.log.iter().rev().map(render).collect();
    rendered.reverse();
    Value::Array(rendered)
}

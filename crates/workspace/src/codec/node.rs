//! Reads and writes `Node.md`.

use super::document::{Document, ParseError, SectionNames};
use super::{
    DOCS, LOG, PROBLEM, RewriteScope, list, read_activity, text, write_activity, write_list,
    write_optional_integer, write_text,
};
use crate::model::{Node, NodeId, NodeRole, NodeStatus, NodeType};
use crate::state;

const REQUIREMENT: SectionNames = SectionNames { canonical: "Requirement", aliases: &["需求"] };
const CONCLUSION: SectionNames = SectionNames { canonical: "Conclusion", aliases: &["结论"] };
const NOTE: SectionNames = SectionNames { canonical: "Note", aliases: &["备注"] };
const REFERENCES: SectionNames = SectionNames { canonical: "References", aliases: &["引用"] };
const ORDER: &[SectionNames] = &[REQUIREMENT, CONCLUSION, NOTE, DOCS, REFERENCES, LOG, PROBLEM];

/// Reads a node. `id` is the name of its folder, which all references use.
pub fn read_node(doc: &Document, id: &NodeId) -> Result<Node, ParseError> {
    let word = |key: &str| doc.get_nullable(key).ok_or_else(|| doc.missing(key));
    if let Some(written) = doc.get_nullable("id")
        && written != id.as_str()
    {
        return Err(doc.wrong_id(&written, id));
    }
    let kind = word("type")?;
    let kind = NodeType::from_word(&kind).ok_or_else(|| doc.unknown_word("type", &kind, NodeType::WORDS))?;
    let status = word("status")?;
    let status = NodeStatus::from_word(&status)
        .ok_or_else(|| doc.unknown_word("status", &status, NodeStatus::WORDS))?;
    if !state::is_possible(kind, status) {
        let zh = format!("{kind} 节点不能处于状态 {status}");
        let en = format!("{kind} nodes cannot have the status {status}");
        return Err(doc.error("status", zh, en));
    }
    let role = match doc.get_nullable("role") {
        None => None,
        Some(role) => {
            Some(NodeRole::from_word(&role).ok_or_else(|| doc.unknown_word("role", &role, NodeRole::WORDS))?)
        }
    };
    let parent_id = match doc.get_nullable("parentId") {
        None if id.is_root() => None,
        None => return Err(doc.missing("parentId")),
        Some(_) if id.is_root() => {
            let (zh, en) = ("根节点不能有父节点", "the root node cannot have a parent");
            return Err(doc.error("parentId", zh, en));
        }
        Some(parent) => Some(NodeId::parse(&parent).map_err(|_| doc.not_a_node_id("parentId", &parent))?),
    };
    let section = |names: &SectionNames| doc.section(names).map(text::read).unwrap_or_default();
    let entries = |names: &SectionNames| doc.section(names).map(list::items).unwrap_or_default();
    Ok(Node {
        id: id.clone(),
        title: doc.get("title").ok_or_else(|| doc.missing("title"))?,
        kind,
        status,
        role,
        requirement: section(&REQUIREMENT),
        conclusion: Some(section(&CONCLUSION)).filter(|text| !text.is_empty()),
        note: section(&NOTE),
        parent_id,
        isolated: doc.boolean("isolated")?,
        depends_on: read_ids(doc, "dependsOn")?,
        order: doc.integer("order")?,
        docs: entries(&DOCS).iter().map(|item| list::read_doc(item)).collect(),
        references: entries(&REFERENCES).iter().map(|item| list::read_reference(item)).collect(),
        created_at: doc.integer("createdAt")?.unwrap_or_default(),
        updated_at: doc.integer("updatedAt")?.unwrap_or_default(),
        status_changed_at: doc.integer("statusChangedAt")?,
        started_by: doc.get("startedBy").filter(|session| !session.is_empty()),
        agent: doc.get("startedByAgent").filter(|agent| !agent.is_empty()),
        activity: read_activity(doc)?,
    })
}

/// Reads a list of node ids: `[a, b]`, or one `- a` per line.
fn read_ids(doc: &Document, key: &'static str) -> Result<Vec<NodeId>, ParseError> {
    let Some(value) = doc.get_nullable(key) else { return Ok(Vec::new()) };
    let words = value.split([',', '[', ']', ' ']).map(|word| word.trim_matches(['"', '\'']));
    let mut ids = Vec::new();
    for word in words.filter(|word| !matches!(*word, "" | "-")) {
        let id = NodeId::parse(word).map_err(|_| doc.not_a_node_id(key, word))?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// Returns the file content for `node`. `original` is the current file and the node that was read from it.
pub fn write_node(original: Option<(&Document, &Node)>, node: &Node) -> String {
    let text = write(original, node, RewriteScope::Changed);
    let back = Document::parse(text.as_bytes()).and_then(|doc| read_node(&doc, &node.id));
    if back.as_ref() == Ok(node) { text } else { write(original, node, RewriteScope::Full) }
}

fn write(original: Option<(&Document, &Node)>, node: &Node, scope: RewriteScope) -> String {
    let mut doc = original.map(|(doc, _)| doc.clone()).unwrap_or_default();
    let old = original.map(|(_, node)| node);
    let parent = |node: &Node| node.parent_id.as_ref().map_or(String::from("null"), NodeId::to_string);
    let role = |node: &Node| node.role.map_or("null", NodeRole::as_str);
    let changed = |same: fn(&Node, &Node) -> bool| old.is_none_or(|old| !same(old, node));

    if scope == RewriteScope::Full {
        doc.close_foreign_fences(ORDER);
    }
    if old.is_none() {
        doc.set("id", node.id.as_str());
    }
    if changed(|a, b| a.title == b.title) {
        doc.set_text("title", &node.title);
    }
    if changed(|a, b| a.kind == b.kind) {
        doc.set("type", node.kind.as_str());
    }
    if changed(|a, b| a.status == b.status) {
        doc.set("status", node.status.as_str());
    }
    if changed(|a, b| a.role == b.role) {
        doc.set("role", role(node));
    }
    if changed(|a, b| a.parent_id == b.parent_id) {
        doc.set("parentId", &parent(node));
    }
    if changed(|a, b| a.isolated == b.isolated) {
        doc.set("isolated", if node.isolated { "true" } else { "false" });
    }
    match node.depends_on.as_slice() {
        [] if old.is_some_and(|old| !old.depends_on.is_empty()) => doc.unset("dependsOn"),
        [] => {}
        ids if changed(|a, b| a.depends_on == b.depends_on) => {
            let ids: Vec<&str> = ids.iter().map(NodeId::as_str).collect();
            doc.set("dependsOn", &format!("[{}]", ids.join(", ")));
        }
        _ => {}
    }
    write_optional_integer(&mut doc, "order", old.and_then(|old| old.order), node.order);
    if changed(|a, b| a.created_at == b.created_at) {
        doc.set("createdAt", &node.created_at.to_string());
    }
    if changed(|a, b| a.updated_at == b.updated_at) {
        doc.set("updatedAt", &node.updated_at.to_string());
    }
    write_optional_integer(
        &mut doc,
        "statusChangedAt",
        old.and_then(|old| old.status_changed_at),
        node.status_changed_at,
    );

    match &node.agent {
        Some(agent) if changed(|a, b| a.agent == b.agent) => doc.set_text("startedByAgent", agent),
        None if old.is_some_and(|old| old.agent.is_some()) => doc.unset("startedByAgent"),
        _ => {}
    }
    match &node.started_by {
        Some(session) if changed(|a, b| a.started_by == b.started_by) => doc.set_text("startedBy", session),
        None if old.is_some_and(|old| old.started_by.is_some()) => doc.unset("startedBy"),
        _ => {}
    }

    let (requirement, note) = old.map_or(("", ""), |old| (old.requirement.as_str(), old.note.as_str()));
    let conclusion = |node: &Node| node.conclusion.clone().unwrap_or_default();
    write_text(&mut doc, &REQUIREMENT, ORDER, requirement, &node.requirement, scope);
    write_text(
        &mut doc,
        &CONCLUSION,
        ORDER,
        &old.map(conclusion).unwrap_or_default(),
        &conclusion(node),
        scope,
    );
    write_text(&mut doc, &NOTE, ORDER, note, &node.note, scope);
    let docs = old.map_or(&[][..], |old| &old.docs);
    let references = old.map_or(&[][..], |old| &old.references);
    write_list(&mut doc, &DOCS, ORDER, docs, &node.docs, scope, list::write_doc);
    write_list(&mut doc, &REFERENCES, ORDER, references, &node.references, scope, list::write_reference);
    write_activity(&mut doc, ORDER, old.map(|old| &old.activity), &node.activity, scope);
    doc.render()
}

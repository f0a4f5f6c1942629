//! Reads and writes `Workspace.md`.

use tanmi_base::Lang;

use super::document::{Document, ParseError, SectionNames};
use super::{DOCS, LOG, PROBLEM, RewriteScope, list, read_activity, write_activity, write_list};
use crate::model::{NodeId, Workspace, WorkspaceId, WorkspaceStatus};

/// The version of the file format. It is raised when older programs would misread the files. Files without a version
/// predate the key.
const FORMAT: i64 = 1;

const RULES: SectionNames = SectionNames { canonical: "Rules", aliases: &["规则"] };
const ORDER: &[SectionNames] = &[RULES, DOCS, LOG, PROBLEM];

/// Reads a workspace. `id` is the name of its folder.
pub fn read_workspace(doc: &Document, id: &WorkspaceId) -> Result<Workspace, ParseError> {
    if let Some(written) = doc.get_nullable("id")
        && written != id.as_str()
    {
        return Err(doc.wrong_id(&written, id));
    }
    let format = doc.get_nullable("formatVersion").and_then(|format| format.parse::<i64>().ok());
    if let Some(format) = format.filter(|format| *format > FORMAT) {
        let zh = format!("formatVersion {format} 比支持的 {FORMAT} 新；请升级 tanmi");
        let en = format!("formatVersion {format} is newer than the supported {FORMAT}; upgrade tanmi");
        return Err(doc.error("formatVersion", zh, en));
    }
    let status = doc.get_nullable("status").unwrap_or_else(|| String::from("active"));
    let status = WorkspaceStatus::from_word(&status)
        .ok_or_else(|| doc.unknown_word("status", &status, WorkspaceStatus::WORDS))?;
    let focused_node_id = match doc.get_nullable("focusedNodeId") {
        None => None,
        Some(raw) => Some(NodeId::parse(&raw).map_err(|_| doc.not_a_node_id("focusedNodeId", &raw))?),
    };
    let entries = |names: &SectionNames| doc.section(names).map(list::items).unwrap_or_default();
    Ok(Workspace {
        id: id.clone(),
        name: doc.get("name").ok_or_else(|| doc.missing("name"))?,
        goal: doc.get("goal").unwrap_or_default(),
        status,
        rules: entries(&RULES).iter().map(|item| list::read_rule(item)).collect(),
        docs: entries(&DOCS).iter().map(|item| list::read_doc(item)).collect(),
        focused_node_id,
        // Any other word stays in the file, and the texts decide.
        language: doc.get_nullable("language").and_then(|word| Lang::from_word(&word)),
        // Any other value keeps masking on.
        mask_secrets: doc.get_nullable("maskSecrets").as_deref() != Some("false"),
        created_at: doc.integer("createdAt")?.unwrap_or_default(),
        updated_at: doc.integer("updatedAt")?.unwrap_or_default(),
        activity: read_activity(doc)?,
    })
}

/// Returns the file content for `workspace`. `original` is the current file and the workspace that was read from it.
pub fn write_workspace(original: Option<(&Document, &Workspace)>, workspace: &Workspace) -> String {
    let text = write(original, workspace, RewriteScope::Changed);
    let back = Document::parse(text.as_bytes()).and_then(|doc| read_workspace(&doc, &workspace.id));
    if back.as_ref() == Ok(workspace) { text } else { write(original, workspace, RewriteScope::Full) }
}

fn write(original: Option<(&Document, &Workspace)>, workspace: &Workspace, scope: RewriteScope) -> String {
    let mut doc = original.map(|(doc, _)| doc.clone()).unwrap_or_default();
    let old = original.map(|(_, workspace)| workspace);
    let focus = |ws: &Workspace| ws.focused_node_id.as_ref().map_or(String::from("null"), NodeId::to_string);
    let changed = |same: fn(&Workspace, &Workspace) -> bool| old.is_none_or(|old| !same(old, workspace));

    if scope == RewriteScope::Full {
        doc.close_foreign_fences(ORDER);
    }
    if old.is_none() {
        doc.set("id", workspace.id.as_str());
        doc.set("formatVersion", &FORMAT.to_string());
    }
    if changed(|a, b| a.name == b.name) {
        doc.set_text("name", &workspace.name);
    }
    if changed(|a, b| a.goal == b.goal) {
        doc.set_text("goal", &workspace.goal);
    }
    if changed(|a, b| a.status == b.status) {
        doc.set("status", workspace.status.as_str());
    }
    if workspace.language != old.and_then(|old| old.language) {
        doc.set("language", workspace.language.map_or("null", Lang::as_str));
    }
    // The hash is computed, so each write corrects a value that an edit of the rules made stale.
    let hash = workspace.rules_hash();
    if doc.get("rulesHash").is_none_or(|written| written != hash) {
        doc.set_text("rulesHash", &hash);
    }
    if changed(|a, b| a.focused_node_id == b.focused_node_id) {
        doc.set("focusedNodeId", &focus(workspace));
    }
    if workspace.mask_secrets != old.is_none_or(|old| old.mask_secrets) {
        doc.set("maskSecrets", &workspace.mask_secrets.to_string());
    }
    if changed(|a, b| a.created_at == b.created_at) {
        doc.set("createdAt", &workspace.created_at.to_string());
    }
    if changed(|a, b| a.updated_at == b.updated_at) {
        doc.set("updatedAt", &workspace.updated_at.to_string());
    }
    let rules = old.map_or(&[][..], |old| &old.rules);
    let docs = old.map_or(&[][..], |old| &old.docs);
    write_list(&mut doc, &RULES, ORDER, rules, &workspace.rules, scope, list::write_rule);
    write_list(&mut doc, &DOCS, ORDER, docs, &workspace.docs, scope, list::write_doc);
    write_activity(&mut doc, ORDER, old.map(|old| &old.activity), &workspace.activity, scope);
    doc.render()
}

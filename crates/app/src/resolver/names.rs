//! Finds what a caller names by the end of its id or, on the command line, by its title. A whole id of a
//! workspace or node is recognised by its form, so it costs no search.

use tanmi_base::{id, text};
use tanmi_event::Source;
use tanmi_workspace::limits::fit_title;
use tanmi_workspace::model::{NodeId, WorkspaceId};
use tanmi_workspace::ops::Target;
use tanmi_workspace::store::NodeName;

use super::{MAX_LISTED, Resolver};
use crate::core::WorkspaceRef;
use crate::error::{Error, Result};
use crate::stores::KnownWorkspace;

/// An id and the title of what it belongs to.
pub type Candidate = (String, String);

impl Resolver {
    /// Returns whether the caller can name things by their titles: a person or an agent at the command line.
    fn accepts_titles(&self) -> bool {
        let env = &self.core.env;
        env.source == Source::Api && !env.remote
    }

    /// Returns whether a text that stands for nothing can be a part of an id or a title, of any length. Then
    /// nothing has that name; otherwise the text is not a valid id.
    fn is_name(text: &str) -> bool {
        text.starts_with(char::is_alphanumeric)
    }

    fn name<'a>(&self, text: &'a str) -> NodeName<'a> {
        NodeName { text, can_be_title: self.accepts_titles() }
    }

    /// Returns the id of the workspace that a call names. Workspaces of this project come first.
    pub fn workspace_id(&self, named: &str) -> Result<WorkspaceId> {
        let error = match WorkspaceId::parse(named) {
            Ok(id) => return Ok(id),
            Err(error) => error,
        };
        let name = self.name(named);
        let headers = self.core.project.workspaces().headers()?.into_iter();
        let own = headers.map(|(id, header)| (id, header.map_or_else(String::new, |header| header.name)));
        let mut found: Vec<Candidate> = candidates(own, &name);
        if found.is_empty() {
            // A title never stands for a workspace of another project, but for a deleted one of this project.
            let (own, others): (Vec<_>, Vec<_>) = (self.core.stores.projects.workspaces()?.into_iter())
                .partition(|known| known.project.id() == self.core.project.id());
            let entry = |known: KnownWorkspace| (known.id, known.name);
            found = candidates(own.into_iter().map(entry), &name);
            let name = NodeName { text: named, can_be_title: false };
            found.extend(candidates(others.into_iter().map(entry), &name));
        }
        match only("workspaceId", named, found)? {
            Some(id) => Ok(WorkspaceId::parse(&id)?),
            None if Resolver::is_name(named) => {
                let existing = self.listed_workspaces()?;
                Err(tanmi_workspace::Error::WorkspaceNotFound { id: shown(named), existing }.into())
            }
            None => Err(error.into()),
        }
    }

    /// Returns the id of the node that a call names in this field.
    pub fn node_id(&self, ws: &WorkspaceRef, field: &'static str, named: &str) -> Result<NodeId> {
        let error = match NodeId::parse_field(field, named) {
            Ok(id) => return Ok(id),
            Err(error) => error,
        };
        let found = self.nodes_named(ws, &self.name(named))?;
        match only(field, named, found)? {
            Some(id) => Ok(NodeId::parse_field(field, &id)?),
            None if Resolver::is_name(named) => {
                Err(tanmi_workspace::Error::NodeNotFound { field, id: shown(named) }.into())
            }
            None => Err(error.into()),
        }
    }

    fn nodes_named(&self, ws: &WorkspaceRef, name: &NodeName<'_>) -> Result<Vec<Candidate>> {
        let briefs = ws.store().named(&ws.id, name, MAX_LISTED, self.core.now())?;
        Ok(briefs.into_iter().map(|brief| (brief.id.to_string(), brief.title)).collect())
    }

    /// Returns the id of the deleted node that a call names.
    pub(crate) fn trashed_node_id(&self, ws: &WorkspaceRef, named: &str) -> Result<NodeId> {
        if let Ok(id) = NodeId::parse(named) {
            return Ok(id);
        }
        let name = self.name(named);
        let entries = ws.store().trash()?.into_iter().filter(|entry| entry.workspace_id == ws.id);
        let nodes = entries.filter_map(|entry| Some((entry.node_id?.to_string(), entry.title)));
        match only("nodeId", named, nodes.filter(|(id, title)| name.matches(id, title)).collect())? {
            Some(id) => Ok(NodeId::parse(&id)?),
            None => Err(tanmi_workspace::Error::NotInTrash { node: shown(named) }.into()),
        }
    }

    /// Returns the node that a call names, or the workspace itself.
    pub(super) fn named_target(&self, ws: &WorkspaceRef, named: &str) -> Result<Target> {
        match named {
            "workspace" => Ok(Target::Workspace),
            _ => Ok(Target::Node(self.node_id(ws, "nodeId", named)?)),
        }
    }

    /// Returns the target of a reference: the whole id of a node that the caller names by its end, else the
    /// text itself, which is a whole id or the path of a doc.
    pub(crate) fn reference_target(&self, ws: &WorkspaceRef, named: &str) -> Result<String> {
        if NodeId::parse(named).is_ok() || !id::can_be_suffix(named) {
            return Ok(named.to_owned());
        }
        let found = self.nodes_named(ws, &NodeName { text: named, can_be_title: false })?;
        Ok(only("targetId", named, found)?.unwrap_or_else(|| named.to_owned()))
    }

    /// Returns the id of the session that a call names. A session that is not known yet can have any id.
    pub fn session_id(&self, named: &str) -> Result<String> {
        tanmi_session::check_session(named)?;
        let states = self.core.states();
        if named.len() < id::MIN_SUFFIX || states.exists(named) {
            return Ok(named.to_owned());
        }
        let bound = self.core.stores.bindings.all()?;
        if bound.iter().any(|(session, _)| session == named) {
            return Ok(named.to_owned());
        }
        let known = states.all().into_iter().map(|state| (state.session, state.platform));
        let bound = bound.into_iter().map(|(session, binding)| (session, binding.workspace_id));
        let mut found: Vec<Candidate> =
            known.chain(bound).filter(|(session, _)| is_session_suffix(session, named)).collect();
        found.sort();
        found.dedup_by(|a, b| a.0 == b.0);
        Ok(only("sessionId", named, found)?.unwrap_or_else(|| named.to_owned()))
    }
}

/// Returns whether a text can stand for a session: the end of an id that a program generated, which is long.
/// Clients can have short ids of their own, and `1001` is not the end of `21001`.
fn is_session_suffix(session: &str, named: &str) -> bool {
    session.ends_with(named) && session.len() >= GENERATED_LEN && named.len() <= session.len() / 2
}

/// The least length of a session id that a program generated, such as `mcp-…` or a UUID.
const GENERATED_LEN: usize = 16;

/// Returns the workspaces that a text can stand for.
fn candidates(
    workspaces: impl Iterator<Item = (WorkspaceId, String)>,
    name: &NodeName<'_>,
) -> Vec<Candidate> {
    let found = workspaces.filter(|(id, title)| name.matches(id.as_str(), title));
    found.map(|(id, title)| (id.to_string(), title)).collect()
}

/// Returns the id of the only candidate, or `None` if there is none. A title in the same case comes before
/// those that differ in it. Fails with a list of the candidates if there are several.
pub(crate) fn only(field: &'static str, named: &str, mut found: Vec<Candidate>) -> Result<Option<String>> {
    let is_exact = |(id, title): &Candidate| id.ends_with(named) || title == named;
    if found.iter().any(is_exact) {
        found.retain(is_exact);
    }
    if found.len() < 2 {
        return Ok(found.pop().map(|(id, _)| id));
    }
    found.truncate(MAX_LISTED);
    let fit = |(id, title): Candidate| (id, fit_title(&text::one_line(&title)).into_owned());
    let candidates = found.into_iter().map(fit).collect();
    Err(Error::AmbiguousId { field, named: shown(named), candidates })
}

/// Returns a text of the caller for an error.
fn shown(named: &str) -> String {
    text::fit(&text::one_line(named), 60)
}

//! Who works in a joined project on other machines, as the server last told.

use std::collections::BTreeSet;

use tanmi_base::Millis;
use tanmi_session::States;
use tanmi_team::{Presence, Present};
use tanmi_workspace::model::WorkspaceId;

use crate::stores::Project;

/// Returns what is known of a project. Nothing, if no team server keeps it.
pub(crate) fn of_project(project: &dyn Project) -> Presence {
    project.team().map(|_| Presence::read(project.folder())).unwrap_or_default()
}

/// Returns the sessions of other machines, in one workspace or in all. `isLive` is as of now, and the times
/// are by our clock.
pub(crate) fn elsewhere(
    project: &dyn Project,
    workspace: Option<&WorkspaceId>,
    states: &States,
    now: Millis,
) -> Vec<Present> {
    let presence = of_project(project);
    let is_wanted = |present: &&Present| {
        let id = present.workspace_id.as_deref();
        workspace.is_none_or(|wanted| id.is_some_and(|id| id == wanted.as_str()))
    };
    let here: BTreeSet<&str> = presence
        .sessions
        .iter()
        .map(|present| present.session.as_str())
        .filter(|id| states.exists(id))
        .collect();
    let others = presence.sessions.iter().filter(|present| !here.contains(present.session.as_str()));
    let by_our_clock = |at: Option<Millis>| at.map(|at| at - presence.skew);
    let now = |present: &Present| Present {
        is_live: present.is_live && presence.is_live(&present.session, now),
        since: by_our_clock(present.since),
        lease_until: by_our_clock(present.lease_until),
        ..present.clone()
    };
    others.filter(is_wanted).map(now).collect()
}

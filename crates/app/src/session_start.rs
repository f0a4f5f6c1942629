//! What a hook injects when a session starts, for the command line and the page. They run the pipeline of the hook, so
//! their text is that of the hook.

use tanmi_event::{Event, EventKind, Payload, Platform, Source, StartSource};
use tanmi_platform::{CLIENTS, DEFAULT_CLIENT};
use tanmi_workspace::model::NodeId;

use crate::resolver::CallScope;
use crate::rules::{Explanation, RuleService};

/// Stands for the id of a session in a shown text if no session is named.
const SESSION_PLACEHOLDER: &str = "SESSION";

impl RuleService {
    /// Returns an event as a hook would report it. Without a platform: that of the session's hooks, else the default
    /// client.
    pub(crate) fn hook_event(
        &self,
        kind: EventKind,
        session: Option<String>,
        platform: Option<&'static Platform>,
        payload: Payload,
    ) -> Event {
        let session = session.unwrap_or_else(|| SESSION_PLACEHOLDER.to_owned());
        let known = || CLIENTS.find_platform(&self.core.states().read(&session).platform);
        let platform = platform.or_else(known).unwrap_or(DEFAULT_CLIENT.platform);
        Event { source: Source::Hook, platform, kind, session, payload }
    }

    /// Returns what a hook injects when a session starts that is bound to the workspace of a call and has this focus.
    pub fn explain_session_start(&self, scope: &CallScope, node: Option<&NodeId>) -> Explanation {
        let ws = &scope.workspace;
        let payload = Payload {
            cwd: Some(self.core.folder().display().to_string()),
            start: Some(StartSource::Startup),
            node_id: node.map(NodeId::to_string),
            project: Some(ws.project.folder().to_owned()),
            workspace_id: Some(ws.id.to_string()),
            ..Payload::default()
        };
        let event = self.hook_event(EventKind::SessionStart, scope.session.clone(), None, payload);
        self.explain(&event, None, None, None)
    }
}

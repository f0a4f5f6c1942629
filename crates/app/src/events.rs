//! Events that tools, the command line and the page raise. They pass through the same pipeline as the events of
//! hooks.

use std::sync::Arc;

use serde_json::{Value, json};
use tanmi_base::Millis;
use tanmi_base::clock::DAY;
use tanmi_engine::is_already_told;
use tanmi_event::{API, ActionKind, Decision, Event, EventKind, Payload, Platform, Source, StartSource, WEB};
use tanmi_platform::CLIENTS;
use tanmi_workspace::model::{NodeId, Operator};

use crate::core::{Core, WorkspaceRef};
use crate::error::{Error, Result};
use crate::pipeline::{self, Caller};
use crate::sessions::SessionService;

/// An event that is reported over HTTP, with the fields of the specification.
#[derive(Clone, Debug, Default)]
pub struct EventRequest {
    pub event: String,
    pub session: String,
    pub platform: Option<String>,
    pub prompt: Option<String>,
    pub workspace: Option<String>,
    pub node: Option<String>,
    pub cwd: Option<String>,
    pub start: Option<String>,
}

/// How long hooks that ran count as installed.
const HOOKS_SEEN_FOR: Millis = 7 * DAY;

/// Parses the id of a platform. `key` names the parameter in the error.
pub fn parse_platform(key: &'static str, word: &str) -> Result<&'static Platform> {
    CLIENTS.find_platform(word).ok_or_else(|| {
        let known: Vec<&str> = CLIENTS.platforms().map(|platform| platform.id).collect();
        Error::bad_value(key, word, known.join(" | "))
    })
}

/// The use cases that raise events.
#[derive(Clone)]
pub struct EventService {
    core: Arc<Core>,
    sessions: SessionService,
}

impl EventService {
    pub(crate) fn new(core: Arc<Core>, sessions: SessionService) -> EventService {
        EventService { core, sessions }
    }

    /// Returns the status of a session with the texts of the rules for a status event. Writes nothing, as the tool
    /// promises: the texts are not recorded as told, and are returned at every request.
    pub fn session_status(&self, session: &str) -> Result<Value> {
        let mut status = self.sessions.view(session)?;
        let reminders = self.preview(&self.event(EventKind::StatusCheck, session));
        if !reminders.is_empty() {
            status["reminders"] = json!(reminders);
        }
        Ok(status)
    }

    fn handle(&self, event: &Event) -> Decision {
        pipeline::handle(&self.core.caller(), event).decision
    }

    /// Returns the platform whose hooks ran for this session, or else that of the connected client, or else a platform
    /// without hooks.
    fn platform_of(&self, session: &str) -> &'static Platform {
        let unknown = if self.core.env.source == Source::Mcp { &WEB } else { &API };
        let seen = CLIENTS.find_platform(&self.core.states().read(session).platform);
        seen.or(self.core.client).unwrap_or(unknown)
    }

    /// Returns whether a hook of this platform ran within the last [`HOOKS_SEEN_FOR`], in any session.
    pub fn has_recent_hooks(&self, platform: &Platform) -> bool {
        self.core.states().has_hook_since(platform.id, self.core.now() - HOOKS_SEEN_FOR)
    }

    fn event(&self, kind: EventKind, session: &str) -> Event {
        Event {
            source: self.core.env.source,
            platform: self.platform_of(session),
            kind,
            session: session.to_owned(),
            payload: Payload { cwd: Some(self.core.folder().display().to_string()), ..Payload::default() },
        }
    }

    /// Returns the texts for a client without hooks, which calls this before it answers a prompt. Returns no text
    /// if a hook has already injected it.
    pub fn context_check(&self, session: &str, trigger: &str, prompt: Option<String>) -> Result<Value> {
        let kind = match trigger {
            "session_start" => EventKind::SessionStart,
            _ => EventKind::PromptSubmit,
        };
        let mut event = self.event(kind, session);
        event.payload.prompt = prompt;
        event.payload.start = (kind == EventKind::SessionStart).then_some(StartSource::Startup);
        let bound = self.sessions.resolver().binding(session)?.is_some();
        if !bound {
            self.core.project.check()?;
        }
        let mut answer = json!({"bound": bound, "sessionId": session});
        let seen = self.core.states().read(session).hooks;
        if is_already_told(&event, |kind| seen.contains_key(kind.as_str())) {
            answer["suppressed"] = json!(true);
            return Ok(answer);
        }
        let decision = self.handle(&event);
        let mut add_text = |key: &str, kinds: &[ActionKind]| {
            if let Some(text) = decision.text_of(kinds) {
                answer[key] = json!(text);
            }
        };
        add_text("context", &[ActionKind::InjectContext, ActionKind::Declared, ActionKind::Memory]);
        add_text("reminder", &[ActionKind::SmartReminder, ActionKind::Reminder]);
        add_text("hint", &[ActionKind::SessionInfo, ActionKind::BindingHint]);
        Ok(answer)
    }

    /// Raises an event that was reported over HTTP. Returns the decision and its text, which count as injected.
    pub fn raise(&self, request: EventRequest) -> Result<Value> {
        tanmi_session::check_session(&request.session)?;
        let kind = crate::rules::parse_event_kind(&request.event)?;
        let platform = match request.platform.as_deref() {
            None => self.platform_of(&request.session),
            Some(word) => parse_platform("platform", word)?,
        };
        let mut event = Event { platform, ..self.event(kind, &request.session) };
        event.payload.prompt = request.prompt;
        event.payload.node_id = request.node;
        event.payload.cwd = request.cwd.or(event.payload.cwd);
        event.payload.start = crate::rules::parse_start_source(kind, request.start.as_deref())?;
        if let Some(workspace) = &request.workspace {
            let ws = self.sessions.resolver().workspace(workspace)?;
            event.payload.project = Some(ws.project.folder().to_owned());
            event.payload.workspace_id = Some(ws.id.to_string());
        }
        if let Some(node) = &event.payload.node_id {
            NodeId::parse(node)?;
        }
        let caller = Caller { uses_tags: true, reader: None, ..self.core.caller() };
        let response = pipeline::handle(&caller, &event);
        let mut answer = serde_json::to_value(&response.decision).unwrap_or_default();
        answer["text"] = json!(response.text);
        if let Some(last) = self.core.states().read(&request.session).last_reminder {
            answer["lastReminder"] = json!(last);
        }
        Ok(answer)
    }

    /// Raises the event for a completed node. Returns the texts to show with the result. A person without
    /// a session reads them instead of an agent, so they are not recorded as injected.
    pub(crate) fn on_task_complete(
        &self,
        session: Option<&str>,
        ws: &WorkspaceRef,
        node: &NodeId,
    ) -> Vec<String> {
        let mut event = self.event(EventKind::TaskComplete, session.unwrap_or_default());
        event.payload.workspace_id = Some(ws.id.to_string());
        event.payload.project = Some(ws.project.folder().to_owned());
        event.payload.node_id = Some(node.to_string());
        match (self.core.env.operator, session) {
            (Operator::Human, None) => self.preview(&event),
            _ => texts(self.handle(&event)),
        }
    }

    /// Returns the texts for an event. Writes nothing.
    fn preview(&self, event: &Event) -> Vec<String> {
        let preview = pipeline::explain(&self.core.caller(), event, None);
        if preview.silenced { Vec::new() } else { texts(preview.response.decision) }
    }
}

fn texts(decision: Decision) -> Vec<String> {
    decision.actions.into_iter().map(|action| action.content).collect()
}

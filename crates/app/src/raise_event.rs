//! Events that tools, the command line and the page raise. They pass through the same pipeline as the events of
//! hooks.

use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};
use tanmi_engine::is_already_told;
use tanmi_event::{
    API, ActionKind, Decision, Event, EventKind, PLATFORMS, Payload, Platform, Source, StartSource, WEB,
    find_platform, render,
};
use tanmi_session::States;
use tanmi_workspace::model::{NodeId, WorkspaceId};
use tanmi_workspace::store::LocalMaintenance;

use crate::App;
use crate::error::{Error, Result};
use crate::pipeline::{self, Caller};

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

/// Parses the id of a platform. `key` names the parameter in the error.
pub fn parse_platform(key: &'static str, word: &str) -> Result<&'static Platform> {
    find_platform(word).ok_or_else(|| {
        let known: Vec<&str> = PLATFORMS.iter().map(|platform| platform.id).collect();
        Error::bad_value(key, word, known.join(" | "))
    })
}

impl App {
    pub(crate) fn caller(&self) -> Caller<'_> {
        Caller {
            home: self.home(),
            user: self.env.user.as_deref(),
            now: self.now(),
            locale: self.env.locale,
            client: None,
            via: self.env.source.as_str(),
            started: Instant::now(),
            disabled: self.env.disabled,
            has_commands: self.env.source == Source::Api && !self.env.remote,
            context: self.env.context.as_deref(),
            mount: None,
        }
    }

    /// Returns the platform whose hooks ran for this session, or else a platform without hooks.
    pub(crate) fn platform_of(&self, session: &str) -> &'static Platform {
        let unknown = if self.env.source == Source::Mcp { &WEB } else { &API };
        find_platform(&States::new(self.home()).read(session).platform).unwrap_or(unknown)
    }

    fn event(&self, kind: EventKind, session: &str) -> Event {
        Event {
            source: self.env.source,
            platform: self.platform_of(session),
            kind,
            session: session.to_owned(),
            payload: Payload { cwd: Some(self.project().display().to_string()), ..Payload::default() },
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
        let bound = self.binding_of(session)?.is_some();
        let mut answer = json!({"bound": bound, "sessionId": session});
        let seen = States::new(self.home()).read(session).hooks;
        if is_already_told(&event, |kind| seen.contains_key(kind.as_str())) {
            answer["suppressed"] = json!(true);
            return Ok(answer);
        }
        let decision = pipeline::handle(&self.caller(), &event);
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
    pub fn raise_event(&self, request: EventRequest) -> Result<Value> {
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
            let ws = self.locate(Some(workspace))?;
            event.payload.project = Some(ws.store.project().to_owned());
            event.payload.workspace_id = Some(ws.id.to_string());
        }
        if let Some(node) = &event.payload.node_id {
            NodeId::parse(node)?;
        }
        let decision = pipeline::handle(&self.caller(), &event);
        let text = render(&decision, platform);
        let mut answer = serde_json::to_value(&decision).unwrap_or_default();
        answer["text"] = json!(text);
        Ok(answer)
    }

    /// Raises the event for a completed node. Returns the texts to show with the result.
    pub(crate) fn on_task_complete(
        &self,
        session: Option<&str>,
        project: &Path,
        workspace: &WorkspaceId,
        node: &NodeId,
    ) -> Vec<String> {
        let mut event = self.event(EventKind::TaskComplete, session.unwrap_or_default());
        event.payload.workspace_id = Some(workspace.to_string());
        event.payload.project = Some(project.to_owned());
        event.payload.node_id = Some(node.to_string());
        texts(pipeline::handle(&self.caller(), &event))
    }

    /// Raises the event for a status request. Returns the texts to show with the status.
    pub(crate) fn on_status_check(&self, session: &str) -> Vec<String> {
        texts(pipeline::handle(&self.caller(), &self.event(EventKind::StatusCheck, session)))
    }
}

fn texts(decision: Decision) -> Vec<String> {
    decision.actions.into_iter().map(|action| action.content).collect()
}

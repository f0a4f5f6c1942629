//! Runs a call: checks its arguments, determines its session and its defaults, and calls the handler. The handlers
//! are in [`super::handlers`].

use std::cell::OnceCell;

use serde_json::{Map, Value, json};
use tanmi_app::resolver::{CallScope, CallTarget};
use tanmi_app::{App, Error, WorkspaceRef, answers};
use tanmi_base::Interface;
use tanmi_workspace::model::NodeId;
use tanmi_workspace::ops::Target;

use super::CallSpec;
use super::params::CheckedArguments;

pub type Result<T = Value> = std::result::Result<T, Error>;

/// One call with checked arguments. Its session and workspace are resolved at most once, when they are first needed.
pub struct Call<'a> {
    pub app: &'a App,
    pub arguments: CheckedArguments<'a>,
    /// The session id that the protocol carries beside the arguments.
    pub meta: Option<String>,
    /// The versions on which an edit may be based, if the caller names any.
    pub expected_versions: Option<Vec<String>>,
    /// Whether a model reads the result.
    pub is_for_agent: bool,
    scope: OnceCell<CallScope>,
    /// The session that the call is about, if it asked for it.
    session: OnceCell<String>,
}

/// A call before its arguments are checked. The app knows the reader, and thus the language.
pub struct ToolRequest<'a> {
    pub app: &'a App,
    pub spec: &'a CallSpec,
    pub arguments: &'a Map<String, Value>,
    pub meta: Option<String>,
    pub expected_versions: Option<Vec<String>>,
    pub interface: Interface,
    /// Whether a model reads the result. Otherwise a program does, which may edit what it reads.
    pub is_for_agent: bool,
}

/// Checks the arguments, runs `work` and returns its result, prepared for its reader. An error is JSON with its code.
pub fn perform(
    request: &ToolRequest<'_>,
    work: impl FnOnce(&Call<'_>) -> Result,
) -> std::result::Result<Value, Value> {
    let arguments = CheckedArguments::new(request.spec, request.arguments)
        .map_err(|argument_error| argument_error.to_json(request.app.lang()))?;
    let (app, meta, expected_versions) =
        (request.app, request.meta.clone(), request.expected_versions.clone());
    let (scope, session) = (OnceCell::new(), OnceCell::new());
    let is_for_agent = request.is_for_agent;
    let session_app;
    let mut call = Call { app, arguments, meta, expected_versions, is_for_agent, scope, session };
    let session = if request.spec.is_read_only { None } else { call.caller_session().unwrap_or_default() };
    if session.is_some() {
        session_app = app.for_session(session.as_deref());
        call.app = &session_app;
    }
    let answer = app
        .team
        .check_membership()
        .and_then(|()| app.sessions.track_own_changes(session.as_deref(), || work(&call)));
    app.maintenance.log_notices();
    let is_untrusted = call.has_untrusted_texts();
    match answer {
        Ok(mut value) => {
            if request.spec.is_read_only
                && let Some(stale) = app.team.staleness()
            {
                answers::mark_stale(&mut value, &stale);
            }
            if request.is_for_agent {
                // A note that is taken counts as told.
                if let Some(fields) = value.as_object_mut()
                    && let Some(note) = call.app.team.take_undelivered()
                {
                    fields.insert(String::from("undelivered"), json!(note));
                }
                app.answers.for_agent(&mut value, is_untrusted);
            } else {
                app.answers.for_program(&mut value, is_untrusted);
            }
            Ok(value)
        }
        Err(error) => {
            let mut error = error.to_json(app.lang(), request.interface);
            if request.is_for_agent {
                app.answers.error_for_agent(&mut error, is_untrusted);
            }
            Err(error)
        }
    }
}

impl Call<'_> {
    fn target(&self) -> CallTarget<'_> {
        CallTarget {
            session: self.arguments.text_if_accepted("sessionId"),
            meta: self.meta.as_deref(),
            workspace: self.arguments.text_if_accepted("workspaceId"),
        }
    }

    /// Returns the session that the call is about.
    pub fn session(&self) -> Result<String> {
        let session = self.app.resolver.session(&self.target())?;
        Ok(self.session.get_or_init(|| session).clone())
    }

    /// Returns whether the texts of the result come from a project that the user has not agreed to: that of the
    /// workspace, else of the session's workspace, else this one, of which only memory has texts then.
    fn has_untrusted_texts(&self) -> bool {
        let binding = || self.app.resolver.binding(self.session.get()?).ok()?;
        let workspace = self.scope.get().map(|scope| scope.workspace.clone());
        match workspace.or_else(|| binding().map(|bound| bound.workspace)) {
            Some(workspace) => self.app.answers.is_untrusted(workspace.project.folder()),
            None => self.app.answers.is_memory_untrusted(),
        }
    }

    /// Returns the session that makes the call. A call over the network may have none.
    pub fn caller_session(&self) -> Result<Option<String>> {
        match self.app.resolver.caller_session(&self.target()) {
            Err(Error::NoSession) => Ok(None),
            other => other,
        }
    }

    /// Returns the workspace and the session of the call.
    pub fn scope(&self) -> Result<&CallScope> {
        if let Some(scope) = self.scope.get() {
            return Ok(scope);
        }
        let scope = self.app.resolver.scope(&self.target())?;
        Ok(self.scope.get_or_init(|| scope))
    }

    pub fn workspace(&self) -> Result<&WorkspaceRef> {
        Ok(&self.scope()?.workspace)
    }

    /// Returns the node in the arguments, else the focused node.
    pub fn node(&self) -> Result<NodeId> {
        self.app.resolver.node(self.scope()?, self.arguments.text("nodeId"))
    }

    /// Returns the node in the arguments, which can name the workspace itself, else the focused node.
    pub fn node_or_workspace(&self) -> Result<Target> {
        self.app.resolver.target(self.scope()?, self.arguments.text("nodeId"))
    }

    /// Adds the new version to the result of an edit, if the caller named the version it edited.
    pub fn with_version(&self, mut answer: Value, version: &str) -> Value {
        if self.expected_versions.is_some() {
            answer["version"] = json!(version);
        }
        answer
    }
}

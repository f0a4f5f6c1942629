//! Runs a call: checks its arguments, determines its session and its defaults, and calls the handler. The handlers
//! are in [`super::handlers`].

use std::cell::OnceCell;

use serde_json::{Map, Value, json};
use tanmi_app::session::SessionBinding;
use tanmi_app::{App, Error};
use tanmi_base::{Interface, Lang};

use super::CallSpec;
use super::params::CheckedArguments;

pub type Result<T = Value> = std::result::Result<T, Error>;

/// One call with checked arguments. The binding of its session is read at most once, when it is first needed.
pub struct Call<'a> {
    pub app: &'a App,
    pub arguments: CheckedArguments<'a>,
    /// The session id that the protocol carries beside the arguments.
    pub meta: Option<String>,
    /// The versions on which an edit may be based, if the caller names any.
    pub expected_versions: Option<Vec<String>>,
    bound: OnceCell<Option<SessionBinding>>,
}

/// A call before its arguments are checked.
pub struct ToolRequest<'a> {
    pub app: &'a App,
    pub spec: &'a CallSpec,
    pub arguments: &'a Map<String, Value>,
    pub meta: Option<String>,
    pub expected_versions: Option<Vec<String>>,
    pub lang: Lang,
    pub interface: Interface,
}

/// Checks the arguments, runs `work` and returns its result. An error is JSON with its code.
pub fn perform(
    request: &ToolRequest<'_>,
    work: impl FnOnce(&Call<'_>) -> Result,
) -> std::result::Result<Value, Value> {
    let arguments = CheckedArguments::new(request.spec, request.arguments)
        .map_err(|argument_error| argument_error.to_json(request.lang))?;
    let (app, meta, expected_versions) =
        (request.app, request.meta.clone(), request.expected_versions.clone());
    let call = Call { app, arguments, meta, expected_versions, bound: OnceCell::new() };
    let session = if request.spec.is_read_only { None } else { call.session().ok() };
    let answer = app
        .track_own_changes(session.as_deref(), || work(&call))
        .map_err(|error| error.to_json(request.lang, request.interface));
    app.log_notices();
    answer
}

impl Call<'_> {
    /// Returns the session id of the call: from the arguments, the protocol or the client process.
    pub fn session(&self) -> Result<String> {
        self.app.session_of_call(self.arguments.text("sessionId"), self.meta.as_deref())
    }

    fn bound(&self) -> Result<Option<&SessionBinding>> {
        if self.bound.get().is_none() {
            let bound = self.app.binding_of(&self.session()?)?;
            let _ = self.bound.set(bound);
        }
        Ok(self.bound.get().and_then(Option::as_ref))
    }

    /// Adds the new version to the result of an edit, if the caller named the version it edited.
    pub fn with_version(&self, mut answer: Value, version: &str) -> Value {
        if self.expected_versions.is_some() {
            answer["version"] = json!(version);
        }
        answer
    }

    /// Returns the workspace in the arguments, else the workspace that the session is bound to.
    pub fn workspace(&self) -> Result<Option<String>> {
        match self.arguments.text("workspaceId") {
            Some(id) => Ok(Some(id.to_owned())),
            None => Ok(self.bound()?.map(|bound| bound.workspace_id.clone())),
        }
    }

    /// Returns the binding of the session, if it is bound to this workspace.
    pub fn binding_in(&self, workspace: &str) -> Option<&SessionBinding> {
        self.bound().ok().flatten().filter(|bound| bound.workspace_id == workspace)
    }

    /// Returns the node in the arguments, else the focused node.
    pub fn node(&self) -> Result<String> {
        if let Some(node) = self.arguments.text("nodeId") {
            return Ok(node.to_owned());
        }
        let workspace = self.workspace()?;
        let focus = workspace.as_deref().and_then(|id| self.binding_in(id)?.focused_node_id.clone());
        focus.map_or_else(|| self.app.focused_node(workspace.as_deref()), Ok)
    }
}

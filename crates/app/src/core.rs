//! What all services share: the environment, the settings and the stores.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use tanmi_base::{Lang, Millis};
use tanmi_event::{Platform, Source};
use tanmi_session::States;
use tanmi_workspace::model::{Workspace, WorkspaceId};
use tanmi_workspace::ops::{OpContext, RulesHashCheck};
use tanmi_workspace::store::Workspaces;

use crate::Env;
use crate::calls::{CallChange, SessionCall};
use crate::config::Config;
use crate::language;
use crate::masking::Masking;
use crate::pipeline::Caller;
use crate::resolver::{CallTarget, Resolver};
use crate::retention;
use crate::stores::{Project, Stores};
use crate::trust::Trust;

#[derive(Clone)]
pub(crate) struct Core {
    pub env: Env,
    /// The project of the working directory, or the one that the caller named.
    pub project: Arc<dyn Project>,
    pub config: Arc<Config>,
    pub stores: Stores,
    /// Workspaces that were located before.
    pub located: Arc<Mutex<BTreeSet<WorkspaceId>>>,
    /// The generated session id of a connection that has no other session id.
    pub connection: Arc<OnceLock<String>>,
    /// Calls that are not in the state of their session yet.
    pub noted_calls: Arc<Mutex<Vec<SessionCall>>>,
    /// The language that the request of a person asks for.
    pub requested_lang: Option<Lang>,
    pub reader: Reader,
    /// The platform of the client that is connected over MCP, if it is known.
    pub client: Option<&'static Platform>,
    /// The session that makes a call, if the interface knows it.
    pub session: Option<String>,
    /// How to treat the secrets in texts, if the user said so; `None` for the default of the caller.
    pub masking: Option<Masking>,
}

/// The reader of results and errors.
#[derive(Clone)]
pub(crate) enum Reader {
    Person,
    /// The agent that makes a call. Its workspace is looked up only if a text needs its language.
    Agent {
        resolver: Resolver,
        session: Option<String>,
        workspace: Option<String>,
    },
}

/// A workspace and the project that contains it.
#[derive(Clone)]
pub struct WorkspaceRef {
    pub project: Arc<dyn Project>,
    pub id: WorkspaceId,
}

impl WorkspaceRef {
    pub(crate) fn store(&self) -> &dyn Workspaces {
        self.project.workspaces()
    }
}

impl Core {
    pub fn home(&self) -> &Path {
        &self.env.home
    }

    /// Returns the folder in which people work on the project, see [`Project::checkout`].
    pub fn folder(&self) -> &Path {
        self.project.checkout()
    }

    pub fn now(&self) -> Millis {
        (self.env.clock)()
    }

    /// Returns the language of the person.
    pub fn person_lang(&self) -> Lang {
        language::for_person(self.requested_lang, self.config.language, self.env.locale)
    }

    /// Returns the language of the reader.
    pub fn lang(&self) -> Lang {
        match &self.reader {
            Reader::Person => self.person_lang(),
            Reader::Agent { resolver, session, workspace } => resolver.lang_for_agent(&CallTarget {
                session: session.as_deref(),
                meta: None,
                workspace: workspace.as_deref(),
            }),
        }
    }

    /// Returns the language of the reader of a text about a workspace.
    pub fn lang_in(&self, workspace: &Workspace) -> Lang {
        match &self.reader {
            Reader::Person => self.person_lang(),
            Reader::Agent { .. } => language::for_agent(Some(workspace), None, None, self.person_lang()),
        }
    }

    pub fn states(&self) -> States {
        States::new(self.home())
    }

    pub fn trust(&self) -> Trust {
        Trust::new(self.home())
    }

    pub fn op(&self) -> OpContext {
        OpContext {
            now: self.now(),
            operator: self.env.operator,
            auto_log: self.config.auto_log,
            moves_focus: true,
        }
    }

    /// Notes what a call of a session did, for the state of the session. A user in a terminal has no session.
    /// `workspace` is empty for memory.
    pub fn note_call(
        &self,
        session: Option<&str>,
        project: &dyn Project,
        workspace: &str,
        change: CallChange,
    ) {
        if let Some(session) = session.filter(|session| !session.is_empty()) {
            let (session, project) = (session.to_owned(), project.id().as_str().to_owned());
            let call = SessionCall { session, project, workspace: workspace.to_owned(), change };
            self.noted_calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        }
    }

    /// Returns the noted calls and forgets them.
    pub fn take_noted_calls(&self) -> Vec<SessionCall> {
        std::mem::take(&mut *self.noted_calls.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn rules_hash_check(&self, given: Option<String>) -> RulesHashCheck {
        if self.env.requires_rules_hash {
            RulesHashCheck::Required(given)
        } else {
            RulesHashCheck::IfGiven(given)
        }
    }

    /// Returns the environment of a run of the pipeline.
    pub fn caller(&self) -> Caller<'_> {
        Caller {
            home: self.home(),
            stores: &self.stores,
            user: self.env.user.as_deref(),
            now: self.now(),
            locale: self.env.locale,
            reader: (self.env.source == Source::Api).then(|| self.person_lang()),
            client: None,
            client_version: self.env.client_version,
            via: self.env.source.as_str(),
            started: Instant::now(),
            disabled: self.env.disabled,
            suggests_commands: self.env.source == Source::Api && !self.env.remote,
            context: self.env.context.as_deref(),
            mount: None,
            uses_tags: false,
        }
    }

    /// See [`retention::run_if_due`].
    pub fn run_retention(&self) {
        retention::run_if_due(self.home(), &self.stores, self.config.log_retain_days, self.now());
    }

    /// Deletes expired entries of the trash. Errors are ignored: they do not concern the call that triggered it.
    pub fn prune_trash(&self, project: &dyn Project) {
        if let Some(local) = project.maintenance() {
            let _ = local.prune_trash(self.now(), self.config.trash_retain_days);
        }
    }
}

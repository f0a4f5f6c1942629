//! Use cases. The command line, MCP and HTTP interfaces call the services of [`App`] and have no logic of their own.
//!
//! Everything that depends on the environment (home store, working directory, operator, clock) arrives in [`Env`].
//! Nothing here reads environment variables or a terminal.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tanmi_base::{Lang, Millis, paths};
use tanmi_event::{ClientVersion, Platform, Source};
use tanmi_workspace::model::Operator;

pub mod activity;
pub mod answers;
mod calls;
pub mod config;
mod core;
pub mod declared;
pub mod doctor;
pub mod error;
pub mod events;
pub mod follow;
mod import;
pub mod language;
pub mod ledger;
pub mod maintenance;
pub mod masking;
pub mod memory;
pub mod nodes;
pub mod now;
pub mod owners;
pub mod pipeline;
mod presence;
pub mod registry;
pub mod resolver;
mod retention;
pub mod rules;
mod session_start;
pub mod sessions;
pub mod similar;
pub mod status;
pub mod status_line;
pub mod stores;
pub mod team;
pub mod transcripts;
pub mod trust;
pub mod watch;
pub mod workspaces;

#[cfg(test)]
mod tests;

pub use core::WorkspaceRef;
pub use error::{Error, Result};

use activity::ActivityLog;
use answers::AnswerService;
use config::Config;
use core::{Core, Reader};
use events::EventService;
use ledger::LedgerService;
use maintenance::MaintenanceService;
use masking::Masking;
use memory::MemoryService;
use nodes::NodeService;
use resolver::{CallTarget, Resolver};
use rules::RuleService;
use sessions::SessionService;
use status::StatusService;
use stores::Stores;
use team::TeamService;
use trust::Trust;
use workspaces::WorkspaceService;

/// The environment of the program.
#[derive(Clone, Debug)]
pub struct Env {
    /// The home store.
    pub home: PathBuf,
    pub cwd: PathBuf,
    /// Replaces the search for the project of `cwd`.
    pub project: Option<PathBuf>,
    pub operator: Operator,
    pub locale: Lang,
    pub clock: fn() -> Millis,
    /// Returns the version of the client of a platform.
    pub client_version: fn(&Platform) -> Option<ClientVersion>,
    /// Whether a call must pass the current `rulesHash`. Agents must; for people it is optional.
    pub requires_rules_hash: bool,
    /// The home folder of the user, which contains `.tanmi/rules.json`.
    pub user: Option<PathBuf>,
    /// The source of the events that are raised here.
    pub source: Source,
    /// Whether injection is disabled.
    pub disabled: bool,
    /// The `context.json` of the machine or container.
    pub context: Option<PathBuf>,
    /// The session id from the environment, if it is set.
    pub session: Option<String>,
    /// Whether this is a server. A server compares all files once when it first opens a workspace.
    pub long_running: bool,
    /// Whether calls come over the network. Then the parent process is not the client of the caller.
    pub remote: bool,
}

/// The services of one project, which share their stores and settings.
#[derive(Clone)]
pub struct App {
    core: Arc<Core>,
    pub resolver: Resolver,
    pub workspaces: WorkspaceService,
    pub nodes: NodeService,
    pub sessions: SessionService,
    pub memory: MemoryService,
    pub rules: RuleService,
    pub events: EventService,
    pub ledger: LedgerService,
    pub answers: AnswerService,
    pub maintenance: MaintenanceService,
    pub status: StatusService,
    pub team: TeamService,
}

impl App {
    /// Returns the services over the files of this machine.
    pub fn new(env: Env) -> App {
        let stores = Stores::local(&env.home);
        App::with_stores(env, stores)
    }

    /// Returns the services over these stores.
    pub fn with_stores(env: Env, stores: Stores) -> App {
        let folder = match &env.project {
            Some(dir) => dir.clone(),
            None => paths::project_root(&env.cwd, &env.home),
        };
        let project = stores.projects.in_folder(&folder);
        let folder = project.checkout().to_owned();
        let trust = Trust::new(&env.home);
        // Remembers which folder this is. The calls report an error.
        if project.check().is_ok() {
            trust.upgrade(&folder, (env.clock)());
        }
        App::with_core(Core {
            config: Arc::new(Config::load(&env.home, Some(&trust.of_project(&folder)))),
            project,
            env,
            stores,
            located: Arc::default(),
            connection: Arc::default(),
            noted_calls: Arc::default(),
            requested_lang: None,
            reader: Reader::Person,
            client: None,
            session: None,
            masking: None,
        })
    }

    fn with_core(core: Core) -> App {
        let core = Arc::new(core);
        let sessions = SessionService::new(core.clone());
        let events = EventService::new(core.clone(), sessions.clone());
        let rules = RuleService::new(core.clone());
        let memory = MemoryService::new(core.clone());
        App {
            resolver: Resolver::new(core.clone()),
            workspaces: WorkspaceService::new(core.clone(), sessions.clone()),
            nodes: NodeService::new(core.clone(), sessions.clone(), events.clone()),
            ledger: LedgerService::new(core.clone()),
            answers: AnswerService::new(core.clone()),
            maintenance: MaintenanceService::new(core.clone(), rules.clone(), memory.clone()),
            status: StatusService::new(core.clone(), sessions.clone()),
            team: TeamService::new(core.clone()),
            sessions,
            memory,
            rules,
            events,
            core,
        }
    }

    /// Returns the same services, which treat the secrets in the texts of a person in this way.
    pub fn with_masking(&self, masking: Masking) -> App {
        App::with_core(Core { masking: Some(masking), ..Core::clone(&self.core) })
    }

    /// Returns the same services for a client that is connected over MCP.
    pub fn with_client(&self, client: &'static Platform) -> App {
        App::with_core(Core { client: Some(client), ..Core::clone(&self.core) })
    }

    /// Returns the same services for a person who asks for this language.
    pub fn for_person(&self, lang: Lang) -> App {
        App::with_core(Core { requested_lang: Some(lang), ..Core::clone(&self.core) })
    }

    /// Returns the same services for the agent that makes a call.
    pub fn for_agent(&self, call: &CallTarget<'_>) -> App {
        let reader = Reader::Agent {
            resolver: self.resolver.clone(),
            session: call.session.or(call.meta).map(str::to_owned),
            workspace: call.workspace.map(str::to_owned),
        };
        App::with_core(Core { reader, ..Core::clone(&self.core) })
    }

    /// Returns the same services for the calls of this session.
    pub fn for_session(&self, session: Option<&str>) -> App {
        App::with_core(Core { session: session.map(str::to_owned), ..Core::clone(&self.core) })
    }

    /// Opens the activity of all projects. A server keeps it, because it has an index open.
    pub fn activity(&self) -> ActivityLog {
        ActivityLog::new(self.core.clone())
    }

    /// Returns the folder of the project.
    pub fn project(&self) -> &Path {
        self.core.folder()
    }

    pub fn home(&self) -> &Path {
        self.core.home()
    }

    pub fn config(&self) -> &Config {
        &self.core.config
    }

    pub fn now(&self) -> Millis {
        self.core.now()
    }

    /// Returns the language of the reader; see [`language`].
    pub fn lang(&self) -> Lang {
        self.core.lang()
    }
}

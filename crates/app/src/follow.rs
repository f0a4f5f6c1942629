//! What a server process does in the background in a joined project: keeps the replica up to date and renews
//! the leases of the sessions of its client.

use std::io;
use std::thread;

use tanmi_base::Millis;
use tanmi_session::{ClientProcess, SessionState, client_of_server};
use tanmi_team::Follower;

use crate::App;
use crate::core::Core;
use crate::sessions::is_live;

/// How long a session counts as in use after its last hook or tool call. After that its claims can be taken over.
const IN_USE_FOR: Millis = 2 * 3_600_000;

/// Starts the thread, if a team server keeps the project. It ends with the process.
pub fn start(app: &App) -> io::Result<()> {
    let core = app.core.clone();
    let Some(workspaces) = core.project.team().cloned() else { return Ok(()) };
    let (home, replica, clock) = (core.home().to_owned(), core.project.folder().to_owned(), core.env.clock);
    // A page has no client whose sessions it could renew.
    let client = if core.env.long_running { client_of_server() } else { None };
    let sessions = Box::new(move || sessions_in_use(&core, client.as_ref()));
    let follower = Follower::new(workspaces, sessions, home, replica, clock);
    thread::Builder::new().name(String::from("follower")).spawn(|| follower.run()).map(|_| ())
}

/// Returns the sessions of the client of this server that are bound in the project and in use.
fn sessions_in_use(core: &Core, client: Option<&ClientProcess>) -> Vec<String> {
    let (states, now) = (core.states(), core.now());
    let of_client = client.into_iter().flat_map(|client| states.sessions_of_client(client));
    let of_connection = core.connection.get().map(|session| states.read(session));
    let is_bound = |session: &str| {
        let binding = core.stores.bindings.find(session).ok().flatten();
        binding.is_some_and(|binding| binding.project == core.project.folder())
    };
    let is_in_use = |state: &SessionState| {
        !state.has_ended && now - state.alive_at < IN_USE_FOR && is_live(&states, state, now)
    };
    let sessions = of_client.chain(of_connection).filter(is_in_use).map(|state| state.session);
    sessions.filter(|session| is_bound(session)).collect()
}

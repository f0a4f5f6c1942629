//! `tanmi session …`

use tanmi_app::resolver::CallTarget;
use tanmi_app::sessions::SessionFilter;

use super::{CommandContext, Result};
use crate::cli::SessionCommand;
use crate::show;

pub fn run(context: &CommandContext, command: SessionCommand) -> Result {
    let app = &context.app;
    app.sessions.import_old_bindings();
    let session_of = |named| app.resolver.session(&CallTarget { session: named, ..CallTarget::default() });
    let set_project_of = |session: &str| {
        if let Ok(Some(bound)) = app.resolver.binding(session) {
            context.set_project(bound.workspace.project.folder());
        }
    };
    match command {
        SessionCommand::Bind { session, at, node } => {
            let session = session_of(session.as_deref())?;
            let bound = app.sessions.bind(&session, at.workspace.as_deref(), node.as_deref())?;
            set_project_of(&session);
            context.print_result(&bound, |bound| {
                let has_hooks = app.sessions.has_hooks(&session);
                show::session::bound(bound, &session, has_hooks, app.lang())
            });
        }
        SessionCommand::Unbind { session } => {
            let session = session_of(session.as_deref())?;
            let unbound = app.sessions.unbind(&session)?;
            context.print_result(&unbound, |unbound| format!("{} ({session})\n", unbound.message));
        }
        SessionCommand::List { workspace, live, bound, limit } => {
            let filter =
                SessionFilter { workspace, live: live.then_some(true), bound: bound.then_some(true), limit };
            let listed = app.sessions.list(&filter)?;
            context.print_result(&listed, |listed| show::session::list(listed, app.lang()));
        }
        SessionCommand::Status { session } => {
            let session = session_of(session.as_deref())?;
            let status = app.events.session_status(&session)?;
            set_project_of(&session);
            context.print_result(&status, |status| show::session::status(status, app.lang()));
        }
    }
    Ok(())
}

//! `tanmi session …`

use tanmi_app::views::SessionFilter;

use super::{CommandContext, Result};
use crate::cli::SessionCommand;
use crate::show;

pub fn run(context: &CommandContext, command: SessionCommand) -> Result {
    let app = &context.app;
    match command {
        SessionCommand::Bind { session, at, node } => {
            let session = app.session_of_call(session.as_deref(), None)?;
            let bound = app.session_bind(&session, at.workspace.as_deref(), node.as_deref())?;
            context.print_result(&bound, |bound| {
                let is_known_session = app.is_known_session(&session);
                show::session::bound(&bound.message, &session, is_known_session, app.lang(None))
            });
        }
        SessionCommand::Unbind { session } => {
            let session = app.session_of_call(session.as_deref(), None)?;
            let unbound = app.session_unbind(&session)?;
            context.print_result(&unbound, |unbound| format!("{} ({session})\n", unbound.message));
        }
        SessionCommand::List { workspace, live, bound, limit } => {
            let filter =
                SessionFilter { workspace, live: live.then_some(true), bound: bound.then_some(true), limit };
            let listed = app.sessions_list(&filter)?;
            context.print_result(&listed, |listed| show::session::list(listed, app.lang(None)));
        }
        SessionCommand::Status { session } => {
            let session = app.session_of_call(session.as_deref(), None)?;
            let status = app.session_status(&session)?;
            context.print_result(&status, |status| show::session::status(status, app.lang(None)));
        }
    }
    Ok(())
}

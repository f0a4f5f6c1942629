//! `tanmi session …`

use super::{Context, Result};
use crate::cli::SessionCommand;
use crate::show;

pub fn run(context: &Context, command: SessionCommand) -> Result {
    let app = &context.app;
    match command {
        SessionCommand::Bind { session, at, node } => {
            let session = app.session_of_call(session.as_deref(), None)?;
            let place = app.locate(at.workspace.as_deref())?;
            let bound = app.session_bind(&session, place.id.as_str(), node.as_deref())?;
            context.answer(&bound, |bound| format!("{} ({session})\n", bound.message));
        }
        SessionCommand::Unbind { session } => {
            let session = app.session_of_call(session.as_deref(), None)?;
            let unbound = app.session_unbind(&session)?;
            context.answer(&unbound, |unbound| format!("{} ({session})\n", unbound.message));
        }
        SessionCommand::Status { session } => {
            let session = app.session_of_call(session.as_deref(), None)?;
            let status = app.session_status(&session)?;
            context.answer(&status, |status| show::session::status(status, app.lang(None)));
        }
    }
    Ok(())
}

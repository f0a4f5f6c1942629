//! `tanmi trash`

use tanmi_app::workspaces::TrashFilter;

use super::{CommandContext, Result};
use crate::cli::TrashCommand;
use crate::show;

pub fn run(context: &CommandContext, command: TrashCommand) -> Result {
    let TrashCommand::List { workspace, limit } = command;
    let app = &context.app;
    let listed = app.workspaces.trash(&TrashFilter { workspace, limit })?;
    context.print_result(&listed, |listed| show::trash::list(listed, app.now(), app.lang()));
    Ok(())
}

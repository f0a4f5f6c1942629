//! `tanmi status`

use super::{CommandContext, Result};
use crate::cli::StatusArgs;
use crate::show;

pub fn run(context: &CommandContext, args: &StatusArgs) -> Result {
    let status = context.app.status.read(args.at.get())?;
    context.set_project(std::path::Path::new(&status.project));
    let lang = context.app.lang();
    context.print_read(&status, |status| show::status::render(status, context.app.now(), lang));
    Ok(())
}

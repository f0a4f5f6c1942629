//! `tanmi ledger`

use tanmi_app::Error;
use tanmi_app::ledger::LedgerFilter;
use tanmi_base::clock::is_day;

use super::{CommandContext, Result};
use crate::cli::LedgerArgs;
use crate::show;

pub fn run(context: &CommandContext, args: LedgerArgs) -> Result {
    // The use case has no day, only `since` and `until`. Checked here, so that the error names `--day`.
    if let Some(day) = args.day.as_deref().filter(|day| !is_day(day)) {
        let expected = String::from("YYYY-MM-DD");
        return Err(Error::BadValue { key: "--day", value: day.to_owned(), expected });
    }
    // Only a node needs the workspace that it is in: the ledger has the injections of all projects.
    let is_in_workspace = args.workspace.is_some() || args.node.is_some();
    let scope = is_in_workspace.then(|| context.scope(args.workspace.as_deref())).transpose()?;
    let node = |named: String| match &scope {
        Some(scope) => context.app.resolver.node(scope, Some(&named)).map(|id| Some(id.to_string())),
        None => Ok(None),
    };
    let view = context.app.ledger.list(&LedgerFilter {
        session: args.session.map(|named| context.app.resolver.session_id(&named)).transpose()?,
        event: args.event,
        platform: args.platform,
        rule: args.rule,
        workspace: scope.as_ref().map(|scope| scope.workspace.id.to_string()),
        node: args.node.map(node).transpose()?.flatten(),
        since: args.since.or_else(|| args.day.clone()),
        until: args.until.or(args.day),
        limit: args.limit,
        texts: args.text,
    })?;
    context.print_result(&view, |view| show::ledger::view(view, context.app.lang()));
    Ok(())
}

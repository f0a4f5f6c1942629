//! `tanmi tree`

use tanmi_workspace::ops::ListQuery;

use super::{CommandContext, Result, statuses};
use crate::cli::TreeArgs;
use crate::show;

pub fn run(context: &CommandContext, args: TreeArgs) -> Result {
    let scope = context.scope(args.at.get())?;
    let query = ListQuery {
        under: context.app.resolver.node_id(&scope.workspace, "parentId", &args.parent)?,
        depth: args.depth,
        statuses: statuses(&args.status)?,
        limit: args.limit,
        ..ListQuery::default()
    };
    let mut view = context.app.workspaces.show(&scope.workspace)?;
    view.focused_node_id = context.app.resolver.focus(&scope)?;
    let page = context.app.nodes.list(&scope.workspace, &query)?;
    context.print_read(&page, |page| {
        show::tree::render(&view, &page.result, !query.statuses.is_empty(), context.app.lang())
    });
    Ok(())
}

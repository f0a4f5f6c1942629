//! `tanmi tree`

use tanmi_workspace::model::NodeId;
use tanmi_workspace::ops::ListQuery;

use super::{CommandContext, Result, statuses};
use crate::cli::TreeArgs;
use crate::show;

pub fn run(context: &CommandContext, args: TreeArgs) -> Result {
    let query = ListQuery {
        under: NodeId::parse_field("parentId", &args.parent)?,
        depth: args.depth,
        statuses: statuses(&args.status)?,
        limit: if args.limit == 0 { usize::MAX - 2 } else { args.limit },
        ..ListQuery::default()
    };
    let mut view = context.app.workspace_show(args.at.get())?;
    view.focused_node_id = context.app.env_session_focus(&view.workspace_id).or(view.focused_node_id);
    let page = context.app.node_list(Some(view.workspace_id.as_str()), &query)?;
    context.print_result(&page, |page| {
        show::tree::render(&view, &page.result, !query.statuses.is_empty(), context.lang(&view.name))
    });
    Ok(())
}

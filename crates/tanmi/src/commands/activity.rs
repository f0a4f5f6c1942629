//! `tanmi log` and `tanmi problem`

use tanmi_workspace::ops::ProblemChange;

use super::{CommandContext, Result, optional_text};
use crate::cli::{LogArgs, ProblemArgs, WorkspaceArg};
use crate::show;

pub fn log(context: &CommandContext, args: LogArgs) -> Result {
    let workspace = args.at.workspace.as_deref();
    let target = target(context, &args.at, args.node)?;
    match optional_text("log", args.text)? {
        Some(text) => {
            let logged = context.app.log_append(workspace, &target, &text)?;
            context.print_result(&logged, |logged| show::activity::log(&logged.result, context.lang(&text)));
        }
        None => {
            let log = context.app.log_show(workspace, &target, args.limit)?;
            context.print_result(&log, |log| show::activity::log(&log.result, context.app.lang(None)));
        }
    }
    Ok(())
}

pub fn problem(context: &CommandContext, args: ProblemArgs) -> Result {
    let workspace = args.at.workspace.as_deref();
    let target = target(context, &args.at, args.node)?;
    let problem = if args.clear {
        context.app.problem_clear(workspace, &target)?
    } else if args.text.is_some() || args.next_step.is_some() {
        let description = optional_text("description", args.text)?;
        let change = ProblemChange { description, next_step: args.next_step };
        context.app.problem_update(workspace, &target, change)?
    } else {
        context.app.problem_show(workspace, &target)?
    };
    let texts =
        problem.result.problem.as_ref().map(|p| p.description.clone() + p.next_step.as_deref().unwrap_or(""));
    context.print_result(&problem, |problem| {
        show::activity::problem(&problem.result, context.app.lang(texts.as_deref()))
    });
    Ok(())
}

/// Returns the node in the arguments, else the focused node.
fn target(context: &CommandContext, at: &WorkspaceArg, node: Option<String>) -> Result<String> {
    match node {
        Some(node) => Ok(node),
        None => context.app.focused_node(at.workspace.as_deref()),
    }
}

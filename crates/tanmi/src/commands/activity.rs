//! `tanmi log` and `tanmi problem`

use tanmi_workspace::ops::ProblemChange;

use super::{CommandContext, Result, optional_text};
use crate::cli::{LogArgs, ProblemArgs};
use crate::show;

pub fn log(context: &CommandContext, args: LogArgs) -> Result {
    let (scope, app) = (context.scope(args.at.workspace.as_deref())?, &context.app);
    let (workspace, target) = (&scope.workspace, app.resolver.target(&scope, args.node.as_deref())?);
    match optional_text("log", args.text)? {
        Some(text) => {
            let logged = context.app_for(args.secrets).nodes.append_log(workspace, &target, &text)?;
            context.print_change(&logged, |logged| show::activity::log(logged, context.app.lang()));
        }
        None => {
            let log = app.nodes.log(workspace, &target, args.limit)?;
            context.print_result(&log, |log| show::activity::log(&log.result, app.lang()));
        }
    }
    Ok(())
}

pub fn problem(context: &CommandContext, args: ProblemArgs) -> Result {
    let (scope, app) = (context.scope(args.at.workspace.as_deref())?, &context.app);
    let (workspace, target) = (&scope.workspace, app.resolver.target(&scope, args.node.as_deref())?);
    let problem = if args.clear {
        app.nodes.clear_problem(workspace, &target)?
    } else if args.text.is_some() || args.next_step.is_some() {
        let description = optional_text("description", args.text)?;
        let change = ProblemChange { description, next_step: args.next_step };
        context.app_for(args.secrets).nodes.update_problem(workspace, &target, change)?
    } else {
        app.nodes.problem(workspace, &target)?
    };
    context.print_change(&problem, |problem| show::activity::problem(problem, app.lang()));
    Ok(())
}

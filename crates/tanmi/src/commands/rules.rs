//! `tanmi rules …` and `tanmi trust`

use tanmi_app::Error;
use tanmi_app::events::parse_platform;
use tanmi_app::rules::{ExplainRequest, PendingTrust, RuleFilter, TrustView};
use tanmi_base::Lang;
use tanmi_event::{Event, Platform};
use tanmi_platform::{CLIENTS, DEFAULT_CLIENT};

use super::{CommandContext, Result, confirm, file_or_stdin};
use crate::cli::{ExplainArgs, RulesCommand, TrustArgs};
use crate::show;

pub fn run(context: &CommandContext, command: RulesCommand) -> Result {
    let app = &context.app;
    match command {
        RulesCommand::List { source, event, limit } => {
            let lines = app.rules.list(&RuleFilter { source, event, limit })?;
            context.print_result(&lines, |lines| show::rules::list(lines, app.lang()));
        }
        RulesCommand::Check { file } => {
            let mut checked = app.rules.check(file.as_deref());
            for file in checked.iter_mut().filter(|file| file.has_tool_rules) {
                file.notes.extend(super::doctor::missing_tool_hooks(context)?);
            }
            context.print_result(&checked, |checked| show::rules::check(checked, app.lang()));
            if checked.iter().any(|file| !file.flaws.is_empty()) {
                context.failed.set(true);
            }
        }
        RulesCommand::Trust { yes } => {
            let rules = app.rules.pending_rules();
            let pending = PendingTrust { rules, ..PendingTrust::default() };
            confirm_trust(context, &pending, yes, false, || app.rules.trust_rules(&pending.rules))?;
        }
        RulesCommand::Explain(args) => explain(context, args)?,
    }
    Ok(())
}

fn explain(context: &CommandContext, args: ExplainArgs) -> Result {
    let app = &context.app;
    let platform = args.platform.as_deref().map(|word| parse_platform("--platform", word)).transpose()?;
    if let Some(path) = args.rules.as_deref().filter(|path| !path.is_file()) {
        let source = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(Error::io(path)(source));
    }
    let event = match &args.payload {
        Some(path) => {
            let mut event = read_payload(path, platform, app.lang())?;
            event.session = args.session.clone().unwrap_or(event.session);
            event
        }
        None => app.rules.event_to_explain(ExplainRequest {
            event: Some(args.event),
            session: context.caller_session(args.session.as_deref())?,
            platform,
            prompt: args.prompt,
            workspace: args.workspace,
            node: args.node,
            start: args.start,
        })?,
    };
    let client = crate::env::client();
    let explained = app.rules.explain(&event, args.rules.as_deref(), args.at, client);
    context.print_result(&explained, |explained| show::rules::explain(explained, args.all, app.lang()));
    Ok(())
}

/// Reads an event from the payload of a client. Without `--platform`, the payload itself identifies the client.
fn read_payload(path: &std::path::Path, platform: Option<&'static Platform>, lang: Lang) -> Result<Event> {
    let bytes = file_or_stdin(path, u64::MAX)?;
    let event = CLIENTS.read(platform.unwrap_or(DEFAULT_CLIENT.platform), None, &bytes);
    event.ok_or_else(|| {
        let expected = lang.pick(
            "受支持事件的载荷（请检查 --platform）",
            "the payload of a supported event (check --platform)",
        );
        let value = path.display().to_string();
        Error::BadValue { key: "--payload", value, expected: expected.to_owned() }
    })
}

pub fn trust(context: &CommandContext, args: &TrustArgs) -> Result {
    let app = &context.app;
    if args.allow_owner {
        return allow_owner(context, args.yes);
    }
    if args.revoke {
        let was_trusted = app.rules.distrust_project()?;
        let was_allowed = app.rules.set_owner_allowed(false)?;
        let view = view(context, &PendingTrust::default(), was_trusted || was_allowed);
        context.print_result(&view, |view| show::trust::revoked(view, app.lang()));
        return Ok(());
    }
    let pending = app.rules.pending();
    confirm_trust(context, &pending, args.yes, true, || {
        app.rules.trust_project(&pending)?;
        app.sessions.import_old_bindings();
        Ok(())
    })
}

/// Asks the user and allows the project although it belongs to another user.
fn allow_owner(context: &CommandContext, yes: bool) -> Result {
    let app = &context.app;
    let lang = app.lang();
    let mut view = app.rules.owner();
    if let (Some(owner), false) = (view.owner, view.allowed) {
        let project = &view.project;
        let question = lang.pick(
            format!("{project} 属于另一个用户（uid {owner}）。仍要使用？"),
            format!("{project} belongs to another user (uid {owner}). Use it anyway?"),
        );
        if yes || confirm(&question, || serde_json::json!(view))? {
            view.done = app.rules.set_owner_allowed(true)?;
            view.allowed = true;
        }
    }
    context.print_result(&view, |view| show::trust::owner(view, lang));
    Ok(())
}

/// Shows what the user is asked to agree to, asks, and runs `agree`. `with_project` is false if only rules files are
/// trusted.
fn confirm_trust(
    context: &CommandContext,
    pending: &PendingTrust,
    yes: bool,
    with_project: bool,
    agree: impl FnOnce() -> Result,
) -> Result {
    let lang = context.app.lang();
    let rules = &context.app.rules;
    let has_project = with_project && rules.has_project_content();
    let is_needed = !pending.is_empty() || (has_project && !rules.is_project_trusted());
    let mut done = false;
    if is_needed {
        if !context.json {
            let view = view(context, pending, false);
            context.print_result(&view, |view| show::trust::pending(view, with_project, lang));
        }
        let question = lang.pick("信任以上内容？", "Trust the content above?");
        if yes || confirm(question, || show::trust::details(pending))? {
            agree()?;
            done = true;
        }
    }
    let view = view(context, pending, done);
    context.print_result(&view, |view| show::trust::trusted(view, is_needed, lang));
    Ok(())
}

fn view(context: &CommandContext, pending: &PendingTrust, done: bool) -> TrustView {
    let app = &context.app;
    TrustView {
        project: app.project().display().to_string(),
        trusted: app.rules.is_project_trusted(),
        pending: pending.clone(),
        done,
    }
}

//! Runs the parsed commands: converts arguments, calls a use case and prints its result. One file per group of
//! commands.

use std::cell::{Cell, RefCell};
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tanmi_app::answers;
use tanmi_app::masking::Masking;
use tanmi_app::nodes::InWorkspace;
use tanmi_app::resolver::{CallScope, CallTarget};
use tanmi_app::stores::Stores;
use tanmi_app::{App, Error};
use tanmi_base::{Interface, Lang};
use tanmi_workspace::codec;
use tanmi_workspace::model::{DocReference, NodeStatus, Operator};

use crate::cli::{Cli, Command, Deferred, SecretsArg, TeamCommand};
use crate::{env, out, show};

mod activity;
mod complete;
mod config;
mod context;
mod demo;
mod doctor;
mod install;
mod ledger;
mod mcp;
mod memory;
mod node;
mod pause;
mod plan;
mod reference;
mod rules;
mod serve;
mod serve_team;
mod session;
mod shell_docs;
mod status;
mod team;
mod team_machine;
mod team_outbox;
mod trash;
mod tree;
mod workspace;

/// What a command needs besides its own arguments.
pub struct CommandContext {
    pub app: App,
    pub json: bool,
    /// Whether the program exits with failure although the command itself succeeded, e.g. because a check found
    /// problems.
    pub failed: Cell<bool>,
    interface: Interface,
    /// The project whose texts the output has, if it is not the current one.
    output_project: RefCell<Option<PathBuf>>,
}

pub type Result<T = ()> = std::result::Result<T, Error>;

pub fn run(cli: Cli) -> ExitCode {
    let env = match env::read(cli.global.project) {
        Ok(env) => env,
        Err(reason) => {
            if cli.global.json {
                out::json_error("ENVIRONMENT", &reason);
            } else {
                out::labelled(out::RED.bold(), "错误", "error", &reason, env::language());
            }
            return ExitCode::FAILURE;
        }
    };
    if matches!(cli.command, Command::Mcp) {
        return mcp::run(env);
    }
    if let Command::Serve(args) = &cli.command {
        return serve::run(env, args, cli.global.json);
    }
    if let Command::Team(Deferred(command)) = &cli.command
        && !matches!(command, TeamCommand::Machine(_))
    {
        return team::run(command, &env.home, cli.global.json);
    }
    let interface = match env.operator {
        Operator::Ai => Interface::AgentShell,
        Operator::Human => Interface::CommandLine,
    };
    let mut context = CommandContext {
        app: App::new(env),
        json: cli.global.json,
        failed: Cell::new(false),
        interface,
        output_project: RefCell::default(),
    };
    let lang = context.app.lang();
    for warning in &context.app.config().warnings {
        out::labelled(out::YELLOW, "警告", "warning", &warning.message(lang), lang);
    }
    // An agent that runs a command in its shell knows this change, so hooks need not tell it.
    let session = context.caller_session(None).unwrap_or_default();
    context.app = context.app.for_session(session.as_deref());
    let outcome = context.app.sessions.track_own_changes(session.as_deref(), || match cli.command {
        Command::Status(args) => status::run(&context, &args),
        Command::Start(args) => node::transition(&context, args.into_transition("start")),
        Command::Done(args) => node::end(&context, args.into_transition("complete")),
        Command::Fail(args) => node::end(&context, args.into_transition("fail")),
        Command::Workspace(command) => workspace::run(&context, command.0),
        Command::Node(command) => node::run(&context, command.0),
        Command::Log(args) => activity::log(&context, args),
        Command::Problem(args) => activity::problem(&context, args),
        Command::Plan(args) => plan::plan(&context, args),
        Command::Next(args) => plan::next(&context, &args),
        Command::Tree(args) => tree::run(&context, args),
        Command::Trash(command) => trash::run(&context, command.0),
        Command::Config(command) => config::run(&context, command.0),
        Command::Session(command) => session::run(&context, command.0),
        Command::Memory(command) => memory::run(&context, command.0),
        Command::Context(command) => context::run(&context, command.0),
        Command::Rules(command) => rules::run(&context, command.0),
        Command::Trust(args) => rules::trust(&context, &args),
        Command::Ledger(args) => ledger::run(&context, args),
        Command::Pause { duration } => pause::pause(&context, duration.as_deref()),
        Command::Resume => pause::resume(&context),
        Command::Completions { shell } => shell_docs::completions(shell),
        Command::Man { dir } => shell_docs::man(dir.as_deref()),
        Command::CompleteLine { words } => complete::run(&context, &words),
        Command::Reference => reference::run(),
        Command::Install(args) => install::install(&context, &args),
        Command::Uninstall(args) => install::uninstall(&context, &args),
        Command::Doctor(args) => doctor::run(&context, &args),
        Command::Team(Deferred(TeamCommand::Machine(command))) => team_machine::run(&context, command),
        Command::Demo { keep } => demo::run(&context, keep),
        Command::Statusline => {
            status_line(&context);
            Ok(())
        }
        // Handled earlier: hooks in `main`, servers above.
        Command::Mcp | Command::Serve(_) | Command::Team(_) | Command::Hook { .. } => Ok(()),
    });
    let undelivered = context.app.team.take_undelivered();
    for notice in context.app.maintenance.take_notices(lang).into_iter().chain(undelivered) {
        out::labelled(out::YELLOW, "注意", "note", &notice, lang);
    }
    match outcome {
        Ok(()) if context.failed.get() || out::has_output_failed() => ExitCode::FAILURE,
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            context.print_error(&error, lang);
            ExitCode::FAILURE
        }
    }
}

/// `tanmi statusline` with options such as `--json`; without options, [`crate::hook::status_line`] runs instead.
fn status_line(context: &CommandContext) {
    let input = crate::hook::read_status_line_input();
    let home = context.app.home();
    let status = tanmi_app::status_line::read(home, &Stores::local(home), &input, context.app.now());
    context.print_result(&status, |status| status.line(context.app.lang()));
}

impl CommandContext {
    /// Returns the workspace and the session of a command that names at most its workspace.
    fn scope(&self, workspace: Option<&str>) -> Result<CallScope> {
        self.scope_of(&CallTarget::in_workspace(workspace))
    }

    fn scope_of(&self, target: &CallTarget<'_>) -> Result<CallScope> {
        let scope = self.app.resolver.scope(target)?;
        self.set_project(scope.workspace.project.folder());
        Ok(scope)
    }

    /// Records which project the output is about. Trust in it decides how an agent gets the output.
    fn set_project(&self, project: &Path) {
        *self.output_project.borrow_mut() = Some(project.to_owned());
    }

    /// Returns whether an agent reads the output and it has texts of a project that the user has not agreed to.
    fn has_untrusted_texts(&self) -> bool {
        self.interface == Interface::AgentShell
            && match self.output_project.borrow().as_deref() {
                Some(project) => self.app.answers.is_untrusted(project),
                None => {
                    let answers = &self.app.answers;
                    answers.is_untrusted(self.app.project()) || answers.is_memory_untrusted()
                }
            }
    }

    /// Returns the session that runs the command: the named one, or that of the shell. A user in a terminal has none.
    fn caller_session(&self, named: Option<&str>) -> Result<Option<String>> {
        self.app.resolver.caller_session(&CallTarget { session: named, ..CallTarget::default() })
    }

    /// Returns the services for a command that writes texts.
    fn app_for(&self, secrets: SecretsArg) -> App {
        if secrets.mask_secrets { self.app.with_masking(Masking::Apply) } else { self.app.clone() }
    }

    /// Prints the result of a change, what was done about secrets, and what failed after the change was durable.
    fn print_change<T: serde::Serialize>(&self, change: &InWorkspace<T>, show: impl FnOnce(&T) -> String) {
        self.print_secrets(&change.masked, &change.warnings);
        self.print_result(change, |change| show(&change.result));
    }

    /// Prints the masked secrets and the warnings of a change, unless the result is printed as JSON.
    fn print_secrets(&self, masked: &[&str], warnings: &[String]) {
        let lang = self.app.lang();
        if self.json {
            return;
        }
        if !masked.is_empty() {
            out::labelled(out::YELLOW, "注意", "note", &show::masked(masked, lang), lang);
        }
        for warning in warnings {
            out::labelled(out::YELLOW, "警告", "warning", warning, lang);
        }
    }

    /// Prints a result: as JSON with `--json`, else as the text that `show` returns. For an agent, texts of a project
    /// that the user has not agreed to are marked and escaped.
    fn print_result<T: serde::Serialize>(&self, value: &T, show: impl FnOnce(&T) -> String) {
        let lang = self.app.lang();
        let mut marked = match self.interface {
            Interface::AgentShell => serde_json::to_value(value).unwrap_or_default(),
            _ => serde_json::Value::Null,
        };
        let is_untrusted = self.app.answers.for_agent(&mut marked, self.has_untrusted_texts());
        match (self.json, is_untrusted) {
            (true, true) => {
                // A list has no field for the note.
                if marked.is_array() {
                    print_untrusted_note(lang);
                }
                out::json(&marked);
            }
            (true, false) => out::json(value),
            (false, true) => {
                print_untrusted_note(lang);
                out::text(&answers::text_for_agent(&show(value)));
            }
            (false, false) => out::text(&show(value)),
        }
    }

    /// Prints a document, which another program can read byte for byte.
    fn print_document<T: serde::Serialize>(&self, value: &T, document: impl FnOnce(&T) -> String) {
        match self.json || self.has_untrusted_texts() {
            true => self.print_result(value, document),
            false => out::document(&document(value)),
        }
    }

    /// Prints what was read. If it may be outdated, because the server of the team was not reached lately, says so.
    fn print_read<T: serde::Serialize>(&self, value: &T, show: impl FnOnce(&T) -> String) {
        let Some(stale) = self.app.team.staleness() else { return self.print_result(value, show) };
        let mut json =
            if self.json { serde_json::to_value(value).unwrap_or_default() } else { serde_json::Value::Null };
        if tanmi_app::answers::mark_stale(&mut json, &stale) {
            return self.print_result(&json, |_| String::new());
        }
        self.print_result(value, show);
        let lang = self.app.lang();
        let (zh_age, en_age) = match stale.age {
            0..60 => Default::default(),
            seconds => {
                let ago = show::workspace::ago(seconds * 1000, lang);
                (format!("（{ago}）"), format!(", {ago} old"))
            }
        };
        let as_of = stale.as_of;
        let (zh, en) = (
            format!("这是 {as_of} 时的数据{zh_age}；`tanmi team sync` 更新它"),
            format!("this is as of {as_of}{en_age}; `tanmi team sync` brings it up to date"),
        );
        out::labelled(out::DIM, "注意", "note", &lang.pick(zh, en), lang);
    }

    fn print_error(&self, error: &Error, lang: Lang) {
        let mut value = error.to_json(lang, self.interface);
        name_positional(&mut value);
        if self.interface == Interface::AgentShell {
            self.app.answers.error_for_agent(&mut value, self.has_untrusted_texts());
        }
        out::error(&value, lang, self.json);
    }
}

/// Names the argument of an error as the user typed it: many commands take the id of a node or workspace with
/// and without its option.
fn name_positional(error: &mut serde_json::Value) {
    let (option, short, positional) = match error["field"].as_str() {
        Some("nodeId") => ("--node", "-n", "NODE"),
        Some("workspaceId") => ("--workspace", "-w", "WS"),
        _ => return,
    };
    let is_option = |argument: &std::ffi::OsStr| {
        let argument = argument.to_string_lossy();
        argument.starts_with(option) || argument.starts_with(short)
    };
    if std::env::args_os().any(|argument| is_option(&argument)) {
        return;
    }
    let Some(message) = error["message"].as_str() else { return };
    // In parentheses it comes after a text of the caller, which may contain the same word.
    let named = match message.strip_prefix(option) {
        Some(rest) => format!("{positional}{rest}"),
        None => match message.rsplit_once(option) {
            Some((before, rest)) if before.ends_with(['(', '（']) => format!("{before}{positional}{rest}"),
            _ => return,
        },
    };
    error["message"] = named.into();
}

fn print_untrusted_note(lang: Lang) {
    out::labelled(out::YELLOW, "注意", "note", answers::untrusted_note(lang), lang);
}

/// Asks the user a yes-or-no question. Without a terminal, returns an error that contains `what`.
fn confirm(question: &str, what: impl FnOnce() -> serde_json::Value) -> Result<bool> {
    ask_yes_or_no(question).ok_or_else(|| Error::NeedsYes { what: what() })
}

/// Asks the user a yes-or-no question. Any other answer than yes is a no. Returns `None` without a terminal.
fn ask_yes_or_no(question: &str) -> Option<bool> {
    let answer = ask(&format!("{question} [y/N] "))?;
    Some(matches!(answer.to_lowercase().as_str(), "y" | "yes" | "是" | "好"))
}

/// Returns whether the user can answer a question.
fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks the user for a line. Returns `None` without a terminal.
fn ask(question: &str) -> Option<String> {
    if !can_ask() {
        return None;
    }
    out::question(question);
    let mut answer = String::new();
    let _ = std::io::stdin().read_line(&mut answer);
    Some(answer.trim().to_owned())
}

/// Returns the text, or standard input without its last line end if the text is `-`. Long texts then need no quoting.
fn text_or_stdin(field: &'static str, text: String) -> Result<String> {
    if text != "-" {
        return Ok(text);
    }
    let mut input = String::new();
    // Far above the limit of any field. A text over its own limit is refused later, by the check of the field.
    let read = std::io::stdin().lock().take(8 << 20).read_to_string(&mut input);
    if let Err(error) = read {
        let (zh, en) = (format!("无法读取标准输入：{error}"), format!("cannot read stdin: {error}"));
        return Err(tanmi_workspace::Error::invalid(field, zh, en).into());
    }
    if input.ends_with('\n') {
        input.pop();
    }
    Ok(input)
}

/// Reads a file, or standard input for `-`.
fn file_or_stdin(path: &Path, max: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().lock().take(max).read_to_end(&mut bytes),
        false => std::fs::File::open(path).and_then(|file| file.take(max).read_to_end(&mut bytes)),
    };
    read.map(|_| bytes).map_err(Error::io(path))
}

fn optional_text(field: &'static str, text: Option<String>) -> Result<Option<String>> {
    text.map(|text| text_or_stdin(field, text)).transpose()
}

/// Parses docs given as `path: description`, the form that is also used in the files.
fn docs(raw: &[String]) -> Vec<DocReference> {
    raw.iter().map(|item| codec::parse_doc_item(item)).collect()
}

fn statuses(words: &[String]) -> Result<Vec<NodeStatus>> {
    words.iter().map(|word| Ok(NodeStatus::parse("status", word)?)).collect()
}

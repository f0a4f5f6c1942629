//! `tanmi mcp`

use std::process::ExitCode;

use tanmi_app::{App, Env};
use tanmi_event::Source;
use tanmi_workspace::model::Operator;

use crate::out;

/// Runs the MCP server on stdio. Warnings and errors go to standard error: standard output carries the protocol.
pub fn run(env: Env) -> ExitCode {
    let app = App::new(Env {
        operator: Operator::Ai,
        requires_rules_hash: true,
        long_running: true,
        source: Source::Mcp,
        ..env
    });
    let lang = app.lang();
    for warning in &app.config().warnings {
        out::note(&warning.message(lang));
    }
    app.sessions.import_old_bindings();
    if let Err(error) = tanmi_app::follow::start(&app) {
        out::note(&format!("mcp: {error}"));
    }
    match tanmi_server::mcp::run(app) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            out::note(&format!("mcp: {error}"));
            ExitCode::FAILURE
        }
    }
}

//! The operations of the HTTP API about what happens: now, the activity of all projects, and the ledger.

use serde_json::json;
use tanmi_app::activity::{ActivityQuery, KINDS};
use tanmi_app::ledger::LedgerFilter;

use super::ServerState;
use super::page_api::{LIMIT, SESSION, named_session, read_only};
use crate::tools::{
    Call, CallSpec, ID, LINE, ParamKind, Result, optional, required, value, with_description,
};

pub const NOW: CallSpec = read_only(
    "now",
    "Get what happens now in all projects: nodes in progress, problems, failed nodes, plans to confirm, nodes completed today, and \
     sessions at work.",
    &[],
);

pub fn now(_: &Call<'_>, state: &ServerState) -> Result {
    value(&state.activity.now(&state.projects())?)
}

pub const ACTIVITY: CallSpec = read_only(
    "activity",
    "List what happened in all projects, the latest first, one page per call: steps, log entries, open and \
     cleared problems, new nodes, changed rules, facts, bindings and injections.",
    &[
        with_description(optional("kind", ParamKind::Words(KINDS)), "only these kinds"),
        with_description(optional("project", LINE), "folder of a project"),
        optional("workspaceId", ID),
        optional("nodeId", ID),
        optional("sessionId", SESSION),
        LIMIT,
        with_description(optional("before", ID), "nextBefore of the previous page"),
    ],
);

pub fn activity(c: &Call<'_>, state: &ServerState) -> Result {
    let p = &c.arguments;
    let query = ActivityQuery {
        kinds: p.texts("kind").unwrap_or_default(),
        project: p.owned("project"),
        workspace: p.owned("workspaceId"),
        node: p.owned("nodeId"),
        session: named_session(c)?,
        limit: p.number("limit").unwrap_or(100),
        before: p.owned("before"),
    };
    value(&state.activity.list(&state.projects(), &query)?)
}

pub const LEDGER: CallSpec = read_only(
    "ledger",
    "List the latest ledger entries, oldest first: injected texts, times and token counts.",
    &[
        optional("sessionId", SESSION),
        optional("event", ID),
        optional("platform", ID),
        optional("rule", LINE),
        optional("workspaceId", ID),
        optional("nodeId", ID),
        with_description(optional("since", ID), "YYYY-MM-DD (UTC)"),
        with_description(optional("until", ID), "YYYY-MM-DD (UTC)"),
        LIMIT,
        with_description(optional("texts", ParamKind::Flag), "include the injected texts"),
    ],
);

pub fn ledger(c: &Call<'_>, _: &ServerState) -> Result {
    let p = &c.arguments;
    value(&c.app.ledger.list(&LedgerFilter {
        limit: p.number("limit").unwrap_or(100),
        texts: p.flag("texts").unwrap_or(false),
        ..ledger_filter(c)?
    })?)
}

/// Returns the filter that both operations of the ledger take.
fn ledger_filter(c: &Call<'_>) -> Result<LedgerFilter> {
    let p = &c.arguments;
    Ok(LedgerFilter {
        session: named_session(c)?,
        event: p.owned("event"),
        platform: p.owned("platform"),
        rule: p.owned("rule"),
        workspace: p.owned("workspaceId"),
        node: p.owned("nodeId"),
        since: p.owned("since"),
        until: p.owned("until"),
        ..LedgerFilter::default()
    })
}

pub const DAYS: CallSpec = read_only(
    "ledger_days",
    "Get token counts and hook durations per day.",
    &[
        with_description(
            optional("days", ParamKind::Number { min: 1, max: 366 }),
            "the last days; `since` replaces it",
        ),
        optional("sessionId", SESSION),
        optional("event", ID),
        optional("platform", ID),
        optional("rule", LINE),
        optional("workspaceId", ID),
        optional("nodeId", ID),
        with_description(optional("since", ID), "YYYY-MM-DD (UTC)"),
        with_description(optional("until", ID), "YYYY-MM-DD (UTC)"),
    ],
);

pub fn days(c: &Call<'_>, _: &ServerState) -> Result {
    let days = c.arguments.number("days").unwrap_or(30);
    Ok(json!({"days": c.app.ledger.days(days, &ledger_filter(c)?)?}))
}

pub const LEDGER_TEXT: CallSpec =
    read_only("ledger_text", "Get the injected text of a ledger entry.", &[required("digest", ID)]);

pub fn ledger_text(c: &Call<'_>, _: &ServerState) -> Result {
    let digest = c.arguments.needed("digest");
    Ok(json!({"digest": digest, "content": c.app.ledger.text(&digest)?}))
}

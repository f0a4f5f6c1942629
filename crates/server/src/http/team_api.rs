//! The view of a team on the page of a machine: passes requests about the people of a joined project on to
//! its server, with the token of the machine. The server decides what the token may see and do.

use serde_json::{Map, Value};
use tanmi_app::team::TeamCall;
use tanmi_pg::Role;

use super::ServerState;
use super::page_api::{LIMIT, Result, read_only};
use crate::tools::{Call, CallSpec, ID, LINE, Param, ParamKind, optional, required, with_description};

const ROLES: ParamKind = ParamKind::Word(Role::WORDS);
const TOKEN_ID: Param = required("id", ID);
const PERSON: Param = optional("person", LINE);

/// Passes a call on. `path` are the parts of the path below `/team`; arguments that are part of it are `in_path`.
fn call(c: &Call<'_>, method: &'static str, path: &[&str], in_path: &[&str]) -> TeamCall {
    let given = c.arguments.all().iter().filter(|(name, _)| !in_path.contains(&name.as_str()));
    let arguments: Map<String, Value> = given.map(|(name, value)| (name.clone(), value.clone())).collect();
    let path = path.iter().map(|part| (*part).to_owned()).collect();
    TeamCall { method, path, arguments, language: c.app.lang().as_str() }
}

fn get(c: &Call<'_>, path: &str) -> Result {
    c.app.team.ask(&call(c, "GET", &[path], &[]))
}

pub const PRESENCE: CallSpec = read_only(
    "team_presence",
    "List who holds which node in the team. While its server is away: as it last told, with the time in `toldAt`.",
    &[PERSON, LIMIT],
);

pub fn presence(c: &Call<'_>, _: &ServerState) -> Result {
    c.app.team.presence(&call(c, "GET", &["presence"], &[]))
}

pub const CONTRIBUTIONS: CallSpec = read_only(
    "team_contributions",
    "List who did what in the team: nodes started, completed and failed, log entries, problems and facts.",
    &[
        PERSON,
        optional("kind", ID),
        with_description(optional("since", ID), "YYYY-MM-DD (UTC) or 7d"),
        with_description(optional("until", ID), "YYYY-MM-DD (UTC) or 1d"),
        with_description(optional("before", ID), "id of the last entry of the previous page"),
        LIMIT,
    ],
);

pub fn contributions(c: &Call<'_>, _: &ServerState) -> Result {
    get(c, "contributions")
}

pub const PEOPLE: CallSpec =
    read_only("team_people", "List the people of the team.", &[optional("role", ROLES), LIMIT]);

pub fn people(c: &Call<'_>, _: &ServerState) -> Result {
    get(c, "people")
}

pub const DISABLE: CallSpec = CallSpec {
    name: "team_person_disable",
    about: "Disable a person of the team; needs the token of an admin.",
    is_read_only: false,
    params: &[required("name", LINE)],
};

pub fn disable(c: &Call<'_>, _: &ServerState) -> Result {
    let name = c.arguments.needed("name");
    c.app.team.ask(&call(c, "POST", &["people", &name, "disable"], &["name"]))
}

pub const TOKENS: CallSpec = read_only(
    "team_tokens",
    "List tokens; needs the token of an admin.",
    &[PERSON, optional("valid", ParamKind::Flag), LIMIT],
);

pub fn tokens(c: &Call<'_>, _: &ServerState) -> Result {
    get(c, "tokens")
}

pub const CREATE_TOKEN: CallSpec = CallSpec {
    name: "team_token_create",
    about: "Create a token, whose text is told once; needs the token of an admin.",
    is_read_only: false,
    params: &[
        required("person", LINE),
        required("role", ROLES),
        optional("name", LINE),
        with_description(optional("expires", ID), "a time such as 90d"),
    ],
};

pub fn create_token(c: &Call<'_>, _: &ServerState) -> Result {
    c.app.team.ask(&call(c, "POST", &["tokens"], &[]))
}

pub const REVOKE_TOKEN: CallSpec = CallSpec {
    name: "team_token_revoke",
    about: "Revoke a token; needs the token of an admin.",
    is_read_only: false,
    params: &[TOKEN_ID],
};

pub fn revoke_token(c: &Call<'_>, _: &ServerState) -> Result {
    c.app.team.ask(&call(c, "DELETE", &["tokens", &c.arguments.needed("id")], &["id"]))
}

pub const ROTATE_TOKEN: CallSpec = CallSpec {
    name: "team_token_rotate",
    about: "Replace a token, which stays valid for a while; needs the token of an admin.",
    is_read_only: false,
    params: &[TOKEN_ID, with_description(optional("overlap", ID), "a time such as 24h")],
};

pub fn rotate_token(c: &Call<'_>, _: &ServerState) -> Result {
    c.app.team.ask(&call(c, "POST", &["tokens", &c.arguments.needed("id"), "rotate"], &["id"]))
}

pub const AUDIT: CallSpec = read_only(
    "team_audit",
    "List logins and changes of people and tokens; needs the token of an admin.",
    &[PERSON, optional("what", ID), optional("before", ID), LIMIT],
);

pub fn audit(c: &Call<'_>, _: &ServerState) -> Result {
    get(c, "audit")
}

//! `tanmi team person`, `member`, `project`, `token` and `audit`.

use serde_json::{Value, json};
use tanmi_base::{Lang, Millis, clock};
use tanmi_memory::dates;
use tanmi_pg::{AuditFilter, IssuedToken, NewToken, People, Role, TeamFilter, TokenFilter};

use super::{TeamError, check_name, connect, find_project, project_named};
use crate::cli::{AuditArgs, MemberCommand, PersonCommand, ProjectCommand, TeamArgs, TokenCommand};
use crate::{out, show};

const DAY: Millis = 24 * 60 * 60 * 1000;

/// Prints JSON, or a line.
fn print(value: &Value, json: bool, lang: Lang, zh: String, en: String) {
    match json {
        true => out::json(value),
        false => out::text(&format!("{}\n", lang.pick(zh, en))),
    }
}

/// Prints up to `limit` entries, and whether there are more.
fn print_list<T>(
    name: &str,
    mut entries: Vec<T>,
    limit: usize,
    json: bool,
    lang: Lang,
    to_json: fn(&T) -> Value,
    table: impl FnOnce(&[T]) -> String,
) {
    let has_more = entries.len() > limit;
    entries.truncate(limit);
    if json {
        let values: Vec<Value> = entries.iter().map(to_json).collect();
        return out::json(&json!({name: values, "hasMore": has_more}));
    }
    out::text(&table(&entries));
    if has_more {
        out::text(&out::paint(out::DIM, lang.pick("… 还有更多（用 --limit 显示）", "… more (use --limit)")));
    }
}

/// Opens the administration of a team, and returns the id of the team.
fn open_team(args: &TeamArgs, lang: Lang) -> Result<(People<'static>, String), TeamError> {
    let mut people = People::open(&connect(&args.database, lang)?, "")?;
    let team = people.team(args.team.as_deref())?;
    Ok((people, team))
}

pub fn person(command: &PersonCommand, json: bool, lang: Lang) -> Result<(), TeamError> {
    match command {
        PersonCommand::Add { team, name, role: Some(role), project_name } => {
            check_name("NAME", name)?;
            let address = connect(&team.database, lang)?;
            let (project, project_name) = project_named(&address, project_name.as_deref())?;
            let mut people = People::open(&address, &project)?;
            let added = people.add_person(None, name)?;
            people.change_member(name, Role::from_word(role))?;
            let value =
                json!({"person": name, "created": added.is_new, "project": project_name, "role": role});
            let zh = format!("{name} 在项目 {project_name} 中的角色为 {role}");
            print(&value, json, lang, zh, format!("{name} has the role {role} in project {project_name}"));
        }
        PersonCommand::Add { team, name, role: None, .. } => {
            check_name("NAME", name)?;
            let (mut people, team) = open_team(team, lang)?;
            let added = people.add_person(Some(&team), name)?;
            let (zh, en) = match added.is_new {
                true => (format!("已添加 {name}"), format!("added {name}")),
                false => (format!("{name} 已存在"), format!("{name} exists already")),
            };
            print(&json!({"person": name, "created": added.is_new}), json, lang, zh, en);
        }
        PersonCommand::Disable { team, name } | PersonCommand::Enable { team, name } => {
            let is_disabled = matches!(command, PersonCommand::Disable { .. });
            let (mut people, team) = open_team(team, lang)?;
            let changed = people.set_disabled(Some(&team), name, is_disabled)?;
            let value = json!({"person": name, "disabled": is_disabled, "changed": changed});
            let (zh, en) = match is_disabled {
                true => (format!("{name} 已停用"), format!("{name} is disabled")),
                false => (format!("{name} 已启用"), format!("{name} is enabled")),
            };
            print(&value, json, lang, zh, en);
        }
        PersonCommand::List { team: args, project_name, role, limit } => {
            let address = connect(&args.database, lang)?;
            let mut people = People::open(&address, "")?;
            let team = args.team.as_deref().map(|name| people.team(Some(name))).transpose()?;
            let project =
                project_name.as_deref().map(|name| project_named(&address, Some(name))).transpose()?;
            let filter = TeamFilter {
                team,
                project: project.map(|(id, _)| id),
                role: role.clone(),
                limit: limit.saturating_add(1),
            };
            let found = people.people(&filter)?;
            print_list("people", found, *limit, json, lang, tanmi_pg::PersonEntry::to_json, |found| {
                show::team::people(found, lang)
            });
        }
    }
    Ok(())
}

pub fn member(command: &MemberCommand, json: bool, lang: Lang) -> Result<(), TeamError> {
    let MemberCommand::Set { project, person, role } = command;
    let (address, project, name) = find_project(project, lang)?;
    People::open(&address, &project)?.change_member(person, Role::from_word(role))?;
    let (zh, en) = match role.as_str() {
        "none" => (
            format!("{person} 不再是项目 {name} 的成员"),
            format!("{person} is not a member of project {name}"),
        ),
        _ => (
            format!("{person} 在项目 {name} 中的角色为 {role}"),
            format!("{person} has the role {role} in project {name}"),
        ),
    };
    print(&json!({"person": person, "project": name, "role": role}), json, lang, zh, en);
    Ok(())
}

pub fn project(command: &ProjectCommand, json: bool, lang: Lang) -> Result<(), TeamError> {
    match command {
        ProjectCommand::Add { team, name } => {
            check_name("NAME", name)?;
            let (mut people, team) = open_team(team, lang)?;
            let (_, is_new) = people.add_project(&team, name)?;
            let (zh, en) = match is_new {
                true => (
                    format!("已添加项目 {name}；用 tanmi team member set 添加成员"),
                    format!("added project {name}; add members with tanmi team member set"),
                ),
                false => (format!("项目 {name} 已存在"), format!("project {name} exists already")),
            };
            print(&json!({"project": name, "created": is_new}), json, lang, zh, en);
        }
        ProjectCommand::List { team: args, limit } => {
            let mut people = People::open(&connect(&args.database, lang)?, "")?;
            let team = args.team.as_deref().map(|name| people.team(Some(name))).transpose()?;
            let found = people.projects(team.as_deref(), limit.saturating_add(1))?;
            print_list("projects", found, *limit, json, lang, tanmi_pg::ProjectEntry::to_json, |found| {
                show::team::projects(found, lang)
            });
        }
    }
    Ok(())
}

pub fn token(command: &TokenCommand, json: bool, lang: Lang) -> Result<(), TeamError> {
    match command {
        TokenCommand::Create { project, person, role, name, expires, days, this_project_only } => {
            check_name("--person", person)?;
            if !name.is_empty() {
                check_name("--name", name)?;
            }
            let lifetime = match expires {
                Some(text) => Some(duration("--expires", text, 1)?),
                None => days.map(|days| Millis::from(days) * DAY),
            };
            let (address, project, project_name) = find_project(project, lang)?;
            let role = Role::from_word(role).unwrap_or(Role::Reader);
            let mut people = People::open(&address, &project)?;
            people.ensure_member(person, role)?;
            let new = NewToken { person, name, role, lifetime, is_limited: *this_project_only };
            print_token(Some(&project_name), &people.issue_token(&new)?, json, lang);
        }
        TokenCommand::List { database, person, project_name, valid, limit } => {
            let address = connect(database, lang)?;
            let project =
                project_name.as_deref().map(|name| project_named(&address, Some(name))).transpose()?;
            let filter = TokenFilter {
                project: project.map(|(id, _)| id),
                person: person.clone(),
                is_valid: *valid,
                limit: limit.saturating_add(1),
            };
            let mut people = People::open(&address, "")?;
            let (found, now) = (people.tokens(&filter)?, people.now()?);
            print_list("tokens", found, *limit, json, lang, tanmi_pg::TokenEntry::to_json, |found| {
                show::team::tokens(found, now, lang)
            });
        }
        TokenCommand::Revoke { project, id: Some(id), .. } => {
            let (entry, changed) = People::open(&connect(&project.database, lang)?, "")?.revoke_token(id)?;
            let value = json!({"person": entry.person, "id": id, "revoked": usize::from(changed)});
            let (zh, en) = match changed {
                true => (
                    format!("已撤销 {} 的令牌 {id}", entry.person),
                    format!("revoked the token {id} of {}", entry.person),
                ),
                false => (format!("令牌 {id} 早已撤销"), format!("the token {id} was revoked before")),
            };
            print(&value, json, lang, zh, en);
        }
        TokenCommand::Revoke { project, person, id: None } => {
            let person = person.as_deref().unwrap_or_default();
            let (address, project, _) = find_project(project, lang)?;
            let mut people = People::open(&address, &project)?;
            let now = people.now()?;
            let Some(count) = people.revoke_tokens(person, now)? else {
                return Err(tanmi_pg::AdminError::NotMember { name: person.to_owned() }.into());
            };
            let en = format!("revoked {} of {person}", show::counted(count, "token"));
            let value = json!({"person": person, "revoked": count});
            print(&value, json, lang, format!("已撤销 {person} 的 {count} 个令牌"), en);
        }
        TokenCommand::Rotate { database, id, overlap } => {
            let overlap = duration("--overlap", overlap, 0)?;
            let issued = People::open(&connect(database, lang)?, "")?.rotate_token(id, overlap)?;
            print_token(None, &issued, json, lang);
        }
    }
    Ok(())
}

fn duration(option: &'static str, text: &str, least: Millis) -> Result<Millis, TeamError> {
    let time = clock::parse_duration(text).filter(|time| *time >= least);
    time.ok_or_else(|| TeamError::Time { option, text: text.to_owned() })
}

pub fn audit(args: &AuditArgs, json: bool, lang: Lang) -> Result<(), TeamError> {
    let address = connect(&args.database, lang)?;
    let project = args.project_name.as_deref().map(|name| project_named(&address, Some(name))).transpose()?;
    let mut people = People::open(&address, "")?;
    let now = people.now()?;
    let bad = |text: &String| TeamError::Time { option: "--since", text: text.clone() };
    let parse = |text: &String| {
        let day = || dates::parse(text).filter(|_| clock::is_day(text));
        clock::parse_duration(text).map(|time| now - time).or_else(day).ok_or_else(|| bad(text))
    };
    let filter = AuditFilter {
        project: project.map(|(id, _)| id),
        person: args.person.clone(),
        what: args.what.clone(),
        since: args.since.as_ref().map(parse).transpose()?,
        before: args.before.clone(),
        limit: args.limit.saturating_add(1),
    };
    let found = people.audit(&filter)?;
    print_list("entries", found, args.limit, json, lang, tanmi_pg::AuditEntry::to_json, |found| {
        show::team::audit(found, lang)
    });
    Ok(())
}

/// Prints a new token, for the only time.
pub fn print_token(project: Option<&str>, issued: &IssuedToken, json: bool, lang: Lang) {
    let IssuedToken { person, token, role, .. } = issued;
    if json {
        let mut value = issued.to_json();
        if let Some(project) = project {
            value["project"] = json!(project);
        }
        return out::json(&value);
    }
    let role = role.as_str();
    let text = match project {
        Some(project) => lang.pick(
            format!("{person} 在项目 {project} 中的令牌（{role}），只显示这一次："),
            format!("token of {person} in project {project} ({role}), shown only this once:"),
        ),
        None => lang.pick(
            format!("{person} 的令牌（{role}），只显示这一次："),
            format!("token of {person} ({role}), shown only this once:"),
        ),
    };
    // The token alone goes to standard output, so that it can be redirected into a token file.
    out::note(&text);
    out::text(&format!("{token}\n"));
}

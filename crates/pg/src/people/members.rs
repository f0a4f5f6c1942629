//! People, their roles, and the projects of a team.

use serde_json::{Value, json};
use tanmi_base::{Millis, id};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::{AdminError, People, Role};
use crate::audit::AuditKind;
use crate::rows;

const TEAMS: &str = "SELECT id, name FROM team ORDER BY name";
const TEAM_OF_PROJECT: &str = "SELECT team FROM project WHERE id = $1";
const ADD_PERSON: &str = "INSERT INTO person (id, team, name) VALUES ($1, $2, $3)
ON CONFLICT (team, name) DO NOTHING RETURNING id";
const FIND_PERSON: &str = "SELECT p.id, p.disabled_at IS NOT NULL AS is_disabled, m.role FROM person p
LEFT JOIN member m ON m.person = p.id AND m.project = $3 WHERE p.team = $1 AND p.name = $2";
const SET_MEMBER: &str = "INSERT INTO member (project, person, role) VALUES ($1, $2, $3)
ON CONFLICT (project, person) DO UPDATE SET role = excluded.role";
const REMOVE_MEMBER: &str = "DELETE FROM member WHERE project = $1 AND person = $2";
const SET_DISABLED: &str = "UPDATE person SET disabled_at = CASE WHEN $2 THEN
    coalesce(disabled_at, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) END WHERE id = $1";
/// Locks the admins of every project of which a person is an admin, so that two of them are not removed at once.
const LOCK_ADMINS: &str = "SELECT id FROM person WHERE id IN (
    SELECT person FROM member WHERE role = 'admin' AND project IN (
        SELECT project FROM member WHERE person = $1 AND role = 'admin'
    )
) ORDER BY id FOR UPDATE";
const ADMIN_PROJECTS: &str = "SELECT project FROM member WHERE person = $1 AND role = 'admin'";
const WITHOUT_ADMIN: &str = "SELECT j.name FROM project j WHERE j.id = ANY($1::text[]) AND NOT EXISTS (
    SELECT 1 FROM member m JOIN person p ON p.id = m.person
    WHERE m.project = j.id AND m.role = 'admin' AND p.disabled_at IS NULL
) ORDER BY j.name";
const LIST_PEOPLE: &str = "SELECT p.id, p.name, p.disabled_at, t.name AS team,
    coalesce(array_agg(j.name ORDER BY j.name) FILTER (WHERE j.id IS NOT NULL), '{}') AS projects,
    coalesce(array_agg(m.role ORDER BY j.name) FILTER (WHERE j.id IS NOT NULL), '{}') AS roles
FROM person p JOIN team t ON t.id = p.team
LEFT JOIN (member m JOIN project j ON j.id = m.project AND ($2::text IS NULL OR j.id = $2)) ON m.person = p.id
WHERE ($1::text IS NULL OR p.team = $1) AND ($2::text IS NULL OR j.id IS NOT NULL)
    AND ($3::text IS NULL OR m.role = $3)
GROUP BY p.id, p.name, p.disabled_at, t.name ORDER BY t.name, p.name LIMIT $4";
const ADD_PROJECT: &str = "INSERT INTO project (id, team, name) VALUES ($1, $2, $3)
ON CONFLICT (team, name) DO NOTHING RETURNING id";
const FIND_PROJECT: &str = "SELECT id FROM project WHERE team = $1 AND name = $2";
const LIST_PROJECTS: &str = "SELECT j.id, j.name, t.name AS team,
    (SELECT count(*) FROM member m WHERE m.project = j.id) AS members,
    (SELECT count(*) FROM workspace w WHERE w.project = j.id AND w.deleted_at IS NULL) AS workspaces,
    NULL::text AS role
FROM project j JOIN team t ON t.id = j.team
WHERE ($1::text IS NULL OR j.team = $1) ORDER BY t.name, j.name LIMIT $2";
const PROJECTS_OF: &str = "SELECT j.id, j.name, t.name AS team,
    (SELECT count(*) FROM member o WHERE o.project = j.id) AS members, NULL::bigint AS workspaces, m.role
FROM member m JOIN project j ON j.id = m.project JOIN team t ON t.id = j.team
WHERE m.person = $1 AND (m.project = $2 OR EXISTS (SELECT 1 FROM token t WHERE t.id = $3 AND t.project IS NULL))
ORDER BY j.name LIMIT $4";

/// A person with the roles in projects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonEntry {
    pub name: String,
    pub team: String,
    pub disabled_at: Option<Millis>,
    /// The names of the projects, each with the role in it.
    pub roles: Vec<(String, String)>,
}

/// A project with its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectEntry {
    pub id: String,
    pub name: String,
    pub team: String,
    pub members: u64,
    /// `None` if it was not counted.
    pub workspaces: Option<u64>,
    /// The role of the administrator in it.
    pub role: Option<String>,
}

/// Which people to list.
#[derive(Clone, Debug, Default)]
pub struct TeamFilter {
    /// The id of the team.
    pub team: Option<String>,
    /// The id of a project: only its members, with their roles in it.
    pub project: Option<String>,
    pub role: Option<String>,
    pub limit: usize,
}

/// A person after `add_person`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedPerson {
    pub id: String,
    pub is_new: bool,
}

impl PersonEntry {
    pub fn to_json(&self) -> Value {
        let role = |(project, role): &(String, String)| json!({"project": project, "role": role});
        json!({
            "name": self.name, "team": self.team, "disabledAt": self.disabled_at,
            "roles": self.roles.iter().map(role).collect::<Vec<_>>(),
        })
    }
}

impl ProjectEntry {
    pub fn to_json(&self) -> Value {
        let mut value = json!({"name": self.name, "team": self.team, "members": self.members});
        if let Some(workspaces) = self.workspaces {
            value["workspaces"] = json!(workspaces);
        }
        if let Some(role) = &self.role {
            value["role"] = json!(role);
        }
        value
    }
}

struct Person {
    id: String,
    is_disabled: bool,
    role: Option<Role>,
}

impl People<'_> {
    /// Returns the id of the team with this name, or of the only team.
    pub fn team(&mut self, wanted: Option<&str>) -> Result<String, AdminError> {
        let rows = self.connection().query(TEAMS, &[])?;
        let mut found =
            rows.iter().filter(|row| wanted.is_none_or(|name| name == row.get::<_, &str>("name")));
        match (found.next(), found.next()) {
            (Some(row), None) => Ok(row.get("id")),
            _ => Err(AdminError::UnknownTeam {
                wanted: wanted.map(str::to_owned),
                known: rows.iter().map(|row| row.get("name")).collect(),
            }),
        }
    }

    fn team_of_project(&mut self) -> Result<String, AdminError> {
        let project = self.project.clone();
        let rows = self.connection().query(TEAM_OF_PROJECT, &[&project])?;
        let team = rows.first().map(|row| row.get("team"));
        team.ok_or(AdminError::UnknownProject { name: project })
    }

    /// Adds a person to a team: that of the project, if none is named.
    pub fn add_person(&mut self, team: Option<&str>, name: &str) -> Result<AddedPerson, AdminError> {
        self.transact(|people| people.add_person_in(team, name))
    }

    fn add_person_in(&mut self, team: Option<&str>, name: &str) -> Result<AddedPerson, AdminError> {
        let team = team.map_or_else(|| self.team_of_project(), |team| Ok(team.to_owned()))?;
        let now = self.now()?;
        let rows = self.connection().query(ADD_PERSON, &[&id::fresh("person", now), &team, &name])?;
        if let Some(row) = rows.first() {
            let id = row.get("id");
            self.note(AuditKind::PersonAdded, json!({"name": name}))?;
            return Ok(AddedPerson { id, is_new: true });
        }
        let person = self.find_person(&team, name)?;
        Ok(AddedPerson { id: person.id, is_new: false })
    }

    fn find_person(&mut self, team: &str, name: &str) -> Result<Person, AdminError> {
        let project = self.project.clone();
        let rows = self.connection().query(FIND_PERSON, &[&team, &name, &project])?;
        let person = |row: &Row| Person {
            id: row.get("id"),
            is_disabled: row.get("is_disabled"),
            role: row.get::<_, Option<&str>>("role").and_then(Role::from_word),
        };
        rows.first().map(person).ok_or_else(|| AdminError::UnknownPerson { name: name.to_owned() })
    }

    /// Makes a person a member with this role, and creates the person if the name is new. Returns the person's id.
    pub fn set_member(&mut self, name: &str, role: Role) -> Result<String, AdminError> {
        self.transact(|people| people.set_member_in(name, role))
    }

    fn set_member_in(&mut self, name: &str, role: Role) -> Result<String, AdminError> {
        let added = self.add_person_in(None, name)?;
        self.change_role(name, Some(role))?;
        Ok(added.id)
    }

    /// Makes a person a member with at least this role. Returns the person's id.
    pub fn ensure_member(&mut self, name: &str, role: Role) -> Result<String, AdminError> {
        self.transact(|people| {
            let added = people.add_person_in(None, name)?;
            let team = people.team_of_project()?;
            match people.find_person(&team, name)?.role >= Some(role) {
                true => Ok(added.id),
                false => people.set_member_in(name, role),
            }
        })
    }

    /// Sets the role of a person in the project, or removes the person from it.
    pub fn change_member(&mut self, name: &str, role: Option<Role>) -> Result<(), AdminError> {
        self.transact(|people| people.change_role(name, role))
    }

    fn change_role(&mut self, name: &str, role: Option<Role>) -> Result<(), AdminError> {
        role.map_or(Ok(()), |role| self.check_width(role))?;
        let team = self.team_of_project()?;
        let person = self.find_person(&team, name)?;
        if role.is_some() && person.is_disabled {
            return Err(AdminError::PersonDisabled { name: name.to_owned() });
        }
        if person.role == role {
            return Ok(());
        }
        self.keep_an_admin(&person.id, name, |people| {
            let project = people.project.clone();
            match role {
                Some(role) => {
                    people.connection().query(SET_MEMBER, &[&project, &person.id, &role.as_str()])?
                }
                None => people.connection().query(REMOVE_MEMBER, &[&project, &person.id])?,
            };
            let role = role.map_or("none", Role::as_str);
            people.note(AuditKind::MemberSet, json!({"name": name, "role": role}))
        })
    }

    /// Disables a person, whose tokens stop working, or enables the person again. Returns whether that
    /// changed something.
    pub fn set_disabled(
        &mut self,
        team: Option<&str>,
        name: &str,
        is_disabled: bool,
    ) -> Result<bool, AdminError> {
        self.transact(|people| {
            let team = team.map_or_else(|| people.team_of_project(), |team| Ok(team.to_owned()))?;
            let person = people.find_person(&team, name)?;
            if people.admin.is_some() && person.role.is_none() {
                return Err(AdminError::NotMember { name: name.to_owned() });
            }
            people.check_projects(&person.id, name)?;
            if person.is_disabled == is_disabled {
                return Ok(false);
            }
            people.keep_an_admin(&person.id, name, |people| {
                people.connection().query(SET_DISABLED, &[&person.id, &is_disabled])?;
                let what = if is_disabled { AuditKind::PersonDisabled } else { AuditKind::PersonEnabled };
                people.note(what, json!({"name": name}))
            })?;
            Ok(true)
        })
    }

    /// Changes what a person may do. Fails if a project of which the person is an admin has none afterwards.
    fn keep_an_admin(
        &mut self,
        person: &str,
        name: &str,
        change: impl FnOnce(&mut Self) -> Result<(), AdminError>,
    ) -> Result<(), AdminError> {
        self.connection().query(LOCK_ADMINS, &[&person])?;
        // A statement of its own: it sees what was committed while this transaction waited for the lock.
        let projects = self.connection().query(ADMIN_PROJECTS, &[&person])?;
        let projects: Vec<String> = projects.iter().map(|row| row.get("project")).collect();
        change(self)?;
        match self.connection().query(WITHOUT_ADMIN, &[&projects])?.first() {
            Some(row) => Err(AdminError::LastAdmin { name: name.to_owned(), project: row.get("name") }),
            None => Ok(()),
        }
    }

    /// Returns people by name.
    pub fn people(&mut self, filter: &TeamFilter) -> Result<Vec<PersonEntry>, AdminError> {
        let TeamFilter { team, project, role, limit } = filter;
        let params: [&(dyn ToSql + Sync); 4] = [team, project, role, &rows::limit(*limit)];
        let entry = |row: &Row| {
            let (projects, roles): (Vec<String>, Vec<String>) = (row.get("projects"), row.get("roles"));
            PersonEntry {
                name: row.get("name"),
                team: row.get("team"),
                disabled_at: row.get("disabled_at"),
                roles: projects.into_iter().zip(roles).collect(),
            }
        };
        Ok(self.connection().query(LIST_PEOPLE, &params)?.iter().map(entry).collect())
    }

    /// Adds a project to a team. Returns its id, and whether it is new.
    pub fn add_project(&mut self, team: &str, name: &str) -> Result<(String, bool), AdminError> {
        self.transact(|people| {
            let now = people.now()?;
            let rows = people.connection().query(ADD_PROJECT, &[&id::fresh("project", now), &team, &name])?;
            if let Some(row) = rows.first() {
                people.note(AuditKind::ProjectAdded, json!({"project": name}))?;
                return Ok((row.get("id"), true));
            }
            let rows = people.connection().query(FIND_PROJECT, &[&team, &name])?;
            let id = rows.first().map(|row| row.get("id"));
            id.map(|id| (id, false)).ok_or_else(|| AdminError::UnknownProject { name: name.to_owned() })
        })
    }

    /// Returns projects by name. An admin sees those in which the token is valid.
    pub fn projects(&mut self, team: Option<&str>, limit: usize) -> Result<Vec<ProjectEntry>, AdminError> {
        let (limit, project) = (rows::limit(limit), self.project.clone());
        let rows = match self.admin.clone() {
            Some(admin) => {
                self.connection().query(PROJECTS_OF, &[&admin.person, &project, &admin.token, &limit])?
            }
            None => self.connection().query(LIST_PROJECTS, &[&team, &limit])?,
        };
        Ok(rows.iter().map(project_entry).collect())
    }
}

fn project_entry(row: &Row) -> ProjectEntry {
    ProjectEntry {
        id: row.get("id"),
        name: row.get("name"),
        team: row.get("team"),
        members: row.get::<_, i64>("members").unsigned_abs(),
        workspaces: row.get::<_, Option<i64>>("workspaces").map(i64::unsigned_abs),
        role: row.get("role"),
    }
}

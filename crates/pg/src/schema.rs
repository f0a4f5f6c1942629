//! The schema: migrations, its version, and the role of the program. Runs as the owner of the tables, who sees all
//! projects.

use tanmi_base::{Millis, id};

use crate::address::Address;
use crate::connection::Connection;
use crate::error::{DatabaseError, DatabaseTrouble};
use crate::people::AdminError;

/// The role that every connection of a server takes. It cannot log in and cannot bypass row-level security.
pub const APP_ROLE: &str = "tanmi_app";

/// The migrations in order. A published migration never changes.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_workspaces.sql"),
    include_str!("../migrations/0002_people.sql"),
    include_str!("../migrations/0003_memory.sql"),
    include_str!("../migrations/0004_bindings.sql"),
    include_str!("../migrations/0005_administration.sql"),
    include_str!("../migrations/0006_logins.sql"),
    include_str!("../migrations/0007_contributions.sql"),
    include_str!("../migrations/0008_retention.sql"),
];

/// The version of the schema that this program creates: the number of its migrations.
pub const VERSION: i32 = MIGRATIONS.len() as i32;

/// Creates the role. Roles belong to the whole cluster, so another database may have created it, even at the same time.
const CREATE_ROLE: &str = "DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'tanmi_app') THEN
        CREATE ROLE tanmi_app NOLOGIN NOBYPASSRLS;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
GRANT tanmi_app TO CURRENT_USER";

const CREATE_VERSION: &str = "CREATE TABLE IF NOT EXISTS schema_version (version integer NOT NULL);
ALTER TABLE schema_version ADD COLUMN IF NOT EXISTS oldest integer NOT NULL DEFAULT 1";

/// The oldest version of a program that works with the current schema. An older server would take a change without its
/// documents for one that wrote nothing.
const OLDEST: i32 = 8;

/// What the role may do: work with the rows of a project, and read and change who may do so.
const GRANT: &str = "GRANT SELECT ON schema_version, team, project TO tanmi_app;
GRANT SELECT, INSERT, UPDATE ON person, token TO tanmi_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON member TO tanmi_app;
GRANT SELECT, INSERT ON audit TO tanmi_app;
GRANT SELECT, INSERT, UPDATE ON stream, workspace, session, memory TO tanmi_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON node, dependency, trash, tally TO tanmi_app;
GRANT SELECT, INSERT ON change TO tanmi_app;
GRANT UPDATE (docs) ON change TO tanmi_app;
GRANT SELECT, INSERT, DELETE ON request TO tanmi_app";

/// Creates the schema, or adds what is missing. Does nothing to a current schema, and refuses a newer one.
pub fn migrate(address: &Address) -> Result<(), DatabaseError> {
    let mut owner = address.connect(None)?;
    owner.batch(CREATE_ROLE)?;
    owner.batch(CREATE_VERSION)?;
    // Another process that migrates waits here, and then finds the schema current.
    owner.batch("BEGIN; LOCK TABLE schema_version IN EXCLUSIVE MODE")?;
    let found = read_version(&mut owner)?;
    if found > VERSION {
        return Err(DatabaseTrouble::NewerSchema { found, known: VERSION }.into());
    }
    for migration in MIGRATIONS.iter().skip(found.unsigned_abs() as usize) {
        owner.batch(migration)?;
    }
    owner.batch(GRANT)?;
    owner.batch(&format!(
        "DELETE FROM schema_version; INSERT INTO schema_version (version, oldest) VALUES ({VERSION}, {OLDEST}); COMMIT"
    ))?;
    Ok(())
}

/// Fails if this program cannot work with the schema. A newer schema says which programs can.
pub(crate) fn check_version(connection: &mut Connection) -> Result<(), DatabaseError> {
    let found = read_version(connection)?;
    if found == 0 {
        return Err(DatabaseTrouble::MissingSchema.into());
    }
    if found < VERSION {
        return Err(DatabaseTrouble::OlderSchema { found, known: VERSION }.into());
    }
    let rows = connection.query("SELECT oldest FROM schema_version", &[])?;
    match rows.first().is_some_and(|row| row.get::<_, i32>(0) > VERSION) {
        true => Err(DatabaseTrouble::NewerSchema { found, known: VERSION }.into()),
        false => Ok(()),
    }
}

/// Returns the number of applied migrations; 0 without a schema.
fn read_version(owner: &mut Connection) -> Result<i32, DatabaseError> {
    if owner.query("SELECT 1 WHERE to_regclass('schema_version') IS NOT NULL", &[])?.is_empty() {
        return Ok(0);
    }
    let rows = owner.query("SELECT version FROM schema_version", &[])?;
    Ok(rows.first().map_or(0, |row| row.get(0)))
}

/// Creates a project of a team, and the team if it is the first one: a second one is more often a typing
/// error. Returns the id of the project, which stays the same if it exists.
pub fn create_project(address: &Address, team: &str, name: &str, now: Millis) -> Result<String, AdminError> {
    let mut owner = address.connect(None)?;
    owner.batch("BEGIN; LOCK TABLE team IN EXCLUSIVE MODE")?;
    let known = owner.query("SELECT name FROM team ORDER BY name", &[])?;
    let known: Vec<String> = known.iter().map(|row| row.get(0)).collect();
    if !known.is_empty() && !known.iter().any(|known| known == team) {
        return Err(AdminError::UnknownTeam { wanted: Some(team.to_owned()), known });
    }
    owner.query(
        "INSERT INTO team (id, name) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
        &[&id::fresh("team", now), &team],
    )?;
    let rows = owner.query(
        "INSERT INTO project (id, team, name) SELECT $1, id, $3 FROM team WHERE name = $2
         ON CONFLICT (team, name) DO UPDATE SET name = excluded.name RETURNING id",
        &[&id::fresh("project", now), &team, &name],
    )?;
    owner.batch("COMMIT")?;
    let found = rows.first().map(|row| row.get(0));
    Ok(found.ok_or_else(|| DatabaseError::Failed(String::from("the project was not created")))?)
}

/// Returns the id and the name of every project, by name.
pub fn projects(address: &Address) -> Result<Vec<(String, String)>, DatabaseError> {
    let mut owner = address.connect(None)?;
    if read_version(&mut owner)? == 0 {
        return Err(DatabaseTrouble::MissingSchema.into());
    }
    let rows = owner.query("SELECT id, name FROM project ORDER BY name", &[])?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

//! The administration of a team: people, roles, tokens and the audit.

use std::thread;

use tanmi_pg::*;
use tanmi_workspace::stories::NOW;

use crate::cluster::Cluster;

const HOUR: i64 = 3_600_000;

/// A team with two projects and an admin of the first.
struct Team {
    cluster: Cluster,
    app: String,
    shop: String,
    pool: Pool,
}

impl Team {
    fn start() -> Option<Team> {
        let cluster = Cluster::start()?;
        let address = cluster.address();
        migrate(&address).unwrap();
        let app = create_project(&address, "team", "app", NOW).unwrap();
        let shop = create_project(&address, "team", "shop", NOW).unwrap();
        let team = Team { pool: Pool::new(address), cluster, app, shop };
        team.owner(&team.app).set_member("ada", Role::Admin).unwrap();
        Some(team)
    }

    fn owner(&self, project: &str) -> People<'static> {
        People::open(&self.cluster.address(), project).unwrap()
    }

    /// Creates a token of a member.
    fn token(&self, project: &str, person: &str, role: Role, is_limited: bool) -> IssuedToken {
        let new = NewToken { person, name: "laptop", role, lifetime: None, is_limited };
        self.owner(project).issue_token(&new).unwrap()
    }

    fn access(&self, project: &str, token: &str) -> Access {
        self.pool.authenticate(Some(project), token).unwrap()
    }

    fn is_valid(&self, project: &str, token: &str) -> bool {
        matches!(self.access(project, token), Access::Granted(_))
    }

    /// Administers the project `app` over HTTP with a token.
    fn as_admin<T>(
        &self,
        token: &str,
        work: impl Fn(&mut People<'_>) -> Result<T, AdminError>,
    ) -> Result<T, AdminError> {
        let Access::Granted(caller) = self.access("app", token) else { panic!("{token}") };
        let admin = Administrator::new(&caller, token, Some(String::from("192.0.2.7")));
        self.pool.administer(&caller.project, &admin, work)
    }

    fn audit(&self) -> Vec<String> {
        let filter = AuditFilter { limit: 99, ..AuditFilter::default() };
        self.owner("").audit(&filter).unwrap().into_iter().map(|entry| entry.what).collect()
    }
}

fn code<T>(outcome: Result<T, AdminError>) -> &'static str {
    outcome.map_or_else(|error| error.code(), |_| "OK")
}

#[test]
fn person_disabled_loses_access_until_enabled() {
    let Some(team) = Team::start() else { return };
    let mut owner = team.owner(&team.app);
    owner.set_member("bob", Role::Member).unwrap();
    let token = team.token(&team.app, "bob", Role::Member, false).token;
    assert!(team.is_valid("app", &token));
    assert!(owner.set_disabled(None, "bob", true).unwrap());
    assert!(!owner.set_disabled(None, "bob", true).unwrap(), "a second time changes nothing");
    assert_eq!(team.access("app", &token), Access::UnknownToken);
    assert_eq!(code(owner.change_member("bob", Some(Role::Reader))), "PERSON_DISABLED");
    assert!(owner.set_disabled(None, "bob", false).unwrap());
    assert!(team.is_valid("app", &token));
    assert_eq!(code(owner.set_disabled(None, "eve", true)), "PERSON_NOT_FOUND");
    let list = owner.people(&TeamFilter { limit: 9, ..TeamFilter::default() }).unwrap();
    let roles: Vec<_> = list.iter().map(|person| (person.name.as_str(), person.roles.clone())).collect();
    let in_app = |role: &str| vec![(String::from("app"), String::from(role))];
    assert_eq!(roles, [("ada", in_app("admin")), ("bob", in_app("member"))]);
    let admins = TeamFilter { role: Some(String::from("admin")), limit: 9, ..TeamFilter::default() };
    assert_eq!(owner.people(&admins).unwrap().len(), 1);
}

#[test]
fn last_admin_is_not_removed_not_even_by_two_at_once() {
    let Some(team) = Team::start() else { return };
    let mut owner = team.owner(&team.app);
    assert_eq!(code(owner.change_member("ada", None)), "LAST_ADMIN");
    assert_eq!(code(owner.change_member("ada", Some(Role::Member))), "LAST_ADMIN");
    assert_eq!(code(owner.set_disabled(None, "ada", true)), "LAST_ADMIN");
    for round in 0..10 {
        owner.set_disabled(None, "ada", false).unwrap();
        owner.set_member("ada", Role::Admin).unwrap();
        owner.set_member("bob", Role::Admin).unwrap();
        let codes: Vec<&str> = thread::scope(|scope| {
            let one = scope.spawn(|| code(team.owner(&team.app).set_disabled(None, "ada", true)));
            let two = scope.spawn(|| code(team.owner(&team.app).change_member("bob", None)));
            [one, two].map(|thread| thread.join().unwrap()).into()
        });
        assert_eq!(codes.iter().filter(|code| **code == "OK").count(), 1, "round {round}: {codes:?}");
    }
}

#[test]
fn token_limits_expiry_and_rotation() {
    let Some(team) = Team::start() else { return };
    team.owner(&team.shop).set_member("ada", Role::Admin).unwrap();
    let limited = team.token(&team.app, "ada", Role::Admin, true);
    assert!(team.is_valid("app", &limited.token));
    assert_eq!(team.access("shop", &limited.token), Access::NotMember);
    assert!(matches!(team.pool.authenticate(None, &limited.token).unwrap(), Access::Granted(_)));
    let mut owner = team.owner(&team.app);
    let new =
        NewToken { person: "ada", name: "ci", role: Role::Reader, lifetime: Some(HOUR), is_limited: true };
    let old = owner.issue_token(&new).unwrap();
    let rotated = owner.rotate_token(&old.id, HOUR / 2).unwrap();
    assert!(team.is_valid("app", &old.token) && team.is_valid("app", &rotated.token), "both in the overlap");
    let find = |owner: &mut People<'_>, id: &str| {
        let all = owner.tokens(&TokenFilter { limit: 99, ..TokenFilter::default() }).unwrap();
        all.into_iter().find(|token| token.id == id).unwrap()
    };
    let (before, after) = (find(&mut owner, &old.id), find(&mut owner, &rotated.id));
    assert!(before.expires_at.unwrap() < before.created_at + HOUR, "the old one ends with the overlap");
    assert_eq!(
        after.expires_at.unwrap() - after.created_at,
        HOUR,
        "the new one has the lifetime of the old one"
    );
    assert_eq!((after.name.as_str(), after.role.as_str(), after.project), ("ci", "reader", before.project));
    let again = owner.rotate_token(&rotated.id, 0).unwrap();
    assert!(!team.is_valid("app", &rotated.token) && team.is_valid("app", &again.token), "no overlap");
    assert_eq!(code(owner.rotate_token(&rotated.id, 0)), "TOKEN_ENDED");
    assert!(owner.revoke_token(&again.id).unwrap().1);
    assert!(!owner.revoke_token(&again.id).unwrap().1, "a second time changes nothing");
    assert!(!team.is_valid("app", &again.token));
    assert_eq!(code(owner.revoke_token("no-such")), "TOKEN_NOT_FOUND");
    let valid = TokenFilter { is_valid: true, limit: 99, ..TokenFilter::default() };
    let valid: Vec<String> = owner.tokens(&valid).unwrap().into_iter().map(|token| token.id).collect();
    assert_eq!(valid, [limited.id, old.id]);
}

#[test]
fn last_use_of_a_token_is_written_at_most_once_a_minute() {
    let Some(team) = Team::start() else { return };
    let token = team.token(&team.app, "ada", Role::Admin, false).token;
    let version = || team.cluster.sql("SELECT last_used_at, xmin FROM token");
    assert!(version().starts_with('|'), "not used yet");
    assert!(!team.is_valid("app", &format!("{token}x")));
    assert!(version().starts_with('|'), "a forged token");
    assert!(team.is_valid("app", &token));
    let first = version();
    assert!(!first.starts_with('|'), "{first}");
    assert!(team.is_valid("app", &token));
    assert_eq!(version(), first, "used again at once");
    team.cluster.sql("UPDATE token SET last_used_at = last_used_at - 61000");
    assert!(team.is_valid("app", &token));
    assert!(version().split('|').next() >= first.split('|').next(), "used again after a minute");
}

#[test]
fn admin_of_one_project_changes_only_what_concerns_it() {
    let Some(team) = Team::start() else { return };
    let ada = team.token(&team.app, "ada", Role::Admin, false).token;
    team.owner(&team.app).set_member("bob", Role::Member).unwrap();
    team.owner(&team.shop).set_member("bob", Role::Admin).unwrap();
    let everywhere = team.token(&team.shop, "bob", Role::Admin, false);
    let in_shop = team.token(&team.shop, "bob", Role::Admin, true);
    let refused = |error: Result<bool, AdminError>| match error {
        Err(AdminError::ForeignProjects { projects, .. }) => projects,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(team.as_admin(&ada, |people| people.set_disabled(None, "bob", true))), ["shop"]);
    let revoke = |people: &mut People<'_>, id: &str| people.revoke_token(id).map(|(_, done)| done);
    assert_eq!(refused(team.as_admin(&ada, |people| revoke(people, &everywhere.id))), ["shop"]);
    assert_eq!(code(team.as_admin(&ada, |people| revoke(people, &in_shop.id))), "TOKEN_NOT_FOUND");
    let seen = TokenFilter { project: Some(team.app.clone()), limit: 99, ..TokenFilter::default() };
    let seen = team.as_admin(&ada, |people| people.tokens(&seen)).unwrap();
    assert!(seen.iter().all(|token| token.id != in_shop.id) && seen.len() == 2, "{seen:?}");
    team.owner(&team.shop).set_member("ada", Role::Admin).unwrap();
    let narrow = team.token(&team.app, "ada", Role::Admin, true).token;
    assert_eq!(refused(team.as_admin(&narrow, |people| people.set_disabled(None, "bob", true))), ["shop"]);
    assert_eq!(team.as_admin(&narrow, |people| people.projects(None, 9)).unwrap().len(), 1);
    assert_eq!(team.as_admin(&ada, |people| people.projects(None, 9)).unwrap().len(), 2);
    assert!(
        team.as_admin(&ada, |people| revoke(people, &everywhere.id)).unwrap(),
        "an admin of both projects"
    );
    assert_eq!(team.as_admin(&ada, |people| people.change_member("bob", None)).map(|()| 1).unwrap(), 1);
    assert!(!team.is_valid("app", &in_shop.token) && team.is_valid("shop", &in_shop.token));
}

#[test]
fn token_narrower_than_admin_creates_no_wider_one() {
    let Some(team) = Team::start() else { return };
    let reader = team.token(&team.app, "ada", Role::Reader, false).token;
    let new = NewToken { person: "ada", name: "", role: Role::Member, lifetime: None, is_limited: true };
    assert_eq!(code(team.as_admin(&reader, |people| people.issue_token(&new))), "FORBIDDEN");
    assert_eq!(
        code(team.as_admin(&reader, |people| people.change_member("ada", Some(Role::Admin)))),
        "FORBIDDEN"
    );
    let admin = team.token(&team.app, "ada", Role::Admin, false);
    assert_eq!(code(team.as_admin(&reader, |people| people.rotate_token(&admin.id, 0))), "FORBIDDEN");
}

#[test]
fn role_of_the_program_changes_members_of_one_project_only() {
    let Some(team) = Team::start() else { return };
    let sql = format!(
        "SET ROLE tanmi_app; BEGIN; SET LOCAL tanmi.project = '{}'; UPDATE member SET role = 'reader'; \
         DELETE FROM audit; COMMIT",
        team.shop
    );
    let refused = team.cluster.psql(&sql).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("audit"), "{refused:?}");
    let sql = sql.replace("DELETE FROM audit;", "");
    assert!(team.cluster.psql(&sql).output().unwrap().status.success());
    assert_eq!(team.cluster.sql("SELECT role FROM member").trim(), "admin");
}

#[test]
fn every_change_is_in_the_audit_with_its_author() {
    let Some(team) = Team::start() else { return };
    let ada = team.token(&team.app, "ada", Role::Admin, false).token;
    team.as_admin(&ada, |people| people.set_member("bob", Role::Member)).unwrap();
    let new = NewToken { person: "bob", name: "", role: Role::Member, lifetime: None, is_limited: true };
    let token = team.as_admin(&ada, |people| people.issue_token(&new)).unwrap();
    let rotated = team.as_admin(&ada, |people| people.rotate_token(&token.id, 0)).unwrap();
    team.as_admin(&ada, |people| people.revoke_token(&rotated.id)).unwrap();
    team.as_admin(&ada, |people| people.set_disabled(None, "bob", true)).unwrap();
    team.owner("").add_project("none", "x").unwrap_err();
    let id = team.owner("").team(None).unwrap();
    assert!(team.owner("").add_project(&id, "new").unwrap().1);
    let what = [
        "project_added",
        "person_disabled",
        "token_revoked",
        "token_rotated",
        "token_created",
        "member_set",
        "person_added",
        "token_created",
        "member_set",
        "person_added",
    ];
    assert_eq!(team.audit(), what);
    let filter = AuditFilter { person: Some(String::from("bob")), limit: 3, ..AuditFilter::default() };
    let page = team.as_admin(&ada, |people| people.audit(&filter)).unwrap();
    assert_eq!(page.len(), 3);
    assert!(page.iter().all(|entry| entry.ip.as_deref() == Some("192.0.2.7")), "{page:?}");
    assert!(page.iter().all(|entry| entry.person.as_deref() == Some("ada")), "{page:?}");
    let next = AuditFilter { before: Some(page[2].id.clone()), limit: 99, ..filter };
    assert_eq!(team.as_admin(&ada, |people| people.audit(&next)).unwrap().len(), 3);
    let everything =
        format!("{:?}", team.owner("").audit(&AuditFilter { limit: 99, ..AuditFilter::default() }));
    for secret in [&token.token, &rotated.token] {
        assert!(!everything.contains(secret.rsplit('_').next().unwrap()), "a secret is in the audit");
    }
}

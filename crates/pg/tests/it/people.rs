//! Tokens and roles.

use tanmi_pg::{Access, People, Pool, Role, create_project, migrate};
use tanmi_workspace::stories::NOW;

use crate::cluster::Cluster;

#[test]
fn token_valid_returns_person_with_lower_role() {
    let Some(cluster) = Cluster::start() else { return };
    let address = cluster.address();
    migrate(&address).unwrap();
    let project = create_project(&address, "team", "app", NOW).unwrap();
    create_project(&address, "team", "other", NOW).unwrap();
    let mut people = People::open(&address, &project).unwrap();
    let ada = people.set_member("ada", Role::Admin).unwrap();
    let full = people.create_token(&ada, Role::Admin, NOW, None).unwrap();
    let narrow = people.create_token(&ada, Role::Reader, NOW, Some(i64::MAX)).unwrap();
    let expired = people.create_token(&ada, Role::Admin, NOW, Some(1)).unwrap();
    let pool = Pool::new(address);
    let role = |token: &str, project: &str| match pool.authenticate(Some(project), token).unwrap() {
        Access::Granted(caller) => Some((caller.name, caller.role)),
        Access::NotMember | Access::SeveralProjects(_) | Access::UnknownToken => None,
    };
    assert_eq!(role(&full, "app"), Some((String::from("ada"), Role::Admin)));
    assert_eq!(role(&narrow, "app"), Some((String::from("ada"), Role::Reader)));
    assert_eq!(role(&expired, "app"), None, "an expired token");
    for project in ["other", "no-such-project"] {
        assert_eq!(pool.authenticate(Some(project), &full).unwrap(), Access::NotMember, "{project}");
    }
    let last = if full.ends_with('x') { 'y' } else { 'x' };
    let forged = format!("{}{last}", &full[..full.len() - 1]);
    for bad in [forged.as_str(), "", "tnm_", "tnm__", "x", "tnm_'; DROP TABLE token; --_x"] {
        assert_eq!(role(bad, "app"), None, "{bad:?}");
    }
    for (asked, expected) in
        [(Role::Reader, Role::Reader), (Role::Member, Role::Member), (Role::Reader, Role::Member)]
    {
        let bob = people.ensure_member("bob", asked).unwrap();
        let token = people.create_token(&bob, Role::Admin, NOW, None).unwrap();
        assert_eq!(role(&token, "app"), Some((String::from("bob"), expected)), "{asked:?}");
    }
    assert_eq!(people.revoke_tokens("ada", NOW).unwrap(), Some(3));
    assert_eq!(role(&full, "app"), None, "a revoked token");
}

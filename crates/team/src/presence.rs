//! Who works on what in a joined project, as the server last told: `presence.json` beside the replica. It can
//! be deleted.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tanmi_base::Millis;
use tanmi_base::fs::{self, Durability};
use tanmi_protocol::{Beat, Present};

const FILE: &str = "presence.json";

/// The sessions of a team, and what else a server tells with them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Presence {
    /// When the server told it, by our clock.
    pub as_of: Millis,
    /// How far the clock of the server is ahead of ours.
    pub skew: Millis,
    pub sessions: Vec<Present>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_expires_at: Option<Millis>,
    /// The version of the program of the server, and that of its schema.
    pub program: String,
    pub schema: i32,
}

impl Presence {
    /// Returns what an answer of the server tells.
    pub fn of_beat(beat: Beat, now: Millis) -> Presence {
        Presence {
            as_of: now,
            skew: beat.now - now,
            sessions: beat.presence,
            token_expires_at: beat.token_expires_at,
            program: beat.program,
            schema: beat.schema,
        }
    }

    /// Returns what is known in a replica. A missing or damaged file tells nothing.
    pub fn read(replica: &Path) -> Presence {
        let bytes = fs::read_optional(&replica.join(FILE)).ok().flatten();
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    pub fn write(&self, replica: &Path) -> io::Result<()> {
        let text = serde_json::to_vec(self)?;
        fs::replace_private(&replica.join(FILE), &text, replica, Durability::Journaled)
    }

    /// Returns a session that the server named.
    pub fn find(&self, session: &str) -> Option<&Present> {
        self.sessions.iter().find(|present| present.session == session)
    }

    /// Returns whether a session of another machine can be alive. One that the server did not name may have
    /// begun since.
    pub fn is_live(&self, session: &str, now: Millis) -> bool {
        let lease = self.find(session).map(|present| present.lease_until);
        lease.flatten().is_none_or(|until| until > now + self.skew)
    }

    /// Returns the person and the machine of a session, such as `bob (laptop)`.
    pub fn name(&self, session: &str) -> Option<String> {
        self.find(session).map(|present| name(&present.person, &present.machine))
    }
}

/// Returns a person with the machine, in any language.
pub fn name(person: &str, machine: &str) -> String {
    match machine {
        "" => person.to_owned(),
        machine => format!("{person} ({machine})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn presence() -> Presence {
        let present = |session: &str, lease_until| Present {
            session: session.to_owned(),
            person: String::from("bob"),
            machine: String::from("laptop"),
            lease_until,
            ..Present::default()
        };
        let sessions = vec![present("s-1", Some(1500)), present("@bob", None)];
        Presence { as_of: 1000, skew: 300, sessions, ..Presence::default() }
    }

    #[test]
    fn session_is_live_until_its_lease_ends_by_clock_of_server() {
        let presence = presence();
        assert!(presence.is_live("s-1", 1199) && !presence.is_live("s-1", 1200));
        assert!(presence.is_live("@bob", 9_000_000), "a person has no lease");
        assert!(presence.is_live("unknown", 9_000_000), "it may have begun since");
        assert_eq!(presence.name("s-1").as_deref(), Some("bob (laptop)"));
    }

    #[test]
    fn file_missing_or_damaged_tells_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Presence::read(dir.path()), Presence::default());
        presence().write(dir.path()).unwrap();
        assert_eq!(Presence::read(dir.path()), presence());
        fs::write_private(&dir.path().join(FILE), b"{").unwrap();
        assert_eq!(Presence::read(dir.path()), Presence::default());
    }
}

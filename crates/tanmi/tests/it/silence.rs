//! Moments at which a project without workspaces and memory gets no text, with the recorded payloads of every client.

use std::path::Path;

use serde_json::{Value, json};
use tanmi_event::{Event, EventKind, Platform, StartSource};
use tanmi_platform::CLIENTS;

use crate::agent::run_with_payload;
use crate::env::TestEnv;

/// A recorded payload, changed so that it comes from one session in the project of the test.
struct Recorded {
    /// The name of its file. The event is the part before the first full stop.
    name: String,
    payload: Value,
    event: Event,
}

impl Recorded {
    fn event_name(&self) -> &str {
        self.name.split('.').next().unwrap()
    }

    /// Runs the hook with the payload and returns its output. `turn` identifies the prompt.
    fn send(&self, env: &TestEnv, platform: &Platform, turn: usize) -> String {
        let mut payload = self.payload.clone();
        for key in ["prompt_id", "turn_id", "generation_id"] {
            set(&mut payload, key, json!(turn.to_string()));
        }
        let args = ["hook", platform.id, self.event_name()];
        let output = run_with_payload(env, &args, payload.to_string().as_bytes());
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Replaces a field if the payload has it.
fn set(payload: &mut Value, key: &str, value: Value) {
    if let Some(field) = payload.get_mut(key) {
        *field = value;
    }
}

/// Returns the names of the files and the recorded payloads of a client, changed so that they come from one
/// session in a project.
pub fn recorded_payloads(platform: &Platform, session: &str, project: &Path) -> Vec<(String, Value)> {
    let dir = format!("{}/../platform/fixtures/{}", env!("CARGO_MANIFEST_DIR"), platform.id);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let mut payload: Value = serde_json::from_slice(&std::fs::read(entry.path()).unwrap()).unwrap();
        for key in ["session_id", "sessionId", "conversation_id"] {
            set(&mut payload, key, json!(session));
        }
        set(&mut payload, "cwd", json!(project));
        set(&mut payload, "workspace_roots", json!([project]));
        found.push((name, payload));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// Returns the recorded payloads of a client that are events.
fn recorded(platform: &'static Platform, project: &Path) -> Vec<Recorded> {
    let to_event = |(name, payload): (String, Value)| {
        let event = CLIENTS.read(platform, name.split('.').next(), payload.to_string().as_bytes())?;
        Some(Recorded { name, payload, event })
    };
    recorded_payloads(platform, "s", project).into_iter().filter_map(to_event).collect()
}

/// Returns the output at every recorded stop, compaction and session end of a client in a folder, after enough prompts
/// and time for a request for a summary.
fn outputs_at_end(env: &TestEnv, platform: &'static Platform, folder: &Path) -> Vec<(EventKind, String)> {
    let recorded = recorded(platform, folder);
    let prompt = recorded.iter().find(|one| one.event.kind == EventKind::PromptSubmit).unwrap();
    for turn in 0..6 {
        prompt.send(env, platform, turn);
    }
    env.tick(3_600_000);
    let is_end = |event: &Event| {
        matches!(event.kind, EventKind::Stop | EventKind::PreCompact | EventKind::SessionEnd)
            || event.payload.start == Some(StartSource::Compact)
    };
    let mut outputs = Vec::new();
    for one in recorded.iter().filter(|one| is_end(&one.event)) {
        outputs.push((one.event.kind, one.send(env, platform, 7)));
    }
    outputs
}

#[test]
fn project_without_data_gets_no_text_at_stop_compaction_and_end() {
    let mut spoken = Vec::new();
    for platform in CLIENTS.iter().map(|client| client.platform) {
        let env = TestEnv::new();
        // The user has data elsewhere, so there is a home store that keeps the state of the session.
        let elsewhere = env.root().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        assert!(env.run_in(&elsewhere, &["workspace", "init", "--name", "n", "--goal", "g"]).ok);
        // The home folder has only the files of sessions.
        for folder in [&env.project, &env.root().join("home")] {
            for (kind, output) in outputs_at_end(&env, platform, folder) {
                assert_eq!(output, "", "{} at {} in {}", platform.id, kind.as_str(), folder.display());
            }
        }
        assert!(!env.project.join(".tanmi-workspace").exists(), "{}", platform.id);

        // The same events are told something in a project with data.
        let env = TestEnv::new();
        env.init();
        let outputs = outputs_at_end(&env, platform, &env.project);
        let has_spoken = |wanted| outputs.iter().any(|(kind, output)| *kind == wanted && !output.is_empty());
        assert!(has_spoken(EventKind::Stop), "{}", platform.id);
        spoken.extend(outputs.into_iter().filter(|(_, output)| !output.is_empty()).map(|(kind, _)| kind));
    }
    for kind in [EventKind::PreCompact, EventKind::SessionStart] {
        assert!(spoken.contains(&kind), "no client is told anything at {}", kind.as_str());
    }
}

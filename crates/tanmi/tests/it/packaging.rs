//! The container, the compose file and the systemd unit of a team server. They are not run here: these tests
//! check their syntax, and that the program has the commands and options that they use.

use std::path::Path;

use saphyr::{LoadableYamlNode, Yaml};

use crate::env::TestEnv;

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/team").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Fails if the program does not know a command with these options.
fn check_command(env: &TestEnv, words: &[String]) {
    let (command, rest) =
        words.split_at(words.iter().position(|word| word.starts_with('-')).unwrap_or(words.len()));
    let mut args: Vec<&str> = command.iter().map(String::as_str).collect();
    args.push("--help");
    let help = env.run(&args);
    assert!(help.ok, "{words:?}: {}", help.stderr);
    for option in rest.iter().filter(|word| word.starts_with("--")) {
        assert!(help.stdout.contains(option.as_str()), "{words:?}: there is no {option}");
    }
}

#[test]
fn compose_file_is_yaml_whose_commands_exist() {
    let env = TestEnv::new();
    let documents = Yaml::load_from_str(&read("compose.yaml")).unwrap();
    let services = documents[0]["services"].as_mapping().unwrap();
    let mut commands = 0;
    for (name, service) in services {
        let Some(command) = service.as_mapping_get("command").and_then(|command| command.as_sequence())
        else {
            continue;
        };
        if name.as_str() == Some("database") {
            continue;
        }
        let words: Vec<String> = command.iter().map(|word| word.as_str().unwrap().to_owned()).collect();
        check_command(&env, &words);
        commands += 1;
    }
    assert_eq!(commands, 2, "setup and server");
    let text = read("compose.yaml");
    assert!(!text.contains("POSTGRES_PASSWORD:"), "passwords come from files");
}

#[test]
fn container_file_runs_existing_command_as_user() {
    let env = TestEnv::new();
    let text = read("Containerfile");
    const KNOWN: &[&str] =
        &["FROM", "RUN", "COPY", "USER", "EXPOSE", "WORKDIR", "ENV", "ENTRYPOINT", "CMD", "HEALTHCHECK"];
    let joined = text.replace("\\\n", " ");
    for line in joined.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let word = line.split(' ').next().unwrap();
        assert!(KNOWN.contains(&word), "{line}");
    }
    assert!(joined.contains("\nUSER "), "the server does not run as root");
    let command = joined.lines().find_map(|line| line.strip_prefix("CMD ")).unwrap();
    let words: Vec<String> = serde_json::from_str(command).unwrap();
    check_command(&env, &words);
}

#[test]
fn systemd_unit_starts_an_existing_command() {
    let unit = read("tanmi-team.service");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/tanmi ")).unwrap();
    let words: Vec<String> = start.split(' ').map(str::to_owned).collect();
    check_command(&TestEnv::new(), &words);
    assert!(unit.contains("postgres://tanmi@%%2Fvar"), "systemd reads %% as one");
}

//! The OpenAPI description: generated valid and invalid requests never cause a server error (5xx).

use serde_json::{Map, Value, json};

use super::Server;
use crate::env::TestEnv;

/// A seeded random number generator, so that every run sends the same requests.
struct Random(u64);

impl Random {
    fn below(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % sides
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

const TEXTS: &[&str] = &[
    "",
    "a",
    "root",
    "任务",
    "<script>",
    "../../etc/passwd",
    "%00",
    "\0",
    "null",
    "-1",
    "2026-02-30",
    "7d",
    "\u{202e}x",
    "O'Brien; DROP TABLE nodes",
    "{{x}}",
    "🙂",
    "ws-x",
    "node-x",
    "claude-code",
    "prompt_submit",
    "B",
    "true",
];

fn text(random: &mut Random, known: &[String]) -> String {
    match random.below(8) {
        0 => "长".repeat(random.below(4000)),
        1..=3 if !known.is_empty() => random.pick(known).clone(),
        _ => (*random.pick(TEXTS)).to_owned(),
    }
}

/// Returns a random value for a schema; one in ten does not match it.
fn value(random: &mut Random, schema: &Value, known: &[String]) -> Value {
    if random.below(10) == 0 {
        return match random.below(7) {
            0 => Value::Null,
            1 => json!(true),
            2 => json!(-7),
            3 => json!(1.5e300),
            4 => json!([[]]),
            5 => json!({"a": {"b": []}}),
            _ => json!(text(random, known)),
        };
    }
    if let Some(words) = schema["enum"].as_array() {
        return random.pick(words).clone();
    }
    match schema["type"].as_str() {
        Some("integer") => json!(random.below(300)),
        Some("number") => json!(random.below(120) as f64 / 100.0),
        Some("boolean") => json!(random.below(2) == 0),
        Some("array") => (0..random.below(4)).map(|_| value(random, &schema["items"], known)).collect(),
        Some("object") => {
            let mut fields = Map::new();
            for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                if random.below(3) > 0 {
                    fields.insert(name.clone(), value(random, schema, known));
                }
            }
            if schema.get("additionalProperties").is_some_and(Value::is_object) {
                fields.insert(
                    (*random.pick(&["prompt", "nodeId", "workspaceId", "cwd", "start"])).into(),
                    json!(text(random, known)),
                );
            }
            Value::Object(fields)
        }
        _ => json!(text(random, known)),
    }
}

pub fn percent_encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

#[test]
fn generated_requests_cause_no_server_error() {
    let rounds = std::env::var("TANMI_TEST_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(40);
    let env = TestEnv::new();
    let mut known = vec![env.init()];
    for title in ["a", "b"] {
        known.push(env.node("root", "planning", title));
        known.push(env.node(known.last().unwrap(), "execution", title));
    }
    let fact = env.json(&["memory", "save-fact", "a fact", "--type", "W"])["id"].as_str().unwrap().to_owned();
    known.extend([fact, String::from("root"), String::from("s-1"), String::from("workspace")]);
    let server = Server::start(&env);
    let description = server.expect_ok("GET", "/openapi.json", Value::Null);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut statuses: std::collections::BTreeMap<u16, usize> = std::collections::BTreeMap::new();
    for _ in 0..rounds {
        for (path, methods) in description["paths"].as_object().unwrap() {
            // The response of the change feed never ends.
            if path.ends_with("/changes") {
                continue;
            }
            for (method, operation) in methods.as_object().unwrap() {
                let (mut target, mut query) = (path.strip_prefix("/api/v1").unwrap().to_owned(), Vec::new());
                let mut headers: Vec<(&str, String)> = Vec::new();
                for parameter in operation["parameters"].as_array().unwrap() {
                    let name = parameter["name"].as_str().unwrap();
                    let given = value(&mut random, &parameter["schema"], &known);
                    let given = given.as_str().map_or_else(|| given.to_string(), String::from);
                    match parameter["in"].as_str().unwrap() {
                        "path" => {
                            let given = if random.below(3) > 0 { random.pick(&known).clone() } else { given };
                            target = target.replace(&format!("{{{name}}}"), &percent_encode(&given));
                        }
                        "query" if random.below(2) == 0 => {
                            query.push(format!("{name}={}", percent_encode(&given)))
                        }
                        "header" if random.below(3) == 0 => {
                            headers.push((name, String::from("\"0123456789abcdef\"")))
                        }
                        _ => {}
                    }
                }
                let body = &operation["requestBody"]["content"]["application/json"]["schema"];
                let body = if body.is_null() { Value::Null } else { value(&mut random, body, &known) };
                if !query.is_empty() {
                    target = format!("{target}?{}", query.join("&"));
                }
                let headers: Vec<(&str, &str)> =
                    headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                let response = server.send_request(&method.to_uppercase(), &target, &headers, &body);
                let details = format!("{method} {target} {body}\n{}\n{}", response.head, response.body);
                assert!((200..500).contains(&response.status), "{details}");
                *statuses.entry(response.status).or_default() += 1;
                // The URI was too long, so there is no JSON response.
                if response.status == 414 {
                    continue;
                }
                let body_json = response.json();
                if response.status >= 400 {
                    assert!(
                        body_json["error"]["code"].is_string() && body_json["error"]["message"].is_string(),
                        "{details}"
                    );
                } else {
                    assert!(operation["responses"].get(response.status.to_string()).is_some(), "{details}");
                    known.extend(
                        ["workspaceId", "nodeId"]
                            .iter()
                            .filter_map(|key| body_json[*key].as_str().map(String::from)),
                    );
                    known.truncate(60);
                }
            }
        }
    }
    eprintln!("{statuses:?}");
    for status in [200, 201, 400, 404, 409] {
        assert!(
            statuses.contains_key(&status),
            "the generated requests cover too few statuses: {statuses:?}"
        );
    }
    assert!(server.stop());
}

#[test]
fn description_lists_every_operation() {
    let env = TestEnv::new();
    let server = Server::start(&env);
    let description = server.expect_ok("GET", "/openapi.json", Value::Null);
    let mut lines = String::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let names: Vec<&str> = operation["parameters"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|p| p["name"].as_str())
                .collect();
            let body = &operation["requestBody"]["content"]["application/json"]["schema"]["properties"];
            let body: Vec<&String> = body.as_object().into_iter().flatten().map(|(name, _)| name).collect();
            lines.push_str(&format!("{} {path} {names:?} {body:?}\n", method.to_uppercase()));
        }
    }
    insta::assert_snapshot!(lines);
}

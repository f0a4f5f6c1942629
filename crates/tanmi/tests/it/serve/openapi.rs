//! The OpenAPI description against the server: thousands of requests made from it, fitting and not, and never a fault
//! of the server's own.

use serde_json::{Map, Value, json};

use super::Server;
use crate::env::TestEnv;

/// Repeatable: the same requests in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % sides
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.roll(list.len())]
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

fn text(dice: &mut Dice, known: &[String]) -> String {
    match dice.roll(8) {
        0 => "长".repeat(dice.roll(4000)),
        1..=3 if !known.is_empty() => dice.pick(known).clone(),
        _ => (*dice.pick(TEXTS)).to_owned(),
    }
}

/// A value for a schema, or now and then for another one.
fn value(dice: &mut Dice, schema: &Value, known: &[String]) -> Value {
    if dice.roll(10) == 0 {
        return match dice.roll(7) {
            0 => Value::Null,
            1 => json!(true),
            2 => json!(-7),
            3 => json!(1.5e300),
            4 => json!([[]]),
            5 => json!({"a": {"b": []}}),
            _ => json!(text(dice, known)),
        };
    }
    if let Some(words) = schema["enum"].as_array() {
        return dice.pick(words).clone();
    }
    match schema["type"].as_str() {
        Some("integer") => json!(dice.roll(300)),
        Some("number") => json!(dice.roll(120) as f64 / 100.0),
        Some("boolean") => json!(dice.roll(2) == 0),
        Some("array") => (0..dice.roll(4)).map(|_| value(dice, &schema["items"], known)).collect(),
        Some("object") => {
            let mut fields = Map::new();
            for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                if dice.roll(3) > 0 {
                    fields.insert(name.clone(), value(dice, schema, known));
                }
            }
            if schema.get("additionalProperties").is_some_and(Value::is_object) {
                fields.insert(
                    (*dice.pick(&["prompt", "nodeId", "workspaceId", "cwd", "start"])).into(),
                    json!(text(dice, known)),
                );
            }
            Value::Object(fields)
        }
        _ => json!(text(dice, known)),
    }
}

fn encoded(text: &str) -> String {
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
    let described = server.good("GET", "/openapi.json", Value::Null);
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut seen: std::collections::BTreeMap<u16, usize> = std::collections::BTreeMap::new();
    for _ in 0..rounds {
        for (path, methods) in described["paths"].as_object().unwrap() {
            // A stream has no end to wait for.
            if path.ends_with("/changes") {
                continue;
            }
            for (method, operation) in methods.as_object().unwrap() {
                let (mut place, mut query) = (path.strip_prefix("/api/v1").unwrap().to_owned(), Vec::new());
                let mut headers: Vec<(&str, String)> = Vec::new();
                for parameter in operation["parameters"].as_array().unwrap() {
                    let name = parameter["name"].as_str().unwrap();
                    let given = value(&mut dice, &parameter["schema"], &known);
                    let given = given.as_str().map_or_else(|| given.to_string(), String::from);
                    match parameter["in"].as_str().unwrap() {
                        "path" => {
                            let given = if dice.roll(3) > 0 { dice.pick(&known).clone() } else { given };
                            place = place.replace(&format!("{{{name}}}"), &encoded(&given));
                        }
                        "query" if dice.roll(2) == 0 => query.push(format!("{name}={}", encoded(&given))),
                        "header" if dice.roll(3) == 0 => {
                            headers.push((name, String::from("\"0123456789abcdef\"")))
                        }
                        _ => {}
                    }
                }
                let body = &operation["requestBody"]["content"]["application/json"]["schema"];
                let body = if body.is_null() { Value::Null } else { value(&mut dice, body, &known) };
                if !query.is_empty() {
                    place = format!("{place}?{}", query.join("&"));
                }
                let headers: Vec<(&str, &str)> =
                    headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                let answer = server.ask(&method.to_uppercase(), &place, &headers, &body);
                let what = format!("{method} {place} {body}\n{}\n{}", answer.head, answer.body);
                assert!((200..500).contains(&answer.status), "{what}");
                *seen.entry(answer.status).or_default() += 1;
                // Refused before it was a request at all.
                if answer.status == 414 {
                    continue;
                }
                let told = answer.json();
                if answer.status >= 400 {
                    assert!(
                        told["error"]["code"].is_string() && told["error"]["message"].is_string(),
                        "{what}"
                    );
                } else {
                    assert!(operation["responses"].get(answer.status.to_string()).is_some(), "{what}");
                    known.extend(
                        ["workspaceId", "nodeId"]
                            .iter()
                            .filter_map(|key| told[*key].as_str().map(String::from)),
                    );
                    known.truncate(60);
                }
            }
        }
    }
    eprintln!("{seen:?}");
    for status in [200, 201, 400, 404, 409] {
        assert!(seen.contains_key(&status), "the requests reach too little: {seen:?}");
    }
    assert!(server.stop());
}

#[test]
fn description_lists_every_operation() {
    let env = TestEnv::new();
    let server = Server::start(&env);
    let described = server.good("GET", "/openapi.json", Value::Null);
    let mut lines = String::new();
    for (path, methods) in described["paths"].as_object().unwrap() {
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

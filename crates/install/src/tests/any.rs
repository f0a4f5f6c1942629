//! Property tests with generated settings files.

use proptest::prelude::*;

use super::*;

pub fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("\\PC{0,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Formats JSON in one of several styles.
fn styled(value: &Value, style: u8) -> String {
    let text = match style % 4 {
        0 => value.to_string(),
        1 => serde_json::to_string_pretty(value).unwrap(),
        2 => serde_json::to_string_pretty(value).unwrap().replace('\n', "\r\n"),
        _ => format!("// a comment\n{} // and another\n", serde_json::to_string_pretty(value).unwrap()),
    };
    if style & 4 == 0 { text } else { format!("\u{feff}{text}\n") }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// For any file of any client: install and uninstall restore it, and a refused file stays unchanged.
    #[test]
    fn install_any_json_file_round_trips(
        fields in prop::collection::btree_map("[a-z]{1,6}|hooks|mcpServers|version", any_json(), 0..5),
        events in prop::collection::vec((0usize..6, any_json()), 0..4),
        style in any::<u8>(),
        which in 0usize..5,
        is_without_receipts in any::<bool>(),
    ) {
        let client = CLIENTS.0[which];
        let mut value = Value::Object(fields.into_iter().collect());
        if !events.is_empty() {
            value["hooks"] = json!({});
            for (at, entry) in events {
                value["hooks"][client.recipe.hooks[at % client.recipe.hooks.len()].event] = json!([entry]);
            }
        }
        let env = TestEnv::new();
        let file = env.folders.hook_file(client, Scope::User);
        write(&file, styled(&value, style));
        let before = env.files();
        let done = env.install(client, Scope::User, "/t/tanmi");
        if matches!(done[0].planned.outcome, ChangeOutcome::Refused(_)) {
            prop_assert_eq!(std::fs::read(&file).unwrap(), styled(&value, style).into_bytes());
        }
        if is_without_receipts {
            // Without receipts: our entries are found and removed one by one.
            tanmi_base::fs::remove_tree(&env.home()).unwrap();
        }
        env.uninstall(client, Scope::User);
        if is_without_receipts {
            let mut left = parsed(&file);
            let mut wanted = value.clone();
            for value in [&mut left, &mut wanted] {
                prune(value);
            }
            prop_assert_eq!(left, wanted);
        } else {
            prop_assert_eq!(env.files(), before);
        }
    }
}

/// Removes empty containers, because without a receipt it is unknown whether they existed before.
fn prune(value: &mut Value) {
    if let Some(hooks) = value.get_mut("hooks").and_then(Value::as_object_mut) {
        hooks.retain(|_, list| *list != json!([]));
    }
    if let Some(object) = value.as_object_mut() {
        object.retain(|key, value| !(matches!(key.as_str(), "hooks" | "mcpServers") && *value == json!({})));
        object.retain(|key, value| !(key == "version" && *value == json!(1)));
    }
}

//! The variables of a condition: `event, session, config, workspace, node, shared, now`. They are built when the
//! first condition is evaluated.

use cel::Context;
use serde_json::{Map, Value, json};
use tanmi_base::text;
use tanmi_event::{Event, Payload, StartSource};
use tanmi_workspace::model::{NodeRole, NodeStatus};

use super::CustomRule;
use super::condition::{self, ConditionError, to_cel};
use crate::facts::{ChildCounts, Facts, NodeFacts, SessionFacts};

/// The number of bytes of a prompt, or of the arguments of a tool, that conditions see. Both can contain whole files.
const MAX_PROMPT: usize = 20_000;

pub struct ConditionScope<'a> {
    event: &'a Event,
    facts: &'a Facts,
    context: Option<Context<'static, 'static>>,
    /// Values that earlier rules shared.
    shared: Map<String, Value>,
    /// Ids of the rules that injected a text (`shared.spoke`).
    injected: Vec<Value>,
}

impl<'a> ConditionScope<'a> {
    pub fn new(event: &'a Event, facts: &'a Facts) -> ConditionScope<'a> {
        ConditionScope { event, facts, context: None, shared: Map::new(), injected: Vec::new() }
    }

    pub fn record_injected(&mut self, id: &str) {
        self.injected.push(Value::from(id));
    }

    pub fn share(&mut self, rule: &CustomRule) {
        self.shared.extend(rule.share.clone());
    }

    /// Returns whether the condition of a rule is met. A rule without a condition always matches.
    pub fn is_met(&mut self, rule: &CustomRule) -> Result<bool, ConditionError> {
        let Some(source) = &rule.condition else { return Ok(true) };
        let program = condition::compile(source)?;
        let (event, facts) = (self.event, self.facts);
        let context = self.context.get_or_insert_with(|| {
            let mut context = Context::default();
            // Fails only for the name of a built-in function.
            let _ = context.add_function("includes", condition::includes);
            for (name, value) in variables(event, facts) {
                context.add_variable_from_value(name, to_cel(&value));
            }
            context
        });
        let mut shared = self.shared.clone();
        shared.insert(String::from("spoke"), Value::Array(self.injected.clone()));
        context.add_variable_from_value("shared", to_cel(&Value::Object(shared)));
        condition::run(&program, context)
    }
}

fn variables(event: &Event, facts: &Facts) -> Vec<(&'static str, Value)> {
    let platform = event.platform;
    let payload = &event.payload;
    let workspace = facts.workspace.as_ref().map(|workspace| {
        json!({
            "id": workspace.id, "name": workspace.name, "goal": workspace.goal, "rules": workspace.rules,
            "rulesHash": workspace.rules_hash, "docs": workspace.docs,
            "progress": workspace.progress.map(|(done, total)| json!({"done": done, "total": total})),
        })
    });
    vec![
        (
            "event",
            json!({
                "source": event.source.as_str(), "platform": platform.id, "event": event.kind.as_str(),
                "sessionId": event.session,
                "payload": {
                    "prompt": payload.prompt.as_deref().map(|prompt| text::prefix(prompt, MAX_PROMPT)), "promptId": payload.prompt_id, "nodeId": payload.node_id,
                    "cwd": payload.cwd, "source": payload.start.map(|start| start.as_str()),
                    "toolName": payload.tool_name,
                    "toolInput": payload.tool_input.as_deref().map(|input| text::prefix(input, MAX_PROMPT)),
                },
            }),
        ),
        (
            "session",
            json!({
                "id": facts.session.id, "bound": facts.workspace.is_some(), "prompts": facts.session.prompts,
                "compacted": facts.session.compacted, "unbound": facts.session.was_unbound_by_user,
                "lastReminder": facts.session.last_reminder.as_ref().map(|(kind, at)| json!({"type": kind, "time": at})),
            }),
        ),
        (
            "config",
            json!({
                "platform": platform.id,
                "hooks": {
                    "enabled": !platform.hook_events.is_empty(),
                    "events": platform.hook_events.iter().map(|kind| kind.as_str()).collect::<Vec<_>>(),
                },
                "capabilities": {
                    "agentMessage": platform.capabilities.agent_message,
                    "userMessage": platform.capabilities.user_message,
                    "systemPrompt": platform.capabilities.system_prompt,
                },
            }),
        ),
        ("workspace", workspace.unwrap_or_default()),
        ("node", facts.node.as_ref().map(node).unwrap_or_default()),
        ("now", json!(facts.now)),
    ]
}

fn node(node: &NodeFacts) -> Value {
    let parent = node.parent.as_ref().map(|parent| {
        json!({
            "id": parent.id, "title": parent.title, "status": parent.status,
            "children": parent.children.map(children),
        })
    });
    json!({
        "id": node.id, "title": node.title, "type": node.kind, "role": node.role, "status": node.status,
        "requirement": node.requirement, "conclusion": node.conclusion, "note": node.note,
        "problem": node.problem, "nextStep": node.next_step, "statusChangedAt": node.since,
        "lastLogAt": node.last_log_at, "isTop": node.is_top, "children": node.children.map(children),
        "parent": parent,
    })
}

fn children(children: ChildCounts) -> Value {
    json!({"total": children.total, "done": children.done, "pending": children.pending})
}

/// Returns every variable with a sample value, in which no optional part is missing.
pub fn sample() -> Value {
    let counts = Some(ChildCounts::default());
    let text = || Some(String::new());
    let (id, title, status) = (String::new(), String::new(), NodeStatus::Monitoring);
    let parent = crate::facts::ParentFacts { id, title, status, children: counts };
    let facts = Facts {
        now: 0,
        lang: Default::default(),
        session: SessionFacts { last_reminder: Some((String::new(), 0)), ..Default::default() },
        workspace: Some(crate::facts::WorkspaceFacts { progress: Some((0, 0)), ..Default::default() }),
        node: Some(NodeFacts {
            role: Some(NodeRole::Summary),
            conclusion: Some(String::new()),
            last_log_at: Some(0),
            children: counts,
            parent: Some(parent),
            ..Default::default()
        }),
        available: Default::default(),
        refresh_every: 0,
        disabled_rules: Vec::new(),
        memory: Err(("", "")),
        declared: Err(("", "")),
        has_refused_files: false,
        memory_enabled: false,
        has_project_data: false,
        suggests_commands: false,
    };
    let event = Event {
        source: tanmi_event::Source::Api,
        platform: &tanmi_event::API,
        kind: tanmi_event::EventKind::PromptSubmit,
        session: String::new(),
        payload: Payload {
            prompt: text(),
            prompt_id: text(),
            node_id: text(),
            cwd: text(),
            start: Some(StartSource::Startup),
            tool_name: text(),
            tool_input: text(),
            ..Payload::default()
        },
    };
    let mut names: Map<String, Value> =
        variables(&event, &facts).into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    names.insert(String::from("shared"), json!({}));
    Value::Object(names)
}

//! Secrets in the texts of workspaces and nodes.

use tanmi_workspace::model::{DocReference, NodeId, Operator, RefStatus};
use tanmi_workspace::ops::{
    ListEdit, NewWorkspace, NodeChange, ProblemChange, ReferenceEdit, Target, WorkspaceChange,
};

use super::toy::Machine;
use super::{task, workspace};
use crate::masking::Masking;
use crate::nodes::{NodeCreate, TransitionArgs};
use crate::resolver::{CallScope, CallTarget};
use crate::{App, Error};

/// Put together, so that secret scanners do not report this file.
const SECRET: &str = concat!("ghp", "_Zk4Rt8Lw2Qx6Vn0Bm3Jc7Hd1Sf5Gp9YaTe2Ui");
const MASK: &str = "[masked: GitHub token]";

fn scope(app: &App) -> CallScope {
    app.resolver.scope(&CallTarget::default()).unwrap()
}

fn person(machine: &Machine) -> App {
    machine.app_of(|env| env.operator = Operator::Human)
}

fn doc(description: &str) -> DocReference {
    DocReference { path: String::from("a.md"), description: description.into(), status: RefStatus::Active }
}

/// A field, its stored text, and the kinds of secrets that the result lists as masked.
type Written = (&'static str, String, Vec<&'static str>);

/// Writes a text into every field, in a workspace of its own.
fn write_everywhere(app: &App, text: &str) -> Result<Vec<Written>, Error> {
    let mut written = Vec::new();
    let new = NewWorkspace {
        name: text.into(),
        goal: text.into(),
        rules: vec![text.into()],
        docs: vec![doc(text)],
    };
    let view = app.workspaces.create(new)?;
    let ws = &app.resolver.workspace(view.workspace_id.as_str())?;
    for (field, stored) in [
        ("name", &view.name),
        ("goal", &view.goal),
        ("rules", &view.rules[0]),
        ("docs", &view.docs[0].description),
    ] {
        written.push((field, stored.clone(), view.masked.clone()));
    }
    let new = NodeCreate { requirement: text.into(), note: text.into(), docs: vec![doc(text)], ..task(text) };
    let created = app.nodes.create(ws, new)?;
    let (node, masked) = (created.result.node, created.masked);
    let id = node.id.clone();
    for (field, stored) in [
        ("title", &node.title),
        ("requirement", &node.requirement),
        ("note", &node.note),
        ("node docs", &node.docs[0].description),
    ] {
        written.push((field, stored.clone(), masked.clone()));
    }
    let logged = app.nodes.append_log(ws, &Target::Node(id.clone()), text)?;
    written.push(("log", logged.result.entries[0].event.clone(), logged.masked));
    let change = ProblemChange { description: Some(text.into()), next_step: Some(text.into()) };
    let problem = app.nodes.update_problem(ws, &Target::Node(id.clone()), change)?;
    let found = problem.result.problem.unwrap();
    written.push(("description", found.description, problem.masked.clone()));
    written.push(("nextStep", found.next_step.unwrap_or_default(), problem.masked));
    let edit = ReferenceEdit::Add { description: text.into() };
    let edited = app.nodes.edit_reference(ws, &id, "b.md", edit)?;
    written.push(("reference", edited.result.node.references[0].description.clone(), edited.masked));
    let scope = CallScope { workspace: ws.clone(), ..scope_of(app, ws.id.as_str()) };
    app.nodes.transition(
        &scope,
        id.clone(),
        TransitionArgs { action: "start", ..TransitionArgs::default() },
    )?;
    let fail = TransitionArgs { action: "fail", conclusion: Some(text.into()), ..TransitionArgs::default() };
    let failed = app.nodes.transition(&scope, id.clone(), fail)?;
    let conclusion = app.nodes.show(ws, &id)?.result.node.conclusion.unwrap_or_default();
    written.push(("conclusion", conclusion, failed.masked));
    Ok(written)
}

fn scope_of(app: &App, workspace: &str) -> CallScope {
    app.resolver.scope(&CallTarget::in_workspace(Some(workspace))).unwrap()
}

#[test]
fn text_of_agent_with_secret_is_masked_in_every_field() {
    let machine = Machine::new();
    for (field, stored, masked) in write_everywhere(&machine.app(), &format!("use {SECRET} here")).unwrap() {
        assert_eq!(stored, format!("use {MASK} here"), "{field}");
        assert!(
            !masked.is_empty() && masked.iter().all(|kind| *kind == "GitHub token"),
            "{field}: {masked:?}"
        );
    }
}

#[test]
fn text_of_person_with_secret_is_kept_and_warned_of() {
    let machine = Machine::new();
    let app = person(&machine);
    let text = format!("use {SECRET} here");
    for (field, stored, masked) in write_everywhere(&app, &text).unwrap() {
        assert_eq!((stored.as_str(), masked.len()), (text.as_str(), 0), "{field}");
    }
    let view = app.workspaces.create(NewWorkspace { goal: text, ..workspace("W") }).unwrap();
    assert_eq!(view.warnings.len(), 1, "{:?}", view.warnings);
    let warning = &view.warnings[0];
    assert!(warning.contains("goal") && warning.contains("GitHub token"), "{warning}");
    assert!(warning.contains("--mask-secrets") && !warning.contains(SECRET), "{warning}");
}

#[test]
fn person_can_ask_for_masking_or_for_a_question() {
    let machine = Machine::new();
    let app = person(&machine);
    let text = format!("use {SECRET} here");
    for (field, stored, _) in write_everywhere(&app.with_masking(Masking::Apply), &text).unwrap() {
        assert_eq!(stored, format!("use {MASK} here"), "{field}");
    }
    let asked = app.with_masking(Masking::Ask);
    let ws = &app
        .resolver
        .workspace(app.workspaces.create(workspace("W")).unwrap().workspace_id.as_str())
        .unwrap();
    let root = Target::Node(NodeId::root());
    let error = asked.nodes.append_log(ws, &root, &text).unwrap_err();
    assert!(matches!(&error, Error::SecretsFound { secrets } if secrets[0].field == "log"), "{error}");
    assert_eq!(app.nodes.log(ws, &root, 9).unwrap().result.total, 0, "nothing was saved");
    asked.nodes.append_log(ws, &root, "an ordinary entry").unwrap();
}

#[test]
fn stored_secret_of_person_survives_edit_by_agent() {
    let machine = Machine::new();
    let text = format!("use {SECRET} here");
    let app = person(&machine);
    app.workspaces.create(NewWorkspace { rules: vec![text.clone()], ..workspace("W") }).unwrap();
    let ws = &scope(&app).workspace;
    let id =
        app.nodes.create(ws, NodeCreate { requirement: text.clone(), ..task("T") }).unwrap().result.node_id;

    let agent = machine.app();
    let change = NodeChange {
        requirement: Some(text.clone()),
        note: Some(format!("also {SECRET}")),
        ..NodeChange::default()
    };
    let updated = agent.nodes.update(ws, &id, change).unwrap();
    assert_eq!(updated.result.node.requirement, text, "unchanged");
    assert_eq!(updated.result.node.note, format!("also {MASK}"), "new");
    assert_eq!(updated.masked, ["GitHub token"]);
    let rules = ListEdit { set: Some(vec![text.clone(), format!("new {SECRET}")]), ..ListEdit::default() };
    let view = agent.workspaces.update(ws, WorkspaceChange { rules, ..WorkspaceChange::default() }).unwrap();
    assert_eq!(view.rules, [text.clone(), format!("new {MASK}")]);
    // An entry is removed by its exact text.
    let rules = ListEdit { remove: vec![text], ..ListEdit::default() };
    let view = agent.workspaces.update(ws, WorkspaceChange { rules, ..WorkspaceChange::default() }).unwrap();
    assert_eq!(view.rules, [format!("new {MASK}")]);
}

#[test]
fn masking_is_turned_off_by_the_user_only() {
    let machine = Machine::new();
    let (agent, app) = (machine.app(), person(&machine));
    app.workspaces.create(workspace("W")).unwrap();
    let ws = &scope(&app).workspace;
    let set = |on| WorkspaceChange { mask_secrets: Some(on), ..WorkspaceChange::default() };
    for on in [true, false] {
        let error = agent.workspaces.update(ws, set(on)).unwrap_err();
        assert_eq!(error.code(), "USER_DECIDES");
    }
    assert_eq!(app.workspaces.show(ws).unwrap().mask_secrets, None);
    assert_eq!(app.workspaces.update(ws, set(false)).unwrap().mask_secrets, Some(false));

    let root = Target::Node(NodeId::root());
    let logged = agent.nodes.append_log(ws, &root, SECRET).unwrap();
    assert_eq!((logged.result.entries[0].event.as_str(), logged.masked.len()), (SECRET, 0));
    assert!(app.nodes.append_log(ws, &root, SECRET).unwrap().warnings.is_empty());
    app.with_masking(Masking::Ask).nodes.append_log(ws, &root, SECRET).unwrap();
    let asked = app.with_masking(Masking::Apply).nodes.append_log(ws, &root, SECRET).unwrap();
    assert_eq!(asked.result.entries[0].event, MASK, "an explicit wish counts more than the setting");

    assert_eq!(app.workspaces.update(ws, set(true)).unwrap().mask_secrets, None);
    assert_eq!(agent.nodes.append_log(ws, &root, SECRET).unwrap().result.entries[0].event, MASK);
}

/// Parts of random texts; some of them form secrets together.
const PARTS: &[&str] = &[
    "password",
    ": ",
    "=",
    "hunter2x!",
    " is ",
    "密码是",
    "a1B2c3D4e5F6g7H8",
    "\n",
    " ",
    "\u{200b}",
    "token",
    "## Log",
    "- ",
    "<b>",
    "`",
    "\"",
    "https://a:",
    "@h/",
    "ok",
    "，",
    SECRET,
    "key",
    "Bearer ",
    "\t",
    "[masked: x]",
    "🔑",
    "---",
];

/// A linear congruential generator: the same texts in each run.
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*state >> 33).unwrap()
}

#[test]
fn random_text_is_stored_byte_for_byte_or_listed_as_masked() {
    let machine = Machine::new();
    let (agent, app) = (machine.app(), person(&machine));
    let mut state = 7;
    let (mut kept, mut changed) = (0, 0);
    for _ in 0..150 {
        let len = 1 + next(&mut state) % 9;
        let text: String = (0..len).map(|_| PARTS[next(&mut state) % PARTS.len()]).collect();
        let text = format!("x{text}");
        // Some fields refuse some texts, such as a title with a line break; nothing is stored then.
        for (app, can_mask) in [(&agent, true), (&app, false)] {
            for (field, stored, masked) in write_everywhere(app, &text).unwrap_or_default() {
                assert!(stored == text || (can_mask && !masked.is_empty()), "{field}: {text:?} → {stored:?}");
                *(if stored == text { &mut kept } else { &mut changed }) += 1;
            }
        }
    }
    assert!(kept > 200 && changed > 50, "{kept} kept, {changed} changed");
}

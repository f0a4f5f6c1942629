//! The texts that a change writes. Secrets are looked for in them before the change is made.

use crate::command::Command;
use crate::model::{DocReference, Node, Workspace};
use crate::ops::{ListEdit, NewWorkspace, ReferenceEdit};

/// A text and the name of its field, as the interfaces call it.
pub type Field<'a> = (&'static str, &'a mut String);

impl Command {
    /// Returns the texts that the command writes. Paths, ids and the names of entries to remove are not among them:
    /// they refer to something that exists.
    pub fn texts_mut(&mut self) -> Vec<Field<'_>> {
        match self {
            Command::UpdateWorkspace { change } => {
                let mut texts = optional([("name", &mut change.name), ("goal", &mut change.goal)]);
                texts.extend(added(&mut change.rules).map(|rule| ("rules", rule)));
                texts.extend(added(&mut change.docs).map(description));
                texts
            }
            Command::CreateNode { node } => {
                let mut texts = vec![
                    ("title", &mut node.title),
                    ("requirement", &mut node.requirement),
                    ("note", &mut node.note),
                ];
                texts.extend(node.docs.iter_mut().map(description));
                texts
            }
            Command::PlanNodes { plan } => {
                let items = plan.items.iter_mut();
                items
                    .flat_map(|item| [("title", &mut item.title), ("requirement", &mut item.requirement)])
                    .collect()
            }
            Command::UpdateNode { change, .. } => {
                let mut texts = optional([
                    ("title", &mut change.title),
                    ("requirement", &mut change.requirement),
                    ("note", &mut change.note),
                ]);
                texts.extend(added(&mut change.docs).map(description));
                texts
            }
            Command::Transition { request } => optional([("conclusion", &mut request.conclusion)]),
            Command::EditReference { edit: ReferenceEdit::Add { description }, .. } => {
                vec![("description", description)]
            }
            Command::AppendLog { event, .. } => vec![("log", event)],
            Command::UpdateProblem { change, .. } => {
                optional([("description", &mut change.description), ("nextStep", &mut change.next_step)])
            }
            Command::StartNext { .. }
            | Command::ArchiveWorkspace
            | Command::RestoreWorkspace
            | Command::FocusNode { .. }
            | Command::MoveNode { .. }
            | Command::PlaceNode { .. }
            | Command::RestoreNode { .. }
            | Command::DeleteNode { .. }
            | Command::EditReference { .. }
            | Command::ClearProblem { .. } => Vec::new(),
        }
    }
}

impl NewWorkspace {
    /// Returns the texts of the new workspace.
    pub fn texts_mut(&mut self) -> Vec<Field<'_>> {
        let mut texts = vec![("name", &mut self.name), ("goal", &mut self.goal)];
        texts.extend(self.rules.iter_mut().map(|rule| ("rules", rule)));
        texts.extend(self.docs.iter_mut().map(description));
        texts
    }
}

impl Workspace {
    /// Returns the texts that an update can replace.
    pub fn editable_texts(&self) -> Vec<&str> {
        let lists = self.rules.iter().chain(self.docs.iter().map(|doc| &doc.description));
        [&self.name, &self.goal].into_iter().chain(lists).map(String::as_str).collect()
    }
}

impl Node {
    /// Returns the texts that an update can replace.
    pub fn editable_texts(&self) -> Vec<&str> {
        let docs = self.docs.iter().map(|doc| &doc.description);
        [&self.title, &self.requirement, &self.note].into_iter().chain(docs).map(String::as_str).collect()
    }
}

fn optional<'a, const N: usize>(fields: [(&'static str, &'a mut Option<String>); N]) -> Vec<Field<'a>> {
    fields.into_iter().filter_map(|(name, text)| Some((name, text.as_mut()?))).collect()
}

/// Returns the entries that an edit adds to a list.
fn added<T>(edit: &mut ListEdit<T>) -> impl Iterator<Item = &mut T> {
    edit.set.iter_mut().flatten().chain(&mut edit.add)
}

fn description(doc: &mut DocReference) -> Field<'_> {
    ("docs", &mut doc.description)
}

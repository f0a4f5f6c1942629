//! Secrets in the texts of workspaces and nodes: they are masked, or the caller is warned, before a change is made.
//!
//! Invariant: a text is stored byte for byte, unless the result lists what was masked in it.

use std::collections::BTreeSet;

use tanmi_base::secrets;
use tanmi_workspace::command::Command;
use tanmi_workspace::model::{Operator, Workspace};
use tanmi_workspace::texts::Field;

use crate::core::{Core, WorkspaceRef};
use crate::error::{Error, Result};

/// What happens to secrets in the texts of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Masking {
    /// They are masked, and the result says so. Always so for agents.
    Apply,
    /// They are kept, and the result warns of them. The default for people.
    Warn,
    /// The call fails, so that the user can choose one of the others.
    Ask,
}

/// A secret in a text that a call writes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundSecret {
    pub field: &'static str,
    pub kind: &'static str,
}

/// What was done about the secrets of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct MaskReport {
    /// Kinds of the masked secrets.
    pub masked: Vec<&'static str>,
    /// One for each kept secret.
    pub warnings: Vec<String>,
}

/// A text with secrets: its field, and the text and kinds of secrets after masking.
struct Finding<'a> {
    field: &'static str,
    text: &'a mut String,
    masked: String,
    kinds: Vec<&'static str>,
}

impl Core {
    /// Masks the secrets in a command, or warns of them. `masking` is what the user asked for, if anything.
    pub fn mask_command(
        &self,
        ws: &WorkspaceRef,
        command: &mut Command,
        masking: Option<Masking>,
    ) -> Result<MaskReport> {
        let edited = match command {
            Command::UpdateNode { node_id, .. } => Some(node_id.clone()),
            _ => None,
        };
        let is_workspace_edit = matches!(command, Command::UpdateWorkspace { .. });
        let mut found = find(command.texts_mut());
        if found.is_empty() {
            return Ok(MaskReport::default());
        }
        let (workspace, _) = ws.store().summary(&ws.id, self.now())?;
        // A text that is already stored does not change: a person decided to keep its secret.
        let node = edited.map(|id| ws.store().node(&ws.id, &id, self.now())).transpose()?;
        let mut stored: BTreeSet<&str> = BTreeSet::new();
        stored.extend(node.iter().flat_map(|node| node.editable_texts()));
        stored.extend(
            Some(&workspace).filter(|_| is_workspace_edit).into_iter().flat_map(Workspace::editable_texts),
        );
        found.retain(|one| !stored.contains(one.text.as_str()));
        self.treat(found, masking, workspace.mask_secrets)
    }

    /// Masks the secrets in the texts of a new workspace, or warns of them.
    pub fn mask_new(&self, texts: Vec<Field<'_>>, masking: Option<Masking>) -> Result<MaskReport> {
        self.treat(find(texts), masking, true)
    }

    fn treat(&self, found: Vec<Finding<'_>>, wanted: Option<Masking>, is_on: bool) -> Result<MaskReport> {
        let by_default = match self.env.operator {
            Operator::Ai => Masking::Apply,
            Operator::Human => wanted.unwrap_or(Masking::Warn),
        };
        let mut report = MaskReport::default();
        match by_default {
            // The user asked for it, so the setting of the workspace does not matter.
            _ if !is_on && wanted != Some(Masking::Apply) => {}
            Masking::Apply => {
                for one in found {
                    *one.text = one.masked;
                    report.masked.extend(one.kinds);
                }
            }
            Masking::Warn => {
                report.warnings = secrets_of(&found).iter().map(|one| self.warning(one)).collect()
            }
            Masking::Ask if found.is_empty() => {}
            Masking::Ask => return Err(Error::SecretsFound { secrets: secrets_of(&found) }),
        }
        Ok(report)
    }

    fn warning(&self, secret: &FoundSecret) -> String {
        let FoundSecret { field, kind } = secret;
        let lang = self.lang();
        let (zh, en) = (
            format!("{field} 中可能有敏感信息（{kind}），已按原样保存"),
            format!("{field} seems to contain a secret ({kind}); it was stored as it is"),
        );
        let what = lang.pick(zh, en);
        if self.env.remote {
            return what;
        }
        let next = lang.pick("；用 --mask-secrets 保存可遮盖它", "; save with --mask-secrets to mask it");
        format!("{what}{next}")
    }
}

fn find(texts: Vec<Field<'_>>) -> Vec<Finding<'_>> {
    let find = |(field, text): (&'static str, _)| {
        let text: &mut String = text;
        let (masked, kinds) = secrets::mask(text);
        let masked = Some(masked.into_owned()).filter(|_| !kinds.is_empty())?;
        Some(Finding { field, text, masked, kinds })
    };
    texts.into_iter().filter_map(find).collect()
}

/// Returns each kind of secret once per field.
fn secrets_of(found: &[Finding<'_>]) -> Vec<FoundSecret> {
    let all =
        found.iter().flat_map(|one| one.kinds.iter().map(|kind| FoundSecret { field: one.field, kind }));
    all.collect::<BTreeSet<_>>().into_iter().collect()
}

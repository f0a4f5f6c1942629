//! The files of a project that need the user's consent, besides rules files: settings, declared context and texts for
//! subagents.

use serde::Serialize;
use tanmi_base::hash;

use super::{Consent, ProjectFile, ProjectTrust};
use crate::{config, declared};

/// The use of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// `.tanmi/config.json`
    Settings,
    /// `.tanmi/context.json`
    Manifest,
    /// A file that the manifest names.
    Context,
    /// A text for subagents.
    Subagent,
}

/// A file that the user has not agreed to yet.
#[derive(Clone, Debug, Serialize)]
pub struct PendingFile {
    pub path: String,
    pub kind: FileKind,
    /// Whether the user agreed to other content of the file before.
    pub changed: bool,
    pub hash: String,
    #[serde(skip)]
    pub(crate) file: ProjectFile,
}

/// Returns the files that exist in a project and need consent. What cannot be read, or is outside of the
/// project, is left out: it is never used.
pub(super) fn files_of(trust: &ProjectTrust) -> Vec<(FileKind, ProjectFile)> {
    let settings = config::read_project_file(trust).ok().flatten();
    let manifest = declared::read_project_manifest(trust).ok().flatten();
    let context = manifest.as_ref().map(|file| declared::files_in_manifest(trust, &file.bytes));
    let subagents = declared::subagent_files(trust);
    let mut files: Vec<(FileKind, ProjectFile)> = Vec::new();
    let all = (settings.into_iter().map(|file| (FileKind::Settings, file)))
        .chain(manifest.into_iter().map(|file| (FileKind::Manifest, file)))
        .chain(context.into_iter().flatten().map(|file| (FileKind::Context, file)))
        .chain(subagents.into_iter().map(|file| (FileKind::Subagent, file)));
    for (kind, file) in all {
        // A manifest can name a file twice, or one of the others.
        if !files.iter().any(|(_, known)| known.path == file.path) {
            files.push((kind, file));
        }
    }
    files
}

/// Returns the files whose present content the user has not agreed to.
pub fn pending_files(trust: &ProjectTrust) -> Vec<PendingFile> {
    let pending = files_of(trust).into_iter().filter_map(|(kind, file)| {
        let consent = trust.consent_to(&file);
        (consent != Consent::Given).then(|| PendingFile {
            path: file.path.display().to_string(),
            kind,
            changed: consent == Consent::Outdated,
            hash: hash::sha256_hex(&file.bytes),
            file,
        })
    });
    pending.collect()
}

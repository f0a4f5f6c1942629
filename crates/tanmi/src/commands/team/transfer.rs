//! `tanmi team check`, `export` and `import`.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};
use tanmi_base::paths::project_store;
use tanmi_base::{Lang, clock};
use tanmi_memory::Folder;
use tanmi_memory::transfer::{self, SharedLines};
use tanmi_pg::{Address, AuditEvent, AuditKind, People, PgStore, Pool, ProjectFinding, WorkspacePresence};
use tanmi_workspace::model::WorkspaceId;
use tanmi_workspace::store::{ChangeFeed, FileStore, Workspaces};

use super::{TeamError, connect, find_project, project_named};
use crate::cli::{DatabaseArgs, TeamProjectArgs};
use crate::out::progress::ProgressBar;
use crate::{out, show};

/// The most conflicts that an error names.
const MAX_NAMES: usize = 10;

fn store_of(address: &Address, project: &str) -> PgStore {
    PgStore::new(Arc::new(Pool::new(address.clone())), project)
}

/// Checks one project or all. Fails if there is a finding.
pub fn check(
    database: &DatabaseArgs,
    project: Option<&str>,
    json: bool,
    lang: Lang,
) -> Result<ExitCode, TeamError> {
    let address = connect(database, lang)?;
    let projects = match project {
        Some(name) => vec![project_named(&address, Some(name))?],
        None => tanmi_pg::projects(&address)?,
    };
    let mut findings: Vec<(&str, ProjectFinding)> = Vec::new();
    for (id, name) in &projects {
        findings.extend(store_of(&address, id).check()?.into_iter().map(|finding| (name.as_str(), finding)));
    }
    if json {
        let finding = |(project, finding): &(&str, ProjectFinding)| {
            let message = finding.message(lang);
            json!({"project": project, "code": finding.code, "place": finding.place, "message": message})
        };
        let names: Vec<&str> = projects.iter().map(|(_, name)| name.as_str()).collect();
        let findings: Vec<Value> = findings.iter().map(finding).collect();
        out::json(&json!({"projects": names, "findings": findings}));
    } else {
        for (project, finding) in &findings {
            out::text(&format!(
                "{project}: {}: {} [{}]\n",
                finding.place,
                finding.message(lang),
                finding.code
            ));
        }
        let (zh, en) = (
            format!("检查了 {} 个项目，发现 {} 处问题", projects.len(), findings.len()),
            format!(
                "checked {}, found {}",
                show::counted(projects.len(), "project"),
                show::counted(findings.len(), "problem")
            ),
        );
        out::note(&lang.pick(zh, en));
    }
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Writes a project to an empty folder.
pub fn export(args: &TeamProjectArgs, dir: &Path, json: bool, lang: Lang) -> Result<(), TeamError> {
    let (address, project, name) = find_project(args, lang)?;
    let io = |error| tanmi_workspace::Error::io(dir)(error);
    std::fs::create_dir_all(dir).map_err(io)?;
    if std::fs::read_dir(dir).map_err(io)?.next().is_some() {
        return Err(TeamError::FolderNotEmpty(dir.to_owned()));
    }
    let files = FileStore::in_folder(dir);
    let mut progress = ProgressBar::new(lang.pick("导出", "exporting"));
    let (mut workspaces, mut nodes) = (0, 0);
    let exported = store_of(&address, &project).export(&mut |documents, at, all| {
        files.insert_documents(&documents)?;
        (workspaces, nodes) = (at, nodes + documents.nodes.len());
        progress.show(at as u64, all as u64);
        Ok(())
    });
    progress.end();
    let lines = exported?;
    if !lines.is_empty() {
        transfer::write_lines(&Folder::of(dir), &lines, clock::now())?;
    }
    let counts = json!({"workspaces": workspaces, "nodes": nodes, "memoryLines": lines.len()});
    record(&address, &project, AuditKind::Exported, counts.clone())?;
    if json {
        let mut value = counts;
        value["project"] = json!(name);
        value["folder"] = json!(dir);
        out::json(&value);
        return Ok(());
    }
    let (zh, en) = (
        format!(
            "已把项目 {name} 导出到 {}：{workspaces} 个工作区，{nodes} 个节点，{} 行记忆",
            dir.display(),
            lines.len()
        ),
        format!(
            "exported project {name} to {}: {}, {}, {}",
            dir.display(),
            show::counted(workspaces, "workspace"),
            show::counted(nodes, "node"),
            show::counted(lines.len(), "memory line"),
        ),
    );
    out::text(&lang.pick(zh, en));
    Ok(())
}

fn record(address: &Address, project: &str, what: AuditKind, detail: Value) -> Result<(), TeamError> {
    let event = AuditEvent { project: Some(project), person: None, ip: None, what, detail };
    Ok(People::open(address, project)?.record_audit(&event)?)
}

/// Adds what a local project contains to a project of the team.
pub fn import(args: &TeamProjectArgs, dir: &Path, json: bool, lang: Lang) -> Result<(), TeamError> {
    if !project_store(dir).is_dir() {
        return Err(TeamError::NoProject(dir.to_owned()));
    }
    let (address, project, name) = find_project(args, lang)?;
    let (files, store) = (FileStore::in_folder(dir), store_of(&address, &project));
    let shared = transfer::read_shared(&Folder::of(dir), clock::now())?;
    let ids = ChangeFeed::ids(&files)?;
    let new = find_new(&files, &store, &ids, &shared)?;
    let mut progress = ProgressBar::new(lang.pick("导入", "importing"));
    let all = (new.len() + shared.lines.len()) as u64;
    for (at, id) in new.iter().enumerate() {
        store.import_workspace(&files.documents(id)?)?;
        progress.show(at as u64 + 1, all);
    }
    let done = new.len();
    let lines = store
        .import_lines(&shared.lines, clock::now(), &mut |lines| progress.show((done + lines) as u64, all));
    progress.end();
    let lines = lines.map_err(run_error)?;
    let deleted = files.trash()?.len();
    let value = json!({
        "project": name, "workspaces": new.len(), "knownWorkspaces": ids.len() - new.len(),
        "memoryLines": lines.added, "knownMemoryLines": lines.known, "privateMemories": shared.private,
        "unusableMemoryLines": shared.unusable, "deleted": deleted,
    });
    if !new.is_empty() || lines.added > 0 {
        let detail = json!({"workspaces": new.len(), "memoryLines": lines.added});
        record(&address, &project, AuditKind::Imported, detail)?;
    }
    if shared.with_secret > 0 {
        let (zh, en) = (
            format!("{} 行记忆似乎含有密钥，现在项目成员都能读到", shared.with_secret),
            format!(
                "{} seem to contain a secret, which the members of the project can read now",
                show::counted(shared.with_secret, "memory line")
            ),
        );
        out::labelled(out::YELLOW, "警告", "warning", &lang.pick(zh, en), lang);
    }
    match json {
        true => out::json(&value),
        false => out::text(&show::team::imported(&value, lang)),
    }
    Ok(())
}

/// Returns the workspaces that the project does not have. Fails if it has something with other content, or if
/// a document cannot be imported.
fn find_new(
    files: &FileStore,
    store: &PgStore,
    ids: &[WorkspaceId],
    shared: &SharedLines,
) -> Result<Vec<WorkspaceId>, TeamError> {
    let (mut new, mut conflicts) = (Vec::new(), Vec::new());
    for id in ids {
        let documents = files.documents(id)?;
        tanmi_pg::check_documents(&documents)?;
        match store.find_workspace(&documents)? {
            WorkspacePresence::Absent => new.push(id.clone()),
            WorkspacePresence::Same => {}
            WorkspacePresence::Different { document } => conflicts.push(format!("{id} ({document})")),
            WorkspacePresence::Deleted => conflicts.push(format!("{id} (.trash)")),
        }
    }
    conflicts.extend(store.find_other_lines(&shared.lines)?);
    if conflicts.is_empty() {
        return Ok(new);
    }
    if conflicts.len() > MAX_NAMES {
        let more = conflicts.len() - MAX_NAMES;
        conflicts.truncate(MAX_NAMES);
        conflicts.push(format!("… +{more}"));
    }
    Err(TeamError::ImportConflict(conflicts))
}

fn run_error(error: tanmi_pg::RunError) -> TeamError {
    match error {
        tanmi_pg::RunError::Store(error) => error.into(),
        tanmi_pg::RunError::Memory(error) => error.into(),
        other => tanmi_pg::DatabaseError::Failed(other.to_string()).into(),
    }
}

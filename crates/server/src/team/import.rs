//! Takes a part of a local project that moves to the server.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tanmi_base::clock;
use tanmi_pg::{PgStore, WorkspacePresence};
use tanmi_protocol::{ImportAnswer, ImportRequest, ImportedWorkspace};
use tanmi_workspace::error::Error;
use tanmi_workspace::model::NodeId;
use tanmi_workspace::store::{WORKSPACE, WorkspaceDocuments};

use super::access::Request;
use super::protocol::{Body, parse, read};
use super::refusal::Refusal;
use super::{TeamState, block};
use crate::http::responses;

/// Adds a workspace or lines of the memory, unless the project has them.
pub async fn import(State(state): State<Arc<TeamState>>, request: Request, body: Body) -> Response {
    let run = async {
        let part: ImportRequest = read(parse(body)?)?;
        let store = state.store(&request.caller.project);
        let answer = block(move || add(&store, part)).await?;
        state.heads.notify(&request.caller.project);
        Ok::<ImportAnswer, Refusal>(answer)
    };
    match run.await {
        Ok(answer) => responses::json(StatusCode::OK, &serde_json::json!(answer)),
        Err(refusal) => refusal.respond(request.lang),
    }
}

fn add(store: &PgStore, part: ImportRequest) -> Result<ImportAnswer, Refusal> {
    let mut answer = ImportAnswer::default();
    if let Some(workspace) = part.workspace {
        match add_workspace(store, workspace)? {
            true => answer.added += 1,
            false => answer.known += 1,
        }
    }
    if let Some(id) = store.find_other_lines(&part.lines)?.first() {
        return Err(taken(id).into());
    }
    let imported = store.import_lines(&part.lines, clock::now(), &mut |_| {})?;
    answer.added += imported.added;
    answer.known += imported.known;
    Ok(answer)
}

/// Returns whether the workspace is new.
fn add_workspace(store: &PgStore, given: ImportedWorkspace) -> Result<bool, Refusal> {
    let mut documents = WorkspaceDocuments { id: given.id, workspace: String::new(), nodes: Vec::new() };
    for document in given.documents {
        let text = document.text.unwrap_or_default();
        match document.name.as_str() {
            WORKSPACE => documents.workspace = text,
            name => documents.nodes.push((NodeId::parse(name)?, text)),
        }
    }
    match store.find_workspace(&documents)? {
        WorkspacePresence::Same => Ok(false),
        WorkspacePresence::Absent => {
            store.import_workspace(&documents)?;
            Ok(true)
        }
        WorkspacePresence::Different { .. } | WorkspacePresence::Deleted => {
            Err(taken(documents.id.as_str()).into())
        }
    }
}

/// Returns the error for something that the project has with other content.
fn taken(id: &str) -> Error {
    Error::invalid(
        "import",
        format!("服务器上的项目已有 {id}，内容不同或已删除"),
        format!("the project on the server has {id} with other content, or deleted it"),
    )
}

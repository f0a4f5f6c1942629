//! `tanmi plan` and `tanmi next`

use std::collections::BTreeSet;

use tanmi_app::resolver::CallTarget;
use tanmi_app::{App, Error, WorkspaceRef};
use tanmi_base::{Bilingual, Lang};
use tanmi_workspace::model::NodeId;
use tanmi_workspace::ops::{ListQuery, PlannedNodes};
use tanmi_workspace::outline;

use super::{CommandContext, Result, file_or_stdin};
use crate::cli::{NextArgs, PlanArgs};
use crate::{out, show};

/// The number of children of a parent whose titles are compared with those of a plan.
const MAX_CHILDREN: usize = 1000;

pub fn plan(context: &CommandContext, args: PlanArgs) -> Result {
    let scope = context.scope(args.at.workspace.as_deref())?;
    let (app, ws) = (context.app_for(args.secrets), &scope.workspace);
    let Some(file) = args.file else {
        let node = app.resolver.node_id(ws, "export", args.export.as_deref().unwrap_or("root"))?;
        let exported = app.nodes.export(ws, &node)?;
        context.print_document(&exported, |exported| exported.result.outline.clone());
        warn_if_unreadable(&exported.result.outline, app.lang());
        return Ok(());
    };
    let parent = app.resolver.node_id(ws, "parentId", &args.parent)?;
    let outline = read_outline(file_or_stdin(&file, outline::MAX_BYTES as u64 + 1)?)?;
    let children = titles_below(&app, ws, &parent)?;
    let planned = app.nodes.plan(ws, parent, &outline, args.rules_hash)?;
    context.print_change(&planned, |planned| show::plan::planned(planned, context.app.lang()));
    if !context.json {
        warn_if_repeated(&planned.result.planned, &children, app.lang());
    }
    Ok(())
}

fn titles_below(app: &App, ws: &WorkspaceRef, parent: &NodeId) -> Result<BTreeSet<String>> {
    let query =
        ListQuery { under: parent.clone(), depth: Some(1), limit: MAX_CHILDREN, ..ListQuery::default() };
    let rows = app.nodes.list(ws, &query)?.result.nodes;
    Ok(rows.into_iter().filter(|row| row.node.id != *parent).map(|row| row.node.title).collect())
}

/// Warns if every title at the top of a plan was there before: the plan was probably read twice.
fn warn_if_repeated(planned: &PlannedNodes, children: &BTreeSet<String>, lang: Lang) {
    let mut top = planned.nodes.iter().filter(|node| node.level == 0);
    if !top.clone().all(|node| children.contains(&node.title)) {
        return;
    }
    let first = top.next().map(|node| node.node_id.as_str()).unwrap_or_default();
    let line = lang.pick(
        format!("这些标题原先都已存在；如果是重复的，逐个删除新的节点：`tanmi node delete {first} --yes`"),
        format!(
            "all of these titles existed before; if they are duplicates, delete each new node: \
             `tanmi node delete {first} --yes`"
        ),
    );
    out::labelled(out::YELLOW, "警告", "warning", &line, lang);
}

/// Warns if `tanmi plan` does not read an exported outline in one call, because it has too many nodes or levels.
fn warn_if_unreadable(exported: &str, lang: Lang) {
    if let Err(error) = outline::parse(exported) {
        let line = lang.pick(
            format!("`tanmi plan` 不能一次读取这个大纲：{}", error.reason.zh),
            format!("`tanmi plan` cannot read this outline in one call: {}", error.reason.en),
        );
        out::labelled(out::YELLOW, "警告", "warning", &line, lang);
    }
}

/// Returns the outline as text. Of a file that is too long, one byte more than the limit was read.
fn read_outline(bytes: Vec<u8>) -> Result<String> {
    if bytes.len() > outline::MAX_BYTES {
        let limit = outline::MAX_BYTES;
        let reason = Bilingual::new(
            format!("大纲超过 {limit} 字节；分成几次"),
            format!("the outline is longer than {limit} bytes; split it"),
        );
        return Err(Error::from(tanmi_workspace::Error::BadOutline { line: 1, reason }));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..valid].iter().filter(|b| **b == b'\n').count() + 1;
        let reason = Bilingual::new("不是有效的 UTF-8", "not valid UTF-8");
        Error::from(tanmi_workspace::Error::BadOutline { line, reason })
    })
}

pub fn next(context: &CommandContext, args: &NextArgs) -> Result {
    let (session, workspace) = (args.session.as_deref(), args.at.workspace.as_deref());
    let scope = context.scope_of(&CallTarget { session, workspace, ..CallTarget::default() })?;
    let app = &context.app;
    let found = match args.start {
        // The session knows what it starts, so hooks need not tell it.
        true => {
            let session = scope.session.as_deref();
            app.sessions.track_own_changes(session, || app.nodes.start_next(&scope))?
        }
        false => app.nodes.next(&scope, args.limit)?,
    };
    // A script must not go on as if it had a node to work on.
    context.failed.set(args.start && found.result.started.is_none());
    match args.start {
        true => context.print_change(&found, |found| show::plan::next(found, app.lang())),
        false => context.print_read(&found, |found| show::plan::next(&found.result, app.lang())),
    }
    Ok(())
}

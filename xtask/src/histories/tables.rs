//! Reads the tables of the database, by SQL and not by the code under test, and the snapshots of a server.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tanmi_cluster::Cluster;

use super::record::{Database, Document, Documents, Head, StreamRows, apply_documents};
use crate::team::http::Connection;

/// The number of rows that one query returns.
const PAGE: usize = 2000;

/// Returns the rows of a query as JSON values, page by page. The query has a unique order.
pub fn read_rows<T: DeserializeOwned>(cluster: &Cluster, query: &str) -> Vec<T> {
    let mut rows = Vec::new();
    loop {
        let offset = rows.len();
        let sql = format!("SELECT row_to_json(page) FROM ({query} LIMIT {PAGE} OFFSET {offset}) AS page");
        let printed = cluster.sql(&sql).expect("read a table");
        rows.extend(printed.lines().map(|line| serde_json::from_str::<T>(line).expect("a row is JSON")));
        if rows.len() < offset + PAGE {
            return rows;
        }
    }
}

/// Returns the last change of every stream, and whether its workspace is deleted.
pub fn read_heads(cluster: &Cluster) -> BTreeMap<String, Head> {
    let query = "SELECT s.id, s.seq, w.deleted_at IS NOT NULL AS is_deleted FROM stream s
        JOIN workspace w ON w.project = s.project AND w.id = s.id ORDER BY s.id";
    let head = |row: Value| {
        let seq = row["seq"].as_i64().unwrap_or_default();
        (row["id"].as_str().unwrap_or_default().to_owned(), (seq, row["is_deleted"] == true))
    };
    read_rows(cluster, query).into_iter().map(head).collect()
}

pub fn read_database(cluster: &Cluster) -> Database {
    let answer = |row: Value| {
        let text = row["answer"].as_str().unwrap_or_default();
        (row["key"].as_str().unwrap_or_default().to_owned(), serde_json::from_str(text).unwrap_or_default())
    };
    let answers = read_rows(cluster, "SELECT key, answer FROM request ORDER BY key");
    Database {
        answers: answers.into_iter().map(answer).collect(),
        streams: read_heads(cluster)
            .into_iter()
            .map(|(id, head)| (id.clone(), read_stream(cluster, &id, head)))
            .collect(),
    }
}

fn read_stream(cluster: &Cluster, id: &str, (head, is_deleted): Head) -> StreamRows {
    let workspace: Vec<Value> =
        read_rows(cluster, &format!("SELECT doc FROM workspace WHERE id = '{id}' ORDER BY id"));
    let counts: Vec<Value> = read_rows(
        cluster,
        &format!("SELECT parent, status, n FROM tally WHERE ws = '{id}' AND n > 0 ORDER BY parent, status"),
    );
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    StreamRows {
        head,
        is_deleted,
        workspace: workspace.first().map(|row| text(&row["doc"])).unwrap_or_default(),
        changes: read_rows(
            cluster,
            &format!("SELECT seq, at, names, docs FROM change WHERE stream = '{id}' ORDER BY seq"),
        ),
        nodes: read_rows(
            cluster,
            &format!(
                "SELECT id, parent, title, kind, status, has_problem, depends_on, holder, fence, seq, doc FROM node
                 WHERE ws = '{id}' ORDER BY id"
            ),
        ),
        counts: counts
            .iter()
            .map(|row| ((text(&row["parent"]), text(&row["status"])), row["n"].as_i64().unwrap_or_default()))
            .collect(),
    }
}

/// Fetches every workspace that exists from a server.
pub fn fetch_snapshots(database: &Database, port: u16, token: &str) -> BTreeMap<String, Documents> {
    let live = database.streams.iter().filter(|(_, rows)| !rows.is_deleted);
    live.map(|(id, _)| (id.clone(), fetch_snapshot(id, port, token))).collect()
}

fn fetch_snapshot(id: &str, port: u16, token: &str) -> Documents {
    let mut connection =
        Connection::open(port, token, Duration::from_secs(30)).expect("connect to the server");
    let (mut documents, mut after) = (Documents::new(), String::new());
    loop {
        let page = connection.get(&format!("snapshot?stream={id}{after}")).expect("fetch a workspace").body;
        let docs: Vec<Document> = serde_json::from_value(page["docs"].clone()).unwrap_or_default();
        apply_documents(&mut documents, docs);
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return documents,
        }
    }
}

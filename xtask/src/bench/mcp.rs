//! Measures the MCP server: cold start until the list of tools, calls on one connection, peak memory.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use serde_json::json;

use super::Options;
use super::measure::{medians, process, process_mb, ratio, run as run_once};
use super::others;
use super::report::Report;
use super::workspace::{GrowingWorkspace, Shape};
use crate::mcp::Client;

pub fn run(tanmi: &Path, scratch: &Path, options: &Options, report: &mut Report) {
    let home = scratch.join("home");
    for size in [10, 10_000] {
        let project = scratch.join(format!("mcp-{size}"));
        let mut growing = GrowingWorkspace::new(&project, Shape::Star);
        while growing.len() < size {
            growing.create();
        }
        let mut baseline = process(Path::new("/bin/true"), &[], &project, &home);
        let mut cold_start = || {
            let mut client = Client::start(&mut process(tanmi, &["mcp"], &project, &home));
            client.request("tools/list", json!({}));
            // Included in the time, because the exit must not overlap with the next start.
            client.stop();
        };
        let times = medians(options.runs, &mut [&mut cold_start, &mut || run_once(&mut baseline)]);
        let name = format!("mcp {size}: cold start to the tools/list answer, and end");
        report.add(format!("{name} / true"), ratio(times[0], times[1]), "×", Some(3.0));
        if size == 10 {
            others::compare(&name, cold_start, &project, &home, options.runs, report);
        }

        let mut client = Client::start(&mut process(tanmi, &["mcp"], &project, &home));
        let hash = growing.rules_hash();
        let create = json!({
            "parentId": "root", "type": "execution", "title": "t", "requirement": "r", "rulesHash": hash,
        });
        for (tool, arguments) in [
            ("node_get", json!({"nodeId": "root"})),
            ("context_get", json!({})),
            ("node_list", json!({})),
            ("node_create", create),
        ] {
            let calls = options.runs.max(200);
            let start = Instant::now();
            for _ in 0..calls {
                client.call(tool, arguments.clone()).expect("the call succeeds");
            }
            let rate = calls as f64 / start.elapsed().as_secs_f64();
            report.add(format!("mcp {size}: {tool}, one after the other"), rate, "per second", None);
        }
        measure_plan(&mut client, &growing, scratch, options, report, size);
        report.add(
            format!("mcp {size}: peak memory"),
            process_mb(client.id(), "status", "VmHWM:"),
            "MB",
            Some(40.0),
        );
        client.stop();
    }
}

/// Measures a plan of 200 nodes, and what the file system takes for 200 folders, against an append of the
/// same file system.
fn measure_plan(
    client: &mut Client,
    growing: &GrowingWorkspace,
    scratch: &Path,
    options: &Options,
    report: &mut Report,
    size: usize,
) {
    let item = |n: usize| match n {
        0 => String::from("- task 0: carry it out\n"),
        n => format!("- task {n} (after: task {}): carry it out\n", n - 1),
    };
    let outline: String = (0..200).map(item).collect();
    let arguments = json!({"outline": outline, "rulesHash": growing.rules_hash()});
    let mut log = std::fs::File::options()
        .create(true)
        .append(true)
        .open(scratch.join("appends"))
        .expect("open the file to append to");
    let mut append = || {
        log.write_all(&[b'x'; 600]).expect("append to the file");
        log.sync_data().expect("sync the file");
    };
    // Every run adds 200 nodes, so there are fewer of them.
    let mut plan = || {
        client.call("node_plan", arguments.clone()).expect("the call succeeds");
    };
    let bare = tempfile::tempdir_in(scratch).expect("create a folder for folders");
    let mut rounds = 0;
    let mut create_bare = || {
        rounds += 1;
        create_folders(&bare.path().join(rounds.to_string()));
    };
    let times = medians((options.runs / 10).max(5), &mut [&mut append, &mut plan, &mut create_bare]);
    let name = format!("mcp {size}: node_plan of 200 nodes / fsynced append");
    report.add(name, ratio(times[1], times[0]), "×", Some(20.0));
    let name = format!("mcp {size}: 200 folders with one file, bare / fsynced append");
    report.add(name, ratio(times[2], times[0]), "×", None);
}

/// Creates 200 folders with one file of the size of a planned node, and syncs nothing.
fn create_folders(parent: &Path) {
    std::fs::create_dir(parent).expect("create the parent folder");
    for n in 0..200 {
        let folder = parent.join(n.to_string());
        std::fs::create_dir(&folder).expect("create a folder");
        let mut file = std::fs::File::create(folder.join("Node.md")).expect("create its file");
        file.write_all(&[b'x'; 250]).expect("write its file");
    }
}

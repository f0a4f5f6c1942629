//! A tree of ten thousand nodes: the document stays small. Measured times are printed, not checked.

use std::time::Instant;

use serde_json::json;

use super::{hash, heap, measure_loads, median, open};
use crate::env::TestEnv;
use crate::serve::Server;

const NODES: usize = 10_000;

#[test]
fn tree_of_ten_thousand_nodes_keeps_document_small() {
    let env = TestEnv::new();
    let ws = env.init();
    let plan = env.node("root", "planning", "plan");
    let task = env.node(&plan, "execution", "task");
    // Files are written directly: one level with about 9,000 nodes, and ten groups of 100.
    let (model, group) = (
        std::fs::read_to_string(env.node_md(&ws, &task)).unwrap(),
        std::fs::read_to_string(env.node_md(&ws, &plan)).unwrap(),
    );
    for n in 3..NODES {
        let id = format!("node-{n:05}");
        let is_group = n % 100 == 0;
        let parent = if is_group || n < 9000 { plan.clone() } else { format!("node-{:05}", n - n % 100) };
        let parent = if is_group && n >= 9000 { String::from("root") } else { parent };
        let text = if is_group { &group } else { &model };
        let (from, was) = if is_group { (&plan, "title: plan") } else { (&task, "title: task") };
        let text = text.replace(from.as_str(), &id).replace(was, &format!("title: Task number {n}")).replace(
            if is_group { "parentId: root" } else { &plan },
            &if is_group { format!("parentId: {parent}") } else { parent },
        );
        env.make(&env.node_md(&ws, &id), &text);
    }
    let server = Server::start(&env);
    let begun = Instant::now();
    let total =
        server.expect_ok("GET", &format!("/workspaces/{ws}"), json!(null))["progress"]["total"].clone();
    let first = begun.elapsed();
    assert_eq!(total, NODES - 1);
    let Some(page) = open(&server) else { return };
    hash(&page, &format!("#/work/{ws}"));
    let (paint, tree) = measure_loads(&page, ".row");
    // The expanded level is fetched page by page while scrolling.
    let expanded = page.js_async(
        "const begun = performance.now();
         [...document.querySelectorAll('.title')].find((title) => title.textContent === 'plan').closest('.row').querySelector('.toggle').click();
         while (document.querySelectorAll('.row').length < 20) await new Promise(requestAnimationFrame);
         return performance.now() - begun",
        json!([]),
    );
    let expanded = expanded.as_f64().unwrap();
    let (mut frames, mut rows) = (Vec::new(), 0);
    for _ in 0..1000 {
        let moved = page.js_async(
            "const tree = document.querySelector('.tree');
             const begun = performance.now();
             tree.scrollTop += 6000;
             await new Promise(requestAnimationFrame);
             const took = performance.now() - begun;
             const seen = [...document.querySelectorAll('.title')].some((title) => title.textContent === 'Task number 8999');
             return [took, document.querySelectorAll('.row').length, seen]",
            json!([]),
        );
        frames.push(moved[0].as_f64().unwrap());
        rows = rows.max(moved[1].as_u64().unwrap());
        if moved[2] == true {
            break;
        }
    }
    page.find(".row", "Task number 8999");
    assert!(rows < 120, "{rows} rows are in the document at once");
    let found = page.js_async(
        "const begun = performance.now();
         const search = document.querySelector('#search');
         search.value = 'number 9998'; search.dispatchEvent(new Event('input'));
         while (!document.querySelector('.match-count').textContent) await new Promise(requestAnimationFrame);
         return performance.now() - begun",
        json!([]),
    );
    let found = found.as_f64().unwrap();
    page.find(".row", "Task number 9998");
    page.save_screenshot("ten-thousand");
    let memory = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap_or_default();
    let memory = memory.lines().find(|line| line.starts_with("VmRSS")).unwrap_or("VmRSS unknown");
    eprintln!(
        "{NODES} nodes: first answer {} ms (with the index made), first paint {paint:.0} ms, tree {tree:.0} ms, \
         9,000 children opened in {expanded:.0} ms, frame while scrolling {:.1} ms (slowest {:.1}), search {found:.0} ms, \
         at most {rows} rows in the document, page {:.1} MB, server {memory}",
        first.as_millis(),
        median(&mut frames),
        frames[frames.len() - 1],
        heap(&page),
    );
}

//! Measures memory at several sizes: import, search and session start.

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::json;

use super::Options;
use super::measure::{self, medians, process, ratio, run as run_once};
use super::report::Report;
use crate::rng::Rng;

const DAY: i64 = 86_400_000;
/// The time of every process; the newest fact is from the same time.
const NOW: i64 = 1_765_432_100_000;

/// Returns the rank of a random word. Ranks are distributed as in natural language (Zipf): the second word is half as
/// frequent as the first, the third a third as frequent.
fn random_rank(rng: &mut Rng) -> u64 {
    let share = rng.below(1_000_000) as f64 / 1_000_000.0;
    (share * 40_000f64.ln()).exp() as u64
}

/// Returns a made-up Latin word for a rank.
fn latin_word(rank: u64) -> String {
    const PARTS: [&str; 20] = [
        "ta", "ri", "mo", "ken", "sul", "ve", "pra", "dol", "nim", "qua", "fer", "zo", "lis", "cha", "bu",
        "tor", "wen", "gi", "hal", "xy",
    ];
    let mut out = String::new();
    let mut left = rank + 20;
    while left > 0 {
        out.push_str(PARTS[(left % 20) as usize]);
        left /= 20;
    }
    out
}

/// Returns a Han character for a rank.
fn han(rank: u64) -> char {
    char::from_u32(0x4E00 + (rank * 7 % 3000) as u32).unwrap_or('一')
}

/// Returns the nth fact as a line of JSON. Facts are spread over 200 days.
fn fact(n: usize, total: usize, rng: &mut Rng) -> String {
    let mut text = String::new();
    for _ in 0..12 + rng.below(8) {
        let _ = write!(text, "{} ", latin_word(random_rank(rng)));
    }
    for _ in 0..rng.below(12) {
        text.push(han(random_rank(rng)));
    }
    let at = NOW - 200 * DAY + (n as i64 * 200 * DAY / total as i64);
    json!({"id": format!("f{n}"), "content": text, "timestamp": at.to_string(), "type": "fact", "session": format!("s{}", n / 30)})
        .to_string()
}

/// Returns three queries with rare and frequent words, in Latin and Han script.
fn questions() -> Vec<String> {
    let word = latin_word;
    vec![
        format!("{} {} {}", word(300), word(4_000), word(20)),
        format!("{} {}", word(15_000), word(900)),
        format!("{}{}{} {}", han(40), han(700), han(90), word(2_500)),
    ]
}

pub fn run(tanmi: &Path, scratch: &Path, options: &Options, report: &mut Report) {
    for size in &options.facts {
        let (project, home) =
            (scratch.join(format!("memory-{size}")), scratch.join(format!("memory-home-{size}")));
        // With its own store; otherwise Tanmi would take the repository around the scratch folder as the project.
        std::fs::create_dir_all(project.join(".tanmi-workspace")).expect("create the project");
        std::fs::create_dir_all(&home).expect("create the home");
        let file = scratch.join(format!("{size}.jsonl"));
        let mut rng = Rng(88_172_645_463_325_252);
        let mut out = std::io::BufWriter::new(std::fs::File::create(&file).expect("create the import file"));
        for n in 0..*size {
            writeln!(out, "{}", fact(n, *size, &mut rng)).expect("write a fact");
        }
        out.flush().expect("write the facts");
        let cli = |args: &[&str]| {
            let mut command = process(tanmi, args, &project, &home);
            command.env("TANMI_NOW", NOW.to_string());
            command
        };
        let start = Instant::now();
        run_once(&mut cli(&["memory", "import", &file.display().to_string()]));
        let budget = (*size == 10_000).then_some(1.0);
        report.add(format!("memory {size}: import and index"), start.elapsed().as_secs_f64(), "s", budget);

        let payload = scratch.join(format!("start-{size}.json"));
        let text = json!({"session_id": "bench", "hook_event_name": "SessionStart", "cwd": project, "source": "startup"});
        std::fs::File::create(&payload)
            .expect("create the payload")
            .write_all(text.to_string().as_bytes())
            .expect("write the payload");
        let questions = questions();
        let mut jobs: Vec<Box<dyn FnMut()>> = Vec::new();
        for question in &questions {
            let args = ["memory", "search", question.as_str(), "--limit", "10", "--json"].map(String::from);
            let (tanmi, project, home) = (tanmi.to_owned(), project.clone(), home.clone());
            jobs.push(Box::new(move || {
                let args: Vec<&str> = args.iter().map(String::as_str).collect();
                run_once(process(&tanmi, &args, &project, &home).env("TANMI_NOW", NOW.to_string()));
            }));
        }
        jobs.push(Box::new(|| run_once(&mut hook(tanmi, &project, &home, &payload))));
        let mut baseline = process(Path::new("/bin/true"), &[], &project, &home);
        jobs.push(Box::new(move || run_once(&mut baseline)));
        let mut borrowed: Vec<&mut dyn FnMut()> =
            jobs.iter_mut().map(|job| job.as_mut() as &mut dyn FnMut()).collect();
        let times = medians(options.runs, &mut borrowed);
        let baseline = times[questions.len() + 1];
        let mut ratios: Vec<f64> =
            times[..questions.len()].iter().map(|time| ratio(*time, baseline)).collect();
        ratios.sort_by(f64::total_cmp);
        let budget = match *size {
            0..=100_000 => Some(7.0),
            _ => Some(10.0),
        };
        report.add(
            format!("memory {size}: search, slowest of three questions / true"),
            ratios[questions.len() - 1],
            "×",
            budget,
        );
        let budget = (*size <= 100_000).then_some(3.0);
        report.add(
            format!("memory {size}: session start / true"),
            ratio(times[questions.len()], baseline),
            "×",
            budget,
        );
        let peak = measure::peak_kb(tanmi, &["memory", "search", &questions[0]], &project, &home);
        report.add(format!("memory {size}: peak memory of a search"), peak as f64 / 1024.0, "MB", None);
    }
}

fn hook(tanmi: &Path, project: &Path, home: &Path, payload: &PathBuf) -> Command {
    let mut command = process(tanmi, &["hook", "claude-code"], project, home);
    command.env("TANMI_NOW", NOW.to_string()).stdin(std::fs::File::open(payload).expect("open the payload"));
    command
}

//! Memory at several sizes: taking facts in, searching them, and a session that starts among them.

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::json;

use super::Options;
use super::measure::{self, medians, process, ratio, run as run_once};
use super::report::Report;
use crate::dice::Dice;

const DAY: i64 = 86_400_000;
/// Now, for everybody: the newest fact is as old as this run.
const NOW: i64 = 1_765_432_100_000;

/// As words are used: the second half as often as the first, the third a third as often.
fn word(dice: &mut Dice) -> u64 {
    let share = dice.roll(1_000_000) as f64 / 1_000_000.0;
    (share * 40_000f64.ln()).exp() as u64
}

fn spelt(word: u64) -> String {
    const PARTS: [&str; 20] = [
        "ta", "ri", "mo", "ken", "sul", "ve", "pra", "dol", "nim", "qua", "fer", "zo", "lis", "cha", "bu",
        "tor", "wen", "gi", "hal", "xy",
    ];
    let mut out = String::new();
    let mut left = word + 20;
    while left > 0 {
        out.push_str(PARTS[(left % 20) as usize]);
        left /= 20;
    }
    out
}

fn han(word: u64) -> char {
    char::from_u32(0x4E00 + (word * 7 % 3000) as u32).unwrap_or('一')
}

fn fact(n: usize, total: usize, dice: &mut Dice) -> String {
    let mut text = String::new();
    for _ in 0..12 + dice.roll(8) {
        let _ = write!(text, "{} ", spelt(word(dice)));
    }
    for _ in 0..dice.roll(12) {
        text.push(han(word(dice)));
    }
    let at = NOW - 200 * DAY + (n as i64 * 200 * DAY / total as i64);
    json!({"id": format!("f{n}"), "content": text, "timestamp": at.to_string(), "type": "fact", "session": format!("s{}", n / 30)})
        .to_string()
}

fn questions() -> Vec<String> {
    let word = |rank: u64| spelt(rank);
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
        // A store of its own, or the project would be the repository around the scratch folder.
        std::fs::create_dir_all(project.join(".tanmi-workspace")).expect("a project");
        std::fs::create_dir_all(&home).expect("a home");
        let file = scratch.join(format!("{size}.jsonl"));
        let mut dice = Dice(88_172_645_463_325_252);
        let mut out = std::io::BufWriter::new(std::fs::File::create(&file).expect("a file"));
        for n in 0..*size {
            writeln!(out, "{}", fact(n, *size, &mut dice)).expect("written");
        }
        out.flush().expect("written");
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
            .expect("a file")
            .write_all(text.to_string().as_bytes())
            .expect("written");
        let questions = questions();
        let mut jobs: Vec<Box<dyn FnMut()>> = Vec::new();
        for question in &questions {
            let args = ["memory", "search", question.as_str(), "--limit", "10", "--json"].map(String::from);
            let (cli, project, home) = (tanmi.to_owned(), project.clone(), home.clone());
            jobs.push(Box::new(move || {
                let args: Vec<&str> = args.iter().map(String::as_str).collect();
                run_once(process(&cli, &args, &project, &home).env("TANMI_NOW", NOW.to_string()));
            }));
        }
        jobs.push(Box::new(|| run_once(&mut hook(tanmi, &project, &home, &payload))));
        let mut nothing = process(Path::new("/bin/true"), &[], &project, &home);
        jobs.push(Box::new(move || run_once(&mut nothing)));
        let mut borrowed: Vec<&mut dyn FnMut()> =
            jobs.iter_mut().map(|job| job.as_mut() as &mut dyn FnMut()).collect();
        let times = medians(options.runs, &mut borrowed);
        let baseline = times[questions.len() + 1];
        let mut ratios: Vec<f64> =
            times[..questions.len()].iter().map(|time| ratio(*time, baseline)).collect();
        ratios.sort_by(f64::total_cmp);
        let budget = match *size {
            0..=100_000 => Some(10.0),
            _ => Some(15.0),
        };
        report.add(
            format!("memory {size}: search, slowest of three questions / true"),
            ratios[questions.len() - 1],
            "×",
            budget,
        );
        let budget = (*size <= 100_000).then_some(6.0);
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
    command.env("TANMI_NOW", NOW.to_string()).stdin(std::fs::File::open(payload).expect("a payload"));
    command
}

//! The results of a benchmark, as text and as JSON.

use serde_json::{Value, json};

use super::compare::Row;

#[derive(Default)]
pub struct Report {
    lines: Vec<Line>,
}

struct Line {
    row: Row,
    budget: Option<f64>,
    /// The value is our time divided by the time of another program; the line then also shows how many times faster we
    /// are.
    is_against_other: bool,
}

impl Report {
    pub fn new() -> Report {
        Report::default()
    }

    pub fn add(&mut self, name: impl Into<String>, value: f64, unit: &'static str, budget: Option<f64>) {
        let row = Row { name: name.into(), value, unit: unit.to_owned() };
        self.push(Line { row, budget, is_against_other: false });
    }

    /// Adds a ratio: our time divided by the time of another program.
    pub fn add_against_other(&mut self, name: String, value: f64) {
        let row = Row { name, value, unit: String::from("×") };
        self.push(Line { row, budget: None, is_against_other: true });
    }

    /// Adds a line and prints it to standard error at once, because a benchmark takes minutes.
    fn push(&mut self, line: Line) {
        eprintln!("{}", line.to_text());
        self.lines.push(line);
    }

    pub fn rows(&self) -> Vec<Row> {
        self.lines.iter().map(|line| line.row.clone()).collect()
    }

    pub fn to_text(&self) -> String {
        let lines: Vec<String> = self.lines.iter().map(Line::to_text).collect();
        let over = self.lines.iter().filter(|line| line.is_over_budget()).count();
        format!("{}\n\n{} measurements, {over} over budget", lines.join("\n"), self.lines.len())
    }

    pub fn to_json(&self) -> Value {
        Value::from(self.lines.iter().map(Line::to_json).collect::<Vec<_>>())
    }
}

impl Line {
    fn is_over_budget(&self) -> bool {
        self.budget.is_some_and(|budget| self.row.value > budget)
    }

    /// Returns `faster` or `slower` and how many times, if the line compares with another program.
    fn speed(&self) -> Option<(&'static str, f64)> {
        let value = self.row.value;
        let speed = if value < 1.0 { ("faster", 1.0 / value) } else { ("slower", value) };
        self.is_against_other.then_some(speed)
    }

    fn to_text(&self) -> String {
        let Row { name, value, unit } = &self.row;
        let mut text = format!("{name:<58} {value:>9.*} {unit}", if *value < 0.1 { 3 } else { 2 });
        if let Some(budget) = self.budget {
            text.push_str(&format!("  budget {budget}{}", if self.is_over_budget() { "  OVER" } else { "" }));
        }
        if let Some((word, times)) = self.speed() {
            text.push_str(&format!("  {times:.1} times {word}"));
        }
        text
    }

    fn to_json(&self) -> Value {
        let Row { name, value, unit } = &self.row;
        let mut line = json!({"what": name, "value": value, "unit": unit, "budget": self.budget});
        if let Some((word, times)) = self.speed() {
            line[word] = json!(times);
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::compare;

    #[test]
    fn line_against_other_shows_speed() {
        let mut report = Report::new();
        report.add("hook / true", 1.5, "×", Some(2.0));
        report.add_against_other("hook / node".into(), 0.05);
        report.add_against_other("mcp / node".into(), 2.5);
        let (text, json) = (report.to_text(), report.to_json());
        assert!(text.contains("0.050 ×  20.0 times faster"), "{text}");
        assert!(text.contains("2.50 ×  2.5 times slower"), "{text}");
        assert_eq!(json[0], json!({"what": "hook / true", "value": 1.5, "unit": "×", "budget": 2.0}));
        assert_eq!((&json[1]["faster"], &json[2]["slower"]), (&json!(20.0), &json!(2.5)));
    }

    #[test]
    fn saved_json_reads_back_as_same_rows() {
        let mut report = Report::new();
        report.add("hook / true", 1.5, "×", Some(2.0));
        report.add_against_other("hook / node".into(), 0.05);
        assert_eq!(compare::read(&report.to_json().to_string()), Ok(report.rows()));
    }
}

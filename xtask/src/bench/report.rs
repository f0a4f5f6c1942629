//! The table that comes out.

use serde_json::{Value, json};

#[derive(Default)]
pub struct Report {
    lines: Vec<Line>,
}

struct Line {
    what: String,
    value: f64,
    unit: &'static str,
    budget: Option<f64>,
}

impl Report {
    pub fn new() -> Report {
        Report::default()
    }

    /// Adds a line and says it at once: a benchmark takes minutes.
    pub fn add(&mut self, what: impl Into<String>, value: f64, unit: &'static str, budget: Option<f64>) {
        let line = Line { what: what.into(), value, unit, budget };
        eprintln!("{}", line.to_text());
        self.lines.push(line);
    }

    pub fn to_text(&self) -> String {
        let lines: Vec<String> = self.lines.iter().map(Line::to_text).collect();
        let missed = self.lines.iter().filter(|line| line.is_missed()).count();
        format!("{}\n\n{} measurements, {missed} over their budget", lines.join("\n"), self.lines.len())
    }

    pub fn to_json(&self) -> Value {
        let line = |line: &Line| json!({"what": line.what, "value": line.value, "unit": line.unit, "budget": line.budget});
        Value::from(self.lines.iter().map(line).collect::<Vec<_>>())
    }
}

impl Line {
    fn is_missed(&self) -> bool {
        self.budget.is_some_and(|budget| self.value > budget)
    }

    fn to_text(&self) -> String {
        let budget = match self.budget {
            None => String::new(),
            Some(budget) => format!("  budget {budget}{}", if self.is_missed() { "  OVER" } else { "" }),
        };
        format!("{:<58} {:>9.2} {}{budget}", self.what, self.value, self.unit)
    }
}

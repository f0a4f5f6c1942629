//! Compares two sets of results and finds the measurements that got worse.

use serde::Deserialize;

/// One measurement of saved or new results.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Row {
    #[serde(rename = "what")]
    pub name: String,
    pub value: f64,
    pub unit: String,
}

impl Row {
    /// Returns whether a higher value is better. For all other units a lower value is better.
    fn is_rate(&self) -> bool {
        self.unit == "per second"
    }
}

/// One measurement in the old and the new results.
#[derive(Debug, PartialEq)]
pub struct Change {
    name: String,
    unit: String,
    /// `None` if the old results do not contain the measurement; `new` likewise.
    old: Option<f64>,
    new: Option<f64>,
    is_worse: bool,
}

/// Parses results that `--save` wrote.
pub fn read(text: &str) -> Result<Vec<Row>, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Returns the changes in the order of `new`, followed by the rows that only `old` has. `threshold` is in
/// percent of the old value.
pub fn compare(old: &[Row], new: &[Row], threshold: f64) -> Vec<Change> {
    // Rows with different units are different measurements.
    let find = |rows: &[Row], row: &Row| {
        rows.iter().find(|other| other.name == row.name && other.unit == row.unit).map(|other| other.value)
    };
    let current = new.iter().map(|row| (row, find(old, row), Some(row.value)));
    let removed = old.iter().filter(|row| find(new, row).is_none()).map(|row| (row, Some(row.value), None));
    current
        .chain(removed)
        .map(|(row, old, new)| Change {
            name: row.name.clone(),
            unit: row.unit.clone(),
            old,
            new,
            is_worse: percent(old, new)
                .is_some_and(|change| if row.is_rate() { -change > threshold } else { change > threshold }),
        })
        .collect()
}

/// Returns the change in percent, or `None` if one of the values is missing.
fn percent(old: Option<f64>, new: Option<f64>) -> Option<f64> {
    let (old, new) = (old?, new?);
    Some(if old == new { 0.0 } else { (new / old - 1.0) * 100.0 })
}

pub fn is_any_worse(changes: &[Change]) -> bool {
    changes.iter().any(|change| change.is_worse)
}

pub fn to_text(changes: &[Change], threshold: f64) -> String {
    let number = |value: Option<f64>| value.map_or_else(|| String::from("–"), |value| format!("{value:.3}"));
    let label = |change: &Change| format!("{} ({})", change.name, change.unit);
    let width = changes.iter().map(|change| label(change).chars().count()).max().unwrap_or(0);
    let mut out = format!("{:width$} {:>10} {:>10} {:>10}\n", "", "old", "new", "change");
    for change in changes {
        let difference = match (percent(change.old, change.new), change.old) {
            (Some(percent), _) => format!("{percent:+.1} %"),
            (None, None) => String::from("added"),
            (None, Some(_)) => String::from("removed"),
        };
        let (old, new) = (number(change.old), number(change.new));
        let worse = if change.is_worse { "  WORSE" } else { "" };
        out.push_str(&format!("{:width$} {old:>10} {new:>10} {difference:>10}{worse}\n", label(change)));
    }
    let worse = changes.iter().filter(|change| change.is_worse).count();
    out.push_str(&format!("\n{} measurements, {worse} worse by more than {threshold} %", changes.len()));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, value: f64, unit: &str) -> Row {
        Row { name: name.into(), value, unit: unit.into() }
    }

    /// Compares one measurement at a threshold of 10 percent and checks the printed line.
    fn check(old: Option<f64>, new: Option<f64>, unit: &str, expected: &str, is_worse: bool) {
        let table =
            |value: Option<f64>| value.map(|value| row("a", value, unit)).into_iter().collect::<Vec<_>>();
        let changes = compare(&table(old), &table(new), 10.0);
        assert_eq!(changes.len(), 1, "{old:?} {new:?}");
        assert_eq!((changes[0].old, changes[0].new), (old, new));
        let text = to_text(&changes, 10.0);
        let line = text.lines().nth(1).unwrap();
        assert!(line.contains(expected), "{line}");
        assert_eq!((is_any_worse(&changes), line.contains("WORSE")), (is_worse, is_worse), "{line}");
    }

    #[test]
    fn compare_times_higher_is_worse() {
        check(Some(2.0), Some(2.0), "×", "+0.0 %", false);
        check(Some(2.0), Some(1.0), "×", "-50.0 %", false);
        check(Some(2.0), Some(2.18), "×", "+9.0 %", false);
        check(Some(2.0), Some(2.4), "×", "+20.0 %", true);
        check(None, Some(2.0), "×", "added", false);
        check(Some(2.0), None, "×", "removed", false);
    }

    #[test]
    fn compare_rates_lower_is_worse() {
        check(Some(1000.0), Some(1500.0), "per second", "+50.0 %", false);
        check(Some(1000.0), Some(950.0), "per second", "-5.0 %", false);
        check(Some(1000.0), Some(800.0), "per second", "-20.0 %", true);
    }

    #[test]
    fn compare_old_value_zero_any_increase_is_worse() {
        check(Some(0.0), Some(0.0), "MB", "+0.0 %", false);
        check(Some(0.0), Some(1.0), "MB", "+inf %", true);
    }

    #[test]
    fn compare_uses_given_threshold() {
        let (old, new) = ([row("a", 2.0, "×")], [row("a", 2.4, "×")]);
        assert!(is_any_worse(&compare(&old, &new, 10.0)));
        assert!(!is_any_worse(&compare(&old, &new, 25.0)));
    }

    #[test]
    fn compare_matches_rows_by_name_and_unit() {
        let old = [row("removed", 1.0, "×"), row("b", 1.0, "×"), row("a", 1.0, "s"), row("a", 3.0, "×")];
        let new = [row("a", 3.0, "×"), row("b", 5.0, "×"), row("added", 1.0, "MB")];
        let changes = compare(&old, &new, 10.0);
        let actual: Vec<(&str, &str, bool)> =
            changes.iter().map(|change| (&*change.name, &*change.unit, change.is_worse)).collect();
        let expected = [
            ("a", "×", false),
            ("b", "×", true),
            ("added", "MB", false),
            ("removed", "×", false),
            ("a", "s", false),
        ];
        assert_eq!(actual, expected);
    }

    #[test]
    fn read_malformed_results_is_error() {
        assert!(read("{}").is_err() && read("").is_err());
        assert_eq!(read("[]"), Ok(Vec::new()));
    }
}

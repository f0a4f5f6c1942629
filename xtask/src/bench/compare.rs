//! Two tables side by side: what got better, what got worse. Nothing is measured here.

use serde::Deserialize;

/// A line of a table that was saved.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Row {
    pub what: String,
    pub value: f64,
    pub unit: String,
}

impl Row {
    /// Of rates more is better; of everything else less.
    fn is_rate(&self) -> bool {
        self.unit == "per second"
    }
}

#[derive(Debug, PartialEq)]
pub struct Change {
    what: String,
    unit: String,
    /// `None` where that table does not have it.
    old: Option<f64>,
    new: Option<f64>,
    is_worse: bool,
}

pub fn read(text: &str) -> Result<Vec<Row>, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// In the order of the new table, then what only the old one has. `threshold` is in per cent of the old value.
pub fn compare(old: &[Row], new: &[Row], threshold: f64) -> Vec<Change> {
    // Another unit is another measurement.
    let find = |rows: &[Row], row: &Row| {
        rows.iter().find(|other| other.what == row.what && other.unit == row.unit).map(|other| other.value)
    };
    let there = new.iter().map(|row| (row, find(old, row), Some(row.value)));
    let gone = old.iter().filter(|row| find(new, row).is_none()).map(|row| (row, Some(row.value), None));
    there
        .chain(gone)
        .map(|(row, old, new)| Change {
            what: row.what.clone(),
            unit: row.unit.clone(),
            old,
            new,
            is_worse: percent(old, new)
                .is_some_and(|change| if row.is_rate() { -change > threshold } else { change > threshold }),
        })
        .collect()
}

/// `None` where there is nothing to compare with.
fn percent(old: Option<f64>, new: Option<f64>) -> Option<f64> {
    let (old, new) = (old?, new?);
    Some(if old == new { 0.0 } else { (new / old - 1.0) * 100.0 })
}

pub fn is_any_worse(changes: &[Change]) -> bool {
    changes.iter().any(|change| change.is_worse)
}

pub fn to_text(changes: &[Change], threshold: f64) -> String {
    let number = |value: Option<f64>| value.map_or_else(|| String::from("–"), |value| format!("{value:.3}"));
    let name = |change: &Change| format!("{} ({})", change.what, change.unit);
    let width = changes.iter().map(|change| name(change).chars().count()).max().unwrap_or(0);
    let mut out = format!("{:width$} {:>10} {:>10} {:>10}\n", "", "old", "new", "change");
    for change in changes {
        let said = match (percent(change.old, change.new), change.old) {
            (Some(percent), _) => format!("{percent:+.1} %"),
            (None, None) => String::from("added"),
            (None, Some(_)) => String::from("gone"),
        };
        let (old, new) = (number(change.old), number(change.new));
        let worse = if change.is_worse { "  WORSE" } else { "" };
        out.push_str(&format!("{:width$} {old:>10} {new:>10} {said:>10}{worse}\n", name(change)));
    }
    let worse = changes.iter().filter(|change| change.is_worse).count();
    out.push_str(&format!("\n{} measurements, {worse} worse by more than {threshold} %", changes.len()));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(what: &str, value: f64, unit: &str) -> Row {
        Row { what: what.into(), value, unit: unit.into() }
    }

    /// What is said of one measurement that was `old` and is `new`, at 10 per cent.
    fn check(old: Option<f64>, new: Option<f64>, unit: &str, said: &str, is_worse: bool) {
        let table =
            |value: Option<f64>| value.map(|value| row("a", value, unit)).into_iter().collect::<Vec<_>>();
        let changes = compare(&table(old), &table(new), 10.0);
        assert_eq!(changes.len(), 1, "{old:?} {new:?}");
        assert_eq!((changes[0].old, changes[0].new), (old, new));
        let text = to_text(&changes, 10.0);
        let line = text.lines().nth(1).unwrap();
        assert!(line.contains(said), "{line}");
        assert_eq!((is_any_worse(&changes), line.contains("WORSE")), (is_worse, is_worse), "{line}");
    }

    #[test]
    fn better_worse_equal_and_missing_on_either_side() {
        check(Some(2.0), Some(2.0), "×", "+0.0 %", false);
        check(Some(2.0), Some(1.0), "×", "-50.0 %", false);
        check(Some(2.0), Some(2.18), "×", "+9.0 %", false);
        check(Some(2.0), Some(2.4), "×", "+20.0 %", true);
        check(None, Some(2.0), "×", "added", false);
        check(Some(2.0), None, "×", "gone", false);
    }

    #[test]
    fn of_rates_less_is_worse() {
        check(Some(1000.0), Some(1500.0), "per second", "+50.0 %", false);
        check(Some(1000.0), Some(950.0), "per second", "-5.0 %", false);
        check(Some(1000.0), Some(800.0), "per second", "-20.0 %", true);
    }

    #[test]
    fn nothing_is_a_value_too() {
        check(Some(0.0), Some(0.0), "MB", "+0.0 %", false);
        check(Some(0.0), Some(1.0), "MB", "+inf %", true);
    }

    #[test]
    fn the_threshold_is_the_callers() {
        let (old, new) = ([row("a", 2.0, "×")], [row("a", 2.4, "×")]);
        assert!(is_any_worse(&compare(&old, &new, 10.0)));
        assert!(!is_any_worse(&compare(&old, &new, 25.0)));
    }

    #[test]
    fn tables_are_put_side_by_side_by_name_and_unit() {
        let old = [row("gone", 1.0, "×"), row("b", 1.0, "×"), row("a", 1.0, "s"), row("a", 3.0, "×")];
        let new = [row("a", 3.0, "×"), row("b", 5.0, "×"), row("added", 1.0, "MB")];
        let changes = compare(&old, &new, 10.0);
        let seen: Vec<(&str, &str, bool)> =
            changes.iter().map(|change| (&*change.what, &*change.unit, change.is_worse)).collect();
        let expected = [
            ("a", "×", false),
            ("b", "×", true),
            ("added", "MB", false),
            ("gone", "×", false),
            ("a", "s", false),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_file_that_is_no_table_is_refused() {
        assert!(read("{}").is_err() && read("").is_err());
        assert_eq!(read("[]"), Ok(Vec::new()));
    }
}

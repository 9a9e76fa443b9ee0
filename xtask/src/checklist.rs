//! [`Checklist`]: the results of a series of checks: one line per completed check, and a table at
//! the end.

use std::{fmt::Write, time::Duration};

use owo_colors::{OwoColorize as _, Stream};

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// It was skipped, after another one failed or because this machine lacks what it needs.
    NotRun,
}

/// The unit in which durations are printed.
#[derive(Clone, Copy)]
pub enum Unit {
    /// Seconds with one decimal.
    Seconds,
    /// Milliseconds with one decimal.
    Milliseconds,
}

/// The checks so far.
pub struct Checklist {
    unit: Unit,
    rows: Vec<Row>,
}

/// A completed or skipped check.
struct Row {
    name: &'static str,
    outcome: Outcome,
    took: Duration,
}

impl Checklist {
    /// Creates an empty list.
    pub fn new(unit: Unit) -> Self {
        Self {
            unit,
            rows: Vec::new(),
        }
    }

    /// Adds a check and returns its line.
    pub fn add(&mut self, name: &'static str, outcome: Outcome, took: Duration) -> String {
        let row = Row {
            name,
            outcome,
            took,
        };
        let line = self.line(&row);
        self.rows.push(row);
        line
    }

    /// Returns all lines and their sum.
    pub fn table(&self) -> String {
        let rule = "-".repeat(
            self.rows
                .iter()
                .map(|row| row.name.len())
                .max()
                .unwrap_or_default()
                + 20,
        );
        let mut table = format!("{rule}\n");
        for row in &self.rows {
            // Writing to a String cannot fail.
            let _ = writeln!(table, "{}", self.line(row));
        }
        let passed = self
            .rows
            .iter()
            .filter(|row| row.outcome == Outcome::Passed)
            .count();
        let took = self.duration(self.rows.iter().map(|row| row.took).sum());
        let _ = write!(
            table,
            "{rule}\n{:6}  {took}  {passed} of {}",
            "",
            self.rows.len()
        );
        table
    }

    /// Returns whether a check passed and none failed.
    pub fn is_passed(&self) -> bool {
        let has = |outcome| self.rows.iter().any(|row| row.outcome == outcome);
        has(Outcome::Passed) && !has(Outcome::Failed)
    }

    /// Returns the line of a check.
    fn line(&self, row: &Row) -> String {
        format!(
            "{}  {}  {}",
            row.outcome.shown(),
            self.duration(row.took),
            row.name
        )
    }

    /// Returns a duration in the unit of the list.
    fn duration(&self, took: Duration) -> String {
        match self.unit {
            Unit::Seconds => format!("{:>8.1} s", took.as_secs_f64()),
            Unit::Milliseconds => format!("{:>6.1} ms", took.as_secs_f64() * 1e3),
        }
    }
}

impl Outcome {
    /// Returns the text of an outcome, colored on a terminal. All texts have the same width.
    fn shown(self) -> String {
        match self {
            Self::Passed => format!(
                "{}",
                "ok    ".if_supports_color(Stream::Stdout, |text| text.green())
            ),
            Self::Failed => format!(
                "{}",
                "FAILED".if_supports_color(Stream::Stdout, |text| text.red())
            ),
            Self::NotRun => format!(
                "{}",
                "-     ".if_supports_color(Stream::Stdout, |text| text.dimmed())
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_passes_if_a_check_passes_and_none_fails() {
        let mut list = Checklist::new(Unit::Seconds);
        list.add("one", Outcome::NotRun, Duration::ZERO);
        assert!(!list.is_passed(), "nothing was checked");
        list.add("two", Outcome::Passed, Duration::from_secs(1));
        assert!(list.is_passed());
        list.add("three", Outcome::Failed, Duration::ZERO);
        assert!(!list.is_passed());
    }

    #[test]
    fn the_table_has_a_line_for_each_check_and_the_sum() {
        let mut list = Checklist::new(Unit::Milliseconds);
        list.add("one", Outcome::Passed, Duration::from_millis(20));
        list.add("another", Outcome::Failed, Duration::from_millis(3));
        let table = list.table();
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines.len(), 5);
        assert!(lines[2].contains("FAILED"), "{table}");
        assert!(lines[2].ends_with("3.0 ms  another"), "{table}");
        assert!(lines[4].ends_with("23.0 ms  1 of 2"), "{table}");
        assert_eq!(lines[1].find("ms"), lines[4].find("ms"));
    }
}

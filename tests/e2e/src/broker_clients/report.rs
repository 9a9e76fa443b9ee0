//! [`Report`]: the table of a run.

use std::fmt;

use anyhow::ensure;

use super::{maker::Maker, trial::Steps};

/// The rows of a run.
#[derive(Default)]
pub(super) struct Report(Vec<Row>);

/// What one client did.
pub(super) struct Row {
    maker: Maker,
    outcome: Outcome,
}

enum Outcome {
    /// As expected, at every provider.
    Expected,
    /// What it needs cannot be installed here.
    Skipped(String),
    Failed(String),
}

impl Row {
    pub(super) fn skipped(maker: Maker, why: &anyhow::Error) -> Self {
        let outcome = Outcome::Skipped(format!("{why:#}"));
        Self { maker, outcome }
    }

    /// Compares what a client did at each provider with what is expected.
    pub(super) fn of(maker: Maker, observed: anyhow::Result<[Steps; 3]>) -> Self {
        let outcome = match observed {
            Ok(steps) => match steps.iter().find(|steps| **steps != maker.expected()) {
                None => Outcome::Expected,
                Some(other) => {
                    Outcome::Failed(format!("expected {:?}, got {other:?}", maker.expected()))
                }
            },
            Err(error) => Outcome::Failed(format!("{error:#}")),
        };
        Self { maker, outcome }
    }
}

impl Report {
    pub(super) fn add(&mut self, row: Row) {
        self.0.push(row);
    }

    /// Fails when a row failed, or every client was skipped.
    pub(super) fn result(&self) -> anyhow::Result<()> {
        let count = |is: fn(&Outcome) -> bool| self.0.iter().filter(|row| is(&row.outcome)).count();
        let failed = count(|outcome| matches!(outcome, Outcome::Failed(_)));
        ensure!(failed == 0, "{failed} clients failed");
        let tried = count(|outcome| matches!(outcome, Outcome::Expected));
        ensure!(tried > 0, "every client was skipped");
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<36}{:<10}{:<10}{:<10}{:<16}continues",
            "client", "signs in", "steps up", "refreshes", "signs in again"
        )?;
        self.0.iter().try_for_each(|row| writeln!(f, "{row}"))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<36}", self.maker.title())?;
        let word = |is: bool| if is { "yes" } else { "no" };
        match &self.outcome {
            Outcome::Expected => {
                let Steps {
                    signs_in,
                    steps_up,
                    refreshes,
                    signs_in_again,
                    continues,
                } = self.maker.expected();
                write!(
                    f,
                    "{:<10}{:<10}{:<10}{:<16}{}",
                    word(signs_in),
                    word(steps_up),
                    word(refreshes),
                    word(signs_in_again),
                    word(continues)
                )
            }
            Outcome::Skipped(why) => write!(f, "skipped\n    {}", indented(why)),
            Outcome::Failed(why) => write!(f, "FAILED\n    {}", indented(why)),
        }
    }
}

fn indented(text: &str) -> String {
    text.trim_end().replace('\n', "\n    ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_does_something_else_fails_the_run() {
        let expected = Maker::Connect.expected();
        let other = Steps {
            refreshes: false,
            ..expected
        };
        let mut report = Report::default();
        report.add(Row::of(Maker::Connect, Ok([expected; 3])));
        assert!(report.result().is_ok());
        report.add(Row::of(Maker::Connect, Ok([expected, other, expected])));
        assert!(report.result().is_err());
        assert!(report.to_string().contains("got Steps"), "{report}");
    }

    #[test]
    fn a_run_that_skips_every_client_fails() {
        let mut report = Report::default();
        report.add(Row::skipped(Maker::Rmcp, &anyhow::anyhow!("no cargo")));
        assert!(report.result().is_err());
        assert!(report.to_string().contains("no cargo"), "{report}");
    }
}

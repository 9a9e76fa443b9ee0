//! The table at the end of a run.

use std::fmt;

use anyhow::ensure;

use super::compare::Comparison;

/// The maximum number of printed findings per reader.
const MAX_PRINTED: usize = 12;

/// The result of one reader.
pub(super) enum Row {
    Compared(Comparison),
    /// Not available, with the reason.
    Skipped(String),
}

/// All readers.
#[derive(Default)]
pub(super) struct Report(Vec<(&'static str, Row)>);

impl Report {
    pub(super) fn add(&mut self, name: &'static str, row: Row) {
        self.0.push((name, row));
    }

    /// Checks that messages were compared, and no difference was found. Fails if a reader read a
    /// message differently, or received none, or if all readers were skipped.
    pub(super) fn result(&self) -> anyhow::Result<()> {
        let compared = || {
            self.0.iter().filter_map(|(name, row)| match row {
                Row::Compared(comparison) => Some((name, comparison)),
                Row::Skipped(_) => None,
            })
        };
        ensure!(compared().next().is_some(), "no reader is available");
        for (name, comparison) in compared() {
            ensure!(comparison.seen > 0, "{name} saw no message at all");
        }
        let differing: usize = compared().map(|(_, comparison)| comparison.differing).sum();
        ensure!(
            differing == 0,
            "{differing} messages reach a reader differently from what was checked and audited"
        );
        Ok(())
    }

    pub(super) fn findings(&self) -> String {
        let findings = self.0.iter().flat_map(|(name, row)| match row {
            Row::Compared(comparison) => comparison
                .findings
                .iter()
                .map(|it| format!("{name}: {it}\n"))
                .collect(),
            Row::Skipped(_) => Vec::new(),
        });
        findings.collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, row) in &self.0 {
            let Row::Compared(comparison) = row else {
                continue;
            };
            for finding in comparison.findings.iter().take(MAX_PRINTED) {
                writeln!(f, "{name}: {finding}")?;
            }
            if comparison.findings.len() > MAX_PRINTED {
                writeln!(
                    f,
                    "{name}: {} more",
                    comparison.findings.len() - MAX_PRINTED
                )?;
            }
        }
        writeln!(
            f,
            "{:<12}{:>8}{:>9}{:>8}{:>8}{:>11}",
            "reader", "sent", "refused", "seen", "unread", "differing"
        )?;
        for (name, row) in &self.0 {
            match row {
                Row::Compared(Comparison {
                    sent,
                    refused,
                    seen,
                    unread,
                    differing,
                    ..
                }) => {
                    writeln!(
                        f,
                        "{name:<12}{sent:>8}{refused:>9}{seen:>8}{unread:>8}{differing:>11}"
                    )?;
                }
                Row::Skipped(why) => writeln!(f, "{name:<12} skipped: {why}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skipped_reader_is_shown_and_never_passes_and_a_blind_one_fails() {
        let mut report = Report::default();
        report.add("go", Row::Skipped("go is not here".to_owned()));
        assert!(report.to_string().contains("skipped: go is not here"));
        assert!(report.result().is_err());
        report.add(
            "serde_json",
            Row::Compared(Comparison {
                sent: 3,
                seen: 3,
                ..Comparison::default()
            }),
        );
        assert!(report.result().is_ok());
        report.add(
            "aiohttp",
            Row::Compared(Comparison {
                sent: 3,
                refused: 3,
                ..Comparison::default()
            }),
        );
        assert!(report.result().is_err());
    }

    #[test]
    fn a_difference_fails() {
        let mut report = Report::default();
        let findings = vec!["a finding".to_owned()];
        let comparison = Comparison {
            sent: 1,
            seen: 1,
            differing: 1,
            findings,
            ..Comparison::default()
        };
        report.add("aiohttp", Row::Compared(comparison));
        assert!(report.to_string().contains("aiohttp: a finding"));
        assert!(report.result().is_err());
    }
}

//! The results of the steps, each with its files or the reason why it was not run.

use std::{fs, path::PathBuf};

use anyhow::ensure;

/// What a step produced.
pub(crate) enum Step {
    /// It succeeded, and wrote these files.
    Built(Vec<PathBuf>),
    /// It succeeded; the text is the result.
    Checked(String),
    /// It cannot run here, for this reason.
    NotRun(String),
}

/// The steps so far.
#[derive(Default)]
pub(crate) struct Report {
    lines: Vec<String>,
    files: Vec<PathBuf>,
    failed: usize,
}

impl Report {
    /// Runs a step, prints and keeps its result, and returns whether it succeeded.
    pub(crate) fn add(&mut self, name: &str, step: impl FnOnce() -> anyhow::Result<Step>) -> bool {
        eprintln!("== {name}");
        let result = step();
        let lines = match &result {
            Ok(Step::Built(files)) => files
                .iter()
                .map(|file| line(name, "built", &described(file)))
                .collect(),
            Ok(Step::Checked(text)) => vec![line(name, "ok", text)],
            Ok(Step::NotRun(reason)) => vec![line(name, "not run", reason)],
            Err(error) => vec![line(name, "FAILED", &format!("{error:#}"))],
        };
        for line in &lines {
            eprintln!("{line}");
        }
        self.lines.extend(lines);
        if let Ok(Step::Built(files)) = &result {
            self.files.extend_from_slice(files);
        }
        self.failed += usize::from(result.is_err());
        matches!(result, Ok(Step::Built(_) | Step::Checked(_)))
    }

    /// Returns the files that the steps so far have written.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.files.clone()
    }

    /// Prints all results. Fails when a step failed.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        println!("{}", self.lines.join("\n"));
        ensure!(self.failed == 0, "{} of the steps failed", self.failed);
        Ok(())
    }
}

fn line(name: &str, result: &str, text: &str) -> String {
    format!("{result:8} {name:36} {text}")
}

/// Returns the name of a file and its size.
fn described(file: &PathBuf) -> String {
    let name = file
        .file_name()
        .unwrap_or(file.as_os_str())
        .to_string_lossy();
    match fs::metadata(file) {
        Ok(metadata) => format!("{name}, {:.1} MB", metadata.len() as f64 / 1e6),
        Err(_) => name.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_fails_if_a_step_fails() {
        let mut report = Report::default();
        assert!(report.add("one", || Ok(Step::Checked("good".to_owned()))));
        assert!(!report.add("two", || Ok(Step::NotRun("no compiler".to_owned()))));
        assert!(report.lines[1].contains("not run"));
        assert!(report.lines[1].contains("no compiler"));
        assert!(report.finish().is_ok());
        let mut report = Report::default();
        assert!(!report.add("three", || anyhow::bail!("broken")));
        assert!(report.finish().is_err());
    }
}

//! Searches the output of the programs for panics and secrets.

use std::{fs, path::Path};

use anyhow::{Context as _, bail, ensure};
use portcullis_testkit::Canaries;

/// The text of every panic of a Rust program.
pub(crate) const PANIC: &str = "panicked at";
/// The maximum number of findings in the error.
const MAX_FINDINGS: usize = 5;

/// Searches all logs in a folder. Fails if a log contains a panic or a canary, or if there is no
/// log. The error does not contain the canary.
pub(crate) fn search(folder: &Path, canaries: &Canaries) -> anyhow::Result<()> {
    let mut findings = Vec::new();
    let mut searched = 0;
    for entry in
        fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?
    {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "log") {
            let text =
                fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            findings.extend(findings_in(
                &name,
                &String::from_utf8_lossy(&text),
                canaries,
            ));
            searched += 1;
        }
    }
    ensure!(searched > 0, "there is no log in {}", folder.display());
    if !findings.is_empty() {
        let count = findings.len();
        findings.truncate(MAX_FINDINGS);
        bail!(
            "expected no panic and no secret, got {count}:\n        {}",
            findings.join("\n        ")
        );
    }
    Ok(())
}

fn findings_in(name: &str, text: &str, canaries: &Canaries) -> Vec<String> {
    let panics = (1..)
        .zip(text.lines())
        .filter(|(_, line)| line.contains(PANIC));
    let panics = panics.map(|(number, line)| format!("{name}:{number}: a panic: {line}"));
    panics
        .chain(
            canaries
                .leaks(text)
                .iter()
                .map(|leak| format!("{name}: {leak}")),
        )
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_and_canaries_are_found_and_canaries_redacted() {
        let mut canaries = Canaries::default();
        canaries.add("session identifier", "abcdefabcdefabcdef");
        let text =
            "listening\nthread 'worker-0' panicked at src/x.rs:1:1\ngot abcdefabcdefabcdef today\n";
        let findings = findings_in("serve.log", text, &canaries);
        assert_eq!(findings.len(), 2);
        assert!(findings[0].starts_with("serve.log:2: a panic"));
        assert_eq!(
            findings[1],
            "serve.log: line 3: session identifier (raw): got [..] today"
        );
        assert!(findings_in("serve.log", "listening\n", &canaries).is_empty());
    }
}

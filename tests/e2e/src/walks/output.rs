//! What the programs wrote, searched for what must not be there.

use std::{fs, path::Path};

use anyhow::{Context as _, bail, ensure};
use portcullis_testkit::Canaries;

/// What every panic of a Rust program says.
pub(super) const PANIC: &str = "panicked at";
/// Finds that are told; one secret in each line is told often enough by a few.
const MAX_TOLD: usize = 5;

/// Searches all logs in a folder.
///
/// # Errors
/// When one has a panic or a canary in it, or there is none. A canary itself is not told.
pub(super) fn search(folder: &Path, canaries: &Canaries) -> anyhow::Result<()> {
    let mut finds = Vec::new();
    let mut searched = 0;
    for entry in fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "log") {
            let text = fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            finds.extend(finds_in(&name, &String::from_utf8_lossy(&text), canaries));
            searched += 1;
        }
    }
    ensure!(searched > 0, "there is no log in {}", folder.display());
    if !finds.is_empty() {
        let count = finds.len();
        finds.truncate(MAX_TOLD);
        bail!("expected no panic and no secret, got {count}:\n        {}", finds.join("\n        "));
    }
    Ok(())
}

fn finds_in(name: &str, text: &str, canaries: &Canaries) -> Vec<String> {
    let panics = (1..).zip(text.lines()).filter(|(_, line)| line.contains(PANIC));
    let panics = panics.map(|(number, line)| format!("{name}:{number}: a panic: {line}"));
    panics.chain(canaries.leaks(text).iter().map(|leak| format!("{name}: {leak}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_and_canaries_are_found_and_canaries_not_told() {
        let mut canaries = Canaries::default();
        canaries.add("session identifier", "abcdefabcdefabcdef");
        let text = "listening\nthread 'worker-0' panicked at src/x.rs:1:1\ngot abcdefabcdefabcdef today\n";
        let finds = finds_in("serve.log", text, &canaries);
        assert_eq!(finds.len(), 2);
        assert!(finds[0].starts_with("serve.log:2: a panic"));
        assert_eq!(finds[1], "serve.log: line 3: session identifier (raw): got [..] today");
        assert!(finds_in("serve.log", "listening\n", &canaries).is_empty());
    }
}

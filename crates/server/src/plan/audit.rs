//! The audit trail: validation of `[audit]`.

use anyhow::{Context as _, ensure};

use crate::{
    audit::{self, AuditSettings, ChainKeys, Rotation},
    config::{Audit, AuditTarget, SecretSource, Span},
};

/// The range of the size of a file, in bytes.
const SMALLEST_FILE: u64 = 64 << 10;
const LARGEST_FILE: u64 = 1 << 40;
/// The range of the age of a file.
const SHORTEST_AGE: Span = Span::secs(60);
const LONGEST_AGE: Span = Span::secs(30 * 24 * 60 * 60);
/// The maximum number of rotated files that can be kept.
const MOST_FILES: usize = 100_000;

/// Validates `[audit]`.
///
/// # Errors
/// Fails when a value is out of range, or the file cannot be written.
pub(super) fn plan(configured: &Audit) -> anyhow::Result<AuditSettings> {
    let within = |name: &str, value: usize, low: usize, high: usize| {
        ensure!((low..=high).contains(&value), "audit.{name} = {value} is outside {low} to {high}");
        Ok(())
    };
    within("queue", configured.queue, 64 << 10, 1 << 30)?;
    within("usage_rows", configured.usage_rows, 16, 1_000_000)?;
    let seconds = configured.usage_interval.0.as_secs();
    ensure!(
        configured.usage_interval.0.is_zero() || (1..=24 * 60 * 60).contains(&seconds),
        "audit.usage_interval = \"{}\" is neither within 1s to 24h nor 0s, which reports usage at the end only",
        configured.usage_interval
    );
    let rotation = rotation(configured)?;
    if let AuditTarget::File(file) = &configured.target {
        ensure!(
            !file.as_os_str().is_empty(),
            "audit.target has an empty path; write {{ file = \"/path\" }}, or \"stdout\""
        );
        audit::dry_run(file, rotation.is_on()).context("audit.target")?;
    }
    Ok(AuditSettings {
        target: configured.target.clone(),
        queue: configured.queue,
        usage_interval: configured.usage_interval.0,
        usage_rows: configured.usage_rows,
        rotation,
        keys: configured.key.as_ref().map(keys).transpose().context("audit.key")?,
    })
}

/// Reads the keys of the chain.
///
/// # Errors
/// Fails when the source cannot be read or has no usable key. The message contains no part of a key.
pub(crate) fn keys(source: &SecretSource) -> anyhow::Result<ChainKeys> {
    ChainKeys::parse(source.read()?.secret()).with_context(|| source.to_string())
}

fn rotation(configured: &Audit) -> anyhow::Result<Rotation> {
    let Audit { rotate_size: size, rotate_age, keep, .. } = *configured;
    if let Some(size) = size {
        ensure!(
            (SMALLEST_FILE..=LARGEST_FILE).contains(&size),
            "audit.rotate_size = {size} is outside {SMALLEST_FILE} to {LARGEST_FILE}"
        );
    }
    if let Some(age) = rotate_age {
        ensure!(
            (SHORTEST_AGE..=LONGEST_AGE).contains(&age),
            "audit.rotate_age = \"{age}\" is outside {SHORTEST_AGE} to {LONGEST_AGE}"
        );
    }
    if let Some(keep) = keep {
        ensure!((1..=MOST_FILES).contains(&keep), "audit.keep = {keep} is outside 1 to {MOST_FILES}");
    }
    let rotation = Rotation { size, age: rotate_age.map(|age| age.0), keep };
    ensure!(
        !rotation.is_on() || matches!(configured.target, AuditTarget::File(_)),
        "audit.rotate_size and audit.rotate_age need a file; set audit.target = {{ file = \"/path\" }}"
    );
    ensure!(
        rotation.is_on() || keep.is_none(),
        "audit.keep is the number of rotated files; set audit.rotate_size or audit.rotate_age, too"
    );
    Ok(rotation)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::from_text;

    fn planned(audit: &str) -> Result<AuditSettings, String> {
        let text = format!(
            "base_url = \"http://127.0.0.1:1\"\n[[resource]]\nendpoint = \"/mcp\"\nupstream = \"demo\"\n[audit]\n{audit}"
        );
        plan(&from_text(&text).unwrap().audit.unwrap()).map_err(|error| format!("{error:#}"))
    }

    /// J4: rotation is off by default, and its settings are checked.
    #[test]
    fn rotation_settings_are_checked() {
        const FILE: &str = "target = { file = \"audit.jsonl\" }\n";
        assert_eq!(planned(FILE).unwrap().rotation, Rotation::default());
        let rotation = planned(&format!("{FILE}rotate_size = 65536\nrotate_age = \"24h\"\nkeep = 7")).unwrap().rotation;
        let age = Some(Duration::from_secs(24 * 60 * 60));
        assert_eq!(rotation, Rotation { size: Some(65536), age, keep: Some(7) });

        for (audit, message) in [
            (&*format!("{FILE}rotate_size = 65535"), "audit.rotate_size = 65535 is outside 65536 to 1099511627776"),
            (&format!("{FILE}rotate_age = \"59s\""), "audit.rotate_age = \"59s\" is outside 1m to 30days"),
            (&format!("{FILE}rotate_age = \"24h\"\nkeep = 0"), "audit.keep = 0 is outside 1 to 100000"),
            (&format!("{FILE}keep = 2"), "set audit.rotate_size or audit.rotate_age, too"),
            ("target = \"stdout\"\nrotate_size = 65536", "need a file"),
            ("target = { file = \"/dev/null\" }\nrotate_size = 65536", "/dev/null is not a regular file"),
        ] {
            let error = planned(audit).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }

    /// J4, J6: the key is read before anything starts, and no part of it is printed.
    #[test]
    fn the_key_is_checked() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let planned = || planned(&format!("target = \"stdout\"\nkey = {{ file = \"{}\" }}", file.path().display()));
        std::fs::write(file.path(), "hunter2\n").unwrap();
        let error = planned().unwrap_err();
        assert!(error.starts_with("audit.key: the file "), "{error}");
        assert!(error.contains("line 1 has fewer than 32"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
        std::fs::write(file.path(), "k".repeat(44)).unwrap();
        assert!(planned().unwrap().keys.is_some());
    }
}

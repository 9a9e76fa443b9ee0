use std::{error::Error as _, fmt::Display, fs, ops::RangeInclusive, path::Path};

use crate::{
    Diagnostic, Diagnostics, KeyPath, SecretError, SecretSource, Span,
    file::{Audit, AuditTarget},
    schema,
};
use anyhow::{anyhow, ensure};
use portcullis_audit::{
    AuditSettings, ChainKeys, FileError, KeysError, Rotation, WithoutChain, check_file,
};

/// The range of the queue, in bytes.
const QUEUE: RangeInclusive<usize> = 64 << 10..=1 << 30;
/// The range of the number of rows of a usage report.
const USAGE_ROWS: RangeInclusive<usize> = 16..=1_000_000;
/// The range of the size of a file, in bytes.
const FILE_SIZE: RangeInclusive<u64> = 64 << 10..=1 << 40;
/// The size at which a file is rotated by default, in bytes: 100 MiB.
const DEFAULT_FILE_SIZE: u64 = 100 << 20;
const FILE_AGE: RangeInclusive<Span> = Span::secs(60)..=Span::secs(30 * 24 * 60 * 60);
/// The range of the interval of usage records. Zero is allowed, too.
const USAGE_INTERVAL: RangeInclusive<Span> = Span::secs(1)..=Span::secs(24 * 60 * 60);
/// The range of the number of rotated files that are kept.
const FILES: RangeInclusive<usize> = 1..=100_000;

/// The validated `[audit]`.
#[derive(Clone, Debug)]
pub struct AuditPlan {
    /// The settings of the trail.
    pub settings: AuditSettings,
    /// The configured keys of the chain. `None`: those of the state directory, if there is one.
    pub keys: Option<ChainKeys>,
}

/// Validates `[audit]`, and reads the key.
///
/// Adds an error for each value out of its range, and if the file cannot be written or the key
/// cannot be used. Returns `None` if there is one.
pub(super) fn plan(configured: &Audit, errors: &mut Diagnostics<'_>) -> Option<AuditPlan> {
    let queue = errors.take("queue", check_range("queue", configured.queue, &QUEUE));
    let usage_rows = errors.take(
        "usage_rows",
        check_range("usage_rows", configured.usage_rows, &USAGE_ROWS),
    );
    let usage_interval = errors.take(
        "usage_interval",
        check_usage_interval(configured.usage_interval),
    );
    let rotation = rotation(configured, errors);
    let target = errors.take("target", check_target(configured));
    let keys = errors.take("key", configured.key.as_ref().map(keys).transpose());
    queue.and(usage_rows).and(usage_interval).and(target)?;
    let mut settings = AuditSettings::new(configured.target.clone().into());
    settings.queue = configured.queue;
    settings.usage_interval = configured.usage_interval.0;
    settings.usage_rows = configured.usage_rows;
    settings.rotation = rotation?;
    settings.without_chain = configured.without_chain.into();
    Some(AuditPlan {
        settings,
        keys: keys?,
    })
}

/// Returns a warning if the file cannot be rotated, and would be by default.
pub(super) fn warning(configured: &Audit) -> Option<Diagnostic> {
    let AuditTarget::File(file) = &configured.target else {
        return None;
    };
    if configured.rotate_size.is_some() || !file.is_file() {
        return None;
    }
    let error = check_file(file, true).err()?;
    let text = format!(
        "{}, so that it grows without limit; let this user write the folder, or set audit.rotate_size = 0 and rotate the file \
         with another program",
        with_cause(&error)
    );
    Some(Diagnostic::new(&KeyPath::parse("audit.target"), &text))
}

/// Checks that the chain has a key, unless the configuration says that there is neither a chain nor
/// a state directory.
pub(super) fn check_key(
    audit: &AuditPlan,
    state_dir: Option<&Path>,
    configured: Option<&Path>,
    errors: &mut Diagnostics<'_>,
) {
    let is_permitted = audit.settings.without_chain == WithoutChain::Write || configured.is_some();
    if audit.keys.is_none() && state_dir.is_none() && !is_permitted {
        let text = "records cannot be chained: there is no key, because this user has no directory for one; set state_dir to a \
                    directory, or audit.key, or audit.without_chain = \"write\" to write records without a chain";
        errors.add("audit.key", text);
    }
}

/// Reads the keys of the chain.
///
/// # Errors
/// Fails when the source cannot be read or has no usable key. The message contains no part of a
/// key.
pub fn keys(source: &SecretSource) -> Result<ChainKeys, AuditKeyError> {
    ChainKeys::parse(source.read()?.secret()).map_err(|error| AuditKeyError::Keys {
        place: source.clone(),
        error,
    })
}

/// Why the keys of the audit trail cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditKeyError {
    /// Their source cannot be read.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// Their source has no usable key.
    #[error("{place}")]
    Keys {
        /// The source.
        place: SecretSource,
        /// The cause.
        #[source]
        error: KeysError,
    },
}

/// Validates the settings of rotation. Adds an error for each invalid one, and returns `None` if
/// there is one.
fn rotation(configured: &Audit, errors: &mut Diagnostics<'_>) -> Option<Rotation> {
    let Audit {
        rotate_size,
        rotate_age,
        keep,
        ..
    } = *configured;
    let size = match rotate_size {
        Some(0) => None,
        Some(size) => Some(size),
        None => can_rotate(&configured.target).then_some(DEFAULT_FILE_SIZE),
    };
    let is_size_valid = errors.take(
        "rotate_size",
        size.map(|size| check_range("rotate_size", size, &FILE_SIZE))
            .transpose(),
    );
    let is_age_valid = errors.take("rotate_age", rotate_age.map(check_age).transpose());
    let is_keep_valid = errors.take("keep", keep.map(check_keep).transpose());
    let rotation = Rotation {
        size,
        age: rotate_age.map(|age| age.0),
        keep,
    };
    if rotation.is_on() && !matches!(configured.target, AuditTarget::File(_)) {
        let text = "audit.rotate_size and audit.rotate_age need a file; set audit.target = { file = \"/path\" }";
        errors.add("target", text);
        return None;
    }
    if keep.is_some() && !rotation.is_on() {
        let text = "audit.keep is the number of rotated files, and none is rotated; set audit.rotate_size or audit.rotate_age, \
                    and a file as the target";
        errors.add("keep", text);
        return None;
    }
    is_size_valid
        .and(is_age_valid)
        .and(is_keep_valid)
        .map(|_| rotation)
}

/// Returns whether the target is a regular file, or will be created as one.
fn can_rotate(target: &AuditTarget) -> bool {
    match target {
        AuditTarget::Stdout => false,
        AuditTarget::File(file) => fs::metadata(file).map_or(true, |found| found.is_file()),
    }
}

/// Checks that the file can be written, and rotated if the configuration says so.
fn check_target(configured: &Audit) -> anyhow::Result<()> {
    let AuditTarget::File(file) = &configured.target else {
        return Ok(());
    };
    ensure!(
        !file.as_os_str().is_empty(),
        "audit.target has an empty path; write {{ file = \"/path\" }}, or \"stdout\""
    );
    let must_rotate =
        configured.rotate_size.is_some_and(|size| size > 0) || configured.rotate_age.is_some();
    check_file(file, must_rotate).map_err(|error| match error {
        FileError::NotRotatable { .. } => {
            anyhow!("{error}; remove audit.rotate_size and audit.rotate_age")
        }
        FileError::FolderNotWritable { .. } => anyhow!(
            "{}; let this user write the folder, or set audit.rotate_size = 0, without audit.rotate_age, and rotate the file with \
             another program",
            with_cause(&error)
        ),
        other => other.into(),
    })
}

fn with_cause(error: &FileError) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

fn check_range<T: PartialOrd + Display>(
    name: &str,
    value: T,
    range: &RangeInclusive<T>,
) -> anyhow::Result<()> {
    let unit = schema::unit(&KeyPath::from_names(["audit", name]));
    ensure!(
        range.contains(&value),
        "audit.{name} = {value} is outside {} to {}{unit}",
        range.start(),
        range.end()
    );
    Ok(())
}

fn check_keep(keep: usize) -> anyhow::Result<()> {
    ensure!(
        keep > 0,
        "audit.keep = 0 keeps no file; leave it out to keep all"
    );
    check_range("keep", keep, &FILES)
}

fn check_usage_interval(interval: Span) -> anyhow::Result<()> {
    ensure!(
        interval.0.is_zero() || USAGE_INTERVAL.contains(&interval),
        "audit.usage_interval = \"{interval}\" is neither within 1s to 24h nor 0s, which reports usage at the end only"
    );
    Ok(())
}

fn check_age(age: Span) -> anyhow::Result<()> {
    let (shortest, longest) = (FILE_AGE.start(), FILE_AGE.end());
    ensure!(
        FILE_AGE.contains(&age),
        "audit.rotate_age = \"{age}\" is outside {shortest} to {longest}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::PermissionsExt as _, time::Duration};

    use super::*;
    use crate::from_text;

    fn audit(lines: &str) -> Audit {
        let text = format!(
            "base_url = \"http://127.0.0.1:1\"\n[[resource]]\nendpoint = \"/mcp\"\nupstream = \"demo\"\n[audit]\n{lines}"
        );
        from_text(&text).unwrap().audit.unwrap()
    }

    fn planned(lines: &str) -> Result<AuditPlan, String> {
        Diagnostics::collect(|errors| plan(&audit(lines), &mut errors.table("audit")))
            .map_err(|errors| Diagnostic::joined(&errors))
    }

    /// J4: a file is rotated by its size by default, and no file is deleted.
    #[test]
    fn files_are_rotated_by_default() {
        let rotation = |audit: &str| planned(audit).unwrap().settings.rotation;
        let by_default = rotation("target = { file = \"audit.jsonl\" }");
        assert_eq!(by_default.size, Some(DEFAULT_FILE_SIZE));
        assert_eq!((by_default.age, by_default.keep), (None, None));
        let kept = rotation("target = { file = \"audit.jsonl\" }\nkeep = 2");
        assert_eq!((kept.size, kept.keep), (Some(DEFAULT_FILE_SIZE), Some(2)));
        for never in [
            "target = \"stdout\"",
            "target = { file = \"/dev/null\" }",
            "target = { file = \"audit.jsonl\" }\nrotate_size = 0",
        ] {
            assert_eq!(rotation(never), Rotation::default(), "{never}");
        }
    }

    /// J4, J9: a file whose folder cannot be written is not accepted if it must be rotated, and
    /// causes a warning if it would be rotated by default.
    #[test]
    fn files_that_cannot_be_rotated_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.jsonl");
        fs::write(&file, "").unwrap();
        let target = format!("target = {{ file = {file:?} }}\n");
        let found = |settings: &str| {
            let lines = format!("{target}{settings}");
            let warning = warning(&audit(&lines)).map(|warning| warning.text);
            (planned(&lines).err(), warning)
        };
        assert_eq!(found("rotate_age = \"24h\""), (None, None));
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o500)).unwrap();
        if fs::write(folder.path().join("probe"), "").is_ok() {
            // For root, every folder can be written.
            return;
        }
        assert_eq!(found("rotate_size = 0"), (None, None));
        let (error, by_default) = found("");
        assert_eq!(error, None);
        let by_default = by_default.unwrap();
        assert!(by_default.starts_with("audit.target: "), "{by_default}");
        assert!(
            by_default.contains("grows without limit; let"),
            "{by_default}"
        );
        for explicit in ["rotate_size = 65536", "rotate_age = \"24h\""] {
            let error = found(explicit).0.unwrap();
            assert!(
                error.contains("cannot be written: Permission denied"),
                "{error}"
            );
            assert!(
                error.contains("; let this user write the folder"),
                "{error}"
            );
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    }

    /// J4: the settings of rotation are checked.
    #[test]
    fn rotation_settings_are_checked() {
        const FILE: &str = "target = { file = \"audit.jsonl\" }\n";
        let rotation = planned(&format!(
            "{FILE}rotate_size = 65536\nrotate_age = \"24h\"\nkeep = 7"
        ))
        .unwrap()
        .settings
        .rotation;
        let age = Some(Duration::from_secs(24 * 60 * 60));
        assert_eq!(
            rotation,
            Rotation {
                size: Some(65536),
                age,
                keep: Some(7)
            }
        );

        for (audit, message) in [
            (
                &*format!("{FILE}rotate_size = 65535"),
                "audit.rotate_size = 65535 is outside 65536 to 1099511627776 bytes",
            ),
            (
                &format!("{FILE}rotate_age = \"59s\""),
                "audit.rotate_age = \"59s\" is outside 1m to 30days",
            ),
            (
                &format!("{FILE}rotate_age = \"30days 1ns\""),
                "is outside 1m to 30days",
            ),
            (
                &format!("{FILE}rotate_age = \"24h\"\nkeep = 0"),
                "audit.keep = 0 keeps no file; leave it out to keep all",
            ),
            (
                &format!("{FILE}rotate_size = 0\nkeep = 2"),
                "none is rotated; set audit.rotate_size or audit.rotate_age",
            ),
            ("target = \"stdout\"\nrotate_size = 65536", "need a file"),
            (
                "target = { file = \"/dev/null\" }\nrotate_size = 65536",
                "/dev/null is not a regular file",
            ),
        ] {
            let error = planned(audit).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }

    /// J4: the interval of usage records has an exact range, and can be zero.
    #[test]
    fn the_usage_interval_has_a_range() {
        let interval =
            |text: &str| planned(&format!("target = \"stdout\"\nusage_interval = \"{text}\""));
        for inside in ["0s", "1s", "24h"] {
            assert!(interval(inside).is_ok(), "{inside}");
        }
        for outside in ["1ns", "999ms", "24h 1ns"] {
            assert!(
                interval(outside)
                    .unwrap_err()
                    .contains("is neither within 1s to 24h nor 0s"),
                "{outside}"
            );
        }
    }

    /// J9: every invalid value has its error.
    #[test]
    fn all_errors_are_found() {
        let audit = "target = { file = \"/nowhere/audit.jsonl\" }\nqueue = 1\nusage_rows = 0\nusage_interval = \"48h\"\n\
                     rotate_size = 1\nrotate_age = \"1s\"\nkeep = 0\nkey = { env = \"NO_SUCH_KEY\" }";
        let error = planned(audit).unwrap_err();
        for name in [
            "target",
            "queue",
            "usage_rows",
            "usage_interval",
            "rotate_size",
            "rotate_age",
            "keep",
            "key",
        ] {
            assert!(
                error
                    .split(" | ")
                    .any(|error| error.starts_with(&format!("audit.{name}"))),
                "{name}: {error}"
            );
        }
        assert_eq!(error.split(" | ").count(), 8, "{error}");
    }

    /// J4, J6: the key is read before anything starts, and no part of it is printed.
    #[test]
    fn the_key_is_checked() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let planned = || {
            planned(&format!(
                "target = \"stdout\"\nkey = {{ file = \"{}\" }}",
                file.path().display()
            ))
        };
        std::fs::write(file.path(), "hunter2\n").unwrap();
        let error = planned().unwrap_err();
        assert!(error.starts_with("audit.key: the file "), "{error}");
        assert!(error.contains("line 1 has fewer than 32"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
        std::fs::write(file.path(), "k".repeat(44)).unwrap();
        assert!(planned().unwrap().keys.is_some());
    }
}

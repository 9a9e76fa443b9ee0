//! Rotation of the audit file: when it is due, the names of rotated files, and the removal of old
//! ones.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use portcullis_files::directory_of;
use portcullis_metadata::UnixTime;
use portcullis_telemetry::timestamp;

/// The number of names that are tried.
const MAX_TRIES: u64 = 1000;
/// The form of a rotated file's suffix; `0` is any digit.
const SUFFIX: &[u8] = b".00000000T000000.000Z";

/// When the file is rotated, and how many rotated files are kept. The default never rotates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rotation {
    /// The size in bytes at which the file is rotated.
    pub size: Option<u64>,
    /// The age of the first record at which the file is rotated.
    pub age: Option<Duration>,
    /// The number of rotated files that are kept. `None`: all.
    pub keep: Option<usize>,
}

impl Rotation {
    /// Returns whether files are rotated at all.
    pub fn is_on(&self) -> bool {
        self.size.is_some() || self.age.is_some()
    }

    /// Returns how many bytes may be added to a file before it is rotated.
    pub(super) fn bytes_left(&self, length: u64, begun: Option<UnixTime>, now: UnixTime) -> u64 {
        let is_old = self
            .age
            .zip(begun)
            .is_some_and(|(age, begun)| now.saturating_duration_since(begun) >= age);
        match self.size {
            _ if is_old => 0,
            Some(size) => size.saturating_sub(length),
            None => u64::MAX,
        }
    }

    /// Renames a file to a name that sorts after those of earlier times, and returns it. Fails when
    /// the file cannot be renamed, or no name is free.
    pub(super) fn rename(&self, path: &Path, now: UnixTime) -> io::Result<PathBuf> {
        for offset in 0..MAX_TRIES {
            let rotated = rotated_name(path, now.saturating_add(Duration::from_millis(offset)));
            // Only this thread makes such names.
            if !rotated.try_exists()? {
                return fs::rename(path, &rotated).map(|()| rotated);
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Removes the oldest rotated files beyond `keep`. Failures are logged.
    pub(super) fn remove_old(&self, path: &Path) {
        let Some(keep) = self.keep else { return };
        let rotated = rotated_files(path).unwrap_or_else(|error| {
            tracing::error!(audit.file = %path.display(), error = %error, "old audit files cannot be found");
            Vec::new()
        });
        for old in rotated.iter().take(rotated.len().saturating_sub(keep)) {
            match fs::remove_file(old) {
                Ok(()) => {
                    tracing::info!(audit.file = %old.display(), "an old audit file was removed")
                }
                Err(error) => {
                    tracing::error!(audit.file = %old.display(), error = %error, "an old audit file cannot be removed");
                }
            }
        }
    }
}

/// Returns the rotated file of the latest time. Fails when the directory cannot be read.
pub(super) fn newest_rotated(path: &Path) -> io::Result<Option<PathBuf>> {
    Ok(rotated_files(path)?.pop())
}

/// Returns the rotated files of a file, the oldest first.
fn rotated_files(path: &Path) -> io::Result<Vec<PathBuf>> {
    let Some(name) = path.file_name() else {
        return Ok(Vec::new());
    };
    let directory = directory_of(path);
    let mut rotated = Vec::new();
    for entry in fs::read_dir(directory)? {
        let other = entry?.file_name();
        if is_rotated(other.as_encoded_bytes(), name.as_encoded_bytes()) {
            rotated.push(directory.join(other));
        }
    }
    rotated.sort_unstable();
    Ok(rotated)
}

fn is_rotated(other: &[u8], name: &[u8]) -> bool {
    let fits = |(byte, form): (&u8, &u8)| {
        if *form == b'0' {
            byte.is_ascii_digit()
        } else {
            byte == form
        }
    };
    other
        .strip_prefix(name)
        .is_some_and(|suffix| suffix.len() == SUFFIX.len() && suffix.iter().zip(SUFFIX).all(fits))
}

/// Returns the name with a time, such as `audit.jsonl.20270115T080000.000Z`.
fn rotated_name(path: &Path, time: UnixTime) -> PathBuf {
    let time = timestamp(time).to_string().replace(['-', ':'], "");
    let mut name = OsString::from(path);
    name.push(format!(".{time}"));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixTime = UnixTime::from_secs(1_800_000_000);

    /// J4: a file is rotated when it has the size or the age.
    #[test]
    fn size_and_age_decide() {
        let rotation = Rotation {
            size: Some(100),
            age: Some(Duration::from_secs(60)),
            keep: None,
        };
        let begun = |seconds: u64| Some(UnixTime::from_secs(1_800_000_000 - seconds));
        for (length, begun, left) in [
            (0, None, 100),
            (40, begun(59), 60),
            (100, begun(0), 0),
            (500, None, 0),
            (1, begun(60), 0),
        ] {
            assert_eq!(
                rotation.bytes_left(length, begun, NOW),
                left,
                "{length} {begun:?}"
            );
        }
        assert_eq!(
            Rotation::default().bytes_left(u64::MAX, begun(1_000_000_000), NOW),
            u64::MAX
        );
    }

    /// J4: names sort by time, no file is replaced, and only the newest files and no others are
    /// kept.
    #[test]
    fn rotated_files_are_kept_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let rotation = Rotation {
            keep: Some(2),
            ..Rotation::default()
        };
        for other in [
            "audit.jsonl.1",
            "audit.jsonl.20270115T080000.000Z.gz",
            "other.20270115T080000.000Z",
        ] {
            fs::write(folder.path().join(other), "").unwrap();
        }
        let names: Vec<_> = (0..4)
            .map(|number| {
                fs::write(&path, number.to_string()).unwrap();
                let name = rotation.rename(&path, NOW).unwrap();
                assert!(!path.exists());
                name
            })
            .collect();
        assert_eq!(
            names[0],
            folder.path().join("audit.jsonl.20270115T080000.000Z")
        );
        assert_eq!(rotated_files(&path).unwrap(), names);

        rotation.remove_old(&path);
        assert_eq!(rotated_files(&path).unwrap(), names[2..]);
        assert_eq!(newest_rotated(&path).unwrap(), Some(names[3].clone()));
        assert_eq!(fs::read_to_string(&names[3]).unwrap(), "3");
        assert!(
            newest_rotated(Path::new("/nowhere/audit.jsonl")).is_err(),
            "not the same as no file"
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5);
    }
}

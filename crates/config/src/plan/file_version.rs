//! [`FileVersion`]: whether a file has changed, without reading it.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path, time::SystemTime};

/// What differs if a file was written or replaced. It is the same if the file is written in place
/// with the same length and the same modification time: within the resolution of the file system's
/// clock, or because the time is set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileVersion {
    modified: SystemTime,
    length: u64,
    inode: u64,
}

impl FileVersion {
    /// Returns the present version of a file. `None` if its metadata cannot be read.
    pub fn of(file: &Path) -> Option<Self> {
        let metadata = fs::metadata(file).ok()?;
        Some(Self {
            modified: metadata.modified().ok()?,
            length: metadata.len(),
            inode: metadata.ino(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// J10: a file has another version if only its length or only its time differs, or if another
    /// file replaces it.
    #[test]
    fn each_change_is_another_version() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a"), folder.path().join("b"));
        let write_at = |path: &Path, text: &str, modified: SystemTime| {
            fs::write(path, text).unwrap();
            fs::File::options()
                .write(true)
                .open(path)
                .unwrap()
                .set_modified(modified)
                .unwrap();
        };
        let write = |path: &Path, text: &str| write_at(path, text, SystemTime::UNIX_EPOCH);
        assert_eq!(FileVersion::of(&path), None);
        write(&path, "1");
        let first = FileVersion::of(&path);
        assert!(first.is_some());
        write(&path, "1");
        assert_eq!(FileVersion::of(&path), first, "the same file");
        write_at(
            &path,
            "1",
            SystemTime::UNIX_EPOCH + Duration::from_nanos(1_000),
        );
        assert_ne!(FileVersion::of(&path), first, "another time");
        write(&path, "12");
        assert_ne!(FileVersion::of(&path), first, "another length");
        write(&other, "2");
        fs::rename(&other, &path).unwrap();
        assert_ne!(FileVersion::of(&path), first, "another file");
    }
}

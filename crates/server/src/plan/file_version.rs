//! [`FileVersion`]: whether a file has changed, without reading it.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path, time::SystemTime};

/// What differs if a file was written or replaced. It can be the same if a file of the same length is written twice within
/// the resolution of the file system's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileVersion {
    modified: SystemTime,
    length: u64,
    inode: u64,
}

impl FileVersion {
    /// Returns the present version of a file. `None` if its metadata cannot be read.
    pub(crate) fn of(file: &Path) -> Option<Self> {
        let metadata = fs::metadata(file).ok()?;
        Some(Self { modified: metadata.modified().ok()?, length: metadata.len(), inode: metadata.ino() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J10: a file of the same time has another version if its length differs, or if another file replaces it.
    #[test]
    fn files_of_the_same_time_are_distinguished() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a"), folder.path().join("b"));
        let write = |path: &Path, text: &str| {
            fs::write(path, text).unwrap();
            fs::File::options().write(true).open(path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        };
        assert_eq!(FileVersion::of(&path), None);
        write(&path, "1");
        let first = FileVersion::of(&path);
        assert!(first.is_some());
        write(&path, "1");
        assert_eq!(FileVersion::of(&path), first, "the same file");
        write(&path, "12");
        assert_ne!(FileVersion::of(&path), first, "another length");
        write(&other, "2");
        fs::rename(&other, &path).unwrap();
        assert_ne!(FileVersion::of(&path), first, "another file");
    }
}

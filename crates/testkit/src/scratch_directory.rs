//! [`ScratchDirectory`]: a temporary directory path.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicUsize, Ordering},
};

/// A unique path for a temporary directory. The directory does not exist at first, unless it is
/// [`created`](Self::created); dropping the value removes it.
#[derive(Debug)]
pub struct ScratchDirectory(PathBuf);

impl ScratchDirectory {
    /// Reserves a path in the system's temporary directory.
    #[expect(clippy::new_without_default, reason = "each value is a new path")]
    pub fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("portcullis-test-{}-{number}", process::id()));
        // A killed test process with the same identifier may have left it.
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    /// Creates a directory that only this user can access.
    ///
    /// # Panics
    /// Panics if it cannot be created.
    pub fn created() -> Self {
        let scratch = Self::new();
        create_private(&scratch.0).expect("the system's temporary directory");
        scratch
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Creates a directory that only this user can access. The credential store rejects others.
#[cfg(unix)]
fn create_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

#[cfg(not(unix))]
fn create_private(path: &Path) -> std::io::Result<()> {
    fs::create_dir_all(path)
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

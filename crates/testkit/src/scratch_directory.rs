//! [`ScratchDirectory`]: a temporary directory path.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicUsize, Ordering},
};

/// A unique path for a temporary directory. The directory does not exist at first, unless it is [`created`](Self::created);
/// dropping the value removes it.
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

    /// Creates a directory.
    ///
    /// # Panics
    /// Panics if it cannot be created.
    pub fn created() -> Self {
        let scratch = Self::new();
        fs::create_dir_all(&scratch.0).expect("the system's temporary directory");
        scratch
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

//! [`Scratch`]: a temporary file or folder.

use std::{
    fs::{self, DirBuilder},
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

/// A temporary path. Its file or folder is removed when this is dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Returns a path without creating a file or folder.
    pub fn path_for(name: &str) -> Self {
        static COUNTER: AtomicUsize = AtomicUsize::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        Self(
            std::env::temp_dir().join(format!("portcullis-{}-{number}-{name}", std::process::id())),
        )
    }

    /// Creates a file with this text that only its owner can read, because it may be a secret.
    ///
    /// # Panics
    /// Panics if the file cannot be written.
    pub fn file(name: &str, text: &str) -> Self {
        let scratch = Self::path_for(name);
        fs::write(&scratch.0, text).expect("a temporary file can be written");
        fs::set_permissions(&scratch.0, fs::Permissions::from_mode(0o600))
            .expect("the file is mine");
        scratch
    }

    /// Creates an empty folder that only its owner can use, because it may be a credential store.
    ///
    /// # Panics
    /// Panics if the folder cannot be created.
    pub fn folder(name: &str) -> Self {
        let scratch = Self::path_for(name);
        DirBuilder::new()
            .mode(0o700)
            .create(&scratch.0)
            .expect("a temporary folder can be created");
        scratch
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path as a string, for arguments and configurations.
    ///
    /// # Panics
    /// Panics if the path is not UTF-8.
    pub fn as_str(&self) -> &str {
        self.0.to_str().expect("the path is UTF-8")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // There may be nothing at the path.
        let _ = fs::remove_file(&self.0).or_else(|_| fs::remove_dir_all(&self.0));
    }
}

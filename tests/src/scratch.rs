use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

/// A file or a directory of a scenario's own. It is removed when dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A path that nothing stands at.
    pub fn path_for(name: &str) -> Self {
        static COUNTER: AtomicUsize = AtomicUsize::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("portcullis-{}-{number}-{name}", std::process::id())))
    }

    /// A file with this text.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn file(name: &str, text: &str) -> Self {
        let scratch = Self::path_for(name);
        std::fs::write(&scratch.0, text).expect("a temporary file can be written");
        scratch
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Where it is, as an argument of a program.
    ///
    /// # Panics
    /// When the path is not UTF-8.
    pub fn as_str(&self) -> &str {
        self.0.to_str().expect("a path in UTF-8")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A path that was never written to is fine.
        let _ = std::fs::remove_file(&self.0).or_else(|_| std::fs::remove_dir_all(&self.0));
    }
}

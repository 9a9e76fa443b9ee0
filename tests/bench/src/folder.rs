//! A folder that is gone afterwards.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process,
};

use anyhow::Context as _;

/// A temporary folder of this process. It is removed when dropped.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn create() -> anyhow::Result<Self> {
        let path = env::temp_dir().join(format!("portcullis-bench-{}", process::id()));
        fs::create_dir(&path).with_context(|| format!("{} cannot be made", path.display()))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed stays in the temporary folder, where it harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

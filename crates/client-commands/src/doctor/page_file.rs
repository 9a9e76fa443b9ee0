//! [`PageFile`]: the file of `doctor --html`.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail, ensure};
use portcullis_files::{ReplaceError, directory_of};

/// The mode of a new file: everyone can read it.
const PUBLIC: u32 = 0o644;

/// A file to create or replace.
pub(super) struct PageFile<'a> {
    path: &'a Path,
    /// In the same directory. No lock excludes other processes, so its name has the process
    /// identifier.
    temporary: PathBuf,
    /// That of the former file, if there is one.
    mode: u32,
}

impl<'a> PageFile<'a> {
    /// Fails if the folder does not exist, or if a link, a folder or a device is at the path.
    pub(super) fn open(path: &'a Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let folder = directory_of(path);
        ensure!(
            folder.is_dir(),
            "{} is not a folder; create it, or give another file with --html",
            folder.display()
        );
        let Some(name) = path.file_name() else {
            bail!("{shown:?} is not a file; give a file with --html")
        };
        let mode = match fs::symlink_metadata(path) {
            Ok(former) if former.is_file() => former.mode() & 0o777,
            Ok(_) => bail!("{shown} is not a regular file; give another file with --html"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => PUBLIC,
            Err(error) => {
                return Err(error).with_context(|| {
                    format!("{shown} cannot be written; give another file with --html")
                });
            }
        };
        let mut temporary = name.to_owned();
        temporary.push(format!(".portcullis-{}.tmp", std::process::id()));
        Ok(Self {
            path,
            temporary: path.with_file_name(temporary),
            mode,
        })
    }

    /// Writes the file. Fails if it cannot be written: the former one is then unchanged.
    pub(super) fn write(&self, html: &str) -> anyhow::Result<()> {
        let written =
            portcullis_files::replace(self.path, &self.temporary, html.as_bytes(), self.mode);
        match written {
            // The page can be made again, so that it need not survive a power failure.
            Ok(()) | Err(ReplaceError::NotDurable(_)) => Ok(()),
            Err(error) => Err(error).with_context(|| {
                format!(
                    "{} cannot be written; make its folder writable, or give another file with --html",
                    self.path.display()
                )
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_file_is_created_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chain.html");
        PageFile::open(&path).unwrap().write("first").unwrap();
        assert_eq!(mode(&path), PUBLIC);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        PageFile::open(&path).unwrap().write("second").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(mode(&path), 0o600, "the mode stays");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// J9: what is not a regular file is neither replaced nor written through.
    #[test]
    fn other_files_are_rejected_with_the_fix() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        symlink("/dev/null", &link).unwrap();
        for path in [
            folder.path(),
            &*link,
            Path::new("/dev/null"),
            &folder.path().join("none/chain.html"),
            Path::new(""),
            Path::new(".."),
        ] {
            let error = PageFile::open(path).err().unwrap().to_string();
            assert!(error.contains("--html"), "{}: {error}", path.display());
        }
        assert!(link.is_symlink());
    }

    /// J9: a failing write names the path and the fix, and keeps the former file.
    #[test]
    fn a_failed_write_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chain.html");
        let file = PageFile::open(&path).unwrap();
        // What appears meanwhile at the path cannot be replaced.
        fs::create_dir_all(path.join("not empty")).unwrap();
        let error = format!("{:#}", file.write("page").unwrap_err());
        assert!(
            error.contains("chain.html cannot be written") && error.contains("--html"),
            "{error}"
        );
        assert!(path.join("not empty").exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

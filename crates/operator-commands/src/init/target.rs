//! [`Target`]: the file to write.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use portcullis_files::{ConfigFile, create_public, directory_of};
use portcullis_metadata::EscapedText;
use portcullis_terminal::print;

use super::questions::Questions;

/// The file to write, and the one that it replaces.
pub(super) struct Target {
    path: PathBuf,
    former: Option<ConfigFile>,
}

impl Target {
    /// Returns the target at this path. An existing file is replaced only with `force`, or if the
    /// user agrees. Fails if the folder does not exist, or there is a file that the user does not
    /// want to replace.
    pub(super) fn open(
        path: &Path,
        force: bool,
        questions: Option<&mut Questions>,
    ) -> anyhow::Result<Self> {
        let shown = path.display();
        let folder = directory_of(path);
        ensure!(
            folder.is_dir(),
            "{} is not a folder; create it, or give another file with --config",
            folder.display()
        );
        let former = ConfigFile::read(path).with_context(|| shown.to_string())?;
        if former.is_some() && !force {
            let question = format!(
                "{} exists. Replace it, and keep a backup?",
                EscapedText(&shown.to_string())
            );
            let Some(questions) = questions else {
                bail!("{shown} exists; give --force to replace it, or another file with --config")
            };
            if !questions.confirm(&question)? {
                bail!("{shown} is unchanged; give another file with --config")
            }
        }
        Ok(Self {
            path: path.to_owned(),
            former,
        })
    }

    /// Writes the file. It has the permissions of the one that it replaces, and otherwise everyone
    /// can read it. Fails if the file cannot be written, or has changed meanwhile.
    pub(super) fn write(&self, text: &str) -> anyhow::Result<()> {
        let shown = self.path.display().to_string();
        let backup = match &self.former {
            Some(former) => Some(former.replace(text).with_context(|| shown.clone())?),
            None => {
                create_public(&self.path, text)
                    .with_context(|| format!("{shown} cannot be written"))?;
                None
            }
        };
        print(format_args!("{} is written.", EscapedText(&shown)))?;
        if let Some(backup) = backup {
            let backup = backup.display().to_string();
            print(format_args!("The former file is {}.", EscapedText(&backup)))?;
        }
        Ok(())
    }

    /// The option `--config` for other commands, with a space before it. Empty for the default
    /// file.
    pub(super) fn option(&self) -> String {
        let path = self.path.display().to_string();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        if path == "portcullis.toml" {
            String::new()
        } else if path.chars().all(is_plain) {
            format!(" --config {path}")
        } else {
            format!(" --config '{}'", EscapedText(&path.replace('\'', r"'\''")))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::{super::questions::tests::answered, *};

    #[test]
    fn a_new_file_can_be_read_by_everyone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("portcullis.toml");
        let target = Target::open(&path, false, None).unwrap();
        target.write("a = 1\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a = 1\n");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o644
        );
        // A file that appeared meanwhile is kept.
        let late = target.write("a = 2\n").unwrap_err();
        assert!(
            format!("{late:#}").contains("cannot be written"),
            "{late:#}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "a = 1\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_is_replaced_only_on_request() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a file.toml");
        fs::write(&path, "old").unwrap();
        let rejected = Target::open(&path, false, None).err().unwrap().to_string();
        assert!(rejected.contains("--force"), "{rejected}");
        let (mut questions, _) = answered("n\ny\n");
        assert!(Target::open(&path, false, Some(&mut questions)).is_err());
        let target = Target::open(&path, false, Some(&mut questions)).unwrap();
        target.write("new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(
            fs::read_to_string(folder.path().join("a file.toml.backup-1")).unwrap(),
            "old"
        );
        assert!(
            target.option().starts_with(" --config '"),
            "{}",
            target.option()
        );
        assert!(Target::open(&folder.path().join("none/x.toml"), true, None).is_err());
    }
}

use std::{
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use portcullis_files::{ConfigFile, create_private};
use portcullis_metadata::Secret;

use crate::mcp_remote::session::SessionId;

/// The file to which a client secret moves from a configuration.
#[derive(Debug)]
pub(super) struct SecretFile {
    pub(super) path: PathBuf,
    secret: Secret,
    is_there: bool,
}

/// The maximum number of clients of one server.
const MAX_FILES: usize = 16;

/// Chooses a file in the store: the one with this secret, or a new one.
pub(super) fn choose(
    store: &Path,
    session: &SessionId,
    secret: Secret,
) -> anyhow::Result<SecretFile> {
    for number in 1..=MAX_FILES {
        let path = store.join(format!("client-secret-{}-{number}", session.as_str()));
        let found = ConfigFile::read(&path).with_context(|| path.display().to_string())?;
        let is_there = found.is_some();
        if found.is_none_or(|file| file.text.trim_end() == secret.secret()) {
            return Ok(SecretFile {
                path,
                secret,
                is_there,
            });
        }
    }
    bail!(
        "there are {MAX_FILES} client secrets for this server in {}; remove some",
        store.display()
    )
}

impl SecretFile {
    /// Writes the file, which only its owner can read.
    pub(super) fn write(&self) -> anyhow::Result<()> {
        if self.is_there {
            return Ok(());
        }
        let directory = self.path.parent().unwrap_or(Path::new("."));
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory);
        made.with_context(|| format!("{} cannot be created", directory.display()))?;
        match create_private(&self.path, self.secret.secret().as_bytes()) {
            // Another server of the same configuration uses the same secret.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                let found = ConfigFile::read(&self.path)?;
                match found.is_some_and(|file| file.text.trim_end() == self.secret.secret()) {
                    true => Ok(()),
                    false => bail!(
                        "{} was created meanwhile; run the command again",
                        self.path.display()
                    ),
                }
            }
            written => {
                written.with_context(|| format!("{} cannot be written", self.path.display()))
            }
        }
    }
}

//! [`StateDirectory`]: a locked directory with generated keys.

use std::{
    fs::{self, DirBuilder, File, Permissions, TryLockError},
    io::{self, Read as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use portcullis_files::{LockedFile, PRIVATE, ReplaceError, private_options};
use portcullis_session::{SessionKey, SessionKeys};
use zeroize::Zeroizing;

use crate::{
    error::StateError,
    file_names::{self, KEYS, LOCK, USES},
};

/// The maximum size of a file with keys, in bytes.
const MAX_KEYS: usize = 16 * 1024;

/// A directory that this process alone uses, until the value and its clones are dropped.
#[derive(Clone, Debug)]
pub struct StateDirectory {
    path: PathBuf,
    _lock: Arc<LockedFile>,
}

impl StateDirectory {
    /// The name of the file of [`audit_key`](Self::audit_key).
    pub const AUDIT_KEY: &'static str = "audit-key";
    /// The name of the file with the keys of the broker.
    pub const BROKER_KEYS: &'static str = "broker-keys";
    /// The name of the file of [`FileRecords`](crate::records::FileRecords).
    pub const RECORDS: &'static str = file_names::RECORDS;

    /// Opens a directory and locks it. A missing one is created. One that other users can access
    /// gets mode 0700.
    ///
    /// # Errors
    /// Fails if the directory cannot be created or written, belongs to another user, or is in use
    /// by another process.
    pub fn open(path: &Path) -> Result<Self, StateError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|error| match error.kind() {
                // As `examine` says it.
                io::ErrorKind::AlreadyExists => io::ErrorKind::NotADirectory.into(),
                _ => error,
            })
            .map_err(StateError::io(path))?;
        let metadata = fs::metadata(path).map_err(StateError::io(path))?;
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(StateError::Owner {
                path: path.to_owned(),
            });
        }
        if metadata.mode() & 0o077 != 0 {
            fs::set_permissions(path, Permissions::from_mode(0o700))
                .map_err(StateError::io(path))?;
        }
        let lock_path = path.join(LOCK);
        let lock = private_options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&lock_path);
        let lock = lock.map_err(StateError::io(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                path: path.to_owned(),
                _lock: Arc::new(LockedFile::new(lock)),
            }),
            Err(TryLockError::WouldBlock) => Err(StateError::InUse {
                path: path.to_owned(),
            }),
            Err(TryLockError::Error(error)) => Err(StateError::io(&lock_path)(error)),
        }
    }

    /// Locks an existing directory, and changes nothing. `None` if another process uses it. Without
    /// the file of the lock, no process does.
    pub(crate) fn lock_unchanged(path: &Path) -> io::Result<Option<Self>> {
        let lock = match private_options().write(true).open(path.join(LOCK)) {
            Ok(lock) => match lock.try_lock() {
                Ok(()) => lock,
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => File::open(path)?,
            Err(error) => return Err(error),
        };
        Ok(Some(Self {
            path: path.to_owned(),
            _lock: Arc::new(LockedFile::new(lock)),
        }))
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether a process has kept sessions in this directory before.
    pub fn was_used(&self) -> bool {
        [KEYS, USES]
            .iter()
            .any(|name| self.path.join(name).exists())
    }

    /// Returns the session keys. The first call generates one and stores it.
    ///
    /// # Errors
    /// Fails if the file cannot be read or written, is too large, if other users can access it, or
    /// if its keys cannot be used.
    pub fn session_keys(&self) -> Result<SessionKeys, StateError> {
        let (path, text) = self.keys(KEYS)?;
        parse_keys(path, &text)
    }

    /// Returns the content of the file [`AUDIT_KEY`](Self::AUDIT_KEY): the secret for the chain of
    /// an audit trail, and secrets that an operator added, one per line. The first call generates
    /// one and stores it. Does not check the secrets.
    ///
    /// # Errors
    /// Fails if the file cannot be read or written, is too large, or if other users can access it.
    pub fn audit_key(&self) -> Result<Zeroizing<String>, StateError> {
        self.keys(Self::AUDIT_KEY).map(|(_, text)| text)
    }

    /// Returns the content of a file with secrets that has this name. `None` if there is no such
    /// file. Does not check the secrets.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is too large, or if other users can access it.
    pub fn secret_file(&self, name: &str) -> Result<Option<Zeroizing<String>>, StateError> {
        read_secret(&self.path.join(name))
    }

    /// Returns the content of a file with secrets that has this name. A missing one is stored with
    /// the secrets of `generate`, which returns `None` if it has no random bytes. The file appears
    /// under its name only when it is complete.
    ///
    /// # Errors
    /// Fails if the file cannot be read or written, is too large, if other users can access it, or
    /// if no secrets are generated.
    pub fn secret_file_or_generate(
        &self,
        name: &str,
        generate: impl FnOnce() -> Option<Zeroizing<String>>,
    ) -> Result<Zeroizing<String>, StateError> {
        if let Some(text) = self.secret_file(name)? {
            return Ok(text);
        }
        let text = generate().ok_or(StateError::NoRandomness)?;
        let path = self.path.join(name);
        self.replace(&path, text.as_bytes())
            .map_err(io::Error::from)
            .map_err(StateError::io(&path))?;
        Ok(text)
    }

    /// Returns the path and the content of a file with secrets. A missing one gets one random
    /// secret.
    fn keys(&self, name: &str) -> Result<(PathBuf, Zeroizing<String>), StateError> {
        let text = self.secret_file_or_generate(name, random_key)?;
        Ok((self.path.join(name), text))
    }

    /// Replaces a file of this directory atomically. The directory is locked, so the temporary file
    /// has one user.
    pub(crate) fn replace(&self, path: &Path, content: &[u8]) -> Result<(), ReplaceError> {
        portcullis_files::replace(path, &path.with_extension("new"), content, PRIVATE)
    }
}

/// Returns one random secret. `None` if the operating system returns no random bytes.
fn random_key() -> Option<Zeroizing<String>> {
    let mut secret = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *secret).ok()?;
    Some(Zeroizing::new(STANDARD.encode(*secret) + "\n"))
}

pub(crate) fn parse_keys(path: PathBuf, text: &str) -> Result<SessionKeys, StateError> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let keys: Result<Vec<_>, _> = lines
        .map(|secret| SessionKey::derive(secret.as_bytes()))
        .collect();
    keys.and_then(SessionKeys::new)
        .map_err(|error| StateError::Keys { path, error })
}

/// Returns the secrets in a file. `None` if there is no such file.
pub(crate) fn read_secret(path: &Path) -> Result<Option<Zeroizing<String>>, StateError> {
    match File::open(path) {
        Ok(file) => read_keys(path, &file).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StateError::io(path)(error)),
    }
}

fn read_keys(path: &Path, file: &File) -> Result<Zeroizing<String>, StateError> {
    let metadata = file.metadata().map_err(StateError::io(path))?;
    if metadata.mode() & 0o077 != 0 {
        return Err(StateError::Exposed {
            path: path.to_owned(),
        });
    }
    // Reserved at once, because a string that grows leaves copies of secrets behind.
    let mut text = Zeroizing::new(String::with_capacity(MAX_KEYS + 1));
    file.take(MAX_KEYS as u64 + 1)
        .read_to_string(&mut text)
        .map_err(StateError::io(path))?;
    if text.len() > MAX_KEYS {
        Err(StateError::TooLarge {
            path: path.to_owned(),
        })
    } else {
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T>(result: Result<T, StateError>) -> Option<&'static str> {
        result.err().map(|error| error.code())
    }

    /// E12: the directory is private, and one process at a time uses it.
    #[test]
    fn a_directory_is_private_and_locked() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/b");
        let directory = StateDirectory::open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        assert_eq!(code(StateDirectory::open(&path)), Some("state.in_use"));
        drop(directory);
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        drop(StateDirectory::open(&path).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        assert_eq!(
            code(StateDirectory::open(&path.join("lock"))),
            Some("state.io"),
            "a file is not a directory"
        );
        let error = StateDirectory::open(&path.join("lock")).err().unwrap();
        assert!(error.to_string().contains("not a directory"), "{error}");
    }

    /// E12: the generated key is the same after a restart. It is not readable for others.
    #[test]
    fn keys_are_kept() {
        let parent = tempfile::tempdir().unwrap();
        let secret = |directory: &StateDirectory| {
            directory.session_keys().unwrap();
            fs::read_to_string(directory.path().join(KEYS)).unwrap()
        };
        let first = secret(&StateDirectory::open(parent.path()).unwrap());
        let directory = StateDirectory::open(parent.path()).unwrap();
        assert_eq!(secret(&directory), first);
        let file = directory.path().join(KEYS);
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        assert_eq!(code(directory.session_keys()), Some("state.exposed"));
    }

    /// J4: the key of the audit trail is generated once. It is not that of the sessions, and not
    /// readable for others.
    #[test]
    fn the_audit_key_is_kept() {
        let parent = tempfile::tempdir().unwrap();
        let directory = StateDirectory::open(parent.path()).unwrap();
        let key = directory.audit_key().unwrap();
        assert_eq!(key.trim().len(), 44);
        assert_eq!(directory.audit_key().unwrap(), key);
        directory.session_keys().unwrap();
        assert_ne!(fs::read_to_string(parent.path().join(KEYS)).unwrap(), *key);
        let file = parent.path().join(StateDirectory::AUDIT_KEY);
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        assert_eq!(code(directory.audit_key()), Some("state.exposed"));
    }

    /// Keys of the broker are generated once, and only on request. Others cannot read them.
    #[test]
    fn other_secrets_are_generated_once() {
        let parent = tempfile::tempdir().unwrap();
        let directory = StateDirectory::open(parent.path()).unwrap();
        let name = StateDirectory::BROKER_KEYS;
        assert_eq!(directory.secret_file(name).unwrap(), None);
        assert_eq!(
            code(directory.secret_file_or_generate(name, || None)),
            Some("state.no_randomness")
        );
        assert_eq!(directory.secret_file(name).unwrap(), None);
        let generated = |text: &str| {
            let text = Zeroizing::new(text.to_owned());
            directory.secret_file_or_generate(name, || Some(text))
        };
        assert_eq!(*generated("first").unwrap(), "first");
        assert_eq!(*generated("second").unwrap(), "first");
        let file = parent.path().join(name);
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        assert_eq!(code(generated("third")), Some("state.exposed"));
    }

    /// E12: an operator can add a key. Unusable keys are errors, never replaced by new ones.
    #[test]
    fn unusable_keys_are_errors() {
        let parent = tempfile::tempdir().unwrap();
        let directory = StateDirectory::open(parent.path()).unwrap();
        directory.session_keys().unwrap();
        let path = directory.path().join(KEYS);
        let write = |text: &str| fs::write(&path, text).unwrap();
        write(&format!("{}\n\n  {}\n", "a".repeat(44), "b".repeat(44)));
        assert_eq!(code(directory.session_keys()), None);
        for text in [
            "",
            "\n",
            "short\n",
            &format!("{0}\n{0}\n", "a".repeat(44)),
            &"a\n".repeat(MAX_KEYS / 2),
        ] {
            write(text);
            assert_eq!(code(directory.session_keys()), Some("state.keys"), "{text}");
        }
        write(&"a".repeat(MAX_KEYS + 1));
        assert_eq!(code(directory.session_keys()), Some("state.too_large"));
    }
}

//! The store in a directory.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::time::{Instant, sleep};
use zeroize::Zeroizing;

use super::{Name, StoreError};

/// Entries as files of one directory.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// The error with which every write fails.
    #[cfg(test)]
    pub(super) refusal: std::sync::Mutex<Option<io::ErrorKind>>,
}

const MAX_ENTRY: usize = 256 * 1024;
const MAX_ENTRIES: usize = 1000;
/// By how much the replacement of an entry can be larger.
const MARGIN: usize = 32 * 1024;
const ENTRY: &str = ".json";
const QUARANTINED: &str = ".corrupted-";
/// The interval between attempts to lock a file. The operating system does not notify waiting processes.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(25);

impl Directory {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            #[cfg(test)]
            refusal: std::sync::Mutex::default(),
        }
    }

    pub(super) fn names(&self, prefix: &str) -> Result<Vec<Name>, StoreError> {
        let listed = match fs::read_dir(&self.path) {
            Ok(listed) => listed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(&self.path, &error)),
        };
        let names = listed.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let names = names.filter_map(|name| name.strip_suffix(ENTRY).map(str::to_owned));
        let mut names: Vec<_> = names.filter(|name| name.starts_with(prefix)).take(MAX_ENTRIES).map(Name).collect();
        names.sort_unstable();
        Ok(names)
    }

    pub(super) fn read(&self, name: &Name) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
        let path = self.entry(name);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&path, &error)),
        };
        if is_exposed(&file).map_err(|error| failed(&path, &error))? {
            return Err(StoreError::Exposed { path });
        }
        // Allocate once: a buffer that grows leaves copies of secrets behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_ENTRY));
        let limit = u64::try_from(MAX_ENTRY).unwrap_or(u64::MAX);
        file.take(limit).read_to_end(&mut bytes).map_err(|error| failed(&path, &error))?;
        Ok(Some(bytes))
    }

    pub(super) fn write(&self, name: &Name, bytes: &[u8]) -> Result<(), StoreError> {
        if bytes.len() > MAX_ENTRY {
            return Err(StoreError::TooLarge);
        }
        let (path, beside) = (self.entry(name), self.file(name, ".tmp"));
        let replace = || {
            self.write_beside(&beside, bytes)?;
            fs::rename(&beside, &path)?;
            // Without this, a power failure can undo the renaming.
            File::open(&self.path).and_then(|directory| directory.sync_all()).or_else(unless_unsupported)
        };
        replace().map_err(|error| not_writable(&path, &error))
    }

    /// Checks that there is space and permission for an entry: writes a somewhat larger file beside it, and removes
    /// that file.
    pub(super) fn check_writable(&self, name: &Name) -> Result<(), StoreError> {
        let (path, beside) = (self.entry(name), self.file(name, ".tmp"));
        let current = fs::metadata(&path).map_or(0, |metadata| metadata.len());
        let size = usize::try_from(current).unwrap_or(MAX_ENTRY).saturating_add(MARGIN).min(MAX_ENTRY);
        make(&self.path)
            .and_then(|()| self.write_beside(&beside, &vec![b' '; size]))
            .and_then(|()| fs::remove_file(&beside))
            .map_err(|error| not_writable(&path, &error))
    }

    /// Writes a temporary file. An incomplete file is removed to free its space.
    fn write_beside(&self, beside: &Path, bytes: &[u8]) -> io::Result<()> {
        // A writer that was killed may have left the file; the lock excludes other writers. If it cannot be removed,
        // the next line fails.
        let _ = fs::remove_file(beside);
        let mut file = private(OpenOptions::new().write(true).create_new(true)).open(beside)?;
        let written = self.refusal().and_then(|()| file.write_all(bytes)).and_then(|()| file.sync_all());
        written.inspect_err(|_| {
            let _ = fs::remove_file(beside);
        })
    }

    /// The error that a test injects.
    #[cfg(test)]
    fn refusal(&self) -> io::Result<()> {
        let refusal = *self.refusal.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        refusal.map_or(Ok(()), |kind| Err(kind.into()))
    }

    #[cfg(not(test))]
    fn refusal(&self) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn remove(&self, name: &Name) -> Result<(), StoreError> {
        let path = self.entry(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&path, &error)),
            _ => Ok(()),
        }
    }

    pub(super) fn quarantine(&self, name: &Name) -> StoreError {
        let path = self.entry(name);
        for number in 1..=MAX_ENTRIES {
            let kept = self.file(name, &format!("{QUARANTINED}{number}"));
            if kept.exists() {
                continue;
            }
            return match fs::rename(&path, &kept) {
                Ok(()) => StoreError::Corrupted { path, kept },
                Err(error) => failed(&path, &error),
            };
        }
        failed(&path, &io::ErrorKind::AlreadyExists.into())
    }

    /// Removes the quarantined files whose names begin with this prefix, and returns their number.
    pub(super) fn remove_quarantined(&self, prefix: &str) -> Result<usize, StoreError> {
        let listed = match fs::read_dir(&self.path) {
            Ok(listed) => listed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(failed(&self.path, &error)),
        };
        let names = listed.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let is_quarantined = |name: &String| name.starts_with(prefix) && name.contains(QUARANTINED);
        let mut removed = 0;
        for path in names.filter(is_quarantined).take(MAX_ENTRIES).map(|name| self.path.join(name)) {
            fs::remove_file(&path).map_err(|error| failed(&path, &error))?;
            removed += 1;
        }
        Ok(removed)
    }

    /// Locks a file beside the entry. It is never removed: two processes could lock a removed file at once.
    pub(super) async fn lock(&self, name: &Name, limit: Duration) -> Result<Box<dyn Send>, StoreError> {
        make(&self.path).map_err(|error| not_writable(&self.path, &error))?;
        let path = self.file(name, ".lock");
        let file = private(OpenOptions::new().write(true).create(true).truncate(false)).open(&path);
        let file = file.map_err(|error| not_writable(&path, &error))?;
        let end = Instant::now() + limit;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Box::new(file)),
                Err(TryLockError::WouldBlock) if Instant::now() < end => sleep(LOCK_RETRY_INTERVAL).await,
                Err(TryLockError::WouldBlock) => return Err(StoreError::Busy { path }),
                Err(TryLockError::Error(error)) => return Err(failed(&path, &error)),
            }
        }
    }

    pub(super) fn entry(&self, name: &Name) -> PathBuf {
        self.file(name, ENTRY)
    }

    fn file(&self, name: &Name, ending: &str) -> PathBuf {
        self.path.join(format!("{}{ending}", name.0))
    }
}

fn failed(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Io { path: path.to_owned(), kind: error.kind() }
}

fn not_writable(path: &Path, error: &io::Error) -> StoreError {
    StoreError::NotWritable { path: path.to_owned(), kind: error.kind() }
}

/// Some file systems cannot sync a directory, and Windows cannot open one.
fn unless_unsupported(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput => Ok(()),
        _ => Err(error),
    }
}

#[cfg(unix)]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt as _;
    options.mode(0o600)
}

/// On other systems, the user's own directories are closed to others.
#[cfg(not(unix))]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(unix)]
fn make(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(not(unix))]
fn make(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(path)
}

#[cfg(unix)]
fn is_exposed(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(file.metadata()?.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_exposed(_: &File) -> io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An unsupported sync of the directory does not fail a write; another error does.
    #[test]
    fn an_unsupported_sync_is_ignored() {
        for kind in [io::ErrorKind::Unsupported, io::ErrorKind::PermissionDenied, io::ErrorKind::InvalidInput] {
            assert!(unless_unsupported(kind.into()).is_ok(), "{kind}");
        }
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::NotFound, io::ErrorKind::Other] {
            assert_eq!(unless_unsupported(kind.into()).unwrap_err().kind(), kind);
        }
    }
}

use std::{
    fs::{self, DirBuilder, File, TryLockError},
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::Duration,
};

use portcullis_files::{LockedFile, PRIVATE, private_options};
use tokio::time::{Instant, sleep};
use zeroize::Zeroizing;

use super::{Name, StoreError, access};

/// Entries as files of one directory.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// The error with which every write fails.
    #[cfg(test)]
    pub(super) injected_error: parking_lot::Mutex<Option<io::ErrorKind>>,
}

/// The maximum size of an entry, in bytes.
const MAX_ENTRY: usize = 256 * 1024;
/// The maximum number of entries with a prefix that are listed, and of quarantined files of an
/// entry.
const MAX_ENTRIES: usize = 1000;
/// By how many bytes the replacement of an entry can be larger.
const MARGIN: usize = 32 * 1024;
/// The end of the file name of an entry.
const ENTRY: &str = ".json";
/// What follows the name of an entry in the name of its quarantined files.
const QUARANTINED: &str = ".corrupted-";
/// The interval between attempts to lock a file. The operating system does not notify waiting
/// processes.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(25);

impl Directory {
    /// A directory that need not exist yet.
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            #[cfg(test)]
            injected_error: parking_lot::Mutex::default(),
        }
    }

    /// The names of the entries that begin with a prefix, sorted.
    pub(super) fn names(&self, prefix: &str) -> Result<Vec<Name>, StoreError> {
        let names = self
            .file_names()?
            .filter_map(|name| name.strip_suffix(ENTRY).map(str::to_owned));
        let mut names: Vec<_> = names
            .filter(|name| name.starts_with(prefix))
            .take(MAX_ENTRIES)
            .map(Name)
            .collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Reads an entry. `None` if there is none. Fails as [`access::check_directory`] and
    /// [`access::check_file`] do, and [`StoreError::Io`].
    pub(super) fn read(&self, name: &Name) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
        access::check_directory(&self.path)?;
        let path = self.entry(name);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io(&path, &error)),
        };
        access::check_file(&path, &file)?;
        // Allocate once: a buffer that grows leaves copies of secrets behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_ENTRY));
        let limit = u64::try_from(MAX_ENTRY).unwrap_or(u64::MAX);
        file.take(limit)
            .read_to_end(&mut bytes)
            .map_err(|error| StoreError::io(&path, &error))?;
        Ok(Some(bytes))
    }

    /// Replaces an entry atomically. The caller holds its lock. Fails with [`StoreError::TooLarge`]
    /// or [`StoreError::NotWritable`].
    pub(super) fn write(&self, name: &Name, bytes: &[u8]) -> Result<(), StoreError> {
        if bytes.len() > MAX_ENTRY {
            return Err(StoreError::TooLarge);
        }
        let path = self.entry(name);
        self.check_injected_error()
            .and_then(|()| {
                Ok(portcullis_files::replace(
                    &path,
                    &self.temporary(name),
                    bytes,
                    PRIVATE,
                )?)
            })
            .map_err(|error| not_writable(&path, &error))
    }

    /// Checks that there is space and permission for an entry: writes a somewhat larger file beside
    /// it, and removes that file.
    pub(super) fn check_writable(&self, name: &Name) -> Result<(), StoreError> {
        let path = self.entry(name);
        let temporary = self.temporary(name);
        let current = fs::metadata(&path).map_or(0, |metadata| metadata.len());
        let size = usize::try_from(current)
            .unwrap_or(MAX_ENTRY)
            .saturating_add(MARGIN)
            .min(MAX_ENTRY);
        // A killed process may have left the file. If it cannot be removed, it cannot be created
        // either.
        let _ = fs::remove_file(&temporary);
        create_directory(&self.path)
            .and_then(|()| self.check_injected_error())
            .and_then(|()| portcullis_files::create_new(&temporary, &vec![b' '; size], PRIVATE))
            .and_then(|()| fs::remove_file(&temporary))
            .map_err(|error| not_writable(&path, &error))
    }

    /// Fails with the error that a test injects.
    #[cfg(test)]
    fn check_injected_error(&self) -> io::Result<()> {
        let injected = *self.injected_error.lock();
        injected.map_or(Ok(()), |kind| Err(kind.into()))
    }

    #[cfg(not(test))]
    fn check_injected_error(&self) -> io::Result<()> {
        Ok(())
    }

    /// Removes an entry, if it exists. The caller holds its lock.
    pub(super) fn remove(&self, name: &Name) -> Result<(), StoreError> {
        let path = self.entry(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::io(&path, &error))
            }
            _ => Ok(()),
        }
    }

    /// Renames the file of a corrupted entry, and returns the error that says so.
    pub(super) fn quarantine(&self, name: &Name) -> StoreError {
        let path = self.entry(name);
        for number in 1..=MAX_ENTRIES {
            let kept = self.file(name, &format!("{QUARANTINED}{number}"));
            if kept.exists() {
                continue;
            }
            return match fs::rename(&path, &kept) {
                Ok(()) => StoreError::Corrupted { path, kept },
                Err(error) => StoreError::io(&path, &error),
            };
        }
        StoreError::io(&path, &io::ErrorKind::AlreadyExists.into())
    }

    /// Removes the quarantined files whose names begin with this prefix, and returns their number.
    pub(super) fn remove_quarantined(&self, prefix: &str) -> Result<usize, StoreError> {
        let names = self.file_names()?;
        let is_quarantined = |name: &String| name.starts_with(prefix) && name.contains(QUARANTINED);
        let mut removed = 0;
        for path in names
            .filter(is_quarantined)
            .map(|name| self.path.join(name))
        {
            fs::remove_file(&path).map_err(|error| StoreError::io(&path, &error))?;
            removed += 1;
        }
        Ok(removed)
    }

    /// Locks a file beside the entry. It is never removed: two processes could lock a removed file
    /// at once. Fails with [`StoreError::Busy`] when the lock is not free in time; as
    /// [`access::check_directory`]; otherwise when the file cannot be created or locked.
    pub(super) async fn lock(
        &self,
        name: &Name,
        limit: Duration,
    ) -> Result<Box<dyn Send>, StoreError> {
        create_directory(&self.path).map_err(|error| not_writable(&self.path, &error))?;
        access::check_directory(&self.path)?;
        let path = self.file(name, ".lock");
        let file = private_options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let file = file.map_err(|error| not_writable(&path, &error))?;
        let end = Instant::now() + limit;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Box::new(LockedFile::new(file))),
                Err(TryLockError::WouldBlock) if Instant::now() < end => {
                    sleep(LOCK_RETRY_INTERVAL).await
                }
                Err(TryLockError::WouldBlock) => return Err(StoreError::Busy { path }),
                Err(TryLockError::Error(error)) => return Err(StoreError::io(&path, &error)),
            }
        }
    }

    /// The file of an entry.
    pub(super) fn entry(&self, name: &Name) -> PathBuf {
        self.file(name, ENTRY)
    }

    /// The names of all files. There are none if the directory does not exist.
    fn file_names(&self) -> Result<impl Iterator<Item = String> + use<>, StoreError> {
        access::check_directory(&self.path)?;
        let listed = match fs::read_dir(&self.path) {
            Ok(listed) => Some(listed),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(StoreError::io(&self.path, &error)),
        };
        Ok(listed
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok()))
    }

    /// The temporary file for an entry. The lock of the entry excludes other processes.
    fn temporary(&self, name: &Name) -> PathBuf {
        self.file(name, ".tmp")
    }

    fn file(&self, name: &Name, ending: &str) -> PathBuf {
        self.path.join(format!("{}{ending}", name.0))
    }
}

fn not_writable(path: &Path, error: &io::Error) -> StoreError {
    StoreError::NotWritable {
        path: path.to_owned(),
        kind: error.kind(),
    }
}

/// Creates a directory that only its owner can access, if it does not exist.
#[cfg(unix)]
pub(super) fn create_directory(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(not(unix))]
pub(super) fn create_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(path)
}

//! [`RecordsFile`]: the file of the database, which is created completely or not at all.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use portcullis_files::{private_options, sync_parent};
use redb::{
    Builder, Database, DatabaseError, ReadTransaction, ReadableDatabase as _, TableDefinition,
    backends::FileBackend,
};

use super::{super::RecordError, unchanged::UnchangedFile};
use crate::{directory::StateDirectory, file_names::RECORDS};

/// The size of the cache, in bytes.
const CACHE: usize = 16 << 20;
/// The size of the reads before the file is opened, in bytes.
const READ_AHEAD: usize = 1 << 20;
/// The version of the format of the records.
const VERSION: u64 = 1;
/// The table with the version. No [`Table`](super::Table) has a hyphen in its name.
const FORMAT: TableDefinition<'_, &str, u64> = TableDefinition::new("records-format");

/// The database, or why it is not open.
pub(super) type Opened = Result<Database, RecordError>;

/// Opens a database in a file.
type OpenDatabase = Box<dyn Fn(&Builder, File) -> Result<Database, DatabaseError> + Send>;

/// The file of the records.
pub(super) struct RecordsFile {
    path: PathBuf,
    /// Keeps the directory locked.
    _directory: StateDirectory,
    open_database: OpenDatabase,
}

impl RecordsFile {
    pub(super) fn new(directory: &StateDirectory) -> Self {
        Self {
            path: directory.path().join(RECORDS),
            _directory: directory.clone(),
            open_database: Box::new(|builder, file| {
                builder.create_with_backend(FileBackend::new(file)?)
            }),
        }
    }

    /// As [`new`](Self::new). Changes are kept in memory, and the file stays as it is.
    pub(super) fn unchanged(directory: &StateDirectory) -> Self {
        Self::new(directory)
            .with_access(|builder, file| builder.create_with_backend(UnchangedFile::new(file)?))
    }

    /// Replaces the access to the file.
    pub(super) fn with_access(
        mut self,
        open_database: impl Fn(&Builder, File) -> Result<Database, DatabaseError> + Send + 'static,
    ) -> Self {
        self.open_database = Box::new(open_database);
        self
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the file if there is none. It appears under its name only when it is complete.
    pub(super) fn create_if_missing(&self) -> Result<(), RecordError> {
        let exists = self.path.try_exists();
        if exists.map_err(RecordError::io(&self.path))? {
            return Ok(());
        }
        let temporary = self.path.with_extension("new");
        let file = private_options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&temporary)
            .map_err(RecordError::io(&temporary))?;
        guarded(&temporary, || {
            let database = (self.open_database)(&builder(), file)?;
            let transaction = database.begin_write()?;
            transaction.open_table(FORMAT)?.insert("version", VERSION)?;
            transaction.commit()?;
            database.close()?;
            Ok(())
        })?;
        fs::rename(&temporary, &self.path).map_err(RecordError::io(&self.path))?;
        sync_parent(&self.path).map_err(RecordError::io(&self.path))
    }

    /// Opens the file again after a failure. Reads it from the disk: after a failed
    /// synchronization, the system's cache can have pages that are not there.
    pub(super) fn reopen(&self) -> Opened {
        #[cfg(target_os = "linux")]
        if let Ok(file) = File::open(&self.path) {
            // Without it, only that failure is missed.
            let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        }
        self.open()
    }

    /// Opens the file, and verifies the checksums of all of it, which repairs what a crash has
    /// interrupted: a part that is damaged is found here, and not by a later read.
    pub(super) fn open(&self) -> Opened {
        let file = open_nonempty(&self.path)?;
        read_ahead(&self.path).map_err(RecordError::io(&self.path))?;
        let (database, version) = guarded(&self.path, || {
            let database = (self.open_database)(&builder(), file)?;
            let version = read_version(&database)?;
            Ok((database, version))
        })?;
        if version == Some(VERSION) {
            Ok(database)
        } else {
            Err(RecordError::Version {
                path: self.path.clone(),
            })
        }
    }
}

/// Opens a file for reading and writing. Fails if it is empty: it would be taken for a new one.
pub(super) fn open_nonempty(path: &Path) -> Result<File, RecordError> {
    let file = private_options().read(true).write(true).open(path);
    let file = file.map_err(RecordError::io(path))?;
    let length = file.metadata().map_err(RecordError::io(path))?.len();
    match length {
        0 => Err(RecordError::Corrupt {
            path: path.to_owned(),
        }),
        _ => Ok(file),
    }
}

/// Reads from the last commit of a database.
pub(super) fn read<T>(
    path: &Path,
    database: &Database,
    read: impl FnOnce(&ReadTransaction) -> Result<T, redb::Error>,
) -> Result<T, RecordError> {
    guarded(path, || read(&database.begin_read()?))
}

/// Runs an operation of the database, which panics if the file was damaged while it was open.
pub(super) fn guarded<T>(
    path: &Path,
    operation: impl FnOnce() -> Result<T, redb::Error>,
) -> Result<T, RecordError> {
    match catch_unwind(AssertUnwindSafe(operation)) {
        Ok(result) => result.map_err(RecordError::database(path)),
        Err(_) => Err(RecordError::Corrupt {
            path: path.to_owned(),
        }),
    }
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder
        .set_cache_size(CACHE)
        .set_check_integrity_on_open(true);
    builder
}

fn read_version(database: &Database) -> Result<Option<u64>, redb::Error> {
    match database.begin_read()?.open_table(FORMAT) {
        Ok(table) => Ok(redb::ReadableTable::get(&table, "version")?.map(|stored| stored.value())),
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Reads the whole file into the system's cache, several times faster than page by page in the
/// order of the trees.
fn read_ahead(path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; READ_AHEAD];
    while file.read(&mut buffer)? > 0 {}
    Ok(())
}

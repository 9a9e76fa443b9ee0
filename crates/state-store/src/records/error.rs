//! [`RecordError`]: why a store of records cannot be used.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use portcullis_reason_codes::ReasonCodes;

/// Why a store of records cannot be used.
#[derive(Clone, Debug, thiserror::Error, ReasonCodes)]
#[non_exhaustive]
pub enum RecordError {
    /// The file of records cannot be read or written.
    #[error("{} cannot be used: {error}; check that the disk has space and that this user can read and write the file", path.display())]
    #[code = "records.file"]
    File {
        /// The path.
        path: PathBuf,
        /// The cause.
        error: Arc<io::Error>,
    },
    /// The file of records is damaged.
    #[error("{} is damaged; restore it from a backup, or move it away, which signs all users out", path.display())]
    #[code = "records.corrupt"]
    Corrupt {
        /// The path.
        path: PathBuf,
    },
    /// The file of records was written by another version.
    #[error("{} was written by another version; use the version that wrote it, or move it away, which signs all users out", path.display())]
    #[code = "records.version"]
    Version {
        /// The path.
        path: PathBuf,
    },
    /// A key or a value is longer than a store accepts.
    #[error("a record is too large for the store")]
    #[code = "records.too_large"]
    TooLarge,
    /// Too many changes wait to be written.
    #[error("too many changes of records wait to be written")]
    #[code = "records.full_queue"]
    QueueFull,
    /// Redis cannot be reached, does not answer in time, or refuses a command.
    #[cfg(feature = "redis")]
    #[error("Redis cannot be used for records: {0}")]
    #[code = "records.redis"]
    Redis(RedisFailure),
    /// Redis can lose records in a crash.
    #[cfg(feature = "redis")]
    #[error(
        "Redis can lose records in a crash; set `appendonly yes` and `appendfsync always` in its configuration"
    )]
    #[code = "records.redis_durability"]
    RedisDurability,
    /// Redis removes records when its memory is full.
    #[cfg(feature = "redis")]
    #[error(
        "Redis removes records when its memory is full; set `maxmemory-policy noeviction` in its configuration"
    )]
    #[code = "records.redis_eviction"]
    RedisEviction,
    /// The user cannot read Redis's configuration.
    #[cfg(feature = "redis")]
    #[error(
        "this user cannot ask Redis whether records survive a crash; allow it with `ACL SETUSER` and `+config|get`, or confirm in the \
         settings that `appendonly yes`, `appendfsync always` and no `allkeys` eviction are set"
    )]
    #[code = "records.redis_config"]
    RedisConfig,
    /// The store was closed, or its thread failed.
    #[error("the store of records is closed")]
    #[code = "records.closed"]
    Closed,
}

/// Why Redis cannot be used. Text of the server is escaped and at most 200 characters long.
#[cfg(feature = "redis")]
#[derive(Clone)]
pub struct RedisFailure(Arc<redis::RedisError>);

#[cfg(feature = "redis")]
impl RedisFailure {
    pub(super) fn error(&self) -> &redis::RedisError {
        &self.0
    }
}

#[cfg(feature = "redis")]
impl std::fmt::Display for RedisFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&crate::redis::failure::describe(&self.0))
    }
}

#[cfg(feature = "redis")]
impl std::fmt::Debug for RedisFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RedisFailure({self})")
    }
}

#[cfg(feature = "redis")]
impl From<redis::RedisError> for RecordError {
    fn from(error: redis::RedisError) -> Self {
        Self::Redis(RedisFailure(Arc::new(error)))
    }
}

impl RecordError {
    /// Returns a function that adds the path to the cause, for `map_err`.
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| match error.kind() {
            // A part of the file is missing, or it is not a database.
            io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => Self::Corrupt { path },
            _ => Self::File {
                path,
                error: Arc::new(error),
            },
        }
    }

    /// Returns a function that adds the path to an error of the database, for `map_err`.
    pub(super) fn database<E: Into<redb::Error>>(path: &Path) -> impl FnOnce(E) -> Self + use<E> {
        let path = path.to_owned();
        move |error| match error.into() {
            redb::Error::Io(error) => Self::io(&path)(error),
            redb::Error::UpgradeRequired(_) => Self::Version { path },
            redb::Error::Corrupted(_)
            | redb::Error::TableTypeMismatch { .. }
            | redb::Error::TableIsMultimap(_)
            | redb::Error::TypeDefinitionChanged { .. } => Self::Corrupt { path },
            error => Self::io(&path)(io::Error::other(error)),
        }
    }
}

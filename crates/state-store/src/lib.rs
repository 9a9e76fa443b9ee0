#![doc = include_str!("../README.md")]

mod compaction;
mod directory;
mod error;
mod examination;
mod file_names;
mod journal;
mod limit_use;
mod log_file;
pub mod records;
#[cfg(feature = "redis")]
mod redis;
mod retention;
mod revocation;

pub use directory::StateDirectory;
pub use error::StateError;
pub use journal::{FileJournal, Recovered};
pub use limit_use::{LimitCounts, LimitUse};
#[cfg(feature = "redis")]
pub use redis::{RedisJournal, RedisSettings, RedisSettingsError, RedisState};
pub use retention::Retention;
pub use revocation::Revocations;

#![doc = include_str!("../README.md")]

mod compaction;
mod directory;
mod error;
mod journal;
mod log_file;

pub use directory::StateDirectory;
pub use error::StateError;
pub use journal::{FileJournal, Recovered, Retention};

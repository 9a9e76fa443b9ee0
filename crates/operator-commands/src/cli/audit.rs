//! The arguments of `portcullis audit`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use portcullis_audit::Head;

/// A command about the audit trail.
#[derive(Subcommand)]
#[non_exhaustive]
pub enum AuditCommand {
    /// Verify the chain of audit records: that none was changed, inserted, removed or moved.
    ///
    /// The files can be named in any order. Name rotated files, too. The removal of the last
    /// records shows only in a head from the log (`audit.head`); give it with --head. Exits with 1
    /// at the first break, with its file and line, or if a file cannot be read.
    #[command(
        after_long_help = "Example:\n  portcullis audit verify --config portcullis.toml audit.jsonl"
    )]
    Verify(AuditVerify),
}

#[derive(Args)]
pub struct AuditVerify {
    /// The files of the trail: the current one and rotated ones, such as `audit.jsonl*`.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// A file with the key of the chain, and former keys on further lines. Default: the source in
    /// the configuration.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// The configuration file (TOML), whose `audit.key` or `state_dir` has the key.
    #[arg(
        long,
        short,
        value_name = "FILE",
        default_value = "portcullis.toml",
        conflicts_with = "key_file"
    )]
    pub(crate) config: PathBuf,
    /// A head from the log, which must be in the files. Can be given several times.
    #[arg(long = "head", value_name = "SEQ:MAC")]
    pub(crate) heads: Vec<Head>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

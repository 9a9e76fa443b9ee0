//! The option `--store` of the commands that read or write stored tokens. `mcp-remote` does not
//! have it: its options are those of another program, and it uses the default.

use std::path::PathBuf;

use clap::Args;

// The store of tokens.
#[derive(Args)]
pub(crate) struct StoreOption {
    /// Where tokens and client secrets are stored. Default: `portcullis` in `$XDG_STATE_HOME`, else
    /// in `~/.local/state`, else in `%LOCALAPPDATA%`.
    #[arg(id = "store", long = "store", value_name = "DIRECTORY")]
    pub(crate) directory: Option<PathBuf>,
}

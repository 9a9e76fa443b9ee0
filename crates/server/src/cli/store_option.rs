//! The option `--store` of all commands that read or write stored tokens.

use std::path::PathBuf;

use clap::Args;

// The store of tokens. A doc comment would replace the description of the command.
#[derive(Args)]
pub(crate) struct StoreOption {
    /// Where tokens and client secrets are stored. The default is `portcullis` in the user's state directory.
    #[arg(id = "store", long = "store", value_name = "DIRECTORY")]
    pub(crate) directory: Option<PathBuf>,
}

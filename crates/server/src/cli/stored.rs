//! The command lines of `portcullis status` and `portcullis list`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args)]
pub(crate) struct Status {
    /// The protected resource, such as `https://mcp.example.com/mcp`.
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) list: List,
}

#[derive(Args)]
pub(crate) struct List {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Where tokens are stored. The default is `portcullis` in the user's state directory.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) store: Option<PathBuf>,
}

//! The command lines of `portcullis status` and `portcullis list`.

use clap::Args;

use super::StoreOption;

#[derive(Args)]
pub struct Status {
    /// The protected resource, such as `https://mcp.example.com/mcp`.
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) options: StoreOptions,
}

#[derive(Args)]
pub struct List {
    #[command(flatten)]
    pub(crate) options: StoreOptions,
}

// Which store is read, and how it is printed.
#[derive(Args)]
pub(crate) struct StoreOptions {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

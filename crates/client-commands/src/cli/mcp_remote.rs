//! The command lines of `portcullis mcp-remote` and `portcullis import-mcp-remote`.

use std::path::PathBuf;

use clap::Args;

use super::StoreOption;

#[derive(Args)]
pub struct McpRemote {
    /// The arguments of mcp-remote: the server's URL, the callback port, and options such as
    /// `--header "X-Team: blue"`.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "ARGUMENTS"
    )]
    pub(crate) arguments: Vec<String>,
}

#[derive(Args)]
pub struct ImportMcpRemote {
    /// The configuration file of a client. Default: the configurations of all known clients.
    #[arg(value_name = "CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Write the changes without confirmation. The original is kept in a backup that only you can
    /// read.
    #[arg(long)]
    pub(crate) write: bool,
    /// The program to enter in the configurations. Default: the full path of this program, because
    /// clients that are started from a desktop often have another `PATH` than a terminal.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) command: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

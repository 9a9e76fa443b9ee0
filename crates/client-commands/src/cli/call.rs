//! The command line of `portcullis call`.

use clap::Args;

use super::SignIn;

#[derive(Args)]
pub struct Call {
    #[command(flatten)]
    pub(crate) sign_in: SignIn,
    /// The method, such as `tools/list` or `tools/call`.
    pub(crate) method: String,
    /// The method's parameters as a JSON object.
    pub(crate) params: Option<String>,
    /// Use revision 2026-07-28, without a session, instead of 2025-11-25.
    #[arg(long)]
    pub(crate) modern: bool,
    /// The largest message of the server, decompressed, in MiB. Less than three times this size
    /// is needed in memory.
    #[arg(long, value_name = "MIB", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) max_message: u16,
}

//! [`Migration`]: the data of a server outside the configuration.

use std::path::PathBuf;

use super::secret_file::SecretFile;
use crate::mcp_remote::{arguments::Arguments, session::SessionId};

/// The data of a server outside the configuration.
pub(super) struct Migration {
    pub(super) arguments: Arguments,
    pub(super) session: SessionId,
    /// The client identifier in the arguments.
    pub(super) client_id: Option<String>,
    pub(super) client_secret: Option<SecretFile>,
    /// The value of `MCP_REMOTE_CONFIG_DIR`.
    pub(super) mcp_remote_directory: Option<PathBuf>,
    /// The store that receives its token.
    pub(super) store: Option<PathBuf>,
}

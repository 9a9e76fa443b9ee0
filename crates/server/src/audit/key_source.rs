//! The keys of the chain from the state directory.

use anyhow::{Context as _, anyhow};
use portcullis_store::StateDirectory;

use super::chain::ChainKeys;

/// Returns the keys in the state directory; the first call generates one. Without a directory, records are not chained, and the log
/// has a warning.
///
/// # Errors
/// Fails if the keys cannot be used.
pub(super) fn of_state_dir(directory: Option<&StateDirectory>) -> anyhow::Result<Option<ChainKeys>> {
    let Some(directory) = directory else {
        tracing::warn!("audit records are not chained: there is no key; set audit.key, or state_dir to a directory");
        return Ok(None);
    };
    let file = directory.path().join(StateDirectory::AUDIT_KEY);
    let keys = directory.audit_key().map_err(anyhow::Error::from);
    let keys = keys.and_then(|text| ChainKeys::parse(&text).with_context(|| file.display().to_string()));
    let keys = keys.map_err(|error| {
        anyhow!("audit records cannot be chained: {error:#}; or set audit.key to the source of another key")
    })?;
    Ok(Some(keys))
}

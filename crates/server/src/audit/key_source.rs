//! The keys of the chain from the state directory.

use std::path::Path;

use anyhow::Context as _;
use portcullis_store::StateDirectory;

use super::chain::ChainKeys;

/// Returns the keys in the state directory; the first call generates one. Without usable keys, records are not chained, and the
/// log has a warning.
pub(super) fn of_state_dir(directory: Option<&Path>) -> Option<ChainKeys> {
    let Some(directory) = directory else {
        tracing::warn!("audit records are not chained: there is no key; set audit.key, or state_dir to a directory");
        return None;
    };
    // The directory is locked only meanwhile: the sessions are kept in it, too.
    let keys = StateDirectory::open(directory).and_then(|directory| directory.audit_key()).map_err(Into::into);
    let keys = keys.and_then(|text| {
        let file = directory.join(StateDirectory::AUDIT_KEY);
        ChainKeys::parse(&text).with_context(|| file.display().to_string())
    });
    keys.inspect_err(|error| {
        tracing::warn!("audit records are not chained: {error:#}; or set audit.key to the source of another key");
    })
    .ok()
}

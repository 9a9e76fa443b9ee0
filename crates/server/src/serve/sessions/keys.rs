//! Reloading of the session keys from their files.

use portcullis_session::SessionStore;

use crate::{plan::KeySources, serve::changed_files::on_change};

/// Replaces the keys when the files change. Unusable files leave the keys unchanged.
pub(crate) async fn reload(store: SessionStore, sources: KeySources) {
    let replace = || match sources.load() {
        Ok(keys) => {
            store.set_keys(keys);
            tracing::info!("the session keys were replaced");
        }
        Err(error) => tracing::error!("the session keys are unchanged: {error:#}"),
    };
    on_change(sources.written(), || sources.written(), replace).await;
}

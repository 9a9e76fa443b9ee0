//! Reloading of the session keys from their files.

use std::time::Duration;

use portcullis_session::SessionStore;
use tokio::{
    signal::unix::{SignalKind, signal},
    time::{MissedTickBehavior, interval},
};

use crate::plan::KeySources;

/// How often the files are checked for changes.
const RELOAD_PERIOD: Duration = Duration::from_secs(10);

/// Replaces the keys when the files change, checked periodically and at every SIGHUP. Unusable files leave the keys unchanged.
pub(crate) async fn reload(store: SessionStore, sources: KeySources) {
    let mut written = sources.written();
    let mut period = interval(RELOAD_PERIOD);
    period.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
    loop {
        tokio::select! {
            _ = period.tick() => {}
            _ = hangup.recv() => {}
        }
        let now = sources.written();
        if now == written {
            continue;
        }
        match sources.load() {
            Ok(keys) => {
                store.set_keys(keys);
                tracing::info!("the session keys were replaced");
            }
            Err(error) => tracing::error!("the session keys are unchanged: {error:#}"),
        }
        written = now;
    }
}

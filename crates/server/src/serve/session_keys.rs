//! Session keys that follow their files, so that a rotation needs no restart.

use std::time::Duration;

use portcullis_session::SessionStore;
use tokio::{
    signal::unix::{SignalKind, signal},
    time::{MissedTickBehavior, interval},
};

use crate::plan::KeySources;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(10);

/// Looks at the files now and then, and at every SIGHUP. Files that cannot be used change nothing.
pub(super) async fn follow(store: SessionStore, sources: KeySources) {
    let mut written = sources.written();
    let mut period = interval(LOOK);
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
            Err(error) => tracing::error!("the session keys stay as they were: {error:#}"),
        }
        written = now;
    }
}

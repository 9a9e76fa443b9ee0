//! Reloading of files when they change.

use std::time::Duration;

use tokio::{
    signal::unix::{SignalKind, signal},
    time::{MissedTickBehavior, interval},
};

/// How often the files are checked for changes.
pub(super) const CHECK_PERIOD: Duration = Duration::from_secs(10);

/// Calls `reload` whenever `version` of the files differs from the last one, checked periodically and at every SIGHUP.
/// `current` is the version that is in use. Never ends, unless SIGHUP cannot be handled.
pub(super) async fn on_change<V: PartialEq>(mut current: V, version: impl Fn() -> V, mut reload: impl FnMut()) {
    let mut period = interval(CHECK_PERIOD);
    period.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
    loop {
        tokio::select! {
            _ = period.tick() => {}
            _ = hangup.recv() => {}
        }
        // Read before the files, so that a change during the reload is noticed at the next check.
        let now = version();
        if now != current {
            reload();
            current = now;
        }
    }
}

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use portcullis_metadata::UnixTime;

use super::{exposition::Exposition, family};

/// The reloads of the configuration.
#[derive(Debug)]
pub(super) struct ReloadCounts {
    accepted: AtomicU64,
    rejected: AtomicU64,
    last_rejected: AtomicBool,
    /// When the running configuration was read, in seconds since 1970.
    last_accepted: AtomicU64,
}

impl ReloadCounts {
    /// Returns the counts of a process that read its configuration at this time.
    pub(super) fn new(started: UnixTime) -> Self {
        Self {
            accepted: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            last_rejected: AtomicBool::new(false),
            last_accepted: AtomicU64::new(started.as_secs()),
        }
    }

    /// Counts a reload that ended at this time.
    pub(super) fn count(&self, is_accepted: bool, now: UnixTime) {
        let count = if is_accepted {
            &self.accepted
        } else {
            &self.rejected
        };
        count.fetch_add(1, Ordering::Relaxed);
        self.last_rejected.store(!is_accepted, Ordering::Relaxed);
        if is_accepted {
            self.last_accepted.store(now.as_secs(), Ordering::Relaxed);
        }
    }

    pub(super) fn write(&self, out: &mut Exposition) {
        out.value(
            &family::RELOADS,
            &[("result", "accepted")],
            self.accepted.load(Ordering::Relaxed),
        );
        out.value(
            &family::RELOADS,
            &[("result", "rejected")],
            self.rejected.load(Ordering::Relaxed),
        );
        let is_successful = !self.last_rejected.load(Ordering::Relaxed);
        out.value(
            &family::LAST_RELOAD_SUCCESSFUL,
            &[],
            u8::from(is_successful),
        );
        out.value(
            &family::LAST_RELOAD_TIME,
            &[],
            self.last_accepted.load(Ordering::Relaxed),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J7, J10: a rejected reload is visible until one is accepted, and does not change the time of
    /// the running configuration.
    #[test]
    fn reloads_are_counted_by_result() {
        let reloads = ReloadCounts::new(UnixTime::from_secs(100));
        let text = || {
            let mut out = Exposition::default();
            reloads.write(&mut out);
            out.finish()
        };
        let has = |samples: [&str; 4]| {
            let text = text();
            for sample in samples {
                assert!(
                    text.contains(&format!("\nportcullis_{sample}\n")),
                    "{sample}: {text}"
                );
            }
        };
        let [none, one] =
            [0, 1].map(|count| format!("reloads_total{{result=\"rejected\"}} {count}"));
        has([
            "reloads_total{result=\"accepted\"} 0",
            &none,
            "last_reload_successful 1",
            "last_reload_success_timestamp_seconds 100",
        ]);
        reloads.count(false, UnixTime::from_secs(200));
        has([
            "reloads_total{result=\"accepted\"} 0",
            &one,
            "last_reload_successful 0",
            "last_reload_success_timestamp_seconds 100",
        ]);
        reloads.count(true, UnixTime::from_secs(300));
        has([
            "reloads_total{result=\"accepted\"} 1",
            &one,
            "last_reload_successful 1",
            "last_reload_success_timestamp_seconds 300",
        ]);
    }
}

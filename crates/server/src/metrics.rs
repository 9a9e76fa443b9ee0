//! Metrics: counters and histograms of requests, in the text format of Prometheus.
//!
//! They exist only with a listener for administrators. A request changes a few counters of its worker, without a lock and without
//! an allocation. Label values are configured names and reason codes of the program, so the number of series is bounded.

mod codes;
mod exposition;
pub(crate) mod family;
mod histogram;
mod process;
mod requests;
mod sinks;

pub(crate) use codes::CodeCounts;
pub(crate) use exposition::Exposition;
pub(crate) use requests::ResourceMetrics;
pub(crate) use sinks::{MeasuredRequests, MeasuredTokens};

use std::sync::{
    Arc, Mutex, PoisonError, Weak,
    atomic::{AtomicU64, Ordering},
};

use portcullis_metadata::{Clock, ResourceUri, UnixTime};
use portcullis_session::EndReason;

/// The metrics of the process.
#[derive(Debug)]
pub(crate) struct Metrics {
    started: UnixTime,
    workers: usize,
    resources: Mutex<Vec<(ResourceUri, Weak<ResourceMetrics>)>>,
    sessions_opened: AtomicU64,
    sessions_ended: CodeCounts,
    streams_ended: CodeCounts,
}

impl Metrics {
    /// Returns empty metrics for requests on this number of workers.
    pub(crate) fn new(workers: usize, clock: &dyn Clock) -> Arc<Self> {
        Arc::new(Self {
            started: clock.now(),
            workers,
            resources: Mutex::default(),
            sessions_opened: AtomicU64::new(0),
            sessions_ended: CodeCounts::default(),
            streams_ended: CodeCounts::default(),
        })
    }

    /// Returns the metrics of a resource. While they are in use, the same are returned for the same resource.
    pub(crate) fn of_resource(&self, uri: &ResourceUri) -> Arc<ResourceMetrics> {
        let mut resources = self.resources.lock().unwrap_or_else(PoisonError::into_inner);
        resources.retain(|(_, metrics)| metrics.strong_count() > 0);
        let known = resources.iter().find(|(known, _)| known == uri).and_then(|(_, metrics)| metrics.upgrade());
        known.unwrap_or_else(|| {
            // One more for the control runtime.
            let metrics = Arc::new(ResourceMetrics::new(self.workers + 1));
            resources.push((uri.clone(), Arc::downgrade(&metrics)));
            metrics
        })
    }

    /// Counts an opened session.
    pub(crate) fn session_opened(&self) {
        self.sessions_opened.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an ended session.
    pub(crate) fn session_ended(&self, reason: EndReason) {
        self.sessions_ended.add(reason.as_str());
    }

    /// Counts an ended event stream.
    pub(crate) fn stream_ended(&self, code: &'static str) {
        self.streams_ended.add(code);
    }

    /// Writes what the process itself has counted.
    pub(crate) fn write(&self, out: &mut Exposition) {
        out.value(&family::SESSIONS_OPENED, &[], self.sessions_opened.load(Ordering::Relaxed));
        self.sessions_ended.write(out, &family::SESSIONS_ENDED, "reason", &[]);
        self.streams_ended.write(out, &family::STREAMS_ENDED, "code", &[]);
        out.value(&family::BUILD_INFO, &[("version", env!("CARGO_PKG_VERSION"))], 1_u8);
        process::write(out, self.started);
    }
}

#[cfg(test)]
mod tests {
    use portcullis_metadata::SystemClock;

    use super::*;

    /// J7: a resource keeps its counts while it is in use, for example over a reload, and is forgotten afterwards.
    #[test]
    fn resources_keep_their_metrics() {
        let metrics = Metrics::new(2, &SystemClock::new());
        let uri = |path: &str| ResourceUri::parse(&format!("https://mcp.example.com/{path}")).unwrap();
        let (one, same, other) =
            (metrics.of_resource(&uri("a")), metrics.of_resource(&uri("a")), metrics.of_resource(&uri("b")));
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
        drop((one, same));
        drop(metrics.of_resource(&uri("b")));
        assert_eq!(metrics.resources.lock().unwrap().len(), 1);
    }
}

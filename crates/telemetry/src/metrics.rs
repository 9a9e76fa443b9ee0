//! Metrics of requests, sessions, event streams, reloads, certificates and the process, in the text
//! format of Prometheus.
//!
//! They exist only with a listener for administrators. A request changes a few counters of its
//! worker, without a lock and without an allocation. Label values are configured names and reason
//! codes of the program, so the number of series is bounded.

mod broker;
mod certificates;
mod codes;
mod exposition;
pub mod family;
mod histogram;
mod pairs;
mod process;
mod reloads;
mod requests;
mod sinks;

pub use broker::BrokerMetrics;
pub use certificates::Expiry;
pub use codes::CodeCounts;
pub use exposition::Exposition;
pub use requests::ResourceMetrics;
pub use sinks::{MeasuredRequests, MeasuredTokens};

use std::sync::{
    Arc, OnceLock, Weak,
    atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;
use portcullis_metadata::{Clock, ResourceUri, UnixTime};
use portcullis_session::EndReason;
use tokio::runtime::Handle;

use certificates::Certificates;
use reloads::ReloadCounts;

/// The metrics of the process.
#[derive(Debug)]
pub struct Metrics {
    version: &'static str,
    started: UnixTime,
    workers: usize,
    resources: Mutex<Vec<(ResourceUri, Weak<ResourceMetrics>)>>,
    sessions_opened: AtomicU64,
    sessions_ended: CodeCounts,
    streams_ended: CodeCounts,
    /// Empty without a broker.
    broker: OnceLock<BrokerMetrics>,
    reloads: ReloadCounts,
    certificates: Certificates,
    /// The runtimes whose tasks are counted.
    runtimes: Mutex<Vec<Handle>>,
}

impl Metrics {
    /// Returns empty metrics of a program of this version, for requests on this number of workers.
    pub fn new(version: &'static str, workers: usize, clock: &dyn Clock) -> Arc<Self> {
        Arc::new(Self {
            version,
            started: clock.now(),
            workers,
            resources: Mutex::default(),
            sessions_opened: AtomicU64::new(0),
            sessions_ended: CodeCounts::default(),
            streams_ended: CodeCounts::default(),
            broker: OnceLock::new(),
            reloads: ReloadCounts::new(clock.now()),
            certificates: Certificates::default(),
            runtimes: Mutex::default(),
        })
    }

    /// Returns the metrics of a resource. While they are in use, the same are returned for the same
    /// resource.
    pub fn of_resource(&self, uri: &ResourceUri) -> Arc<ResourceMetrics> {
        let mut resources = self.resources.lock();
        resources.retain(|(_, metrics)| metrics.strong_count() > 0);
        let known = resources
            .iter()
            .find(|(known, _)| known == uri)
            .and_then(|(_, metrics)| metrics.upgrade());
        known.unwrap_or_else(|| {
            // One more for the control runtime.
            let metrics = Arc::new(ResourceMetrics::new(self.workers + 1));
            resources.push((uri.clone(), Arc::downgrade(&metrics)));
            metrics
        })
    }

    /// Counts an opened session.
    pub fn session_opened(&self) {
        self.sessions_opened.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an ended session.
    pub fn session_ended(&self, reason: EndReason) {
        self.sessions_ended.add(reason.as_str());
    }

    /// Counts an ended event stream.
    pub fn stream_ended(&self, code: &'static str) {
        self.streams_ended.add(code);
    }

    /// Returns the counts of the broker. They are written from the first call on.
    pub fn broker(&self) -> &BrokerMetrics {
        self.broker.get_or_init(BrokerMetrics::default)
    }

    /// Counts a reload of the configuration that ended at this time.
    pub fn reloaded(&self, is_accepted: bool, now: UnixTime) {
        self.reloads.count(is_accepted, now);
    }

    /// Sets the certificate that a table configures. `None` if there is no such table any more.
    pub fn set_certificate(&self, table: &'static str, expiry: Option<Expiry>) {
        self.certificates.set(table, expiry);
    }

    /// Adds a runtime whose tasks are counted.
    pub fn add_runtime(&self, runtime: Handle) {
        self.runtimes.lock().push(runtime);
    }

    /// Writes what the process itself has counted.
    pub fn write(&self, out: &mut Exposition) {
        out.value(
            &family::SESSIONS_OPENED,
            &[],
            self.sessions_opened.load(Ordering::Relaxed),
        );
        self.sessions_ended
            .write(out, &family::SESSIONS_ENDED, "reason", &[]);
        self.streams_ended
            .write(out, &family::STREAMS_ENDED, "code", &[]);
        if let Some(broker) = self.broker.get() {
            broker.write(out);
        }
        self.reloads.write(out);
        self.certificates.write(out);
        let runtimes = self.runtimes.lock();
        let tasks: usize = runtimes
            .iter()
            .map(|runtime| runtime.metrics().num_alive_tasks())
            .sum();
        out.value(&family::TASKS, &[], tasks);
        out.value(&family::BUILD_INFO, &[("version", self.version)], 1_u8);
        process::write(out, self.started);
    }
}

#[cfg(test)]
mod tests {
    use portcullis_metadata::SystemClock;

    use super::*;

    /// J7: the tasks of all runtimes are counted until they end.
    #[tokio::test]
    async fn tasks_are_counted() {
        let metrics = Metrics::new("1.0.0", 1, &SystemClock::new());
        metrics.add_runtime(Handle::current());
        let text = || {
            let mut out = Exposition::default();
            metrics.write(&mut out);
            out.finish()
        };
        assert!(text().contains("\nportcullis_tasks 0\n"), "{}", text());
        let task = tokio::spawn(std::future::pending::<()>());
        assert!(text().contains("\nportcullis_tasks 1\n"), "{}", text());
        task.abort();
        let _ = task.await;
        assert!(text().contains("\nportcullis_tasks 0\n"), "{}", text());
    }

    /// J7: a resource keeps its counts while it is in use, for example over a reload, and is
    /// forgotten afterwards.
    #[test]
    fn resources_keep_their_metrics() {
        let metrics = Metrics::new("1.0.0", 2, &SystemClock::new());
        let uri =
            |path: &str| ResourceUri::parse(&format!("https://mcp.example.com/{path}")).unwrap();
        let one = metrics.of_resource(&uri("a"));
        let same = metrics.of_resource(&uri("a"));
        let other = metrics.of_resource(&uri("b"));
        assert!(Arc::ptr_eq(&one, &same));
        assert!(!Arc::ptr_eq(&one, &other));
        drop((one, same));
        drop(metrics.of_resource(&uri("b")));
        assert_eq!(metrics.resources.lock().len(), 1);
    }
}

//! [`Tally`]: the counts and faults of a run.

use std::{
    cell::{Cell, RefCell},
    time::Duration,
};

use tokio::time::Instant;

/// The time before and after a kill in which a failing request counts as in progress at the killed
/// replica: nginx detects the end of its connections slightly later.
const KILL_TOLERANCE: Duration = Duration::from_secs(1);
/// The time after a restart of Redis during which an end may remain unconfirmed.
const RETURN_TIME: Duration = Duration::from_secs(8);
/// The maximum number of recorded faults.
const MAX_FAULTS: usize = 1000;

/// Counts and faults.
#[derive(Default)]
pub(super) struct Tally {
    /// Requests that users sent in their sessions, with the expected response.
    pub(super) calls: Cell<u64>,
    /// Sessions that were opened.
    pub(super) opened: Cell<u64>,
    /// Ends that were confirmed.
    pub(super) confirmed: Cell<u64>,
    /// Ends that got 503 because Redis was unavailable.
    pub(super) unconfirmed: Cell<u64>,
    /// Requests that failed because the replica was killed.
    pub(super) interrupted: Cell<u64>,
    /// Requests with identifiers whose end was confirmed, by all replicas.
    pub(super) checks: Cell<u64>,
    /// Responses with 503 among them.
    pub(super) not_ready: Cell<u64>,
    confirmation_times: RefCell<Vec<Duration>>,
    call_times: RefCell<Vec<Duration>>,
    kills: RefCell<Vec<Kill>>,
    outages: RefCell<Vec<Outage>>,
    /// Descriptions of what must not happen.
    faults: RefCell<Vec<String>>,
}

/// A replica was killed.
struct Kill {
    at: Instant,
    /// The address by which nginx names it.
    replica: String,
}

/// Redis was killed and, later, started again.
struct Outage {
    start: Instant,
    end: Option<Instant>,
}

/// Adds one to a count.
pub(super) fn count(cell: &Cell<u64>) {
    cell.set(cell.get() + 1);
}

impl Tally {
    /// Counts a request in a session.
    pub(super) fn called(&self, took: Duration) {
        count(&self.calls);
        self.call_times.borrow_mut().push(took);
    }

    /// Counts an end that was confirmed.
    pub(super) fn confirmed(&self, took: Duration) {
        count(&self.confirmed);
        self.confirmation_times.borrow_mut().push(took);
    }

    /// Records that a replica is killed now.
    pub(super) fn killed(&self, replica: String) {
        self.kills.borrow_mut().push(Kill {
            at: Instant::now(),
            replica,
        });
    }

    /// Records that Redis is killed now.
    pub(super) fn redis_killed(&self) {
        self.outages.borrow_mut().push(Outage {
            start: Instant::now(),
            end: None,
        });
    }

    /// Records that Redis has been started again now.
    pub(super) fn redis_started(&self) {
        if let Some(outage) = self.outages.borrow_mut().last_mut() {
            outage.end = Some(Instant::now());
        }
    }

    /// Returns whether a replica was killed during a request. `replicas` are those that nginx names
    /// in the response.
    pub(super) fn is_interrupted(&self, started: Instant, replicas: Option<&str>) -> bool {
        let ended = Instant::now();
        self.kills.borrow().iter().any(|Kill { at, replica }| {
            *at + KILL_TOLERANCE >= started
                && *at <= ended + KILL_TOLERANCE
                && replicas.is_none_or(|replicas| replicas.contains(replica))
        })
    }

    /// Returns whether Redis was unavailable, or its data too new, during a request.
    pub(super) fn is_redis_unavailable(&self, started: Instant) -> bool {
        let ended = Instant::now();
        let is_during = |outage: &Outage| {
            outage.start <= ended && outage.end.is_none_or(|end| started <= end + RETURN_TIME)
        };
        self.outages.borrow().iter().any(is_during)
    }

    /// Records what must not happen, up to a limit.
    pub(super) fn fault(&self, fault: String) {
        let mut faults = self.faults.borrow_mut();
        if faults.len() < MAX_FAULTS {
            faults.push(fault);
        }
    }

    /// Returns the faults so far.
    pub(super) fn faults(&self) -> Vec<String> {
        self.faults.borrow().clone()
    }

    /// Returns the counts, one per line.
    pub(super) fn report(&self) -> String {
        let lines = [
            ("replicas killed", self.kills.borrow().len().to_string()),
            (
                "redis restarted without its data",
                self.outages.borrow().len().to_string(),
            ),
            ("sessions opened", self.opened.get().to_string()),
            ("requests in sessions", self.calls.get().to_string()),
            (
                "  time in ms, median / 99 % / maximum",
                times(&mut self.call_times.borrow_mut()),
            ),
            (
                "requests in progress at a killed replica",
                self.interrupted.get().to_string(),
            ),
            ("confirmed ends", self.confirmed.get().to_string()),
            (
                "  time in ms, median / 99 % / maximum",
                times(&mut self.confirmation_times.borrow_mut()),
            ),
            (
                "ends with 503 while redis was unavailable",
                self.unconfirmed.get().to_string(),
            ),
            (
                "requests with ended identifiers",
                self.checks.get().to_string(),
            ),
            ("  of them with 503", self.not_ready.get().to_string()),
            ("faults", self.faults.borrow().len().to_string()),
        ];
        lines
            .iter()
            .map(|(name, value)| format!("  {name:<46} {value}\n"))
            .collect()
    }
}

/// Returns the median, the 99th percentile and the maximum in milliseconds.
fn times(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let at = |share: f64| {
        let position = (times.len() as f64 * share) as usize;
        times
            .get(position.min(times.len().saturating_sub(1)))
            .map_or(0, Duration::as_millis)
    };
    format!("{} / {} / {}", at(0.5), at(0.99), at(1.0))
}

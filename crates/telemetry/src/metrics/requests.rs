use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use portcullis_guard::Decision;

use super::{
    codes::CodeCounts,
    exposition::Exposition,
    family::{self, Family},
    histogram::{Counted, Histogram},
};
use crate::{Effect, log_queue::slot_of_thread};

/// The metrics of one resource: a part for each worker, so that workers do not wait for each
/// other's memory.
#[derive(Debug)]
pub struct ResourceMetrics(Box<[WorkerMetrics]>);

/// The metrics of one resource and one worker.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct WorkerMetrics {
    allowed: AtomicU64,
    cache_hits: AtomicU64,
    total: Histogram,
    upstream: Histogram,
    verification: Histogram,
    /// The other decisions by their reason code.
    codes: CodeCounts,
}

type PartHistogram = fn(&WorkerMetrics) -> &Histogram;

impl ResourceMetrics {
    pub(super) fn new(parts: usize) -> Self {
        Self(
            (0..parts.max(1))
                .map(|_| WorkerMetrics::default())
                .collect(),
        )
    }

    /// Returns the part of the calling thread.
    pub(super) fn of_this_thread(&self) -> &WorkerMetrics {
        &self.0[slot_of_thread() % self.0.len()]
    }

    /// Writes the sums of all parts, with the resource as a label.
    pub fn write(&self, out: &mut Exposition, resource: &str) {
        let labels = [("resource", resource)];
        let sum = |value: fn(&WorkerMetrics) -> &AtomicU64| -> u64 {
            self.0
                .iter()
                .map(|part| value(part).load(Ordering::Relaxed))
                .sum()
        };
        out.value(
            &family::REQUESTS,
            &[
                ("resource", resource),
                ("decision", Effect::of(None).as_str()),
                ("code", "none"),
            ],
            sum(|part| &part.allowed),
        );
        let mut codes = Vec::new();
        self.0.iter().for_each(|part| part.codes.add_to(&mut codes));
        codes.sort_unstable();
        for (code, count) in codes {
            let labels = [
                ("resource", resource),
                ("decision", Effect::of(Some(code)).as_str()),
                ("code", code),
            ];
            out.value(&family::REQUESTS, &labels, count);
        }
        out.value(
            &family::TOKEN_CACHE_HITS,
            &labels,
            sum(|part| &part.cache_hits),
        );
        let histograms: [(&Family, PartHistogram); 3] = [
            (&family::REQUEST_DURATION, |part| &part.total),
            (&family::UPSTREAM_DURATION, |part| &part.upstream),
            (&family::VERIFICATION_DURATION, |part| &part.verification),
        ];
        for (family, histogram) in histograms {
            let mut counted = Counted::default();
            self.0
                .iter()
                .for_each(|part| histogram(part).add_to(&mut counted));
            out.histogram(family, &labels, &counted);
        }
    }
}

impl WorkerMetrics {
    /// Counts a request, and its upstream's time unless the request ended before the upstream
    /// responded.
    pub(super) fn decided(&self, decision: &Decision<'_>) {
        match decision.code {
            None => {
                self.allowed.fetch_add(1, Ordering::Relaxed);
            }
            Some(code) => self.codes.add(code),
        }
        self.total.observe(decision.latency);
        if let Some(upstream) = decision.upstream.filter(|upstream| upstream.has_ended) {
            self.upstream.observe(upstream.duration);
        }
    }

    /// Counts a token that was found in the cache.
    pub(super) fn cached(&self) {
        self.cache_hits.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a verification.
    pub(super) fn verified(&self, elapsed: Duration) {
        self.verification.observe(elapsed);
    }
}

#[cfg(test)]
mod tests {
    use http::{Method, StatusCode};
    use portcullis_guard::{RequestId, Timing};
    use portcullis_metadata::{ResourceUri, UnixTime};

    use super::*;

    /// J7: the parts of all workers are added, and a code has its decision.
    #[test]
    fn parts_are_added() {
        let metrics = ResourceMetrics::new(3);
        let id = RequestId::generate();
        let resource = ResourceUri::parse("https://r").unwrap();
        let decision = |code, upstream| {
            let mut decision = Decision::new(
                &id,
                UnixTime::default(),
                &Method::POST,
                "/",
                StatusCode::OK,
                &resource,
            );
            (decision.code, decision.upstream) = (code, upstream);
            decision
        };
        for part in metrics.0.iter().cycle().take(6) {
            part.decided(&decision(None, None));
            part.decided(&decision(Some("token.expired"), None));
        }
        let answered = Timing::new(Duration::ZERO, Duration::from_secs(1));
        let mut cancelled = answered;
        cancelled.has_ended = false;
        metrics
            .of_this_thread()
            .decided(&decision(Some("upstream.unreachable"), Some(answered)));
        metrics.0[1].decided(&decision(Some("client.gone"), Some(cancelled)));
        metrics.0[2].cached();
        let mut out = Exposition::default();
        metrics.write(&mut out, "https://r");
        let text = out.finish();
        for line in [
            "portcullis_requests_total{resource=\"https://r\",decision=\"allow\",code=\"none\"} 6\n",
            "portcullis_requests_total{resource=\"https://r\",decision=\"deny\",code=\"token.expired\"} 6\n",
            "portcullis_requests_total{resource=\"https://r\",decision=\"fail\",code=\"upstream.unreachable\"} 1\n",
            "portcullis_request_duration_seconds_count{resource=\"https://r\"} 14\n",
            "portcullis_upstream_duration_seconds_count{resource=\"https://r\"} 1\n",
            "portcullis_upstream_duration_seconds_sum{resource=\"https://r\"} 1.000000\n",
            "portcullis_token_cache_hits_total{resource=\"https://r\"} 1\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }
}

//! Histograms of durations with fixed buckets.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::microseconds;

/// The upper bounds of the buckets in microseconds, and as they are written.
pub(super) const BOUNDS: [(u64, &str); 17] = [
    (50, "0.00005"),
    (100, "0.0001"),
    (250, "0.00025"),
    (500, "0.0005"),
    (1_000, "0.001"),
    (2_500, "0.0025"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (500_000, "0.5"),
    (1_000_000, "1"),
    (2_500_000, "2.5"),
    (10_000_000, "10"),
    (30_000_000, "30"),
];

/// A histogram. The last bucket has no bound.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    sum_micros: AtomicU64,
}

/// The counts of a histogram, or of several together.
#[derive(Debug, Default)]
pub(super) struct Counted {
    pub(super) buckets: [u64; BOUNDS.len() + 1],
    pub(super) sum_micros: u64,
}

impl Histogram {
    /// Counts a duration.
    pub(super) fn observe(&self, duration: Duration) {
        let micros = microseconds(duration);
        let bucket = BOUNDS.partition_point(|(bound, _)| *bound < micros);
        // The array has a bucket for each bound and one more.
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
    }

    pub(super) fn add_to(&self, counted: &mut Counted) {
        for (sum, bucket) in counted.buckets.iter_mut().zip(&self.buckets) {
            *sum += bucket.load(Ordering::Relaxed);
        }
        counted.sum_micros = counted
            .sum_micros
            .wrapping_add(self.sum_micros.load(Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J7: a duration is in the first bucket whose bound it does not exceed, and each bound is
    /// written as it is.
    #[test]
    fn durations_are_in_their_buckets() {
        let histogram = Histogram::default();
        for micros in [0, 50, 51, 1_000, 30_000_000, 30_000_001, 3_600_000_000] {
            histogram.observe(Duration::from_micros(micros));
        }
        let mut counted = Counted::default();
        histogram.add_to(&mut counted);
        assert_eq!(counted.buckets[0], 2);
        assert_eq!(counted.buckets[1], 1);
        assert_eq!(counted.buckets[4], 1);
        assert_eq!(counted.buckets[16], 1);
        assert_eq!(counted.buckets[17], 2);
        assert_eq!(counted.sum_micros, 3_660_001_102);

        histogram.observe(Duration::MAX);
        for (micros, text) in BOUNDS {
            assert!(
                (text.parse::<f64>().unwrap() * 1e6 - micros as f64).abs() < 1e-6,
                "{text}"
            );
        }
        assert!(BOUNDS.is_sorted());
    }
}

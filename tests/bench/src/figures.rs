//! The measured values and the statistics of them.

use std::time::Duration;

use serde::Serialize;

use super::{process::Memory, variant::Variant};

/// One variant in one round.
#[derive(Clone, Copy, Default, Serialize)]
pub(super) struct Sample {
    /// The CPU time of the variant's process, user and system, in microseconds per request.
    pub(super) cpu_us: f64,
    /// Requests per second.
    pub(super) throughput: f64,
    /// The time that 99 % of the requests do not exceed, in milliseconds.
    pub(super) p99_ms: f64,
    /// The number of requests without an access line, if there is an access log.
    pub(super) lines_missing: usize,
}

/// All rounds. The samples of a round are in the order of [`Variant::ALL`].
#[derive(Default)]
pub(super) struct Figures(Vec<[Sample; Variant::COUNT]>);

/// The median and the range of a list of numbers.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

/// The figures of the server's start.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Starts {
    /// The time from the start until the server is ready, in milliseconds.
    pub(super) ready_ms: Spread,
    pub(super) idle_memory: Memory,
}

impl Figures {
    pub(super) fn add(&mut self, round: [Sample; Variant::COUNT]) {
        self.0.push(round);
    }

    /// Returns the number of rounds.
    pub(super) fn rounds(&self) -> usize {
        self.0.len()
    }

    /// Returns a variant's samples by round.
    pub(super) fn samples(&self, variant: Variant) -> Vec<Sample> {
        self.0.iter().map(|round| round[variant.index()]).collect()
    }

    pub(super) fn spread(&self, variant: Variant, number: impl Fn(&Sample) -> f64) -> Spread {
        Spread::of(
            self.0
                .iter()
                .map(|round| number(&round[variant.index()]))
                .collect(),
        )
    }

    /// Returns the spread of one figure of a variant, divided by nginx's in the same round.
    pub(super) fn ratio(&self, variant: Variant, number: impl Fn(&Sample) -> f64) -> Spread {
        self.ratio_to(Variant::Nginx, variant, number)
    }

    /// Returns the spread of one figure of a variant, divided by another variant's in the same
    /// round.
    pub(super) fn ratio_to(
        &self,
        other: Variant,
        variant: Variant,
        number: impl Fn(&Sample) -> f64,
    ) -> Spread {
        Spread::of(
            self.0
                .iter()
                .map(|round| number(&round[variant.index()]) / number(&round[other.index()]))
                .collect(),
        )
    }
}

impl Spread {
    /// Returns the spread of a list, which is not a number for an empty one.
    pub(super) fn of(mut numbers: Vec<f64>) -> Self {
        numbers.sort_by(f64::total_cmp);
        let at = |position: usize| numbers.get(position).copied().unwrap_or(f64::NAN);
        let last = numbers.len().saturating_sub(1);
        // An even number of numbers has two in the middle.
        Self {
            median: (at(last / 2) + at(numbers.len() / 2)) / 2.0,
            min: at(0),
            max: at(last),
        }
    }
}

impl Starts {
    pub(super) fn new(times: Vec<Duration>, idle_memory: Memory) -> Self {
        let ready_ms = Spread::of(
            times
                .into_iter()
                .map(|time| time.as_secs_f64() * 1e3)
                .collect(),
        );
        Self {
            ready_ms,
            idle_memory,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        for (numbers, median) in [
            (&[7.0][..], 7.0),
            (&[3.0, 1.0], 2.0),
            (&[9.0, 1.0, 2.0], 2.0),
            (&[4.0, 1.0, 2.0, 9.0], 3.0),
        ] {
            assert_eq!(Spread::of(numbers.to_vec()).median, median, "{numbers:?}");
        }
        assert!(Spread::of(Vec::new()).median.is_nan());
    }

    #[test]
    fn ratios_are_paired_by_round() {
        let mut figures = Figures::default();
        for (nginx, portcullis) in [(10.0, 11.0), (20.0, 24.0), (30.0, 27.0)] {
            let sample = |cpu_us| Sample {
                cpu_us,
                throughput: 1.0,
                p99_ms: 1.0,
                lines_missing: 0,
            };
            let mut round = [sample(1.0); Variant::COUNT];
            round[Variant::Nginx.index()] = sample(nginx);
            round[Variant::Portcullis.index()] = sample(portcullis);
            figures.add(round);
        }
        let ratio = figures.ratio(Variant::Portcullis, |sample| sample.cpu_us);
        assert_eq!(ratio.min, 0.9);
        assert_eq!(ratio.median, 1.1);
        assert_eq!(ratio.max, 1.2);
        assert_eq!(
            figures
                .spread(Variant::Nginx, |sample| sample.cpu_us)
                .median,
            20.0
        );
    }
}

use std::{fmt, time::Duration};

use anyhow::ensure;
use serde::Serialize;

use super::{sample::Sample, slope::Slope};
use crate::report::machine;

/// The part of the duration that is not measured, in which caches and tables fill.
const WARM_UP: f64 = 0.2;
/// The permitted growth, as a part of the mean.
const PERMITTED_GROWTH: f64 = 0.02;
/// The permitted growth in bytes, and in descriptors or tasks, where it is larger than that part of
/// the mean.
const PERMITTED_MEMORY: f64 = 1e6;
const PERMITTED_COUNT: f64 = 5.0;
/// The minimum number of measured samples. With fewer than 3, the slope is not a number, which is
/// not above any limit.
const MIN_SAMPLES: usize = 20;

/// The result of one run.
#[derive(Serialize)]
pub(super) struct Report {
    seconds: u64,
    requests: u64,
    rotations: u64,
    reloads: u64,
    memory: Figure,
    descriptors: Figure,
    tasks: Figure,
    /// The number of samples after the warm-up.
    measured_samples: usize,
    samples: Vec<Sample>,
}

/// What was measured of one quantity.
#[derive(Serialize)]
struct Figure {
    mean: f64,
    /// Per second.
    slope: Slope,
    /// From the first measured sample to the last one, on the line of least squares.
    growth: f64,
    permitted_growth: f64,
}

impl Report {
    /// Summarizes the samples after the warm-up.
    pub(super) fn new(
        samples: &[Sample],
        duration: Duration,
        requests: u64,
        rotations: u64,
        reloads: u64,
    ) -> Self {
        let warm_up = duration.as_secs_f64() * WARM_UP;
        let measured: Vec<Sample> = samples
            .iter()
            .filter(|sample| sample.seconds >= warm_up)
            .copied()
            .collect();
        let figure = |value: fn(&Sample) -> f64, permitted| Figure::of(&measured, value, permitted);
        Self {
            seconds: duration.as_secs(),
            requests,
            rotations,
            reloads,
            memory: figure(|sample| sample.memory, PERMITTED_MEMORY),
            descriptors: figure(|sample| sample.descriptors, PERMITTED_COUNT),
            tasks: figure(|sample| sample.tasks, PERMITTED_COUNT),
            measured_samples: measured.len(),
            samples: samples.to_vec(),
        }
    }

    /// Checks that nothing grew more than permitted. Fails if a quantity grows, or if there are too
    /// few samples to know it.
    pub(super) fn check_goals(&self) -> anyhow::Result<()> {
        ensure!(
            self.measured_samples >= MIN_SAMPLES,
            "{} samples were measured, and {MIN_SAMPLES} are needed; run it for longer",
            self.measured_samples
        );
        for (name, figure) in [
            ("memory, bytes", &self.memory),
            ("descriptors", &self.descriptors),
            ("tasks", &self.tasks),
        ] {
            let Figure {
                growth,
                permitted_growth,
                ..
            } = figure;
            ensure!(
                figure.is_steady(),
                "{name}: it grows by {growth:.1}, and {permitted_growth:.1} are permitted"
            );
        }
        Ok(())
    }
}

impl Figure {
    fn of(samples: &[Sample], value: fn(&Sample) -> f64, permitted: f64) -> Self {
        let points: Vec<_> = samples
            .iter()
            .map(|sample| (sample.seconds, value(sample)))
            .collect();
        let mean = points.iter().map(|(_, value)| value).sum::<f64>() / points.len() as f64;
        let slope = Slope::of(&points);
        let time = points
            .first()
            .zip(points.last())
            .map_or(0.0, |(first, last)| last.0 - first.0);
        Self {
            mean,
            slope,
            growth: slope.slope * time,
            permitted_growth: (mean * PERMITTED_GROWTH).max(permitted),
        }
    }

    fn is_steady(&self) -> bool {
        !self.slope.is_positive() || self.growth <= self.permitted_growth
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seconds,
            requests,
            rotations,
            reloads,
            ..
        } = self;
        writeln!(
            f,
            "{seconds} s, {requests} requests, {rotations} key rotations, {reloads} reloads; {}",
            machine()
        )?;
        write!(
            f,
            "{:<14}{:>10}{:>28}{:>24}",
            "", "mean", "slope per hour", "growth (permitted)"
        )?;
        for (name, figure, unit) in [
            ("memory, MB", &self.memory, 1e6),
            ("descriptors", &self.descriptors, 1.0),
            ("tasks", &self.tasks, 1.0),
        ] {
            let Figure {
                mean,
                slope,
                growth,
                permitted_growth,
            } = figure;
            let slope = format!(
                "{:+.3} +- {:.3}",
                slope.slope * 3_600.0 / unit,
                slope.error * 3_600.0 / unit
            );
            let growth = format!("{:+.2} ({:.2})", growth / unit, permitted_growth / unit);
            let verdict = if figure.is_steady() {
                "steady"
            } else {
                "GROWS"
            };
            write!(
                f,
                "\n{name:<14}{:>10.2}{slope:>28}{growth:>24}  {verdict}",
                mean / unit
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(memory: impl Fn(f64) -> f64, tasks: impl Fn(f64) -> f64) -> Report {
        let samples: Vec<Sample> = (0..600_u32)
            .map(f64::from)
            .map(|second| Sample::new(second, memory(second), 50.0, tasks(second)))
            .collect();
        Report::new(&samples, Duration::from_secs(600), 1, 1, 1)
    }

    #[test]
    fn a_leak_fails_the_run() {
        assert!(report(|_| 50e6, |_| 30.0).check_goals().is_ok());
        let leak = report(|second| 50e6 + 10_000.0 * second, |_| 30.0)
            .check_goals()
            .unwrap_err();
        assert_eq!(
            leak.to_string(),
            "memory, bytes: it grows by 4790000.0, and 1071900.0 are permitted"
        );
        let leak = report(|_| 50e6, |second| (30.0 + second / 50.0).floor())
            .check_goals()
            .unwrap_err();
        assert!(
            leak.to_string().starts_with("tasks: it grows by 9."),
            "{leak}"
        );
    }

    #[test]
    fn too_few_samples_fail_the_run() {
        let check = |count: u32| {
            let samples: Vec<_> = (0..count)
                .map(|second| Sample::new(120.0 + f64::from(second), 50e6, 50.0, 30.0))
                .collect();
            Report::new(&samples, Duration::from_secs(600), 1, 1, 1).check_goals()
        };
        for count in [0, 1, 2, 19] {
            let message = check(count).unwrap_err().to_string();
            assert_eq!(
                message,
                format!("{count} samples were measured, and 20 are needed; run it for longer")
            );
        }
        assert!(check(20).is_ok());
    }

    #[test]
    fn growth_before_the_measured_time_is_permitted() {
        let filling = report(|second| 50e6 + 1e6 * second.min(100.0), |_| 30.0);
        assert!(filling.check_goals().is_ok(), "{filling}");
        assert!(
            filling.to_string().contains("memory, MB        150.00"),
            "{filling}"
        );
    }
}

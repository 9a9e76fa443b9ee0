//! The report as a table and as JSON.

use std::fmt;

use serde_json::{Value, json};

// The goals: see `docs/contribute/benchmarks.md`.
/// The longest time of the first three steps with a cached token, in nanoseconds.
const CACHED_GOAL_NS: f64 = 1_500.0;
/// The longest time of an uncached verification, divided by that of josekit alone.
const UNCACHED_GOAL: f64 = 1.10;
/// The step of the first goal, which includes the two steps before it.
const CACHED_GOAL_STEP: usize = 2;

/// All figures.
pub(crate) struct Report {
    pub(crate) token_bytes: usize,
    pub(crate) cached: Vec<Step>,
    /// josekit alone, the whole verification, and that of an invalid signature.
    pub(crate) uncached: [Step; 3],
}

/// One step's figures.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    /// Nanoseconds per call, by round.
    pub(crate) times: Vec<f64>,
    /// Heap allocations per call, if they are counted.
    pub(crate) allocations: Option<u64>,
}

impl Report {
    /// Returns the figures as JSON.
    pub(crate) fn json(&self) -> Value {
        let steps: Vec<Value> = self
            .cached
            .iter()
            .chain(&self.uncached)
            .map(Step::json)
            .collect();
        json!({ "token_bytes": self.token_bytes, "steps": steps, "uncached_to_josekit": self.uncached_ratio() })
    }

    /// Returns the median of the ratios of the whole verification to josekit alone, by round.
    fn uncached_ratio(&self) -> f64 {
        let [alone, whole, _] = &self.uncached;
        median(
            whole
                .times
                .iter()
                .zip(&alone.times)
                .map(|(whole, alone)| whole / alone)
                .collect(),
        )
    }
}

impl Step {
    fn median(&self) -> f64 {
        median(self.times.clone())
    }

    fn json(&self) -> Value {
        json!({ "name": self.name, "median_ns": self.median(), "min_ns": min(&self.times), "allocations": self.allocations })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "one call, with an RS256 token of {} bytes",
            self.token_bytes
        )?;
        writeln!(
            f,
            "{:<26} {:>10} {:>10} {:>12}",
            "step", "median ns", "min ns", "allocations"
        )?;
        for step in self.cached.iter().chain(&self.uncached) {
            let allocations = step
                .allocations
                .map_or_else(|| "-".to_owned(), |count| count.to_string());
            writeln!(
                f,
                "{:<26} {:>10.0} {:>10.0} {allocations:>12}",
                step.name,
                step.median(),
                min(&step.times)
            )?;
        }
        let cached = &self.cached[CACHED_GOAL_STEP];
        let uncached = self.uncached_ratio();
        let is_met = |met| if met { "met" } else { "missed" };
        let is_cached_met = cached.median() <= CACHED_GOAL_NS && cached.allocations == Some(0);
        writeln!(
            f,
            "goal: the first three steps in {CACHED_GOAL_NS} ns without an allocation: {}",
            is_met(is_cached_met)
        )?;
        write!(
            f,
            "goal: an uncached verification at {UNCACHED_GOAL:.2} of josekit's: {uncached:.3}, {}",
            is_met(uncached <= UNCACHED_GOAL)
        )
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn min(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

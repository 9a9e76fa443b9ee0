//! The figures, for people and for machines.

use std::fmt;

use serde_json::{Value, json};

/// Goals: see `docs/contribute/benchmarks.md`.
const HOT_GOAL_NS: f64 = 1_500.0;
const COLD_GOAL: f64 = 1.10;
/// The step of the first goal, which contains the two before it.
const HOT_GOAL_STEP: usize = 2;

/// Everything that was measured.
pub(crate) struct Report {
    pub(crate) token_bytes: usize,
    pub(crate) hot: Vec<Step>,
    /// josekit alone, the whole, and the whole for an invalid signature.
    pub(crate) cold: [Step; 3],
}

/// One step's figures.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    /// Nanoseconds a call, by round.
    pub(crate) times: Vec<f64>,
    /// Heap allocations a call, where they are counted.
    pub(crate) allocations: Option<u64>,
}

impl Report {
    /// The same figures as JSON.
    pub(crate) fn json(&self) -> Value {
        let steps: Vec<Value> = self.hot.iter().chain(&self.cold).map(Step::json).collect();
        json!({ "token_bytes": self.token_bytes, "steps": steps, "uncached_to_josekit": self.cold_ratio() })
    }

    /// The whole against josekit alone, as the median of the ratios round by round.
    fn cold_ratio(&self) -> f64 {
        let [alone, whole, _] = &self.cold;
        median(whole.times.iter().zip(&alone.times).map(|(whole, alone)| whole / alone).collect())
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
        writeln!(f, "one call, with an RS256 token of {} bytes", self.token_bytes)?;
        writeln!(f, "{:<26} {:>10} {:>10} {:>12}", "step", "median ns", "min ns", "allocations")?;
        for step in self.hot.iter().chain(&self.cold) {
            let allocations = step.allocations.map_or_else(|| "-".to_owned(), |count| count.to_string());
            writeln!(f, "{:<26} {:>10.0} {:>10.0} {allocations:>12}", step.name, step.median(), min(&step.times))?;
        }
        let (hot, cold) = (&self.hot[HOT_GOAL_STEP], self.cold_ratio());
        let is_met = |met| if met { "met" } else { "missed" };
        let hot_met = hot.median() <= HOT_GOAL_NS && hot.allocations == Some(0);
        writeln!(f, "goal: the first three steps in {HOT_GOAL_NS} ns without an allocation: {}", is_met(hot_met))?;
        write!(
            f,
            "goal: an uncached verification at {COLD_GOAL:.2} of josekit's: {cold:.3}, {}",
            is_met(cold <= COLD_GOAL)
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

//! The report as tables and as JSON.

use std::{fmt, fs, thread};

use serde::{Serialize, Serializer};
use serde_json::json;

use super::{
    figures::{Figures, Spread, Starts},
    hostile::{HOSTILE_REQUESTS, RateRatios},
    load::CONNECTIONS,
    process::Memory,
    servers::{ALL_ON, BASELINE, BASELINE_ALL_ON, METRICS, PORTCULLIS, TRACES, VARIANTS},
};

/// Goals: see `docs/contribute/benchmarks.md`.
const CPU_GOAL: f64 = 1.10;
const THROUGHPUT_GOAL: f64 = 0.95;
const METRICS_GOAL: f64 = 1.03;
const TRACES_GOAL: f64 = 1.05;
const MEMORY_GOAL: f64 = 15.0;
const READY_GOAL: f64 = 50.0;
const RATE_RATIO_GOAL: f64 = 0.80;

/// The figures of whole requests.
pub(super) struct Report {
    pub(super) nginx: String,
    /// The number of measured [`VARIANTS`].
    pub(super) variants: usize,
    pub(super) request_bytes: usize,
    /// Requests per round and variant.
    pub(super) requests: usize,
    pub(super) figures: Figures,
    pub(super) starts: Starts,
    pub(super) memory_after: Memory,
    /// The rate of valid requests beside hostile ones.
    pub(super) beside_hostile: RateRatios,
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let variants: Vec<_> = VARIANTS[..self.variants]
            .iter()
            .enumerate()
            .map(|(number, name)| {
                json!({
                    "name": name,
                    "cpu_us": self.figures.spread(number, |sample| sample.cpu_us),
                    "throughput": self.figures.spread(number, |sample| sample.throughput),
                    "cpu_to_nginx": self.figures.ratio(number, |sample| sample.cpu_us),
                    "throughput_to_nginx": self.figures.ratio(number, |sample| sample.throughput),
                    "rounds": self.figures.samples(number),
                })
            })
            .collect();
        json!({
            "machine": machine(),
            "nginx": self.nginx,
            "request_bytes": self.request_bytes,
            "requests": self.requests,
            "connections": CONNECTIONS,
            "variants": variants,
            "start": self.starts,
            "memory_after": self.memory_after,
            "kept_beside_hostile": self.beside_hostile,
        })
        .serialize(serializer)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nginx, request_bytes, requests, figures, .. } = self;
        writeln!(
            f,
            "{} rounds of {requests} requests of {request_bytes} bytes, {CONNECTIONS} connections",
            figures.rounds()
        )?;
        writeln!(f, "{}, {nginx}", machine())?;
        writeln!(f, "every response was 200, and the upstream received exactly as many requests\n")?;
        writeln!(
            f,
            "{:<20}{:>23}{:>27}{:>23}{:>23}",
            "median (min to max)", "CPU us per request", "requests per second", "CPU / nginx", "throughput / nginx"
        )?;
        for (number, name) in VARIANTS[..self.variants].iter().enumerate() {
            writeln!(
                f,
                "{name:<20}{:>23}{:>27}{:>23}{:>23}",
                figures.spread(number, |sample| sample.cpu_us).show(1),
                figures.spread(number, |sample| sample.throughput).show(0),
                figures.ratio(number, |sample| sample.cpu_us).show(2),
                figures.ratio(number, |sample| sample.throughput).show(2),
            )?;
        }
        writeln!(f)?;
        self.goals(f)
    }
}

impl Report {
    fn goals(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpu = self.figures.ratio(PORTCULLIS, |sample| sample.cpu_us).median;
        let throughput = self.figures.ratio(PORTCULLIS, |sample| sample.throughput).median;
        let Starts { ready_ms, idle_memory } = self.starts;
        let (idle, after) = (idle_memory.megabytes(), self.memory_after.megabytes());
        let is_met = |met| if met { "met" } else { "missed" };
        writeln!(
            f,
            "portcullis, idle memory      {idle}, goal {MEMORY_GOAL} MB: {}",
            is_met(idle.resident <= MEMORY_GOAL)
        )?;
        writeln!(f, "portcullis, memory after     {after}")?;
        let missing: usize = self.figures.samples(PORTCULLIS).iter().map(|sample| sample.lines_missing).sum();
        writeln!(f, "portcullis, access lines     {missing} of {} missing", self.figures.rounds() * self.requests)?;
        writeln!(
            f,
            "portcullis, start to ready   {} ms, goal {READY_GOAL} ms: {}",
            ready_ms.show(1),
            is_met(ready_ms.median <= READY_GOAL)
        )?;
        for (name, ratio) in HOSTILE_REQUESTS.iter().zip(&self.beside_hostile.0) {
            writeln!(
                f,
                "portcullis, valid requests   {} of their rate beside as many {name}, goal {RATE_RATIO_GOAL:.2}: {}",
                ratio.show(2),
                is_met(ratio.median >= RATE_RATIO_GOAL)
            )?;
        }
        writeln!(f, "portcullis, CPU / nginx      {cpu:.2}, goal {CPU_GOAL:.2}: {}", is_met(cpu <= CPU_GOAL))?;
        let all_on = self.figures.ratio(ALL_ON, |sample| sample.cpu_us).median;
        writeln!(f, "all on, CPU / nginx          {all_on:.2}, goal {CPU_GOAL:.2}: {}", is_met(all_on <= CPU_GOAL))?;
        for (name, variant, goal) in [("metrics", METRICS, METRICS_GOAL), ("metrics and traces", TRACES, TRACES_GOAL)] {
            let ratio = self.figures.ratio_to(PORTCULLIS, variant, |sample| sample.cpu_us);
            writeln!(
                f,
                "{:<29}{}, goal {goal:.2}: {}",
                format!("{name}, CPU / portcullis"),
                ratio.show(3),
                is_met(ratio.median <= goal)
            )?;
        }
        if self.variants > BASELINE {
            for (name, variant, other) in [("portcullis", PORTCULLIS, BASELINE), ("all on", ALL_ON, BASELINE_ALL_ON)] {
                let ratio = self.figures.ratio_to(other, variant, |sample| sample.cpu_us);
                writeln!(f, "{:<29}{}", format!("{name}, CPU / baseline"), ratio.show(3))?;
            }
        }
        write!(
            f,
            "portcullis, throughput       {throughput:.2} of nginx, goal {THROUGHPUT_GOAL:.2}: {}",
            is_met(throughput >= THROUGHPUT_GOAL)
        )
    }
}

impl Spread {
    fn show(&self, digits: usize) -> String {
        let Self { median, min, max } = self;
        format!("{median:.digits$} ({min:.digits$} to {max:.digits$})")
    }
}

struct Megabytes {
    resident: f64,
    anonymous: f64,
}

impl Memory {
    fn megabytes(self) -> Megabytes {
        Megabytes { resident: self.resident as f64 / 1e6, anonymous: self.anonymous as f64 / 1e6 }
    }
}

impl fmt::Display for Megabytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} MB resident ({:.1} MB of it anonymous)", self.resident, self.anonymous)
    }
}

/// Returns a description of the machine and its load.
pub(super) fn machine() -> String {
    let text = |path| fs::read_to_string(path).unwrap_or_default();
    let processors = text("/proc/cpuinfo");
    let model = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown processor", |(_, name)| name.trim());
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let load = text("/proc/loadavg");
    format!("{cores} cores, {model}, load average {}", load.split(' ').next().unwrap_or_default())
}

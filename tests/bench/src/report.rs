//! The report as tables and as JSON.

use std::{fmt, fs, thread};

use serde::{Serialize, Serializer};
use serde_json::json;

use super::{
    figures::{Figures, Sample, Spread, Starts},
    hostile::{HOSTILE_REQUESTS, RateRatios},
    load::CONNECTIONS,
    process::Memory,
    variant::Variant,
};

// The goals: see `docs/contribute/benchmarks.md`.
/// The most CPU time of a request, divided by that of nginx.
const CPU_GOAL: f64 = 1.03;
/// The most CPU time of a request, divided by that of the bare hyper proxy.
const CPU_TO_PROXY_GOAL: f64 = 1.00;
/// The longest time that 99 % of the requests do not exceed, divided by that of the bare hyper
/// proxy.
const P99_TO_PROXY_GOAL: f64 = 1.00;
/// The least throughput, divided by that of nginx.
const THROUGHPUT_GOAL: f64 = 0.95;
/// The most CPU time of a request with metrics, divided by that without.
const METRICS_GOAL: f64 = 1.03;
/// The most CPU time of a request with metrics and traces, divided by that without.
const TRACES_GOAL: f64 = 1.05;
/// The most resident memory of an idle server, in MB.
const MEMORY_GOAL: f64 = 15.0;
/// The longest time from the start until the server is ready, in milliseconds.
const READY_GOAL: f64 = 50.0;
/// The least rate of valid requests beside hostile ones, divided by their rate beside valid ones.
const RATE_RATIO_GOAL: f64 = 0.80;

/// The figures of whole requests.
pub(super) struct Report {
    pub(super) nginx: String,
    /// The measured variants.
    pub(super) variants: &'static [Variant],
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
        let figures = |variant: &Variant| {
            json!({
                "name": variant.name(),
                "cpu_us": self.figures.spread(*variant, |sample| sample.cpu_us),
                "throughput": self.figures.spread(*variant, |sample| sample.throughput),
                "p99_ms": self.figures.spread(*variant, |sample| sample.p99_ms),
                "cpu_to_nginx": self.figures.ratio(*variant, |sample| sample.cpu_us),
                "throughput_to_nginx": self.figures.ratio(*variant, |sample| sample.throughput),
                "rounds": self.figures.samples(*variant),
            })
        };
        let variants: Vec<_> = self.variants.iter().map(figures).collect();
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
        let Self {
            nginx,
            request_bytes,
            requests,
            figures,
            ..
        } = self;
        writeln!(
            f,
            "{} rounds of {requests} requests of {request_bytes} bytes, {CONNECTIONS} connections",
            figures.rounds()
        )?;
        writeln!(f, "{}, {nginx}", machine())?;
        writeln!(
            f,
            "every response was 200, and the upstream received exactly as many requests\n"
        )?;
        writeln!(
            f,
            "{:<20}{:>23}{:>27}{:>23}{:>23}{:>23}",
            "median (min to max)",
            "CPU us per request",
            "requests per second",
            "99 % within, ms",
            "CPU / nginx",
            "throughput / nginx"
        )?;
        for variant in self.variants {
            writeln!(
                f,
                "{:<20}{:>23}{:>27}{:>23}{:>23}{:>23}",
                variant.name(),
                figures.spread(*variant, |sample| sample.cpu_us).show(1),
                figures.spread(*variant, |sample| sample.throughput).show(0),
                figures.spread(*variant, |sample| sample.p99_ms).show(2),
                figures.ratio(*variant, |sample| sample.cpu_us).show(2),
                figures.ratio(*variant, |sample| sample.throughput).show(2),
            )?;
        }
        writeln!(f)?;
        self.goals(f)
    }
}

impl Report {
    /// Returns a figure of the server under test, divided by that of the bare hyper proxy.
    fn to_proxy(&self, number: impl Fn(&Sample) -> f64) -> Spread {
        self.figures
            .ratio_to(Variant::Hyper, Variant::Portcullis, number)
    }

    /// Writes one line per goal.
    fn goals(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpu = self
            .figures
            .ratio(Variant::Portcullis, |sample| sample.cpu_us)
            .median;
        let throughput = self
            .figures
            .ratio(Variant::Portcullis, |sample| sample.throughput)
            .median;
        let Starts {
            ready_ms,
            idle_memory,
        } = self.starts;
        let idle = idle_memory.megabytes();
        let after = self.memory_after.megabytes();
        let is_met = |met| if met { "met" } else { "missed" };
        writeln!(
            f,
            "portcullis, idle memory      {idle}, goal {MEMORY_GOAL} MB: {}",
            is_met(idle.resident <= MEMORY_GOAL)
        )?;
        writeln!(f, "portcullis, memory after     {after}")?;
        let missing: usize = self
            .figures
            .samples(Variant::Portcullis)
            .iter()
            .map(|sample| sample.lines_missing)
            .sum();
        writeln!(
            f,
            "portcullis, access lines     {missing} of {} missing",
            self.figures.rounds() * self.requests
        )?;
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
        writeln!(
            f,
            "portcullis, CPU / nginx      {cpu:.2}, goal {CPU_GOAL:.2}: {}",
            is_met(cpu <= CPU_GOAL)
        )?;
        let all_on = self
            .figures
            .ratio(Variant::AllOn, |sample| sample.cpu_us)
            .median;
        writeln!(f, "all on, CPU / nginx          {all_on:.2}")?;
        for (name, goal, ratio) in [
            (
                "CPU / bare proxy",
                CPU_TO_PROXY_GOAL,
                self.to_proxy(|sample| sample.cpu_us),
            ),
            (
                "p99 / bare proxy",
                P99_TO_PROXY_GOAL,
                self.to_proxy(|sample| sample.p99_ms),
            ),
        ] {
            writeln!(
                f,
                "portcullis, {name:<17}{}, goal {goal:.2}: {}",
                ratio.show(2),
                is_met(ratio.median <= goal)
            )?;
        }
        for (variant, goal) in [
            (Variant::Metrics, METRICS_GOAL),
            (Variant::Traces, TRACES_GOAL),
        ] {
            let ratio = self
                .figures
                .ratio_to(Variant::Portcullis, variant, |sample| sample.cpu_us);
            writeln!(
                f,
                "{:<28} {}, goal {goal:.2}: {}",
                format!("{}, CPU / portcullis", variant.name()),
                ratio.show(3),
                is_met(ratio.median <= goal)
            )?;
        }
        if self.variants.contains(&Variant::Baseline) {
            for (variant, other) in [
                (Variant::Portcullis, Variant::Baseline),
                (Variant::AllOn, Variant::BaselineAllOn),
            ] {
                let ratio = self
                    .figures
                    .ratio_to(other, variant, |sample| sample.cpu_us);
                writeln!(
                    f,
                    "{:<28} {}",
                    format!("{}, CPU / baseline", variant.name()),
                    ratio.show(3)
                )?;
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

/// An amount of memory in MB, for people.
struct Megabytes {
    resident: f64,
    anonymous: f64,
}

impl Memory {
    fn megabytes(self) -> Megabytes {
        Megabytes {
            resident: self.resident as f64 / 1e6,
            anonymous: self.anonymous as f64 / 1e6,
        }
    }
}

impl fmt::Display for Megabytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.1} MB resident ({:.1} MB of it anonymous)",
            self.resident, self.anonymous
        )
    }
}

/// Returns a description of the machine and its load.
pub(super) fn machine() -> String {
    let text = |path| fs::read_to_string(path).unwrap_or_default();
    let processors = text("/proc/cpuinfo");
    let model = processors
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown processor", |(_, name)| name.trim());
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let load = text("/proc/loadavg");
    format!(
        "{cores} cores, {model}, load average {}",
        load.split(' ').next().unwrap_or_default()
    )
}

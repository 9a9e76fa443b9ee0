//! [`Report`]: the memory that streams take, and what remains.

use anyhow::ensure;
use serde::Serialize;

use crate::{process::Memory, report::machine};

/// The goal for the resident bytes of one stream: 16 KiB for the buffers of hyper, and 4 KiB for
/// everything else (`docs/contribute/benchmarks.md`, Event streams).
const STREAM_GOAL: f64 = 20.0 * KIB;
/// The goal for the growth at the end, as a part of the memory at the start. The allocator keeps 7
/// % to 10 % for each worker and size of allocation (`docs/contribute/benchmarks.md`, Event
/// streams).
const GROWTH_GOAL: f64 = 0.10;

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;

/// What was measured: the memory of the server's process. Memory of the kernel, such as that of
/// sockets, is not counted.
#[derive(Serialize)]
pub(super) struct Report {
    /// The streams that are open at once.
    streams: u32,
    /// The memory before the first stream.
    start: Memory,
    /// At least one.
    rounds: Vec<Round>,
    /// The resident bytes of one stream, in the round that took the most.
    bytes_per_stream: f64,
    /// The part of the memory at the start by which it has grown at the end.
    growth: f64,
}

/// The memory of the server while all streams are open, and after they have closed.
#[derive(Serialize)]
pub(super) struct Round {
    pub(super) open: Memory,
    pub(super) closed: Memory,
}

impl Report {
    /// Creates the report of the rounds. Fails if nothing was measured: there are no streams, no
    /// rounds, or no memory at the start.
    pub(super) fn new(streams: u32, start: Memory, rounds: Vec<Round>) -> anyhow::Result<Self> {
        ensure!(
            streams > 0 && !rounds.is_empty() && start.resident > 0,
            "nothing was measured"
        );
        let most = rounds
            .iter()
            .map(|round| round.open.resident)
            .max()
            .unwrap_or_default();
        let end = rounds.last().map_or(0, |round| round.closed.resident);
        let bytes_per_stream = most.saturating_sub(start.resident) as f64 / f64::from(streams);
        let growth = end as f64 / start.resident as f64 - 1.0;
        Ok(Self {
            streams,
            start,
            rounds,
            bytes_per_stream,
            growth,
        })
    }

    /// Prints the figures for people.
    pub(super) fn print(&self) {
        println!("{} streams; {}", self.streams, machine());
        for (label, text) in self.lines() {
            println!("{label:<20}{text}");
        }
    }

    fn lines(&self) -> Vec<(String, String)> {
        let memory = |memory: Memory| {
            let Memory {
                resident,
                anonymous,
            } = memory;
            format!(
                "{:>6.1} MiB ({:.1} MiB anonymous)",
                resident as f64 / MIB,
                anonymous as f64 / MIB
            )
        };
        let mut lines = vec![("at the start".to_owned(), memory(self.start))];
        for (number, round) in (1..).zip(&self.rounds) {
            lines.push((format!("round {number}, open"), memory(round.open)));
            lines.push((format!("round {number}, closed"), memory(round.closed)));
        }
        lines.push(("an idle stream".to_owned(), self.stream_figures()));
        lines.push(("growth at the end".to_owned(), self.growth_figures()));
        lines
    }

    fn stream_figures(&self) -> String {
        format!(
            "{:>6.1} KiB, goal {:.0} KiB",
            self.bytes_per_stream / KIB,
            STREAM_GOAL / KIB
        )
    }

    fn growth_figures(&self) -> String {
        format!(
            "{:>6.1} %, goal {:.0} %",
            self.growth * 100.0,
            GROWTH_GOAL * 100.0
        )
    }

    /// Compares the figures with the goals. Fails if a goal is missed. The message has the figures.
    pub(super) fn check_goals(&self) -> anyhow::Result<()> {
        let stream = self.stream_figures();
        ensure!(
            self.bytes_per_stream <= STREAM_GOAL,
            "an idle stream takes too much: {}",
            stream.trim_start()
        );
        let growth = self.growth_figures();
        ensure!(
            self.growth <= GROWTH_GOAL,
            "too much memory stays when all streams have closed: {}",
            growth.trim_start()
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A report of 100 streams from 1,000,000 bytes at the start, with the resident bytes of each
    /// round.
    fn report(rounds: &[(u64, u64)]) -> anyhow::Result<Report> {
        let memory = |resident| Memory {
            resident,
            anonymous: resident / 2,
        };
        let rounds = rounds.iter().map(|(open, closed)| Round {
            open: memory(*open),
            closed: memory(*closed),
        });
        Report::new(100, memory(1_000_000), rounds.collect())
    }

    #[test]
    fn the_largest_round_and_the_last_one_count() {
        let report = report(&[(3_000_000, 2_000_000), (2_000_000, 1_050_000)]).unwrap();
        assert_eq!(report.bytes_per_stream, 20_000.0);
        assert!((report.growth - 0.05).abs() < 1e-9, "{}", report.growth);
        report.check_goals().unwrap();
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["bytes_per_stream"], 20_000.0);
        assert!(json["growth"].is_f64());
    }

    #[test]
    fn a_missed_goal_is_an_error_with_figures() {
        let missed = |rounds: &[(u64, u64)]| {
            report(rounds)
                .unwrap()
                .check_goals()
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            missed(&[(4_072_000, 1_000_000)]),
            "an idle stream takes too much: 30.0 KiB, goal 20 KiB"
        );
        let growth = missed(&[(2_000_000, 1_250_000)]);
        assert_eq!(
            growth,
            "too much memory stays when all streams have closed: 25.0 %, goal 10 %"
        );
        report(&[(900_000, 900_000)])
            .unwrap()
            .check_goals()
            .unwrap();
    }

    #[test]
    fn nothing_measured_is_an_error() {
        assert!(report(&[]).is_err());
        assert!(
            Report::new(
                0,
                Memory {
                    resident: 1,
                    anonymous: 1
                },
                Vec::new()
            )
            .is_err()
        );
    }

    #[test]
    fn labels_have_their_column() {
        let lines = report(&[(2_000_000, 1_000_000); 12]).unwrap().lines();
        assert!(lines.iter().all(|(label, _)| label.len() < 20), "{lines:?}");
    }
}

//! [`Report`]: the memory that streams take, and what remains.

use anyhow::ensure;
use serde::Serialize;

use crate::{process::Memory, report::machine};

/// The goal for the resident bytes of one stream.
const STREAM_GOAL: f64 = 20.0 * 1024.0;
/// The goal for the growth at the end, as a part of the memory at the start.
const GROWTH_GOAL: f64 = 0.10;

/// What was measured.
#[derive(Serialize)]
pub(super) struct Report {
    /// The streams that are open at once.
    pub(super) streams: u32,
    /// The memory before the first stream.
    pub(super) start: Memory,
    pub(super) rounds: Vec<Round>,
}

/// The memory of the server while all streams are open, and after they have closed.
#[derive(Serialize)]
pub(super) struct Round {
    pub(super) open: Memory,
    pub(super) closed: Memory,
}

impl Report {
    /// Returns the resident bytes of one stream, in the round that took the most.
    fn bytes_per_stream(&self) -> f64 {
        let most = self.rounds.iter().map(|round| round.open.resident).max().unwrap_or_default();
        most.saturating_sub(self.start.resident) as f64 / f64::from(self.streams)
    }

    /// Returns the part of the memory at the start by which it has grown at the end.
    fn growth(&self) -> f64 {
        let end = self.rounds.last().map_or(0, |round| round.closed.resident);
        end as f64 / self.start.resident as f64 - 1.0
    }

    /// Prints the figures for people.
    pub(super) fn print(&self) {
        let megabytes = |memory: Memory| {
            format!("{:>6.1} MB ({:.1} MB anonymous)", memory.resident as f64 / 1e6, memory.anonymous as f64 / 1e6)
        };
        println!("{} streams; {}", self.streams, machine());
        println!("at the start      {}", megabytes(self.start));
        for (number, round) in self.rounds.iter().enumerate() {
            println!("round {}, open     {}", number + 1, megabytes(round.open));
            println!("round {}, closed   {}", number + 1, megabytes(round.closed));
        }
        println!("an idle stream    {:.1} KiB, goal {:.0} KiB", self.bytes_per_stream() / 1024.0, STREAM_GOAL / 1024.0);
        println!("growth at the end {:.0} %, goal {:.0} %", self.growth() * 100.0, GROWTH_GOAL * 100.0);
    }

    /// Checks the memory of a stream and what remains of it.
    ///
    /// # Errors
    /// Fails if a goal is missed.
    pub(super) fn check_goals(&self) -> anyhow::Result<()> {
        ensure!(self.bytes_per_stream() <= STREAM_GOAL, "an idle stream takes more than the goal");
        ensure!(self.growth() <= GROWTH_GOAL, "more memory stays than the goal when all streams have closed");
        Ok(())
    }
}

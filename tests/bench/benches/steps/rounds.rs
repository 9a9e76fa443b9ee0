//! Rounds in which the measured things take turns.

use std::time::Instant;

use allocation_counter::opt_out;

/// Something to be measured.
pub(crate) struct Case<'a> {
    pub(crate) name: &'static str,
    calls: usize,
    turn: usize,
    call: Box<dyn FnMut(usize) + 'a>,
}

impl<'a> Case<'a> {
    /// `call` is made so many times a round; it is told how many calls there were before.
    pub(crate) fn new(name: &'static str, calls: usize, call: impl FnMut(usize) + 'a) -> Self {
        Self { name, calls, turn: 0, call: Box::new(call) }
    }

    /// Makes calls that are not measured and not counted.
    pub(crate) fn call(&mut self, calls: usize) {
        (0..calls).for_each(&mut self.call);
    }

    /// Nanoseconds a call, over one round.
    fn round(&mut self) -> f64 {
        let started = Instant::now();
        (self.turn..self.turn + self.calls).for_each(&mut self.call);
        let elapsed = started.elapsed();
        self.turn += self.calls;
        elapsed.as_nanos() as f64 / self.calls as f64
    }
}

/// The times of each case, in nanoseconds a call, by round. Allocations are not counted meanwhile: that takes time, and no
/// server does it.
pub(crate) fn interleave(rounds: usize, cases: &mut [Case<'_>]) -> Vec<Vec<f64>> {
    let mut times = vec![Vec::with_capacity(rounds); cases.len()];
    opt_out(|| {
        for _ in 0..rounds {
            for (case, times) in cases.iter_mut().zip(&mut times) {
                times.push(case.round());
            }
        }
    });
    times
}

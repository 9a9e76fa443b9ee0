//! Rounds that measure several cases in turn.

use std::time::Instant;

use allocation_counter::opt_out;

/// A measured function.
pub(crate) struct Case<'a> {
    pub(crate) name: &'static str,
    calls: usize,
    next: usize,
    call: Box<dyn FnMut(usize) + 'a>,
}

impl<'a> Case<'a> {
    /// Creates a case that is called `calls` times per round, with the number of the call.
    pub(crate) fn new(name: &'static str, calls: usize, call: impl FnMut(usize) + 'a) -> Self {
        Self {
            name,
            calls,
            next: 0,
            call: Box::new(call),
        }
    }

    /// Makes calls that are not measured.
    pub(crate) fn call(&mut self, calls: usize) {
        (0..calls).for_each(&mut self.call);
    }

    /// Runs one round and returns the nanoseconds per call.
    fn round(&mut self) -> f64 {
        let started = Instant::now();
        (self.next..self.next + self.calls).for_each(&mut self.call);
        let elapsed = started.elapsed();
        self.next += self.calls;
        elapsed.as_nanos() as f64 / self.calls as f64
    }
}

/// Returns the times of each case by round, in nanoseconds per call. Allocations are not counted,
/// because counting takes time.
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

//! The cost of the steps of a request without sockets: `cargo bench --package portcullis-bench`, or
//! as part of `cargo xtask bench`. With `--json` the figures are printed as JSON.
//!
//! Each figure is the median of many short rounds. Each round measures every step, so that a busy
//! machine affects all of them.
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a benchmark")]

mod fixture;
mod josekit;
mod report;
mod rounds;

use std::thread;

use allocation_counter::measure;
use fixture::{Fixture, ready};
use report::{Report, Step};
use rounds::{Case, interleave};

/// The number of rounds of the steps with cached tokens, and of the calls of a step per round.
const ROUNDS: usize = 101;
const CALLS: usize = 2_000;
/// The number of rounds with uncached tokens, and of the tokens per round.
const UNCACHED_ROUNDS: usize = 31;
const UNCACHED_TOKENS: usize = 64;
/// The capacity of the cache in those rounds. It is full from the start, so that each new token
/// replaces another one, as in a server that has been running for a while.
const CACHED_TOKENS: usize = 1_024;

fn main() {
    let fixture = Fixture::new();
    // On a separate thread, because uncached tokens wait on threads that serve cached tokens.
    let cached = thread::scope(|scope| {
        scope
            .spawn(|| measure_cached(&fixture))
            .join()
            .expect("no panic")
    });
    let uncached = measure_uncached(&fixture);
    let report = Report {
        token_bytes: fixture.callers[0].token.secret().len(),
        cached,
        uncached,
    };
    if std::env::args().any(|argument| argument == "--json") {
        println!("{}", report.json());
    } else {
        println!("{report}");
    }
}

/// Measures the steps of a request with a cached token. Each step includes the previous ones.
fn measure_cached(fixture: &Fixture) -> Vec<Step> {
    let verifier = fixture.verifier(10 * CACHED_TOKENS);
    for caller in &fixture.callers {
        ready(verifier.verify(&caller.token)).expect("a valid token");
    }
    let cached = |number: usize| {
        let caller = &fixture.callers[number % fixture.callers.len()];
        verifier
            .cached(caller.token.secret())
            .expect("a cached token")
    };
    let authorized = |number: usize| {
        let verified = cached(number);
        assert!(fixture.allows(verified.principal()));
        verified
    };
    let resolved = |number: usize| {
        let verified = authorized(number);
        drop(fixture.resolve(verified.principal(), number));
    };
    let endpoint = fixture.endpoint(&verifier);
    let mut cases = [
        Case::new("cached verify", CALLS, |number| drop(cached(number))),
        Case::new("+ authorize", CALLS, |number| drop(authorized(number))),
        Case::new("+ session resolve", CALLS, resolved),
        Case::new("whole guard and endpoint", CALLS, |number| {
            endpoint.handle(&fixture.callers[number % fixture.callers.len()])
        }),
    ];
    let allocations: Vec<u64> = cases
        .iter_mut()
        .map(|case| measure(|| case.call(1)).count_total)
        .collect();
    let times = interleave(ROUNDS, &mut cases);
    let named = cases.iter().zip(times).zip(allocations);
    named
        .map(|((case, times), allocations)| Step {
            name: case.name,
            times,
            allocations: Some(allocations),
        })
        .collect()
}

/// Measures uncached tokens: josekit's `verify` alone, the whole verification, and the rejection of
/// an invalid signature.
fn measure_uncached(fixture: &Fixture) -> [Step; 3] {
    let tokens = fixture.fresh_tokens(CACHED_TOKENS + UNCACHED_ROUNDS * UNCACHED_TOKENS);
    let josekit = fixture.josekit();
    let verifier = fixture.verifier(CACHED_TOKENS);
    let (earlier, tokens) = tokens.split_at(CACHED_TOKENS);
    for token in earlier {
        ready(verifier.verify(token)).expect("a valid token");
    }
    let signed: Vec<_> = tokens
        .iter()
        .map(|token| josekit.split(token.secret()))
        .collect();
    let forged: Vec<_> = tokens.iter().map(Fixture::forged).collect();
    let mut cases = [
        Case::new("josekit verify alone", UNCACHED_TOKENS, |number| {
            josekit.verify(&signed[number])
        }),
        Case::new("uncached verify", UNCACHED_TOKENS, |number| {
            ready(verifier.verify(&tokens[number])).expect("a valid token");
        }),
        Case::new("invalid signature", UNCACHED_TOKENS, |number| {
            ready(verifier.verify(&forged[number])).expect_err("an invalid token");
        }),
    ];
    let times = interleave(UNCACHED_ROUNDS, &mut cases);
    let mut steps = cases.iter().zip(times).map(|(case, times)| Step {
        name: case.name,
        times,
        allocations: None,
    });
    std::array::from_fn(|_| steps.next().expect("as many as there are cases"))
}

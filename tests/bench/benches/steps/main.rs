//! What the steps of a request cost without sockets: `cargo bench --package portcullis-scenarios`, or as part of
//! `cargo xtask bench`. With `--json` the figures are printed for machines.
//!
//! Each figure is the median of many short rounds, in which the steps take turns: a machine that is busy is busy for
//! all of them.
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a benchmark")]

mod report;
mod rounds;
mod stage;

use std::thread;

use allocation_counter::measure;
use report::{Report, Step};
use rounds::{Case, interleave};
use stage::{Stage, ready};

/// Rounds of cheap steps, and the calls of a step in one of them.
const ROUNDS: usize = 101;
const CALLS: usize = 2_000;
/// Rounds of signatures, each over other tokens.
const COLD_ROUNDS: usize = 31;
const COLD_TOKENS: usize = 64;
/// The tokens that are remembered when those rounds begin: all that there is room for, as in a server that has been up
/// for a while, so that each new one takes the place of another.
const REMEMBERED: usize = 1_024;

fn main() {
    let stage = Stage::new();
    // On a thread of its own: where known tokens are served, unknown ones wait.
    let hot = thread::scope(|scope| scope.spawn(|| hot(&stage)).join().expect("no panic"));
    let cold = cold(&stage);
    let report = Report { token_bytes: stage.callers[0].token.secret().len(), hot, cold };
    if std::env::args().any(|argument| argument == "--json") {
        println!("{}", report.json());
    } else {
        println!("{report}");
    }
}

/// A request whose token was verified before: each step contains the ones before it.
fn hot(stage: &Stage) -> Vec<Step> {
    let verifier = stage.verifier(10 * REMEMBERED);
    for caller in &stage.callers {
        ready(verifier.verify(&caller.token)).expect("a good token");
    }
    let cached = |turn: usize| {
        let caller = &stage.callers[turn % stage.callers.len()];
        verifier.cached(caller.token.secret()).expect("a token verified before")
    };
    let authorized = |turn: usize| {
        let verified = cached(turn);
        assert!(stage.allows(verified.principal()));
        verified
    };
    let resolved = |turn: usize| {
        let verified = authorized(turn);
        drop(stage.resolve(verified.principal(), turn));
    };
    let endpoint = stage.endpoint(&verifier);
    let mut cases = [
        Case::new("cached verify", CALLS, |turn| drop(cached(turn))),
        Case::new("+ authorize", CALLS, |turn| drop(authorized(turn))),
        Case::new("+ session resolve", CALLS, resolved),
        Case::new("whole guard and endpoint", CALLS, |turn| {
            endpoint.handle(&stage.callers[turn % stage.callers.len()])
        }),
    ];
    let allocations: Vec<u64> = cases.iter_mut().map(|case| measure(|| case.call(1)).count_total).collect();
    let times = interleave(ROUNDS, &mut cases);
    let named = cases.iter().zip(times).zip(allocations);
    named.map(|((case, times), allocations)| Step { name: case.name, times, allocations: Some(allocations) }).collect()
}

/// Tokens never seen before: what josekit's `verify` takes, the whole verification, and that of an invalid signature.
fn cold(stage: &Stage) -> [Step; 3] {
    let (tokens, josekit) = (stage.fresh_tokens(REMEMBERED + COLD_ROUNDS * COLD_TOKENS), stage.josekit());
    let verifier = stage.verifier(REMEMBERED);
    let (earlier, tokens) = tokens.split_at(REMEMBERED);
    for token in earlier {
        ready(verifier.verify(token)).expect("a good token");
    }
    let signed: Vec<_> = tokens.iter().map(|token| josekit.split(token.secret())).collect();
    let forged: Vec<_> = tokens.iter().map(Stage::forged).collect();
    let mut cases = [
        Case::new("josekit verify alone", COLD_TOKENS, |turn| josekit.verify(&signed[turn])),
        Case::new("uncached verify", COLD_TOKENS, |turn| {
            ready(verifier.verify(&tokens[turn])).expect("a good token");
        }),
        Case::new("invalid signature", COLD_TOKENS, |turn| {
            ready(verifier.verify(&forged[turn])).expect_err("a bad token");
        }),
    ];
    let times = interleave(COLD_ROUNDS, &mut cases);
    let mut steps = cases.iter().zip(times).map(|(case, times)| Step { name: case.name, times, allocations: None });
    std::array::from_fn(|_| steps.next().expect("as many as there are cases"))
}

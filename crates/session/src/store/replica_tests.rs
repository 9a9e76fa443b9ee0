//! Random histories of three processes that share a journal, with checks of what each of them must
//! and must not do.

mod environment;
mod history;

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use parking_lot::Mutex;
use portcullis_metadata::UnixTime;
use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner},
};

use super::{
    tests::{ALICE, MALLORY, confirmed, target},
    *,
};
use crate::{
    end_reason::EndReason,
    ends::EndsLimits,
    error::ResolveError,
    fault_injection::{Fault, inject},
    identifier::{AssociatedData, Identifier, Record, SessionKey, open},
    journal::{EndTicket, LastUse, SessionEnd, SessionJournal},
    scope::EndScope,
};

use environment::{Message, ReplicaClock, ReplicaJournal, SharedStore, Step, any_step};
use history::History;

const OWNERS: [Owner<'_>; 2] = [ALICE, MALLORY];
const SCOPES: [&str; 2] = ["a", "a b"];
const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const IDLE: u64 = 30 * MINUTE;
const LIFETIME: u64 = 45 * MINUTE;
const GRACE: u64 = 5 * MINUTE;
const PEER_DELAY: u64 = 65 * SECOND;
/// The maximum difference of two clocks.
const SKEW: u64 = 5 * SECOND;
/// The time between two sweeps and batches of last uses.
const BATCH: u64 = MINUTE;
const START: u64 = 1_800_000_000 * SECOND;
/// A low limit, so that histories reach it.
const PER_OWNER: usize = 3;

fn key() -> SessionKey {
    SessionKey::new(1, &[5; 32])
}

fn fail<T>(reason: impl Into<String>) -> Result<T, TestCaseError> {
    Err(TestCaseError::fail(reason.into()))
}

/// Runs this many random histories.
fn run(cases: u32) -> Result<(), String> {
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let steps = proptest::collection::vec(any_step(), 1..60);
    runner
        .run(&steps, |steps| {
            let mut history = History::new();
            steps.iter().try_for_each(|step| history.apply(step))
        })
        .map_err(|error| error.to_string())
}

/// E7, E9, E12: for all histories of three processes with different clocks, with their shared store
/// lost or not: an ended session stays ended in all its identifiers, no one else uses it, its
/// lifetime and idle time hold everywhere, and it is not lost.
#[test]
fn histories_of_replicas_keep_the_invariants() {
    inject(None);
    if let Err(error) = run(300) {
        panic!("{error}");
    }
}

/// E12: the histories find each injected fault.
#[test]
fn histories_find_injected_faults() {
    for (fault, found) in [
        (Fault::IgnoredTombstones, "its end"),
        (Fault::EndOfOneGeneration, "its end"),
        (Fault::MissingFloor, "its end"),
        (Fault::AssumedRecord, "its end"),
        (Fault::OwnViewOfIdleTime, "a session is lost"),
        (Fault::LifetimeFromFirstSight, "its lifetime"),
        (Fault::UnboundOwner, "another owner"),
    ] {
        inject(Some(fault));
        let result = run(1_000);
        inject(None);
        let error = result.expect_err(&format!("{fault:?} is not found"));
        assert!(error.contains(found), "{fault:?}: {error}");
    }
}

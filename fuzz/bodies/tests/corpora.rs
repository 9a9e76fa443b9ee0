//! Replays the committed corpora, as they are and with small changes, through every target.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use portcullis_fuzz_bodies::{Mutator, TARGETS};

/// How long the changed copies of one input may take, for bodies that are slow.
const MAX_TIME: Duration = Duration::from_millis(200);

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpora")
}

fn inputs(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(corpora().join(target)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect()
}

#[test]
fn every_target_has_a_corpus_and_every_corpus_a_target() {
    let mut folders: Vec<String> = fs::read_dir(corpora())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    folders.sort();
    let targets: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(folders, targets);
    for target in targets {
        assert!(inputs(target).len() >= 10, "{target}");
        let program = format!("../fuzz_targets/{target}.rs");
        assert!(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join(&program)
                .exists(),
            "{program}"
        );
    }
}

/// B5, C9, F4: no committed input panics in any parser of untrusted bytes.
#[test]
fn corpora_replay() {
    for (target, body) in TARGETS {
        for (path, input) in inputs(target) {
            println!("{}", path.display());
            body(&input);
        }
    }
}

/// B5, C9, F4: no input that is cut, joined to another one, or changed in a few bytes panics in any
/// parser.
#[test]
fn mutated_corpora_replay() {
    let mut mutator = Mutator::new(0x9E37_79B9_7F4A_7C15);
    for (target, body) in TARGETS {
        let inputs = inputs(target);
        for (path, input) in &inputs {
            println!("{}", path.display());
            let begun = Instant::now();
            for _ in 0..100 {
                if begun.elapsed() > MAX_TIME {
                    break;
                }
                let other = &inputs[mutator.below(inputs.len())].1;
                body(&mutator.mutated(input, other));
            }
        }
    }
}

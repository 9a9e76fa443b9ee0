//! Runs the body of a target with inputs and changed copies of them, and catches panics.

use std::{
    cell::RefCell,
    fs,
    panic::{self, AssertUnwindSafe},
    path::Path,
    sync::Once,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use portcullis_fuzz_bodies::{Body, Mutator};

use super::corpus::Input;

/// The maximum number of changed copies of each input.
const MUTATIONS: usize = 500;
/// How long the copies of one input may take, for bodies that are slow.
const MAX_TIME: Duration = Duration::from_millis(500);

thread_local! {
    /// The message of the last panic of this thread. `None` unless a body runs on it.
    static PANIC_MESSAGE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The number of inputs that a target was called with, and the time.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) inputs: usize,
    pub(super) mutations: usize,
    pub(super) took: Duration,
    /// The time of the input that took longest.
    pub(super) slowest: Duration,
}

/// An input on which a body panics.
#[derive(Debug)]
pub(super) struct Failure {
    bytes: Vec<u8>,
    origin: String,
    message: String,
}

/// Runs a body with all inputs, and with changed copies of them. Fails at the first panic.
pub(super) fn replay(body: Body, inputs: &[Input]) -> Result<Counts, Failure> {
    replay_within(MAX_TIME, body, inputs)
}

/// As [`replay`], with another time for the copies of one input.
fn replay_within(max_time: Duration, body: Body, inputs: &[Input]) -> Result<Counts, Failure> {
    capture_panics_of_bodies();
    let started = Instant::now();
    let mut counts = Counts::default();
    for input in inputs {
        counts.slowest = counts
            .slowest
            .max(run(body, &input.bytes, || input.name.clone())?);
        counts.inputs += 1;
        let mut mutator = Mutator::new(seed(&input.name));
        let begun = Instant::now();
        for number in 0..MUTATIONS {
            if begun.elapsed() > max_time {
                break;
            }
            let other = &inputs[mutator.below(inputs.len())].bytes;
            let mutated = mutator.mutated(&input.bytes, other);
            let took = run(body, &mutated, || {
                format!("mutation {number} of {}", input.name)
            })?;
            counts.slowest = counts.slowest.max(took);
            counts.mutations += 1;
        }
    }
    counts.took = started.elapsed();
    Ok(counts)
}

/// Runs a body with one input, and returns the time.
fn run(body: Body, bytes: &[u8], origin: impl FnOnce() -> String) -> Result<Duration, Failure> {
    PANIC_MESSAGE.set(Some(String::new()));
    let started = Instant::now();
    let result = panic::catch_unwind(AssertUnwindSafe(|| body(bytes)));
    let took = started.elapsed();
    let message = PANIC_MESSAGE.take().unwrap_or_default();
    match result {
        Ok(()) => Ok(took),
        Err(_) => Err(Failure {
            bytes: bytes.to_vec(),
            origin: origin(),
            message,
        }),
    }
}

/// Captures the messages of panics in a body for the report. Other panics are printed as before.
fn capture_panics_of_bodies() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            let is_captured = PANIC_MESSAGE.with_borrow_mut(|message| {
                message
                    .as_mut()
                    .map(|message| *message = panic.to_string())
                    .is_some()
            });
            if !is_captured {
                print(panic);
            }
        }));
    });
}

/// Returns a hash of the name (FNV-1a), so that a new file does not change the mutations of others.
fn seed(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl Failure {
    /// Writes the input into a folder, and returns a description of the failure. Fails if the file
    /// cannot be written.
    pub(super) fn save(&self, target: &str, folder: &Path) -> anyhow::Result<String> {
        let path = folder.join(target);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, &self.bytes))
            .with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(format!(
            "{target}: {}, saved as {}: {}",
            self.origin,
            path.display(),
            self.message.replace('\n', " ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As [`super::replay`], however slow the machine is.
    fn replay(body: Body, inputs: &[Input]) -> Result<Counts, Failure> {
        replay_within(Duration::MAX, body, inputs)
    }

    fn inputs(texts: &[&str]) -> Vec<Input> {
        texts
            .iter()
            .map(|text| Input {
                name: (*text).to_owned(),
                bytes: text.as_bytes().to_vec(),
            })
            .collect()
    }

    #[test]
    fn everything_is_counted() {
        let counts = replay(|_| (), &inputs(&["one", "two"])).unwrap();
        assert_eq!(counts.inputs, 2);
        assert_eq!(counts.mutations, 2 * MUTATIONS);
    }

    #[test]
    fn a_panic_is_a_failure() {
        let body = |bytes: &[u8]| assert!(!bytes.starts_with(b"the bad"), "no {}", "bad ones");
        let failure = replay(body, &inputs(&["the bad one", "{}"])).unwrap_err();
        assert_eq!(failure.bytes.as_slice(), b"the bad one".as_slice());
        assert_eq!(failure.origin.as_str(), "the bad one");
        assert!(
            failure.message.contains("no bad ones"),
            "{}",
            failure.message
        );
    }

    #[test]
    fn shallow_bugs_are_found() {
        let failure =
            replay(|bytes| assert!(!bytes.contains(&0)), &inputs(&["a", "b"])).unwrap_err();
        assert!(failure.origin.starts_with("mutation "));
        assert!(failure.bytes.contains(&0));
        let cut = replay(
            |bytes| assert!(bytes.is_empty() || bytes.ends_with(b"}")),
            &inputs(&["{}"]),
        );
        assert!(cut.is_err());
    }
}

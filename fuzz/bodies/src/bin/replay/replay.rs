//! Runs one target's body over inputs and damaged copies of them, and catches its panics.

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

/// Damaged copies of each input.
const MUTATIONS: usize = 500;

thread_local! {
    /// What the last panic of this thread said, while a body runs on it.
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// What a target went through.
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
pub(super) struct Find {
    bytes: Vec<u8>,
    origin: String,
    said: String,
}

/// Runs a body over all inputs, and over damaged copies of them. It ends at the first panic.
pub(super) fn replay(body: Body, inputs: &[Input]) -> Result<Counts, Find> {
    keep_panics_of_bodies();
    let started = Instant::now();
    let mut counts = Counts::default();
    for input in inputs {
        counts.slowest = counts.slowest.max(run(body, &input.bytes, || input.name.clone())?);
        counts.inputs += 1;
        let mut mutator = Mutator::new(seed(&input.name));
        for number in 0..MUTATIONS {
            let other = &inputs[mutator.below(inputs.len())].bytes;
            let mutated = mutator.mutated(&input.bytes, other);
            let took = run(body, &mutated, || format!("mutation {number} of {}", input.name))?;
            counts.slowest = counts.slowest.max(took);
            counts.mutations += 1;
        }
    }
    counts.took = started.elapsed();
    Ok(counts)
}

fn run(body: Body, bytes: &[u8], origin: impl FnOnce() -> String) -> Result<Duration, Find> {
    SAID.set(Some(String::new()));
    let started = Instant::now();
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| body(bytes)));
    let took = started.elapsed();
    let said = SAID.take().unwrap_or_default();
    match outcome {
        Ok(()) => Ok(took),
        Err(_) => Err(Find { bytes: bytes.to_vec(), origin: origin(), said }),
    }
}

/// Panics of a body are kept for the report; all others are told as ever.
fn keep_panics_of_bodies() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let tell = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            let is_kept = SAID.with_borrow_mut(|said| said.as_mut().map(|said| *said = panic.to_string()).is_some());
            if !is_kept {
                tell(panic);
            }
        }));
    });
}

/// By name (FNV-1a), so that a new file does not change the damage to others.
fn seed(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl Find {
    /// Writes the input into a folder, and says what happened.
    pub(super) fn keep(&self, target: &str, folder: &Path) -> anyhow::Result<String> {
        let path = folder.join(target);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, &self.bytes))
            .with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(format!("{target}: {}, kept in {}: {}", self.origin, path.display(), self.said.replace('\n', " ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(texts: &[&str]) -> Vec<Input> {
        texts.iter().map(|text| Input { name: (*text).to_owned(), bytes: text.as_bytes().to_vec() }).collect()
    }

    #[test]
    fn everything_is_counted() {
        let counts = replay(|_| (), &inputs(&["one", "two"])).unwrap();
        assert_eq!(counts.inputs, 2);
        assert_eq!(counts.mutations, 2 * MUTATIONS);
    }

    #[test]
    fn a_panic_on_an_input_is_a_find() {
        let body = |bytes: &[u8]| assert!(!bytes.starts_with(b"the bad"), "no {}", "bad ones");
        let find = replay(body, &inputs(&["the bad one", "{}"])).unwrap_err();
        assert_eq!(find.bytes.as_slice(), b"the bad one".as_slice());
        assert_eq!(find.origin.as_str(), "the bad one");
        assert!(find.said.contains("no bad ones"), "{}", find.said);
    }

    #[test]
    fn shallow_bugs_are_found() {
        let find = replay(|bytes| assert!(!bytes.contains(&0)), &inputs(&["a", "b"])).unwrap_err();
        assert!(find.origin.starts_with("mutation "));
        assert!(find.bytes.contains(&0));
        let cut = replay(|bytes| assert!(bytes.is_empty() || bytes.ends_with(b"}")), &inputs(&["{}"]));
        assert!(cut.is_err());
    }
}

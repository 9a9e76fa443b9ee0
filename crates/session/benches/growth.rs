//! The memory of a session, and the time to find, open and adopt one, with a thousand to a million sessions:
//! `cargo bench --package portcullis-session`, or as part of `cargo xtask bench`. Each result is a line of JSON.
//!
//! Each session has an owner of its own, with names as long as those of real issuers. *Allocated* is the memory that the process
//! requested from the allocator, and *resident* the memory that the kernel assigned, including the overhead of the allocator.
#![allow(clippy::expect_used, clippy::print_stdout, missing_docs, reason = "a benchmark")]

use std::{
    fs,
    hint::black_box,
    process::{Command, Stdio},
    sync::Arc,
    time::Instant,
};

use allocation_counter::measure;
use portcullis_metadata::{ResourceUri, Scopes, SystemClock};
use portcullis_session::{Identifier, Owner, SessionKey, SessionSettings, SessionStore, SessionTarget};

const SIZES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];
const SIZE: &str = "--size";
const ISSUER: &str = "https://auth.example.com/realms/prod";
const CLIENT: &str = "4b0c3f9e-desktop-client";
/// The number of sessions that are looked up in turn: few enough for the caches of any machine, like the sessions in use.
const CALLERS: usize = 64;
const ROUNDS: usize = 101;
const LOOKUPS: usize = 2_000;

struct Row {
    sessions: usize,
    allocated: usize,
    resident: usize,
    lookup: f64,
    cold_lookup: f64,
    allocations: u64,
    unseal: f64,
    adopt: f64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(size) = arguments.iter().position(|argument| argument == SIZE).and_then(|at| arguments.get(at + 1)) {
        return println!("{}", grow(size.parse().expect("a number")).json());
    }
    // Each store has a process of its own, because the allocator keeps memory of the previous one.
    let rows: Vec<String> = SIZES.iter().map(|&sessions| measured_alone(sessions)).collect();
    if arguments.iter().any(|argument| argument == "--json") {
        println!("[{}]", rows.join(","));
    } else {
        println!("{}", rows.join("\n"));
    }
}

fn measured_alone(sessions: usize) -> String {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program).args([SIZE, &sessions.to_string()]).stderr(Stdio::inherit()).output();
    let output = output.expect("it starts");
    assert!(output.status.success(), "{sessions} sessions: {}", output.status);
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// Opens this many sessions, and measures memory and lookups.
fn grow(sessions: usize) -> Row {
    let mut settings = SessionSettings::new(SessionKey::random().expect("random bytes"));
    settings.max_total = sessions;
    let clock = Arc::new(SystemClock::new());
    let store = SessionStore::new(settings.clone(), clock.clone(), Arc::new(()));
    let resource = ResourceUri::parse("https://mcp.example.com/mcp").expect("a resource");
    let target = SessionTarget::new(resource.clone(), "http://127.0.0.1:8000/mcp");
    let scopes = Scopes::parse("mcp:tools").expect("scopes");
    let mut identifiers: Vec<Option<Identifier>> = vec![None; sessions];

    // This makes the table of identifiers resident.
    identifiers.fill(Some(open(&store, &target, &scopes, sessions)));
    let before = resident();
    let counted = measure(|| {
        for (number, identifier) in identifiers.iter_mut().enumerate().skip(1) {
            *identifier = Some(open(&store, &target, &scopes, number));
        }
    });
    let resident = resident().saturating_sub(before) / sessions;
    let find = |number: usize| {
        let subject = subject(number);
        let identifier = identifiers[number].as_ref().expect("it was opened");
        let started = Instant::now();
        let session = store.resolve(&target, owner(&subject), &scopes, identifier.as_bytes());
        drop(black_box(session.expect("a live session")));
        started.elapsed().as_nanos() as f64
    };
    let step = sessions / CALLERS;
    let callers: Vec<_> = (0..CALLERS)
        .map(|turn| 1 + turn * step)
        .map(|number| (subject(number), identifiers[number].clone().expect("it was opened")))
        .collect();
    let lookups = || {
        for turn in 0..LOOKUPS {
            let (subject, identifier) = &callers[turn % CALLERS];
            let session = store.resolve(&target, owner(subject), &scopes, identifier.as_bytes());
            drop(black_box(session.expect("a live session")));
        }
    };
    let rounds = (0..ROUNDS).map(|_| {
        let started = Instant::now();
        lookups();
        started.elapsed().as_nanos() as f64 / LOOKUPS as f64
    });
    let lookup = median(rounds.collect());

    // Another process with the key. Its upstream differs, which is checked after the identifier is opened.
    let replica = SessionStore::new(settings, clock, Arc::new(()));
    let moved = SessionTarget::new(resource, "http://127.0.0.1:9000/mcp");
    let first_use = |target: &SessionTarget, number: usize| {
        let subject = subject(number);
        let identifier = identifiers[number].as_ref().expect("it was opened");
        let started = Instant::now();
        let session = replica.resolve(target, owner(&subject), &scopes, identifier.as_bytes());
        let taken = started.elapsed().as_nanos() as f64;
        drop(black_box(session));
        taken
    };
    let first_uses =
        |target: &SessionTarget| median((1..sessions.min(20_000)).map(|number| first_use(target, number)).collect());
    let unseal = first_uses(&moved);
    let adopt = first_uses(&target);

    // The stride has no common divisor with the count: each session is found once, and hardly any is in a cache.
    let cold = (0..sessions.min(20_000)).map(|turn| find(1 + turn * 7_919 % (sessions - 1)));
    Row {
        sessions,
        allocated: counted.bytes_current as usize / sessions,
        resident,
        lookup,
        cold_lookup: median(cold.collect()),
        allocations: measure(lookups).count_total,
        unseal,
        adopt,
    }
}

fn open(store: &SessionStore, target: &SessionTarget, scopes: &Scopes, number: usize) -> Identifier {
    let subject = subject(number);
    let reservation = store.reserve(target, owner(&subject), scopes).expect("capacity");
    let session = reservation.open(Box::from(*b"11111111-2222-3333-4444-555555555555"), Some("2025-11-25"));
    session.expect("capacity").identifier()
}

fn subject(number: usize) -> String {
    format!("f81d4fae-7dec-11d0-a765-{number:012}")
}

fn owner(subject: &str) -> Owner<'_> {
    Owner::Subject { issuer: ISSUER, subject, client: Some(CLIENT) }
}

/// Returns the resident memory of this process in bytes.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") << 10
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

impl Row {
    /// The row as one JSON object.
    fn json(&self) -> String {
        format!(
            r#"{{"sessions":{},"allocated_bytes":{},"resident_bytes":{},"lookup_ns":{:.1},"any_lookup_ns":{:.1},"unseal_ns":{:.1},"adopt_ns":{:.1},"allocations":{}}}"#,
            self.sessions,
            self.allocated,
            self.resident,
            self.lookup,
            self.cold_lookup,
            self.unseal,
            self.adopt,
            self.allocations
        )
    }
}

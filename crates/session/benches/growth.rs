//! The memory of a session, and the time to find one, to open its identifier and to adopt it, with
//! a thousand to a million sessions: `cargo bench --package portcullis-session`, or as part of
//! `cargo xtask bench`. Each result is a line of JSON.
//!
//! Each session has an owner of its own, with names as long as those of real issuers. *Allocated*
//! is the memory that the process requested from the allocator, and *resident* the memory that the
//! kernel assigned, including the overhead of the allocator.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a benchmark"
)]

use std::{
    fs,
    hint::black_box,
    process::{Command, Stdio},
    sync::Arc,
    time::Instant,
};

use allocation_counter::measure;
use portcullis_metadata::{ResourceUri, Scopes, SystemClock};
use portcullis_session::{
    Identifier, Owner, SessionKey, SessionSettings, SessionStore, SessionTarget,
};

const SIZES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];
const SIZE: &str = "--size";
const ISSUER: &str = "https://auth.example.com/realms/prod";
const CLIENT: &str = "4b0c3f9e-desktop-client";
/// The number of sessions that are looked up in turn: few enough for the caches of any machine,
/// like the sessions in use.
const CALLERS: usize = 64;
const ROUNDS: usize = 101;
const LOOKUPS: usize = 2_000;

/// The results for one number of sessions. Memory is in bytes per session, and times are medians in
/// nanoseconds.
struct Row {
    sessions: usize,
    allocated: usize,
    resident: usize,
    /// To find one of a few sessions that are in the caches.
    lookup: f64,
    /// To find any session, which is hardly ever in a cache.
    cold_lookup: f64,
    /// The number of allocations in all lookups together.
    allocations: u64,
    unseal: f64,
    adopt: f64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(size) = arguments
        .iter()
        .position(|argument| argument == SIZE)
        .and_then(|at| arguments.get(at + 1))
    {
        return println!("{}", grow(size.parse().expect("a number")).json());
    }
    // Each store has a process of its own, because the allocator keeps memory of the previous one.
    let rows: Vec<String> = SIZES
        .iter()
        .map(|&sessions| measured_alone(sessions))
        .collect();
    if arguments.iter().any(|argument| argument == "--json") {
        println!("[{}]", rows.join(","));
    } else {
        println!("{}", rows.join("\n"));
    }
}

fn measured_alone(sessions: usize) -> String {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program)
        .args([SIZE, &sessions.to_string()])
        .stderr(Stdio::inherit())
        .output();
    let output = output.expect("it starts");
    assert!(
        output.status.success(),
        "{sessions} sessions: {}",
        output.status
    );
    String::from_utf8(output.stdout)
        .expect("text")
        .trim()
        .to_owned()
}

/// Opens this many sessions, and measures memory and lookups.
fn grow(sessions: usize) -> Row {
    let mut bench = Bench::new(sessions);
    let Memory {
        allocated,
        resident,
    } = bench.open_sessions();
    let callers = bench.callers();
    // The upstream differs, which is checked after the identifier is opened.
    let moved = SessionTarget::new(bench.target.resource().clone(), "http://127.0.0.1:9000/mcp");
    let replica = bench.replica();
    Row {
        sessions,
        allocated,
        resident,
        lookup: bench.lookup_time(&callers),
        cold_lookup: bench.cold_lookup_time(),
        allocations: measure(|| bench.look_up(&callers)).count_total,
        unseal: bench.first_use_time(&replica, &moved),
        adopt: bench.first_use_time(&replica, &bench.target),
    }
}

/// A store, and the identifiers of its sessions by their numbers.
struct Bench {
    settings: SessionSettings,
    clock: Arc<SystemClock>,
    store: SessionStore,
    target: SessionTarget,
    scopes: Scopes,
    identifiers: Vec<Identifier>,
}

/// The memory of a session, in bytes.
struct Memory {
    allocated: usize,
    resident: usize,
}

/// The owner of a session that is looked up again and again.
struct Caller {
    subject: String,
    identifier: Identifier,
}

impl Bench {
    /// Returns a store with one session.
    fn new(sessions: usize) -> Self {
        let mut settings = SessionSettings::new(SessionKey::random().expect("random bytes"));
        settings.max_total = sessions;
        let clock = Arc::new(SystemClock::new());
        let store = SessionStore::builder(settings.clone())
            .clock(clock.clone())
            .build();
        let resource = ResourceUri::parse("https://mcp.example.com/mcp").expect("a resource");
        let target = SessionTarget::new(resource, "http://127.0.0.1:8000/mcp");
        let scopes = Scopes::parse("mcp:tools").expect("scopes");
        let first = open(&store, &target, &scopes, sessions);
        // This makes the table of identifiers resident.
        let identifiers = vec![first; sessions];
        Self {
            settings,
            clock,
            store,
            target,
            scopes,
            identifiers,
        }
    }

    /// Opens all sessions but the first.
    fn open_sessions(&mut self) -> Memory {
        let Self {
            store,
            target,
            scopes,
            identifiers,
            ..
        } = self;
        let before = resident();
        let counted = measure(|| {
            for (number, identifier) in identifiers.iter_mut().enumerate().skip(1) {
                *identifier = open(store, target, scopes, number);
            }
        });
        let sessions = identifiers.len();
        Memory {
            allocated: counted.bytes_current as usize / sessions,
            resident: resident().saturating_sub(before) / sessions,
        }
    }

    fn callers(&self) -> Vec<Caller> {
        let step = self.identifiers.len() / CALLERS;
        let numbers = (0..CALLERS).map(|turn| 1 + turn * step);
        numbers
            .map(|number| Caller {
                subject: subject(number),
                identifier: self.identifiers[number].clone(),
            })
            .collect()
    }

    /// Finds the sessions of the callers in turn.
    fn look_up(&self, callers: &[Caller]) {
        for turn in 0..LOOKUPS {
            let Caller {
                subject,
                identifier,
            } = &callers[turn % CALLERS];
            let session = self.store.resolve(
                &self.target,
                owner(subject),
                &self.scopes,
                identifier.as_bytes(),
            );
            drop(black_box(session.expect("a live session")));
        }
    }

    fn lookup_time(&self, callers: &[Caller]) -> f64 {
        let rounds = (0..ROUNDS).map(|_| {
            let started = Instant::now();
            self.look_up(callers);
            started.elapsed().as_nanos() as f64 / LOOKUPS as f64
        });
        median(rounds.collect())
    }

    fn cold_lookup_time(&self) -> f64 {
        let sessions = self.identifiers.len();
        // The stride has no common divisor with the count: each session is found once, and hardly
        // any is in a cache.
        let numbers = (0..sessions.min(20_000)).map(|turn| 1 + turn * 7_919 % (sessions - 1));
        let times = numbers.map(|number| {
            let subject = subject(number);
            let identifier = &self.identifiers[number];
            let started = Instant::now();
            let session = self.store.resolve(
                &self.target,
                owner(&subject),
                &self.scopes,
                identifier.as_bytes(),
            );
            drop(black_box(session.expect("a live session")));
            started.elapsed().as_nanos() as f64
        });
        median(times.collect())
    }

    /// Returns the store of another process with the key.
    fn replica(&self) -> SessionStore {
        SessionStore::builder(self.settings.clone())
            .clock(self.clock.clone())
            .build()
    }

    /// Returns the time of the first use of a session at a replica, successful or not.
    fn first_use_time(&self, replica: &SessionStore, target: &SessionTarget) -> f64 {
        let times = (1..self.identifiers.len().min(20_000)).map(|number| {
            let subject = subject(number);
            let identifier = &self.identifiers[number];
            let started = Instant::now();
            let session =
                replica.resolve(target, owner(&subject), &self.scopes, identifier.as_bytes());
            let taken = started.elapsed().as_nanos() as f64;
            drop(black_box(session));
            taken
        });
        median(times.collect())
    }
}

fn open(
    store: &SessionStore,
    target: &SessionTarget,
    scopes: &Scopes,
    number: usize,
) -> Identifier {
    let subject = subject(number);
    let reservation = store
        .reserve(target, owner(&subject), scopes)
        .expect("capacity");
    let session = reservation.open(
        Box::from(*b"11111111-2222-3333-4444-555555555555"),
        Some("2025-11-25"),
    );
    session.expect("capacity").identifier()
}

fn subject(number: usize) -> String {
    format!("f81d4fae-7dec-11d0-a765-{number:012}")
}

fn owner(subject: &str) -> Owner<'_> {
    Owner::Subject {
        issuer: ISSUER,
        subject,
        client: Some(CLIENT),
    }
}

/// Returns the resident memory of this process in bytes.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("VmRSS");
    line.trim()
        .trim_end_matches(" kB")
        .parse::<usize>()
        .expect("a number")
        << 10
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

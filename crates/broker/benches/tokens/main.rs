//! The CPU time of a token response, and the memory and the start of a broker with many grants:
//! `cargo bench --package portcullis-broker`, or `cargo xtask bench broker`. Each result is a line
//! of JSON.
//!
//! CPU time is that of the whole process, with the thread that writes records, so that it hardly
//! depends on other programs. Access tokens are signed with ES256.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a benchmark"
)]

mod opening;
mod seed;
#[allow(dead_code, unreachable_pub, reason = "shared with the tests")]
#[path = "../../tests/flows/support.rs"]
mod support;

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use portcullis_broker::BrokerKeys;
use portcullis_state_store::{
    StateDirectory,
    records::{FileRecords, MemoryRecords, RecordStore},
};
use portcullis_testkit::ManualClock;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use self::support::{Browser, Client, Setup, json_of, param, settings};

/// The clients and grants of a large server.
const CLIENTS: usize = 10_000;
const GRANTS: usize = 100_000;
/// The number of users who sign in. Each gets one response for a code.
const SIGN_INS: usize = 300;
/// The number of responses for refresh tokens of each user.
const REFRESHES: usize = 4;
/// The time between two users, with which the rate of an address is not exceeded.
const PAUSE: Duration = Duration::from_secs(2);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str| arguments.iter().any(|argument| argument == name);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    if option(opening::FILE) {
        let folder = arguments.last().expect("a folder");
        return runtime.block_on(opening::file(folder.as_ref()));
    }
    if option(opening::MEMORY) {
        return runtime.block_on(opening::memory());
    }
    runtime.block_on(run());
}

async fn run() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys_text = BrokerKeys::generate().expect("keys");
    std::fs::write(folder.path().join(opening::KEYS), &*keys_text).expect("a file");
    let keys = Arc::new(BrokerKeys::parse(&keys_text).expect("keys"));

    let clock = ManualClock::new();
    let records = Arc::new(MemoryRecords::new(Arc::new(clock.clone())));
    respond("memory", clock, records, &keys).await;

    let clock = ManualClock::new();
    let directory = StateDirectory::open(folder.path()).expect("a state directory");
    let records = FileRecords::open(&directory, Arc::new(clock.clone())).expect("records");
    respond("file", clock, Arc::new(records), &keys).await;
    drop(directory);

    let folder = folder.path().to_str().expect("a path").to_owned();
    // The first run reads the file into the cache of the system.
    for _ in 0..3 {
        opening::start(&[opening::FILE, &folder]);
    }
    opening::start(&[opening::MEMORY]);
}

/// Measures token responses of a broker with many clients and grants in a store.
async fn respond(
    store: &str,
    clock: ManualClock,
    records: Arc<dyn RecordStore>,
    keys: &Arc<BrokerKeys>,
) {
    let setup = Setup::assemble(settings(), clock, Arc::clone(&records), Arc::clone(keys));
    let client = setup.client().await;
    sign_in(&setup, &client, 0).await;
    seed::seed(&*records, CLIENTS - 1, GRANTS - SIGN_INS - 2).await;
    let (mut codes, mut refreshes) = (Vec::new(), Vec::new());
    for number in 1..=SIGN_INS {
        let (exchange, mut tokens) = sign_in(&setup, &client, number).await;
        codes.push(exchange);
        for _ in 0..REFRESHES {
            let token = tokens["refresh_token"].as_str().expect("a token");
            let before = cpu();
            let response = setup.refresh(&client, token).await;
            refreshes.push(cpu() - before);
            assert_eq!(response.status(), StatusCode::OK);
            tokens = json_of(&response);
        }
        setup.pass(PAUSE);
    }
    print(store, "code", codes);
    print(store, "refresh", refreshes);
}

/// Follows the sign-in of a user. Returns the CPU time of the response for the code, and the
/// response.
async fn sign_in(setup: &Setup, client: &Client, number: usize) -> (Duration, Value) {
    setup.provider.user.lock()["sub"] = format!("user-{number}").into();
    let location = Browser::new(setup).sign_in(client).await;
    let code = param(&location, "code").expect("a code");
    let before = cpu();
    let response = setup.exchange(client, &code).await;
    let time = cpu() - before;
    assert_eq!(response.status(), StatusCode::OK);
    (time, json_of(&response))
}

/// Returns the CPU time of this process so far, user and system, with all threads.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let (secs, nanos) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
    Duration::from_secs(secs) + Duration::from_nanos(nanos)
}

fn print(store: &str, request: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_micros();
    let line = json!({
        "store": store,
        "request": request,
        "responses": times.len(),
        "p50_us": at(50),
        "p99_us": at(99),
    });
    println!("{line}");
}

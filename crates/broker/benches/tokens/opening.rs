//! The start and the memory of a broker in a process of its own.

use std::{fs, path::Path, process::Command, sync::Arc, time::Instant};

use portcullis_broker::{BrokerKeys, GrantFilter};
use portcullis_state_store::{
    StateDirectory,
    records::{FileRecords, MemoryRecords, RecordStore},
};
use portcullis_testkit::ManualClock;
use serde_json::json;

use crate::{
    CLIENTS, GRANTS, cpu, seed, sign_in,
    support::{Setup, settings},
};

/// The option of a process that opens the file of a folder.
pub(crate) const FILE: &str = "--open-file";
/// The option of a process that keeps its records in memory.
pub(crate) const MEMORY: &str = "--memory";
/// The file with the keys.
pub(crate) const KEYS: &str = "keys";

/// Runs this program with these arguments.
pub(crate) fn start(arguments: &[&str]) {
    let program = std::env::current_exe().expect("a program");
    let status = Command::new(program).args(arguments).status();
    assert!(status.expect("a process").success());
}

/// Opens the store in a folder, and prints the time until the broker can answer, and the memory.
pub(crate) async fn file(folder: &Path) {
    let (started, cpu_before) = (Instant::now(), cpu());
    let keys = BrokerKeys::parse(&fs::read_to_string(folder.join(KEYS)).expect("a file"));
    let clock = ManualClock::new();
    let directory = StateDirectory::open(folder).expect("a state directory");
    let records = FileRecords::open(&directory, Arc::new(clock.clone())).expect("records");
    let (keys, records) = (Arc::new(keys.expect("keys")), Arc::new(records));
    let setup = Setup::assemble(settings(), clock, Arc::clone(&records) as _, keys);
    setup.broker.load_ends().await.expect("the ends");
    let (wall, cpu) = (started.elapsed(), cpu() - cpu_before);
    let opened = resident();
    read_all(&setup).await;
    let line = json!({
        "store": "file",
        "clients": CLIENTS,
        "grants": GRANTS,
        "start_ms": wall.as_millis(),
        "start_cpu_ms": cpu.as_millis(),
        "resident_bytes": opened,
        "resident_after_reading_bytes": resident(),
        "file_bytes": fs::metadata(folder.join("records.redb")).map_or(0, |file| file.len()),
    });
    println!("{line}");
}

/// Fills a store in memory, and prints the memory.
pub(crate) async fn memory() {
    let clock = ManualClock::new();
    let keys = BrokerKeys::generate().expect("keys");
    let keys = Arc::new(BrokerKeys::parse(&keys).expect("keys"));
    let records: Arc<dyn RecordStore> = Arc::new(MemoryRecords::new(Arc::new(clock.clone())));
    let setup = Setup::assemble(settings(), clock, Arc::clone(&records), keys);
    let client = setup.client().await;
    sign_in(&setup, &client, 0).await;
    let before = resident();
    seed::seed(&*records, CLIENTS - 1, GRANTS - 1).await;
    let line = json!({
        "store": "memory",
        "clients": CLIENTS,
        "grants": GRANTS,
        "resident_bytes": resident(),
        "resident_without_bytes": before,
    });
    println!("{line}");
}

/// Reads all grants, so that the cache of the store is full.
async fn read_all(setup: &Setup) {
    let mut after = None;
    let filter = GrantFilter::default();
    loop {
        let page = setup.broker.grants(&filter, after.as_deref(), GRANTS).await;
        after = page.expect("a page").next;
        if after.is_none() {
            return;
        }
    }
}

/// Returns the resident memory of this process in bytes.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("the status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.expect("VmRSS").trim().trim_end_matches("kB").trim();
    kilobytes.parse::<u64>().expect("a number") * 1024
}

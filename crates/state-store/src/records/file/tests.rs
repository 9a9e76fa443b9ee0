//! Records survive restarts, kills and crashes; failures are reported, and end with their cause.

mod backends;
mod kill;

use std::{
    fs,
    io::Write as _,
    os::unix::fs::MetadataExt as _,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use portcullis_metadata::{SystemClock, UnixTime};
use portcullis_testkit::ManualClock;
use redb::backends::FileBackend;
use zeroize::Zeroizing;

use self::backends::{CrashingDisk, FailingFile};
use super::{super::suite, *};
use crate::{
    file_names::RECORDS,
    records::{Condition, Write},
};

const LEFT: Table = Table("left");
const RIGHT: Table = Table("right");

fn open(path: &Path) -> Result<FileRecords, RecordError> {
    let directory = StateDirectory::open(path).unwrap();
    FileRecords::open(&directory, Arc::new(SystemClock::new()))
}

/// Returns the records of a directory, of which nothing changes.
fn open_unchanged(path: &Path) -> Result<Option<FileRecords>, RecordError> {
    FileRecords::open_unchanged(path, Arc::new(SystemClock::new()))
}

fn code<T>(result: Result<T, RecordError>) -> &'static str {
    result.err().map_or("", |error| error.code())
}

/// A change that writes the same number to two tables, after the one before it.
fn numbered(number: u64) -> Change {
    let value = |number: u64| Zeroizing::new(number.to_string().into_bytes());
    let put = |table, key: String| Write::Put {
        table,
        key: key.into_bytes().into(),
        record: StoredRecord {
            value: value(number),
            expires: UnixTime::from_secs(1 << 40),
        },
    };
    let before = number.checked_sub(1).map(value);
    Change {
        conditions: vec![Condition::Value {
            table: LEFT,
            key: Box::from(*b"last"),
            expected: before,
        }],
        writes: vec![
            put(LEFT, "last".to_owned()),
            put(LEFT, number.to_string()),
            put(RIGHT, number.to_string()),
        ],
    }
}

/// Returns how many numbered changes a store has. Fails if one of them is half there.
async fn numbered_changes(store: &FileRecords) -> u64 {
    let changes = store.count(RIGHT).await.unwrap();
    for number in 0..changes {
        let key = number.to_string();
        for table in [LEFT, RIGHT] {
            let record = store.get(table, key.as_bytes()).await.unwrap().unwrap();
            assert_eq!(*record.value, key.as_bytes());
        }
    }
    let last = store.get(LEFT, b"last").await.unwrap();
    let last = last.map(|record| String::from_utf8(record.value.to_vec()).unwrap());
    assert_eq!(last, changes.checked_sub(1).map(|last| last.to_string()));
    let expected = if changes == 0 { 0 } else { changes + 1 };
    assert_eq!(store.count(LEFT).await.unwrap(), expected);
    changes
}

#[tokio::test]
async fn records_in_a_file_keep_to_the_contract() {
    let parent = tempfile::tempdir().unwrap();
    let clock = ManualClock::new();
    let directory = StateDirectory::open(parent.path()).unwrap();
    let records = FileRecords::open(&directory, Arc::new(clock.clone())).unwrap();
    suite::run(Arc::new(records), &clock).await;
}

/// ST3: a restart keeps what was committed. The file is private, and its directory stays locked.
#[tokio::test]
async fn a_restart_keeps_records() {
    let parent = tempfile::tempdir().unwrap();
    for number in 0..3 {
        let records = open(parent.path()).unwrap();
        assert_eq!(numbered_changes(&records).await, number);
        let committed = records.commit(numbered(number)).await;
        assert_eq!(committed.unwrap(), Outcome::Committed);
        let locked = StateDirectory::open(parent.path()).err();
        assert_eq!(locked.map(|error| error.code()), Some("state.in_use"));
        drop(records);
        let metadata = fs::metadata(parent.path().join(RECORDS)).unwrap();
        assert_eq!(metadata.mode() & 0o777, 0o600);
    }
    let names = fs::read_dir(parent.path()).unwrap();
    assert_eq!(names.count(), 2, "the lock and the records");
}

/// What waits is written when the store is dropped, and changes are made in the order of the calls.
#[tokio::test]
async fn dropping_writes_what_waits() {
    let parent = tempfile::tempdir().unwrap();
    let records = open(parent.path()).unwrap();
    for number in 0..100 {
        drop(records.commit(numbered(number)));
    }
    drop(records);
    assert_eq!(numbered_changes(&open(parent.path()).unwrap()).await, 100);
}

/// ST3: a power failure at any write loses no change that was answered, and leaves none half done.
#[tokio::test]
async fn a_crash_leaves_no_half_change() {
    let parent = tempfile::tempdir().unwrap();
    let disk = CrashingDisk::default();
    let access = disk.clone();
    let directory = StateDirectory::open(parent.path()).unwrap();
    let file = RecordsFile::new(&directory)
        .with_access(move |builder, file| builder.create_with_backend(access.open(file)));
    RecordsFile::new(&directory).create_if_missing().unwrap();
    let records = FileRecords::start(file, Arc::new(SystemClock::new())).unwrap();
    let mut crashes = 0;
    for number in 0..20 {
        disk.take_images();
        let committed = records.commit(numbered(number)).await;
        assert_eq!(committed.unwrap(), Outcome::Committed);
        for image in disk.take_images() {
            let crashed = tempfile::tempdir().unwrap();
            let path = crashed.path().join(RECORDS);
            fs::write(&path, &image).unwrap();
            let unchanged = open_unchanged(crashed.path()).unwrap().unwrap();
            let found = numbered_changes(&unchanged).await;
            drop(unchanged);
            assert!(fs::read(&path).unwrap() == image);
            let locked = StateDirectory::open(crashed.path()).unwrap();
            let recovered = FileRecords::open(&locked, Arc::new(SystemClock::new())).unwrap();
            let changes = numbered_changes(&recovered).await;
            assert!(
                [number, number + 1].contains(&changes),
                "{changes} of {number}"
            );
            assert_eq!(found, changes);
            crashes += 1;
        }
    }
    assert!(crashes >= 40, "{crashes}");
}

/// ST4: a change that cannot be written fails, and so do reads. Both work again when there is space
/// again.
#[tokio::test]
async fn a_full_disk_is_reported_and_recovers() {
    let parent = tempfile::tempdir().unwrap();
    let clock = ManualClock::new();
    let is_full = Arc::new(AtomicBool::new(false));
    let access = Arc::clone(&is_full);
    let directory = StateDirectory::open(parent.path()).unwrap();
    let file = RecordsFile::new(&directory).with_access(move |builder, file| {
        builder.create_with_backend(FailingFile {
            file: FileBackend::new(file)?,
            is_full: Arc::clone(&access),
            is_broken: Arc::default(),
        })
    });
    let records = FileRecords::start(file, Arc::new(clock.clone())).unwrap();
    records.commit(numbered(0)).await.unwrap();
    for number in 1..4 {
        is_full.store(true, Ordering::SeqCst);
        for _ in 0..3 {
            assert_eq!(code(records.commit(numbered(number)).await), "records.file");
        }
        assert_eq!(code(records.get(LEFT, b"last").await), "records.file");
        assert_eq!(code(records.sweep().await), "records.file");
        is_full.store(false, Ordering::SeqCst);
        assert_eq!(
            code(records.commit(numbered(number)).await),
            "records.file",
            "it is not tried in each change"
        );
        clock.advance(Duration::from_secs(1));
        let committed = records.commit(numbered(number)).await;
        assert_eq!(committed.unwrap(), Outcome::Committed);
        assert_eq!(numbered_changes(&records).await, number + 1);
    }
}

/// After a read that the disk has failed, the next change opens the file again.
#[tokio::test]
async fn a_failed_read_is_reported_and_recovers() {
    let parent = tempfile::tempdir().unwrap();
    let records = open(parent.path()).unwrap();
    for number in 0..100 {
        drop(records.commit(numbered(number)));
    }
    drop(records);
    let is_broken = Arc::new(AtomicBool::new(false));
    let access = Arc::clone(&is_broken);
    let directory = StateDirectory::open(parent.path()).unwrap();
    let file = RecordsFile::new(&directory).with_access(move |builder, file| {
        builder.create_with_backend(FailingFile {
            file: FileBackend::new(file)?,
            is_full: Arc::default(),
            is_broken: Arc::clone(&access),
        })
    });
    let records = FileRecords::start(file, Arc::new(ManualClock::new())).unwrap();
    is_broken.store(true, Ordering::SeqCst);
    assert_eq!(code(records.get(LEFT, b"last").await), "records.file");
    is_broken.store(false, Ordering::SeqCst);
    assert_eq!(code(records.get(LEFT, b"last").await), "records.file");
    let committed = records.commit(numbered(100)).await;
    assert_eq!(committed.unwrap(), Outcome::Committed);
    assert_eq!(numbered_changes(&records).await, 101);
}

/// A damaged file is an error with its own code at the start, never an empty store and never a
/// panic.
#[tokio::test]
async fn a_damaged_file_is_an_error() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join(RECORDS);
    let records = open(parent.path()).unwrap();
    for number in 0..200 {
        drop(records.commit(numbered(number)));
    }
    drop(records);
    let intact = fs::read(&path).unwrap();
    let open_damaged = |content: &[u8]| {
        fs::write(&path, content).unwrap();
        let unchanged = code(open_unchanged(parent.path()));
        assert!(fs::read(&path).unwrap() == content);
        let opened = open(parent.path());
        let error = opened.as_ref().err().map(RecordError::code);
        assert_eq!(unchanged, error.unwrap_or_default(), "as a start");
        opened
    };
    for eighth in 0..8 {
        let truncated = &intact[..intact.len() * eighth / 8];
        assert_eq!(code(open_damaged(truncated)), "records.corrupt", "{eighth}");
    }
    for other in [&intact[..100], b"another format"] {
        assert_eq!(code(open_damaged(other)), "records.corrupt");
    }
    let mut unusable = 0;
    for page in 0..intact.len() / 4096 {
        let mut damaged = intact.clone();
        damaged[page * 4096 + 100..page * 4096 + 164].fill(0xa5);
        match open_damaged(&damaged) {
            Ok(records) => assert_eq!(numbered_changes(&records).await, 200, "a free page"),
            Err(error) => {
                assert_eq!(error.code(), "records.corrupt", "page {page}");
                unusable += 1;
            }
        }
    }
    assert!(unusable > 5, "{unusable} damaged pages were noticed");
    fs::write(&path, &intact).unwrap();
    assert_eq!(numbered_changes(&open(parent.path()).unwrap()).await, 200);
}

/// A file that is damaged while it is open makes reads and changes fail, until it is restored.
#[tokio::test]
async fn damage_of_an_open_file_is_an_error() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join(RECORDS);
    let records = open(parent.path()).unwrap();
    for number in 0..200 {
        drop(records.commit(numbered(number)));
    }
    drop(records);
    let intact = fs::read(&path).unwrap();
    let pages = intact.len() / 4096;
    for first in (1..pages).step_by(3) {
        fs::write(&path, &intact).unwrap();
        let clock = ManualClock::new();
        let directory = StateDirectory::open(parent.path()).unwrap();
        let records = FileRecords::open(&directory, Arc::new(clock.clone())).unwrap();
        let mut damaged = fs::read(&path).unwrap();
        damaged[first * 4096..].fill(0xa5);
        fs::write(&path, &damaged).unwrap();
        for number in 0..200_u64 {
            let read = records.get(LEFT, number.to_string().as_bytes()).await;
            assert!(["", "records.corrupt"].contains(&code(read)));
        }
        let changed = code(records.commit(numbered(200)).await);
        assert!(["", "records.corrupt"].contains(&changed), "{changed}");
        if changed.is_empty() {
            continue;
        }
        assert_eq!(code(records.get(LEFT, b"last").await), "records.corrupt");
        fs::write(&path, &intact).unwrap();
        clock.advance(Duration::from_secs(1));
        assert_eq!(code(records.commit(numbered(200)).await), "");
        assert_eq!(numbered_changes(&records).await, 201);
    }
}

/// A database of another version is not used, and not changed.
#[test]
fn another_version_is_an_error() {
    let parent = tempfile::tempdir().unwrap();
    let directory = StateDirectory::open(parent.path()).unwrap();
    drop(redb::Database::create(parent.path().join(RECORDS)).unwrap());
    let clock = Arc::new(SystemClock::new());
    assert_eq!(
        code(FileRecords::open(&directory, clock)),
        "records.version"
    );
}

/// N4: nothing is created or changed without a file, or beside another process. Changes of an
/// unchanged file are in memory.
#[tokio::test]
async fn an_unchanged_file_stays_as_it_is() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join(RECORDS);
    assert!(
        open_unchanged(&parent.path().join("none"))
            .unwrap()
            .is_none()
    );
    assert!(open_unchanged(parent.path()).unwrap().is_none());
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);

    let records = open(parent.path()).unwrap();
    records.commit(numbered(0)).await.unwrap();
    assert!(open_unchanged(parent.path()).unwrap().is_none(), "in use");
    drop(records);
    let before = fs::read(&path).unwrap();
    let unchanged = open_unchanged(parent.path()).unwrap().unwrap();
    for number in 1..100 {
        unchanged.commit(numbered(number)).await.unwrap();
    }
    assert_eq!(numbered_changes(&unchanged).await, 100);
    drop(unchanged);
    assert!(fs::read(&path).unwrap() == before);

    let _locked = StateDirectory::open(parent.path()).unwrap();
    fs::write(&path, "").unwrap();
    assert_eq!(code(open_unchanged(parent.path())), "records.corrupt");
}

/// A creation that a crash has interrupted is repeated, and a directory without access is an error.
#[tokio::test]
async fn the_file_is_created_completely() {
    let parent = tempfile::tempdir().unwrap();
    let directory = StateDirectory::open(parent.path()).unwrap();
    let interrupted = RecordsFile::new(&directory).with_access(|_, mut file| {
        file.write_all(b"half of a file")?;
        Err(std::io::Error::from(std::io::ErrorKind::Interrupted).into())
    });
    assert_eq!(code(interrupted.create_if_missing()), "records.file");
    drop(interrupted);
    drop(directory);
    let records = open(parent.path()).unwrap();
    assert_eq!(numbered_changes(&records).await, 0);
    drop(records);

    let parent = tempfile::tempdir().unwrap();
    fs::create_dir(parent.path().join(RECORDS)).unwrap();
    assert_eq!(code(open(parent.path())), "records.file");

    let parent = tempfile::tempdir().unwrap();
    let directory = StateDirectory::open(parent.path()).unwrap();
    fs::remove_dir_all(parent.path()).unwrap();
    let clock = Arc::new(SystemClock::new());
    assert_eq!(code(FileRecords::open(&directory, clock)), "records.file");
}

/// No memory is filled while the disk is slow: further changes fail.
#[tokio::test]
async fn the_queue_is_bounded() {
    let parent = tempfile::tempdir().unwrap();
    let mut records = open(parent.path()).unwrap();
    let (jobs, waiting) = sync_channel(2);
    let running = records.jobs.replace(jobs);
    let sent: Vec<_> = (0..3)
        .map(|number| records.commit(numbered(number)))
        .collect();
    for job in sent.into_iter().skip(2) {
        assert_eq!(code(job.await), "records.full_queue");
    }
    drop(waiting);
    assert_eq!(code(records.commit(numbered(0)).await), "records.closed");
    drop(running);
}

/// A sweep removes a bounded number of records, and no record that was renewed.
#[tokio::test]
async fn a_sweep_is_bounded() {
    let parent = tempfile::tempdir().unwrap();
    let clock = ManualClock::new();
    let directory = StateDirectory::open(parent.path()).unwrap();
    let records = FileRecords::open(&directory, Arc::new(clock.clone())).unwrap();
    let total = crate::records::MAX_SWEPT as u64 + 10;
    let writes = (0..total)
        .map(|number| Write::Put {
            table: LEFT,
            key: Box::from(number.to_be_bytes()),
            record: StoredRecord {
                value: Zeroizing::default(),
                expires: clock.now(),
            },
        })
        .collect();
    let conditions = Vec::new();
    records.commit(Change { conditions, writes }).await.unwrap();
    for left in [total, 10, 0, 0] {
        assert_eq!(records.count(LEFT).await.unwrap(), left);
        records.sweep().await.unwrap();
    }
}

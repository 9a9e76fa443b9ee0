//! Records survive a restart; failures are reported, and queue and files are bounded.

use std::{fs, path::Path, time::Duration};

use portcullis_metadata::{ResourceUri, Scopes, UnixTime};
use portcullis_session::{
    EndExtent, EndReason, NotRecorded, Owner, ResolveError, ScopeId, SessionSettings,
};
use portcullis_testkit::ManualClock;

use super::{
    queue::{MAX_QUEUED, Waiting},
    *,
};

const RETENTION: Retention = Retention {
    lifetime: Duration::from_secs(1000),
    idle_timeout: Duration::from_secs(100),
};

/// Returns the time this number of seconds after the start of the clock.
fn after(seconds: u64) -> UnixTime {
    ManualClock::START.saturating_add(Duration::from_secs(seconds))
}

fn open(path: &Path, clock: &Arc<ManualClock>) -> (FileJournal, Recovered) {
    FileJournal::open(
        StateDirectory::open(path).unwrap(),
        RETENTION,
        Arc::clone(clock) as _,
        None,
    )
    .unwrap()
}

fn end(session: u8, created: u64) -> SessionEnd {
    SessionEnd::Session {
        owner: ScopeId([1; 16]),
        session: [session; 16],
        created: after(created),
        extent: EndExtent::ByOwner,
    }
}

/// E12: an end is on disk when its ticket completes. Records are recovered after a restart until
/// they expire.
#[tokio::test]
async fn records_survive_a_restart() {
    let parent = tempfile::tempdir().unwrap();
    let clock = Arc::<ManualClock>::default();
    let (journal, recovered) = open(parent.path(), &clock);
    assert!(recovered.ends.is_empty());
    assert!(recovered.uses.is_empty());

    let tickets: Vec<_> = (1..=20)
        .map(|session| journal.record(&end(session, 5)))
        .collect();
    for ticket in tickets {
        assert_eq!(ticket.await, Ok(()));
    }
    let used = LastUse {
        session: [7; 16],
        time: after(50),
    };
    journal.record_last_uses(&[used]);
    assert_eq!(journal.flush().await, Ok(()));
    assert_eq!(
        fs::read_to_string(parent.path().join(ENDS))
            .unwrap()
            .lines()
            .count(),
        21
    );

    drop(journal);

    clock.advance(Duration::from_secs(150));
    let (journal, recovered) = open(parent.path(), &clock);
    assert_eq!(recovered.ends.len(), 20);
    assert_eq!(recovered.uses, vec![used]);

    drop(journal);
    clock.advance(Duration::from_secs(1351));
    let (_journal, recovered) = open(parent.path(), &clock);
    assert!(recovered.ends.is_empty());
    assert!(recovered.uses.is_empty());
}

/// E12: what waits is written when the journal is dropped.
#[test]
fn dropping_writes_what_waits() {
    let parent = tempfile::tempdir().unwrap();
    let clock = Arc::<ManualClock>::default();
    for round in 0..20 {
        let (journal, recovered) = open(parent.path(), &clock);
        assert_eq!(recovered.ends.len(), usize::from(round));
        drop(journal.record(&end(round, 5)));
    }
}

/// E12: an end that cannot be written is not confirmed, and writing continues when there is space
/// again.
#[tokio::test]
async fn failures_are_not_confirmed() {
    let parent = tempfile::tempdir().unwrap();
    let clock: Arc<dyn Clock> = Arc::<ManualClock>::default();
    let directory = StateDirectory::open(parent.path()).unwrap();
    let (mut ends_file, _) =
        LogFile::open::<SessionEnd>(&directory, ENDS, Vec::new, |ends| ends).unwrap();
    let (uses_file, _) = LogFile::open::<LastUse>(&directory, USES, Vec::new, |uses| uses).unwrap();
    let writable = std::mem::replace(&mut ends_file, LogFile::read_only(parent.path().join(ENDS)));
    let queue = Arc::<Queue>::default();
    let mut writer = Writer {
        queue,
        directory,
        retention: RETENTION,
        clock,
        ends_file,
        uses_file,
        is_failing: false,
    };
    let (confirmation, ticket) = EndTicket::pending();
    writer.write(vec![(end(1, 0), confirmation)], &[]);
    assert_eq!(ticket.await, Err(NotRecorded));
    assert!(writer.is_failing);

    writer.ends_file = writable;
    let (confirmation, ticket) = EndTicket::pending();
    writer.write(vec![(end(1, 0), confirmation)], &[]);
    assert_eq!(ticket.await, Ok(()));
    assert!(!writer.is_failing);
}

/// E12: no memory is filled while the disk is slow: further ends fail, and further last uses are
/// dropped.
#[tokio::test]
async fn the_queue_is_bounded() {
    let mut waiting = Waiting::default();
    for _ in 0..MAX_QUEUED {
        waiting.uses.push(LastUse {
            session: [1; 16],
            time: UnixTime::default(),
        });
        drop(waiting.add_end(end(1, 0)));
    }
    assert_eq!(waiting.add_end(end(2, 0)).await, Err(NotRecorded));
    waiting.add_uses(&[LastUse {
        session: [2; 16],
        time: UnixTime::default(),
    }]);
    assert_eq!(waiting.ends.len(), MAX_QUEUED);
    assert_eq!(waiting.uses.len(), MAX_QUEUED);
}

/// E12: one user's endless sessions fill no disk.
#[tokio::test]
async fn files_are_bounded() {
    let parent = tempfile::tempdir().unwrap();
    let clock = Arc::<ManualClock>::default();
    let (journal, _) = open(parent.path(), &clock);
    for round in 0..40_u64 {
        for _ in 0..2_000 {
            let floor = SessionEnd::Floor {
                scope: Some(ScopeId([1; 16])),
                created: after(round),
            };
            drop(journal.record(&floor));
        }
        assert_eq!(journal.flush().await, Ok(()));
    }
    assert!(fs::metadata(parent.path().join(ENDS)).unwrap().len() < 3 << 20);
}

/// E12: a store continues its sessions after a restart, and none that has ended.
#[tokio::test]
async fn a_store_continues_after_a_restart() {
    let parent = tempfile::tempdir().unwrap();
    let clock = Arc::<ManualClock>::default();
    let resource = ResourceUri::parse("https://mcp.example.com/mcp").unwrap();
    let start = || {
        let directory = StateDirectory::open(parent.path()).unwrap();
        let settings = SessionSettings::new(directory.session_keys().unwrap());
        let (journal, recovered) =
            FileJournal::open(directory, RETENTION, Arc::clone(&clock) as _, None).unwrap();
        let store = SessionStore::builder(settings)
            .clock(Arc::clone(&clock) as _)
            .journal(Arc::new(journal))
            .build();
        recovered.import_into(&store);
        store
    };
    let target = resource.clone().into();
    let owner = Owner::Subject {
        issuer: "https://issuer",
        subject: "alice",
        client: None,
    };
    let store = start();
    let scopes = Scopes::empty();
    let open = |store: &SessionStore| {
        let reservation = store.reserve(&target, owner, &scopes).unwrap();
        reservation.open(Box::from(*b"backend"), None).unwrap()
    };
    let kept = open(&store);
    let ended = open(&store);
    let [kept_identifier, gone_identifier] =
        [&kept, &ended].map(|session| session.identifier().to_string());
    assert_eq!(store.end(&ended, EndReason::Deleted).unwrap().await, Ok(()));

    drop((kept, ended, store));

    let store = start();
    let resolve = |identifier: &str| store.resolve(&target, owner, &scopes, identifier.as_bytes());
    assert!(resolve(&kept_identifier).is_ok());
    assert_eq!(resolve(&gone_identifier).unwrap_err(), ResolveError::Ended);
}

/// E12, N4: a journal whose file of ends is missing or empty begins with the end of all earlier
/// sessions, which survives a crash. One with a damaged file is an error.
#[tokio::test]
async fn unknown_ends_end_all_sessions() {
    let parent = tempfile::tempdir().unwrap();
    let clock = Arc::<ManualClock>::default();
    let floor = SessionEnd::Floor {
        scope: None,
        created: after(1),
    };
    let open = || {
        let directory = StateDirectory::open(parent.path()).unwrap();
        FileJournal::open(directory, RETENTION, Arc::clone(&clock) as _, Some(floor))
    };
    let path = parent.path().join(ENDS);
    for _ in 0..2 {
        let (journal, recovered) = open().unwrap();
        assert_eq!(recovered.ends, [floor]);
        assert_eq!(journal.record(&end(1, 2)).await, Ok(()));
        drop(journal);
        assert_eq!(
            open().unwrap().1.ends,
            [floor, end(1, 2)],
            "a file with ends is used"
        );
        fs::write(&path, "").unwrap();
    }
    let (journal, _) = open().unwrap();
    assert_eq!(journal.record(&end(1, 2)).await, Ok(()));
    drop(journal);
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<_> = text.lines().collect();
    lines[1] = "damaged";
    fs::write(&path, lines.join("\n")).unwrap();
    assert_eq!(
        open().err().map(|error| error.code()),
        Some("state.damaged")
    );
    fs::write(&path, format!("{text}cut off")).unwrap();
    assert_eq!(open().unwrap().1.ends, [floor, end(1, 2)]);
}

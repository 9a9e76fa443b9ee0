//! Processes that share session keys, and the records of their journals.

use super::*;
use crate::{
    AnnouncedSession,
    journal::{EndConfirmation, EndTicket, SessionEnd},
};

/// A journal that keeps the records in memory.
#[derive(Default)]
pub(super) struct Recorded {
    pub(super) ends: Mutex<Vec<SessionEnd>>,
    pub(super) last_uses: Mutex<Vec<LastUse>>,
    pub(super) announced: Mutex<Vec<AnnouncedSession>>,
    pub(super) is_incomplete: AtomicBool,
    /// Whether nothing can be recorded.
    pub(super) is_failing: AtomicBool,
    /// The confirmations of the ends, if they are to be kept.
    pub(super) pending: Mutex<Option<Vec<EndConfirmation>>>,
    pub(super) peer_delay: Duration,
}

impl SessionJournal for Recorded {
    fn record(&self, end: &SessionEnd) -> EndTicket {
        if self.is_failing.load(Ordering::SeqCst) {
            return EndTicket::failed();
        }
        self.ends.lock().push(*end);
        let mut pending = self.pending.lock();
        let Some(pending) = &mut *pending else {
            return EndTicket::done();
        };
        let (confirmation, ticket) = EndTicket::pending();
        pending.push(confirmation);
        ticket
    }

    fn record_last_uses(&self, uses: &[LastUse]) {
        self.last_uses.lock().extend_from_slice(uses);
    }

    fn announce(&self, sessions: &[AnnouncedSession]) {
        self.announced.lock().extend_from_slice(sessions);
    }

    fn is_complete(&self) -> bool {
        !self.is_incomplete.load(Ordering::SeqCst)
    }

    fn peer_delay(&self) -> Duration {
        self.peer_delay
    }
}

/// A process with its journal. All processes have the same key and the same clock.
pub(super) struct Process {
    pub(super) fixture: Fixture,
    pub(super) journal: Arc<Recorded>,
}

pub(super) fn process(clock: &Arc<ManualClock>, peer_delay: Duration) -> Process {
    process_with(clock, peer_delay, |_| {})
}

/// A process with changed settings, whose peers see its records after this delay.
pub(super) fn process_with(
    clock: &Arc<ManualClock>,
    peer_delay: Duration,
    change: impl FnOnce(&mut SessionSettings),
) -> Process {
    let mut settings = SessionSettings::new(SessionKey::new(1, &[5; 32]));
    settings.max_per_owner = 4;
    change(&mut settings);
    let ended = Arc::new(EndedSessions::default());
    let journal = Arc::new(Recorded {
        peer_delay,
        ..Recorded::default()
    });
    let limits = EndsLimits {
        per_owner: 3,
        ..EndsLimits::DEFAULT
    };
    let store = SessionStore::builder(settings)
        .clock(clock.clone())
        .observer(ended.clone())
        .journal(journal.clone())
        .with_limits(limits);
    Process {
        fixture: Fixture {
            store,
            clock: clock.clone(),
            ended,
            target: target(),
        },
        journal,
    }
}

/// Returns two processes that do not exchange records.
pub(super) fn two() -> (Process, Process) {
    let clock = Arc::new(ManualClock::default());
    clock.advance(Duration::from_secs(1_800_000_000));
    (
        process(&clock, Duration::ZERO),
        process(&clock, Duration::ZERO),
    )
}

impl Process {
    pub(super) fn open(&self) -> Identifier {
        self.fixture.clock.advance(Duration::from_millis(1));
        self.fixture.open(ALICE).identifier()
    }

    pub(super) fn try_use(&self, identifier: &Identifier) -> Result<(), ResolveError> {
        self.fixture.find(ALICE, identifier.as_bytes()).map(drop)
    }

    pub(super) fn end(&self, identifier: &Identifier) {
        let in_use = self.fixture.find(ALICE, identifier.as_bytes()).unwrap();
        assert!(
            self.fixture
                .store
                .end(&in_use, EndReason::Deleted)
                .unwrap()
                .is_done()
        );
    }

    pub(super) fn is_ended_by_owner(&self, owner: Owner<'_>, identifier: &Identifier) -> bool {
        let Fixture { store, target, .. } = &self.fixture;
        store.is_ended_by_owner(target, owner, identifier.as_bytes())
    }

    /// Records the end that `resolve` has reported.
    pub(super) fn record_known_end(&self, identifier: &Identifier) -> EndRecord {
        self.fixture
            .store
            .record_known_end(&self.fixture.target, ALICE, identifier.as_bytes())
    }

    pub(super) fn reasons(&self) -> Vec<EndReason> {
        self.fixture
            .ended
            .take()
            .into_iter()
            .map(|(_, reason)| reason)
            .collect()
    }

    /// Passes the records of this process to another one.
    pub(super) fn tell(&self, other: &Self) {
        for end in std::mem::take(&mut *self.journal.ends.lock()) {
            other.fixture.store.import(&end);
        }
        other
            .fixture
            .store
            .import_last_uses(&std::mem::take(&mut *self.journal.last_uses.lock()));
    }
}

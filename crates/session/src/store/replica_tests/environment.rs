//! The steps of a history, and the clocks and the journal of its processes.

use super::*;

#[derive(Clone, Debug)]
pub(super) enum Step {
    Create {
        replica: usize,
        owner: usize,
    },
    Use {
        replica: usize,
        session: usize,
        identifier: usize,
        owner: usize,
        scopes: usize,
    },
    Delete {
        replica: usize,
        session: usize,
    },
    EndOwner {
        replica: usize,
        owner: usize,
    },
    Advance {
        millis: u64,
    },
    Restart {
        replica: usize,
    },
    LoseStore,
    RestoreStore,
}

/// Any step of a history.
pub(super) fn any_step() -> impl Strategy<Value = Step> {
    let millis = prop_oneof![
        3 => 0..10 * SECOND,
        3 => MINUTE..2 * MINUTE,
        2 => Just(GRACE + MINUTE),
        3 => Just(IDLE - 5 * MINUTE),
        1 => Just(IDLE + 5 * MINUTE),
    ];
    prop_oneof![
        4 => (0..3_usize, 0..2_usize).prop_map(|(replica, owner)| Step::Create { replica, owner }),
        16 => (0..3_usize, any::<usize>(), any::<usize>(), 0..8_usize, 0..2_usize)
            .prop_map(|(replica, session, identifier, owner, scopes)| Step::Use { replica, session, identifier, owner, scopes }),
        4 => (0..3_usize, any::<usize>()).prop_map(|(replica, session)| Step::Delete { replica, session }),
        1 => (0..3_usize, 0..2_usize).prop_map(|(replica, owner)| Step::EndOwner { replica, owner }),
        6 => millis.prop_map(|millis| Step::Advance { millis }),
        1 => (0..3_usize).prop_map(|replica| Step::Restart { replica }),
        1 => Just(Step::LoseStore),
        2 => Just(Step::RestoreStore),
    ]
}

/// The clock of one process. All clocks advance together.
pub(super) struct ReplicaClock {
    pub(super) base: Arc<AtomicU64>,
    /// Milliseconds ahead of the slowest clock.
    pub(super) ahead: u64,
    pub(super) started: u64,
}

impl Clock for ReplicaClock {
    fn now(&self) -> UnixTime {
        UnixTime::from_millis(START + self.base.load(Ordering::SeqCst) + self.ahead)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.base.load(Ordering::SeqCst) - self.started)
    }
}

/// The state that the processes share.
#[derive(Default)]
pub(super) struct SharedStore {
    pub(super) is_up: AtomicBool,
    pub(super) ends: Mutex<Vec<SessionEnd>>,
    pub(super) last_uses: Mutex<HashMap<SessionId, UnixTime>>,
    /// The records that have not reached the other processes yet.
    pub(super) unsent: Mutex<Vec<Message>>,
}

#[derive(Clone, Copy)]
pub(super) enum Message {
    End(SessionEnd),
    Used(LastUse),
}

pub(super) struct ReplicaJournal {
    pub(super) shared: Arc<SharedStore>,
    pub(super) is_complete: AtomicBool,
}

impl SessionJournal for ReplicaJournal {
    fn record(&self, end: &SessionEnd) -> EndTicket {
        if !self.shared.is_up.load(Ordering::SeqCst) {
            return EndTicket::failed();
        }
        self.shared.ends.lock().push(*end);
        self.shared.unsent.lock().push(Message::End(*end));
        EndTicket::done()
    }

    fn record_last_uses(&self, uses: &[LastUse]) {
        if self.shared.is_up.load(Ordering::SeqCst) {
            for used in uses {
                let mut last_uses = self.shared.last_uses.lock();
                let known = last_uses.entry(used.session).or_insert(used.time);
                *known = used.time.max(*known);
                self.shared.unsent.lock().push(Message::Used(*used));
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.is_complete.load(Ordering::SeqCst)
    }

    fn peer_delay(&self) -> Duration {
        Duration::from_millis(PEER_DELAY)
    }
}

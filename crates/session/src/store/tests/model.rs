//! Random histories of a store, compared with a simple model.

use proptest::prelude::*;

use super::*;

const OWNERS: [Owner<'_>; 3] = [ALICE, MALLORY, Owner::Anonymous];
const SCOPES: [&str; 3] = ["", "a", "a b"];

const MINUTE: u64 = 60_000;
/// The default settings, in milliseconds.
const IDLE: u64 = 30 * MINUTE;
const LIFETIME: u64 = 24 * 60 * MINUTE;
/// A session gets at most one new identifier in this period.
const PERIOD: u64 = MINUTE;
/// How long the old identifier is valid after the first use of the new one.
const GRACE: u64 = 5 * MINUTE;

const MAX_TOTAL: usize = 6;
const MAX_PER_OWNER: usize = 3;

/// One step of a history. Numbers select an existing session, identifier or reservation, modulo
/// their count.
#[derive(Clone, Debug)]
enum Step {
    Open {
        owner: usize,
        scopes: usize,
    },
    /// Reserves a session. A later step opens it or drops the reservation.
    Reserve {
        owner: usize,
        scopes: usize,
    },
    OpenReserved {
        reservation: usize,
    },
    Cancel {
        reservation: usize,
    },
    Use {
        session: usize,
        identifier: usize,
        owner: usize,
        scopes: usize,
    },
    /// Uses the newest identifier of the newest session, as most clients do.
    UseNewest {
        scopes: usize,
    },
    /// Begins a use that a later `Release` ends.
    Hold {
        session: usize,
    },
    Release {
        session: usize,
    },
    End {
        session: usize,
    },
    Advance {
        millis: u64,
    },
    Sweep,
    Rotate {
        keys: Vec<u8>,
    },
}

/// Any step. Times are at and just before each limit.
fn any_step() -> impl Strategy<Value = Step> {
    let advance = prop_oneof![
        0_u64..2,
        Just(PERIOD - 1),
        Just(PERIOD),
        Just(GRACE - 1),
        Just(GRACE),
        Just(IDLE - 1),
        Just(IDLE),
        Just(LIFETIME / 2),
    ];
    prop_oneof![
        4 => (0..OWNERS.len(), 0..SCOPES.len()).prop_map(|(owner, scopes)| Step::Open { owner, scopes }),
        2 => (0..OWNERS.len(), 0..SCOPES.len()).prop_map(|(owner, scopes)| Step::Reserve { owner, scopes }),
        2 => any::<usize>().prop_map(|reservation| Step::OpenReserved { reservation }),
        1 => any::<usize>().prop_map(|reservation| Step::Cancel { reservation }),
        3 => any::<usize>().prop_map(|session| Step::Hold { session }),
        2 => any::<usize>().prop_map(|session| Step::Release { session }),
        6 => (any::<usize>(), any::<usize>(), 0..OWNERS.len(), 0..SCOPES.len())
            .prop_map(|(session, identifier, owner, scopes)| Step::Use { session, identifier, owner, scopes }),
        6 => (0..SCOPES.len()).prop_map(|scopes| Step::UseNewest { scopes }),
        1 => any::<usize>().prop_map(|session| Step::End { session }),
        5 => advance.prop_map(|millis| Step::Advance { millis }),
        1 => Just(Step::Sweep),
        1 => proptest::sample::subsequence(vec![1_u8, 2, 3], 1..=3).prop_shuffle().prop_map(|keys| Step::Rotate { keys }),
    ]
}

/// An identifier of a session.
struct ModelIdentifier {
    text: Identifier,
    key: u8,
    scopes: usize,
    made: u64,
    first_used: Option<u64>,
}

/// A session in the model, and the one in the store.
struct ModelSession {
    real: Arc<Session>,
    owner: usize,
    names: Vec<ModelIdentifier>,
    opened: u64,
    last_used: u64,
    present: bool,
    held: Vec<InUse>,
}

/// A reservation in the model, and the one in the store.
struct ModelReservation {
    real: Reservation,
    owner: usize,
    scopes: usize,
    key: u8,
}

impl ModelSession {
    /// Returns why the session must end now, if it must.
    fn expiry_reason(&self, now: u64) -> Option<EndReason> {
        if now - self.opened >= LIFETIME {
            Some(EndReason::Lifetime)
        } else if self.held.is_empty() && now - self.last_used >= IDLE {
            Some(EndReason::Idle)
        } else {
            None
        }
    }

    fn is_retired(&self, number: usize, now: u64) -> bool {
        self.names
            .get(number + 1)
            .and_then(|next| next.first_used)
            .is_some_and(|used| now - used >= GRACE)
    }
}

/// A store and its model. Each step changes both and compares them.
struct History {
    fixture: Fixture,
    sessions: Vec<ModelSession>,
    reserved: Vec<ModelReservation>,
    keys: Vec<u8>,
    now: u64,
    ended: Vec<(Box<str>, EndReason)>,
}

/// Returns keys with these numbers. Two of the three keys have the same epoch.
fn keys(numbers: &[u8]) -> SessionKeys {
    SessionKeys::new(
        numbers
            .iter()
            .map(|&number| SessionKey::new(number / 2, &[number; 32])),
    )
    .unwrap()
}

impl History {
    fn new() -> Self {
        let fixture = fixture_with(|settings| {
            settings.keys = keys(&[1]);
            (settings.max_total, settings.max_per_owner) = (MAX_TOTAL, MAX_PER_OWNER);
        });
        Self {
            fixture,
            sessions: Vec::new(),
            reserved: Vec::new(),
            keys: vec![1],
            now: 0,
            ended: Vec::new(),
        }
    }

    /// Does a step in the store and in the model.
    fn apply(&mut self, step: &Step) {
        match step {
            Step::Open { owner, scopes } => {
                if self.reserve(*owner, *scopes) {
                    self.open(self.reserved.len() - 1);
                }
            }
            Step::Reserve { owner, scopes } => {
                self.reserve(*owner, *scopes);
            }
            Step::OpenReserved { reservation } => {
                if let Some(at) = reservation.checked_rem(self.reserved.len()) {
                    self.open(at);
                }
            }
            Step::Cancel { reservation } => {
                if let Some(at) = reservation.checked_rem(self.reserved.len()) {
                    self.reserved.remove(at);
                }
            }
            Step::Use {
                session,
                identifier,
                owner,
                scopes,
            } => {
                if let Some(at) = self.index(*session) {
                    let number = identifier % self.sessions[at].names.len();
                    drop(self.use_session(at, number, *owner, *scopes));
                }
            }
            Step::UseNewest { scopes } => {
                if let Some(newest) = self.sessions.last() {
                    let number = newest.names.len() - 1;
                    let owner = newest.owner;
                    drop(self.use_session(self.sessions.len() - 1, number, owner, *scopes));
                }
            }
            Step::Hold { session } => {
                if let Some(at) = self.index(*session) {
                    let owner = self.sessions[at].owner;
                    let held = self.use_session(at, self.sessions[at].names.len() - 1, owner, 0);
                    self.sessions[at].held.extend(held);
                }
            }
            Step::Release { session } => {
                if let Some(at) = self.index(*session) {
                    self.release(at);
                }
            }
            Step::End { session } => {
                if let Some(at) = self.index(*session) {
                    self.fixture
                        .store
                        .end(&self.sessions[at].real, EndReason::Deleted);
                    self.end(at, EndReason::Deleted);
                }
            }
            Step::Advance { millis } => {
                self.fixture.clock.advance(Duration::from_millis(*millis));
                self.now += millis;
            }
            Step::Sweep => {
                let before = self.ended.len();
                for at in 0..self.sessions.len() {
                    if let Some(reason) = self.sessions[at].expiry_reason(self.now) {
                        self.end(at, reason);
                    }
                }
                assert_eq!(self.fixture.store.sweep(), self.ended.len() - before);
            }
            Step::Rotate { keys: numbers } => {
                self.fixture.store.set_keys(keys(numbers));
                self.keys.clone_from(numbers);
            }
        }
        self.compare();
    }

    /// Returns the index of a session.
    fn index(&self, number: usize) -> Option<usize> {
        number.checked_rem(self.sessions.len())
    }

    fn present_sessions(&self, owner: usize) -> impl Iterator<Item = (usize, &ModelSession)> {
        self.sessions
            .iter()
            .enumerate()
            .filter(move |(_, session)| session.owner == owner && session.present)
    }

    /// Reserves a session, and returns whether that is possible.
    fn reserve(&mut self, owner: usize, scopes: usize) -> bool {
        let present = self
            .sessions
            .iter()
            .filter(|session| session.present)
            .count();
        let sessions = self.present_sessions(owner).count();
        let unused = self
            .present_sessions(owner)
            .filter(|(_, session)| session.held.is_empty())
            .count();
        let reserved = self
            .reserved
            .iter()
            .filter(|reserved| reserved.owner == owner)
            .count();
        let exceeding = (sessions + reserved + 1).saturating_sub(MAX_PER_OWNER);
        let expected = if OWNERS[owner] != Owner::Anonymous && unused < exceeding {
            Some(ReservationError::OwnerLimit)
        } else {
            (present + self.reserved.len() >= MAX_TOTAL).then_some(ReservationError::TotalLimit)
        };
        let text = Scopes::parse(SCOPES[scopes]).unwrap();
        let real = self
            .fixture
            .store
            .reserve(&self.fixture.target, OWNERS[owner], &text);
        assert_eq!(real.as_ref().err().copied(), expected);

        self.reserved.extend(real.map(|real| ModelReservation {
            real,
            owner,
            scopes,
            key: self.keys[0],
        }));
        expected.is_none()
    }

    /// Opens a reserved session, which may evict the owner's least recently used one.
    fn open(&mut self, reservation: usize) {
        let ModelReservation {
            real,
            owner,
            scopes,
            key,
        } = self.reserved.remove(reservation);
        let opened = real.open(Box::default(), None);
        if OWNERS[owner] != Owner::Anonymous
            && self.present_sessions(owner).count() == MAX_PER_OWNER
        {
            let unused = || {
                self.present_sessions(owner)
                    .filter(|(_, session)| session.held.is_empty())
            };
            let Some(oldest) = unused().map(|(_, session)| session.last_used).min() else {
                assert_eq!(opened.map(drop).unwrap_err(), ReservationError::OwnerLimit);
                return;
            };
            // Any one of those that were last used in the same millisecond.
            let ended: Vec<_> = unused()
                .filter(|(_, session)| session.real.has_ended())
                .map(|(at, _)| at)
                .collect();
            let [at] = ended[..] else {
                panic!("{} sessions ended", ended.len())
            };
            assert_eq!(self.sessions[at].last_used, oldest);
            self.end(
                at,
                self.sessions[at]
                    .expiry_reason(self.now)
                    .unwrap_or(EndReason::Evicted),
            );
        }
        let real = Arc::clone(opened.unwrap().session());
        let first = ModelIdentifier {
            text: real.identifier(),
            key,
            scopes,
            made: self.now,
            first_used: None,
        };
        let opened = self.now;
        let last_used = self.now;
        let names = vec![first];
        let held = Vec::new();
        self.sessions.push(ModelSession {
            real,
            owner,
            names,
            opened,
            last_used,
            present: true,
            held,
        });
    }

    /// Ends one use of a session.
    fn release(&mut self, at: usize) {
        let now = self.now;
        let session = &mut self.sessions[at];
        if session.held.pop().is_none() || !session.present {
            return;
        }
        if now - session.opened >= LIFETIME {
            self.end(at, EndReason::Lifetime);
        } else {
            session.last_used = now;
        }
    }

    /// Uses a session with one of its identifiers, and returns the use if that is allowed.
    fn use_session(
        &mut self,
        at: usize,
        number: usize,
        owner: usize,
        scopes: usize,
    ) -> Option<InUse> {
        let now = self.now;
        let session = &mut self.sessions[at];
        let name = &session.names[number];
        let expected = if !self.keys.contains(&name.key) || owner != session.owner {
            Err(ResolveError::Unknown)
        } else if !session.present || session.is_retired(number, now) {
            Err(ResolveError::Ended)
        } else if let Some(reason) = session.expiry_reason(now) {
            self.end(at, reason);
            Err(ResolveError::Ended)
        } else {
            Ok(())
        };
        let session = &mut self.sessions[at];
        let text = session.names[number].text.clone();
        let scope = Scopes::parse(SCOPES[scopes]).unwrap();
        let found = self.fixture.store.resolve(
            &self.fixture.target,
            OWNERS[owner],
            &scope,
            text.as_bytes(),
        );
        assert_eq!(found.as_ref().map(drop).map_err(|error| *error), expected);

        let found = found.ok()?;
        session.names[number].first_used.get_or_insert(now);
        session.last_used = now;

        let rotated = found.rotated_identifier();
        let newest = session.names.last().unwrap();
        if number + 1 < session.names.len() {
            assert_eq!(rotated, Some(newest.text.clone()));
        } else if scopes == newest.scopes || (number > 0 && now - newest.made < PERIOD) {
            assert_eq!(rotated, None);
        } else {
            let text = rotated.expect("a new identifier");
            assert!(session.names.iter().all(|name| name.text != text));
            let key = session.names[0].key;
            session.names.push(ModelIdentifier {
                text,
                key,
                scopes,
                made: now,
                first_used: None,
            });
        }
        Some(found)
    }

    /// Ends a session in the model.
    fn end(&mut self, at: usize, reason: EndReason) {
        if std::mem::take(&mut self.sessions[at].present) {
            self.ended
                .push(((*self.sessions[at].names[0].text).into(), reason));
        }
    }

    /// Compares the counts, identifiers and ended sessions of the store and the model.
    fn compare(&mut self) {
        let present: Vec<_> = self
            .sessions
            .iter()
            .filter(|session| session.present)
            .collect();
        assert_eq!(self.fixture.store.len(), present.len());
        assert_eq!(
            self.fixture.store.0.capacity.counts().0,
            present.len() + self.reserved.len()
        );
        let mut owners: Vec<_> = present.iter().map(|session| session.owner).collect();
        owners.extend(self.reserved.iter().map(|reserved| reserved.owner));
        owners.retain(|owner| OWNERS[*owner] != Owner::Anonymous);
        owners.sort_unstable();
        owners.dedup();
        assert_eq!(self.fixture.store.0.capacity.counts().1, owners.len());
        if self.reserved.is_empty() {
            let of_subjects = present
                .iter()
                .filter(|session| OWNERS[session.owner] != Owner::Anonymous)
                .count();
            assert_eq!(
                self.fixture
                    .store
                    .0
                    .capacity
                    .subject_counts()
                    .iter()
                    .sum::<usize>(),
                of_subjects
            );
        }
        assert!(
            self.fixture.store.0.rotated.len()
                <= present.iter().map(|session| session.names.len() - 1).sum()
        );

        for session in present {
            assert_eq!(
                session.real.identifier(),
                session.names.last().unwrap().text
            );
        }
        let mut reported = self.fixture.ended.take();
        let mut expected = std::mem::take(&mut self.ended);
        reported.sort_by(|one, other| one.0.cmp(&other.0));
        expected.sort_by(|one, other| one.0.cmp(&other.0));
        assert_eq!(reported, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// E8, E9, E10: after any history, a store resolves, renews, ends and rejects exactly as the
    /// model does.
    #[test]
    fn histories_follow_the_model(steps in proptest::collection::vec(any_step(), 1..80)) {
        let mut history = History::new();
        for step in &steps {
            history.apply(step);
        }
    }
}

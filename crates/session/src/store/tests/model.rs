//! Random histories of one store, compared with a simple model.

use proptest::prelude::*;

use super::*;

const OWNERS: [Owner<'_>; 3] = [ALICE, MALLORY, Owner::Anonymous];
const SCOPES: [&str; 3] = ["", "a", "a b"];
const IDLE: u64 = 30 * 60_000;
const LIFETIME: u64 = 24 * 60 * 60_000;
const PERIOD: u64 = 60_000;
const GRACE: u64 = 5 * 60_000;
const MAX_TOTAL: usize = 6;
const MAX_PER_OWNER: usize = 3;

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
    /// The newest of all, as in most histories.
    UseNewest {
        scopes: usize,
    },
    /// Begins a use that a later step ends.
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

struct Named {
    text: Identifier,
    key: u8,
    scopes: usize,
    made: u64,
    first_used: Option<u64>,
}

struct Modelled {
    real: Arc<Session>,
    owner: usize,
    names: Vec<Named>,
    opened: u64,
    last_used: u64,
    present: bool,
    held: Vec<InUse>,
}

struct Reserved {
    real: Reservation,
    owner: usize,
    scopes: usize,
    key: u8,
}

impl Modelled {
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
        self.names.get(number + 1).and_then(|next| next.first_used).is_some_and(|used| now - used >= GRACE)
    }
}

struct History {
    bench: Bench,
    sessions: Vec<Modelled>,
    reserved: Vec<Reserved>,
    keys: Vec<u8>,
    now: u64,
    ended: Vec<(Box<str>, EndReason)>,
}

fn keys(numbers: &[u8]) -> SessionKeys {
    // Two of the three keys have the same epoch.
    SessionKeys::new(numbers.iter().map(|&number| SessionKey::new(number / 2, &[number; 32]))).unwrap()
}

impl History {
    fn new() -> Self {
        let bench = bench_with(|settings| {
            settings.keys = keys(&[1]);
            (settings.max_total, settings.max_per_owner) = (MAX_TOTAL, MAX_PER_OWNER);
        });
        Self { bench, sessions: Vec::new(), reserved: Vec::new(), keys: vec![1], now: 0, ended: Vec::new() }
    }

    fn take(&mut self, step: &Step) {
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
            Step::Use { session, identifier, owner, scopes } => {
                if let Some(at) = self.pick(*session) {
                    let number = identifier % self.sessions[at].names.len();
                    drop(self.use_it(at, number, *owner, *scopes));
                }
            }
            Step::UseNewest { scopes } => {
                if let Some(newest) = self.sessions.last() {
                    let number = newest.names.len() - 1;
                    let owner = newest.owner;
                    drop(self.use_it(self.sessions.len() - 1, number, owner, *scopes));
                }
            }
            Step::Hold { session } => {
                if let Some(at) = self.pick(*session) {
                    let owner = self.sessions[at].owner;
                    let held = self.use_it(at, self.sessions[at].names.len() - 1, owner, 0);
                    self.sessions[at].held.extend(held);
                }
            }
            Step::Release { session } => {
                if let Some(at) = self.pick(*session) {
                    self.release(at);
                }
            }
            Step::End { session } => {
                if let Some(at) = self.pick(*session) {
                    self.bench.store.end(&self.sessions[at].real, EndReason::Deleted);
                    self.gone(at, EndReason::Deleted);
                }
            }
            Step::Advance { millis } => {
                self.bench.clock.advance(Duration::from_millis(*millis));
                self.now += millis;
            }
            Step::Sweep => {
                let before = self.ended.len();
                for at in 0..self.sessions.len() {
                    if let Some(reason) = self.sessions[at].expiry_reason(self.now) {
                        self.gone(at, reason);
                    }
                }
                assert_eq!(self.bench.store.sweep(), self.ended.len() - before);
            }
            Step::Rotate { keys: numbers } => {
                self.bench.store.set_keys(keys(numbers));
                self.keys.clone_from(numbers);
            }
        }
        self.compare();
    }

    fn pick(&self, number: usize) -> Option<usize> {
        number.checked_rem(self.sessions.len())
    }

    fn of_owner(&self, owner: usize) -> impl Iterator<Item = (usize, &Modelled)> {
        self.sessions.iter().enumerate().filter(move |(_, modelled)| modelled.owner == owner && modelled.present)
    }

    fn reserve(&mut self, owner: usize, scopes: usize) -> bool {
        let present = self.sessions.iter().filter(|modelled| modelled.present).count();
        let sessions = self.of_owner(owner).count();
        let unused = self.of_owner(owner).filter(|(_, modelled)| modelled.held.is_empty()).count();
        let reserved = self.reserved.iter().filter(|reserved| reserved.owner == owner).count();
        let exceeding = (sessions + reserved + 1).saturating_sub(MAX_PER_OWNER);
        let expected = if OWNERS[owner] != Owner::Anonymous && unused < exceeding {
            Some(ReservationError::OwnerLimit)
        } else {
            (present + self.reserved.len() >= MAX_TOTAL).then_some(ReservationError::TotalLimit)
        };
        let text = Scopes::parse(SCOPES[scopes]).unwrap();
        let real = self.bench.store.reserve(&self.bench.target, OWNERS[owner], &text);
        assert_eq!(real.as_ref().err().copied(), expected);

        self.reserved.extend(real.map(|real| Reserved { real, owner, scopes, key: self.keys[0] }));
        expected.is_none()
    }

    fn open(&mut self, reservation: usize) {
        let Reserved { real, owner, scopes, key } = self.reserved.remove(reservation);
        let opened = real.open(Box::default(), None);
        if OWNERS[owner] != Owner::Anonymous && self.of_owner(owner).count() == MAX_PER_OWNER {
            let unused = || self.of_owner(owner).filter(|(_, modelled)| modelled.held.is_empty());
            let Some(oldest) = unused().map(|(_, modelled)| modelled.last_used).min() else {
                assert_eq!(opened.map(drop).unwrap_err(), ReservationError::OwnerLimit);
                return;
            };
            // Any one of those that were last used in the same millisecond.
            let ended: Vec<_> = unused().filter(|(_, modelled)| modelled.real.has_ended()).map(|(at, _)| at).collect();
            let [at] = ended[..] else { panic!("{} sessions ended", ended.len()) };
            assert_eq!(self.sessions[at].last_used, oldest);
            self.gone(at, self.sessions[at].expiry_reason(self.now).unwrap_or(EndReason::Evicted));
        }
        let real = Arc::clone(opened.unwrap().session());
        let first = Named { text: real.identifier(), key, scopes, made: self.now, first_used: None };
        let opened = self.now;
        let last_used = self.now;
        let names = vec![first];
        let held = Vec::new();
        self.sessions.push(Modelled { real, owner, names, opened, last_used, present: true, held });
    }

    fn release(&mut self, at: usize) {
        let now = self.now;
        let modelled = &mut self.sessions[at];
        if modelled.held.pop().is_none() || !modelled.present {
            return;
        }
        if now - modelled.opened >= LIFETIME {
            self.gone(at, EndReason::Lifetime);
        } else {
            modelled.last_used = now;
        }
    }

    fn use_it(&mut self, at: usize, number: usize, owner: usize, scopes: usize) -> Option<InUse> {
        let now = self.now;
        let modelled = &mut self.sessions[at];
        let name = &modelled.names[number];
        let expected = if !self.keys.contains(&name.key) || owner != modelled.owner {
            Err(ResolveError::Unknown)
        } else if !modelled.present || modelled.is_retired(number, now) {
            Err(ResolveError::Ended)
        } else if let Some(reason) = modelled.expiry_reason(now) {
            self.gone(at, reason);
            Err(ResolveError::Ended)
        } else {
            Ok(())
        };
        let modelled = &mut self.sessions[at];
        let text = modelled.names[number].text.clone();
        let scope = Scopes::parse(SCOPES[scopes]).unwrap();
        let found = self.bench.store.resolve(&self.bench.target, OWNERS[owner], &scope, text.as_bytes());
        assert_eq!(found.as_ref().map(drop).map_err(|refused| *refused), expected);

        let found = found.ok()?;
        modelled.names[number].first_used.get_or_insert(now);
        modelled.last_used = now;

        let told = found.rotated_identifier();
        let newest = modelled.names.last().unwrap();
        if number + 1 < modelled.names.len() {
            assert_eq!(told, Some(newest.text.clone()));
        } else if scopes == newest.scopes || (number > 0 && now - newest.made < PERIOD) {
            assert_eq!(told, None);
        } else {
            let text = told.expect("a new identifier");
            assert!(modelled.names.iter().all(|name| name.text != text));
            let key = modelled.names[0].key;
            modelled.names.push(Named { text, key, scopes, made: now, first_used: None });
        }
        Some(found)
    }

    fn gone(&mut self, at: usize, reason: EndReason) {
        if std::mem::take(&mut self.sessions[at].present) {
            self.ended.push(((*self.sessions[at].names[0].text).into(), reason));
        }
    }

    fn compare(&mut self) {
        let present: Vec<_> = self.sessions.iter().filter(|modelled| modelled.present).collect();
        assert_eq!(self.bench.store.len(), present.len());
        assert_eq!(self.bench.store.0.capacity.counts().0, present.len() + self.reserved.len());
        let mut owners: Vec<_> = present.iter().map(|modelled| modelled.owner).collect();
        owners.extend(self.reserved.iter().map(|reserved| reserved.owner));
        owners.retain(|owner| OWNERS[*owner] != Owner::Anonymous);
        owners.sort_unstable();
        owners.dedup();
        assert_eq!(self.bench.store.0.capacity.counts().1, owners.len());
        assert!(self.bench.store.0.rotated.len() <= present.iter().map(|modelled| modelled.names.len() - 1).sum());

        for modelled in present {
            assert_eq!(modelled.real.identifier(), modelled.names.last().unwrap().text);
        }
        let mut heard = self.bench.heard.take();
        let mut expected = std::mem::take(&mut self.ended);
        heard.sort_by(|one, other| one.0.cmp(&other.0));
        expected.sort_by(|one, other| one.0.cmp(&other.0));
        assert_eq!(heard, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// E8, E9, E10: after any history, a store resolves, renews, ends and rejects exactly as the model does.
    #[test]
    fn histories_follow_the_model(steps in proptest::collection::vec(any_step(), 1..80)) {
        let mut history = History::new();
        for step in &steps {
            history.take(step);
        }
    }
}

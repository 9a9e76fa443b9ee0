//! Random histories against a simple model of what a store should do.

use proptest::prelude::*;

use super::*;

const OWNERS: [Owner<'_>; 3] = [ALICE, MALLORY, Owner::Nobody];
const SCOPES: [&str; 3] = ["", "a", "a b"];
const IDLE: u64 = 30 * 60_000;
const LIFETIME: u64 = 24 * 60 * 60_000;
const PERIOD: u64 = 60_000;
const GRACE: u64 = 5 * 60_000;
const MAX_TOTAL: usize = 4;
const MAX_PER_OWNER: usize = 2;

#[derive(Clone, Debug)]
enum Step {
    Open {
        owner: usize,
        scopes: usize,
    },
    Use {
        session: usize,
        identifier: usize,
        owner: usize,
        scopes: Option<usize>,
    },
    /// What comes last, as most histories do.
    UseNewest {
        scopes: usize,
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
        2 => (0..OWNERS.len(), 0..SCOPES.len()).prop_map(|(owner, scopes)| Step::Open { owner, scopes }),
        6 => (any::<usize>(), any::<usize>(), 0..OWNERS.len(), proptest::option::of(0..SCOPES.len()))
            .prop_map(|(session, identifier, owner, scopes)| Step::Use { session, identifier, owner, scopes }),
        6 => (0..SCOPES.len()).prop_map(|scopes| Step::UseNewest { scopes }),
        1 => any::<usize>().prop_map(|session| Step::End { session }),
        5 => advance.prop_map(|millis| Step::Advance { millis }),
        1 => Just(Step::Sweep),
        1 => proptest::sample::subsequence(vec![1_u8, 2, 3], 1..=3).prop_shuffle().prop_map(|keys| Step::Rotate { keys }),
    ]
}

struct Name {
    text: Identifier,
    key: u8,
    scopes: usize,
    made: u64,
    first_used: Option<u64>,
}

struct Modelled {
    real: Arc<Session>,
    owner: usize,
    names: Vec<Name>,
    opened: u64,
    last_used: u64,
    present: bool,
}

impl Modelled {
    fn over(&self, now: u64) -> Option<EndReason> {
        if now - self.opened >= LIFETIME {
            Some(EndReason::Lifetime)
        } else if now - self.last_used >= IDLE {
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
    keys: Vec<u8>,
    now: u64,
    ended: Vec<(Box<str>, EndReason)>,
}

fn keys(numbers: &[u8]) -> SessionKeys {
    // Two of the three have one epoch.
    SessionKeys::new(numbers.iter().map(|&number| SessionKey::new(number / 2, [number; 16]))).unwrap()
}

impl History {
    fn new() -> Self {
        let bench = bench_with(|settings| {
            settings.keys = keys(&[1]);
            (settings.max_total, settings.max_per_owner) = (MAX_TOTAL, MAX_PER_OWNER);
        });
        Self { bench, sessions: Vec::new(), keys: vec![1], now: 0, ended: Vec::new() }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Open { owner, scopes } => self.open(*owner, *scopes),
            Step::Use { session, identifier, owner, scopes } => {
                if let Some(at) = self.pick(*session) {
                    let number = identifier % self.sessions[at].names.len();
                    self.use_it(at, number, *owner, *scopes);
                }
            }
            Step::UseNewest { scopes } => {
                if let Some(newest) = self.sessions.last() {
                    let (number, owner) = (newest.names.len() - 1, newest.owner);
                    self.use_it(self.sessions.len() - 1, number, owner, Some(*scopes));
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
                    if let Some(reason) = self.sessions[at].over(self.now) {
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

    fn open(&mut self, owner: usize, scopes: usize) {
        let of_owner = |modelled: &&Modelled| modelled.owner == owner && modelled.present;
        let present = self.sessions.iter().filter(|modelled| modelled.present).count();
        let expected =
            if OWNERS[owner] != Owner::Nobody && self.sessions.iter().filter(of_owner).count() >= MAX_PER_OWNER {
                Some(StoreFull::Owner)
            } else {
                (present >= MAX_TOTAL).then_some(StoreFull::Total)
            };
        let text = Scopes::parse(SCOPES[scopes]).unwrap();
        let room = self.bench.store.reserve(&self.bench.resource, OWNERS[owner], &text);
        assert_eq!(room.as_ref().err().copied(), expected);
        if let Ok(room) = room {
            let real = room.open(Box::default(), None);
            let first = Name { text: real.identifier(), key: self.keys[0], scopes, made: self.now, first_used: None };
            let (opened, last_used) = (self.now, self.now);
            self.sessions.push(Modelled { real, owner, names: vec![first], opened, last_used, present: true });
        }
    }

    fn use_it(&mut self, at: usize, number: usize, owner: usize, scopes: Option<usize>) {
        let (now, modelled) = (self.now, &mut self.sessions[at]);
        let name = &modelled.names[number];
        let expected = if !self.keys.contains(&name.key) || owner != modelled.owner {
            Err(Unresolved::Unknown)
        } else if !modelled.present || modelled.is_retired(number, now) {
            Err(Unresolved::Ended)
        } else if let Some(reason) = modelled.over(now) {
            self.gone(at, reason);
            Err(Unresolved::Ended)
        } else {
            Ok(())
        };
        let modelled = &mut self.sessions[at];
        let text = modelled.names[number].text;
        let found = self.bench.store.resolve(&self.bench.resource, OWNERS[owner], text.as_bytes());
        assert_eq!(found.as_ref().map(drop).map_err(|refused| *refused), expected);
        let Ok(found) = found else { return };
        modelled.names[number].first_used.get_or_insert(now);
        modelled.last_used = now;
        let Some(scopes) = scopes else { return };

        let told = self.bench.store.hold(found, &Scopes::parse(SCOPES[scopes]).unwrap()).renewed();
        let newest = modelled.names.last().unwrap();
        if number + 1 < modelled.names.len() {
            assert_eq!(told, Some(newest.text));
        } else if scopes == newest.scopes || (number > 0 && now - newest.made < PERIOD) {
            assert_eq!(told, None);
        } else {
            let text = told.expect("a new identifier");
            assert!(modelled.names.iter().all(|name| name.text != text));
            modelled.names.push(Name { text, key: self.keys[0], scopes, made: now, first_used: None });
        }
    }

    fn gone(&mut self, at: usize, reason: EndReason) {
        if std::mem::take(&mut self.sessions[at].present) {
            self.ended.push(((*self.sessions[at].names[0].text).into(), reason));
        }
    }

    fn compare(&mut self) {
        let present: Vec<_> = self.sessions.iter().filter(|modelled| modelled.present).collect();
        assert_eq!(self.bench.store.len(), present.len());
        assert_eq!(self.bench.store.0.rooms.counts().0, present.len());
        assert!(self.bench.store.0.renewed.len() <= present.iter().map(|modelled| modelled.names.len() - 1).sum());
        for modelled in present {
            assert_eq!(modelled.real.identifier(), modelled.names.last().unwrap().text);
        }
        let (mut heard, mut expected) = (self.bench.heard.take(), std::mem::take(&mut self.ended));
        heard.sort_by(|one, other| one.0.cmp(&other.0));
        expected.sort_by(|one, other| one.0.cmp(&other.0));
        assert_eq!(heard, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// E8, E9, E10: whatever the history, a store resolves, renews, ends and refuses exactly as the model says.
    #[test]
    fn histories_follow_the_model(steps in proptest::collection::vec(any_step(), 1..80)) {
        let mut history = History::new();
        for step in &steps {
            history.take(step);
        }
    }
}

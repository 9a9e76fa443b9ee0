//! Histories of replicas and a Redis that loses its data, with the state machine of each replica.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const REPLICAS: usize = 3;
/// This replica is restarted, and can be away for any time. The others keep what they know.
const RESTARTED: usize = 2;
const STEP: Duration = BEAT_INTERVAL;

/// Redis: what the scripts do.
struct Redis {
    generation: u8,
    born: Duration,
    /// The last beat of each replica.
    beats: BTreeMap<usize, LastBeat>,
    ends: BTreeSet<u32>,
}

struct LastBeat {
    time: Duration,
    /// The generation to which the replica has written its ends.
    written: Option<Generation>,
}

#[derive(Default)]
struct Replica {
    membership: Membership,
    known: BTreeSet<u32>,
    is_connected: bool,
    must_synchronize: bool,
    last_beat: Duration,
}

struct World {
    now: Duration,
    redis: Redis,
    replicas: Vec<Replica>,
    confirmed: BTreeSet<u32>,
    next_end: u32,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Time passes. Replicas whose bit is set beat, and so do those that must. The slow ones do not
    /// read the list.
    Tick {
        beating: u8,
        slow: u8,
    },
    End {
        replica: usize,
    },
    Disconnect {
        replica: usize,
    },
    RestartReplica,
    /// Redis restarts, without its data or with it.
    RestartRedis {
        is_empty: bool,
    },
}

impl World {
    fn new() -> Self {
        let redis = Redis {
            generation: 1,
            born: Duration::ZERO,
            beats: BTreeMap::new(),
            ends: BTreeSet::new(),
        };
        let replicas = (0..REPLICAS).map(|_| Replica::default()).collect();
        Self {
            now: Duration::ZERO,
            redis,
            replicas,
            confirmed: BTreeSet::new(),
            next_end: 0,
        }
    }

    /// Lets a replica write its heartbeat, and read the list unless it is slow.
    fn beat(&mut self, replica: usize, is_slow: bool) {
        let mut task = self.send_beat(replica);
        let this = &mut self.replicas[replica];
        this.must_synchronize |= task == Task::Synchronize;
        if is_slow {
            // The list was not read yet.
            return;
        }
        if std::mem::take(&mut this.must_synchronize) {
            self.read(replica);
            let Replica {
                membership, known, ..
            } = &mut self.replicas[replica];
            self.redis.ends.extend(known.iter());
            let known = known.clone();
            membership.wrote(Generation([self.redis.generation; 16]));
            self.publish(&known);
            task = self.send_beat(replica);
        }
        if task == Task::Read {
            self.read(replica);
        }
    }

    /// Writes the heartbeat of a replica, and returns its next task.
    fn send_beat(&mut self, replica: usize) -> Task {
        let now = self.now;
        let redis = &mut self.redis;
        let this = &mut self.replicas[replica];
        redis.beats.retain(|_, beat| now - beat.time < RETURN_TIME);
        let generation = Generation([redis.generation; 16]);
        redis.beats.insert(
            replica,
            LastBeat {
                time: now,
                written: this.membership.written(),
            },
        );
        let mut others = redis.beats.iter().filter(|(other, _)| **other != replica);
        let others_have_written = others.all(|(_, beat)| beat.written == Some(generation));
        (this.is_connected, this.last_beat) = (true, now);
        this.membership.beat(
            now,
            now,
            &Beat {
                generation,
                age: now - redis.born,
                others_have_written,
            },
        )
    }

    fn read(&mut self, replica: usize) {
        let Replica {
            membership, known, ..
        } = &mut self.replicas[replica];
        let was_settled = membership.is_settled();
        known.extend(&self.redis.ends);
        membership.read(
            Generation([self.redis.generation; 16]),
            was_settled,
            self.now,
        );
    }

    fn publish(&mut self, ends: &BTreeSet<u32>) {
        self.replicas
            .iter_mut()
            .filter(|other| other.is_connected)
            .for_each(|other| other.known.extend(ends));
    }

    /// Ends a session at a replica.
    fn end(&mut self, replica: usize) {
        let end = self.next_end;
        self.next_end += 1;
        self.replicas[replica].known.insert(end);
        let this = &self.replicas[replica];
        if !this.is_connected
            || this.membership.generation() != Some(Generation([self.redis.generation; 16]))
        {
            return;
        }
        self.redis.ends.insert(end);
        self.publish(&BTreeSet::from([end]));
        let mut live = self
            .redis
            .beats
            .iter()
            .filter(|(_, beat)| self.now - beat.time < LEASE);
        let is_received = live.all(|(other, _)| self.replicas[*other].is_connected);
        if is_received && self.now - self.redis.born >= RETURN_TIME {
            self.confirmed.insert(end);
        }
    }

    fn disconnect(&mut self, replica: usize) {
        self.replicas[replica].is_connected = false;
        self.replicas[replica].membership.disconnect();
    }

    /// Does a step and checks what must hold after it.
    fn step(&mut self, step: Step) {
        match step {
            Step::Tick { beating, slow } => {
                self.now += STEP;
                for replica in 0..REPLICAS {
                    // A replica that can reach Redis returns within this time.
                    let since = self.replicas[replica].last_beat.max(self.redis.born);
                    let must = replica != RESTARTED && self.now + STEP >= since + RETURN_TIME;
                    if must || beating & (1 << replica) != 0 {
                        self.beat(replica, slow & (1 << replica) != 0);
                    }
                }
            }
            Step::End { replica } => self.end(replica),
            Step::Disconnect { replica } => self.disconnect(replica),
            Step::RestartReplica => {
                self.replicas[RESTARTED] = Replica {
                    last_beat: self.now,
                    ..Replica::default()
                }
            }
            Step::RestartRedis { is_empty } => {
                self.redis.generation = self.redis.generation.wrapping_add(1);
                self.redis.born = self.now;
                if is_empty {
                    self.redis.ends.clear();
                    self.redis.beats.clear();
                }
                (0..REPLICAS).for_each(|replica| self.disconnect(replica));
            }
        }
        for (number, replica) in self.replicas.iter().enumerate() {
            if replica.membership.is_complete(self.now) {
                let missing: Vec<_> = self.confirmed.difference(&replica.known).collect();
                assert!(
                    missing.is_empty(),
                    "replica {number} is complete without {missing:?}"
                );
            }
        }
    }
}

/// Any history.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let replica = 0..REPLICAS;
    let step = prop_oneof![
        12 => (any::<u8>(), any::<u8>(), any::<u8>())
            .prop_map(|(beating, slow, rarely)| Step::Tick { beating, slow: slow & rarely }),
        4 => replica.clone().prop_map(|replica| Step::End { replica }),
        1 => replica.prop_map(|replica| Step::Disconnect { replica }),
        1 => Just(Step::RestartReplica),
        1 => any::<bool>().prop_map(|is_empty| Step::RestartRedis { is_empty }),
    ];

    // Long parts without a restart, so that ends are confirmed and leases end. Only the replica
    // that is restarted is absent, and only the others are slow.
    let restarted = 1 << RESTARTED;
    let calm = (any::<u8>(), any::<u8>(), 0..30_usize).prop_map(move |(absent, slow, ticks)| {
        vec![
            Step::Tick {
                beating: !(absent & restarted),
                slow: slow & !restarted
            };
            ticks
        ]
    });
    let part = prop_oneof![3 => step.prop_map(|step| vec![step]), 1 => calm];
    prop::collection::vec(part, 1..80).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// E13: a replica that is complete knows every end that was confirmed, whenever it was started
    /// and Redis lost its data.
    #[test]
    fn complete_replicas_know_all_confirmed_ends(steps in steps()) {
        let mut world = World::new();
        steps.into_iter().for_each(|step| world.step(step));
    }
}

/// E13: replicas become complete, and ends are confirmed, when data that is new is old enough.
#[test]
fn replicas_become_complete() {
    let mut world = World::new();
    let ticks = RETURN_TIME.as_millis() / STEP.as_millis() + 2;
    (0..ticks).for_each(|_| {
        world.step(Step::Tick {
            beating: 0xff,
            slow: 0,
        })
    });
    world.step(Step::End { replica: 0 });
    assert_eq!(world.confirmed.len(), 1);
    assert!(
        world
            .replicas
            .iter()
            .all(|replica| replica.membership.is_complete(world.now))
    );

    // A restarted replica joins at once, because nothing was lost.
    world.step(Step::RestartReplica);
    world.step(Step::Tick {
        beating: 0xff,
        slow: 0,
    });
    assert!(world.replicas[RESTARTED].membership.is_complete(world.now));

    // Redis loses its data: replicas stay complete, and a fresh one waits for the others.
    world.step(Step::RestartRedis { is_empty: true });
    world.step(Step::RestartReplica);
    world.step(Step::Tick {
        beating: 1 << RESTARTED,
        slow: 0,
    });
    let complete = |world: &World| {
        [0, 1, 2].map(|replica: usize| world.replicas[replica].membership.is_complete(world.now))
    };
    assert_eq!(complete(&world), [true, true, false]);

    world.step(Step::End { replica: RESTARTED });
    assert_eq!(
        world.confirmed.len(),
        1,
        "nothing is confirmed that others could miss"
    );
    (0..ticks).for_each(|_| {
        world.step(Step::Tick {
            beating: 0xff,
            slow: 0,
        })
    });
    assert_eq!(complete(&world), [true; 3]);
}

/// E13: a gap that is longer than the lease makes a replica incomplete.
#[test]
fn a_long_gap_ends_completeness() {
    let mut membership = Membership::default();
    let beat = |age| Beat {
        generation: Generation([1; 16]),
        age,
        others_have_written: true,
    };
    let start = RETURN_TIME;
    assert_eq!(
        membership.beat(start, start, &beat(start)),
        Task::Synchronize
    );

    membership.wrote(Generation([1; 16]));
    membership.read(Generation([1; 16]), membership.is_settled(), start);
    assert_eq!(membership.complete_until(), Some(start + LEASE));
    let late = start + LEASE;
    assert_eq!(membership.beat(late, late, &beat(late)), Task::Read);
    assert_eq!(membership.complete_until(), None);
    assert_eq!(membership.written(), Some(Generation([1; 16])));

    // A list of another generation does not count.
    membership.read(Generation([2; 16]), true, late);
    assert_eq!(membership.complete_until(), None);
}

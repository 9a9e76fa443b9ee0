//! [`History`]: three replicas, and checks of what each of them must and must not do after every
//! step.

use super::*;

/// One process.
struct Replica {
    store: SessionStore,
    journal: Arc<ReplicaJournal>,
}

/// The expected state of a session. Times are those of the slowest clock.
struct ModelSession {
    owner: usize,
    id: SessionId,
    created: u64,
    last_used: u64,
    identifiers: Vec<(Identifier, u32)>,
    /// The first use of each generation in each process since its start.
    first_uses: HashMap<(usize, u32), u64>,
    /// The first use of each generation anywhere.
    first_use: HashMap<u32, u64>,
    /// Whether an end was requested.
    may_have_ended: bool,
    /// Whether the end was confirmed.
    has_ended: bool,
}

/// Three replicas with one shared store, and the expected state of their sessions.
pub(super) struct History {
    base: Arc<AtomicU64>,
    shared: Arc<SharedStore>,
    replicas: Vec<Replica>,
    sessions: Vec<ModelSession>,
    /// Whether the shared store was lost. Only some processes know the last uses and generations
    /// from before.
    was_lost: bool,
}

impl History {
    /// Starts three replicas with one shared store.
    pub(super) fn new() -> Self {
        let base = Arc::<AtomicU64>::default();
        let shared = Arc::<SharedStore>::default();
        shared.is_up.store(true, Ordering::SeqCst);
        let mut history = Self {
            base,
            shared,
            replicas: Vec::new(),
            sessions: Vec::new(),
            was_lost: false,
        };
        for number in 0..3 {
            let started = history.started(number);
            history.replicas.push(started);
        }
        history
    }

    /// Returns a process that has just started, and has read the shared store if there is one.
    fn started(&self, number: usize) -> Replica {
        let ahead = number as u64 * SKEW / 2;
        let clock = ReplicaClock {
            base: Arc::clone(&self.base),
            ahead,
            started: self.now(),
        };
        let mut settings = SessionSettings::new(key());
        settings.idle_timeout = Duration::from_millis(IDLE);
        settings.lifetime = Duration::from_millis(LIFETIME);
        let journal = Arc::new(ReplicaJournal {
            shared: Arc::clone(&self.shared),
            is_complete: AtomicBool::new(false),
        });
        let limits = EndsLimits {
            per_owner: PER_OWNER,
            ..EndsLimits::DEFAULT
        };
        let store = SessionStore::builder(settings)
            .clock(Arc::new(clock))
            .journal(journal.clone())
            .with_limits(limits);
        let replica = Replica { store, journal };
        if self.shared.is_up.load(Ordering::SeqCst) {
            replica.read(&self.shared);
        }
        replica
    }

    fn now(&self) -> u64 {
        self.base.load(Ordering::SeqCst)
    }

    fn is_up(&self) -> bool {
        self.shared.is_up.load(Ordering::SeqCst)
    }

    /// Does a step and checks what must hold after it.
    pub(super) fn apply(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::Create { replica, owner } => self.create(replica, owner)?,
            Step::Use {
                replica,
                session,
                identifier,
                owner,
                scopes,
            } => {
                if let Some(at) = session.checked_rem(self.sessions.len()) {
                    // Mostly by the owner, and mostly by one of the newest identifiers.
                    let owner = if owner == 0 {
                        1 - self.sessions[at].owner
                    } else {
                        self.sessions[at].owner
                    };
                    self.use_session(replica, at, identifier, owner, scopes)?;
                }
            }
            Step::Delete { replica, session } => {
                if let Some(at) = session.checked_rem(self.sessions.len()) {
                    self.delete(replica, at)?;
                }
            }
            Step::EndOwner { replica, owner } => self.end_owner(replica, owner),
            Step::Advance { millis } => self.advance(millis),
            Step::Restart { replica } => {
                self.replicas[replica] = self.started(replica);
                for session in &mut self.sessions {
                    session.first_uses.retain(|(used, _), _| *used != replica);
                }
            }
            Step::LoseStore => {
                self.shared.is_up.store(false, Ordering::SeqCst);
                self.shared.ends.lock().clear();
                self.shared.last_uses.lock().clear();
                self.was_lost = true;
            }
            Step::RestoreStore => self.restore(),
        }
        self.deliver();
        Ok(())
    }

    /// Opens a session at a replica.
    fn create(&mut self, replica: usize, owner: usize) -> Result<(), TestCaseError> {
        let store = &self.replicas[replica].store;
        let scopes = Scopes::parse(SCOPES[0]).unwrap();
        let Ok(reservation) = store.reserve(&target(), OWNERS[owner], &scopes) else {
            return fail("no capacity");
        };
        let in_use = reservation.open(Box::from(*b"backend"), None).unwrap();
        if in_use.has_ended() {
            return fail("a new session has ended");
        }
        let identifier = in_use.identifier();
        let now = self.now();
        self.sessions.push(ModelSession {
            owner,
            id: *in_use.id(),
            created: now,
            last_used: now,
            identifiers: vec![(identifier, 0)],
            first_uses: HashMap::new(),
            first_use: HashMap::new(),
            may_have_ended: false,
            has_ended: false,
        });
        drop(in_use);
        self.deliver();
        let at = self.sessions.len() - 1;
        for other in 0..3 {
            self.use_session(other, at, 0, owner, 0)?;
        }
        Ok(())
    }

    /// Uses a session at a replica, and checks whether it had to be found.
    fn use_session(
        &mut self,
        replica: usize,
        at: usize,
        identifier: usize,
        owner: usize,
        scopes: usize,
    ) -> Result<(), TestCaseError> {
        let now = self.now();
        let session = &self.sessions[at];
        let (identifier, generation) =
            session.identifiers[identifier % session.identifiers.len()].clone();
        let scopes = Scopes::parse(SCOPES[scopes]).unwrap();
        let store = &self.replicas[replica].store;
        let found = store.resolve(&target(), OWNERS[owner], &scopes, identifier.as_bytes());
        if owner != session.owner {
            return match found {
                Err(ResolveError::Unknown) => Ok(()),
                other => fail(format!("another owner gets {other:?}")),
            };
        }
        match (
            &found,
            self.must_end(at, generation),
            self.must_resolve(replica, at, generation),
        ) {
            (Ok(_), Some(reason), _) => return fail(format!("it resolves after {reason}")),
            (Err(error), None, true) => return fail(format!("a session is lost: {error}")),
            _ => {}
        }
        let Ok(in_use) = found else { return Ok(()) };
        let next = in_use.rotated_identifier();
        drop(in_use);
        let session = &mut self.sessions[at];
        // A process that does not know yet that another one has ended the session for idle time can
        // still accept a use.
        session.may_have_ended |= now - session.last_used >= IDLE - SKEW;
        session.last_used = now;
        session
            .first_uses
            .entry((replica, generation))
            .or_insert(now);
        session.first_use.entry(generation).or_insert(now);
        if let Some(next) = next {
            let bound_to = AssociatedData::new(target().resource(), OWNERS[owner]);
            let Some(Record {
                generation,
                session: id,
                ..
            }) = open(&key(), &bound_to, next.as_bytes())
            else {
                return fail("a successor does not open");
            };
            if id != session.id {
                return fail("a successor of another session");
            }
            if session.identifiers.iter().all(|(known, _)| *known != next) {
                session.identifiers.push((next, generation));
            }
        }
        Ok(())
    }

    /// Deletes a session at a replica with its newest identifier.
    fn delete(&mut self, replica: usize, at: usize) -> Result<(), TestCaseError> {
        let session = &mut self.sessions[at];
        let (identifier, _) = session.identifiers[session.identifiers.len() - 1].clone();
        let scopes = Scopes::parse(SCOPES[0]).unwrap();
        let store = &self.replicas[replica].store;
        let found = store.resolve(
            &target(),
            OWNERS[session.owner],
            &scopes,
            identifier.as_bytes(),
        );
        if let Ok(in_use) = found {
            session.may_have_ended = true;
            session.has_ended |=
                confirmed(&mut store.end_and_record(&in_use, EndReason::Deleted)) == Some(true);
            drop(in_use);
            self.overflow(at);
        } else if let Err(ResolveError::Ended) = found {
            // The owner takes the confirmation of a known end for that of the DELETE.
            let mut record =
                store.record_known_end(&target(), OWNERS[session.owner], identifier.as_bytes());
            session.has_ended |= confirmed(&mut record) == Some(true);
            session.may_have_ended = true;
            self.overflow(at);
        }
        Ok(())
    }

    /// Marks the older sessions of an owner that may have ended because the owner has many ended
    /// ones.
    fn overflow(&mut self, at: usize) {
        let owner = self.sessions[at].owner;
        let mut ended: Vec<u64> = self
            .sessions
            .iter()
            .filter(|other| other.owner == owner && other.may_have_ended)
            .map(|other| other.created)
            .collect();
        ended.sort_unstable();
        let Some(excess) = ended.len().checked_sub(PER_OWNER) else {
            return;
        };

        // Tombstones of generations count, too: one for each session.
        let floor = ended[excess.min(ended.len() - 1)];
        for other in self
            .sessions
            .iter_mut()
            .filter(|other| other.owner == owner && other.created <= floor + SKEW)
        {
            other.may_have_ended = true;
        }
    }

    fn end_owner(&mut self, replica: usize, owner: usize) {
        let scope = EndScope::Owner(OWNERS[owner]);
        let ticket = self.replicas[replica]
            .store
            .end_scope(scope, EndReason::Administrator)
            .ticket;
        for session in self
            .sessions
            .iter_mut()
            .filter(|session| session.owner == owner)
        {
            session.may_have_ended = true;
            session.has_ended |= ticket.is_done();
        }
    }

    /// Lets time pass. All replicas sweep and write their uses in between.
    fn advance(&mut self, mut millis: u64) {
        while millis > 0 {
            let step = millis.min(BATCH);
            millis -= step;
            self.base.fetch_add(step, Ordering::SeqCst);
            for replica in &self.replicas {
                replica.store.sweep();
                replica.store.record_last_uses();
            }
            self.deliver();
        }
    }

    /// Makes the shared store available again, and synchronizes all replicas.
    fn restore(&mut self) {
        if !self.is_up() {
            self.shared.is_up.store(true, Ordering::SeqCst);
            // Each process writes its own ends again before any of them is complete.
            for replica in &self.replicas {
                drop(replica.store.record_all());
            }
            for replica in &self.replicas {
                replica.read(&self.shared);
            }
        }
    }

    /// Delivers the messages of the shared store to all replicas.
    fn deliver(&self) {
        for message in std::mem::take(&mut *self.shared.unsent.lock()) {
            for replica in &self.replicas {
                match message {
                    Message::End(end) => replica.store.import(&end),
                    Message::Used(used) => replica.store.import_last_uses(&[used]),
                }
            }
        }
    }

    /// Returns why an identifier must not resolve anywhere.
    fn must_end(&self, at: usize, generation: u32) -> Option<&'static str> {
        let session = &self.sessions[at];
        let now = self.now();
        let is_retired = session
            .first_uses
            .iter()
            .any(|((_, later), first)| *later > generation && now >= first + GRACE + BATCH);
        if session.has_ended {
            Some("its end")
        } else if now - session.created >= LIFETIME + SKEW {
            Some("its lifetime")
        } else if now - session.last_used >= IDLE + PEER_DELAY + BATCH + SKEW {
            Some("its idle time")
        } else if is_retired && !self.was_lost {
            Some("the grace period")
        } else {
            None
        }
    }

    /// Returns whether a replica must find a session with an identifier of this generation.
    fn must_resolve(&self, replica: usize, at: usize, generation: u32) -> bool {
        let session = &self.sessions[at];
        let now = self.now();
        let replica = &self.replicas[replica];
        let is_retiring = session
            .first_use
            .iter()
            .any(|(later, first)| *later > generation && now + SKEW >= first + GRACE);
        let is_known =
            replica.store.0.table.contains_key(&session.id) && generation == 0 || !self.was_lost;
        !session.may_have_ended
            && !is_retiring
            && is_known
            && replica.journal.is_complete()
            && now - session.created < LIFETIME - SKEW
            && now - session.last_used < IDLE - BATCH - SKEW
    }
}

impl Replica {
    /// Reads all ends and uses from the shared store.
    fn read(&self, shared: &SharedStore) {
        for end in &*shared.ends.lock() {
            self.store.import(end);
        }
        let used: Vec<_> = shared
            .last_uses
            .lock()
            .iter()
            .map(|(session, time)| LastUse {
                session: *session,
                time: *time,
            })
            .collect();
        self.store.import_last_uses(&used);
        self.journal.is_complete.store(true, Ordering::SeqCst);
    }
}

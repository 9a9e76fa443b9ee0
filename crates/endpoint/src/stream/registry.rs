//! All open event streams of a process.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use http::HeaderMap;
use portcullis_guard::{Caller, ProtectedResource};
use portcullis_metadata::{Clock, is_event_stream};
use portcullis_session::Session;

use super::{
    SessionStreams, StreamGuard, StreamObserver,
    boundary::Boundary,
    entry::{Found, Now, OpenStream},
};
use crate::content_coding;

/// More than workers, so that two rarely meet at a lock.
const SHARDS: usize = 16;

/// The open event streams of any number of endpoints, and what ends them. Cheap to clone; clones share everything.
///
/// It is as large as the number of open streams. Answers that are not event streams cost nothing here, and neither do those of
/// endpoints whose authentication is off.
#[derive(Clone)]
pub struct StreamRegistry(Arc<Shared>);

struct Shared {
    shards: [Mutex<Shard>; SHARDS],
    clock: Arc<dyn Clock>,
    observer: Arc<dyn StreamObserver>,
}

#[derive(Default)]
struct Shard {
    slots: Vec<Option<Arc<OpenStream>>>,
    free: Vec<usize>,
}

/// Where a stream is in the registry.
#[derive(Clone, Copy)]
pub(super) struct Place {
    shard: usize,
    slot: usize,
}

/// What an answer's stream depends on.
pub(crate) struct Opening<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) resource: &'a Arc<ProtectedResource>,
    pub(crate) session: Option<&'a Session>,
}

impl StreamRegistry {
    /// An empty registry. Expiries are compared with this clock.
    pub fn new(clock: Arc<dyn Clock>, observer: Arc<dyn StreamObserver>) -> Self {
        Self(Arc::new(Shared { shards: Default::default(), clock, observer }))
    }

    /// Ends the streams whose authorization has ended, and says how many it found.
    ///
    /// Each ends behind the event that it is in; one that does not complete it within 10 s fails then. Call it about twice a
    /// second, after [`TrustedIssuer::start_due_rechecks`](portcullis_verifier::TrustedIssuer::start_due_rechecks); without it no stream
    /// ends here.
    pub fn sweep(&self) -> usize {
        let now = Now { unix: self.0.clock.now(), monotonic: self.0.clock.monotonic() };
        let (mut ended, mut waiting) = (Vec::new(), Vec::new());
        for shard in &self.0.shards {
            for stream in lock(shard).slots.iter().flatten() {
                match stream.check(now) {
                    Found::Open => {}
                    Found::Ended(reason) => ended.push((Arc::clone(stream), reason)),
                    Found::Waiting => waiting.push(Arc::clone(stream)),
                }
            }
        }
        // With no lock held: whoever is woken or told may drop a stream.
        for (stream, reason) in &ended {
            let record = stream.ended(now.unix, *reason);
            log(&record);
            self.0.observer.ended(&record);
        }
        ended.iter().map(|(stream, _)| stream).chain(&waiting).for_each(|stream| stream.wake());
        ended.len()
    }

    /// How many streams are open.
    pub fn len(&self) -> usize {
        self.0.shards.iter().map(|shard| lock(shard).slots.iter().flatten().count()).sum()
    }

    /// Whether no stream is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Registers an answer, if it is an event stream that depends on a token.
    pub(crate) fn open(&self, opening: &Opening<'_>, headers: &HeaderMap) -> Option<StreamGuard> {
        let Opening { caller, resource, session } = opening;
        let verified = caller.verified()?;
        if !is_event_stream(headers) {
            return None;
        }
        let session = session.and_then(|session| Some((session.log_hash(), SessionStreams::of(session)?)));
        let request_id = caller.request_id().clone();
        let stream = OpenStream::new(request_id, verified.clone(), caller.held_token(), Arc::clone(resource), session);
        let stream = Arc::new(stream);
        if let Some((_, streams)) = &stream.session {
            streams.add(&stream);
        }
        let place = self.add(&stream);
        // Where events end in encoded bytes is not known: such a stream ends at once.
        let boundary = (!content_coding::is_encoded(headers)).then(Boundary::at_start);
        Some(StreamGuard::new(self.clone(), place, stream, boundary))
    }

    fn add(&self, stream: &Arc<OpenStream>) -> Place {
        // Entries are larger than 64 bytes: these bits differ.
        let shard = (Arc::as_ptr(stream).addr() >> 6) % SHARDS;
        let Shard { slots, free } = &mut *lock(&self.0.shards[shard]);
        let slot = free.pop().unwrap_or_else(|| {
            slots.push(None);
            slots.len() - 1
        });
        slots[slot] = Some(Arc::clone(stream));
        Place { shard, slot }
    }

    pub(super) fn remove(&self, place: Place) {
        let Shard { slots, free } = &mut *lock(&self.0.shards[place.shard]);
        // The body holds another reference: nothing is dropped here.
        slots[place.slot] = None;
        free.push(place.slot);
    }
}

fn log(ended: &super::EndedStream<'_>) {
    tracing::info!(
        request.id = ended.request_id.as_str(),
        session = ended.session.map(tracing::field::display),
        resource = ended.resource.as_str(),
        stream.code = ended.reason.code(),
        "event stream ended: its authorization has ended"
    );
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for StreamRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamRegistry").field("len", &self.len()).finish_non_exhaustive()
    }
}

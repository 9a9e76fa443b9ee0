//! [`StreamRegistry`]: the open event streams of a process.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use portcullis_metadata::Clock;
use portcullis_session::Session;

use super::{
    EndedStream, StreamEndReason, StreamObserver,
    open_stream::{Checked, Now, OpenStream},
    session_streams::SessionStreams,
};

/// The number of shards: more than workers, so that locks are rarely contended.
const SHARDS: usize = 16;

/// The open event streams of any number of endpoints. Clones share the registry.
///
/// The registry has one entry for each open stream, which the body of its response adds and
/// removes. It limits neither their number nor their time: the limits of requests and of tokens do.
#[derive(Clone)]
pub struct StreamRegistry(Arc<Inner>);

struct Inner {
    shards: [Mutex<Shard>; SHARDS],
    clock: Arc<dyn Clock>,
    observer: Arc<dyn StreamObserver>,
    is_draining: AtomicBool,
}

#[derive(Default)]
struct Shard {
    /// The streams. An empty slot is in `free`.
    slots: Vec<Option<Arc<OpenStream>>>,
    /// The positions of the empty slots.
    free: Vec<usize>,
}

/// The position of a stream in the registry.
#[derive(Clone, Copy)]
pub(super) struct SlotIndex {
    shard: usize,
    slot: usize,
}

impl StreamRegistry {
    /// How often [`sweep`](Self::sweep) should be called: 500 ms.
    pub const SWEEP_INTERVAL: Duration = Duration::from_millis(500);

    /// Returns an empty registry. `clock` determines when tokens expire.
    pub fn new(clock: Arc<dyn Clock>, observer: Arc<dyn StreamObserver>) -> Self {
        let is_draining = AtomicBool::new(false);
        Self(Arc::new(Inner {
            shards: Default::default(),
            clock,
            observer,
            is_draining,
        }))
    }

    /// Ends the streams whose authorization or session has ended. Returns their number. Streams
    /// that were silent for 15 s send a comment.
    ///
    /// Each stream ends after its current event, or fails if the event is not completed within 10
    /// s. Call this about twice a second, after
    /// [`TrustedIssuer::start_due_rechecks`](portcullis_verifier::TrustedIssuer::start_due_rechecks).
    /// Without it no stream ends with its authorization, and none sends a comment.
    pub fn sweep(&self) -> usize {
        let now = self.now();
        let mut ended = Vec::new();
        let mut woken = Vec::new();
        for shard in &self.0.shards {
            for stream in shard.lock().slots.iter().flatten() {
                match stream.check(now) {
                    Checked::Open => {}
                    Checked::Ended(reason) => ended.push((Arc::clone(stream), reason)),
                    Checked::Silent | Checked::Finishing => woken.push(Arc::clone(stream)),
                }
            }
        }
        // Without a lock: tasks and observers may drop a stream.
        for (stream, reason) in &ended {
            self.report(&stream.ended(now.unix, *reason));
        }
        ended
            .iter()
            .map(|(stream, _)| stream)
            .chain(&woken)
            .for_each(|stream| stream.wake());
        ended.len()
    }

    /// Ends the streams on which clients only listen: responses to GET and to
    /// `subscriptions/listen`. Returns their number. From now on, such a stream ends as soon as it
    /// opens. Streams that answer another request continue.
    ///
    /// Call this when the server shuts down. Clients then listen elsewhere. [`sweep`](Self::sweep)
    /// must still be called.
    pub fn drain(&self) -> usize {
        self.0.is_draining.store(true, Ordering::Relaxed);
        self.sweep()
    }

    /// Returns the number of open streams.
    pub fn len(&self) -> usize {
        self.0
            .shards
            .iter()
            .map(|shard| shard.lock().slots.iter().flatten().count())
            .sum()
    }

    /// Returns the number of open streams of a session, in any registry.
    pub fn of_session(session: &Session) -> usize {
        SessionStreams::count(session)
    }

    /// Returns whether no stream is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the time by both clocks, and whether the registry is draining.
    pub(super) fn now(&self) -> Now {
        let is_draining = self.0.is_draining.load(Ordering::Relaxed);
        Now {
            unix: self.0.clock.now(),
            monotonic: self.0.clock.monotonic(),
            is_draining,
        }
    }

    /// Logs the end of a stream, and calls the observer. Call this without a lock.
    pub(super) fn report(&self, ended: &EndedStream<'_>) {
        log(ended);
        self.0.observer.ended(ended);
    }

    pub(super) fn all(&self) -> Vec<Arc<OpenStream>> {
        self.0
            .shards
            .iter()
            .flat_map(|shard| {
                shard
                    .lock()
                    .slots
                    .iter()
                    .flatten()
                    .cloned()
                    .collect::<Vec<_>>()
            })
            .collect()
    }

    /// Adds a stream. Its body removes it with the returned position.
    pub(super) fn add(&self, stream: &Arc<OpenStream>) -> SlotIndex {
        // Entries are larger than 64 bytes, so these bits differ.
        let shard = (Arc::as_ptr(stream).addr() >> 6) % SHARDS;
        let Shard { slots, free } = &mut *self.0.shards[shard].lock();
        let slot = free.pop().unwrap_or_else(|| {
            slots.push(None);
            slots.len() - 1
        });
        slots[slot] = Some(Arc::clone(stream));
        SlotIndex { shard, slot }
    }

    /// Removes the stream at a position, which [`add`](Self::add) has returned.
    pub(super) fn remove(&self, index: SlotIndex) {
        let Shard { slots, free } = &mut *self.0.shards[index.shard].lock();
        // The body holds another reference, so nothing is dropped under the lock.
        slots[index.slot] = None;
        free.push(index.slot);
        if free.len() == slots.len() {
            // The memory of many streams is not kept.
            (*slots, *free) = (Vec::new(), Vec::new());
        }
    }
}

fn log(ended: &EndedStream<'_>) {
    macro_rules! log {
        ($level:ident) => {
            tracing::$level!(
                request.id = ended.request_id.as_str(),
                session = ended.session.map(tracing::field::display),
                resource = ended.resource.as_str(),
                stream.code = ended.reason.code(),
                "event stream ended: {}",
                ended.reason
            )
        };
    }
    match ended.reason {
        // All of them end at once.
        StreamEndReason::Shutdown => log!(debug),
        _ => log!(info),
    }
}

impl fmt::Debug for StreamRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamRegistry")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

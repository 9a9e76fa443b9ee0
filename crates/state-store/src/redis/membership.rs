//! What a replica knows of the other replicas and of the data in Redis, without I/O.

use std::time::Duration;

use super::generation::Generation;

/// How often a replica writes that it lives.
pub(crate) const BEAT_INTERVAL: Duration = Duration::from_millis(250);
/// The maximum time of one command.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_millis(750);
/// The maximum time of one attempt to connect.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// The maximum time between two attempts to connect.
pub(crate) const MAX_BACKOFF: Duration = Duration::from_millis(250);
/// The commands before a new connection is known to the other replicas: the server's identity, the
/// subscription, the beat.
const COMMANDS_TO_JOIN: u32 = 3;

/// How long a replica counts as alive after its last beat, and remains complete without another
/// one.
pub(crate) const LEASE: Duration = Duration::from_secs(2);

/// The longest time in which a replica that can reach Redis returns after Redis was lost: it
/// notices (a beat and its response), one attempt fails just before Redis is back, it waits, and
/// the next attempt connects and joins.
///
/// Data of this age has the ends of all replicas that can reach Redis.
pub(crate) const RETURN_TIME: Duration = Duration::from_millis(
    (BEAT_INTERVAL.as_millis()
        + RESPONSE_TIMEOUT.as_millis()
        + 2 * CONNECT_TIMEOUT.as_millis()
        + MAX_BACKOFF.as_millis()
        + COMMANDS_TO_JOIN as u128 * RESPONSE_TIMEOUT.as_millis()) as u64,
);

/// The part of the response to a beat that concerns the membership.
#[derive(Clone, Debug)]
pub(crate) struct Beat {
    pub(crate) generation: Generation,
    /// The age of the generation, by the clock of Redis.
    pub(crate) age: Duration,
    /// All other replicas that have beaten within [`RETURN_TIME`] have written their ends to this
    /// generation.
    pub(crate) others_have_written: bool,
}

/// What the replica must do after a beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Nothing.
    None,
    /// Read the list, then write the own ends: the data or the connection is new.
    Synchronize,
    /// Read the list again: the other replicas have written theirs.
    Read,
}

/// The state of one replica.
///
/// A replica is complete while it holds a lease: it has read a list to which all replicas had
/// written, and beats since then without a gap of more than [`LEASE`]. The other replicas confirm
/// no end that it has not received while its beat counts, so it misses none in shorter gaps.
#[derive(Debug, Default)]
pub(crate) struct Membership {
    generation: Option<Generation>,
    has_written: bool,
    /// All replicas have written to the generation.
    is_settled: bool,
    /// When the last beat was sent.
    last_sent: Duration,
    complete_until: Option<Duration>,
}

impl Membership {
    /// Records the response to a beat that was sent and received at these times, and returns what
    /// to do next.
    pub(crate) fn beat(&mut self, sent: Duration, received: Duration, beat: &Beat) -> Task {
        let is_new = self.generation != Some(beat.generation);
        if is_new {
            self.generation = Some(beat.generation);
            self.has_written = false;
        }
        self.is_settled = beat.age >= RETURN_TIME && beat.others_have_written;
        self.last_sent = sent;
        // If the response came after the lease, other replicas can have confirmed an end without
        // this one in between.
        let is_complete = self.is_complete(received);
        self.complete_until = is_complete.then(|| sent.saturating_add(LEASE));
        if is_new {
            Task::Synchronize
        } else if self.is_settled && !is_complete {
            Task::Read
        } else {
            Task::None
        }
    }

    /// Returns whether a list that is read from now on has the ends of all replicas.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// Records that the list of this generation was read. `was_settled` is what
    /// [`is_settled`](Self::is_settled) returned before the first part was read.
    pub(crate) fn read(&mut self, generation: Generation, was_settled: bool, now: Duration) {
        let until = self.last_sent.saturating_add(LEASE);
        if was_settled && self.generation == Some(generation) && now < until {
            self.complete_until = Some(until);
        }
    }

    /// Records that the own ends were written to this generation.
    pub(crate) fn wrote(&mut self, generation: Generation) {
        self.has_written |= self.generation == Some(generation);
    }

    /// Records that the connection is lost. A lease continues until its end.
    pub(crate) fn disconnect(&mut self) {
        self.generation = None;
        self.is_settled = false;
    }

    /// Returns the generation of the last beat; `None` without a connection.
    pub(crate) fn generation(&self) -> Option<Generation> {
        self.generation
    }

    /// Returns the current generation, if the own ends were written to it.
    pub(crate) fn written(&self) -> Option<Generation> {
        self.generation.filter(|_| self.has_written)
    }

    /// Returns the end of the lease, by the monotonic clock; `None` if the replica is not complete.
    pub(crate) fn complete_until(&self) -> Option<Duration> {
        self.complete_until
    }

    fn is_complete(&self, now: Duration) -> bool {
        self.complete_until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests;

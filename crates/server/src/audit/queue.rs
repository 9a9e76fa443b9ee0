//! Where records wait for the thread that writes them.

use std::{
    cell::Cell,
    mem,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use portcullis_guard::Decision;

use super::{
    key::{Effect, UsageKey},
    record,
    usage::{Counts, Usage},
};

thread_local! {
    static SLOT: Cell<Option<usize>> = const { Cell::new(None) };
}
static NEXT_SLOT: AtomicUsize = AtomicUsize::new(0);

/// One place a thread, so that workers do not wait for each other.
pub(super) struct Queue {
    slots: Box<[Mutex<Slot>]>,
    /// Bytes that one place holds.
    room: usize,
    usage_rows: usize,
}

/// The records of one thread.
struct Slot {
    batch: Batch,
    usage: Usage,
}

/// Lines, and how many records they are.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) lines: Vec<u8>,
    pub(super) records: u64,
    /// Records that came after these and found no room.
    pub(super) lost: u64,
}

impl Queue {
    /// With room for so many bytes and so many rows of usage in all.
    pub(super) fn new(slots: usize, bytes: usize, usage_rows: usize) -> Self {
        let slot = |_| Mutex::new(Slot { batch: Batch::default(), usage: Usage::new(usage_rows) });
        Self { slots: (0..slots).map(slot).collect(), room: bytes / slots, usage_rows }
    }

    /// Whether the calling thread's place has less than half of its capacity left.
    pub(super) fn is_half_full(&self) -> bool {
        self.own_slot().batch.lines.len() >= self.room / 2
    }

    /// Takes a record in, or counts it as lost.
    pub(super) fn put(&self, record: impl FnOnce(&mut Vec<u8>)) {
        self.own_slot().batch.put(self.room, record);
    }

    /// Takes a decision in, or counts it as lost, and counts the use in any case.
    pub(super) fn put_decision(&self, decision: &Decision<'_>) {
        let key = UsageKey::of(decision);
        let mut slot = self.own_slot();
        slot.usage.count(&key, Counts::one(Effect::of(decision.code)));
        slot.batch.put(self.room, |out| record::decision(out, decision, &key));
    }

    /// How many rows of usage are kept at most.
    pub(super) fn usage_rows(&self) -> usize {
        self.usage_rows
    }

    /// Swaps a slot's batch for an empty one, unless it is empty: it keeps its room. `None` when there is no such slot.
    pub(super) fn swap(&self, slot: usize, batch: &mut Batch) -> Option<()> {
        let waiting = &mut lock(self.slots.get(slot)?).batch;
        if waiting.unwritten() > 0 {
            mem::swap(waiting, batch);
        }
        Some(())
    }

    /// Moves what was counted in all slots into one table.
    pub(super) fn collect_usage(&self, into: &mut Usage) {
        for slot in &self.slots {
            lock(slot).usage.drain_into(into);
        }
    }

    /// Records that wait, and records that found no room and are not told of yet.
    pub(super) fn queued(&self) -> u64 {
        self.slots.iter().map(|slot| lock(slot).batch.unwritten()).sum()
    }

    fn own_slot(&self) -> MutexGuard<'_, Slot> {
        let number = SLOT.with(|slot| {
            let number = slot.get().unwrap_or_else(|| NEXT_SLOT.fetch_add(1, Ordering::Relaxed));
            slot.set(Some(number));
            number
        });
        lock(&self.slots[number % self.slots.len()])
    }
}

impl Batch {
    fn put(&mut self, room: usize, record: impl FnOnce(&mut Vec<u8>)) {
        // Nothing goes in behind a record that was lost, so that the count stands where the records are missing.
        if self.lines.len() >= room || self.lost > 0 {
            if self.lost == 0 {
                tracing::warn!("audit records are lost from now on: the sink is too slow, and the queue is full");
            }
            self.lost += 1;
            return;
        }
        record(&mut self.lines);
        self.records += 1;
    }

    pub(super) fn unwritten(&self) -> u64 {
        self.records + self.lost
    }
}

fn lock(slot: &Mutex<Slot>) -> MutexGuard<'_, Slot> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

//! A bounded queue of log lines. Each worker adds to its own slot, and a writer thread takes whole
//! slots as batches.

use std::{cell::Cell, mem, time::Duration};

use parking_lot::Mutex;

/// How often writer threads write the queued lines.
pub const WRITE_PERIOD: Duration = Duration::from_millis(100);

/// The maximum capacity that an empty batch keeps, in bytes.
const MAX_IDLE_CAPACITY: usize = 1 << 20;

/// The number of times that a slot must be found empty in a row before it frees its capacity: 5 s
/// at [`WRITE_PERIOD`].
const IDLE_TAKES: u32 = 50;

/// The queue.
pub struct LogQueue {
    slots: Box<[Mutex<Batch>]>,
    /// The maximum size of one slot in bytes. The last line may exceed it.
    slot_capacity: usize,
}

/// The lines of one slot.
#[derive(Default)]
pub struct Batch {
    /// The bytes of the lines, each with its newline.
    pub lines: Vec<u8>,
    /// The number of lines.
    pub records: u64,
    /// The number of lines that were lost after these because the slot was full.
    pub lost: u64,
    /// The number of times in a row that the batch was found empty.
    idle_takes: u32,
}

/// A line is lost because the slot is full.
#[derive(Debug, PartialEq, Eq)]
pub struct Full {
    /// Whether it is the first one since the slot was taken.
    pub is_first: bool,
}

impl LogQueue {
    /// Creates a queue of `slots` slots, each for `slot_capacity` bytes.
    pub fn new(slots: usize, slot_capacity: usize) -> Self {
        Self {
            slots: (0..slots).map(|_| Mutex::default()).collect(),
            slot_capacity,
        }
    }

    /// Adds a line. `write` appends it, including its newline.
    ///
    /// # Errors
    /// Fails when the slot is full. The line is counted as lost.
    pub fn push(&self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Full> {
        let mut batch = self.slots[slot_of_thread() % self.slots.len()].lock();
        // No line follows a lost one, so that the count belongs to the end of the batch.
        if batch.lost > 0 || batch.lines.len() >= self.slot_capacity {
            batch.lost += 1;
            return Err(Full {
                is_first: batch.lost == 1,
            });
        }
        write(&mut batch.lines);
        batch.records += 1;
        Ok(())
    }

    /// Returns whether the slot of the calling thread has at most half of its capacity left.
    pub fn is_half_full(&self) -> bool {
        self.slots[slot_of_thread() % self.slots.len()]
            .lock()
            .lines
            .len()
            >= self.slot_capacity / 2
    }

    /// Swaps the batch of a slot with an empty one. An empty slot stays unchanged. It keeps its
    /// capacity until it was found empty for long; then `batch` loses its capacity, too. Returns
    /// `None` when the slot does not exist.
    pub fn take(&self, slot: usize, batch: &mut Batch) -> Option<()> {
        let queued = &mut *self.slots.get(slot)?.lock();
        if queued.unwritten() > 0 {
            queued.idle_takes = 0;
            mem::swap(queued, batch);
            return Some(());
        }
        queued.idle_takes = queued.idle_takes.saturating_add(1);
        if queued.idle_takes == IDLE_TAKES {
            queued.lines = Vec::new();
            batch.lines.shrink_to(0);
        }
        Some(())
    }

    /// Returns the number of lines that are queued, or lost and not yet reported.
    pub fn unwritten(&self) -> u64 {
        self.slots.iter().map(|slot| slot.lock().unwritten()).sum()
    }
}

impl Batch {
    /// Empties the batch. It keeps a bounded capacity for the next lines.
    pub fn clear(&mut self) {
        self.lines.clear();
        self.lines.shrink_to(MAX_IDLE_CAPACITY);
        (self.records, self.lost) = (0, 0);
    }

    fn unwritten(&self) -> u64 {
        self.records + self.lost
    }
}

thread_local! {
    static SLOT: Cell<usize> = const { Cell::new(0) };
}

/// Gives the calling thread, which is the worker of this number, a slot of its own.
pub fn use_slot_of_worker(worker: usize) {
    SLOT.set(worker + 1);
}

/// Returns the slot of the calling thread: that of the worker, and 0 for all other threads. It can
/// exceed the number of slots.
pub fn slot_of_thread() -> usize {
    SLOT.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Empty slots are not swapped, so that grown buffers stay with the threads that use them.
    #[test]
    fn empty_slots_take_no_memory() {
        let queue = LogQueue::new(4, 1 << 20);
        let mut batch = Batch::default();
        for _ in 0..8 {
            queue
                .push(|out| out.resize(MAX_IDLE_CAPACITY, b'x'))
                .unwrap();
            for slot in 0..4 {
                queue.take(slot, &mut batch).unwrap();
                batch.clear();
            }
        }
        let grown = queue
            .slots
            .iter()
            .filter(|slot| slot.lock().lines.capacity() > 0)
            .count();
        assert_eq!(grown, 1);
        assert!(batch.lines.capacity() > 0);
        assert_eq!(queue.take(4, &mut batch), None);
    }

    /// A burst of lines leaves no memory behind.
    #[test]
    fn slots_that_stay_empty_free_their_memory() {
        let queue = LogQueue::new(1, 1 << 20);
        let mut batch = Batch::default();
        for _ in 0..2 {
            queue
                .push(|out| out.resize(MAX_IDLE_CAPACITY, b'x'))
                .unwrap();
            queue.take(0, &mut batch).unwrap();
            batch.clear();
        }
        let capacity =
            |batch: &Batch| queue.slots[0].lock().lines.capacity() + batch.lines.capacity();
        for _ in 1..IDLE_TAKES {
            queue.take(0, &mut batch).unwrap();
            assert_eq!(capacity(&batch), 2 * MAX_IDLE_CAPACITY);
        }
        queue.take(0, &mut batch).unwrap();
        assert_eq!(capacity(&batch), 0);
    }

    /// Workers do not share slots, however many other threads there are.
    #[test]
    fn workers_have_slots_of_their_own() {
        let slot = |worker: Option<usize>| {
            let thread = std::thread::spawn(move || {
                if let Some(worker) = worker {
                    use_slot_of_worker(worker);
                }
                slot_of_thread()
            });
            thread.join().unwrap()
        };
        assert_eq!(
            [
                slot(Some(0)),
                slot(None),
                slot(None),
                slot(Some(1)),
                slot(None)
            ],
            [1, 0, 0, 2, 0]
        );
    }

    #[test]
    fn a_full_slot_counts_lost_lines() {
        let queue = LogQueue::new(1, 10);
        queue.push(|out| out.resize(11, b'x')).unwrap();
        assert_eq!(
            queue.push(|out| out.push(b'y')),
            Err(Full { is_first: true })
        );
        assert_eq!(
            queue.push(|out| out.push(b'y')),
            Err(Full { is_first: false })
        );
        assert_eq!(queue.unwritten(), 3);
        let mut batch = Batch::default();
        queue.take(0, &mut batch).unwrap();
        assert_eq!(batch.lines.len(), 11);
        assert_eq!(batch.records, 1);
        assert_eq!(batch.lost, 2);
        assert_eq!(queue.push(|out| out.push(b'y')), Ok(()));
    }
}

//! Returns freed memory to the operating system.

use std::{hint::black_box, time::Duration};

use super::sweep::every;

/// How often a thread returns memory. What is free is returned within two periods.
const PERIOD: Duration = Duration::from_secs(5);

/// A page that has become empty is freed after 16,000 allocations, and all pages of the thread are examined after each 10,000
/// (the option `generic_collect`). Only allocations of more than 1 KiB count.
const ALLOCATIONS: usize = 20_000;
const COUNTED_BYTES: usize = 2 << 10;

/// Returns the memory that the calling thread has freed to the operating system, periodically, until the runtime ends.
///
/// mimalloc does this only while the thread allocates: without this task, the memory of many closed streams stays with an idle
/// thread. Memory that other threads have freed is found only when the thread's pages are examined, which mimalloc offers
/// only to unsafe code. So each period makes as many allocations as it takes, which needs about 0.5 ms.
pub(super) async fn return_freed() {
    every(PERIOD, || {
        for _ in 0..ALLOCATIONS {
            drop(black_box(Vec::<u8>::with_capacity(COUNTED_BYTES)));
        }
    })
    .await
}

#![doc = include_str!("../README.md")]

/// mimalloc, without transparent huge pages: with them, a small server holds several megabytes more
/// at rest.
///
/// A worker frees most allocations of a request before the next one. The system's allocator would
/// need a tenth of a request's instructions for that.
pub use mimalloc::MiMalloc as Allocator;

/// Returns the memory that was allocated by the calling thread, and freed by any, to the operating
/// system. It takes some microseconds if there is little, and has no effect if [`Allocator`] is not
/// the global allocator.
#[expect(unsafe_code, reason = "mimalloc has no safe binding of this function")]
pub fn collect() {
    // SAFETY: the function has no precondition. It examines the pages of the calling thread, which
    // no other thread changes without synchronization.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    #[global_allocator]
    static ALLOCATOR: super::Allocator = super::Allocator;

    /// Returns the resident memory of this process in pages of 4 KiB.
    fn resident() -> usize {
        let text = fs::read_to_string("/proc/self/statm").unwrap();
        text.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// Memory that another thread has freed returns to the operating system.
    #[test]
    fn freed_memory_returns() {
        let before = resident();
        let blocks: Vec<Vec<u8>> = (0..16_384).map(|_| vec![1; 4096]).collect();
        let full = resident();
        assert!(full > before + 16_000);
        thread::spawn(|| drop(blocks)).join().unwrap();
        super::collect();
        let after = resident();
        assert!(after < before + 2_000, "{before}, {full}, {after}");
    }
}

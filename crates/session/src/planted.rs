//! Faults that tests plant, to show that the model of the life cycle finds them. No other build has them.

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// An identifier is opened without a look at the tombstones.
    IgnoredTombstones,
    /// The end of a session ends only its first identifier.
    EndOfOneGeneration,
    /// A tombstone that does not fit is dropped, and no floor rises.
    MissingFloor,
    /// A session that is idle in one process ends everywhere.
    OwnViewOfIdleTime,
    /// The lifetime counts from the first use in each process.
    LifetimeFromFirstSight,
    /// Identifiers are not bound to their owner.
    UnboundOwner,
}

#[cfg(test)]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Fault>> = const { std::cell::Cell::new(None) };
}

/// Returns whether a test has planted this fault in this thread.
#[cfg(test)]
pub(crate) fn is_planted(fault: Fault) -> bool {
    PLANTED.get() == Some(fault)
}

#[cfg(not(test))]
pub(crate) const fn is_planted(_: Fault) -> bool {
    false
}

/// Plants a fault in this thread, or none.
#[cfg(test)]
pub(crate) fn plant(fault: Option<Fault>) {
    PLANTED.set(fault);
}

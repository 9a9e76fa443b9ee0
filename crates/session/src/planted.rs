//! Faults that tests plant to show that the model of the life cycle finds them. Other builds do not
//! contain them.

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Tombstones are ignored when an identifier is opened.
    IgnoredTombstones,
    /// The end of a session ends only its first identifier.
    EndOfOneGeneration,
    /// A tombstone that does not fit is dropped, and no floor replaces it.
    MissingFloor,
    /// A session that is idle in one process ends everywhere.
    OwnViewOfIdleTime,
    /// The lifetime of a session counts from its adoption.
    LifetimeFromFirstSight,
    /// A known end counts as recorded.
    AssumedRecord,
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

/// Returns `false`: only tests plant faults.
#[cfg(not(test))]
pub(crate) const fn is_planted(_: Fault) -> bool {
    false
}

/// Plants a fault in this thread. `None` removes it.
#[cfg(test)]
pub(crate) fn plant(fault: Option<Fault>) {
    PLANTED.set(fault);
}

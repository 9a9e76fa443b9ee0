//! Faults that tests inject to show that the model of the life cycle finds them. Other builds do
//! not contain them.

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
    static INJECTED: std::cell::Cell<Option<Fault>> = const { std::cell::Cell::new(None) };
}

/// Returns whether a test has injected this fault in this thread.
#[cfg(test)]
pub(crate) fn is_injected(fault: Fault) -> bool {
    INJECTED.get() == Some(fault)
}

/// Returns `false`: only tests inject faults.
#[cfg(not(test))]
pub(crate) const fn is_injected(_: Fault) -> bool {
    false
}

/// Injects a fault in this thread. `None` removes it.
#[cfg(test)]
pub(crate) fn inject(fault: Option<Fault>) {
    INJECTED.set(fault);
}

//! The files of a state directory.

/// Locked while a process uses the directory.
pub(crate) const LOCK: &str = "lock";
/// The keys that seal session identifiers.
pub(crate) const KEYS: &str = "session-keys";
/// The ends of sessions.
pub(crate) const ENDS: &str = "session-ends";
/// The last uses of sessions.
pub(crate) const USES: &str = "session-uses";
/// The [records](crate::records::FileRecords).
pub(crate) const RECORDS: &str = "records.redb";

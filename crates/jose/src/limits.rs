//! Limits.

/// The maximum number of keys in a published set. Larger sets are rejected.
pub const MAX_KEYS: usize = 100;

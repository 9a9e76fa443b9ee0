//! [`MAX_KEYS`]: the size of a key set.

/// The maximum number of keys in a published set, including those that cannot be used. Larger sets
/// are rejected as a whole. It bounds the search for the key of a token.
pub const MAX_KEYS: usize = 100;

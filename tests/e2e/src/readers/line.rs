//! [`Line`]: the report of a reader about one message.

use std::sync::Arc;

use parking_lot::Mutex;
use serde::Deserialize;

/// The method and names that a reader found in a message, or that one of its handlers received.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Line {
    /// The value of `X-Request-Id`.
    pub(super) request: String,
    /// The method of the message.
    pub(super) method: String,
    /// The names in its parameters.
    pub(super) names: Vec<String>,
}

/// The reports of a reader in this process.
pub(super) type Lines = Arc<Mutex<Vec<Line>>>;

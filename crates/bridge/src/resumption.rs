//! The limits for resuming an interrupted event stream.

use std::time::Duration;

/// The maximum number of resumptions without an event.
pub(crate) const MAX_RESUMES: u32 = 8;
/// The delay before a resumption, unless the server sets one.
pub(crate) const RESUME_AFTER: Duration = Duration::from_secs(1);
/// The maximum delay before a resumption that this side chooses or, in a call, that the server sets.
pub(crate) const MAX_RESUME_AFTER: Duration = Duration::from_secs(30);

//! What is walked through, one file a concern.

pub(super) mod guide;
pub(super) mod introspection;
pub(super) mod login;
pub(super) mod outage;
pub(super) mod rotation;
pub(super) mod tokens;
pub(super) mod withdrawal;

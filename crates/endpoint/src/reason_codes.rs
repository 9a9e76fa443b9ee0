//! [`REASON_CODES`]: the list of all reason codes of this crate.

use crate::{
    message::BodyError,
    response::Reason,
    rules::{RuleViolation, UriError},
    session::SessionError,
    stream::StreamEndReason,
};

/// The codes for which the endpoint rejects a message or ends an event stream, each with what it
/// means, in Markdown.
pub const REASON_CODES: &[&[(&str, &str)]] = &[
    Reason::REASON_CODES,
    BodyError::REASON_CODES,
    SessionError::REASON_CODES,
    RuleViolation::REASON_CODES,
    UriError::REASON_CODES,
    StreamEndReason::REASON_CODES,
];

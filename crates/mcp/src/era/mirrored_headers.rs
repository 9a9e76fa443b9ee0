//! The comparison of the mirrored headers `Mcp-Method` and `Mcp-Name` with the message (2026-07-28,
//! "Standard Request Headers").

use http::HeaderMap;

use super::error::EraError;
use crate::{Envelope, MessageType, decode_mirrored, header, mirrored_member};

/// Compares `Mcp-Method` and `Mcp-Name` with a modern message. Fails if one of them is repeated,
/// malformed or differs from the message, or if a request lacks one that its method requires.
/// Notifications need not have them.
pub(super) fn compare(envelope: &Envelope<'_>, headers: &HeaderMap) -> Result<(), EraError> {
    let required = envelope.message_type() == MessageType::Request;
    let method = envelope.method().unwrap_or_default();
    let agrees = match header::single(headers, &header::METHOD) {
        Ok(Some(value)) => value.as_bytes() == method.as_bytes(),
        Ok(None) => !required,
        Err(header::RepeatedHeader) => false,
    };
    if !agrees {
        return Err(EraError::mismatch(header::METHOD));
    }
    let Some(name) = envelope.name().filter(|_| may_be_mirrored(method)) else {
        return Ok(());
    };
    let required = required && mirrored_member(method).is_some();
    let agrees = match header::single(headers, &header::NAME) {
        Ok(Some(value)) => decode_mirrored(value).is_ok_and(|mirrored| mirrored == name),
        Ok(None) => !required,
        Err(header::RepeatedHeader) => false,
    };
    if agrees {
        Ok(())
    } else {
        Err(EraError::mismatch(header::NAME))
    }
}

/// Returns whether [`classify`](crate::classify) compares `Mcp-Name` with the body of this modern
/// message. In other messages the header is not checked.
pub fn checks_name_header(envelope: &Envelope<'_>) -> bool {
    envelope.name().is_some() && envelope.method().is_some_and(may_be_mirrored)
}

/// Returns whether `Mcp-Name` can mirror a name of the method: if 2026-07-28 requires the header,
/// for `tasks/*` (SEP-2663), and for the methods that 2026-07-28 replaced, in any letter case.
/// Other methods have several names or none.
fn may_be_mirrored(method: &str) -> bool {
    let is = |known: &&str| method.eq_ignore_ascii_case(known);
    let is_task = || {
        method
            .get(..6)
            .is_some_and(|start| start.eq_ignore_ascii_case("tasks/"))
    };
    [
        "tools/call",
        "prompts/get",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
    ]
    .iter()
    .any(is)
        || is_task()
}

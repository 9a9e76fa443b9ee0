//! The era of a message: whether it is of a revision with sessions, and which one.

mod error;
mod mirrored_headers;
#[cfg(test)]
mod tests;
mod version_header;

use http::HeaderMap;

pub use self::{error::EraError, mirrored_headers::checks_name_header};
use self::{mirrored_headers::compare, version_header::VersionHeader};
use crate::{Envelope, EnvelopeError, MessageType, Revision, Revisions, header, meta};

/// The era of a message: modern or legacy, as the specification names them (2026-07-28, "Versioning
/// and Compatibility", section "Terminology").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// A revision with sessions, which begin with `initialize`.
    Legacy {
        /// The revision of the header. Without a header, the session's negotiated revision applies.
        version: Option<Revision>,
    },
    /// A revision without sessions. The headers match the body.
    Modern(Revision),
}

/// Determines the era of a POSTed message, and compares a modern message with its headers.
///
/// A message is modern if its own `_meta` names a modern version and the header names the same
/// version. The header alone does not make a message modern. A message that cannot be parsed is
/// legacy, unless its header claims otherwise or no legacy revision is served. Sessions are not
/// checked.
///
/// # Errors
/// Fails if headers and body disagree, a part that the era requires is missing, or the revision is
/// not served.
pub fn classify(
    envelope: Result<&Envelope<'_>, &EnvelopeError>,
    headers: &HeaderMap,
    served: Revisions,
) -> Result<Era, EraError> {
    let version = VersionHeader::read(headers);
    let envelope = match envelope {
        Ok(envelope) => envelope,
        Err(error) if version.claims_modern() || !served.has_legacy() => {
            return Err(EraError::Message(*error));
        }
        Err(_) => return legacy(&version, served),
    };
    match envelope.protocol_version() {
        Some(claimed) if Revision::parse(claimed).is_some_and(|revision| !revision.is_modern()) => {
            if !matches!(version, VersionHeader::Absent) && version.text() != Some(claimed) {
                return Err(EraError::mismatch(header::PROTOCOL_VERSION));
            }
            legacy_message(envelope, &version, served)
        }
        Some(claimed) => modern(envelope, claimed, &version, headers, served),
        None if version.claims_modern() => Err(claimed_by_header_alone(envelope, headers)),
        None => legacy_message(envelope, &version, served),
    }
}

/// Returns the revision that the header of a request without a message (GET, DELETE) names; `None`
/// without a header.
///
/// # Errors
/// Returns [`EraError::LegacyVersion`] if the header is repeated or malformed, or does not name a
/// served legacy revision.
pub fn legacy_version(
    headers: &HeaderMap,
    served: Revisions,
) -> Result<Option<Revision>, EraError> {
    match VersionHeader::read(headers) {
        VersionHeader::Absent => Ok(None),
        VersionHeader::Known(revision) if !revision.is_modern() && served.contains(revision) => {
            Ok(Some(revision))
        }
        _ => Err(EraError::LegacyVersion),
    }
}

/// Checks a message whose body names a version that is not legacy.
fn modern(
    envelope: &Envelope<'_>,
    claimed: &str,
    version: &VersionHeader<'_>,
    headers: &HeaderMap,
    served: Revisions,
) -> Result<Era, EraError> {
    if version.text() != Some(claimed) {
        return Err(EraError::mismatch(header::PROTOCOL_VERSION));
    }
    let revision = Revision::parse(claimed)
        .filter(|revision| served.contains(*revision))
        .ok_or_else(|| EraError::unsupported(claimed, served))?;
    if envelope.is_initialize() && !served.has_legacy() {
        return Err(EraError::unsupported(
            envelope.initialize_version().unwrap_or(claimed),
            served,
        ));
    }
    compare(envelope, headers)?;
    if envelope.is_initialize() {
        return Err(EraError::ModernInitialize);
    }
    if envelope.message_type() == MessageType::Request && !envelope.has_client_capabilities() {
        return Err(EraError::MissingMeta {
            key: meta::CLIENT_CAPABILITIES,
        });
    }
    Ok(Era::Modern(revision))
}

/// Returns the error for a modern header with a body that names no version. A request whose headers
/// are all modern lacks a required member of `_meta`. Any other message is legacy with a wrong
/// header.
fn claimed_by_header_alone(envelope: &Envelope<'_>, headers: &HeaderMap) -> EraError {
    if envelope.message_type() != MessageType::Request || envelope.is_initialize() {
        return EraError::mismatch(header::PROTOCOL_VERSION);
    }
    compare(envelope, headers)
        .err()
        .unwrap_or(EraError::MissingMeta {
            key: meta::PROTOCOL_VERSION,
        })
}

/// Checks a message whose body names no modern version. If no legacy revision is served, the error
/// says which ones are.
fn legacy_message(
    envelope: &Envelope<'_>,
    version: &VersionHeader<'_>,
    served: Revisions,
) -> Result<Era, EraError> {
    if served.has_legacy() {
        return legacy(version, served);
    }
    let asked = if envelope.is_initialize() {
        envelope.initialize_version().or(Some(""))
    } else {
        None
    };
    match asked.or(version.text()) {
        Some(requested) => Err(EraError::unsupported(requested, served)),
        None => Err(EraError::mismatch(header::PROTOCOL_VERSION)),
    }
}

/// Returns the legacy era with the version of the header.
fn legacy(version: &VersionHeader<'_>, served: Revisions) -> Result<Era, EraError> {
    match *version {
        VersionHeader::Absent => Ok(Era::Legacy { version: None }),
        VersionHeader::Known(revision) if served.contains(revision) => Ok(Era::Legacy {
            version: Some(revision),
        }),
        _ => Err(EraError::LegacyVersion),
    }
}

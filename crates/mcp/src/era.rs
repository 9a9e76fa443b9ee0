//! The era of a message, and the comparison of its headers with its body.

#[cfg(test)]
mod tests;
mod version_header;

use http::{HeaderMap, HeaderName, StatusCode};
use serde_json::{Value, json};

use self::version_header::VersionHeader;
use crate::{
    Envelope, EnvelopeError, ErrorCode, MessageType, Revision, Revisions, decode_mirrored, header, meta,
    mirrored_member,
};

/// The era of a message, in the terms of the specification (2026-07-28, "Lifecycle", section "Terminology").
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

/// The reason why a message follows no served revision.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EraError {
    /// The message claims to be modern and cannot be parsed.
    #[error(transparent)]
    Message(EnvelopeError),
    /// A header is missing, repeated or malformed, or contradicts the body.
    #[error("Header mismatch: {header} does not match the message")]
    HeaderMismatch {
        /// The header.
        header: HeaderName,
    },
    /// A modern request lacks a required member of `_meta`.
    #[error("Invalid params: {key} is missing from _meta")]
    MissingMeta {
        /// The member.
        key: &'static str,
    },
    /// The revision is unknown or not served.
    #[error("Unsupported protocol version")]
    UnsupportedVersion {
        /// The requested version, truncated to 64 characters.
        requested: String,
        /// The served revisions.
        supported: Revisions,
    },
    /// The revision that `initialize` negotiated is not served.
    #[error("Unsupported protocol version {negotiated}; this endpoint serves {supported}")]
    NegotiatedVersion {
        /// The negotiated version, truncated to 64 characters.
        negotiated: String,
        /// The version that the client requested, truncated to 64 characters.
        requested: String,
        /// The served legacy revisions.
        supported: Revisions,
    },
    /// `initialize` as a modern request. Modern revisions have neither the method nor sessions.
    #[error("Method not found")]
    ModernInitialize,
    /// The version header of a legacy message is repeated, malformed, or names a revision that is not served.
    #[error("Invalid or unsupported MCP-Protocol-Version")]
    LegacyVersion,
}

impl EraError {
    /// Returns the stable reason code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Message(error) => error.code(),
            Self::HeaderMismatch { .. } => "era.header_mismatch",
            Self::MissingMeta { .. } => "era.meta_missing",
            Self::UnsupportedVersion { .. } => "era.version_unsupported",
            Self::NegotiatedVersion { .. } => "era.version_negotiated",
            Self::ModernInitialize => "era.modern_initialize",
            Self::LegacyVersion => "era.legacy_version",
        }
    }

    /// Returns the HTTP status of the response: 404 for a method that the revision does not define, else 400.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::ModernInitialize => StatusCode::NOT_FOUND,
            _ => StatusCode::BAD_REQUEST,
        }
    }

    /// Returns the JSON-RPC error code of the response.
    pub const fn rpc_code(&self) -> ErrorCode {
        match self {
            Self::Message(error) => error.rpc_code(),
            Self::HeaderMismatch { .. } => ErrorCode::HeaderMismatch,
            Self::MissingMeta { .. } => ErrorCode::InvalidParams,
            Self::UnsupportedVersion { .. } | Self::NegotiatedVersion { .. } => ErrorCode::UnsupportedProtocolVersion,
            Self::ModernInitialize => ErrorCode::MethodNotFound,
            Self::LegacyVersion => ErrorCode::InvalidRequest,
        }
    }

    /// Returns the `data` of the JSON-RPC error: `supported` and `requested` for an unsupported version.
    pub fn data(&self) -> Option<Value> {
        match self {
            Self::UnsupportedVersion { requested, supported }
            | Self::NegotiatedVersion { requested, supported, .. } => {
                let supported: Vec<_> = supported.iter().map(Revision::as_str).collect();
                Some(json!({ "supported": supported, "requested": requested }))
            }
            _ => None,
        }
    }

    /// Returns whether the message is legacy nevertheless, so that its session is checked first.
    pub const fn is_legacy(&self) -> bool {
        matches!(self, Self::LegacyVersion)
    }

    /// Returns the error for an `initialize` that negotiated a revision that is not served.
    pub fn unsupported_negotiated(negotiated: &str, requested: &str, served: Revisions) -> Self {
        let supported = served.iter().filter(|revision| !revision.is_modern()).collect();
        Self::NegotiatedVersion { negotiated: truncated(negotiated), requested: truncated(requested), supported }
    }

    /// Replaces the `supported` revisions of an unsupported version.
    #[must_use]
    pub fn map_supported(self, map: impl FnOnce(Revisions) -> Revisions) -> Self {
        match self {
            Self::UnsupportedVersion { requested, supported } => {
                Self::UnsupportedVersion { requested, supported: map(supported) }
            }
            other => other,
        }
    }

    fn mismatch(header: HeaderName) -> Self {
        Self::HeaderMismatch { header }
    }

    fn unsupported(requested: &str, supported: Revisions) -> Self {
        Self::UnsupportedVersion { requested: truncated(requested), supported }
    }
}

/// Returns a version as errors quote it.
fn truncated(version: &str) -> String {
    version.chars().take(64).collect()
}

/// Determines the era of a POSTed message, and compares a modern message with its headers.
///
/// A message is modern if its own `_meta` names a modern version and the header names the same version. The header alone
/// does not make a message modern. A message that cannot be parsed is legacy, unless its header claims otherwise or no
/// legacy revision is served. Sessions are not checked.
///
/// # Errors
/// Fails if headers and body disagree, a part that the era requires is missing, or the revision is not served.
pub fn classify(
    envelope: Result<&Envelope<'_>, &EnvelopeError>,
    headers: &HeaderMap,
    served: Revisions,
) -> Result<Era, EraError> {
    let version = VersionHeader::read(headers);
    let envelope = match envelope {
        Ok(envelope) => envelope,
        Err(error) if version.claims_modern() || !served.has_legacy() => return Err(EraError::Message(*error)),
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

/// Returns the revision that the header of a request without a message (GET, DELETE) names; `None` without a header.
///
/// # Errors
/// Returns [`EraError::LegacyVersion`] if the header is repeated or malformed, or does not name a served legacy revision.
pub fn legacy_version(headers: &HeaderMap, served: Revisions) -> Result<Option<Revision>, EraError> {
    match VersionHeader::read(headers) {
        VersionHeader::Absent => Ok(None),
        VersionHeader::Known(revision) if !revision.is_modern() && served.contains(revision) => Ok(Some(revision)),
        _ => Err(EraError::LegacyVersion),
    }
}

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
        return Err(EraError::unsupported(envelope.initialize_version().unwrap_or(claimed), served));
    }
    mirrored(envelope, headers)?;
    if envelope.is_initialize() {
        return Err(EraError::ModernInitialize);
    }
    if envelope.message_type() == MessageType::Request && !envelope.has_client_capabilities() {
        return Err(EraError::MissingMeta { key: meta::CLIENT_CAPABILITIES });
    }
    Ok(Era::Modern(revision))
}

/// Returns the error for a modern header with a body that names no version. A request whose headers are all modern lacks a
/// required member of `_meta`. Any other message is legacy with a wrong header.
fn claimed_by_header_alone(envelope: &Envelope<'_>, headers: &HeaderMap) -> EraError {
    if envelope.message_type() != MessageType::Request || envelope.is_initialize() {
        return EraError::mismatch(header::PROTOCOL_VERSION);
    }
    mirrored(envelope, headers).err().unwrap_or(EraError::MissingMeta { key: meta::PROTOCOL_VERSION })
}

fn legacy_message(envelope: &Envelope<'_>, version: &VersionHeader<'_>, served: Revisions) -> Result<Era, EraError> {
    if served.has_legacy() {
        return legacy(version, served);
    }
    let asked = if envelope.is_initialize() { envelope.initialize_version().or(Some("")) } else { None };
    match asked.or(version.text()) {
        Some(requested) => Err(EraError::unsupported(requested, served)),
        None => Err(EraError::mismatch(header::PROTOCOL_VERSION)),
    }
}

fn legacy(version: &VersionHeader<'_>, served: Revisions) -> Result<Era, EraError> {
    match *version {
        VersionHeader::Absent => Ok(Era::Legacy { version: None }),
        VersionHeader::Known(revision) if served.contains(revision) => Ok(Era::Legacy { version: Some(revision) }),
        _ => Err(EraError::LegacyVersion),
    }
}

/// Compares `Mcp-Method` and `Mcp-Name` with the message. Notifications need not have them.
fn mirrored(envelope: &Envelope<'_>, headers: &HeaderMap) -> Result<(), EraError> {
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
    let Some(name) = envelope.name().filter(|_| may_be_mirrored(method)) else { return Ok(()) };
    let required = required && mirrored_member(method).is_some();
    let agrees = match header::single(headers, &header::NAME) {
        Ok(Some(value)) => decode_mirrored(value).is_ok_and(|mirrored| mirrored == name),
        Ok(None) => !required,
        Err(header::RepeatedHeader) => false,
    };
    if agrees { Ok(()) } else { Err(EraError::mismatch(header::NAME)) }
}

/// Returns whether [`classify`] compares `Mcp-Name` with the body of this modern message. In other messages the header is
/// not checked.
pub fn checks_name_header(envelope: &Envelope<'_>) -> bool {
    envelope.name().is_some() && envelope.method().is_some_and(may_be_mirrored)
}

/// Returns whether `Mcp-Name` can mirror a name of the method: if 2026-07-28 requires the header, for `tasks/*` (SEP-2663),
/// and for the methods that 2026-07-28 replaced, in any letter case. Other methods have several names or none.
fn may_be_mirrored(method: &str) -> bool {
    let is = |known: &&str| method.eq_ignore_ascii_case(known);
    let is_task = || method.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("tasks/"));
    ["tools/call", "prompts/get", "resources/read", "resources/subscribe", "resources/unsubscribe"].iter().any(is)
        || is_task()
}

//! [`VersionHeader`]: the `MCP-Protocol-Version` header.

use http::HeaderMap;

use crate::{Revision, header};

/// The value of `MCP-Protocol-Version`.
pub(super) enum VersionHeader<'h> {
    /// There is no header.
    Absent,
    /// A revision that this crate knows.
    Known(Revision),
    /// Any other ASCII text.
    Unknown(&'h str),
    /// The header is not ASCII, or is repeated.
    Malformed {
        /// Whether one of several values names a modern revision.
        claims_modern: bool,
    },
}

impl<'h> VersionHeader<'h> {
    /// Reads the header.
    pub(super) fn read(headers: &'h HeaderMap) -> Self {
        let value = match header::single(headers, &header::PROTOCOL_VERSION) {
            Ok(None) => return Self::Absent,
            Ok(Some(value)) => value,
            Err(header::RepeatedHeader) => {
                let mut values = headers.get_all(&header::PROTOCOL_VERSION).iter();
                let claims_modern = values.any(|value| {
                    value
                        .to_str()
                        .ok()
                        .and_then(Revision::parse)
                        .is_some_and(Revision::is_modern)
                });
                return Self::Malformed { claims_modern };
            }
        };
        match value.to_str() {
            Ok(text) => Revision::parse(text).map_or(Self::Unknown(text), Self::Known),
            Err(_) => Self::Malformed {
                claims_modern: false,
            },
        }
    }

    /// Returns whether the header names a modern revision. Of a repeated header, one value
    /// suffices.
    pub(super) fn claims_modern(&self) -> bool {
        match self {
            Self::Known(revision) => revision.is_modern(),
            Self::Malformed { claims_modern } => *claims_modern,
            Self::Absent | Self::Unknown(_) => false,
        }
    }

    /// Returns the text, if the header is present once and ASCII.
    pub(super) fn text(&self) -> Option<&'h str> {
        match self {
            Self::Known(revision) => Some(revision.as_str()),
            Self::Unknown(text) => Some(text),
            Self::Absent | Self::Malformed { .. } => None,
        }
    }
}

//! [`GuardSettingsError`]: why the settings of a guard cannot be used.

use portcullis_metadata::ResourceUri;

use super::check::MAX_REALM_LEN;
use crate::origin::OriginPolicyError;

/// Why [`GuardSettings`](crate::GuardSettings) cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GuardSettingsError {
    /// The resource is neither `https` nor `http` on loopback (RFC 9728 section 1.2).
    #[error("the resource `{0}` is neither https nor http on a loopback host")]
    InsecureResource(ResourceUri),
    /// The metadata or the verifier belongs to another resource.
    #[error("the settings are for `{expected}`, but the {part} is for `{found}`")]
    ResourceMismatch {
        /// `metadata` or `verifier`.
        part: &'static str,
        /// The resource of the settings.
        expected: ResourceUri,
        /// The resource of the metadata or verifier.
        found: ResourceUri,
    },
    /// The metadata lists no authorization server.
    #[error("the metadata must list at least one authorization server")]
    NoAuthorizationServer,
    /// The scopes contain `offline_access`, which MCP 2026-07-28 forbids: it requests a refresh
    /// token and is not a permission of a resource.
    #[error("`offline_access` in {0} is not a scope of a resource; remove it")]
    OfflineAccess(&'static str),
    /// A name in `scopes_supported` is not a scope name.
    #[error("`{0}` in scopes_supported is not a scope name")]
    ScopeName(String),
    /// The metadata announces something that the guard does not enforce.
    #[error("the metadata announces `{0}`, which the guard does not enforce")]
    NotEnforced(&'static str),
    /// The realm is empty, too long, or has a character other than printable ASCII.
    #[error("the realm must be 1 to {MAX_REALM_LEN} printable ASCII characters")]
    Realm,
    /// A public path is not the path of a request.
    #[error(
        "the public path `{0}` must start with `/` and have no `*`, `?`, `#`, space or non-ASCII character; list each path separately"
    )]
    PublicPath(String),
    /// A host or origin setting is malformed.
    #[error(transparent)]
    Origin(#[from] OriginPolicyError),
}

impl GuardSettingsError {
    /// Returns a stable code for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InsecureResource(_) => "settings.insecure_resource",
            Self::ResourceMismatch { .. } => "settings.resource_mismatch",
            Self::NoAuthorizationServer => "settings.no_authorization_server",
            Self::OfflineAccess(_) => "settings.offline_access",
            Self::ScopeName(_) => "settings.scope_name",
            Self::NotEnforced(_) => "settings.not_enforced",
            Self::Realm => "settings.realm",
            Self::PublicPath(_) => "settings.public_path",
            Self::Origin(error) => error.code(),
        }
    }
}

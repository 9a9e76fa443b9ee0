//! [`FurtherAudience`]: a value of `aud` that names a protected resource, beside its URL.

use std::fmt;

use portcullis_metadata::ResourceUri;

use super::ApplicationAudience;

/// A value of `aud` by which an issuer names a protected resource, beside the resource's URL. It is
/// accepted for this resource only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FurtherAudience {
    /// The URL of the protected resource that is named.
    pub resource: ResourceUri,
    /// The accepted value.
    pub name: AudienceName,
}

/// A name of a protected resource in `aud`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AudienceName {
    /// Another URL of the resource. It matches as the resource's own does.
    Url(ResourceUri),
    /// The issuer's own name, for providers that do not write the resource URL. A token that has
    /// only such a name must also have a `scope` or `scp` with a scope, `azp` or `appid`, because
    /// an ID token can have the same `aud`. Use it only with required scopes, which is not checked
    /// here.
    Application(ApplicationAudience),
}

impl AudienceName {
    /// Returns the name as written.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Url(url) => url.as_str(),
            Self::Application(name) => name.as_str(),
        }
    }

    /// Returns whether an `aud` entry is this name.
    pub fn matches(&self, audience: &str) -> bool {
        match self {
            Self::Url(url) => url.matches_audience(audience),
            Self::Application(name) => name.matches(audience),
        }
    }
}

impl fmt::Display for AudienceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

//! The checks of [`GuardSettings`] before a resource is created from them.

use portcullis_metadata::{
    ProtectedResourceMetadata, ResourceUri, Scopes, syntax::is_https_or_loopback_http,
};

use super::{Authentication, GuardSettings, GuardSettingsError};

/// The scope that requests a refresh token (OpenID Connect Core section 11). It is not a permission
/// of a resource.
const OFFLINE_ACCESS: &str = "offline_access";
/// The maximum length of a realm in bytes. It is sent in every challenge.
pub(super) const MAX_REALM_LEN: usize = 256;

impl GuardSettings {
    /// Checks a realm, as every guard does with [`realm`](Self::realm): 1 to 256 printable ASCII
    /// characters, including the space. For programs that read it from their own configuration and
    /// report errors before they build the guard.
    ///
    /// # Errors
    /// [`GuardSettingsError::Realm`].
    pub fn check_realm(realm: &str) -> Result<(), GuardSettingsError> {
        let is_printable = realm.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        let is_valid = is_printable && (1..=MAX_REALM_LEN).contains(&realm.len());
        is_valid.then_some(()).ok_or(GuardSettingsError::Realm)
    }

    /// Checks the settings, and returns all scopes that they name. Returns the first problem.
    pub(crate) fn check(&self) -> Result<Scopes, GuardSettingsError> {
        if !is_https_or_loopback_http(self.resource.url()) {
            return Err(GuardSettingsError::InsecureResource(self.resource.clone()));
        }
        self.check_resource_of("metadata", &self.metadata.resource)?;
        if let Authentication::Required(verifier) = &self.authentication {
            self.check_resource_of("verifier", verifier.resource())?;
            if self.metadata.authorization_servers.is_empty() {
                return Err(GuardSettingsError::NoAuthorizationServer);
            }
        }
        if let Some(member) = not_enforced(&self.metadata) {
            return Err(GuardSettingsError::NotEnforced(member));
        }
        Self::check_realm(&self.realm)?;
        if let Some(path) = self.public_paths.iter().find(|path| !is_request_path(path)) {
            return Err(GuardSettingsError::PublicPath(path.clone()));
        }
        self.check_scopes()
    }

    /// Checks that a part of the settings is for the resource.
    fn check_resource_of(
        &self,
        part: &'static str,
        found: &ResourceUri,
    ) -> Result<(), GuardSettingsError> {
        if *found == self.resource {
            return Ok(());
        }
        let expected = self.resource.clone();
        let found = found.clone();
        Err(GuardSettingsError::ResourceMismatch {
            part,
            expected,
            found,
        })
    }

    /// Checks all scopes that the settings name, and returns them.
    fn check_scopes(&self) -> Result<Scopes, GuardSettingsError> {
        let mut supported = Scopes::empty();
        for name in &self.metadata.scopes_supported {
            let scope = Scopes::from_names([name.as_str()])
                .map_err(|_| GuardSettingsError::ScopeName(name.clone()))?;
            supported = supported.union(&scope);
        }
        let routes = self
            .routes
            .iter()
            .fold(Scopes::empty(), |all, rule| all.union(&rule.scopes));
        let mut named = Scopes::empty();
        for (place, scopes) in [
            ("required_scopes", &self.required_scopes),
            ("scopes_supported", &supported),
            ("a route", &routes),
            ("the implied scopes", self.scope_implications.names()),
        ] {
            if scopes.contains(OFFLINE_ACCESS) {
                return Err(GuardSettingsError::OfflineAccess(place));
            }
            named = named.union(scopes);
        }
        Ok(named)
    }
}

/// Returns the member of the metadata that announces sender-constrained tokens, if there is one.
/// Such tokens are rejected.
fn not_enforced(metadata: &ProtectedResourceMetadata) -> Option<&'static str> {
    let announced = [
        (
            "dpop_signing_alg_values_supported",
            !metadata.dpop_signing_alg_values_supported.is_empty(),
        ),
        (
            "dpop_bound_access_tokens_required",
            metadata.dpop_bound_access_tokens_required == Some(true),
        ),
        (
            "tls_client_certificate_bound_access_tokens",
            metadata.tls_client_certificate_bound_access_tokens == Some(true),
        ),
    ];
    announced
        .into_iter()
        .find_map(|(member, is_announced)| is_announced.then_some(member))
}

/// Returns whether a request can have this path. `*` is excluded because it looks like a pattern.
fn is_request_path(path: &str) -> bool {
    path.starts_with('/')
        && path
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'*' | b'?' | b'#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B1: a public path is written as a request sends it.
    #[test]
    fn public_paths_are_paths_of_requests() {
        for path in ["/", "/healthz", "/a/b.txt", "/%C3%A9", "/a;b=c", "//"] {
            assert!(is_request_path(path), "{path}");
        }
        for path in [
            "",
            "healthz",
            "/a b",
            "/a?b",
            "/a#b",
            "/a/*",
            "*",
            "/\u{e9}",
            "/a\n",
            "https://a.example/",
        ] {
            assert!(!is_request_path(path), "{path}");
        }
    }
}

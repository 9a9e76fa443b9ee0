//! [`RequestProfile`]: how the requests of one sign-in differ from MCP's profile.

use portcullis_metadata::{
    AuthorizationServerMetadata, Issuer, ResourceUri, Scopes, authorization::TokenResponse,
};

use super::{KnownIssuer, OtherApi, ProviderSettings};
use crate::{
    ClientError, StartUrl, offline_access::OFFLINE_ACCESS, server::device_authorization_endpoint,
};

/// How the requests to one authorization server differ from MCP's profile, by the settings and by
/// its known issuer.
#[derive(Clone, Debug)]
pub(crate) struct RequestProfile {
    /// The provider, if its issuer is known.
    pub(crate) known: Option<&'static KnownIssuer>,
    /// Whether requests have no `resource`.
    pub(crate) omits_resource: bool,
    /// The provider of the endpoints, which can differ from the issuer's. It is used only to reject
    /// scopes and tokens.
    endpoints_of: Option<&'static KnownIssuer>,
    /// Whether PKCE is used although the metadata does not list it.
    pub(crate) assumes_pkce: bool,
    /// Whether `prompt=consent` is sent with `offline_access`.
    pub(crate) prompts_consent: bool,
    /// Additional parameters of the authorization request and the device authorization request,
    /// without duplicates.
    pub(crate) parameters: Vec<(String, String)>,
}

impl RequestProfile {
    /// Creates the profile. The caller must have compared the metadata's `issuer` with the
    /// requested one.
    pub(crate) fn new(
        settings: &ProviderSettings,
        metadata: &AuthorizationServerMetadata,
        resource: &ResourceUri,
    ) -> Self {
        let known = KnownIssuer::find(&metadata.issuer);
        let device = device_authorization_endpoint(metadata);
        let endpoints = [
            &metadata.authorization_endpoint,
            &metadata.token_endpoint,
            &device,
        ];
        let endpoints_of = endpoints
            .into_iter()
            .flatten()
            .find_map(KnownIssuer::of_endpoint);
        let audience = known
            .filter(|known| known.sends_audience)
            .map(|_| ("audience", resource.as_str()));
        let fixed = known
            .into_iter()
            .flat_map(|known| known.parameters)
            .copied()
            .chain(audience);
        let configured = settings
            .parameters
            .iter()
            .map(|parameter| (parameter.name(), parameter.value()));
        let parameters = without_duplicates(fixed.chain(configured));
        Self {
            known,
            omits_resource: settings.omit_resource
                || known.is_some_and(|known| known.omits_resource),
            endpoints_of,
            assumes_pkce: settings.assume_pkce || known.is_some_and(|known| known.assumes_pkce),
            prompts_consent: known.is_none_or(|known| known.prompts_consent)
                && !parameters.iter().any(|(name, _)| name == "prompt"),
            parameters,
        }
    }

    /// Returns whether the token is not bound to the resource: the request has no `resource`, or
    /// goes to a provider that ignores it.
    pub(crate) fn is_unbound(&self) -> bool {
        self.omits_resource
            || self
                .endpoints_of
                .is_some_and(|provider| provider.omits_resource)
    }

    /// Rejects scopes of other APIs if the token is not bound to the resource. Fails with
    /// [`ClientError::OtherApi`] for the first such scope.
    pub(crate) fn check_scopes(
        &self,
        scopes: &Scopes,
        start: &StartUrl,
        issuer: &Issuer,
    ) -> Result<(), ClientError> {
        let other = scopes
            .iter()
            .find_map(|scope| self.other_api(start)?.of_scope(scope));
        other.map_or(Ok(()), |api| {
            Err(ClientError::OtherApi {
                issuer: issuer.clone(),
                api,
            })
        })
    }

    /// Rejects a token that is for another API, by its scopes or its audience, if it is not bound
    /// to the resource. Fails with [`ClientError::OtherApi`].
    pub(crate) fn check_response(
        &self,
        response: &TokenResponse,
        start: &StartUrl,
        issuer: &Issuer,
    ) -> Result<(), ClientError> {
        let Some(other) = self.other_api(start) else {
            return Ok(());
        };
        let granted = response.scope.as_deref().unwrap_or_default();
        let by_scope = granted
            .split_ascii_whitespace()
            .find_map(|scope| other.of_scope(scope));
        match by_scope.or_else(|| other.of_token(&response.access_token)) {
            Some(api) => Err(ClientError::OtherApi {
                issuer: issuer.clone(),
                api,
            }),
            None => Ok(()),
        }
    }

    /// What other APIs are. `None` if the token is bound to the resource, so that no other API
    /// accepts it.
    fn other_api<'a>(&self, start: &'a StartUrl) -> Option<OtherApi<'a>> {
        let defaults_to_graph = [self.known, self.endpoints_of]
            .into_iter()
            .flatten()
            .any(|known| known.defaults_to_graph);
        self.is_unbound().then_some(OtherApi {
            start,
            defaults_to_graph,
        })
    }
}

/// Parameters with distinct names: a later one replaces an earlier one.
fn without_duplicates<'a>(
    parameters: impl Iterator<Item = (&'a str, &'a str)>,
) -> Vec<(String, String)> {
    let mut distinct: Vec<(String, String)> = Vec::new();
    for (name, value) in parameters {
        distinct.retain(|(earlier, _)| earlier != name);
        distinct.push((name.to_owned(), value.to_owned()));
    }
    distinct
}

/// Returns the `scope` of a refresh request without `resource`, which selects the API of the token
/// (Entra ID requires it). These are the requested scopes without those that were not granted,
/// because a server rejects the others (RFC 6749 section 6). If no requested name was granted, the
/// provider uses other names, and all requested scopes are returned.
pub(crate) fn refresh_scopes(asked: &Scopes, granted: Option<&Scopes>) -> Scopes {
    let Some(granted) = granted else {
        return asked.clone();
    };
    if asked.intersection(granted).is_empty() {
        return asked.clone();
    }
    asked.filter(|name| name == OFFLINE_ACCESS || granted.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::AuthorizeParameter;

    fn profile(issuer: &str, parameters: &[&str]) -> RequestProfile {
        let parameters = parameters
            .iter()
            .map(|text| AuthorizeParameter::parse(text).unwrap())
            .collect();
        let settings = ProviderSettings {
            parameters,
            ..ProviderSettings::default()
        };
        let resource = ResourceUri::parse("https://mcp.example.com/mcp").unwrap();
        RequestProfile::new(
            &settings,
            &AuthorizationServerMetadata::new(Issuer::parse(issuer).unwrap()),
            &resource,
        )
    }

    fn parameters(issuer: &str, configured: &[&str]) -> Vec<String> {
        let profile = profile(issuer, configured);
        profile
            .parameters
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect()
    }

    /// I1: known issuers get their parameters, the user's parameters take precedence, and no name
    /// occurs twice.
    #[test]
    fn parameters_are_chosen() {
        assert!(parameters("https://auth.example.com", &[]).is_empty());
        assert_eq!(
            parameters("https://accounts.google.com", &[]),
            ["access_type=offline", "prompt=consent"]
        );
        assert_eq!(
            parameters(
                "https://accounts.google.com",
                &["prompt=select_account", "hd=example.com"]
            ),
            [
                "access_type=offline",
                "prompt=select_account",
                "hd=example.com"
            ]
        );
        assert_eq!(
            parameters("https://t.auth0.com/", &[]),
            ["audience=https://mcp.example.com/mcp"]
        );
        assert_eq!(
            parameters("https://t.auth0.com/", &["audience=a", "audience=b"]),
            ["audience=b"]
        );
    }

    #[test]
    fn known_issuers_are_profiled() {
        let entra = profile("https://login.microsoftonline.com/t/v2.0", &[]);
        assert!(entra.omits_resource);
        assert!(entra.assumes_pkce);
        assert!(!entra.prompts_consent);
        let plain = profile("https://auth.example.com", &[]);
        assert!(!plain.omits_resource);
        assert!(!plain.assumes_pkce);
        assert!(plain.prompts_consent);
        assert!(!profile("https://auth.example.com", &["prompt=login"]).prompts_consent);
        assert!(!profile("https://t.auth0.com/", &[]).omits_resource);
    }

    /// G4: endpoints of a known provider at another issuer do not select its profile, and their
    /// tokens count as unbound.
    #[test]
    fn borrowed_endpoints_are_recognized() {
        let start = StartUrl::parse("https://mcp.example.com/mcp").unwrap();
        let resource = ResourceUri::parse("https://mcp.example.com/mcp").unwrap();
        let issuer = Issuer::parse("https://auth.example.com").unwrap();
        for (endpoint, scope) in [
            (
                "https://login.microsoftonline.com/common/oauth2/v2.0/authorize",
                "User.Read",
            ),
            (
                "https://accounts.google.com/o/oauth2/v2/auth",
                "https://www.googleapis.com/auth/drive",
            ),
            (
                "https://oauth2.googleapis.com/token",
                "https://www.googleapis.com/auth/drive",
            ),
        ] {
            let mut metadata = AuthorizationServerMetadata::new(issuer.clone());
            metadata.authorization_endpoint = Some(endpoint.parse().unwrap());
            let profile = RequestProfile::new(&ProviderSettings::default(), &metadata, &resource);
            assert!(profile.is_unbound(), "{endpoint}");
            assert!(!profile.omits_resource, "{endpoint}");
            assert!(!profile.assumes_pkce, "{endpoint}");
            let checked = profile.check_scopes(&Scopes::parse(scope).unwrap(), &start, &issuer);
            assert_eq!(
                checked.unwrap_err().code(),
                "client.other_api",
                "{endpoint}"
            );
        }
        assert!(!profile("https://auth.example.com", &[]).is_unbound());
    }

    #[test]
    fn refreshes_ask_for_what_was_granted() {
        let scopes = |text: &str| Scopes::parse(text).unwrap();
        for (asked, granted, expected) in [
            ("a b offline_access", Some("a"), "a offline_access"),
            ("a offline_access", None, "a offline_access"),
            (
                "api://x/.default offline_access",
                Some("api://x/tools"),
                "api://x/.default offline_access",
            ),
        ] {
            let granted = granted.map(scopes);
            assert_eq!(
                refresh_scopes(&scopes(asked), granted.as_ref()),
                scopes(expected),
                "{asked}"
            );
        }
    }
}

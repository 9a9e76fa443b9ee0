//! What is known about providers beyond their metadata.

use portcullis_metadata::{AuthorizationServerMetadata, Issuer, ResourceUri};

use crate::{Finding, Rule};

const AUDIENCE: Rule = Rule::new("issuer.audience", "RFC 8707 section 2");
const TOKENS: Rule = Rule::new("issuer.tokens", "RFC 9068");

/// How a provider gets the URL of the resource into `aud`; `None` if nothing special is known.
pub(super) fn audience_note(
    issuer: &Issuer,
    metadata: &AuthorizationServerMetadata,
    resource: &ResourceUri,
) -> Option<Finding> {
    let host = issuer.url().host_str().unwrap_or_default();
    let text = if is_keycloak(issuer, metadata) {
        format!(
            "Keycloak ignores `resource`: add an audience mapper with {resource} to a default client scope"
        )
    } else if host.ends_with(".auth0.com") {
        format!(
            "Auth0: create an API with the identifier {resource}, and enable the Resource Parameter Compatibility Profile or \
             make it the default audience"
        )
    } else if host.contains("cognito-idp.") {
        format!(
            "Amazon Cognito sets `aud` only for a resource server that is bound to {resource}; tokens without `aud` are rejected"
        )
    } else if host.ends_with(".okta.com") || host.ends_with(".oktapreview.com") {
        format!("Okta: set the audience of this authorization server to {resource}")
    } else if issuer.url().path().starts_with("/application/o/") {
        format!(
            "Authentik ignores `resource`: add a scope mapping that returns {{\"aud\": [\"{resource}\"]}}"
        )
    } else {
        return None;
    };
    Some(Finding::note(AUDIENCE, text))
}

/// Providers whose access tokens are not JWTs.
pub(super) fn opaque_tokens(issuer: &Issuer, key: &str) -> Option<Finding> {
    let is_google = issuer.as_str().trim_end_matches('/') == "https://accounts.google.com";
    is_google.then(|| {
        Finding::problem(
            TOKENS,
            "Google's access tokens are opaque, so that their signature cannot be verified",
            format!("use an authorization server that issues JWTs and signs people in with Google, in place of {key}"),
        )
    })
}

/// Whether the metadata is that of a Keycloak realm.
fn is_keycloak(issuer: &Issuer, metadata: &AuthorizationServerMetadata) -> bool {
    let has_path = |part: &str| {
        metadata
            .token_endpoint
            .as_ref()
            .is_some_and(|endpoint| endpoint.path().contains(part))
    };
    issuer.url().path().contains("/realms/") && has_path("/protocol/openid-connect/token")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J9: providers that ignore `resource` have a note with the setting that they need.
    #[test]
    fn providers_that_ignore_resource_have_a_note() {
        let resource = ResourceUri::parse("https://mcp.example.com/mcp").unwrap();
        for (issuer, expected) in [
            (
                "https://auth.example.com/application/o/mcp/",
                "returns {\"aud\": [\"https://mcp.example.com/mcp\"]}",
            ),
            (
                "https://example.eu.auth0.com/",
                "an API with the identifier https://mcp.example.com/mcp",
            ),
            (
                "https://example.okta.com/oauth2/default",
                "authorization server to https://mcp.example.com/mcp",
            ),
        ] {
            let issuer = Issuer::parse(issuer).unwrap();
            let metadata = AuthorizationServerMetadata::new(issuer.clone());
            let note = format!(
                "{:?}",
                audience_note(&issuer, &metadata, &resource).unwrap()
            );
            assert!(note.replace('\\', "").contains(expected), "{note}");
        }
        let other = Issuer::parse("https://auth.example.com").unwrap();
        assert!(
            audience_note(
                &other,
                &AuthorizationServerMetadata::new(other.clone()),
                &resource
            )
            .is_none()
        );
    }
}

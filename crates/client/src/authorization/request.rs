//! [`AuthorizationRequest`]: the authorization request (RFC 6749 section 4.1.1) and the validation
//! of its response.

use std::fmt;

use portcullis_discovery::UrlPolicy;
use portcullis_metadata::{
    Issuer, ResourceUri, Scopes, Secret,
    authorization::{OAuthError, PkceChallenge, check_response_issuer},
};
use url::Url;

use crate::{
    ClientError, RedirectError, RedirectParameters, authorization::code_flow::CodeFlow,
    offline_access::OFFLINE_ACCESS, provider::RequestProfile, random, token::dpop::DpopBinding,
};

/// An authorization request (OAuth 2.1 section 4.1.1, RFC 8707 section 2.1), and the expected
/// values of its response.
pub struct AuthorizationRequest {
    url: Url,
    policy: UrlPolicy,
    state: Secret,
    issuer: Issuer,
    promises_issuer: bool,
}

/// The parameters of an authorization request that differ between requests.
pub(crate) struct RequestParameters<'a> {
    pub(crate) client_id: &'a str,
    pub(crate) redirect_uri: &'a Url,
    pub(crate) challenge: &'a PkceChallenge,
    /// `None` if the request omits `resource`.
    pub(crate) resource: Option<&'a ResourceUri>,
    pub(crate) profile: &'a RequestProfile,
    pub(crate) scopes: &'a Scopes,
    /// The key to which the token will be bound. The code is then bound to it, too (RFC 9449
    /// section 10).
    pub(crate) binding: Option<&'a DpopBinding>,
}

impl RequestParameters<'_> {
    /// Returns the URL of the request. The endpoint's own query is kept (RFC 6749 section 3.1).
    fn url(&self, endpoint: &Url, state: &Secret) -> Url {
        let mut url = endpoint.clone();
        url.set_fragment(None);
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", self.client_id)
            .append_pair("redirect_uri", self.redirect_uri.as_str())
            .append_pair("code_challenge", self.challenge.as_str())
            .append_pair("code_challenge_method", PkceChallenge::METHOD)
            .append_pair("state", state.secret());
        if let Some(resource) = self.resource {
            query.append_pair("resource", resource.as_str());
        }
        if !self.scopes.is_empty() {
            query.append_pair("scope", &self.scopes.to_string());
        }
        if self.scopes.contains(OFFLINE_ACCESS) && self.profile.prompts_consent {
            // Without `prompt=consent`, a server need not grant `offline_access` (OpenID Connect
            // Core section 11).
            query.append_pair("prompt", "consent");
        }
        query.extend_pairs(&self.profile.parameters);
        if let Some(binding) = self.binding {
            query.append_pair("dpop_jkt", binding.key().thumbprint());
        }
        drop(query);
        url
    }
}

impl AuthorizationRequest {
    /// Creates a request with a random `state`.
    pub(crate) fn new(
        flow: &CodeFlow,
        parameters: &RequestParameters<'_>,
    ) -> Result<Self, ClientError> {
        let state = random::secret()?;
        let url = parameters.url(&flow.authorization_endpoint, &state);
        let policy = flow.server.policy.of(&url);
        Ok(Self {
            url,
            policy,
            state,
            issuer: flow.server.issuer.clone(),
            promises_issuer: flow.promises_issuer,
        })
    }

    /// Returns the URL to visit: `https` or loopback `http`.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the policy for a program that fetches the URL instead of a browser.
    pub fn url_policy(&self) -> UrlPolicy {
        self.policy
    }

    /// Validates a response: first `state`, then `iss` (RFC 9207 section 2.4), then the error or
    /// the code.
    ///
    /// # Errors
    /// Fails if the response is not for this request or has no code. Only [`RedirectError::Denied`]
    /// contains text of the response.
    pub fn validate_response<'a>(
        &self,
        response: &'a RedirectParameters,
    ) -> Result<&'a Secret, RedirectError> {
        if response.state.as_ref() != Some(&self.state) {
            return Err(RedirectError::State);
        }
        check_response_issuer(&self.issuer, self.promises_issuer, response.iss.as_deref())
            .map_err(RedirectError::Issuer)?;
        if let Some(error) = &response.error {
            return Err(RedirectError::Denied(OAuthError {
                error: error.clone(),
                error_description: response.error_description.clone(),
                error_uri: response.error_uri.clone(),
            }));
        }
        response
            .code
            .as_ref()
            .filter(|code| !code.secret().is_empty())
            .ok_or(RedirectError::NoCode)
    }
}

impl fmt::Debug for AuthorizationRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorizationRequest")
            .field("issuer", &self.issuer)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::HashMap;

    use portcullis_metadata::{
        AuthorizationServerMetadata,
        authorization::{PkceVerifier, ResponseIssuerError},
    };

    use super::*;
    use crate::provider::{AuthorizeParameter, ProviderSettings};

    pub(crate) const ISSUER: &str = "https://auth.example.com";

    pub(crate) fn request(promises_issuer: bool) -> AuthorizationRequest {
        request_for("b a", promises_issuer)
    }

    fn request_for(scopes: &str, promises_issuer: bool) -> AuthorizationRequest {
        request_with(scopes, promises_issuer, &ProviderSettings::default())
    }

    fn request_with(
        scopes: &str,
        promises_issuer: bool,
        settings: &ProviderSettings,
    ) -> AuthorizationRequest {
        let mut metadata = AuthorizationServerMetadata::new(Issuer::parse(ISSUER).unwrap());
        metadata.authorization_endpoint =
            Some(Url::parse("https://auth.example.com/authorize?tenant=a#x").unwrap());
        metadata.token_endpoint = Some(Url::parse("https://auth.example.com/token").unwrap());
        metadata.response_types_supported = vec!["code".into()];
        metadata.code_challenge_methods_supported = Some(vec!["S256".into()]);
        metadata.authorization_response_iss_parameter_supported = promises_issuer;
        let resource = ResourceUri::parse("https://mcp.example.com/mcp").unwrap();
        let profile = RequestProfile::new(settings, &metadata, &resource);
        let parameters = RequestParameters {
            client_id: "client&1",
            redirect_uri: &Url::parse("http://127.0.0.1:1/callback").unwrap(),
            challenge: &PkceVerifier::generate().unwrap().challenge(),
            resource: (!profile.omits_resource).then_some(&resource),
            profile: &profile,
            scopes: &Scopes::parse(scopes).unwrap(),
            binding: None,
        };
        AuthorizationRequest::new(
            &CodeFlow::from_metadata(&metadata, UrlPolicy::Operator.into(), false).unwrap(),
            &parameters,
        )
        .unwrap()
    }

    pub(crate) fn state(request: &AuthorizationRequest) -> String {
        query(request).remove("state").unwrap()
    }

    fn query(request: &AuthorizationRequest) -> HashMap<String, String> {
        request.url().query_pairs().into_owned().collect()
    }

    fn validate(request: &AuthorizationRequest, query: &str) -> Result<String, RedirectError> {
        let answer = RedirectParameters::parse(query)?;
        request
            .validate_response(&answer)
            .map(|code| code.secret().to_owned())
    }

    /// I1: the URL has PKCE with S256, a fresh state and the resource, and keeps the endpoint's own
    /// query.
    #[test]
    fn the_url_has_the_parameters_of_the_flow() {
        let request = request(true);
        let query = query(&request);
        assert_eq!(query["tenant"], "a");
        assert_eq!(query["response_type"], "code");
        assert_eq!(query["client_id"], "client&1");
        assert_eq!(query["redirect_uri"], "http://127.0.0.1:1/callback");
        assert_eq!(query["code_challenge_method"], "S256");
        assert_eq!(query["code_challenge"].len(), 43);
        assert_eq!(query["resource"], "https://mcp.example.com/mcp");
        assert_eq!(query["scope"], "a b");
        assert!(query["state"].len() >= 22);
        assert_ne!(query["state"], state(&super::tests::request(true)));
        assert_eq!(request.url().fragment(), None);
    }

    /// I1: `prompt=consent` is sent with `offline_access`, and only then.
    #[test]
    fn offline_access_requires_consent() {
        assert_eq!(
            query(&request_for("a offline_access", true))["prompt"],
            "consent"
        );
        assert!(!query(&request_for("a", true)).contains_key("prompt"));
    }

    /// I1: the user's parameters are added, and `resource` is omitted on request.
    #[test]
    fn requests_follow_the_profile() {
        let parameters =
            ["login_hint=a&b", "prompt=login"].map(|text| AuthorizeParameter::parse(text).unwrap());
        let settings = ProviderSettings {
            omit_resource: true,
            parameters: parameters.into(),
            ..ProviderSettings::default()
        };
        let request = request_with("a offline_access", true, &settings);
        let query = query(&request);
        assert_eq!(query["login_hint"].as_str(), "a&b");
        assert_eq!(query["prompt"].as_str(), "login");
        assert!(!query.contains_key("resource"));
        assert_eq!(
            request
                .url()
                .query_pairs()
                .filter(|(name, _)| name == "prompt")
                .count(),
            1
        );
    }

    /// I1: a response with another state is rejected before its other parameters are read.
    #[test]
    fn the_state_must_match() {
        let request = request(true);
        for query in [
            "code=c&iss=https://auth.example.com",
            "code=c&state=&iss=https://auth.example.com",
            "error=access_denied&state=x",
        ] {
            assert_eq!(
                validate(&request, query),
                Err(RedirectError::State),
                "{query}"
            );
        }
    }

    /// I2: the four combinations, for codes and for errors. On a mismatch, the error contains
    /// nothing of the response.
    #[test]
    fn the_issuer_is_checked_before_code_and_error() {
        let missing = Err(RedirectError::Issuer(ResponseIssuerError::Missing));
        let mismatch = Err(RedirectError::Issuer(ResponseIssuerError::Mismatch));
        for promises in [true, false] {
            let request = request(promises);
            let state = state(&request);
            let validate =
                |rest: &str| super::tests::validate(&request, &format!("state={state}&{rest}"));
            assert_eq!(
                validate("code=c&iss=https%3A%2F%2Fauth.example.com"),
                Ok("c".into())
            );
            for other in [
                "https://evil.example",
                "https://auth.example.com/",
                "https://AUTH.example.com",
                "",
            ] {
                assert_eq!(
                    validate(&format!("code=c&iss={other}")),
                    mismatch,
                    "{other}"
                );
                assert_eq!(
                    validate(&format!("error=x&error_description=hush&iss={other}")),
                    mismatch,
                    "{other}"
                );
            }
            let code = validate("code=c");
            let error = validate("error=access_denied");
            if promises {
                assert_eq!(code, missing.clone());
                assert_eq!(error, missing.clone());
            } else {
                assert_eq!(code, Ok("c".into()));
                assert_eq!(error.unwrap_err().code(), "redirect.denied");
            }
        }
    }

    #[test]
    fn malformed_responses_are_rejected() {
        let request = request(false);
        let state = state(&request);
        assert_eq!(
            validate(&request, &format!("state={state}")),
            Err(RedirectError::NoCode)
        );
        assert_eq!(
            validate(&request, &format!("state={state}&code=")),
            Err(RedirectError::NoCode)
        );
        assert_eq!(
            validate(&request, &format!("state={state}&code=a&code=b")),
            Err(RedirectError::Repeated)
        );
        for name in ["state", "iss", "error", "error_description", "error_uri"] {
            let twice = format!("code=a&{name}={state}&{name}={state}");
            assert_eq!(
                validate(&request, &twice),
                Err(RedirectError::Repeated),
                "{name}"
            );
        }
        assert_eq!(
            validate(&request, &format!("state=x&state={state}&code=a")),
            Err(RedirectError::Repeated)
        );
        // A response with a code and an error is an error.
        let both = validate(
            &request,
            &format!("state={state}&code=a&error=access_denied"),
        );
        assert_eq!(both.unwrap_err().code(), "redirect.denied");
    }

    /// J2: Debug shows neither state nor code.
    #[test]
    fn debug_is_redacted() {
        let request = request(true);
        let shown = format!("{request:?}");
        assert!(!shown.contains(&state(&request)), "{shown}");
        assert!(shown.contains(ISSUER), "{shown}");
        let answer = RedirectParameters::parse("code=hush&state=hush").unwrap();
        assert_eq!(format!("{answer:?}"), "RedirectParameters([redacted])");
    }
}

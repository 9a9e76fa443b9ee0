//! [`AuthorizationRequest`]: the authorization request (RFC 6749 section 4.1.1) and the validation of its response.

use std::fmt;

use portcullis_discovery::UrlPolicy;
use portcullis_metadata::{Issuer, OAuthError, PkceChallenge, ResourceUri, Scopes, Secret, check_response_issuer};
use url::Url;

use crate::{
    ClientError, RedirectError, RedirectParameters, authorization::code_flow::CodeFlow, authorizer::selection::OFFLINE,
    provider::RequestProfile, random, token::dpop::DpopBinding,
};

/// One authorization request (OAuth 2.1 section 4.1.1, RFC 8707 section 2.1), and what its answer is judged by.
pub struct AuthorizationRequest {
    url: Url,
    policy: UrlPolicy,
    state: Secret,
    issuer: Issuer,
    promises_issuer: bool,
}

/// What a request asks for.
pub(crate) struct Asked<'a> {
    pub(crate) client_id: &'a str,
    pub(crate) redirect_uri: &'a Url,
    pub(crate) challenge: &'a PkceChallenge,
    /// None where the authorization server is not told.
    pub(crate) resource: Option<&'a ResourceUri>,
    pub(crate) profile: &'a RequestProfile,
    pub(crate) scopes: &'a Scopes,
    /// The key that the token is to be bound to; the code is then bound to it too (RFC 9449 section 10).
    pub(crate) binding: Option<&'a DpopBinding>,
}

impl AuthorizationRequest {
    pub(crate) fn new(server: &CodeFlow, asked: &Asked<'_>) -> Result<Self, ClientError> {
        let state = random::secret()?;
        let mut url = server.authorization_endpoint.clone();
        url.set_fragment(None);
        // A query that the endpoint has of its own is kept (RFC 6749 section 3.1).
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", asked.client_id)
            .append_pair("redirect_uri", asked.redirect_uri.as_str())
            .append_pair("code_challenge", asked.challenge.as_str())
            .append_pair("code_challenge_method", PkceChallenge::METHOD)
            .append_pair("state", state.secret());
        if let Some(resource) = asked.resource {
            url.query_pairs_mut().append_pair("resource", resource.as_str());
        }
        if !asked.scopes.is_empty() {
            url.query_pairs_mut().append_pair("scope", &asked.scopes.to_string());
        }
        if asked.scopes.contains(OFFLINE) && asked.profile.prompts_consent {
            // Without it, a server need not grant what lasts (OpenID Connect Core section 11).
            url.query_pairs_mut().append_pair("prompt", "consent");
        }
        for (name, value) in &asked.profile.parameters {
            url.query_pairs_mut().append_pair(name, value);
        }
        if let Some(binding) = asked.binding {
            url.query_pairs_mut().append_pair("dpop_jkt", binding.key().thumbprint());
        }
        let policy = server.server.policy.of(&url);
        Ok(Self { url, policy, state, issuer: server.server.issuer.clone(), promises_issuer: server.promises_issuer })
    }

    /// The URL to visit: `https` or loopback `http`, as the URL parser writes it.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The policy for a program that fetches the URL in place of a browser.
    pub fn url_policy(&self) -> UrlPolicy {
        self.policy
    }

    /// Judges an answer: `state` first, then `iss` (RFC 9207 section 2.4), and only then what it says.
    ///
    /// # Errors
    /// Why there is no code. [`RedirectError::Denied`] alone carries anything of the answer.
    pub fn validate_response<'a>(&self, answer: &'a RedirectParameters) -> Result<&'a Secret, RedirectError> {
        if answer.state.as_ref() != Some(&self.state) {
            return Err(RedirectError::State);
        }
        check_response_issuer(&self.issuer, self.promises_issuer, answer.iss.as_deref())
            .map_err(RedirectError::Issuer)?;
        if let Some(error) = &answer.error {
            return Err(RedirectError::Denied(OAuthError {
                error: error.clone(),
                error_description: answer.error_description.clone(),
                error_uri: answer.error_uri.clone(),
            }));
        }
        answer.code.as_ref().ok_or(RedirectError::NoCode)
    }
}

impl fmt::Debug for AuthorizationRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorizationRequest").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::HashMap;

    use portcullis_metadata::{AuthorizationServerMetadata, PkceVerifier, ResponseIssuerError};

    use super::*;
    use crate::{AuthorizeParameter, ProviderSettings};

    pub(crate) const ISSUER: &str = "https://auth.example.com";

    pub(crate) fn request(promises_issuer: bool) -> AuthorizationRequest {
        request_for("b a", promises_issuer)
    }

    fn request_for(scopes: &str, promises_issuer: bool) -> AuthorizationRequest {
        request_with(scopes, promises_issuer, &ProviderSettings::default())
    }

    fn request_with(scopes: &str, promises_issuer: bool, settings: &ProviderSettings) -> AuthorizationRequest {
        let mut metadata = AuthorizationServerMetadata::new(Issuer::parse(ISSUER).unwrap());
        metadata.authorization_endpoint = Some(Url::parse("https://auth.example.com/authorize?tenant=a#x").unwrap());
        metadata.token_endpoint = Some(Url::parse("https://auth.example.com/token").unwrap());
        metadata.response_types_supported = vec!["code".into()];
        metadata.code_challenge_methods_supported = Some(vec!["S256".into()]);
        metadata.authorization_response_iss_parameter_supported = promises_issuer;
        let resource = ResourceUri::parse("https://mcp.example.com/mcp").unwrap();
        let profile = RequestProfile::new(settings, &metadata, &resource);
        let asked = Asked {
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
            &asked,
        )
        .unwrap()
    }

    pub(crate) fn state(request: &AuthorizationRequest) -> String {
        query(request).remove("state").unwrap()
    }

    fn query(request: &AuthorizationRequest) -> HashMap<String, String> {
        request.url().query_pairs().into_owned().collect()
    }

    fn judge(request: &AuthorizationRequest, query: &str) -> Result<String, RedirectError> {
        let answer = RedirectParameters::parse(query)?;
        request.validate_response(&answer).map(|code| code.secret().to_owned())
    }

    /// I1: PKCE with S256, a fresh state, and the resource, beside what the endpoint's URL has of its own.
    #[test]
    fn the_url_carries_what_the_flow_needs() {
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

    /// I1: who asks for what lasts, asks for the person's consent to it; nobody else has the page shown again.
    #[test]
    fn what_lasts_needs_consent() {
        assert_eq!(query(&request_for("a offline_access", true))["prompt"], "consent");
        assert!(!query(&request_for("a", true)).contains_key("prompt"));
    }

    /// I1: the user's parameters are added, and `resource` is omitted on request.
    #[test]
    fn requests_follow_the_profile() {
        let parameters = ["login_hint=a&b", "prompt=login"].map(|text| AuthorizeParameter::parse(text).unwrap());
        let settings =
            ProviderSettings { omit_resource: true, parameters: parameters.into(), ..ProviderSettings::default() };
        let request = request_with("a offline_access", true, &settings);
        let query = query(&request);
        assert_eq!((query["login_hint"].as_str(), query["prompt"].as_str()), ("a&b", "login"));
        assert!(!query.contains_key("resource"));
        assert_eq!(request.url().query_pairs().filter(|(name, _)| name == "prompt").count(), 1);
    }

    /// I1: an answer without the request's state is refused before anything else of it is looked at.
    #[test]
    fn the_state_must_be_the_requests() {
        let request = request(true);
        for query in [
            "code=c&iss=https://auth.example.com",
            "code=c&state=&iss=https://auth.example.com",
            "error=access_denied&state=x",
        ] {
            assert_eq!(judge(&request, query), Err(RedirectError::State), "{query}");
        }
    }

    /// I2: the four rows, for codes and for errors; on a mismatch nothing of the answer is told.
    #[test]
    fn the_issuer_is_judged_before_code_and_error() {
        let (missing, mismatch) = (
            Err(RedirectError::Issuer(ResponseIssuerError::Missing)),
            Err(RedirectError::Issuer(ResponseIssuerError::Mismatch)),
        );
        for promises in [true, false] {
            let request = request(promises);
            let state = state(&request);
            let said = |rest: &str| judge(&request, &format!("state={state}&{rest}"));
            assert_eq!(said("code=c&iss=https%3A%2F%2Fauth.example.com"), Ok("c".into()));
            for other in ["https://evil.example", "https://auth.example.com/", "https://AUTH.example.com", ""] {
                assert_eq!(said(&format!("code=c&iss={other}")), mismatch, "{other}");
                assert_eq!(said(&format!("error=x&error_description=hush&iss={other}")), mismatch, "{other}");
            }
            let (code, error) = (said("code=c"), said("error=access_denied"));
            if promises {
                assert_eq!((code, error), (missing.clone(), missing.clone()));
            } else {
                assert_eq!(code, Ok("c".into()));
                assert_eq!(error.unwrap_err().code(), "redirect.denied");
            }
        }
    }

    #[test]
    fn odd_answers_are_refused() {
        let request = request(false);
        let state = state(&request);
        assert_eq!(judge(&request, &format!("state={state}")), Err(RedirectError::NoCode));
        assert_eq!(judge(&request, &format!("state={state}&code=a&code=b")), Err(RedirectError::Repeated));
        for name in ["state", "iss", "error", "error_description", "error_uri"] {
            let twice = format!("code=a&{name}={state}&{name}={state}");
            assert_eq!(judge(&request, &twice), Err(RedirectError::Repeated), "{name}");
        }
        assert_eq!(judge(&request, &format!("state=x&state={state}&code=a")), Err(RedirectError::Repeated));
        // An error beside a code is an error.
        let both = judge(&request, &format!("state={state}&code=a&error=access_denied"));
        assert_eq!(both.unwrap_err().code(), "redirect.denied");
    }

    /// J2: neither state nor code shows in Debug, which tells the rest.
    #[test]
    fn debug_is_redacted() {
        let request = request(true);
        let shown = format!("{request:?}");
        assert!(!shown.contains(&state(&request)) && shown.contains(ISSUER), "{shown}");
        let answer = RedirectParameters::parse("code=hush&state=hush").unwrap();
        assert_eq!(format!("{answer:?}"), "RedirectParameters([redacted])");
    }
}

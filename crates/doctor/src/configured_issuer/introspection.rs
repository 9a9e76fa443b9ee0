//! The introspection endpoint of an issuer, and whether it accepts this server's client.

use http::StatusCode;
use portcullis_discovery::{Fetch, FetchRequest, FetchResponse};
use portcullis_metadata::{
    AccessToken, AuthorizationServerMetadata, EscapedText, IntrospectionResponse,
    authorization::OAuthError,
};
use portcullis_verifier::{
    IntrospectionAuthentication, IntrospectionSettings, introspection_request, rejects_client,
};

use super::{ConfiguredIssuer, Examination, FIREWALL_FIX, request};
use crate::{Finding, Rule, Step, describe_response, page::blocking_firewall};

const FOUND: Rule = Rule::new("introspection.found", "RFC 8414 section 2");
const CLIENT: Rule = Rule::new("introspection.client", "RFC 7662 section 2.1");
const RESPONSE: Rule = Rule::new("introspection.response", "RFC 7662 section 2.2");

/// A token that no issuer has issued, recognizable for its operators.
const TOKEN: &str = "portcullis-check-this-is-not-a-token";
/// The most characters of a peer's text that are shown.
const MAX_SHOWN: usize = 100;

impl Examination<'_> {
    /// Sends a made-up token to the endpoint.
    pub(super) async fn introspection(&mut self, metadata: Option<&AuthorizationServerMetadata>) {
        let ConfiguredIssuer {
            key,
            settings: issuer,
            ..
        } = self.issuer;
        let Some(settings) = issuer.validation.introspection() else {
            return;
        };
        if settings.endpoint.is_none() && metadata.is_none() {
            return;
        }
        let mut step = Step::new(format!("the introspection endpoint of {key}"));
        let discovered = metadata.and_then(|metadata| metadata.introspection_endpoint.as_ref());
        let Some(endpoint) = settings.endpoint.as_ref().or(discovered) else {
            let fix = format!(
                "set introspection_endpoint of {key}, or validate = \"jwt\" if the issuer has none"
            );
            step.findings.push(Finding::problem(
                FOUND,
                "the metadata has no introspection_endpoint",
                fix,
            ));
            return self.finish_step(step);
        };
        let method = settings.method(metadata);
        // As the server does.
        let policy = match &settings.endpoint {
            Some(_) => issuer.url_policy,
            None => {
                issuer
                    .url_policy
                    .of_named(issuer.issuer.url(), endpoint)
                    .await
            }
        };
        let token = AccessToken::new(TOKEN);
        let request =
            |method| introspection_request(endpoint.clone(), method, settings, &token, policy);
        let fetch = &**self.fetch;
        if let Some(response) = request::send(fetch, request(method), key, &mut step).await {
            let finding = match rejects_client(&response) && blocking_firewall(&response).is_none()
            {
                true => rejected(key, fetch, settings, request, method, &response).await,
                false => check(key, &response),
            };
            step.findings.push(finding);
        }
        self.finish_step(step);
    }
}

/// `request` returns the request of the server with a made-up token.
async fn rejected(
    key: &str,
    fetch: &dyn Fetch,
    settings: &IntrospectionSettings,
    request: impl Fn(IntrospectionAuthentication) -> FetchRequest,
    method: IntrospectionAuthentication,
    response: &FetchResponse,
) -> Finding {
    let reason = OAuthError::parse(&response.body)
        .map(|error| EscapedText::first(&error.error, MAX_SHOWN).to_string());
    let reason = reason
        .map(|reason| format!(", {reason}"))
        .unwrap_or_default();
    let client = EscapedText::first(&settings.client_id, MAX_SHOWN);
    let text = format!(
        "the endpoint rejects the client {client} ({}{reason})",
        response.status
    );
    if settings.client_secret.is_none() {
        return Finding::problem(
            CLIENT,
            text,
            format!("set client_secret of {key}: the endpoint needs a confidential client"),
        );
    }
    let (other, name) = match method {
        IntrospectionAuthentication::Basic => (IntrospectionAuthentication::Post, "post"),
        _ => (IntrospectionAuthentication::Basic, "basic"),
    };
    let mut attempt = Step::new("");
    let retried = request::send(fetch, request(other), key, &mut attempt).await;
    let fix = match retried {
        Some(response) if response.status == StatusCode::OK => {
            format!("write introspection_auth = \"{name}\" in {key}")
        }
        _ => format!(
            "correct client_id and client_secret of {key}, and let the issuer allow this client to introspect tokens (a confidential \
             client)"
        ),
    };
    Finding::problem(CLIENT, text, fix)
}

fn check(key: &str, response: &FetchResponse) -> Finding {
    if response.status != StatusCode::OK {
        let text = format!("the endpoint answers {}", describe_response(response));
        if blocking_firewall(response).is_some() {
            return Finding::problem(RESPONSE, text, FIREWALL_FIX);
        }
        return Finding::problem(
            RESPONSE,
            text,
            format!("correct introspection_endpoint of {key}, or see the issuer's log"),
        );
    }
    match IntrospectionResponse::parse(&response.body) {
        Ok(parsed) if parsed.active => Finding::problem(
            RESPONSE,
            "the endpoint says that a made-up token is active: it may accept every token",
            format!("correct introspection_endpoint of {key}: this one does not check tokens"),
        ),
        Ok(_) => Finding::met(CLIENT, "the endpoint accepts this server's client"),
        Err(error) => Finding::problem(
            RESPONSE,
            format!(
                "{}, which is not an introspection response: {error}",
                describe_response(response)
            ),
            format!("correct introspection_endpoint of {key}"),
        ),
    }
}

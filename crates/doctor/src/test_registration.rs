//! A registration of a client that is deleted at once (RFC 7591, RFC 7592).

use http::{HeaderValue, Method, StatusCode, header::AUTHORIZATION};
use portcullis_discovery::{ChainPolicy, FetchRequest, FetchResponse};
use portcullis_metadata::{
    AuthorizationServerMetadata, Issuer,
    client::{
        ClientMetadata, ClientRegistrationRequest, ClientRegistrationResponse, RegistrationError,
    },
};
use serde::Deserialize;
use url::Url;

use crate::{Finding, Rule, SettingNames, broker_remedy, text};

const RESPONSE: Rule = Rule {
    id: "registration.response",
    source: "RFC 7591 section 3.2",
};
const REDIRECT_URIS: Rule = Rule {
    id: "registration.redirect_uris",
    source: "RFC 7591 section 3.2.1",
};
const DELETED: Rule = Rule {
    id: "registration.deleted",
    source: "RFC 7592 section 2.3",
};

/// The redirect URI of a client on the user's machine (RFC 8252 section 7.3). Nothing listens
/// there.
const REDIRECT_URI: &str = "http://127.0.0.1:33419/callback";
/// The name by which an operator recognizes a client that could not be deleted.
const CLIENT_NAME: &str = "portcullis doctor (test)";

/// A registered client that can be deleted.
pub(crate) struct Deletion(FetchRequest);

/// The request of a native client that registers as MCP clients do. `None` if there is no endpoint
/// that clients may use.
pub(crate) fn request(
    server: &AuthorizationServerMetadata,
    policy: &ChainPolicy,
) -> Option<FetchRequest> {
    let endpoint = server.registration_endpoint.as_ref()?;
    let policy = policy.of(endpoint);
    policy.check(endpoint).ok()?;
    let listed = server
        .token_endpoint_auth_methods_supported
        .as_deref()
        .unwrap_or_default();
    let supported = ["none", "client_secret_post", "client_secret_basic"];
    let method = supported
        .into_iter()
        .find(|method| listed.iter().any(|listed| listed == method));
    let metadata = ClientMetadata {
        client_name: Some(CLIENT_NAME.into()),
        redirect_uris: vec![REDIRECT_URI.into()],
        grant_types: vec!["authorization_code".into(), "refresh_token".into()],
        response_types: vec!["code".into()],
        application_type: Some("native".into()),
        token_endpoint_auth_method: Some(method.unwrap_or("none").into()),
        ..ClientMetadata::default()
    };
    let body = ClientRegistrationRequest {
        metadata,
        software_statement: None,
    }
    .to_json();
    Some(FetchRequest::post_json(endpoint.clone(), body, policy))
}

/// Checks the response. Returns how the client is deleted, if it can be.
pub(crate) fn check(
    server: &AuthorizationServerMetadata,
    policy: &ChainPolicy,
    response: &FetchResponse,
    names: &SettingNames,
    findings: &mut Vec<Finding>,
) -> Option<Deletion> {
    if !response.status.is_success() {
        findings.push(rejection(&server.issuer, response, names));
        return None;
    }
    let Ok(registered) = ClientRegistrationResponse::parse(&response.body) else {
        let fix = "answer with 201 and a JSON object with `client_id`";
        findings.push(Finding::problem(
            RESPONSE,
            "the response is not a registration of a client",
            fix,
        ));
        return None;
    };
    findings.push(Finding::met(
        RESPONSE,
        "it registers a client that it does not know",
    ));
    findings.push(redirect_uris(&response.body));
    let deletion = deletion(server, policy, &registered);
    if deletion.is_none() {
        findings.push(left_behind(
            &registered.client_id,
            "the authorization server does not let clients delete themselves",
        ));
    }
    deletion
}

impl Deletion {
    /// The request that deletes the client.
    pub(crate) fn request(self) -> FetchRequest {
        self.0
    }
}

pub(crate) fn check_deletion(response: Option<&FetchResponse>) -> Finding {
    match response.map(|response| response.status) {
        Some(status) if status.is_success() => {
            Finding::met(DELETED, "the client of this test is deleted")
        }
        Some(status) => Finding::note(
            DELETED,
            format!("the client `{CLIENT_NAME}` is not deleted: {status}"),
        ),
        None => Finding::note(
            DELETED,
            format!("the client `{CLIENT_NAME}` is not deleted: there is no response"),
        ),
    }
}

/// The finding for a response without a success status.
fn rejection(issuer: &Issuer, response: &FetchResponse, names: &SettingNames) -> Finding {
    let status = response.status;
    let error = RegistrationError::parse(&response.body).ok();
    let requires_token = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if requires_token {
        return Finding::warning(
            RESPONSE,
            format!(
                "clients cannot register: the endpoint answers {status}, so it requires an initial access token"
            ),
            format!(
                "use a client that is registered beforehand (`{}`), support client ID metadata documents, permit \
                 registration without a token, or {}",
                names.client_id,
                broker_remedy::broker(issuer)
            ),
        );
    }
    if status == StatusCode::TOO_MANY_REQUESTS {
        return Finding::note(
            RESPONSE,
            "too many clients have registered for now: it cannot be tested",
        );
    }
    match error {
        Some(RegistrationError(error)) => {
            let fix = match error.error.as_str() {
                "invalid_redirect_uri" => {
                    "accept redirect URIs of clients on the user's machine (RFC 8252 section 7.3)"
                }
                _ => {
                    "accept native clients with the authorization code grant, or register clients for your users"
                }
            };
            let text = format!(
                "it rejects a client on the user's machine: {}",
                text::quoted(&error.to_string())
            );
            Finding::warning(RESPONSE, text, fix)
        }
        None if matches!(status.as_u16(), 404 | 405 | 410 | 501) => Finding::problem(
            RESPONSE,
            format!(
                "the registration endpoint answers {status}: the authorization server does not register clients"
            ),
            format!(
                "enable registration there, or correct or remove `registration_endpoint`, at which clients that register \
                 stop; if it cannot register clients, {}",
                broker_remedy::broker(issuer)
            ),
        ),
        None => Finding::problem(
            RESPONSE,
            format!("the registration endpoint answers {status}"),
            "correct `registration_endpoint`, or remove it from the metadata: clients that register stop here",
        ),
    }
}

/// Compares the registered redirect URIs with the requested one, as strings.
fn redirect_uris(body: &[u8]) -> Finding {
    #[derive(Deserialize)]
    struct Registered {
        redirect_uris: Option<Vec<String>>,
    }
    let uris =
        serde_json::from_slice::<Registered>(body).map(|registered| registered.redirect_uris);
    let fix = "register the redirect URIs that a client requests, unchanged, or reject the registration with \
               `invalid_redirect_uri`";
    match uris {
        Ok(Some(uris)) if uris.iter().any(|uri| uri == REDIRECT_URI) => {
            Finding::met(REDIRECT_URIS, "it registers the requested redirect URI")
        }
        Ok(Some(uris)) if uris.is_empty() => Finding::problem(
            REDIRECT_URIS,
            format!("it drops the redirect URI {REDIRECT_URI}"),
            fix,
        ),
        Ok(Some(uris)) => {
            let registered = text::list(uris.iter().map(String::as_str));
            Finding::problem(
                REDIRECT_URIS,
                format!("it replaces the redirect URI {REDIRECT_URI}: {registered}"),
                fix,
            )
        }
        Ok(None) => Finding::warning(
            REDIRECT_URIS,
            "the response does not list the redirect URIs",
            "return all registered metadata: some clients stop without `redirect_uris`",
        ),
        Err(_) => Finding::problem(
            REDIRECT_URIS,
            "`redirect_uris` is not a list of strings",
            fix,
        ),
    }
}

/// The request that deletes the client, at a URL of the registration endpoint's origin: it contains
/// the registration access token.
fn deletion(
    server: &AuthorizationServerMetadata,
    policy: &ChainPolicy,
    registered: &ClientRegistrationResponse,
) -> Option<Deletion> {
    let url = Url::parse(registered.registration_client_uri.as_deref()?).ok()?;
    if url.origin() != server.registration_endpoint.as_ref()?.origin() {
        return None;
    }
    let token = registered.registration_access_token.as_ref()?;
    let mut authorization = HeaderValue::from_str(&format!("Bearer {}", token.secret())).ok()?;
    authorization.set_sensitive(true);
    let policy = policy.of(&url);
    Some(Deletion(
        FetchRequest::new(Method::DELETE, url, policy).header(AUTHORIZATION, authorization),
    ))
}

/// The note about a client that remains.
fn left_behind(client_id: &str, reason: &str) -> Finding {
    let client_id = text::quoted(client_id);
    Finding::note(
        DELETED,
        format!("{reason}: the client `{CLIENT_NAME}` ({client_id}) remains"),
    )
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use portcullis_discovery::UrlPolicy;
    use serde_json::{Value, json};

    use super::*;
    use crate::Verdict::{self, Met, Note, Problem, Warning};

    const ENDPOINT: &str = "https://auth.example.com/register";

    fn server() -> AuthorizationServerMetadata {
        let mut server =
            AuthorizationServerMetadata::new(Issuer::parse("https://auth.example.com").unwrap());
        server.registration_endpoint = Some(ENDPOINT.parse().unwrap());
        server
    }

    fn checked(status: u16, body: &Value) -> (Vec<(&'static str, Verdict)>, Option<FetchRequest>) {
        let status = StatusCode::from_u16(status).unwrap();
        let response = FetchResponse {
            status,
            headers: HeaderMap::new(),
            body: body.to_string().into(),
            sent: Default::default(),
        };
        let mut findings = Vec::new();
        let deletion = check(
            &server(),
            &UrlPolicy::StartOrigin.into(),
            &response,
            &SettingNames::default(),
            &mut findings,
        );
        let found = findings
            .iter()
            .map(|finding| (finding.rule.id, finding.verdict))
            .collect();
        (found, deletion.map(Deletion::request))
    }

    #[test]
    fn every_response_has_a_finding() {
        let error = |code: &str| json!({ "error": code });
        for (status, body, verdict) in [
            (401, error("invalid_token"), Warning),
            (401, json!("no"), Warning),
            (403, json!({}), Warning),
            (429, json!({}), Note),
            (400, error("invalid_redirect_uri"), Warning),
            (400, error("invalid_client_metadata"), Warning),
            (400, json!({}), Problem),
            (404, json!({}), Problem),
            (302, json!({}), Problem),
            (500, json!({}), Problem),
            (201, json!([]), Problem),
            (200, json!({ "redirect_uris": [REDIRECT_URI] }), Problem),
        ] {
            let (found, deletion) = checked(status, &body);
            assert_eq!(found, [(RESPONSE.id, verdict)], "{status} {body}");
            assert!(deletion.is_none());
        }
    }

    #[test]
    fn redirect_uris_are_compared() {
        for (uris, verdict) in [
            (json!([REDIRECT_URI]), Met),
            (json!(["https://app.example/callback", REDIRECT_URI]), Met),
            (json!([]), Problem),
            (json!(["http://127.0.0.1/callback"]), Problem),
            (json!(["http://localhost:33419/callback"]), Problem),
            (json!([format!("{REDIRECT_URI}/")]), Problem),
            (json!(null), Warning),
        ] {
            let (found, _) = checked(201, &json!({ "client_id": "c", "redirect_uris": uris }));
            assert_eq!(
                found,
                [
                    (RESPONSE.id, Met),
                    (REDIRECT_URIS.id, verdict),
                    (DELETED.id, Note)
                ],
                "{uris}"
            );
        }
    }

    /// I6: the registration access token is sent to the origin of the registration endpoint only.
    #[test]
    fn a_client_is_deleted_at_its_server() {
        let registered = |url: &str| {
            let body = json!({
                "client_id": "c", "redirect_uris": [REDIRECT_URI], "registration_client_uri": url,
                "registration_access_token": "hush",
            });
            checked(201, &body)
        };
        let (found, deletion) = registered("https://auth.example.com/register/c");
        assert_eq!(found, [(RESPONSE.id, Met), (REDIRECT_URIS.id, Met)]);
        let deletion = deletion.unwrap();
        assert_eq!(
            (deletion.method, deletion.url.path()),
            (Method::DELETE, "/register/c")
        );
        assert_eq!(deletion.headers[AUTHORIZATION], "Bearer hush");
        for foreign in [
            "https://evil.example/register/c",
            "http://auth.example.com/register/c",
            "register/c",
        ] {
            let (found, deletion) = registered(foreign);
            assert_eq!(found.last(), Some(&(DELETED.id, Note)), "{foreign}");
            assert!(deletion.is_none(), "{foreign}");
        }
    }

    #[test]
    fn an_endpoint_that_clients_must_not_use_is_not_requested() {
        let mut server = server();
        let peer = ChainPolicy::from(UrlPolicy::Peer {
            loopback_http: false,
            private_addresses: false,
        });
        assert!(request(&server, &peer).is_some());
        for endpoint in [
            None,
            Some("http://auth.example.com/register"),
            Some("https://10.0.0.1/register"),
        ] {
            server.registration_endpoint = endpoint.map(|url| url.parse().unwrap());
            assert!(request(&server, &peer).is_none(), "{endpoint:?}");
        }
    }
}

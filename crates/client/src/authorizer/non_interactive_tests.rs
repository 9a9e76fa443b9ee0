//! Grants without a user: client credentials, ID tokens and workloads, with and without DPoP.

use std::sync::atomic::{AtomicU32, Ordering};

use http::{HeaderValue, Method, StatusCode, header};
use portcullis_discovery::UrlPolicy;
use portcullis_metadata::Secret;
use serde_json::{Value, json};
use url::Url;

use super::*;
use crate::{
    AssertionError, AssertionSource, ClientAuthentication, ClientInformation, ClientKey, EnterpriseIdentity,
    registration::client_key::tests::PEM,
    testing::{FetchFn, METADATA_URL, RESOURCE, Reply, ScriptedUser, TOKEN_URL, clock, form, metadata, well_behaved},
    token::dpop,
};

const PROVIDER: &str = "https://idp.example.com/token";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

fn settings(authentication: ClientAuthentication) -> AuthorizerSettings {
    let client = Some(ClientInformation { client_id: "machine".into(), authentication });
    AuthorizerSettings { client, ..AuthorizerSettings::default() }
}

async fn run(
    network: &Arc<FetchFn>,
    grant: NonInteractiveGrant,
    settings: AuthorizerSettings,
) -> Result<ResourceToken, ClientError> {
    let start = StartUrl::parse(RESOURCE).unwrap();
    Authorizer::non_interactive(network.clone(), grant, clock(), settings).authorize(&start).await
}

/// A server without an authorization endpoint.
fn token_endpoint_only() -> Arc<FetchFn> {
    FetchFn::new(|request| match request.url.as_str() {
        METADATA_URL => {
            let mut document = metadata();
            let members = document.as_object_mut().unwrap();
            for member in ["authorization_endpoint", "response_types_supported", "code_challenge_methods_supported"] {
                members.remove(member);
            }
            Some(Reply::json(200, document))
        }
        PROVIDER => Some(Reply::json(
            200,
            json!({
                "access_token": "the-jag", "token_type": "N_A",
                "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
            }),
        )),
        _ => well_behaved(request),
    })
}

/// I8: client credentials with a secret or a key, for the resource and its scopes; nothing is registered.
#[tokio::test]
async fn a_client_uses_its_own_credentials() {
    let key = ClientKey::from_pem("ES256", PEM, Some("k")).unwrap();
    for authentication in [ClientAuthentication::Secret(Secret::new("quiet")), ClientAuthentication::PrivateKey(key)] {
        let network = token_endpoint_only();
        let token =
            run(&network, NonInteractiveGrant::ClientCredentials, settings(authentication.clone())).await.unwrap();
        assert_eq!(token.client_id(), Some("machine"));
        assert_eq!(token.access_token().secret(), "hush");
        let sent = network.to(TOKEN_URL).remove(0);
        let fields = form(&sent);
        assert_eq!(fields["grant_type"].as_str(), "client_credentials");
        assert_eq!(fields["resource"].as_str(), RESOURCE);
        assert_eq!(fields["scope"], "mcp:tools");
        assert_eq!(sent.headers.contains_key(header::AUTHORIZATION), !fields.contains_key("client_assertion"));
        assert_eq!(
            fields.contains_key("client_assertion"),
            authentication != ClientAuthentication::Secret(Secret::new("quiet"))
        );
    }
    let none = run(&token_endpoint_only(), NonInteractiveGrant::ClientCredentials, AuthorizerSettings::default()).await;
    assert_eq!(none.unwrap_err().code(), "client.no_registration");
}

fn enterprise() -> NonInteractiveGrant {
    NonInteractiveGrant::EnterpriseManaged(EnterpriseIdentity {
        token_endpoint: Url::parse(PROVIDER).unwrap(),
        issuer: Issuer::parse("https://idp.example.com").unwrap(),
        client: ClientInformation { client_id: "at-idp".into(), authentication: ClientAuthentication::None },
        id_token: Arc::new(Secret::new("the-id-token")),
    })
}

/// I8: the identity provider exchanges the ID token for an assertion to this server and this resource, and the server
/// exchanges the assertion for the token.
#[tokio::test]
async fn an_id_token_is_exchanged() {
    let network = token_endpoint_only();
    run(&network, enterprise(), settings(ClientAuthentication::Secret(Secret::new("quiet")))).await.unwrap();
    let exchange = form(&network.to(PROVIDER)[0]);
    for (name, value) in [
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("requested_token_type", "urn:ietf:params:oauth:token-type:id-jag"),
        ("audience", "https://auth.example.com"),
        ("resource", RESOURCE),
        ("subject_token", "the-id-token"),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
        ("client_id", "at-idp"),
        ("scope", "mcp:tools"),
    ] {
        assert_eq!(exchange[name], value, "{name}");
    }
    assert_eq!(network.to(PROVIDER)[0].policy, UrlPolicy::Operator);

    let sent = form(&network.to(TOKEN_URL)[0]);
    assert_eq!(sent["grant_type"].as_str(), JWT_BEARER);
    assert_eq!(sent["assertion"].as_str(), "the-jag");
}

/// I8: a token that is not an assertion is not presented.
#[tokio::test]
async fn another_token_type_is_not_presented() {
    for response in [
        json!({ "access_token": "a", "token_type": "N_A" }),
        json!({ "access_token": "a", "token_type": "Bearer", "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag" }),
        json!({ "access_token": "a", "token_type": "N_A", "issued_token_type": "urn:ietf:params:oauth:token-type:access_token" }),
    ] {
        let network = FetchFn::new(move |request| match request.url.as_str() {
            PROVIDER => Some(Reply::json(200, response.clone())),
            _ => well_behaved(request),
        });
        let error = run(&network, enterprise(), settings(ClientAuthentication::None)).await.unwrap_err();
        assert_eq!(error.code(), "assertion.other_kind");
        assert!(network.to(TOKEN_URL).is_empty());
    }
}

/// A source with an assertion for each audience, or without.
struct Source(bool);

impl AssertionSource for Source {
    fn assertion<'a>(
        &'a self,
        audience: &'a Issuer,
    ) -> portcullis_discovery::BoxFuture<'a, Result<Secret, AssertionError>> {
        Box::pin(async move {
            if self.0 { Ok(Secret::new(format!("for {audience}"))) } else { Err(AssertionError::Unavailable) }
        })
    }
}

/// I8: a workload presents its platform's assertion once; a rejection is final.
#[tokio::test]
async fn a_workload_sends_one_request() {
    let network = token_endpoint_only();
    let grant = |has| NonInteractiveGrant::JwtBearer(Arc::new(Source(has)));
    run(&network, grant(true), settings(ClientAuthentication::None)).await.unwrap();
    let sent = form(&network.to(TOKEN_URL)[0]);
    assert_eq!(sent["grant_type"].as_str(), JWT_BEARER);
    assert_eq!(sent["assertion"].as_str(), "for https://auth.example.com");
    assert_eq!(sent["client_id"], "machine");

    // No client is needed.
    run(&network, grant(true), AuthorizerSettings::default()).await.unwrap();
    assert!(!form(&network.to(TOKEN_URL)[1]).contains_key("client_id"));

    for rejection in ["invalid_grant", "invalid_scope", "unauthorized_client", "invalid_client"] {
        let network = FetchFn::new(move |request| match request.url.as_str() {
            TOKEN_URL => Some(Reply::json(400, json!({ "error": rejection }))),
            _ => well_behaved(request),
        });
        let error = run(&network, grant(true), settings(ClientAuthentication::None)).await.unwrap_err();
        assert_eq!(error.code(), "client.token");
        assert_eq!(network.to(TOKEN_URL).len(), 1);
    }
    let unavailable = run(&network, grant(false), settings(ClientAuthentication::None)).await.unwrap_err();
    assert_eq!(unavailable.code(), "assertion.unavailable");
}

/// H3: a client without an issuer is used at the first server only.
#[tokio::test]
async fn a_client_is_bound_to_the_first_server() {
    let authorizer = Authorizer::non_interactive(
        token_endpoint_only(),
        NonInteractiveGrant::ClientCredentials,
        clock(),
        settings(ClientAuthentication::Secret(Secret::new("quiet"))),
    );
    let first = Issuer::parse("https://a.example").unwrap();
    let other = Issuer::parse("https://b.example").unwrap();
    assert_eq!(authorizer.configured_client(&first).unwrap().unwrap().issuer, first);
    assert_eq!(authorizer.configured_client(&other).unwrap_err().code(), "client.server_not_listed");
    assert!(authorizer.configured_client(&first).unwrap().is_some());
}

fn bound(token: &str, nonce: Option<&'static str>, tries: Arc<AtomicU32>) -> Arc<FetchFn> {
    let token = token.to_owned();
    FetchFn::new(move |request| match request.url.as_str() {
        RESOURCE if !request.headers.contains_key(header::AUTHORIZATION) => {
            let challenge = format!(r#"DPoP algs="ES256", resource_metadata="{}""#, crate::testing::PRM_URL);
            Some(Reply::status(401).header(header::WWW_AUTHENTICATE, &challenge))
        }
        METADATA_URL => {
            let mut document = metadata();
            document["dpop_signing_alg_values_supported"] = json!(["RS256", "ES256"]);
            Some(Reply::json(200, document))
        }
        TOKEN_URL => {
            tries.fetch_add(1, Ordering::Relaxed);
            let claims = dpop::tests::claims(&request.headers[dpop::PROOF]);
            if claims.get("nonce").and_then(Value::as_str) != nonce {
                let reply = Reply::json(400, r#"{"error":"use_dpop_nonce"}"#);
                return Some(reply.header("dpop-nonce".parse().unwrap(), nonce.unwrap()));
            }
            Some(Reply::json(200, json!({ "access_token": "hush", "token_type": token })))
        }
        _ => well_behaved(request),
    })
}

async fn run_bound(network: &Arc<FetchFn>) -> Result<ResourceToken, ClientError> {
    let start = StartUrl::parse(RESOURCE).unwrap();
    let settings = AuthorizerSettings::default();
    Authorizer::new(network.clone(), ScriptedUser::consents(), clock(), settings).authorize(&start).await
}

/// I8: a resource that requires DPoP gets a bound token, with the nonce that the token endpoint requires; the token is
/// sent with a proof.
#[tokio::test]
async fn a_token_is_bound_if_the_resource_requires_it() {
    for (nonce, requests) in [(None, 1), (Some("n1"), 2)] {
        let tries = Arc::new(AtomicU32::new(0));
        let network = bound("DPoP", nonce, tries.clone());
        let token = run_bound(&network).await.unwrap();
        assert!(token.is_dpop_bound());
        assert_eq!(tries.load(Ordering::Relaxed), requests);
        let sent = network.to(TOKEN_URL);
        let claims: Vec<_> = sent.iter().map(|request| dpop::tests::claims(&request.headers[dpop::PROOF])).collect();
        assert!(
            claims
                .iter()
                .all(|claims| claims["htu"] == TOKEN_URL && claims["htm"] == "POST" && claims.get("ath").is_none())
        );
        assert!(claims.len() == 1 || claims[0]["jti"] != claims[1]["jti"]);

        let mut headers = http::HeaderMap::new();
        let url = Url::parse(RESOURCE).unwrap();
        token.authorize(&Method::POST, &url, clock().now(), &mut headers).unwrap();
        assert_eq!(headers[header::AUTHORIZATION], "DPoP hush");
        let proof = dpop::tests::claims(&headers[dpop::PROOF]);
        assert_eq!(proof["htu"], json!(RESOURCE));
        assert_eq!(proof["htm"], "POST");
        assert!(proof["ath"].is_string());
        let elsewhere = Url::parse("https://evil.example/").unwrap();
        token.authorize(&Method::POST, &elsewhere, clock().now(), &mut headers).unwrap();
        assert!(headers.is_empty());
    }
}

/// I8: a token that is not bound as requested is rejected; so is a server without DPoP. A nonce is sent once.
#[tokio::test]
async fn an_unbound_token_is_rejected() {
    let tries = Arc::new(AtomicU32::new(0));
    assert_eq!(run_bound(&bound("Bearer", None, tries.clone())).await.unwrap_err().code(), "client.token_type");
    let network = FetchFn::new(|request| match request.url.as_str() {
        RESOURCE => Some(Reply::status(401).header(header::WWW_AUTHENTICATE, "DPoP algs=\"ES256\"")),
        _ => well_behaved(request),
    });
    assert_eq!(run_bound(&network).await.unwrap_err().code(), "client.no_binding");

    let network = FetchFn::new(move |request| match request.url.as_str() {
        TOKEN_URL => {
            let number = tries.fetch_add(1, Ordering::Relaxed);
            let reply = Reply::json(400, r#"{"error":"use_dpop_nonce"}"#);
            Some(reply.header("dpop-nonce".parse().unwrap(), &format!("n{number}")))
        }
        METADATA_URL => {
            let mut document = metadata();
            document["dpop_signing_alg_values_supported"] = json!(["ES256"]);
            Some(Reply::json(200, document))
        }
        RESOURCE => Some(Reply::status(401).header(header::WWW_AUTHENTICATE, "DPoP algs=\"ES256\"")),
        _ => well_behaved(request),
    });
    assert_eq!(run_bound(&network).await.unwrap_err().code(), "client.token");
    assert_eq!(network.to(TOKEN_URL).len(), 2);
}

/// I8: a proof is sent again only with a new nonce that the server requires; otherwise the token is renewed.
#[tokio::test]
async fn a_nonce_is_sent_only_if_required() {
    for (known, error, nonce, tokens) in [
        ("before", "use_dpop_nonce", "next", 1),
        ("before", "invalid_token", "next", 2),
        ("before", "use_dpop_nonce", "before", 2),
    ] {
        let tries = Arc::new(AtomicU32::new(0));
        let network = bound("DPoP", None, tries.clone());
        let authorizer = Authorizer::new(network, ScriptedUser::consents(), clock(), AuthorizerSettings::default());
        let token_manager =
            Arc::new(crate::TokenManager::new(StartUrl::parse(RESOURCE).unwrap(), Arc::new(authorizer)));
        token_manager.sign_in().await.unwrap();
        let mut authorization = token_manager.request_authorization();
        let mut headers = http::HeaderMap::new();
        authorization.authorize(&Method::POST, &Url::parse(RESOURCE).unwrap(), &mut headers).await.unwrap();
        let with_nonce =
            |nonce| http::HeaderMap::from_iter([("dpop-nonce".parse().unwrap(), HeaderValue::from_static(nonce))]);
        assert!(!authorization.should_retry(StatusCode::OK, &with_nonce(known)).await.unwrap());
        let mut rejection = with_nonce(nonce);
        let challenge = format!(r#"DPoP error="{error}""#);
        rejection.insert(header::WWW_AUTHENTICATE, HeaderValue::from_str(&challenge).unwrap());
        assert!(authorization.should_retry(StatusCode::UNAUTHORIZED, &rejection).await.unwrap());
        assert_eq!(tries.load(Ordering::Relaxed), tokens, "{error} {nonce}");
    }
}

/// I8: a resource that requires a nonce in the proof gets it, once.
#[tokio::test]
async fn a_nonce_of_the_resource_is_sent_once() {
    let network = bound("DPoP", None, Arc::new(AtomicU32::new(0)));
    let settings = AuthorizerSettings::default();
    let authorizer = Authorizer::new(network, ScriptedUser::consents(), clock(), settings);
    let token_manager = Arc::new(crate::TokenManager::new(StartUrl::parse(RESOURCE).unwrap(), Arc::new(authorizer)));
    token_manager.sign_in().await.unwrap();
    let url = Url::parse(RESOURCE).unwrap();
    let mut authorization = token_manager.request_authorization();
    let mut headers = http::HeaderMap::new();
    authorization.authorize(&Method::POST, &url, &mut headers).await.unwrap();
    let claims = dpop::tests::claims(&headers[dpop::PROOF]);
    assert_eq!(claims.get("nonce"), None);
    assert_eq!(claims["iat"], json!(1_000));

    let mut rejection = http::HeaderMap::new();
    rejection.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(r#"DPoP error="use_dpop_nonce""#));
    rejection.insert("dpop-nonce", HeaderValue::from_static("rs-1"));
    assert!(authorization.should_retry(StatusCode::UNAUTHORIZED, &rejection).await.unwrap());

    authorization.authorize(&Method::POST, &url, &mut headers).await.unwrap();
    assert_eq!(dpop::tests::claims(&headers[dpop::PROOF])["nonce"], "rs-1");

    // The nonce of a response is used for later proofs.
    let next = http::HeaderMap::from_iter([("dpop-nonce".parse().unwrap(), HeaderValue::from_static("rs-2"))]);
    assert!(!authorization.should_retry(StatusCode::OK, &next).await.unwrap());
    token_manager.request_authorization().authorize(&Method::GET, &url, &mut headers).await.unwrap();
    assert_eq!(dpop::tests::claims(&headers[dpop::PROOF])["nonce"], "rs-2");
}

//! Tokens that are bound by DPoP (RFC 9449), and the nonces of the token endpoint and the resource.

use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::*;
use crate::{TokenManager, token::dpop};

const BEARER: &str = "Bearer";
const DPOP: &str = r#"DPoP algs="ES256""#;
const BOTH: &str = r#"Bearer realm="a", DPoP algs="ES256""#;

/// A resource that requires DPoP, and a server that supports it and responds to token requests.
fn requiring_dpop(token: impl Fn(&FetchRequest) -> Reply + Send + Sync + 'static) -> Arc<FetchFn> {
    network_with(move |request| match request.url.as_str() {
        RESOURCE => Some(Reply::status(401).header(header::WWW_AUTHENTICATE, DPOP)),
        METADATA_URL => Some(metadata_with_dpop()),
        TOKEN_URL => Some(token(request)),
        _ => None,
    })
}

fn metadata_with_dpop() -> Reply {
    let mut document = metadata();
    document["dpop_signing_alg_values_supported"] = json!(["RS256", "ES256"]);
    Reply::json(200, document)
}

fn token_of_type(token_type: &str) -> Reply {
    Reply::json(
        200,
        json!({ "access_token": "hush", "token_type": token_type }),
    )
}

fn with_nonce(reply: Reply, nonce: &str) -> Reply {
    reply.header("dpop-nonce".parse().unwrap(), nonce)
}

/// The header with a nonce of the resource.
fn nonce_header(nonce: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(
        "dpop-nonce".parse().unwrap(),
        HeaderValue::from_static(nonce),
    )])
}

/// The headers of a 401 with this error and nonce.
fn rejection(error: &str, nonce: &'static str) -> HeaderMap {
    let mut headers = nonce_header(nonce);
    let challenge = format!(r#"DPoP error="{error}""#);
    headers.insert(
        header::WWW_AUTHENTICATE,
        HeaderValue::from_str(&challenge).unwrap(),
    );
    headers
}

/// A token manager for a resource that requires DPoP, after the sign-in; and its network.
async fn signed_in() -> (Arc<TokenManager>, Arc<FetchFn>) {
    let network = requiring_dpop(|_| token_of_type("DPoP"));
    let authorizer = authorizer(
        &network,
        &ScriptedUser::consents(),
        AuthorizerSettings::default(),
    );
    let token_manager = TokenManager::new(StartUrl::parse(RESOURCE).unwrap(), Arc::new(authorizer));
    token_manager.sign_in().await.unwrap();
    (Arc::new(token_manager), network)
}

/// I8: a token is bound if the resource accepts or requires bound tokens and the server issues
/// them; if the resource requires them and the server does not issue them, there is no token.
#[tokio::test]
async fn a_token_is_bound_if_both_sides_support_it() {
    struct Case {
        challenge: &'static str,
        /// Whether the metadata of the resource requires bound tokens.
        required: bool,
        /// Whether the server issues them.
        issued: bool,
        is_bound: Result<bool, &'static str>,
    }
    for Case {
        challenge,
        required,
        issued,
        is_bound,
    } in [
        Case {
            challenge: BEARER,
            required: false,
            issued: true,
            is_bound: Ok(false),
        },
        Case {
            challenge: BEARER,
            required: true,
            issued: true,
            is_bound: Ok(true),
        },
        Case {
            challenge: BEARER,
            required: true,
            issued: false,
            is_bound: Err("client.no_binding"),
        },
        Case {
            challenge: BOTH,
            required: false,
            issued: true,
            is_bound: Ok(true),
        },
        Case {
            challenge: BOTH,
            required: false,
            issued: false,
            is_bound: Ok(false),
        },
        Case {
            challenge: BOTH,
            required: true,
            issued: false,
            is_bound: Err("client.no_binding"),
        },
        Case {
            challenge: DPOP,
            required: false,
            issued: true,
            is_bound: Ok(true),
        },
        Case {
            challenge: DPOP,
            required: false,
            issued: false,
            is_bound: Err("client.no_binding"),
        },
    ] {
        let network = network_with(move |request| match request.url.as_str() {
            RESOURCE => Some(Reply::status(401).header(header::WWW_AUTHENTICATE, challenge)),
            PRM_URL => {
                let mut document = prm(RESOURCE);
                document["dpop_bound_access_tokens_required"] = required.into();
                Some(Reply::json(200, document))
            }
            METADATA_URL => issued.then(metadata_with_dpop),
            TOKEN_URL => Some(token_of_type(
                if request.headers.contains_key(dpop::PROOF) {
                    "DPoP"
                } else {
                    "Bearer"
                },
            )),
            _ => None,
        });
        let result = run(&network, &ScriptedUser::consents()).await;
        let result = result
            .map(|token| token.is_dpop_bound())
            .map_err(|error| error.code());
        assert_eq!(result, is_bound, "{challenge} {required} {issued}");
    }
}

/// I8: the token request has a proof, with the nonce that the token endpoint requires; requests
/// with the token have one for the token.
#[tokio::test]
async fn requests_have_a_proof() {
    for (nonce, requests) in [(None, 1), (Some("n1"), 2)] {
        let network = requiring_dpop(move |request| {
            let claims = dpop::tests::claims(&request.headers[dpop::PROOF]);
            if claims.get("nonce").and_then(Value::as_str) == nonce {
                return token_of_type("DPoP");
            }
            with_nonce(
                Reply::json(400, r#"{"error":"use_dpop_nonce"}"#),
                nonce.unwrap(),
            )
        });
        let token = run(&network, &ScriptedUser::consents()).await.unwrap();
        assert!(token.is_dpop_bound());

        let sent = network.to(TOKEN_URL);
        assert_eq!(sent.len(), requests);
        let proofs: Vec<_> = sent
            .iter()
            .map(|request| dpop::tests::claims(&request.headers[dpop::PROOF]))
            .collect();
        for proof in &proofs {
            assert_eq!(proof["htu"], TOKEN_URL);
            assert_eq!(proof["htm"], "POST");
            assert!(proof.get("ath").is_none());
        }
        assert!(proofs.len() == 1 || proofs[0]["jti"] != proofs[1]["jti"]);

        let mut headers = HeaderMap::new();
        let url = Url::parse(RESOURCE).unwrap();
        token
            .authorize(&Method::POST, &url, clock().now(), &mut headers)
            .unwrap();
        assert_eq!(headers[header::AUTHORIZATION], "DPoP hush");
        let proof = dpop::tests::claims(&headers[dpop::PROOF]);
        assert_eq!(proof["htu"], RESOURCE);
        assert_eq!(proof["htm"], "POST");
        assert!(proof["ath"].is_string());

        let elsewhere = Url::parse("https://evil.example/").unwrap();
        token
            .authorize(&Method::POST, &elsewhere, clock().now(), &mut headers)
            .unwrap();
        assert!(headers.is_empty());
    }
}

/// I8: a token that is not bound as requested is rejected.
#[tokio::test]
async fn an_unbound_token_is_rejected() {
    let network = requiring_dpop(|_| token_of_type("Bearer"));
    assert_eq!(
        run(&network, &ScriptedUser::consents())
            .await
            .unwrap_err()
            .code(),
        "client.token_type"
    );
}

/// I8: the token request is repeated once if the server requires and sends a nonce, and not
/// otherwise.
#[tokio::test]
async fn the_token_request_is_repeated_only_for_a_nonce() {
    struct Case {
        status: u16,
        error: &'static str,
        nonce: &'static str,
        requests: usize,
    }
    for Case {
        status,
        error,
        nonce,
        requests,
    } in [
        Case {
            status: 400,
            error: "use_dpop_nonce",
            nonce: "n",
            requests: 2,
        },
        Case {
            status: 400,
            error: "use_dpop_nonce",
            nonce: "",
            requests: 1,
        },
        Case {
            status: 400,
            error: "invalid_grant",
            nonce: "n",
            requests: 1,
        },
        Case {
            status: 200,
            error: "use_dpop_nonce",
            nonce: "n",
            requests: 1,
        },
    ] {
        let network = requiring_dpop(move |_| {
            with_nonce(Reply::json(status, json!({ "error": error })), nonce)
        });
        assert!(run(&network, &ScriptedUser::consents()).await.is_err());
        assert_eq!(
            network.to(TOKEN_URL).len(),
            requests,
            "{status} {error} {nonce}"
        );
    }

    // A server that requires another nonce each time gets no third request.
    let network = requiring_dpop(|request| {
        let jti = dpop::tests::claims(&request.headers[dpop::PROOF])["jti"]
            .as_str()
            .unwrap()
            .to_owned();
        with_nonce(Reply::json(400, r#"{"error":"use_dpop_nonce"}"#), &jti)
    });
    assert_eq!(
        run(&network, &ScriptedUser::consents())
            .await
            .unwrap_err()
            .code(),
        "client.token"
    );
    assert_eq!(network.to(TOKEN_URL).len(), 2);
}

/// I8: a request to the resource is repeated with the same token only for a new nonce that the
/// resource requires. Otherwise the token is renewed.
#[tokio::test]
async fn a_token_is_renewed_unless_a_new_nonce_is_required() {
    for (error, nonce, tokens) in [
        ("use_dpop_nonce", "next", 1),
        ("invalid_token", "next", 2),
        ("use_dpop_nonce", "known", 2),
    ] {
        let (token_manager, network) = signed_in().await;
        let mut authorization = token_manager.request_authorization();
        let mut headers = HeaderMap::new();
        authorization
            .authorize(&Method::POST, &Url::parse(RESOURCE).unwrap(), &mut headers)
            .await
            .unwrap();
        assert!(
            !authorization
                .should_retry(StatusCode::OK, &nonce_header("known"))
                .await
                .unwrap()
        );
        assert!(
            authorization
                .should_retry(StatusCode::UNAUTHORIZED, &rejection(error, nonce))
                .await
                .unwrap()
        );
        assert_eq!(network.to(TOKEN_URL).len(), tokens, "{error} {nonce}");
    }
}

/// I8: a proof contains the latest nonce of the resource.
#[tokio::test]
async fn a_proof_has_the_latest_nonce_of_the_resource() {
    let (token_manager, _) = signed_in().await;
    let url = Url::parse(RESOURCE).unwrap();
    let mut authorization = token_manager.request_authorization();
    let mut headers = HeaderMap::new();
    authorization
        .authorize(&Method::POST, &url, &mut headers)
        .await
        .unwrap();
    let claims = dpop::tests::claims(&headers[dpop::PROOF]);
    assert_eq!(claims.get("nonce"), None);
    assert_eq!(claims["iat"], json!(1_000));

    let required = rejection("use_dpop_nonce", "rs-1");
    assert!(
        authorization
            .should_retry(StatusCode::UNAUTHORIZED, &required)
            .await
            .unwrap()
    );
    authorization
        .authorize(&Method::POST, &url, &mut headers)
        .await
        .unwrap();
    assert_eq!(dpop::tests::claims(&headers[dpop::PROOF])["nonce"], "rs-1");

    // The nonce of a successful response is used for later proofs.
    assert!(
        !authorization
            .should_retry(StatusCode::OK, &nonce_header("rs-2"))
            .await
            .unwrap()
    );
    token_manager
        .request_authorization()
        .authorize(&Method::GET, &url, &mut headers)
        .await
        .unwrap();
    assert_eq!(dpop::tests::claims(&headers[dpop::PROOF])["nonce"], "rs-2");
}

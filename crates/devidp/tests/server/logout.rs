//! Back-channel logout (OpenID Connect Back-Channel Logout 1.0).

use std::convert::Infallible;

use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use portcullis_devidp::{Fault, FaultKind, FaultPoint, LogoutError, TokenFault};
use portcullis_jose::{Algorithm, AlgorithmSet, CompactJws, KeySet};
use portcullis_metadata::JwkSet;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc};

use crate::{sign_in::*, support::*};

/// An application that receives logout tokens.
struct Receiver {
    uri: String,
    tokens: mpsc::UnboundedReceiver<String>,
}

impl Receiver {
    /// Starts an application that answers each logout token with this status. It stops with the
    /// runtime of the test.
    async fn start(status: StatusCode) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}/logout", listener.local_addr().unwrap());
        let (sender, tokens) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let sender = sender.clone();
                let service = service_fn(move |request: Request<Incoming>| {
                    let sender = sender.clone();
                    async move {
                        assert_eq!(request.method(), Method::POST);
                        assert_eq!(request.uri().path(), "/logout");
                        let body = request.into_body().collect().await.unwrap().to_bytes();
                        let mut pairs = url::form_urlencoded::parse(&body);
                        let (name, token) = pairs.next().unwrap();
                        assert_eq!(name, "logout_token");
                        sender.send(token.into_owned()).unwrap();
                        let mut response = http::Response::new(Full::new(bytes::Bytes::new()));
                        *response.status_mut() = status;
                        Ok::<_, Infallible>(response)
                    }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { uri, tokens }
    }
}

async fn server(receiver: &Receiver) -> Server {
    app_server(|settings| {
        settings.clients[0].backchannel_logout_uri = Some(receiver.uri.clone());
        settings.admin = true;
    })
    .await
}

async fn log_out(server: &Server, user: &str) -> StatusCode {
    let body = json!({ "user": user }).to_string();
    let response = server
        .send(Method::POST, "/admin/logout", &[JSON], &body)
        .await;
    response.status
}

/// Verifies a logout token with the published keys, and returns its claims.
async fn verified(server: &Server, token: &str) -> Value {
    let jwks = JwkSet::parse(server.get("/jwks").await.body.as_bytes()).unwrap();
    let algorithms = AlgorithmSet::from_iter([Algorithm::Rs256]);
    let (keys, _) = KeySet::from_jwks(&jwks, algorithms).unwrap();
    let compact = CompactJws::parse(token, 16 * 1024).unwrap();
    assert_eq!(compact.header().typ(), Some("logout+jwt"));
    serde_json::from_slice(keys.verify(&compact).unwrap().bytes()).unwrap()
}

/// The client gets a logout token for the session of the ID token, and the session ends.
#[tokio::test]
async fn a_logout_token_names_the_session() {
    let mut receiver = Receiver::start(StatusCode::OK).await;
    let server = server(&receiver).await;
    let scope = ("scope", "openid offline_access");
    let response = sign_in(&server, &[scope]).await;
    let signed_in = id_token(&server, &response).await;
    let other = sign_in(&server, &[scope, ("login_hint", "bob")]).await;

    assert_eq!(log_out(&server, "alice").await, StatusCode::NO_CONTENT);
    let claims = verified(&server, &receiver.tokens.recv().await.unwrap()).await;
    let iat = claims["iat"].as_u64().unwrap();
    let expected = json!({
        "iss": server.issuer, "aud": APP, "sub": "alice", "sid": signed_in["sid"], "iat": iat, "exp": iat + 120,
        "jti": claims["jti"], "events": { "http://schemas.openid.net/event/backchannel-logout": {} },
    });
    assert_eq!(claims, expected);
    assert!(receiver.tokens.try_recv().is_err());

    let refresh = async |response: &Response| {
        let token = response.text("refresh_token");
        let request = [("grant_type", "refresh_token"), ("refresh_token", &*token)];
        app_token(&server, &request).await
    };
    assert_eq!(refresh(&response).await.error(), "invalid_grant");
    assert_eq!(refresh(&other).await.status, StatusCode::OK);
    assert_eq!(log_out(&server, "alice").await, StatusCode::NOT_FOUND);
}

/// A logout token is neither an access token nor an ID token of this server.
#[tokio::test]
async fn a_logout_token_is_not_an_access_token() {
    let mut receiver = Receiver::start(StatusCode::OK).await;
    let server = server(&receiver).await;
    sign_in(&server, &[("scope", "openid")]).await;
    server.control.log_out("alice").await.unwrap();
    let authorization = format!("Bearer {}", receiver.tokens.recv().await.unwrap());
    let headers = [("authorization", &*authorization)];
    let response = server.send(Method::GET, "/userinfo", &headers, "").await;
    assert_eq!(response.status, StatusCode::UNAUTHORIZED);
}

/// An error of the client is reported, and the session ends nevertheless.
#[tokio::test]
async fn an_error_of_the_client_is_reported() {
    let receiver = Receiver::start(StatusCode::BAD_REQUEST).await;
    let server = server(&receiver).await;
    sign_in(&server, &[("scope", "openid")]).await;
    let error = server.control.log_out("alice").await.unwrap_err();
    assert!(
        matches!(error, LogoutError::Status { status: 400 }),
        "{error}"
    );
    let error = server.control.log_out("alice").await.unwrap_err();
    assert!(matches!(error, LogoutError::NoSession), "{error}");

    sign_in(&server, &[("scope", "openid")]).await;
    assert_eq!(log_out(&server, "alice").await, StatusCode::BAD_GATEWAY);
}

/// Logout tokens can be forged as ID tokens can.
#[tokio::test]
async fn logout_tokens_can_be_forged() {
    let mut receiver = Receiver::start(StatusCode::OK).await;
    let server = server(&receiver).await;
    for (kind, claim, forged) in [
        (
            FaultKind::Token(TokenFault::WrongAudience),
            "aud",
            json!("another-client"),
        ),
        (
            FaultKind::WrongIssuer,
            "iss",
            json!("https://wrong-issuer.example"),
        ),
        (
            FaultKind::Token(TokenFault::WrongNonce),
            "nonce",
            json!("another-nonce"),
        ),
    ] {
        let at = FaultPoint::LogoutToken;
        let times = std::num::NonZeroU32::new(1);
        server.control.inject(Fault { at, kind, times }).unwrap();
        sign_in(&server, &[("scope", "openid")]).await;
        server.control.log_out("alice").await.unwrap();
        let claims = verified(&server, &receiver.tokens.recv().await.unwrap()).await;
        assert_eq!(claims[claim], forged, "{kind:?}");
    }
}

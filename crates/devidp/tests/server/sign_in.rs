//! An application that signs users in, as the tests of ID tokens and user APIs need it.

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{Method, StatusCode};
use portcullis_devidp::{ClientSettings, DevIdpSettings, GrantType};
use portcullis_jose::{Algorithm, AlgorithmSet, CompactJws, KeySet};
use portcullis_metadata::{JwkSet, Secret};
use serde_json::Value;

use crate::support::*;

/// The client and the redirect URI of an application that signs users in.
pub(crate) const APP: &str = "the-app";
pub(crate) const APP_SECRET: &str = "the-secret-of-the-app";
pub(crate) const APP_REDIRECT: &str = "http://127.0.0.1:4300/oauth/callback/dev";

/// Starts a server with automatic consent for the application.
pub(crate) async fn app_server(change: impl FnOnce(&mut DevIdpSettings)) -> Server {
    Server::start(|settings| {
        let mut client = ClientSettings::with_secret(APP, Secret::new(APP_SECRET));
        client.redirect_uris = vec![APP_REDIRECT.to_owned()];
        client.grant_types = vec![
            GrantType::AuthorizationCode,
            GrantType::RefreshToken,
            GrantType::ClientCredentials,
        ];
        client.may_introspect = true;
        settings.auto_consent = true;
        settings.clients = vec![client];
        change(settings);
    })
    .await
}

/// Returns the credentials of the application for HTTP Basic authentication.
pub(crate) fn app_credentials() -> String {
    format!("Basic {}", STANDARD.encode(format!("{APP}:{APP_SECRET}")))
}

/// Signs a user in, and returns the token response.
pub(crate) async fn sign_in(server: &Server, parameters: &[(&str, &str)]) -> Response {
    let verifier = verifier();
    let mut request = vec![
        ("response_type", "code"),
        ("client_id", APP),
        ("redirect_uri", APP_REDIRECT),
        ("code_challenge", verifier.challenge()),
        ("code_challenge_method", "S256"),
    ];
    request.extend_from_slice(parameters);
    let path = server.path("authorize");
    let response = server.get(&format!("{path}?{}", encoded(&request))).await;
    let code = response
        .redirect_parameter("code")
        .unwrap_or_else(|| panic!("no code: {} {:?}", response.body, response.location()));
    let request = [
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("code_verifier", verifier.secret()),
        ("redirect_uri", APP_REDIRECT),
    ];
    app_token(server, &request).await
}

/// Sends a token request of the application.
pub(crate) async fn app_token(server: &Server, parameters: &[(&str, &str)]) -> Response {
    let credentials = app_credentials();
    let headers = [FORM, ("authorization", &*credentials)];
    let path = server.path("token");
    server
        .send(Method::POST, &path, &headers, &encoded(parameters))
        .await
}

/// Verifies the ID token of a response with the published keys, and returns its claims.
pub(crate) async fn id_token(server: &Server, response: &Response) -> Value {
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    let token = response.text("id_token");
    let jwks = JwkSet::parse(server.get(&server.path("jwks")).await.body.as_bytes()).unwrap();
    let algorithms = AlgorithmSet::from_iter([Algorithm::Rs256]);
    let (keys, _) = KeySet::from_jwks(&jwks, algorithms).unwrap();
    let compact = CompactJws::parse(&token, 16 * 1024).unwrap();
    assert_eq!(compact.header().typ(), Some("JWT"));
    serde_json::from_slice(keys.verify(&compact).unwrap().bytes()).unwrap()
}

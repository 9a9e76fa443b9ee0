//! Registrations that the authorization server no longer knows.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

const AUTHORIZATION_URL: &str = "https://auth.example.com/authorize";
const CONFIGURATION_URL: &str = "https://auth.example.com/register/c";

/// Signs in twice. The server forgets the client in between, and then responds with `respond`.
/// `configuration` is the URL of the client configuration endpoint.
async fn sign_in_twice(
    configuration: Option<&'static str>,
    respond: impl Fn(&FetchRequest) -> Option<Reply> + Send + Sync + 'static,
) -> Arc<FetchFn> {
    let forgot = Arc::new(AtomicBool::new(false));
    let is_forgotten = forgot.clone();
    let network = network_with(move |request| {
        if request.url.as_str() == REGISTRATION_URL {
            let mut registered =
                serde_json::json!({ "client_id": "c", "registration_access_token": "rat" });
            registered["registration_client_uri"] = configuration.into();
            return Some(Reply::json(201, registered));
        }
        is_forgotten
            .load(Ordering::Relaxed)
            .then(|| respond(request))
            .flatten()
    });
    let user = ScriptedUser::consents();
    let start = StartUrl::parse(RESOURCE).unwrap();
    let authorizer = authorizer(&network, &user, AuthorizerSettings::default());
    authorizer.authorize(&start).await.unwrap();
    forgot.store(true, Ordering::Relaxed);
    authorizer.authorize(&start).await.unwrap();
    network
}

fn is_authorization(request: &FetchRequest) -> bool {
    request.url.as_str().starts_with(AUTHORIZATION_URL)
}

/// H3: the client configuration endpoint is queried if it has the origin of the registration
/// endpoint.
#[tokio::test]
async fn the_configuration_endpoint_is_queried() {
    for (status, expected) in [(401, 2), (200, 1)] {
        let network = sign_in_twice(Some(CONFIGURATION_URL), move |request| {
            (request.url.as_str() == CONFIGURATION_URL)
                .then(|| Reply::json(status, r#"{"client_id":"c"}"#))
        })
        .await;
        assert_eq!(network.to(REGISTRATION_URL).len(), expected, "{status}");
        assert_eq!(
            network.to(CONFIGURATION_URL)[0].headers[header::AUTHORIZATION],
            "Bearer rat"
        );
    }
    const ELSEWHERE: &str = "https://evil.example/register/c";
    let network = sign_in_twice(Some(ELSEWHERE), |_| None).await;
    assert_eq!(network.to(REGISTRATION_URL).len(), 1);
    assert_eq!(network.to(ELSEWHERE).len(), 0);
}

/// H3: otherwise a separate request is sent to the authorization endpoint, whose code is discarded.
#[tokio::test]
async fn the_authorization_endpoint_is_queried() {
    const UNKNOWN: &str =
        r#"{"error":"invalid_request","error_description":"Client ID 'c' not found"}"#;
    let network = sign_in_twice(None, |request| {
        is_authorization(request).then(|| Reply::json(400, UNKNOWN))
    })
    .await;
    assert_eq!(network.to(REGISTRATION_URL).len(), 2);
    assert_eq!(
        network
            .requests()
            .into_iter()
            .filter(is_authorization)
            .count(),
        1
    );

    // The code of a server that grants immediately is discarded.
    let network = sign_in_twice(None, |request| {
        let location = "http://127.0.0.1:7/callback?code=discarded";
        is_authorization(request).then(|| Reply::status(302).header(header::LOCATION, location))
    })
    .await;
    assert_eq!(network.to(REGISTRATION_URL).len(), 1);
    assert!(
        network
            .to(TOKEN_URL)
            .iter()
            .all(|request| form(request)["code"] == "the-code")
    );
}

/// H3: `fresh_registration` registers again although the server knows the client.
#[tokio::test]
async fn a_fresh_registration_is_made() {
    let network = FetchFn::new(well_behaved);
    let start = StartUrl::parse(RESOURCE).unwrap();
    let settings = AuthorizerSettings::default();
    for fresh_registration in [false, true, false] {
        let settings = AuthorizerSettings {
            fresh_registration,
            ..settings.clone()
        };
        authorizer(&network, &ScriptedUser::consents(), settings)
            .authorize(&start)
            .await
            .unwrap();
    }
    assert_eq!(network.to(REGISTRATION_URL).len(), 2);
}

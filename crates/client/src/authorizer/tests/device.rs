//! The device flow (RFC 8628): polling, consent and its end.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::time::Instant;

use super::*;

const DEVICE_URL: &str = "https://auth.example.com/device";
const STARTED: &str = r#"{"device_code":"the-device","user_code":"AB-CD","verification_uri":"https://auth.example.com/go",
    "expires_in":600,"interval":5}"#;

/// A server whose token endpoint returns these errors in turn, then a token.
fn server(errors: &'static [&'static str]) -> Arc<FetchFn> {
    let polls = AtomicUsize::new(0);
    network_with(move |request| match request.url.as_str() {
        METADATA_URL => {
            let mut document = metadata();
            document["device_authorization_endpoint"] = DEVICE_URL.into();
            Some(Reply::json(200, document))
        }
        DEVICE_URL => Some(Reply::json(200, STARTED)),
        TOKEN_URL => {
            let error = errors.get(polls.fetch_add(1, Ordering::Relaxed))?;
            Some(Reply::json(400, format!(r#"{{"error":"{error}"}}"#)))
        }
        _ => None,
    })
}

async fn sign_in(network: &Arc<FetchFn>) -> Result<ResourceToken, ClientError> {
    let user = ScriptedUser::consents();
    let settings = AuthorizerSettings::default();
    let authorizer = Authorizer::device_builder(user)
        .fetch(network.clone())
        .clock(clock())
        .settings(settings)
        .build()
        .unwrap();
    authorizer
        .authorize(&StartUrl::parse(RESOURCE).unwrap())
        .await
}

/// I8: the client polls at the server's interval, and slower after `slow_down`; the registration
/// has the grant type.
#[tokio::test(start_paused = true)]
async fn a_user_consents_on_another_device() {
    let network = server(&[
        "authorization_pending",
        "slow_down",
        "authorization_pending",
    ]);
    let before = Instant::now();
    let token = sign_in(&network).await.unwrap();
    assert_eq!(token.access_token().secret(), "hush");
    assert_eq!(before.elapsed().as_secs(), 5 + 5 + 10 + 10);

    let sent: serde_json::Value =
        serde_json::from_slice(&network.to(REGISTRATION_URL)[0].body).unwrap();
    let grants = sent["grant_types"].as_array().unwrap();
    assert!(
        grants.contains(&"urn:ietf:params:oauth:grant-type:device_code".into()),
        "{sent}"
    );
    let request = form(&network.to(DEVICE_URL)[0]);
    let parameters = ["client_id", "resource", "scope"].map(|name| request[name].as_str());
    assert_eq!(parameters, ["registered", RESOURCE, "mcp:tools"]);

    let poll = form(&network.to(TOKEN_URL)[0]);
    assert_eq!(poll["device_code"].as_str(), "the-device");
    assert_eq!(poll["resource"].as_str(), RESOURCE);
}

/// I8: a denial and an expired code end the polling; a server without the endpoint is an error.
#[tokio::test(start_paused = true)]
async fn the_polling_ends() {
    const NEVER: &[&str] = &["authorization_pending"; 1000];
    let before = Instant::now();
    assert_eq!(
        sign_in(&server(NEVER)).await.unwrap_err().code(),
        "client.device_code_expired"
    );
    assert_eq!(before.elapsed().as_secs(), 600);
    assert_eq!(
        sign_in(&server(&["expired_token"]))
            .await
            .unwrap_err()
            .code(),
        "client.device_code_expired"
    );
    assert_eq!(
        sign_in(&server(&["access_denied"]))
            .await
            .unwrap_err()
            .code(),
        "client.token"
    );
    assert_eq!(
        sign_in(&FetchFn::new(well_behaved))
            .await
            .unwrap_err()
            .code(),
        "client.no_device_flow"
    );
}

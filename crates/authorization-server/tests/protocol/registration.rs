//! Registrations of hostile and of real clients.

use portcullis_authorization_server::{
    ErrorCode, ErrorResponse,
    client::{GrantType, NewClient, RegistrationRules, parse_registration},
    register,
};
use portcullis_metadata::UnixTime;

use crate::support::Server;

fn parse(body: &str) -> Result<NewClient, ErrorResponse> {
    let metadata = parse_registration(body.as_bytes())?;
    NewClient::from_metadata(metadata, RegistrationRules::Strict, None)
}

#[test]
fn dangerous_redirect_uris_reject_the_registration() {
    for uri in [
        "javascript:alert(1)",
        "data:text/html,x",
        "https://client.example/#fragment",
        "https://user@client.example/",
        "http://client.example/callback",
    ] {
        let body = format!(r#"{{"redirect_uris":["http://127.0.0.1/callback","{uri}"]}}"#);
        let error = parse(&body).err().unwrap();
        assert_eq!(error.code, ErrorCode::InvalidRedirectUri, "{uri}");
    }
    for body in ["", "[]", r#"{"redirect_uris":"http://127.0.0.1/"}"#] {
        let error = parse(body).err().unwrap();
        assert_eq!(error.code, ErrorCode::InvalidClientMetadata, "{body}");
    }
}

#[tokio::test]
async fn the_response_states_what_was_registered() {
    let body = r#"{"redirect_uris":["http://127.0.0.1/callback"],"client_name":"Client",
        "grant_types":["authorization_code","refresh_token","client_credentials","unknown"],
        "token_endpoint_auth_method":"none","scope":"root"}"#;
    let new = parse(body).unwrap();
    let server = Server::new();
    let now = UnixTime::from_secs(1_000);
    let registered = register(&server.store, "id-1", now, new).await.unwrap();
    let granted = [GrantType::AuthorizationCode, GrantType::RefreshToken];
    assert_eq!(registered.client.grant_types, granted);
    assert_eq!(registered.client.scopes, None);
    let response = String::from_utf8(registered.information.to_json()).unwrap();
    assert!(response.contains(r#""client_id":"id-1""#), "{response}");
    assert!(
        !response.contains("root") && !response.contains("client_secret"),
        "{response}"
    );
}

#[tokio::test]
async fn a_flood_of_registrations_is_rejected_and_repetitions_are_not() {
    let server = Server::new();
    let now = UnixTime::from_secs(1_000);
    let new = || parse(r#"{"redirect_uris":["http://127.0.0.1/callback"]}"#).unwrap();
    for id in ["a", "b", "a"] {
        register(&server.store, id, now, new()).await.unwrap();
    }
    let error = register(&server.store, "c", now, new())
        .await
        .err()
        .unwrap();
    assert_eq!(error.code, ErrorCode::TemporarilyUnavailable);
}

//! A registration that lacks scopes is updated or replaced.

use portcullis_metadata::{AuthorizationServerMetadata, client::ClientRegistrationResponse};

use super::*;
use crate::{registration::registered::Registered, store::CredentialStore};

const CONFIGURATION: &str = "https://auth.example.com/register/registered";

/// Signs in twice with one store, for `a` and then for `a b`. `update` responds to the update.
async fn sign_in_twice(
    update: impl Fn(&FetchRequest) -> Reply + Send + Sync + 'static,
) -> Arc<FetchFn> {
    let network = network_with(move |request| {
        match (request.method.clone(), request.url.as_str()) {
            (Method::PUT, CONFIGURATION) => Some(update(request)),
            (_, REGISTRATION_URL) => Some(Reply::json(
                201,
                serde_json::json!({
                    "client_id": "registered", "registration_client_uri": CONFIGURATION, "registration_access_token": "rat",
                    "redirect_uris": ["http://127.0.0.1:7/callback"], "client_id_issued_at": 1,
                }),
            )),
            _ => None,
        }
    });
    let store = CredentialStore::in_memory();
    for scopes in ["a", "a b"] {
        let mut settings = AuthorizerSettings {
            store: store.clone(),
            ..AuthorizerSettings::default()
        };
        settings.scopes = Some(Scopes::parse(scopes).unwrap());
        let user = ScriptedUser::consents();
        let start = StartUrl::parse(RESOURCE).unwrap();
        authorizer(&network, &user, settings)
            .authorize(&start)
            .await
            .unwrap();
        assert_eq!(query(&user.last_visit())["scope"], scopes);
    }
    network
}

/// H2: a registration that lacks scopes is updated where the server allows that (RFC 7592 section
/// 2.2).
#[tokio::test]
async fn a_registration_is_updated() {
    let network = sign_in_twice(|_| Reply::json(200, r#"{"client_id":"registered"}"#)).await;
    assert_eq!(network.to(REGISTRATION_URL).len(), 1);
    let updates: Vec<_> = network
        .to(CONFIGURATION)
        .into_iter()
        .filter(|request| request.method == Method::PUT)
        .collect();
    assert_eq!(updates.len(), 1);
    assert_eq!(updates[0].headers[header::AUTHORIZATION], "Bearer rat");
    let sent: serde_json::Value = serde_json::from_slice(&updates[0].body).unwrap();
    assert_eq!(sent["scope"], "a b");
    assert_eq!(sent["client_id"], "registered");
    assert_eq!(sent["redirect_uris"][0], "http://127.0.0.1:7/callback");
    for member in [
        "registration_access_token",
        "registration_client_uri",
        "client_id_issued_at",
    ] {
        assert!(sent.get(member).is_none(), "{member}");
    }
}

/// H3: credentials that the response to an update does not repeat stay as they were, with the
/// expiry of the secret.
#[tokio::test]
async fn an_update_keeps_the_credentials() {
    let registered = serde_json::json!({
        "client_id": "registered", "client_secret": "s", "client_secret_expires_at": 7,
        "token_endpoint_auth_method": "client_secret_basic",
        "registration_client_uri": CONFIGURATION, "registration_access_token": "rat",
    });
    let registered = Registered {
        issuer: Issuer::parse(ISSUER).unwrap(),
        redirect_uri: None,
        asked: Scopes::parse("a").unwrap(),
        response: ClientRegistrationResponse::parse(registered.to_string().as_bytes()).unwrap(),
    };
    let metadata = AuthorizationServerMetadata::parse(metadata().to_string().as_bytes()).unwrap();
    let server = Server::from_metadata(&metadata, UrlPolicy::Operator.into()).unwrap();
    let updated = async |response: &'static str| {
        let network = network_with(move |request| {
            (request.url.as_str() == CONFIGURATION).then(|| Reply::json(200, response))
        });
        let authorizer = authorizer(
            &network,
            &ScriptedUser::consents(),
            AuthorizerSettings::default(),
        );
        let scopes = Scopes::parse("a b").unwrap();
        authorizer
            .updated_registration(&server, &registered, &scopes)
            .await
            .unwrap()
            .response
    };
    assert_eq!(
        updated(r#"{"client_id":"registered"}"#).await,
        registered.response
    );

    let replaced = updated(r#"{"client_id":"registered","client_secret":"t"}"#).await;
    assert_eq!(replaced.client_secret.unwrap().secret(), "t");
    assert_eq!(replaced.client_secret_expires_at, None);
}

/// H2: otherwise a new client is registered, with all scopes.
#[tokio::test]
async fn a_rejected_update_leads_to_a_new_registration() {
    for response in [
        (403, r#"{"error":"access_denied"}"#),
        (200, r#"{"client_id":"another"}"#),
        (200, r#"{"client_id":"registered","scope":"a"}"#),
        (200, "<html>"),
    ] {
        let network = sign_in_twice(move |_| Reply::json(response.0, response.1)).await;
        let registrations = network.to(REGISTRATION_URL);
        assert_eq!(registrations.len(), 2, "{response:?}");
        let sent: serde_json::Value = serde_json::from_slice(&registrations[1].body).unwrap();
        assert_eq!(sent["scope"], "a b", "{response:?}");
    }
}

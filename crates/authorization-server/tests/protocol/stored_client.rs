//! Clients are stored without their secrets, and are the same after a restart.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use portcullis_authorization_server::{
    ErrorCode,
    authentication::PresentedCredential,
    client::{
        Client, ClientRegistration, NewClient, RedirectHost, RedirectHosts, RedirectUri,
        RegistrationRules, StoredClient, StoredClientError, derive_client_id, parse_registration,
    },
};
use portcullis_jose::{Algorithm, SigningKey};
use portcullis_metadata::UnixTime;
use serde_json::{Value, json};

use crate::{store::MemoryStore, support::form};

const KEY: [u8; 32] = [1; 32];

fn register(body: &Value) -> ClientRegistration {
    let hosts = RedirectHosts::new([RedirectHost::parse("client.example").unwrap()]);
    let metadata = parse_registration(body.to_string().as_bytes()).unwrap();
    let rules = RegistrationRules::Lenient(&hosts);
    let NewClient {
        client,
        mut information,
    } = NewClient::from_metadata(metadata, rules, None).unwrap();
    information.client_id = derive_client_id(&KEY, &client).unwrap();
    ClientRegistration {
        client: Arc::new(client),
        information,
    }
}

/// Stores a client, and returns what is stored beside the restored client.
fn restart(registration: &ClientRegistration) -> (String, Client) {
    let stored = StoredClient::of_registration(registration).unwrap();
    let text = serde_json::to_string(&stored).unwrap();
    let read: StoredClient = serde_json::from_str(&text).unwrap();
    assert_eq!(read, stored);
    let client = read.restore().unwrap();
    // What is restored can be stored again.
    let again = ClientRegistration {
        client: Arc::new(client),
        information: registration.information.clone(),
    };
    assert_eq!(StoredClient::of_registration(&again), Ok(stored));
    (text, Arc::into_inner(again.client).unwrap())
}

#[test]
fn a_public_client_is_the_same_after_a_restart() {
    let body = json!({ "redirect_uris": ["app:/callback", "http://127.0.0.1/callback"],
        "client_name": "Client" });
    let registration = register(&body);
    let (_, client) = restart(&registration);
    let original = &registration.client;
    assert_eq!(client.name, original.name);
    assert_eq!(client.redirect_uris, original.redirect_uris);
    assert_eq!(client.grant_types, original.grant_types);
    assert!(client.credential.is_public() && !client.is_document);
    // An equal registration is the same client.
    let id = derive_client_id(&KEY, &client).unwrap();
    assert_eq!(id, registration.information.client_id);
    assert_eq!(id, register(&body).information.client_id);
}

#[tokio::test]
async fn the_secret_is_stored_as_a_hash_and_is_still_accepted() {
    let store = MemoryStore::default();
    let (none, now) = (HeaderMap::new(), UnixTime::from_secs(1_000));
    for method in ["client_secret_basic", "client_secret_post"] {
        let registration = register(&json!({
            "redirect_uris": ["https://client.example/callback"],
            "token_endpoint_auth_method": method,
        }));
        let secret = registration.information.client_secret.clone().unwrap();
        let (text, client) = restart(&registration);
        assert!(!text.contains(secret.secret()), "{text}");
        assert!(client.credential.secret().is_none());

        let is_basic = method == "client_secret_basic";
        for (secret, is_right) in [(secret.secret(), true), ("wrong", false)] {
            let basic = format!("Basic {}", STANDARD.encode(format!("c:{secret}")));
            let basic = HeaderValue::from_str(&basic).unwrap();
            let header = HeaderMap::from_iter([(AUTHORIZATION, basic)]);
            let post = form(&[("client_id", "c"), ("client_secret", secret)]);
            for (headers, form, is_method) in
                [(&header, &form(&[]), is_basic), (&none, &post, !is_basic)]
            {
                let presented = PresentedCredential::parse(headers, form).unwrap();
                let verified = presented.verify(&client.credential, &store, "iss", now);
                let code = verified.await.err().map(|error| error.code);
                let expected = (!is_right || !is_method).then_some(ErrorCode::InvalidClient);
                assert_eq!(code, expected, "{method} {is_right} {is_method}");
            }
        }
        let id = form(&[("client_id", "c")]);
        let presented = PresentedCredential::parse(&none, &id).unwrap();
        let verified = presented.verify(&client.credential, &store, "iss", now);
        assert!(verified.await.is_err(), "{method}, without a secret");
    }
}

#[test]
fn keys_are_stored_as_they_were_sent() {
    let key = SigningKey::generate(Algorithm::Es256, "key").unwrap();
    let mut registration = register(&json!({
        "redirect_uris": ["https://client.example/callback"],
        "token_endpoint_auth_method": "private_key_jwt",
        "jwks": { "keys": [key.public_jwk()] },
    }));
    let (_, client) = restart(&registration);
    assert!(!client.credential.is_public());
    registration.information.metadata.jwks = None;
    let stored = StoredClient::of_registration(&registration);
    assert_eq!(stored, Err(StoredClientError::NoKey));
}

#[test]
fn damaged_records_are_errors() {
    let body = json!({ "redirect_uris": ["http://127.0.0.1/callback"] });
    let stored = StoredClient::of_registration(&register(&body)).unwrap();
    let valid = serde_json::to_value(&stored).unwrap();
    for (member, value, error) in [
        (
            "redirect_uris",
            json!(["javascript:x"]),
            StoredClientError::RedirectUri,
        ),
        ("grant_types", json!(["x"]), StoredClientError::GrantType),
        (
            "credential",
            json!({ "keys": { "keys": [] } }),
            StoredClientError::NoKey,
        ),
    ] {
        let mut damaged = valid.clone();
        damaged[member] = value;
        let stored: StoredClient = serde_json::from_value(damaged).unwrap();
        assert_eq!(stored.restore().err(), Some(error), "{member}");
    }
    for value in [json!("x"), json!({ "secret_basic": "short" }), json!(null)] {
        let mut damaged = valid.clone();
        damaged["credential"] = value.clone();
        let read = serde_json::from_value::<StoredClient>(damaged);
        assert!(read.is_err(), "{value}");
    }
    let uri = RedirectUri::parse("http://127.0.0.1/callback").unwrap();
    assert_eq!(stored.restore().unwrap().redirect_uris, [uri]);
}

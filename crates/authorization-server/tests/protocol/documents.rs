//! Client ID metadata documents: hostile ones, and those of real clients.

use std::time::Duration;

use portcullis_authorization_server::client::{
    ClientDocumentError, Credential, DocumentLimits, FetchedClient, GrantType, RedirectHosts,
    RegistrationRules, StoredClient, StoredClientError, fetch_client_document,
};
use portcullis_discovery::UrlPolicy;
use portcullis_jose::{Algorithm, SigningKey};
use portcullis_metadata::client::ClientIdUrl;
use portcullis_testkit::ScriptedFetch;
use serde_json::{Value, json};

const URL: &str = "https://client.example/oauth/client.json";
const KEYS: &str = "https://client.example/oauth/keys.json";
const POLICY: UrlPolicy = UrlPolicy::Peer {
    loopback_http: false,
    private_addresses: false,
};
const LIMITS: DocumentLimits = DocumentLimits {
    max_size: 5 * 1024,
    timeout: Duration::from_secs(10),
    default_age: Duration::from_secs(300),
    max_age: Duration::from_secs(24 * 60 * 60),
};

fn key_set() -> Value {
    let key = SigningKey::generate(Algorithm::Es256, "key").unwrap();
    json!({ "keys": [key.public_jwk()] })
}

/// A document of a client with keys at `KEYS`, with these members replaced, or removed if they are
/// null.
fn document(changes: &[(&str, Value)]) -> String {
    let mut document = json!({
        "client_id": URL, "client_name": "Client", "redirect_uris": ["http://127.0.0.1/callback"],
        "token_endpoint_auth_method": "private_key_jwt", "jwks_uri": KEYS,
    });
    for (name, value) in changes {
        document[*name] = value.clone();
    }
    document
        .as_object_mut()
        .unwrap()
        .retain(|_, value| !value.is_null());
    document.to_string()
}

async fn fetch(web: &ScriptedFetch, url: &str) -> Result<FetchedClient, ClientDocumentError> {
    let hosts = RedirectHosts::default();
    let rules = RegistrationRules::Lenient(&hosts);
    let id = ClientIdUrl::parse(url).unwrap();
    fetch_client_document(web, POLICY, &LIMITS, rules, &id).await
}

async fn reason(web: &ScriptedFetch) -> &'static str {
    fetch(web, URL).await.unwrap_err().reason()
}

#[tokio::test]
async fn keys_are_fetched_under_the_policy_and_limits_of_the_document() {
    let web = ScriptedFetch::new();
    web.serve(URL, 200, document(&[]));
    web.serve(KEYS, 200, key_set().to_string());
    let fetched = fetch(&web, URL).await.unwrap();
    assert!(matches!(fetched.client.credential, Credential::Keys(_)));
    assert!(fetched.client.is_document);
    let request = &web.requests(KEYS)[0];
    assert_eq!(
        (request.policy, request.max_body),
        (POLICY, LIMITS.max_size)
    );
    // One time limit for both.
    assert!(request.timeout < LIMITS.timeout);
    assert_eq!(web.requests(URL)[0].timeout, LIMITS.timeout);

    // The client survives a restart with the keys that were fetched.
    let stored = StoredClient::of_document(&fetched).unwrap();
    let text = serde_json::to_string(&stored).unwrap();
    let client = serde_json::from_str::<StoredClient>(&text).unwrap();
    let client = client.restore().unwrap();
    assert!(client.is_document && matches!(client.credential, Credential::Keys(_)));
    let without_keys = FetchedClient {
        jwks: None,
        ..fetched
    };
    let error = StoredClient::of_document(&without_keys).unwrap_err();
    assert_eq!(error, StoredClientError::NoKey);
}

#[tokio::test]
async fn unusable_key_sets_make_the_client_unusable() {
    let usable = key_set().to_string();
    let deep = format!(
        "{{\"x\":{}{},{}",
        "[".repeat(40),
        "]".repeat(40),
        &usable[1..]
    );
    for (status, body, expected) in [
        (302, usable.clone(), "the status is not 200"),
        (404, usable.clone(), "the status is not 200"),
        (
            200,
            json!({ "keys": [] }).to_string(),
            "the key set at jwks_uri has no usable public key",
        ),
        (
            200,
            "not JSON".to_owned(),
            "the key set at jwks_uri has no usable public key",
        ),
        (200, deep, "the document is nested too deeply"),
    ] {
        let web = ScriptedFetch::new();
        web.serve(URL, 200, document(&[]));
        web.serve(KEYS, status, body.clone());
        assert_eq!(reason(&web).await, expected, "{body}");
    }
    let web = ScriptedFetch::new();
    web.serve(URL, 200, document(&[]));
    web.fail(KEYS);
    let error = fetch(&web, URL).await.unwrap_err();
    assert!(matches!(error, ClientDocumentError::FetchKeys(_)));
}

#[tokio::test]
async fn an_invalid_document_causes_no_second_request() {
    for (changes, expected) in [
        (
            ("client_secret", json!("x")),
            "client_document.shared_secret",
        ),
        (
            ("token_endpoint_auth_method", json!("client_secret_basic")),
            "client_document.shared_secret",
        ),
        (
            ("token_endpoint_auth_method", json!("tls_client_auth")),
            "token_endpoint_auth_method is neither none nor private_key_jwt",
        ),
        (
            ("jwks", key_set()),
            "the document has both jwks and jwks_uri",
        ),
        (("jwks_uri", json!("keys.json")), "jwks_uri is not a URL"),
        (
            (
                "redirect_uris",
                json!(["javascript:alert(1)", "http://127.0.0.1/"]),
            ),
            "a redirect URI must not have the scheme javascript, data, vbscript, file, blob or about",
        ),
        (
            (
                "client_id",
                json!("https://client.example/oauth/other.json"),
            ),
            "client_document.other_client",
        ),
    ] {
        let web = ScriptedFetch::new();
        web.serve(URL, 200, document(std::slice::from_ref(&changes)));
        web.serve(KEYS, 200, key_set().to_string());
        assert_eq!(reason(&web).await, expected);
        assert_eq!(web.hits(KEYS), 0, "{changes:?}");
    }
    let nested = format!("{}1{}", "[".repeat(40), "]".repeat(40));
    let nested: Value = serde_json::from_str(&nested).unwrap();
    let web = ScriptedFetch::new();
    web.serve(URL, 200, document(&[("x", nested)]));
    assert_eq!(reason(&web).await, "the document is nested too deeply");
}

#[tokio::test]
async fn keys_in_the_document_and_public_clients_need_no_second_request() {
    let web = ScriptedFetch::new();
    let inline = [("jwks", key_set()), ("jwks_uri", Value::Null)];
    web.serve(URL, 200, document(&inline));
    let fetched = fetch(&web, URL).await.unwrap();
    assert!(matches!(fetched.client.credential, Credential::Keys(_)));
    assert!(StoredClient::of_document(&fetched).is_ok());
    for method in [json!("none"), Value::Null] {
        web.serve(
            URL,
            200,
            document(&[("token_endpoint_auth_method", method)]),
        );
        let fetched = fetch(&web, URL).await.unwrap();
        assert!(fetched.client.credential.is_public() && fetched.jwks.is_none());
    }
    assert_eq!(web.hits(KEYS), 0);
}

#[tokio::test]
async fn documents_of_real_clients_are_read() {
    let web = ScriptedFetch::new();
    let chatgpt = "https://chatgpt.com/oauth/IbUR3zxyNQ16/client.json";
    let claude_code = "https://claude.ai/oauth/claude-code-client-metadata";
    web.serve(
        chatgpt,
        200,
        include_str!("../fixtures/clients/chatgpt.document.json"),
    );
    web.serve(
        "https://chatgpt.com/oauth/jwks.json",
        200,
        key_set().to_string(),
    );
    web.serve(
        claude_code,
        200,
        include_str!("../fixtures/clients/claude-code.document.json"),
    );

    let client = fetch(&web, chatgpt).await.unwrap().client;
    assert!(matches!(client.credential, Credential::Keys(_)));
    assert_eq!(client.name.as_deref(), Some("ChatGPT"));

    let client = fetch(&web, claude_code).await.unwrap().client;
    assert!(client.credential.is_public() && client.may_use(GrantType::RefreshToken));
    let requested = "http://localhost:50000/callback";
    let mut uris = client.redirect_uris.iter();
    assert!(uris.any(|uri| uri.match_requested(requested).is_some()));
}

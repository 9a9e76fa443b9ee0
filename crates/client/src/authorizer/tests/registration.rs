//! Which client the user's program is to a server.

use http::HeaderValue;
use portcullis_metadata::Secret;

use super::*;
use crate::{ClientAuthentication, ClientCredentials, registration::client_key::tests::PEM};

/// H2: what a registration says about the client.
#[tokio::test]
async fn a_registration_says_what_it_must() {
    let network = FetchFn::new(well_behaved);
    run(&network, &ScriptedUser::consents()).await.unwrap();
    let sent: serde_json::Value = serde_json::from_slice(&network.to(REGISTRATION_URL)[0].body).unwrap();
    assert_eq!(
        sent,
        serde_json::json!({
            "client_name": "Portcullis",
            "redirect_uris": ["http://127.0.0.1:7/callback"],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
            "scope": "mcp:tools",
        })
    );
}

/// H2: the client names a method that the server lists and that it has itself, the one without a secret first.
#[tokio::test]
async fn a_registration_names_a_method_that_the_server_lists() {
    for (listed, named) in [
        (&["client_secret_post", "client_secret_basic", "none"][..], "none"),
        (&["client_secret_basic", "client_secret_post"], "client_secret_post"),
        (&["client_secret_basic"], "client_secret_basic"),
        (&["private_key_jwt", "client_secret_post"], "client_secret_post"),
        (&["private_key_jwt"], "none"),
    ] {
        let network = but_metadata(move |document| {
            document["token_endpoint_auth_methods_supported"] = listed.into();
        });
        // Who was given no secret may not get further than this.
        let _ = run(&network, &ScriptedUser::consents()).await;
        let sent: serde_json::Value = serde_json::from_slice(&network.to(REGISTRATION_URL)[0].body).unwrap();
        assert_eq!(sent["token_endpoint_auth_method"], named, "{listed:?}");
    }
}

/// H2: a refused registration is told readably.
#[tokio::test]
async fn a_refused_registration_is_told() {
    let network = but(|request| {
        (request.url.as_str() == REGISTRATION_URL).then(|| Reply::json(400, r#"{"error":"invalid_redirect_uri"}"#))
    });
    let error = run(&network, &ScriptedUser::consents()).await.unwrap_err();
    assert_eq!(error.code(), "client.registration");
    assert!(error.to_string().contains("redirect URI"), "{error}");
}

/// H1: without credentials and without registration the error says what is missing.
#[tokio::test]
async fn a_server_without_registration_needs_credentials() {
    let network = but_metadata(|document| drop(document.as_object_mut().unwrap().remove("registration_endpoint")));
    assert_eq!(run(&network, &ScriptedUser::consents()).await.unwrap_err().code(), "client.no_registration");
}

fn held(issuer: &str, authentication: ClientAuthentication) -> AuthorizerSettings {
    let issuer = Issuer::parse(issuer).unwrap();
    let credentials = vec![ClientCredentials { issuer, client_id: "mine".into(), authentication }];
    AuthorizerSettings { credentials, ..AuthorizerSettings::default() }
}

/// H1, H3, I4: credentials that the caller brought come first, and are offered to their own issuer alone.
#[tokio::test]
async fn brought_credentials_are_used_with_their_issuer_alone() {
    let start = StartUrl::parse(RESOURCE).unwrap();
    let secret = || Secret::new("quiet");
    for authentication in [
        ClientAuthentication::None,
        ClientAuthentication::SecretPost(secret()),
        ClientAuthentication::SecretBasic(secret()),
        ClientAuthentication::Secret(secret()),
        ClientAuthentication::PrivateKey(crate::ClientKey::from_pem("ES256", PEM, None).unwrap()),
    ] {
        let (network, person) = (FetchFn::new(well_behaved), ScriptedUser::consents());
        let authorizer = authorizer(&network, &person, held(ISSUER, authentication.clone()));
        authorizer.authorize(&start).await.unwrap();
        let shown = format!("{authorizer:?}");
        assert!(shown.contains("Authorizer { settings: ") && !shown.contains("quiet"), "{shown}");
        assert!(network.to(REGISTRATION_URL).is_empty());
        assert_eq!(query(&person.last_visit())["client_id"], "mine");
        let sent = &network.to(TOKEN_URL)[0];
        let basic = sent.headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let fields = (form(sent).get("client_id").cloned(), form(sent).get("client_secret").cloned());
        match authentication {
            ClientAuthentication::None => assert_eq!((basic, fields), (None, (Some("mine".into()), None))),
            ClientAuthentication::SecretPost(_) => {
                assert_eq!((basic, fields), (None, (Some("mine".into()), Some("quiet".into()))));
            }
            ClientAuthentication::SecretBasic(_) | ClientAuthentication::Secret(_) => {
                assert_eq!((basic, fields), (Some(&b"Basic bWluZTpxdWlldA=="[..]), (Some("mine".into()), None)));
            }
            ClientAuthentication::PrivateKey(_) => {
                assert_eq!((basic, fields), (None, (Some("mine".into()), None)));
                let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
                assert_eq!(form(sent)["client_assertion_type"], kind);
                assert_eq!(form(sent)["client_assertion"].split('.').count(), 3);
            }
        }
    }
    let (network, person) = (FetchFn::new(well_behaved), ScriptedUser::consents());
    let authorizer = authorizer(&network, &person, held("https://other.example", ClientAuthentication::None));
    assert_eq!(authorizer.authorize(&start).await.unwrap_err().code(), "client.server_not_listed");
    assert_eq!(network.to(METADATA_URL).len(), 0);
}

/// H3: a registration is used again at its own issuer until its secret ends.
#[tokio::test]
async fn a_registration_is_used_again() {
    let start = StartUrl::parse(RESOURCE).unwrap();
    for (ends, registrations) in [("0", 1), ("1001", 1), ("1000", 2)] {
        let network = but(move |request| {
            let answer = format!(r#"{{"client_id":"c","client_secret":"s","client_secret_expires_at":{ends}}}"#);
            (request.url.as_str() == REGISTRATION_URL).then(|| Reply::json(201, answer))
        });
        let authorizer = authorizer(&network, &ScriptedUser::consents(), AuthorizerSettings::default());
        authorizer.authorize(&start).await.unwrap();
        authorizer.authorize(&start).await.unwrap();
        assert_eq!(network.to(REGISTRATION_URL).len(), registrations, "{ends}");
    }
}

/// H2, I6: a client that was registered for less than it needs now is registered again, for both.
#[tokio::test]
async fn more_scopes_need_a_new_registration() {
    let start = StartUrl::parse(RESOURCE).unwrap();
    let network = FetchFn::new(well_behaved);
    let settings = AuthorizerSettings::default();
    for (scope, registrations) in [("a", 1), ("b", 2), ("a", 2), ("b a", 2)] {
        let scopes = Some(Scopes::parse(scope).unwrap());
        let settings = AuthorizerSettings { scopes, ..settings.clone() };
        authorizer(&network, &ScriptedUser::consents(), settings).authorize(&start).await.unwrap();
        assert_eq!(network.to(REGISTRATION_URL).len(), registrations, "{scope}");
    }
    let last: serde_json::Value = serde_json::from_slice(&network.to(REGISTRATION_URL)[1].body).unwrap();
    assert_eq!(last["scope"], "a b");
}

const DOCUMENT: &str = "https://client.example/client.json";

fn with_document() -> AuthorizerSettings {
    let client_id_url = Some(portcullis_metadata::ClientIdUrl::parse(DOCUMENT).unwrap());
    AuthorizerSettings { client_id_url, ..AuthorizerSettings::default() }
}

/// H1: brought credentials, then the client's document where the server takes documents, then a registration.
#[tokio::test]
async fn registration_goes_by_priority() {
    let start = StartUrl::parse(RESOURCE).unwrap();
    let takes = || but_metadata(|document| document["client_id_metadata_document_supported"] = true.into());
    let brought = || held(ISSUER, ClientAuthentication::None);
    let both = || AuthorizerSettings { credentials: brought().credentials, ..with_document() };
    let unbound = crate::ClientInformation { client_id: "mine".into(), authentication: ClientAuthentication::None };
    let unbound = || AuthorizerSettings { client: Some(unbound.clone()), ..with_document() };
    for (network, settings, client_id, registrations) in [
        (takes(), both(), "mine", 0),
        (takes(), unbound(), "mine", 0),
        (takes(), with_document(), DOCUMENT, 0),
        (FetchFn::new(well_behaved), with_document(), "registered", 1),
        (takes(), AuthorizerSettings::default(), "registered", 1),
    ] {
        let person = ScriptedUser::consents();
        let token = authorizer(&network, &person, settings).authorize(&start).await.unwrap();
        assert_eq!(
            (token.client_id(), query(&person.last_visit())["client_id"].as_str()),
            (Some(client_id), client_id)
        );
        assert_eq!(form(&network.to(TOKEN_URL)[0])["client_id"], client_id);
        assert_eq!(network.to(REGISTRATION_URL).len(), registrations);
    }
}

/// H3: a token is refreshed as the client that it was given to, and as no other.
#[tokio::test]
async fn a_token_belongs_to_its_client() {
    let issuer = Issuer::parse(ISSUER).unwrap();
    let (network, person) = (FetchFn::new(well_behaved), ScriptedUser::consents());
    for (settings, named) in [(with_document(), DOCUMENT), (held(ISSUER, ClientAuthentication::None), "mine")] {
        let authorizer = authorizer(&network, &person, settings);
        assert_eq!(authorizer.client_by_id(&issuer, named).unwrap().client_id, named);
        assert_eq!(authorizer.client_by_id(&issuer, "other").unwrap_err().code(), "client.no_registration");
    }
}

/// The document of a client is one that our own reader takes.
#[test]
fn a_client_document_describes_a_public_client() {
    let url = || portcullis_metadata::ClientIdUrl::parse(DOCUMENT).unwrap();
    let redirect = Url::parse("http://127.0.0.1/callback").unwrap();
    let document = crate::client_id_metadata_document(url(), "Mine", [&redirect]);
    let read = portcullis_metadata::ClientIdMetadataDocument::parse(&document.to_json(), &url()).unwrap();
    assert_eq!(read, document);
    let said: serde_json::Value = serde_json::from_slice(&document.to_json()).unwrap();
    assert_eq!(
        said,
        serde_json::json!({
            "client_id": DOCUMENT, "client_name": "Mine", "redirect_uris": ["http://127.0.0.1/callback"],
            "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
            "token_endpoint_auth_method": "none", "application_type": "native",
        })
    );
    let web = Url::parse("https://client.example/callback").unwrap();
    let web = crate::client_id_metadata_document(url(), "Mine", [&web]);
    assert_eq!(web.metadata.application_type.as_deref(), Some("web"));
}

/// A user who is asked for the client, and answers with one or with nothing.
struct Knows(Arc<ScriptedUser>, Option<crate::ClientInformation>, std::sync::atomic::AtomicUsize);

impl Interaction for Knows {
    fn redirect_uri(&self) -> &Url {
        self.0.redirect_uri()
    }

    fn authorize<'a>(
        &'a self,
        request: &'a crate::AuthorizationRequest,
    ) -> portcullis_discovery::BoxFuture<'a, Result<crate::RedirectParameters, crate::InteractionError>> {
        self.0.authorize(request)
    }

    fn client_information<'a>(
        &'a self,
        issuer: &'a Issuer,
    ) -> portcullis_discovery::BoxFuture<'a, Result<Option<crate::ClientInformation>, crate::InteractionError>> {
        assert_eq!(issuer.as_str(), ISSUER);
        self.2.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Box::pin(async { Ok(self.1.clone()) })
    }
}

/// H1, H3: with no way to register, the user is asked, once for each server; without an answer the error says so.
#[tokio::test]
async fn a_person_is_asked_for_the_client() {
    let start = StartUrl::parse(RESOURCE).unwrap();
    let network = || but_metadata(|document| drop(document.as_object_mut().unwrap().remove("registration_endpoint")));
    let ask = |details| Arc::new(Knows(ScriptedUser::consents(), details, std::sync::atomic::AtomicUsize::new(0)));
    let authentication = ClientAuthentication::Secret(Secret::new("quiet"));
    let details = crate::ClientInformation { client_id: "typed".into(), authentication };

    let (person, network_of_first) = (ask(Some(details)), network());
    let settings = AuthorizerSettings::default();
    for _ in 0..2 {
        // The store outlives the authorizer.
        let authorizer = Authorizer::new(network_of_first.clone(), person.clone(), clock(), settings.clone());
        let token = authorizer.authorize(&start).await.unwrap();
        assert_eq!(token.client_id(), Some("typed"));
    }
    assert_eq!(person.2.load(std::sync::atomic::Ordering::Relaxed), 1);
    let sent = network_of_first.to(TOKEN_URL);
    assert!(sent.iter().all(|request| request.headers[header::AUTHORIZATION] == "Basic dHlwZWQ6cXVpZXQ="));

    let without_client = Authorizer::new(network(), ask(None), clock(), AuthorizerSettings::default());
    assert_eq!(without_client.authorize(&start).await.unwrap_err().code(), "client.no_registration");
}

/// H4: a registration that lacks the redirect URI is not used; one that does not tell is.
#[tokio::test]
async fn a_registration_without_the_redirect_uri_is_not_used() {
    for (redirects, code) in [
        (r#""redirect_uris":["https://evil.example/"],"#, Some("client.redirect_not_registered")),
        (r#""redirect_uris":[],"#, Some("client.redirect_not_registered")),
        (r#""redirect_uris":["http://127.0.0.1:7/callback"],"#, None),
        ("", None),
    ] {
        let network = but(move |request| {
            let answer = || Reply::json(201, format!(r#"{{{redirects}"client_id":"c"}}"#));
            (request.url.as_str() == REGISTRATION_URL).then(answer)
        });
        let (person, store) = (ScriptedUser::consents(), CredentialStore::in_memory());
        let settings = AuthorizerSettings { store: store.clone(), ..AuthorizerSettings::default() };
        let outcome = authorizer(&network, &person, settings).authorize(&StartUrl::parse(RESOURCE).unwrap()).await;
        assert_eq!(outcome.err().map(|error| error.code()), code, "{redirects}");
        let is_used = usize::from(code.is_none());
        assert_eq!((person.visits(), network.to(TOKEN_URL).len()), (is_used, is_used));
        assert_eq!(store.knows(&Issuer::parse(ISSUER).unwrap()), code.is_none(), "{redirects}");
    }
}

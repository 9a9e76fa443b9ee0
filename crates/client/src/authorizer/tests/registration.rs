//! Clients are configured, registered or reused, and tokens belong to their client.

use portcullis_metadata::{
    Secret,
    client::{ClientIdMetadataDocument, ClientIdUrl},
};

use super::{confirming_user::ConfirmingUser, *};
use crate::{
    registration::client_key::tests::PEM,
    registration::{
        ClientAuthentication, ClientCredentials, ClientInformation, ClientKey,
        client_id_metadata_document,
    },
};

const DOCUMENT: &str = "https://client.example/client.json";

fn configured_client(issuer: &str, authentication: ClientAuthentication) -> AuthorizerSettings {
    let issuer = Issuer::parse(issuer).unwrap();
    let credentials = vec![ClientCredentials {
        issuer,
        client_id: "mine".into(),
        authentication,
    }];
    AuthorizerSettings {
        credentials,
        ..AuthorizerSettings::default()
    }
}

fn with_document() -> AuthorizerSettings {
    let client_id_url = Some(ClientIdUrl::parse(DOCUMENT).unwrap());
    AuthorizerSettings {
        client_id_url,
        ..AuthorizerSettings::default()
    }
}

/// H2: the members of a registration request.
#[tokio::test]
async fn a_registration_has_the_required_members() {
    let network = FetchFn::new(well_behaved);
    run(&network, &ScriptedUser::consents()).await.unwrap();
    let sent: serde_json::Value =
        serde_json::from_slice(&network.to(REGISTRATION_URL)[0].body).unwrap();
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

/// H2: the client registers a method that both sides support, preferably the one without a secret.
#[tokio::test]
async fn a_registration_uses_a_listed_method() {
    for (listed, named) in [
        (
            &["client_secret_post", "client_secret_basic", "none"][..],
            "none",
        ),
        (
            &["client_secret_basic", "client_secret_post"],
            "client_secret_post",
        ),
        (&["client_secret_basic"], "client_secret_basic"),
        (
            &["private_key_jwt", "client_secret_post"],
            "client_secret_post",
        ),
        (&["private_key_jwt"], "none"),
    ] {
        let network = network_with_metadata(move |document| {
            document["token_endpoint_auth_methods_supported"] = listed.into();
        });
        // Without an issued secret, the client stops here.
        let _ = run(&network, &ScriptedUser::consents()).await;
        let sent: serde_json::Value =
            serde_json::from_slice(&network.to(REGISTRATION_URL)[0].body).unwrap();
        assert_eq!(sent["token_endpoint_auth_method"], named, "{listed:?}");
    }
}

/// H2: the error of a rejected registration is readable.
#[tokio::test]
async fn a_rejected_registration_is_reported() {
    let network = network_with(|request| {
        (request.url.as_str() == REGISTRATION_URL)
            .then(|| Reply::json(400, r#"{"error":"invalid_redirect_uri"}"#))
    });
    let error = run(&network, &ScriptedUser::consents()).await.unwrap_err();
    assert_eq!(error.code(), "client.registration");
    assert!(error.to_string().contains("redirect URI"), "{error}");
}

/// H1: without credentials and without registration, the error names what is missing.
#[tokio::test]
async fn a_server_without_registration_needs_credentials() {
    let network = network_with_metadata(|document| {
        drop(
            document
                .as_object_mut()
                .unwrap()
                .remove("registration_endpoint"),
        )
    });
    assert_eq!(
        run(&network, &ScriptedUser::consents())
            .await
            .unwrap_err()
            .code(),
        "client.no_registration"
    );
}

/// H1, H3, I4: configured credentials take precedence, and are sent only to their own issuer.
#[tokio::test]
async fn configured_credentials_are_used_only_at_their_issuer() {
    let start = StartUrl::parse(RESOURCE).unwrap();
    let secret = || Secret::new("quiet");
    for authentication in [
        ClientAuthentication::None,
        ClientAuthentication::SecretPost(secret()),
        ClientAuthentication::SecretBasic(secret()),
        ClientAuthentication::Secret(secret()),
        ClientAuthentication::PrivateKey(ClientKey::from_pem("ES256", PEM, None).unwrap()),
    ] {
        let network = FetchFn::new(well_behaved);
        let user = ScriptedUser::consents();
        let authorizer = authorizer(
            &network,
            &user,
            configured_client(ISSUER, authentication.clone()),
        );
        authorizer.authorize(&start).await.unwrap();
        let shown = format!("{authorizer:?}");
        assert!(shown.contains("Authorizer { settings: "), "{shown}");
        assert!(!shown.contains("quiet"), "{shown}");
        assert!(network.to(REGISTRATION_URL).is_empty());
        assert_eq!(query(&user.last_visit())["client_id"], "mine");
        let sent = &network.to(TOKEN_URL)[0];
        let basic = sent
            .headers
            .get(header::AUTHORIZATION)
            .map(HeaderValue::as_bytes);
        let fields = (
            form(sent).get("client_id").cloned(),
            form(sent).get("client_secret").cloned(),
        );
        match authentication {
            ClientAuthentication::None => {
                assert_eq!((basic, fields), (None, (Some("mine".into()), None)))
            }
            ClientAuthentication::SecretPost(_) => {
                assert_eq!(basic, None);
                assert_eq!(fields, (Some("mine".into()), Some("quiet".into())));
            }
            ClientAuthentication::SecretBasic(_) | ClientAuthentication::Secret(_) => {
                assert_eq!(basic, Some(&b"Basic bWluZTpxdWlldA=="[..]));
                assert_eq!(fields, (Some("mine".into()), None));
            }
            ClientAuthentication::PrivateKey(_) => {
                assert_eq!(basic, None);
                assert_eq!(fields, (Some("mine".into()), None));
                let assertion_type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
                assert_eq!(form(sent)["client_assertion_type"], assertion_type);
                assert_eq!(form(sent)["client_assertion"].split('.').count(), 3);
            }
        }
    }
    let network = FetchFn::new(well_behaved);
    let user = ScriptedUser::consents();
    let authorizer = authorizer(
        &network,
        &user,
        configured_client("https://other.example", ClientAuthentication::None),
    );
    assert_eq!(
        authorizer.authorize(&start).await.unwrap_err().code(),
        "client.server_not_listed"
    );
    assert_eq!(network.to(METADATA_URL).len(), 0);
}

/// H3: a registration is reused at its issuer until its secret expires.
#[tokio::test]
async fn a_registration_is_reused() {
    let start = StartUrl::parse(RESOURCE).unwrap();
    for (ends, registrations) in [("0", 1), ("1001", 1), ("1000", 2)] {
        let network = network_with(move |request| {
            let response = format!(
                r#"{{"client_id":"c","client_secret":"s","client_secret_expires_at":{ends}}}"#
            );
            (request.url.as_str() == REGISTRATION_URL).then(|| Reply::json(201, response))
        });
        let authorizer = authorizer(
            &network,
            &ScriptedUser::consents(),
            AuthorizerSettings::default(),
        );
        authorizer.authorize(&start).await.unwrap();
        authorizer.authorize(&start).await.unwrap();
        assert_eq!(network.to(REGISTRATION_URL).len(), registrations, "{ends}");
    }
}

/// H2, I6: a client with too few scopes is registered again, for the old and the new ones.
#[tokio::test]
async fn more_scopes_need_a_new_registration() {
    let start = StartUrl::parse(RESOURCE).unwrap();
    let network = FetchFn::new(well_behaved);
    let settings = AuthorizerSettings::default();
    for (scope, registrations) in [("a", 1), ("b", 2), ("a", 2), ("b a", 2)] {
        let scopes = Some(Scopes::parse(scope).unwrap());
        let settings = AuthorizerSettings {
            scopes,
            ..settings.clone()
        };
        authorizer(&network, &ScriptedUser::consents(), settings)
            .authorize(&start)
            .await
            .unwrap();
        assert_eq!(network.to(REGISTRATION_URL).len(), registrations, "{scope}");
    }
    let last: serde_json::Value =
        serde_json::from_slice(&network.to(REGISTRATION_URL)[1].body).unwrap();
    assert_eq!(last["scope"], "a b");
}

/// H1: configured credentials, then the metadata document if the server supports it, then a
/// registration.
#[tokio::test]
async fn the_order_of_registration_methods() {
    let start = StartUrl::parse(RESOURCE).unwrap();
    let takes = || {
        network_with_metadata(|document| {
            document["client_id_metadata_document_supported"] = true.into()
        })
    };
    let brought = || configured_client(ISSUER, ClientAuthentication::None);
    let both = || AuthorizerSettings {
        credentials: brought().credentials,
        ..with_document()
    };
    let unbound = ClientInformation {
        client_id: "mine".into(),
        authentication: ClientAuthentication::None,
    };
    let unbound = || AuthorizerSettings {
        client: Some(unbound.clone()),
        ..with_document()
    };
    for (network, settings, client_id, registrations) in [
        (takes(), both(), "mine", 0),
        (takes(), unbound(), "mine", 0),
        (takes(), with_document(), DOCUMENT, 0),
        (FetchFn::new(well_behaved), with_document(), "registered", 1),
        (takes(), AuthorizerSettings::default(), "registered", 1),
    ] {
        let user = ScriptedUser::consents();
        let token = authorizer(&network, &user, settings)
            .authorize(&start)
            .await
            .unwrap();
        assert_eq!(token.client_id(), Some(client_id));
        assert_eq!(query(&user.last_visit())["client_id"].as_str(), client_id);
        assert_eq!(form(&network.to(TOKEN_URL)[0])["client_id"], client_id);
        assert_eq!(network.to(REGISTRATION_URL).len(), registrations);
    }
}

/// H3: a token is refreshed only by the client to which it was issued.
#[tokio::test]
async fn a_token_belongs_to_its_client() {
    let start = StartUrl::parse(RESOURCE).unwrap();
    let issuer = Issuer::parse(ISSUER).unwrap();
    let network = FetchFn::new(well_behaved);
    let user = ScriptedUser::consents();
    for (settings, named) in [
        (with_document(), DOCUMENT),
        (
            configured_client(ISSUER, ClientAuthentication::None),
            "mine",
        ),
    ] {
        let authorizer = authorizer(&network, &user, settings);
        assert_eq!(
            authorizer
                .client_by_id(&start, &issuer, named)
                .await
                .unwrap()
                .client_id,
            named
        );
        let other = authorizer.client_by_id(&start, &issuer, "other").await;
        assert_eq!(other.unwrap_err().code(), "client.no_registration");
    }
}

/// This crate's parser accepts the client metadata document.
#[test]
fn a_client_document_describes_a_public_client() {
    let url = || ClientIdUrl::parse(DOCUMENT).unwrap();
    let redirect = Url::parse("http://127.0.0.1/callback").unwrap();
    let document = client_id_metadata_document(url(), "Mine", [&redirect]);
    let read = ClientIdMetadataDocument::parse(&document.to_json(), &url()).unwrap();
    assert_eq!(read, document);

    let parsed: serde_json::Value = serde_json::from_slice(&document.to_json()).unwrap();
    assert_eq!(
        parsed,
        serde_json::json!({
            "client_id": DOCUMENT, "client_name": "Mine", "redirect_uris": ["http://127.0.0.1/callback"],
            "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
            "token_endpoint_auth_method": "none", "application_type": "native",
        })
    );

    let web = Url::parse("https://client.example/callback").unwrap();
    let web = client_id_metadata_document(url(), "Mine", [&web]);
    assert_eq!(web.metadata.application_type.as_deref(), Some("web"));
}

/// H1, H3: if the client cannot register, the user is asked for a client once per server. Without
/// one, the sign-in fails.
#[tokio::test]
async fn the_user_is_asked_for_the_client() {
    let start = StartUrl::parse(RESOURCE).unwrap();
    let network = || {
        network_with_metadata(|document| {
            drop(
                document
                    .as_object_mut()
                    .unwrap()
                    .remove("registration_endpoint"),
            )
        })
    };
    let authentication = ClientAuthentication::Secret(Secret::new("quiet"));
    let details = ClientInformation {
        client_id: "typed".into(),
        authentication,
    };

    let user = ConfirmingUser::with_client(Some(details));
    let network_of_first = network();
    let settings = AuthorizerSettings::default();
    for _ in 0..2 {
        // The store outlives the authorizer.
        let authorizer = Authorizer::builder(user.clone())
            .fetch(network_of_first.clone())
            .clock(clock())
            .settings(settings.clone())
            .build()
            .unwrap();
        let token = authorizer.authorize(&start).await.unwrap();
        assert_eq!(token.client_id(), Some("typed"));
    }
    assert_eq!(user.client_requests(), [Issuer::parse(ISSUER).unwrap()]);

    let sent = network_of_first.to(TOKEN_URL);
    assert!(
        sent.iter()
            .all(|request| request.headers[header::AUTHORIZATION] == "Basic dHlwZWQ6cXVpZXQ=")
    );

    let without_client = Authorizer::builder(ConfirmingUser::with_client(None))
        .fetch(network())
        .clock(clock())
        .build()
        .unwrap();
    assert_eq!(
        without_client.authorize(&start).await.unwrap_err().code(),
        "client.no_registration"
    );
}

/// H4: a registration with other redirect URIs is not used; one without the member is.
#[tokio::test]
async fn a_registration_without_the_redirect_uri_is_not_used() {
    for (redirects, code) in [
        (
            r#""redirect_uris":["https://evil.example/"],"#,
            Some("client.redirect_not_registered"),
        ),
        (
            r#""redirect_uris":[],"#,
            Some("client.redirect_not_registered"),
        ),
        (r#""redirect_uris":["http://127.0.0.1:7/callback"],"#, None),
        ("", None),
    ] {
        let network = network_with(move |request| {
            let response = || Reply::json(201, format!(r#"{{{redirects}"client_id":"c"}}"#));
            (request.url.as_str() == REGISTRATION_URL).then(response)
        });
        let user = ScriptedUser::consents();
        let store = CredentialStore::in_memory();
        let settings = AuthorizerSettings {
            store: store.clone(),
            ..AuthorizerSettings::default()
        };
        let result = authorizer(&network, &user, settings)
            .authorize(&StartUrl::parse(RESOURCE).unwrap())
            .await;
        assert_eq!(result.err().map(|error| error.code()), code, "{redirects}");
        let is_used = usize::from(code.is_none());
        assert_eq!(user.visits(), is_used);
        assert_eq!(network.to(TOKEN_URL).len(), is_used);
        assert_eq!(
            store.knows(&Issuer::parse(ISSUER).unwrap()),
            code.is_none(),
            "{redirects}"
        );
    }
}

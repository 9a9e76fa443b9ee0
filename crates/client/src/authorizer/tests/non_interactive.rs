//! Grants without a user: client credentials, ID tokens and workloads.

use std::sync::atomic::{AtomicBool, Ordering};

use portcullis_discovery::BoxFuture;
use portcullis_metadata::Secret;
use serde_json::json;

use super::*;
use crate::{
    AssertionError, AssertionSource, EnterpriseIdentity,
    registration::client_key::tests::PEM,
    registration::{ClientAuthentication, ClientInformation, ClientKey},
    testing::ScratchDirectory,
};

const PROVIDER: &str = "https://idp.example.com/token";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

fn settings(authentication: ClientAuthentication) -> AuthorizerSettings {
    let client = Some(ClientInformation {
        client_id: "machine".into(),
        authentication,
    });
    AuthorizerSettings {
        client,
        ..AuthorizerSettings::default()
    }
}

async fn run(
    network: &Arc<FetchFn>,
    grant: NonInteractiveGrant,
    settings: AuthorizerSettings,
) -> Result<ResourceToken, ClientError> {
    let start = StartUrl::parse(RESOURCE).unwrap();
    Authorizer::non_interactive_builder(grant)
        .fetch(network.clone())
        .clock(clock())
        .settings(settings)
        .build()
        .unwrap()
        .authorize(&start)
        .await
}

/// A server without an authorization endpoint.
fn token_endpoint_only() -> Arc<FetchFn> {
    FetchFn::new(|request| match request.url.as_str() {
        METADATA_URL => {
            let mut document = metadata();
            let members = document.as_object_mut().unwrap();
            for member in [
                "authorization_endpoint",
                "response_types_supported",
                "code_challenge_methods_supported",
            ] {
                members.remove(member);
            }
            Some(Reply::json(200, document))
        }
        PROVIDER => Some(Reply::json(
            200,
            json!({
                "access_token": "the-jag", "token_type": "N_A",
                "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
            }),
        )),
        _ => well_behaved(request),
    })
}

fn enterprise() -> NonInteractiveGrant {
    NonInteractiveGrant::EnterpriseManaged(EnterpriseIdentity {
        token_endpoint: Url::parse(PROVIDER).unwrap(),
        issuer: Issuer::parse("https://idp.example.com").unwrap(),
        client: ClientInformation {
            client_id: "at-idp".into(),
            authentication: ClientAuthentication::None,
        },
        id_token: Arc::new(Secret::new("the-id-token")),
    })
}

/// A source with an assertion for each audience.
struct PerAudience;

impl AssertionSource for PerAudience {
    fn assertion<'a>(
        &'a self,
        audience: &'a Issuer,
    ) -> BoxFuture<'a, Result<Secret, AssertionError>> {
        Box::pin(async move { Ok(Secret::new(format!("for {audience}"))) })
    }
}

/// A source without an assertion.
struct Unavailable;

impl AssertionSource for Unavailable {
    fn assertion<'a>(&'a self, _: &'a Issuer) -> BoxFuture<'a, Result<Secret, AssertionError>> {
        Box::pin(async { Err(AssertionError::Unavailable) })
    }
}

/// I8: client credentials with a secret or a key, for the resource and its scopes; nothing is
/// registered.
#[tokio::test]
async fn a_client_uses_its_own_credentials() {
    let key = ClientKey::from_pem("ES256", PEM, Some("k")).unwrap();
    for (authentication, has_assertion) in [
        (ClientAuthentication::Secret(Secret::new("quiet")), false),
        (ClientAuthentication::PrivateKey(key), true),
    ] {
        let network = token_endpoint_only();
        let token = run(
            &network,
            NonInteractiveGrant::ClientCredentials,
            settings(authentication),
        )
        .await
        .unwrap();
        assert_eq!(token.client_id(), Some("machine"));
        assert_eq!(token.access_token().secret(), "hush");
        let sent = network.to(TOKEN_URL).remove(0);
        let fields = form(&sent);
        assert_eq!(fields["grant_type"].as_str(), "client_credentials");
        assert_eq!(fields["resource"].as_str(), RESOURCE);
        assert_eq!(fields["scope"], "mcp:tools");
        assert_eq!(fields.contains_key("client_assertion"), has_assertion);
        assert_eq!(
            sent.headers.contains_key(header::AUTHORIZATION),
            !has_assertion
        );
    }
    let none = run(
        &token_endpoint_only(),
        NonInteractiveGrant::ClientCredentials,
        AuthorizerSettings::default(),
    )
    .await;
    assert_eq!(none.unwrap_err().code(), "client.no_registration");
}

/// I8: the identity provider exchanges the ID token for an assertion to this server and this
/// resource, and the server exchanges the assertion for the token.
#[tokio::test]
async fn an_id_token_is_exchanged() {
    let network = token_endpoint_only();
    run(
        &network,
        enterprise(),
        settings(ClientAuthentication::Secret(Secret::new("quiet"))),
    )
    .await
    .unwrap();
    let exchange = form(&network.to(PROVIDER)[0]);
    for (name, value) in [
        (
            "grant_type",
            "urn:ietf:params:oauth:grant-type:token-exchange",
        ),
        (
            "requested_token_type",
            "urn:ietf:params:oauth:token-type:id-jag",
        ),
        ("audience", "https://auth.example.com"),
        ("resource", RESOURCE),
        ("subject_token", "the-id-token"),
        (
            "subject_token_type",
            "urn:ietf:params:oauth:token-type:id_token",
        ),
        ("client_id", "at-idp"),
        ("scope", "mcp:tools"),
    ] {
        assert_eq!(exchange[name], value, "{name}");
    }
    assert_eq!(network.to(PROVIDER)[0].policy, UrlPolicy::Operator);

    let sent = form(&network.to(TOKEN_URL)[0]);
    assert_eq!(sent["grant_type"].as_str(), JWT_BEARER);
    assert_eq!(sent["assertion"].as_str(), "the-jag");
}

/// I8: a token that is not an assertion is not presented.
#[tokio::test]
async fn another_token_type_is_not_presented() {
    for response in [
        json!({ "access_token": "a", "token_type": "N_A" }),
        json!({ "access_token": "a", "token_type": "Bearer", "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag" }),
        json!({ "access_token": "a", "token_type": "N_A", "issued_token_type": "urn:ietf:params:oauth:token-type:access_token" }),
    ] {
        let network = FetchFn::new(move |request| match request.url.as_str() {
            PROVIDER => Some(Reply::json(200, response.clone())),
            _ => well_behaved(request),
        });
        let error = run(&network, enterprise(), settings(ClientAuthentication::None))
            .await
            .unwrap_err();
        assert_eq!(error.code(), "assertion.other_kind");
        assert!(network.to(TOKEN_URL).is_empty());
    }
}

/// I8: a workload presents its platform's assertion once; a rejection is final.
#[tokio::test]
async fn a_workload_sends_one_request() {
    let network = token_endpoint_only();
    let grant = || NonInteractiveGrant::JwtBearer(Arc::new(PerAudience));
    run(&network, grant(), settings(ClientAuthentication::None))
        .await
        .unwrap();
    let sent = form(&network.to(TOKEN_URL)[0]);
    assert_eq!(sent["grant_type"].as_str(), JWT_BEARER);
    assert_eq!(sent["assertion"].as_str(), "for https://auth.example.com");
    assert_eq!(sent["client_id"], "machine");

    // No client is needed.
    run(&network, grant(), AuthorizerSettings::default())
        .await
        .unwrap();
    assert!(!form(&network.to(TOKEN_URL)[1]).contains_key("client_id"));

    for rejection in [
        "invalid_grant",
        "invalid_scope",
        "unauthorized_client",
        "invalid_client",
    ] {
        let network = FetchFn::new(move |request| match request.url.as_str() {
            TOKEN_URL => Some(Reply::json(400, json!({ "error": rejection }))),
            _ => well_behaved(request),
        });
        let error = run(&network, grant(), settings(ClientAuthentication::None))
            .await
            .unwrap_err();
        assert_eq!(error.code(), "client.token");
        assert_eq!(network.to(TOKEN_URL).len(), 1);
    }
    let unavailable = NonInteractiveGrant::JwtBearer(Arc::new(Unavailable));
    let unavailable = run(&network, unavailable, settings(ClientAuthentication::None))
        .await
        .unwrap_err();
    assert_eq!(unavailable.code(), "assertion.unavailable");
}

/// H3: a client without an issuer is used at the first server only, also after a restart. A server
/// of the settings replaces it, for this start URL.
#[tokio::test]
async fn a_client_is_bound_to_the_first_server() {
    let scratch = ScratchDirectory::new();
    let with = |authorization_server: Option<&Issuer>| {
        let settings = AuthorizerSettings {
            store: CredentialStore::in_directory(scratch.path()),
            authorization_server: authorization_server.cloned(),
            ..settings(ClientAuthentication::Secret(Secret::new("quiet")))
        };
        Authorizer::non_interactive_builder(NonInteractiveGrant::ClientCredentials)
            .fetch(token_endpoint_only())
            .clock(clock())
            .settings(settings)
            .build()
            .unwrap()
    };
    let [first, other] =
        ["https://a.example", "https://b.example"].map(|issuer| Issuer::parse(issuer).unwrap());
    let [start, elsewhere] =
        [RESOURCE, "https://mcp.example.com/other"].map(|url| StartUrl::parse(url).unwrap());
    let authorizer = with(None);
    assert_eq!(
        authorizer
            .configured_client(&start, &first)
            .await
            .unwrap()
            .unwrap()
            .issuer,
        first
    );
    for authorizer in [authorizer, with(None), with(Some(&first))] {
        let rejected = authorizer.configured_client(&start, &other).await;
        assert_eq!(rejected.unwrap_err().code(), "client.other_server");
        assert!(
            authorizer
                .configured_client(&start, &first)
                .await
                .unwrap()
                .is_some()
        );
    }
    assert!(
        with(None)
            .configured_client(&elsewhere, &other)
            .await
            .unwrap()
            .is_some()
    );

    assert!(
        with(Some(&other))
            .configured_client(&start, &other)
            .await
            .unwrap()
            .is_some()
    );
    assert!(
        with(None)
            .configured_client(&start, &other)
            .await
            .unwrap()
            .is_some()
    );
    assert!(with(None).configured_client(&start, &first).await.is_err());
}

/// H3: a client whose server is not stored stays at the issuer of its stored token. Its refresh
/// token goes only there.
#[tokio::test]
async fn a_client_stays_at_the_issuer_of_its_token() {
    let start = StartUrl::parse(RESOURCE).unwrap();
    let issuer = Issuer::parse("https://earlier.example").unwrap();
    let store = CredentialStore::in_memory();
    let resource = portcullis_metadata::ResourceUri::parse(RESOURCE).unwrap();
    let token = portcullis_metadata::AccessToken::new("old");
    let imported = crate::store::ImportedToken::new(
        start.clone(),
        resource,
        issuer.clone(),
        "machine".into(),
        token,
    );
    store.import(imported).await.unwrap();
    let settings = AuthorizerSettings {
        store,
        ..settings(ClientAuthentication::Secret(Secret::new("quiet")))
    };
    let network = token_endpoint_only();
    let rejected = run(
        &network,
        NonInteractiveGrant::ClientCredentials,
        settings.clone(),
    )
    .await
    .unwrap_err();
    assert_eq!(rejected.code(), "client.other_server");
    let ClientError::ClientOfOtherServer { named, .. } = &rejected else {
        panic!("{rejected}")
    };
    assert_eq!(named.as_str(), "https://auth.example.com");
    assert!(network.to(TOKEN_URL).is_empty());

    let chosen = AuthorizerSettings {
        authorization_server: Some(Issuer::parse(ISSUER).unwrap()),
        ..settings
    };
    let grant = NonInteractiveGrant::ClientCredentials;
    let authorizer = Authorizer::non_interactive_builder(grant)
        .fetch(network)
        .clock(clock())
        .settings(chosen)
        .build()
        .unwrap();
    authorizer.authorize(&start).await.unwrap();
    let at_the_old = authorizer.client_by_id(&start, &issuer, "machine").await;
    assert_eq!(at_the_old.unwrap_err().code(), "client.no_registration");
}

/// H3: a client without an issuer stays at the server of its first sign-in, even if the resource
/// lists other servers later.
#[tokio::test]
async fn a_client_without_an_issuer_stays_at_its_server() {
    const OTHER: &str = "https://other.example";
    let has_moved = Arc::new(AtomicBool::new(false));
    for (later, expected) in [
        (json!([OTHER, ISSUER]), Ok(ISSUER.to_owned())),
        (json!([OTHER]), Err("client.other_server")),
    ] {
        has_moved.store(false, Ordering::Relaxed);
        let moved = has_moved.clone();
        let network = network_with(move |request| {
            (request.url.as_str() == PRM_URL && moved.load(Ordering::Relaxed)).then(|| {
                let mut document = prm(RESOURCE);
                document["authorization_servers"] = later.clone();
                Reply::json(200, document)
            })
        });
        let settings = settings(ClientAuthentication::Secret(Secret::new("quiet")));
        let grant = NonInteractiveGrant::ClientCredentials;
        let authorizer = Authorizer::non_interactive_builder(grant)
            .fetch(network.clone())
            .clock(clock())
            .settings(settings)
            .build()
            .unwrap();
        let start = StartUrl::parse(RESOURCE).unwrap();
        authorizer.authorize(&start).await.unwrap();
        has_moved.store(true, Ordering::Relaxed);
        let token = authorizer.authorize(&start).await;
        let issuer = token
            .map(|token| token.issuer().to_string())
            .map_err(|error| error.code());
        assert_eq!(issuer, expected);
        assert!(
            network
                .requests()
                .iter()
                .all(|request| !request.url.as_str().starts_with(OTHER))
        );
    }
}

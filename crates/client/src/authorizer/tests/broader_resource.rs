//! A resource whose path is only a prefix of the start URL's.

use super::{confirming_user::ConfirmingUser, *};
use crate::{BroaderResource, NonInteractiveGrant, SignOut, TokenManager, store::CredentialStore};

const ROOT: &str = "https://mcp.example.com";

/// A resource whose metadata names the root of its origin.
fn broader() -> Arc<FetchFn> {
    network_with(|request| (request.url.as_str() == PRM_URL).then(|| Reply::json(200, prm(ROOT))))
}

fn authorizer_with(
    broader_resource: BroaderResource,
    user: &Arc<ConfirmingUser>,
    network: &Arc<FetchFn>,
) -> Authorizer {
    let settings = AuthorizerSettings {
        broader_resource,
        ..AuthorizerSettings::default()
    };
    authorizer(network, user, settings)
}

fn start() -> StartUrl {
    StartUrl::parse(RESOURCE).unwrap()
}

/// H4: without acceptance, a broader resource is rejected before a registration or sign-in.
#[tokio::test]
async fn it_is_rejected_by_default() {
    let network = broader();
    let user = ScriptedUser::consents();
    let error = run(&network, &user).await.unwrap_err();
    assert_eq!(error.code(), "client.broader_resource");

    let text = error.to_string();
    for part in [RESOURCE, "https://mcp.example.com:", "the other paths"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(network.to(REGISTRATION_URL).is_empty());
    assert!(network.to(TOKEN_URL).is_empty());
    assert_eq!(user.visits(), 0);

    let user = ConfirmingUser::new(false);
    let authorizer = Authorizer::builder(user.clone())
        .fetch(network.clone())
        .clock(clock())
        .build()
        .unwrap();
    assert_eq!(
        authorizer.authorize(&start()).await.unwrap_err().code(),
        "client.broader_resource"
    );
    assert_eq!(user.questions().len(), 1);
    assert_eq!(user.scripted.visits(), 0);

    let workload = Authorizer::non_interactive_builder(NonInteractiveGrant::ClientCredentials)
        .fetch(network)
        .clock(clock())
        .build()
        .unwrap();
    assert_eq!(
        workload.authorize(&start()).await.unwrap_err().code(),
        "client.broader_resource"
    );
}

/// H4, G2: after acceptance by the user or by the setting, the metadata's resource is requested.
#[tokio::test]
async fn it_is_used_when_it_is_accepted() {
    for (by_setting, questions) in [
        (BroaderResource::Accepted, 0),
        (BroaderResource::OfWholeHost, 1),
    ] {
        let network = broader();
        let user = ConfirmingUser::new(true);
        let authorizer = authorizer_with(by_setting, &user, &network);
        let token = authorizer.authorize(&start()).await.unwrap();
        assert_eq!(token.resource().as_str(), ROOT);
        assert_eq!(token.start_url(), Some(&start()));
        assert_eq!(
            user.questions(),
            vec![format!("{RESOURCE} {ROOT}"); questions]
        );
        assert_eq!(query(&user.scripted.last_visit())["resource"], ROOT);
        assert_eq!(form(&network.to(TOKEN_URL)[0])["resource"], ROOT);
    }
}

/// H4: the metadata of the whole host is accepted without a question, found by its URL or named by
/// the challenge. Without acceptance, nothing is requested. A tenant's metadata is asked about,
/// also if its URL contains the well-known path.
#[tokio::test]
async fn the_metadata_of_the_whole_host_needs_no_acceptance() {
    const HOST_PRM: &str = "https://mcp.example.com/.well-known/oauth-protected-resource";
    for (prm_url, is_challenged, setting, expected) in [
        (HOST_PRM, false, BroaderResource::OfWholeHost, Ok(0)),
        (HOST_PRM, true, BroaderResource::OfWholeHost, Ok(0)),
        (HOST_PRM, true, BroaderResource::Rejected, Err(0)),
        (PRM_URL, true, BroaderResource::Rejected, Err(0)),
        (PRM_URL, false, BroaderResource::OfWholeHost, Err(1)),
        (
            "https://mcp.example.com/mcp/.well-known/oauth-protected-resource",
            true,
            BroaderResource::OfWholeHost,
            Err(1),
        ),
        (
            "https://mcp.example.com/.well-known/oauth-protected-resource/..%2F..%2Fmcp/prm",
            true,
            BroaderResource::OfWholeHost,
            Err(1),
        ),
        (
            "https://mcp.example.com/.well-known/oauth-protected-resource?tenant=mcp",
            true,
            BroaderResource::OfWholeHost,
            Err(1),
        ),
        (
            "https://mcp.example.com:8443/.well-known/oauth-protected-resource",
            true,
            BroaderResource::OfWholeHost,
            Err(1),
        ),
        (
            "https://evil.example/.well-known/oauth-protected-resource",
            true,
            BroaderResource::OfWholeHost,
            Err(1),
        ),
    ] {
        let network = network_with(move |request| match request.url.as_str() {
            RESOURCE if is_challenged => {
                let value = format!(r#"Bearer resource_metadata="{prm_url}""#);
                Some(Reply::status(401).header(header::WWW_AUTHENTICATE, &value))
            }
            RESOURCE => Some(Reply::status(401).header(header::WWW_AUTHENTICATE, "Bearer")),
            url if url == prm_url => Some(Reply::json(200, prm(ROOT))),
            PRM_URL => Some(Reply::status(404)),
            _ => None,
        });
        let user = ConfirmingUser::new(false);
        let authorizer = authorizer_with(setting, &user, &network);
        let outcome = authorizer.authorize(&start()).await;
        let questions = user.questions().len();
        let outcome = match outcome {
            Ok(token) => {
                assert_eq!(token.resource().as_str(), ROOT);
                Ok(questions)
            }
            Err(error) => {
                assert_eq!(error.code(), "client.broader_resource", "{prm_url}");
                assert!(network.to(REGISTRATION_URL).is_empty(), "{prm_url}");
                Err(questions)
            }
        };
        assert_eq!(outcome, expected, "{prm_url} {setting:?}");
    }
}

/// H4: the resource itself, with an additional slash or without the query, and configured metadata
/// need no acceptance.
#[tokio::test]
async fn an_equal_resource_needs_no_acceptance() {
    for start in [
        RESOURCE,
        "https://mcp.example.com/mcp/",
        "https://mcp.example.com/mcp?tenant=a",
    ] {
        let network = network_with(|request| match request.url.path() {
            "/mcp" | "/mcp/" => Some(Reply::challenge()),
            _ => None,
        });
        let authorizer = authorizer(
            &network,
            &ScriptedUser::consents(),
            AuthorizerSettings::default(),
        );
        assert!(
            authorizer
                .authorize(&StartUrl::parse(start).unwrap())
                .await
                .is_ok(),
            "{start}"
        );
    }
    let metadata = ProtectedResourceMetadata::parse(prm(ROOT).to_string().as_bytes()).unwrap();
    let settings = AuthorizerSettings {
        resource_metadata: Some(metadata),
        ..AuthorizerSettings::default()
    };
    let unpublished = network_with(|request| {
        let is_published = request
            .url
            .path()
            .starts_with("/.well-known/oauth-protected-resource");
        is_published.then(|| Reply::status(404))
    });
    assert!(
        authorizer(&unpublished, &ScriptedUser::consents(), settings)
            .authorize(&start())
            .await
            .is_ok()
    );
}

/// H4: a token manager asks once, because the replaced token shows that the resource was accepted,
/// until a sign-out.
#[tokio::test]
async fn it_is_asked_once_until_the_sign_out() {
    let user = ConfirmingUser::new(true);
    let store = CredentialStore::in_memory();
    let settings = AuthorizerSettings {
        store: store.clone(),
        ..AuthorizerSettings::default()
    };
    let authorizer = Authorizer::builder(user.clone())
        .fetch(broader())
        .clock(clock())
        .settings(settings)
        .build()
        .unwrap();
    let token_manager = TokenManager::new(start(), Arc::new(authorizer));
    token_manager.sign_in().await.unwrap();
    token_manager.sign_in().await.unwrap();
    assert_eq!(user.questions().len(), 1);
    assert_eq!(user.scripted.visits(), 2);
    assert_eq!(
        token_manager.sign_out().await.unwrap(),
        SignOut::ForgottenLocally
    );
    token_manager.sign_in().await.unwrap();
    assert_eq!(user.questions().len(), 2);
    assert_eq!(user.scripted.visits(), 3);
}

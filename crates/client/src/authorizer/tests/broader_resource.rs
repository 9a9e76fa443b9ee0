//! A resource whose path is only a prefix of the start URL's.

use std::sync::atomic::{AtomicUsize, Ordering};

use portcullis_discovery::BoxFuture;

use super::*;
use crate::{
    AuthorizationRequest, CredentialStore, InteractionError, NonInteractiveGrant, RedirectParameters, SignOut,
    TokenManager,
};

const ROOT: &str = "https://mcp.example.com";

/// A user who answers the question, and consents like [`ScriptedUser`].
struct AnsweringUser {
    person: Arc<ScriptedUser>,
    accepts: bool,
    questions: AtomicUsize,
}

impl AnsweringUser {
    fn new(accepts: bool) -> Arc<Self> {
        Arc::new(Self { person: ScriptedUser::consents(), accepts, questions: AtomicUsize::new(0) })
    }

    fn questions(&self) -> usize {
        self.questions.load(Ordering::Relaxed)
    }
}

impl Interaction for AnsweringUser {
    fn redirect_uri(&self) -> &Url {
        self.person.redirect_uri()
    }

    fn authorize<'a>(
        &'a self,
        request: &'a AuthorizationRequest,
    ) -> BoxFuture<'a, Result<RedirectParameters, InteractionError>> {
        self.person.authorize(request)
    }

    fn accept_broader_resource<'a>(
        &'a self,
        start: &'a StartUrl,
        resource: &'a ResourceUri,
    ) -> BoxFuture<'a, Result<bool, InteractionError>> {
        assert_eq!((start.url().as_str(), resource.as_str()), (RESOURCE, ROOT));
        self.questions.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Ok(self.accepts) })
    }
}

/// A resource whose metadata names the root of its origin.
fn broader() -> Arc<FetchFn> {
    but(|request| (request.url.as_str() == PRM_URL).then(|| Reply::json(200, prm(ROOT))))
}

fn start() -> StartUrl {
    StartUrl::parse(RESOURCE).unwrap()
}

/// H4: a broader resource that is not accepted is refused before any registration or sign-in.
#[tokio::test]
async fn it_is_refused_by_default() {
    let (network, person) = (broader(), ScriptedUser::consents());
    let error = run(&network, &person).await.unwrap_err();
    assert_eq!(error.code(), "client.broader_resource");
    let text = error.to_string();
    for part in [RESOURCE, "https://mcp.example.com:", "the other paths", "--accept-broader-resource"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(network.to(REGISTRATION_URL).is_empty() && network.to(TOKEN_URL).is_empty());
    assert_eq!(person.visits(), 0);

    let asked = AnsweringUser::new(false);
    let authorizer = Authorizer::new(network.clone(), asked.clone(), clock(), AuthorizerSettings::default());
    assert_eq!(authorizer.authorize(&start()).await.unwrap_err().code(), "client.broader_resource");
    assert_eq!((asked.questions(), asked.person.visits()), (1, 0));

    let machine = Authorizer::non_interactive(
        network,
        NonInteractiveGrant::ClientCredentials,
        clock(),
        AuthorizerSettings::default(),
    );
    assert_eq!(machine.authorize(&start()).await.unwrap_err().code(), "client.broader_resource");
}

/// H4, G2: once it is accepted, by the user or by the setting, the metadata's value is the one that is sent.
#[tokio::test]
async fn it_is_used_when_it_is_accepted() {
    for (by_setting, questions) in [(true, 0), (false, 1)] {
        let (network, asked) = (broader(), AnsweringUser::new(true));
        let settings = AuthorizerSettings { accept_broader_resource: by_setting, ..AuthorizerSettings::default() };
        let authorizer = Authorizer::new(network.clone(), asked.clone(), clock(), settings);
        let token = authorizer.authorize(&start()).await.unwrap();
        assert_eq!((token.resource().as_str(), token.start_url()), (ROOT, Some(&start())));
        assert_eq!(asked.questions(), questions);
        assert_eq!(query(&asked.person.last_visit())["resource"], ROOT);
        assert_eq!(form(&network.to(TOKEN_URL)[0])["resource"], ROOT);
    }
}

/// H4: the resource itself, with a slash more or without the query, and configured metadata need no acceptance.
#[tokio::test]
async fn what_is_not_broader_is_not_asked_for() {
    for start in [RESOURCE, "https://mcp.example.com/mcp/", "https://mcp.example.com/mcp?tenant=a"] {
        let network = but(|request| match request.url.path() {
            "/mcp" | "/mcp/" => Some(Reply::challenge()),
            _ => None,
        });
        let authorizer = authorizer(&network, &ScriptedUser::consents(), AuthorizerSettings::default());
        assert!(authorizer.authorize(&StartUrl::parse(start).unwrap()).await.is_ok(), "{start}");
    }
    let metadata = ProtectedResourceMetadata::parse(prm(ROOT).to_string().as_bytes()).unwrap();
    let settings = AuthorizerSettings { resource_metadata: Some(metadata), ..AuthorizerSettings::default() };
    let unpublished = but(|request| {
        let is_published = request.url.path().starts_with("/.well-known/oauth-protected-resource");
        is_published.then(|| Reply::status(404))
    });
    assert!(authorizer(&unpublished, &ScriptedUser::consents(), settings).authorize(&start()).await.is_ok());
}

/// H4: a token_manager asks once: the token that it replaces shows that the resource was accepted. A sign-out ends that.
#[tokio::test]
async fn it_is_asked_once_until_the_sign_out() {
    let (asked, store) = (AnsweringUser::new(true), CredentialStore::in_memory());
    let settings = AuthorizerSettings { store: store.clone(), ..AuthorizerSettings::default() };
    let authorizer = Authorizer::new(broader(), asked.clone(), clock(), settings);
    let token_manager = TokenManager::new(start(), Arc::new(authorizer));
    token_manager.sign_in().await.unwrap();
    token_manager.sign_in().await.unwrap();
    assert_eq!((asked.questions(), asked.person.visits()), (1, 2));
    assert_eq!(token_manager.sign_out().await.unwrap(), SignOut::ForgottenLocally);
    token_manager.sign_in().await.unwrap();
    assert_eq!((asked.questions(), asked.person.visits()), (2, 3));
}

//! Several processes with one store, at the development authorization server, which rotates refresh
//! tokens and revokes the grant after a reuse.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use http::{HeaderMap, StatusCode};
use portcullis_client::{
    Authorizer, AuthorizerSettings, AutoConsent, StartUrl, TokenManager, store::CredentialStore,
};
use portcullis_devidp::{DevIdp, DevIdpSettings};
use portcullis_discovery::{FetchSettings, HttpFetch};
use portcullis_metadata::{
    Clock, Issuer, ProtectedResourceMetadata, ResourceUri, Scopes, SystemClock, UnixTime,
};
use portcullis_testkit::ScratchDirectory;

const STORE: &str = "PORTCULLIS_TEST_STORE";
const ISSUER: &str = "PORTCULLIS_TEST_ISSUER";
const PROCESSES: usize = 4;

struct OffsetClock(SystemClock, Duration);

impl Clock for OffsetClock {
    fn now(&self) -> UnixTime {
        self.0.now().saturating_add(self.1)
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }
}

/// Returns a token manager for a resource with configured metadata.
fn token_manager(store: &Path, issuer: &str, ahead: u64) -> Arc<TokenManager> {
    let fetch = Arc::new(HttpFetch::new(FetchSettings::default()).unwrap());
    let start = format!("{issuer}/mcp");
    let resource = ResourceUri::parse(&start).unwrap();
    let mut settings = AuthorizerSettings::default();
    settings.resource_metadata = Some(ProtectedResourceMetadata::new(
        resource,
        vec![Issuer::parse(issuer).unwrap()],
    ));
    settings.scopes = Some(Scopes::parse("mcp:tools offline_access").unwrap());
    settings.store = CredentialStore::in_directory(store);
    let clock = Arc::new(OffsetClock(SystemClock::new(), Duration::from_secs(ahead)));
    let authorizer = Authorizer::builder(Arc::new(AutoConsent::new(fetch.clone())))
        .fetch(fetch)
        .clock(clock)
        .settings(settings)
        .build()
        .unwrap();
    Arc::new(TokenManager::new(
        StartUrl::parse(&start).unwrap(),
        Arc::new(authorizer),
    ))
}

async fn text(token_manager: &TokenManager) -> String {
    token_manager
        .token()
        .await
        .unwrap()
        .unwrap()
        .access_token()
        .secret()
        .to_owned()
}

/// I5: if several processes need a refresh concurrently, one refreshes the token. All use the new
/// one, and the grant stays valid.
#[tokio::test]
async fn one_process_refreshes_the_token() {
    if let (Some(store), Ok(issuer)) = (env::var_os(STORE), env::var(ISSUER)) {
        let store = PathBuf::from(store);
        let token = text(&token_manager(&store, &issuer, 250)).await;
        fs::write(store.join(format!("seen-{}", std::process::id())), token).unwrap();
        return;
    }
    let scratch = ScratchDirectory::new();
    let store = scratch.path();
    let server = DevIdp::bind(DevIdpSettings {
        auto_consent: true,
        ..DevIdpSettings::default()
    })
    .await
    .unwrap();
    let issuer = server.issuer().to_string();
    tokio::spawn(server.serve(std::future::pending()));
    let first = token_manager(store, &issuer, 0);
    assert!(
        first
            .request_authorization()
            .should_retry(StatusCode::UNAUTHORIZED, &HeaderMap::new())
            .await
            .unwrap()
    );

    let before = text(&first).await;
    let children: Vec<_> = (0..PROCESSES)
        .map(|_| {
            Command::new(env::current_exe().unwrap())
                .args(["--exact", "one_process_refreshes_the_token"])
                .envs([(STORE, store.as_os_str()), (ISSUER, issuer.as_ref())])
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    let waits = children
        .into_iter()
        .map(|mut child| tokio::task::spawn_blocking(move || child.wait().unwrap()));
    for wait in waits.collect::<Vec<_>>() {
        assert!(wait.await.unwrap().success());
    }
    let files = fs::read_dir(store)
        .unwrap()
        .map(|file| file.unwrap().path());
    let seen = files.filter(|file| {
        file.file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("seen-")
    });
    let seen: Vec<_> = seen.map(|file| fs::read_to_string(file).unwrap()).collect();
    assert_eq!(seen.len(), PROCESSES);
    assert!(seen.iter().all(|token| *token == seen[0]), "{seen:#?}");
    assert_ne!(seen[0], before);

    let last = text(&token_manager(store, &issuer, 540)).await;
    assert!(last != seen[0]);
    assert!(last != before);
}

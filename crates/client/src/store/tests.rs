use std::{fs, process::Command};

use portcullis_metadata::{AccessToken, ClientRegistrationResponse, Scopes, Secret, UnixTime};

use super::*;
use crate::{
    dpop::DpopBinding,
    testing::{ISSUER, RESOURCE, Scratch},
    token::{Parts, Scheme},
};

mod files;

fn issuer(text: &str) -> Issuer {
    Issuer::parse(text).unwrap()
}

fn token_at(issuer_text: &str, resource: &str, access_token: &str) -> ResourceToken {
    let resource = ResourceUri::parse(resource).unwrap();
    ResourceToken::from_parts(Parts {
        access_token: AccessToken::new(access_token),
        scheme: Scheme::Bearer,
        refresh_token: Some(Secret::new("refresh \"me\"")),
        origin: resource.url().origin(),
        issuer: issuer(issuer_text),
        resource,
        client_id: Some("me".into()),
        asked: Scopes::parse("a b").unwrap(),
        granted: Some(Scopes::parse("a").unwrap()),
        obtained: UnixTime::from_millis(1_234),
        expires: Some(UnixTime::from_secs(99)),
    })
}

fn token(access_token: &str) -> ResourceToken {
    token_at(ISSUER, RESOURCE, access_token)
}

async fn write(store: &CredentialStore, token: &ResourceToken) {
    store.lock_token(token.issuer(), token.resource()).await.unwrap().write(token).unwrap();
}

fn read(store: &CredentialStore, start: &str) -> Result<Vec<String>, StoreError> {
    let tokens = store.tokens(&StartUrl::parse(start).unwrap())?;
    Ok(tokens.iter().map(|token| token.access_token().secret().to_owned()).collect())
}

fn both(scratch: &Scratch) -> [CredentialStore; 2] {
    [CredentialStore::in_memory(), CredentialStore::at(scratch.path())]
}

/// I7: a token comes back as it was, its key too, for its own resource and what lies below it.
#[tokio::test]
async fn a_token_comes_back_as_it_was() {
    let scratch = Scratch::new();
    for store in both(&scratch) {
        assert!(read(&store, RESOURCE).unwrap().is_empty());
        write(&store, &token("first")).await;
        write(&store, &token("second")).await;
        let found = store.tokens(&StartUrl::parse(RESOURCE).unwrap()).unwrap();
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!(found.access_token().secret(), "second");
        assert_eq!(found.refresh_token().unwrap().secret(), "refresh \"me\"");
        assert_eq!((found.issuer().as_str(), found.resource().as_str()), (ISSUER, RESOURCE));
        assert_eq!((found.client_id(), found.is_bound()), (Some("me"), false));
        assert_eq!((found.asked().to_string(), found.scopes().unwrap().to_string()), ("a b".into(), "a".into()));
        assert_eq!((found.obtained(), found.expires()), (UnixTime::from_millis(1_234), Some(UnixTime::from_secs(99))));
        assert!(found.authorization_for(&Url::parse(RESOURCE).unwrap()).is_some());

        assert_eq!(read(&store, &format!("{RESOURCE}/below")).unwrap(), ["second"]);
        for other in ["https://mcp.example.com/other", "https://mcp.example.com:444/mcp", "https://evil.example/mcp"] {
            assert!(read(&store, other).unwrap().is_empty(), "{other}");
        }
        store.lock_token(found.issuer(), found.resource()).await.unwrap().remove().unwrap();
        assert!(read(&store, RESOURCE).unwrap().is_empty());
    }
}

/// I7, I8: a token that is bound to a key comes back with the key.
#[tokio::test]
async fn a_bound_token_keeps_its_key() {
    let scratch = Scratch::new();
    let store = CredentialStore::at(scratch.path());
    let binding = Arc::new(DpopBinding::generate().unwrap());
    let whole = token("bound");
    let parts = whole.parts();
    let bound = ResourceToken::from_parts(Parts {
        access_token: parts.access_token.clone(),
        scheme: Scheme::Dpop(binding.clone()),
        refresh_token: None,
        origin: parts.origin.clone(),
        issuer: parts.issuer.clone(),
        resource: parts.resource.clone(),
        client_id: None,
        asked: Scopes::empty(),
        granted: None,
        obtained: parts.obtained,
        expires: None,
    });
    write(&store, &bound).await;
    let found = store.tokens(&StartUrl::parse(RESOURCE).unwrap()).unwrap().remove(0);
    assert_eq!(found.binding().unwrap().key().thumbprint(), binding.key().thumbprint());
    assert_eq!((found.expires(), found.scopes(), found.client_id()), (None, None, None));
}

/// H3: registrations are kept for each issuer and redirect, with all that the server answered.
#[tokio::test]
async fn registrations_are_kept_apart() {
    let scratch = Scratch::new();
    for store in both(&scratch) {
        let redirect = Url::parse("http://127.0.0.1:1/callback").unwrap();
        let answer = r#"{"client_id":"c","client_secret":"s","client_secret_expires_at":7,"registration_access_token":"r","x":{"y":1}}"#;
        let registered = Registered {
            issuer: issuer(ISSUER),
            redirect_uri: Some(redirect.to_string()),
            asked: Scopes::parse("a b").unwrap(),
            response: ClientRegistrationResponse::parse(answer.as_bytes()).unwrap(),
        };
        assert!(!store.knows(&issuer(ISSUER)));
        store.lock_client(&issuer(ISSUER), &redirect).await.unwrap().write(&registered).unwrap();
        assert!(store.knows(&issuer(ISSUER)) && !store.knows(&issuer("https://other.example")));

        let entry = store.lock_client(&issuer(ISSUER), &redirect).await.unwrap();
        let kept = entry.read(&issuer(ISSUER)).unwrap().unwrap();
        assert_eq!((kept.response, kept.asked), (registered.response.clone(), registered.asked.clone()));
        assert!(entry.read(&issuer("https://other.example")).unwrap().is_none());
        let other_redirect = Url::parse("http://127.0.0.1:2/callback").unwrap();
        let other = store.lock_client(&issuer(ISSUER), &other_redirect).await.unwrap();
        assert!(other.read(&issuer(ISSUER)).unwrap().is_none());
        assert!(store.client(&issuer(ISSUER), "c").unwrap().is_some());
        assert!(store.client(&issuer(ISSUER), "d").unwrap().is_none());
        assert!(store.client(&issuer("https://other.example"), "c").unwrap().is_none());
    }
}

/// The closest resource comes first, then the latest token.
#[tokio::test]
async fn the_closest_match_comes_first() {
    let store = CredentialStore::in_memory();
    write(&store, &token_at(ISSUER, "https://mcp.example.com/", "wide")).await;
    write(&store, &token_at(ISSUER, RESOURCE, "close")).await;
    assert_eq!(read(&store, &format!("{RESOURCE}/v1")).unwrap(), ["close", "wide"]);
    assert_eq!(read(&store, "https://mcp.example.com/other").unwrap(), ["wide"]);
}

/// I7: of two handles on one entry, one has the lock; the other gets it when the first lets go, or is told.
#[tokio::test(start_paused = true)]
async fn one_holds_an_entry_at_a_time() {
    let scratch = Scratch::new();
    let memory = CredentialStore::in_memory();
    let pairs = [(CredentialStore::at(scratch.path()), CredentialStore::at(scratch.path())), (memory.clone(), memory)];
    for (first, second) in pairs {
        let (name, resource) = (issuer(ISSUER), ResourceUri::parse(RESOURCE).unwrap());
        let held = first.lock_token(&name, &resource).await.unwrap();
        // Others are not in the way.
        second.lock_token(&issuer("https://other.example"), &resource).await.unwrap();
        second.lock_sign_in(&StartUrl::parse(RESOURCE).unwrap()).await.unwrap();
        let refused = second.lock_token(&name, &resource).await.err().unwrap();
        assert_eq!(refused.code(), "store.busy");
        let waiting = tokio::spawn(async move { second.lock_token(&name, &resource).await.is_ok() });
        tokio::task::yield_now().await;
        drop(held);
        assert!(waiting.await.unwrap());
    }
}

/// I7: who waits for another process's sign-in waits for as long as a person has.
#[tokio::test(start_paused = true)]
async fn a_sign_in_is_waited_for() {
    let scratch = Scratch::new();
    for store in both(&scratch) {
        let start = StartUrl::parse(RESOURCE).unwrap();
        let held = store.lock_sign_in(&start).await.unwrap();
        let waiting = tokio::spawn(async move { store.lock_sign_in(&start).await.is_ok() });
        tokio::time::sleep(crate::LoopbackRedirect::LIMIT).await;
        drop(held);
        assert!(waiting.await.unwrap());
    }
}

const WRITER: &str = "PORTCULLIS_TEST_STORE_WRITER";

/// I7: a process that is killed in the middle of its writes leaves a whole entry, whenever it dies.
#[cfg(unix)]
#[tokio::test]
async fn a_killed_writer_leaves_a_whole_entry() {
    if let Some(directory) = std::env::var_os(WRITER) {
        let store = CredentialStore::at(directory);
        // Not without end, should nobody be left to kill it.
        for number in 0..10_000 {
            write(&store, &token(&format!("{number}-{}", "x".repeat(100_000)))).await;
        }
    }
    let scratch = Scratch::new();
    let store = CredentialStore::at(scratch.path());
    for _ in 0..8 {
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::tests::a_killed_writer_leaves_a_whole_entry", "--nocapture"])
            .env(WRITER, scratch.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // It writes again and again: seen once, it is in the middle of the next.
        let seen = read(&store, RESOURCE).unwrap();
        while read(&store, RESOURCE).unwrap() == seen {
            tokio::task::yield_now().await;
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        let [left] = &read(&store, RESOURCE).unwrap()[..] else { panic!("no entry") };
        assert!(left.ends_with(&"x".repeat(100_000)));
        // The lock went with the process.
        write(&store, &token("mine")).await;
        assert_eq!(read(&store, RESOURCE).unwrap(), ["mine"]);
    }
}

const DIRECTORY: &str = "PORTCULLIS_TEST_USER_DIRECTORY";

/// The environment names the directory, by the first of its variables that has an absolute path.
#[cfg(unix)]
#[test]
fn the_environment_names_the_directory() {
    // In a process of its own: an environment is of a whole process.
    if let Some(expected) = std::env::var_os(DIRECTORY) {
        let expected = Some(PathBuf::from(expected)).filter(|path| path.is_absolute());
        assert_eq!(CredentialStore::user_directory(), expected);
        return;
    }
    let (state, home, local) = (("XDG_STATE_HOME", "/state"), ("HOME", "/home/me"), ("LOCALAPPDATA", "/local"));
    for (environment, expected) in [
        (vec![state, home, local], "/state/portcullis"),
        (vec![("XDG_STATE_HOME", "state"), home], "/home/me/.local/state/portcullis"),
        (vec![local], "/local/portcullis"),
        (vec![("HOME", "")], "none"),
    ] {
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::tests::the_environment_names_the_directory"])
            .env_clear()
            .envs(environment.iter().copied())
            .env(DIRECTORY, expected)
            .stdout(std::process::Stdio::null())
            .status();
        assert!(status.unwrap().success(), "{environment:?}");
    }
}

/// J3: nothing of an entry shows in Debug, and too large a token is not written.
#[tokio::test]
async fn secrets_stay_inside() {
    let scratch = Scratch::new();
    for (store, told) in both(&scratch).into_iter().zip(["entries: 1", "Directory"]) {
        write(&store, &token("hush")).await;
        let shown = format!("{store:?}");
        assert!(!shown.contains("hush") && shown.contains(told), "{shown}");
    }
    let store = CredentialStore::at(scratch.path());
    let large = token(&"x".repeat(300 * 1024));
    let entry = store.lock_token(large.issuer(), large.resource()).await.unwrap();
    assert_eq!(entry.write(&large), Err(StoreError::TooLarge));
    assert_eq!(entry.read().unwrap().unwrap().access_token().secret(), "hush");
}

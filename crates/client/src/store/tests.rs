use std::{fs, process::Command};

use portcullis_metadata::{AccessToken, ClientRegistrationResponse, Scopes, Secret, UnixTime};

use super::*;
use crate::{
    dpop::DpopBinding,
    testing::{ISSUER, RESOURCE, Scratch},
    token::{Parts, Scheme},
};

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

fn entry_file(scratch: &Scratch) -> PathBuf {
    let mut files = fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|extension| extension == "json")).unwrap()
}

/// I7: files are their owner's alone, and one that is not is refused and left alone.
#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_it() {
    use std::os::unix::fs::PermissionsExt as _;

    let scratch = Scratch::new();
    let store = CredentialStore::at(scratch.path().join("deep/below"));
    write(&store, &token("hush")).await;
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(scratch.path().join("deep/below")), 0o700);
    for entry in fs::read_dir(scratch.path().join("deep/below")).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(path.clone()), 0o600, "{}", path.display());
    }

    let store = CredentialStore::at(scratch.path());
    write(&store, &token("hush")).await;
    let file = entry_file(&scratch);
    for mode in [0o640, 0o604, 0o620] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(read(&store, RESOURCE), Err(StoreError::Exposed { path: file.clone() }));
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(read(&store, RESOURCE).unwrap(), ["hush"]);
}

/// I7: what cannot be understood is renamed and reported once; nothing of it is lost.
#[tokio::test]
async fn a_damaged_file_is_kept_aside() {
    let scratch = Scratch::new();
    let store = CredentialStore::at(scratch.path());
    write(&store, &token("hush")).await;
    let (file, whole) = (entry_file(&scratch), fs::read_to_string(entry_file(&scratch)).unwrap());
    let damages = [
        String::new(),
        whole[..whole.len() / 2].to_owned(),
        whole.replacen("\"version\":1", "\"version\":2", 1),
        whole.replacen(ISSUER, "ftp://auth.example.com", 1),
        // A token that would go to another origin than its resource's.
        whole.replacen("\"origin\":\"https://mcp.example.com\"", "\"origin\":\"https://evil.example\"", 1),
        whole.replacen("\"hush\"", "\"\"", 1),
        "x".repeat(300 * 1024),
        // As the entry was, and too large all the same.
        format!("{}{whole}", " ".repeat(300 * 1024)),
    ];
    let mut aside = Vec::new();
    for (number, damage) in damages.iter().enumerate() {
        assert_ne!(*damage, whole, "{number}");
        fs::write(&file, damage).unwrap();
        let error = read(&store, RESOURCE).unwrap_err();
        let StoreError::Corrupted { path, kept } = &error else { panic!("{error:?}") };
        assert_eq!(*path, file);
        assert_eq!(fs::read_to_string(kept).unwrap(), *damage);
        aside.push(kept.clone());
        assert!(!error.to_string().contains("hush"));
        assert!(read(&store, RESOURCE).unwrap().is_empty());
        // Made again with the owner's mode.
        write(&store, &token("hush")).await;
        assert_eq!(read(&store, RESOURCE).unwrap(), ["hush"]);
    }

    // None took the place of another.
    for (kept, damage) in aside.iter().zip(&damages) {
        assert_eq!(fs::read_to_string(kept).unwrap(), *damage);
    }

    // Under the lock too.
    fs::write(&file, "{").unwrap();
    let entry = store.lock_token(&issuer(ISSUER), &ResourceUri::parse(RESOURCE).unwrap()).await.unwrap();
    assert_eq!(entry.read().unwrap_err().code(), "store.corrupted");
    assert!(entry.read().unwrap().is_none());
}

/// I7: a damaged entry of one resource is not in the way of another's.
#[tokio::test]
async fn a_damaged_file_troubles_its_own_resource_alone() {
    let scratch = Scratch::new();
    let store = CredentialStore::at(scratch.path());
    write(&store, &token("damaged")).await;
    fs::write(entry_file(&scratch), "{").unwrap();
    let other = "https://other.example/mcp";
    write(&store, &token_at(ISSUER, other, "whole")).await;
    assert_eq!(read(&store, other).unwrap(), ["whole"]);
    assert_eq!(read(&store, RESOURCE).unwrap_err().code(), "store.corrupted");
}

/// I7: what the file system refuses is an error, and not the same as no entry.
#[tokio::test]
async fn what_the_file_system_refuses_is_told() {
    let scratch = Scratch::new();
    let store = CredentialStore::at(scratch.path());
    write(&store, &token("hush")).await;
    let file = entry_file(&scratch);
    assert_eq!(read(&CredentialStore::at(&file), RESOURCE).unwrap_err().code(), "store.io");

    let entry = store.lock_token(&issuer(ISSUER), &ResourceUri::parse(RESOURCE).unwrap()).await.unwrap();
    entry.remove().unwrap();
    entry.remove().unwrap();
    fs::create_dir(&file).unwrap();
    assert_eq!(entry.remove().unwrap_err().code(), "store.io");
    fs::remove_dir(&file).unwrap();

    // What cannot be removed cannot be written over.
    let beside = file.with_extension("tmp");
    fs::create_dir(&beside).unwrap();
    assert_eq!(entry.write(&token("new")).unwrap_err().code(), "store.io");
    fs::remove_dir(&beside).unwrap();

    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&file, &file).unwrap();
        assert_eq!(read(&store, RESOURCE).unwrap_err().code(), "store.io");
    }
}

/// An entry of 256 KiB is the largest that is written, and comes back whole.
#[tokio::test]
async fn the_largest_entry_comes_back_whole() {
    let scratch = Scratch::new();
    let (directory, name) = (Directory::new(scratch.path().to_owned()), Name("largest".into()));
    let _lock = directory.lock(&name, SHORT).await.unwrap();
    let largest = vec![b'x'; 256 * 1024];
    directory.write(&name, &largest).unwrap();
    assert_eq!(*directory.read(&name).unwrap().unwrap(), largest);
    assert_eq!(directory.write(&name, &[&largest[..], b"x"].concat()), Err(StoreError::TooLarge));
}

/// I7: what a killed writer has left beside the entry is no entry, and stops nobody.
#[tokio::test]
async fn half_a_file_is_no_entry() {
    let scratch = Scratch::new();
    let store = CredentialStore::at(scratch.path());
    write(&store, &token("old")).await;
    let beside = entry_file(&scratch).with_extension("tmp");
    fs::write(&beside, "{\"version\":1,\"acc").unwrap();
    assert_eq!(read(&store, RESOURCE).unwrap(), ["old"]);
    write(&store, &token("new")).await;
    assert_eq!(read(&store, RESOURCE).unwrap(), ["new"]);
    assert!(!beside.exists());
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

//! Entries are stored and found separately, under locks that exclude each other.

use std::{fs, process::Command};

use portcullis_metadata::{
    AccessToken, ResourceUri, Scopes, Secret, UnixTime, client::ClientRegistrationResponse,
};

use super::*;
use crate::{
    testing::{ISSUER, RESOURCE, ScratchDirectory},
    token::{
        dpop::DpopBinding,
        resource_token::{Parts, Scheme},
    },
};

mod files;
mod listing;
mod registrations;
mod unsaved;

const ROOT: &str = "https://mcp.example.com/";

/// The variable with the directory to which [`a_killed_writer_leaves_a_complete_entry`] writes in
/// its own process.
const WRITER: &str = "PORTCULLIS_TEST_STORE_WRITER";
/// The variable with the directory that [`the_environment_determines_the_directory`] expects in its
/// own process.
const DIRECTORY: &str = "PORTCULLIS_TEST_USER_DIRECTORY";

fn issuer(text: &str) -> Issuer {
    Issuer::parse(text).unwrap()
}

/// Returns a token of the resource that was obtained for the resource's own URL.
fn token_at(issuer_text: &str, resource: &str, access_token: &str) -> ResourceToken {
    obtained_for(Some(resource), issuer_text, resource, access_token)
}

/// A token of this issuer and resource, obtained from this start URL.
fn obtained_for(
    start: Option<&str>,
    issuer_text: &str,
    resource: &str,
    access_token: &str,
) -> ResourceToken {
    let resource = ResourceUri::parse(resource).unwrap();
    ResourceToken::from_parts(Parts {
        start: start.map(|start| StartUrl::parse(start).unwrap()),
        access_token: AccessToken::new(access_token),
        scheme: Scheme::Bearer,
        refresh_token: Some(Secret::new("refresh \"me\"")),
        origin: resource.url().origin(),
        issuer: issuer(issuer_text),
        resource,
        is_unbound: false,
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
    store.lock_token(token).await.unwrap().write(token).unwrap();
}

fn read(store: &CredentialStore, start: &str) -> Result<Vec<String>, StoreError> {
    let tokens = store.tokens(&StartUrl::parse(start).unwrap())?;
    Ok(tokens
        .iter()
        .map(|token| token.access_token().secret().to_owned())
        .collect())
}

fn both_stores(scratch: &ScratchDirectory) -> [CredentialStore; 2] {
    [
        CredentialStore::in_memory(),
        CredentialStore::in_directory(scratch.path()),
    ]
}

/// I7, H4: all members of a token are stored, and it is found only for its own resource.
#[tokio::test]
async fn a_token_is_stored_and_found() {
    let scratch = ScratchDirectory::new();
    for store in both_stores(&scratch) {
        assert!(read(&store, RESOURCE).unwrap().is_empty());
        write(&store, &token("first")).await;
        write(&store, &token("second")).await;
        let found = store.tokens(&StartUrl::parse(RESOURCE).unwrap()).unwrap();
        let [found] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!(found.access_token().secret(), "second");
        assert_eq!(found.refresh_token().unwrap().secret(), "refresh \"me\"");
        assert_eq!(found.issuer().as_str(), ISSUER);
        assert_eq!(found.resource().as_str(), RESOURCE);
        assert_eq!(found.client_id(), Some("me"));
        assert!(!found.is_dpop_bound());
        assert_eq!(found.asked().to_string(), "a b");
        assert_eq!(found.scopes().unwrap().to_string(), "a");
        assert_eq!(found.obtained_at(), UnixTime::from_millis(1_234));
        assert_eq!(found.expires_at(), Some(UnixTime::from_secs(99)));
        assert!(
            found
                .authorization_for(&Url::parse(RESOURCE).unwrap())
                .is_some()
        );

        assert_eq!(found.start_url().unwrap().url().as_str(), RESOURCE);
        assert_eq!(read(&store, &format!("{RESOURCE}/")).unwrap(), ["second"]);
        let below = format!("{RESOURCE}/below");
        for other in [
            below.as_str(),
            "https://mcp.example.com/",
            "https://mcp.example.com/mcp?a=b",
            "https://mcp.example.com/other",
            "https://mcp.example.com:444/mcp",
            "https://evil.example/mcp",
        ] {
            assert!(read(&store, other).unwrap().is_empty(), "{other}");
        }
        store.lock_token(found).await.unwrap().remove().unwrap();
        assert!(read(&store, RESOURCE).unwrap().is_empty());
    }
}

/// I7, I8: a sender-constrained token is stored with its key.
#[tokio::test]
async fn a_bound_token_keeps_its_key() {
    let scratch = ScratchDirectory::new();
    let store = CredentialStore::in_directory(scratch.path());
    let binding = Arc::new(DpopBinding::generate().unwrap());
    let bound = ResourceToken::from_parts(Parts {
        scheme: Scheme::Dpop(binding.clone()),
        refresh_token: None,
        client_id: None,
        asked: Scopes::empty(),
        granted: None,
        expires: None,
        ..token("bound").parts().clone()
    });
    write(&store, &bound).await;
    let found = store
        .tokens(&StartUrl::parse(RESOURCE).unwrap())
        .unwrap()
        .remove(0);
    assert_eq!(
        found.binding().unwrap().key().thumbprint(),
        binding.key().thumbprint()
    );
    assert_eq!(found.expires_at(), None);
    assert_eq!(found.scopes(), None);
    assert_eq!(found.client_id(), None);
}

/// H4: two start URLs with the same resource have separate tokens. For the resource's own URL, its
/// own token comes first, then theirs.
#[tokio::test]
async fn start_urls_below_one_resource_have_their_own_tokens() {
    let one = "https://mcp.example.com/one/mcp";
    let other = "https://mcp.example.com/other/mcp";
    let scratch = ScratchDirectory::new();
    for store in both_stores(&scratch) {
        write(&store, &obtained_for(Some(one), ISSUER, ROOT, "one")).await;
        assert_eq!(read(&store, one).unwrap(), ["one"]);
        assert!(read(&store, other).unwrap().is_empty());
        write(&store, &obtained_for(Some(other), ISSUER, ROOT, "other")).await;
        write(&store, &token_at(ISSUER, ROOT, "own")).await;
        assert_eq!(read(&store, one).unwrap(), ["one"]);
        assert_eq!(read(&store, other).unwrap(), ["other"]);
        let at_root = read(&store, ROOT).unwrap();
        assert_eq!(at_root[0].as_str(), "own");
        assert_eq!(at_root.len(), 3);
        assert!(
            read(&store, "https://mcp.example.com/evil/mcp")
                .unwrap()
                .is_empty()
        );
    }
}

/// H4: a token without a start URL, as in the previous format, is used only for its resource's own
/// URL.
#[tokio::test]
async fn a_token_of_the_previous_format_is_for_its_resource_only() {
    let scratch = ScratchDirectory::new();
    let store = CredentialStore::in_directory(scratch.path());
    write(&store, &obtained_for(None, ISSUER, ROOT, "old")).await;
    let file = files::entry_file(&scratch);
    let written = fs::read_to_string(&file).unwrap();
    fs::write(&file, written.replacen("\"start\":null,", "", 1)).unwrap();
    assert_ne!(fs::read_to_string(&file).unwrap(), written);
    assert_eq!(read(&store, "https://mcp.example.com").unwrap(), ["old"]);
    assert!(read(&store, RESOURCE).unwrap().is_empty());
    // A new token replaces the entry.
    write(&store, &token_at(ISSUER, ROOT, "new")).await;
    assert_eq!(read(&store, ROOT).unwrap(), ["new"]);
}

/// H4: an entry in a file with another name is ignored, because it could be neither locked nor
/// removed.
#[tokio::test]
async fn an_entry_is_found_only_under_its_own_name() {
    let scratch = ScratchDirectory::new();
    let store = CredentialStore::in_directory(scratch.path());
    let own = token("hush");
    let other = token_at("https://other.example", RESOURCE, "planted");
    let file = |token: &ResourceToken| {
        Directory::new(scratch.path().to_owned()).entry(&Name::token(token))
    };
    write(&store, &own).await;
    fs::rename(file(&own), file(&own).with_extension("0.json")).unwrap();
    assert!(read(&store, RESOURCE).unwrap().is_empty());

    write(&store, &other).await;
    fs::rename(file(&other), file(&own)).unwrap();
    assert!(read(&store, RESOURCE).unwrap().is_empty());
    assert!(
        store
            .lock_token(&own)
            .await
            .unwrap()
            .read()
            .unwrap()
            .is_none()
    );
}

/// I7: of two handles on one entry, one has the lock. The other gets it when it is released, or
/// times out.
#[tokio::test(start_paused = true)]
async fn one_lock_per_entry() {
    let scratch = ScratchDirectory::new();
    let memory = CredentialStore::in_memory();
    let pairs = [
        (
            CredentialStore::in_directory(scratch.path()),
            CredentialStore::in_directory(scratch.path()),
        ),
        (memory.clone(), memory),
    ];
    for (first, second) in pairs {
        let held = first.lock_token(&token("held")).await.unwrap();
        // Other entries can be locked.
        second
            .lock_token(&token_at("https://other.example", RESOURCE, "other"))
            .await
            .unwrap();
        second
            .lock_sign_in(&StartUrl::parse(RESOURCE).unwrap())
            .await
            .unwrap();
        let rejected = second.lock_token(&token("held")).await.err().unwrap();
        assert_eq!(rejected.code(), "store.busy");
        let waiting = tokio::spawn(async move { second.lock_token(&token("held")).await.is_ok() });
        tokio::task::yield_now().await;
        drop(held);
        assert!(waiting.await.unwrap());
    }
}

/// I7: the wait for another process's sign-in lasts at least as long as the timeout of the loopback
/// redirect.
#[tokio::test(start_paused = true)]
async fn the_wait_for_a_sign_in() {
    let scratch = ScratchDirectory::new();
    for store in both_stores(&scratch) {
        let start = StartUrl::parse(RESOURCE).unwrap();
        let held = store.lock_sign_in(&start).await.unwrap();
        let waiting = tokio::spawn(async move { store.lock_sign_in(&start).await.is_ok() });
        tokio::time::sleep(crate::LoopbackRedirect::TIMEOUT).await;
        drop(held);
        assert!(waiting.await.unwrap());
    }
}

/// I7: a process that is killed during a write leaves a complete entry.
#[cfg(unix)]
#[tokio::test]
async fn a_killed_writer_leaves_a_complete_entry() {
    if let Some(directory) = std::env::var_os(WRITER) {
        let store = CredentialStore::in_directory(directory);
        // Bounded, in case the test does not kill this process.
        for number in 0..10_000 {
            write(&store, &token(&format!("{number}-{}", "x".repeat(100_000)))).await;
        }
        return;
    }
    let scratch = ScratchDirectory::new();
    let store = CredentialStore::in_directory(scratch.path());
    for _ in 0..8 {
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "store::tests::a_killed_writer_leaves_a_complete_entry",
                "--nocapture",
            ])
            .env(WRITER, scratch.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // The writer writes continuously, so after the first visible entry it is writing the next
        // one.
        let seen = read(&store, RESOURCE).unwrap();
        while read(&store, RESOURCE).unwrap() == seen {
            assert_eq!(writer.try_wait().unwrap(), None, "the writer ended");
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        let [left] = &read(&store, RESOURCE).unwrap()[..] else {
            panic!("no entry")
        };
        assert!(left.ends_with(&"x".repeat(100_000)));
        // The lock ended with the process.
        write(&store, &token("mine")).await;
        assert_eq!(read(&store, RESOURCE).unwrap(), ["mine"]);
    }
}

/// The first environment variable with an absolute path determines the directory.
#[cfg(unix)]
#[test]
fn the_environment_determines_the_directory() {
    // The environment applies to a whole process, so each case runs in its own.
    if let Some(expected) = std::env::var_os(DIRECTORY) {
        let expected = Some(PathBuf::from(expected)).filter(|path| path.is_absolute());
        assert_eq!(CredentialStore::user_directory(), expected);
        return;
    }
    let state = ("XDG_STATE_HOME", "/state");
    let home = ("HOME", "/home/me");
    let local = ("LOCALAPPDATA", "/local");
    for (environment, expected) in [
        (vec![state, home, local], "/state/portcullis"),
        (
            vec![("XDG_STATE_HOME", "state"), home],
            "/home/me/.local/state/portcullis",
        ),
        (vec![local], "/local/portcullis"),
        (vec![("HOME", "")], "none"),
    ] {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "store::tests::the_environment_determines_the_directory",
            ])
            .env_clear()
            .envs(environment.iter().copied())
            .env(DIRECTORY, expected)
            .stderr(std::process::Stdio::inherit())
            .output()
            .unwrap();
        let report = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{environment:?}: {report}");
        // A name without a test is no failure.
        assert!(report.contains("1 passed"), "{report}");
    }
}

/// J3: Debug shows nothing of an entry.
#[tokio::test]
async fn debug_is_redacted() {
    let scratch = ScratchDirectory::new();
    for (store, part) in both_stores(&scratch)
        .into_iter()
        .zip(["entries: 1", "Directory"])
    {
        write(&store, &token("hush")).await;
        let shown = format!("{store:?}");
        assert!(!shown.contains("hush"), "{shown}");
        assert!(shown.contains(part), "{shown}");
    }
}

/// A token that is too large for the directory is kept in memory; one that is too large for the
/// buffer is rejected.
#[tokio::test]
async fn large_tokens_stay_in_memory() {
    let scratch = ScratchDirectory::new();
    let store = CredentialStore::in_directory(scratch.path());
    let large = token(&"x".repeat(300 * 1024));
    let entry = store.lock_token(&large).await.unwrap();
    entry.write(&large).unwrap();
    assert_eq!(store.write_failure(), Some(StoreError::TooLarge));
    assert!(entry.read().unwrap().unwrap().is_same(&large));
    assert!(
        read(&CredentialStore::in_directory(scratch.path()), RESOURCE)
            .unwrap()
            .is_empty()
    );

    let too_large = token(&"x".repeat(600 * 1024));
    for entry in [
        entry,
        CredentialStore::in_memory()
            .lock_token(&too_large)
            .await
            .unwrap(),
    ] {
        assert_eq!(entry.write(&too_large), Err(StoreError::TooLarge));
    }
}

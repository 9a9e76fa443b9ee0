//! Registrations have separate entries, in the directory or in memory.

use std::io::ErrorKind;

use super::*;

const OTHER_ISSUER: &str = "https://other.example";

fn redirect() -> Url {
    Url::parse("http://127.0.0.1:7/callback").unwrap()
}

/// A registration at [`ISSUER`] for [`redirect`], with this response.
fn registered(response: &str) -> Registered {
    Registered {
        issuer: issuer(ISSUER),
        redirect_uri: Some(redirect().to_string()),
        asked: Scopes::empty(),
        response: ClientRegistrationResponse::parse(response.as_bytes()).unwrap(),
    }
}

fn with_client_id(client_id: &str) -> Registered {
    registered(&format!(r#"{{"client_id":"{client_id}"}}"#))
}

/// Locks the registration at [`ISSUER`] for [`redirect`].
async fn lock(store: &CredentialStore) -> Result<ClientEntry, StoreError> {
    store.lock_client(&issuer(ISSUER), &redirect(), None).await
}

/// H3: registrations are stored per issuer and redirect URI, with all members of the response.
#[tokio::test]
async fn registrations_are_separate() {
    let scratch = ScratchDirectory::new();
    for store in both_stores(&scratch) {
        let response = r#"{"client_id":"c","client_secret":"s","client_secret_expires_at":7,"registration_access_token":"r","x":{"y":1}}"#;
        let client = Registered {
            asked: Scopes::parse("a b").unwrap(),
            ..registered(response)
        };
        assert!(!store.knows(&issuer(ISSUER)));
        lock(&store).await.unwrap().write(&client).unwrap();
        assert!(store.knows(&issuer(ISSUER)));
        assert!(!store.knows(&issuer(OTHER_ISSUER)));

        let entry = lock(&store).await.unwrap();
        let kept = entry.read(&issuer(ISSUER)).unwrap().unwrap();
        assert_eq!(kept.response, client.response);
        assert_eq!(kept.asked, client.asked);
        assert!(entry.read(&issuer(OTHER_ISSUER)).unwrap().is_none());
        let other_redirect = Url::parse("http://127.0.0.1:2/callback").unwrap();
        let other = store
            .lock_client(&issuer(ISSUER), &other_redirect, None)
            .await
            .unwrap();
        assert!(other.read(&issuer(ISSUER)).unwrap().is_none());
        assert!(store.client(&issuer(ISSUER), "c").unwrap().is_some());
        assert!(store.client(&issuer(ISSUER), "d").unwrap().is_none());
        assert!(store.client(&issuer(OTHER_ISSUER), "c").unwrap().is_none());
    }
}

/// H3: a registration for one start URL only, and a client that the user entered, have entries of
/// their own.
#[tokio::test]
async fn exclusive_and_entered_clients_are_separate() {
    let scratch = ScratchDirectory::new();
    let start = Url::parse(RESOURCE).unwrap();
    let other_start = Url::parse(ROOT).unwrap();
    for store in both_stores(&scratch) {
        let entries = async || {
            [
                lock(&store).await.unwrap(),
                store
                    .lock_client(&issuer(ISSUER), &redirect(), Some(&start))
                    .await
                    .unwrap(),
                store
                    .lock_client(&issuer(ISSUER), &redirect(), Some(&other_start))
                    .await
                    .unwrap(),
                store
                    .lock_client_by_hand(&issuer(ISSUER), None)
                    .await
                    .unwrap(),
                store
                    .lock_client_by_hand(&issuer(ISSUER), Some(&start))
                    .await
                    .unwrap(),
            ]
        };
        for (number, entry) in entries().await.iter().enumerate() {
            assert!(entry.read(&issuer(ISSUER)).unwrap().is_none(), "{number}");
            entry.write(&with_client_id(&number.to_string())).unwrap();
        }
        for (number, entry) in entries().await.iter().enumerate() {
            let stored = entry.read(&issuer(ISSUER)).unwrap().unwrap();
            assert_eq!(stored.response.client_id, number.to_string());
        }
        assert_eq!(store.forget_clients(&issuer(ISSUER)).await.unwrap(), 5);
    }
}

/// `clients_in_directory` keeps registrations in the directory and tokens in memory. If the
/// directory cannot be written, both are in memory.
#[tokio::test]
async fn registrations_can_be_kept_without_tokens() {
    let directory = ScratchDirectory::new();
    for (folder, refused) in [("usable", None), ("full", Some(ErrorKind::StorageFull))] {
        let path = directory.path().join(folder);
        let store = CredentialStore::clients_in_directory(&path);
        store.refuse_writes(refused);
        write(&store, &token("a")).await;
        lock(&store)
            .await
            .unwrap()
            .write(&with_client_id("me"))
            .unwrap();
        assert!(store.knows(&issuer(ISSUER)));
        assert!(store.client(&issuer(ISSUER), "me").unwrap().is_some());
        assert_eq!(read(&store, RESOURCE).unwrap(), ["a"]);

        let next = CredentialStore::clients_in_directory(&path);
        assert_eq!(
            next.client(&issuer(ISSUER), "me").unwrap().is_some(),
            refused.is_none()
        );
        // This store would read tokens from the directory.
        assert!(
            read(&CredentialStore::in_directory(&path), RESOURCE)
                .unwrap()
                .is_empty()
        );
    }
}

/// A registration that could not be written is used from memory, and counts as one with its earlier
/// version in the directory. When the directory can be written again, the later version there is
/// the only one.
#[tokio::test]
async fn a_registration_in_memory_is_replaced_by_one_in_the_directory() {
    let directory = ScratchDirectory::new();
    let store = CredentialStore::clients_in_directory(directory.path());
    for (client_id, refused) in [
        ("first", None),
        ("in-memory", Some(ErrorKind::StorageFull)),
        ("last", None),
    ] {
        store.refuse_writes(refused);
        lock(&store)
            .await
            .unwrap()
            .write(&with_client_id(client_id))
            .unwrap();
        let kept = lock(&store)
            .await
            .unwrap()
            .read(&issuer(ISSUER))
            .unwrap()
            .unwrap();
        assert_eq!(kept.response.client_id, client_id);
    }
    for earlier in ["first", "in-memory"] {
        assert!(
            store.client(&issuer(ISSUER), earlier).unwrap().is_none(),
            "{earlier}"
        );
    }
    store.refuse_writes(Some(ErrorKind::StorageFull));
    lock(&store)
        .await
        .unwrap()
        .write(&with_client_id("in-memory"))
        .unwrap();
    assert_eq!(store.forget_clients(&issuer(ISSUER)).await.unwrap(), 1);
    assert!(!store.knows(&issuer(ISSUER)));
}

/// An entry that another process has locked is not changed in memory instead.
#[tokio::test(start_paused = true)]
async fn a_locked_registration_is_busy() {
    let directory = ScratchDirectory::new();
    let [one, other] = [(); 2].map(|()| CredentialStore::clients_in_directory(directory.path()));
    let held = lock(&one).await.unwrap();
    assert!(matches!(lock(&other).await, Err(StoreError::Busy { .. })));
    drop(held);
    assert!(lock(&other).await.is_ok());
}

/// A lock that was taken without a usable directory excludes the other tasks of this process, and
/// writes to memory, even when the directory can be used again: other processes could hold the lock
/// file.
#[tokio::test(start_paused = true)]
async fn a_lock_without_a_directory_writes_to_memory() {
    let scratch = ScratchDirectory::created();
    let path = scratch.path().join("store");
    fs::write(&path, "a file, so that the directory cannot be created").unwrap();
    let store = CredentialStore::clients_in_directory(&path);
    let held = lock(&store).await.unwrap();

    fs::remove_file(&path).unwrap();
    assert!(matches!(lock(&store).await, Err(StoreError::Busy { .. })));
    held.write(&with_client_id("me")).unwrap();
    assert!(held.read(&issuer(ISSUER)).unwrap().is_some());
    assert!(!CredentialStore::clients_in_directory(&path).knows(&issuer(ISSUER)));
}

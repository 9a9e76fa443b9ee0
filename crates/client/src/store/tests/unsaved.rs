//! Entries that cannot be written are used from memory and written later.

use std::io::ErrorKind;

use super::*;

/// I5: an entry that cannot be written is kept in memory and written when there is space again.
/// Only then can other stores of the directory read it.
#[tokio::test(start_paused = true)]
async fn unwritable_entries_are_kept_and_written_later() {
    let scratch = ScratchDirectory::new();
    let store = CredentialStore::in_directory(scratch.path());
    let other = CredentialStore::in_directory(scratch.path());
    write(&store, &token("old")).await;
    store.refuse_writes(Some(ErrorKind::StorageFull));
    assert_eq!(
        store.check_writable().await.unwrap_err().code(),
        "store.not_writable"
    );

    write(&store, &token("new")).await;
    assert_eq!(read(&store, RESOURCE).unwrap(), ["new"]);
    assert_eq!(read(&other, RESOURCE).unwrap(), ["old"]);
    let failure = store.write_failure().unwrap().to_string();
    assert!(failure.contains("no storage space"), "{failure}");
    assert!(failure.contains("name another directory"), "{failure}");

    store.refuse_writes(None);
    store.save_unsaved().await;
    assert_eq!(
        read(&other, RESOURCE).unwrap(),
        ["old"],
        "not every request retries the write"
    );
    tokio::time::advance(Duration::from_secs(31)).await;
    store.save_unsaved().await;
    assert_eq!(read(&other, RESOURCE).unwrap(), ["new"]);
    assert_eq!(store.write_failure(), None);

    store.check_writable().await.unwrap();
    assert!(
        fs::read_dir(scratch.path())
            .unwrap()
            .all(|file| file.unwrap().path().extension().unwrap() != "tmp")
    );
}

/// I5: a newer token of another process is not replaced by one that could not be written.
#[tokio::test(start_paused = true)]
async fn a_newer_token_is_not_replaced() {
    let scratch = ScratchDirectory::new();
    let store = CredentialStore::in_directory(scratch.path());
    store.refuse_writes(Some(ErrorKind::StorageFull));
    write(&store, &token("unsaved")).await;
    let mut parts = token("newer").parts().clone();
    parts.obtained = UnixTime::from_secs(50);
    write(
        &CredentialStore::in_directory(scratch.path()),
        &ResourceToken::from_parts(parts),
    )
    .await;
    assert_eq!(
        read(&store, RESOURCE).unwrap(),
        ["newer"],
        "the newer one is used before the unsaved one is dropped"
    );

    // The newer token is shared, so that it is not refreshed without a writable store.
    assert_eq!(
        store
            .lock_token(&token("unsaved"))
            .await
            .unwrap()
            .check_writable()
            .unwrap_err()
            .code(),
        "store.not_writable"
    );

    store.refuse_writes(None);
    tokio::time::advance(Duration::from_secs(31)).await;
    store.save_unsaved().await;
    assert_eq!(read(&store, RESOURCE).unwrap(), vec!["newer".to_owned()]);
    assert_eq!(store.write_failure(), None);
}

/// I5, I7: if the directory cannot be created, locks and entries are kept in memory.
#[tokio::test]
async fn a_directory_that_cannot_be_created() {
    // Even root cannot create a directory there.
    let store = CredentialStore::in_directory("/proc/portcullis/store");
    assert_eq!(
        store.check_writable().await.unwrap_err().code(),
        "store.not_writable"
    );
    write(&store, &token("hush")).await;
    assert_eq!(read(&store, RESOURCE).unwrap(), ["hush"]);
    let entry = store.lock_token(&token("hush")).await.unwrap();
    entry.check_writable().unwrap();
    entry.remove().unwrap();
    assert!(read(&store, RESOURCE).unwrap().is_empty());
}

//! Entries that cannot be written are kept in memory with their locks.

use std::{fs, io::ErrorKind, sync::OnceLock};

use super::*;
use crate::testing::ScratchDirectory;

fn name(text: &str) -> Name {
    Name(text.to_owned())
}

/// The later text in the alphabet is newer.
fn is_newer(one: &[u8], other: &[u8]) -> bool {
    one > other
}

fn refuse_writes(store: &Persistent, kind: Option<ErrorKind>) {
    *store.directory.injected_error.lock() = kind;
}

async fn write(store: &Persistent, entry: &str, bytes: &[u8]) {
    let lock = store.lock(&name(entry), Duration::ZERO).await.unwrap();
    store.write(&name(entry), bytes, &lock);
}

async fn save_when_due(store: &Persistent) {
    tokio::time::advance(SAVE_INTERVAL).await;
    store.save().await;
}

fn saved(store: &Persistent, entry: &str) -> Option<Vec<u8>> {
    store
        .directory
        .read(&name(entry))
        .unwrap()
        .map(|bytes| bytes.to_vec())
}

/// I5: a failure without unsaved entries ends only when the directory can be written.
#[tokio::test(start_paused = true)]
async fn a_failed_check_is_repeated() {
    let scratch = ScratchDirectory::new();
    let store = Persistent::new(Directory::new(scratch.path().to_owned()), is_newer);
    refuse_writes(&store, Some(ErrorKind::StorageFull));
    store.check_writable(&name("a")).unwrap_err();
    assert_eq!(store.failure(), None, "no entry is unsaved");
    save_when_due(&store).await;
    assert!(store.state.lock().failure.is_some());
    refuse_writes(&store, None);
    save_when_due(&store).await;
    assert!(store.state.lock().failure.is_none());
}

/// I5: an entry that cannot be written while others are saved is saved later.
#[tokio::test(start_paused = true)]
async fn a_failure_during_the_attempt_is_kept() {
    static STORE: OnceLock<Persistent> = OnceLock::new();
    /// Called while the store saves an entry: another task's write fails meanwhile.
    fn fail_meanwhile(_: &[u8], _: &[u8]) -> bool {
        let store = STORE.get().unwrap();
        refuse_writes(store, Some(ErrorKind::StorageFull));
        store.write(&name("late"), b"late", &EntryLock::exclusive(Box::new(())));
        refuse_writes(store, None);
        false
    }
    let scratch = ScratchDirectory::new();
    let store = STORE
        .get_or_init(|| Persistent::new(Directory::new(scratch.path().to_owned()), fail_meanwhile));
    write(store, "a", b"old").await;
    refuse_writes(store, Some(ErrorKind::StorageFull));
    write(store, "a", b"new").await;
    refuse_writes(store, None);

    save_when_due(store).await;
    assert_eq!(saved(store, "a"), Some(b"new".to_vec()));
    assert_eq!(saved(store, "late"), None);
    assert!(store.failure().is_some());

    save_when_due(store).await;
    assert_eq!(saved(store, "late"), Some(b"late".to_vec()));
    assert_eq!(store.failure(), None);
}

/// I5: an entry that can never be written does not keep others from being saved.
#[tokio::test(start_paused = true)]
async fn a_too_large_entry_does_not_block_others() {
    let scratch = ScratchDirectory::new();
    let store = Persistent::new(Directory::new(scratch.path().to_owned()), is_newer);
    write(&store, "large", &vec![b'x'; 300 * 1024]).await;
    refuse_writes(&store, Some(ErrorKind::StorageFull));
    write(&store, "small", b"small").await;
    refuse_writes(&store, None);
    save_when_due(&store).await;
    assert_eq!(saved(&store, "large"), None);
    assert_eq!(saved(&store, "small"), Some(b"small".to_vec()));
    assert!(store.is_unsaved(&name("large")));
    assert!(store.failure().is_some());
}

/// I7: while a lock is held that was taken without a writable directory, no other task gets the
/// lock or writes the entry, even when the directory can be written again.
#[tokio::test(start_paused = true)]
async fn a_lock_in_memory_excludes_later_holders() {
    let scratch = ScratchDirectory::created();
    let path = scratch.path().join("store");
    fs::write(&path, "a file, so that the directory cannot be created").unwrap();
    let store = Persistent::new(Directory::new(path.clone()), is_newer);
    let held = store.lock(&name("a"), Duration::ZERO).await.unwrap();
    assert_eq!(
        held.check_exclusive().unwrap_err().code(),
        "store.not_writable"
    );

    store.write(&name("a"), b"1", &held);

    fs::remove_file(&path).unwrap();
    super::super::directory::create_directory(&path).unwrap();
    save_when_due(&store).await;
    assert_eq!(
        store
            .lock(&name("a"), Duration::ZERO)
            .await
            .err()
            .unwrap()
            .code(),
        "store.busy"
    );

    store.write(&name("a"), b"2", &held);
    assert_eq!(saved(&store, "a"), None);
    drop(held);
    save_when_due(&store).await;
    assert_eq!(saved(&store, "a"), Some(b"2".to_vec()));
    assert_eq!(store.failure(), None);
}

/// I7: a lock whose lock file is gone still excludes the other tasks of this process.
#[tokio::test(start_paused = true)]
async fn a_lock_excludes_later_holders_in_memory() {
    let scratch = ScratchDirectory::new();
    let path = scratch.path().join("store");
    let store = Persistent::new(Directory::new(path.clone()), is_newer);
    let held = store.lock(&name("a"), Duration::ZERO).await.unwrap();
    held.check_exclusive().unwrap();
    fs::remove_dir_all(&path).unwrap();
    fs::write(&path, "a file, so that the directory cannot be created").unwrap();
    assert_eq!(
        store
            .lock(&name("a"), Duration::ZERO)
            .await
            .err()
            .unwrap()
            .code(),
        "store.busy"
    );
    drop(held);
    assert!(
        store
            .lock(&name("a"), Duration::ZERO)
            .await
            .unwrap()
            .check_exclusive()
            .is_err()
    );
}

/// I5: the newer one of an unsaved entry and another process's entry is used.
#[tokio::test(start_paused = true)]
async fn the_newer_entry_is_used() {
    for (unsaved, written, newer) in [(b"1", b"2", b"2"), (b"2", b"1", b"2"), (b"1", b"1", b"1")] {
        let scratch = ScratchDirectory::new();
        let store = Persistent::new(Directory::new(scratch.path().to_owned()), is_newer);
        refuse_writes(&store, Some(ErrorKind::StorageFull));
        write(&store, "a", unsaved).await;
        refuse_writes(&store, None);
        store.directory.write(&name("a"), written).unwrap();
        assert_eq!(store.read(&name("a")).unwrap().unwrap().as_slice(), newer);
        assert_eq!(store.is_unsaved(&name("a")), written <= unsaved);
        save_when_due(&store).await;
        assert_eq!(saved(&store, "a").unwrap(), newer);
    }
}

//! Tests of the listing of a store, and of the removal of corrupted files.

use super::{files::entry_file, *};

/// I7: a listing changes nothing, and reports what cannot be used.
#[tokio::test]
async fn a_listing_changes_nothing() {
    let scratch = ScratchDirectory::new();
    let store = CredentialStore::in_directory(scratch.path());
    assert!(store.listing().unwrap().tokens.is_empty());
    write(&store, &token("hush")).await;
    let file = entry_file(&scratch);
    let listed = store.listing().unwrap();
    assert_eq!(listed.tokens.len(), 1);
    assert_eq!(listed.tokens[0].file.as_ref(), Some(&file));
    assert_eq!(listed.tokens[0].token.resource().as_str(), RESOURCE);

    fs::write(&file, "{").unwrap();
    let listed = store.listing().unwrap();
    assert!(listed.tokens.is_empty());
    assert_eq!(
        listed.unusable,
        [UnusableEntry {
            file: Some(file.clone()),
            error: None
        }]
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "{");
}

/// I7: corrupted files can contain tokens. `remove_corrupted` removes those of an origin, or all.
#[tokio::test]
async fn corrupted_files_are_removed() {
    let scratch = ScratchDirectory::new();
    let store = CredentialStore::in_directory(scratch.path());
    let files = || {
        fs::read_dir(scratch.path()).unwrap().filter(|entry| {
            entry
                .as_ref()
                .unwrap()
                .file_name()
                .to_string_lossy()
                .contains("corrupted")
        })
    };
    let own = StartUrl::parse(RESOURCE).unwrap();
    let other = StartUrl::parse("https://other.example/mcp").unwrap();
    write(&store, &token("hush")).await;
    fs::write(entry_file(&scratch), "{").unwrap();
    assert!(store.tokens(&own).is_err());
    assert_eq!(files().count(), 1);
    assert_eq!(store.remove_corrupted(Some(&other)).unwrap(), 0);
    assert_eq!(store.remove_corrupted(Some(&own)).unwrap(), 1);
    assert_eq!(files().count(), 0);
    assert_eq!(store.remove_corrupted(None).unwrap(), 0);
    assert_eq!(
        CredentialStore::in_directory("/nowhere/at/all")
            .remove_corrupted(None)
            .unwrap(),
        0
    );
}

//! What becomes of entries as files.

use super::*;

pub(super) fn entry_file(scratch: &ScratchDirectory) -> PathBuf {
    let mut files = fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|extension| extension == "json")).unwrap()
}

/// I7: files are their owner's alone, and one that is not is refused and left alone.
#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_it() {
    use std::os::unix::fs::PermissionsExt as _;

    let scratch = ScratchDirectory::new();
    let store = CredentialStore::in_directory(scratch.path().join("deep/below"));
    write(&store, &token("hush")).await;
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(scratch.path().join("deep/below")), 0o700);
    for entry in fs::read_dir(scratch.path().join("deep/below")).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(path.clone()), 0o600, "{}", path.display());
    }

    let store = CredentialStore::in_directory(scratch.path());
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
    let scratch = ScratchDirectory::new();
    let store = CredentialStore::in_directory(scratch.path());
    write(&store, &token("hush")).await;
    let (file, whole) = (entry_file(&scratch), fs::read_to_string(entry_file(&scratch)).unwrap());
    let damages = [
        String::new(),
        whole[..whole.len() / 2].to_owned(),
        whole.replacen("\"version\":1", "\"version\":2", 1),
        whole.replacen(ISSUER, "ftp://auth.example.com", 1),
        // A token that would go to another origin than its resource's.
        whole.replacen("\"origin\":\"https://mcp.example.com\"", "\"origin\":\"https://evil.example\"", 1),
        // A token that was obtained for another origin than its resource's, or for none that may have a token.
        whole.replacen("\"start\":\"https://mcp.example.com", "\"start\":\"https://evil.example", 1),
        whole.replacen("\"start\":\"https://mcp.example.com", "\"start\":\"ftp://mcp.example.com", 1),
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
    let entry = store.lock_token(&token("any")).await.unwrap();
    assert_eq!(entry.read().unwrap_err().code(), "store.corrupted");
    assert!(entry.read().unwrap().is_none());
}

/// I7: a damaged entry of one resource is not in the way of another's.
#[tokio::test]
async fn a_damaged_file_troubles_its_own_resource_alone() {
    let scratch = ScratchDirectory::new();
    let store = CredentialStore::in_directory(scratch.path());
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
    let scratch = ScratchDirectory::new();
    let store = CredentialStore::in_directory(scratch.path());
    write(&store, &token("hush")).await;
    let file = entry_file(&scratch);
    assert_eq!(read(&CredentialStore::in_directory(&file), RESOURCE).unwrap_err().code(), "store.io");

    let entry = store.lock_token(&token("any")).await.unwrap();
    entry.remove().unwrap();
    entry.remove().unwrap();
    fs::create_dir(&file).unwrap();
    assert_eq!(entry.remove().unwrap_err().code(), "store.io");
    fs::remove_dir(&file).unwrap();

    // What cannot be removed cannot be written over.
    let beside = file.with_extension("tmp");
    fs::create_dir(&beside).unwrap();
    entry.write(&token("new")).unwrap();
    assert_eq!(store.write_failure().unwrap().code(), "store.not_writable");
    entry.remove().unwrap();
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
    let scratch = ScratchDirectory::new();
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
    let scratch = ScratchDirectory::new();
    let store = CredentialStore::in_directory(scratch.path());
    write(&store, &token("old")).await;
    let beside = entry_file(&scratch).with_extension("tmp");
    fs::write(&beside, "{\"version\":1,\"acc").unwrap();
    assert_eq!(read(&store, RESOURCE).unwrap(), ["old"]);
    write(&store, &token("new")).await;
    assert_eq!(read(&store, RESOURCE).unwrap(), ["new"]);
    assert!(!beside.exists());
}

//! Entries as files: permissions, damage and errors of the file system.

use super::*;

pub(super) fn entry_file(scratch: &ScratchDirectory) -> PathBuf {
    let mut files = fs::read_dir(scratch.path())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    files
        .find(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .unwrap()
}

/// I7: only the owner can access files. A file with other permissions is rejected and not changed.
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
        assert_eq!(
            read(&store, RESOURCE),
            Err(StoreError::Exposed {
                path: file.clone(),
                mode
            })
        );
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(read(&store, RESOURCE).unwrap(), ["hush"]);
}

/// I7: a directory that others can read or write is rejected, for reading, listing and writing, and
/// not changed.
#[cfg(unix)]
#[tokio::test]
async fn a_directory_of_others_is_rejected() {
    use std::os::unix::fs::PermissionsExt as _;

    let scratch = ScratchDirectory::new();
    let store = CredentialStore::in_directory(scratch.path());
    write(&store, &token("hush")).await;
    let set_mode =
        |mode| fs::set_permissions(scratch.path(), fs::Permissions::from_mode(mode)).unwrap();
    for mode in [0o750, 0o705, 0o720, 0o702, 0o777, 0o1777] {
        set_mode(mode);
        let expected = StoreError::ExposedDirectory {
            path: scratch.path().to_owned(),
            mode,
        };
        assert_eq!(read(&store, RESOURCE), Err(expected.clone()));
        assert_eq!(
            store.lock_token(&token("any")).await.err(),
            Some(expected.clone())
        );
        assert_eq!(store.listing().err(), Some(expected.clone()));
        assert_eq!(store.remove_corrupted(None).err(), Some(expected.clone()));
        let text = expected.to_string();
        let (path, mode) = (scratch.path().display(), format!("mode {mode:04o}"));
        assert!(
            text.contains(&mode) && text.contains(&format!("`chmod 700 {path}`")),
            "{text}"
        );
    }
    for mode in [0o711, 0o700] {
        set_mode(mode);
        assert_eq!(read(&store, RESOURCE).unwrap(), ["hush"], "{mode:o}");
    }
}

/// I7: a damaged file is renamed without loss, and reported once.
#[tokio::test]
async fn a_damaged_file_is_renamed() {
    let scratch = ScratchDirectory::new();
    let store = CredentialStore::in_directory(scratch.path());
    write(&store, &token("hush")).await;
    let file = entry_file(&scratch);
    let complete = fs::read_to_string(entry_file(&scratch)).unwrap();
    let damages = [
        String::new(),
        complete[..complete.len() / 2].to_owned(),
        complete.replacen("\"version\":1", "\"version\":2", 1),
        complete.replacen(ISSUER, "ftp://auth.example.com", 1),
        // A token for another origin than that of its resource.
        complete.replacen(
            "\"origin\":\"https://mcp.example.com\"",
            "\"origin\":\"https://evil.example\"",
            1,
        ),
        // A start URL of another origin, or with an invalid scheme.
        complete.replacen(
            "\"start\":\"https://mcp.example.com",
            "\"start\":\"https://evil.example",
            1,
        ),
        complete.replacen(
            "\"start\":\"https://mcp.example.com",
            "\"start\":\"ftp://mcp.example.com",
            1,
        ),
        complete.replacen("\"hush\"", "\"\"", 1),
        "x".repeat(300 * 1024),
        // A valid entry that is too large.
        format!("{}{complete}", " ".repeat(300 * 1024)),
    ];
    let mut renamed = Vec::new();
    for (number, damage) in damages.iter().enumerate() {
        assert_ne!(*damage, complete, "{number}");
        fs::write(&file, damage).unwrap();
        let error = read(&store, RESOURCE).unwrap_err();
        let StoreError::Corrupted { path, kept } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(*path, file);
        assert_eq!(fs::read_to_string(kept).unwrap(), *damage);
        renamed.push(kept.clone());
        assert!(!error.to_string().contains("hush"));
        assert!(read(&store, RESOURCE).unwrap().is_empty());
        // The new file is only accessible by the owner.
        write(&store, &token("hush")).await;
        assert_eq!(read(&store, RESOURCE).unwrap(), ["hush"]);
    }

    // No renamed file replaced another one.
    for (kept, damage) in renamed.iter().zip(&damages) {
        assert_eq!(fs::read_to_string(kept).unwrap(), *damage);
    }

    // The same applies under the lock.
    fs::write(&file, "{").unwrap();
    let entry = store.lock_token(&token("any")).await.unwrap();
    assert_eq!(entry.read().unwrap_err().code(), "store.corrupted");
    assert!(entry.read().unwrap().is_none());
}

/// I7: a damaged entry of one resource does not affect another resource.
#[tokio::test]
async fn a_damaged_file_affects_only_its_resource() {
    let scratch = ScratchDirectory::new();
    let store = CredentialStore::in_directory(scratch.path());
    write(&store, &token("damaged")).await;
    fs::write(entry_file(&scratch), "{").unwrap();
    let other = "https://other.example/mcp";
    write(&store, &token_at(ISSUER, other, "undamaged")).await;
    assert_eq!(read(&store, other).unwrap(), ["undamaged"]);
    assert_eq!(
        read(&store, RESOURCE).unwrap_err().code(),
        "store.corrupted"
    );
}

/// I7: an error of the file system is reported, and not treated as a missing entry.
#[tokio::test]
async fn errors_of_the_file_system_are_reported() {
    let scratch = ScratchDirectory::new();
    let store = CredentialStore::in_directory(scratch.path());
    write(&store, &token("hush")).await;
    let file = entry_file(&scratch);
    assert_eq!(
        read(&CredentialStore::in_directory(&file), RESOURCE)
            .unwrap_err()
            .code(),
        "store.io"
    );

    let entry = store.lock_token(&token("any")).await.unwrap();
    entry.remove().unwrap();
    entry.remove().unwrap();
    fs::create_dir(&file).unwrap();
    assert_eq!(entry.remove().unwrap_err().code(), "store.io");

    fs::remove_dir(&file).unwrap();

    // A temporary file that cannot be replaced.
    let temporary = file.with_extension("tmp");
    fs::create_dir(&temporary).unwrap();
    entry.write(&token("new")).unwrap();
    assert_eq!(store.write_failure().unwrap().code(), "store.not_writable");

    entry.remove().unwrap();
    fs::remove_dir(&temporary).unwrap();

    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&file, &file).unwrap();
        assert_eq!(read(&store, RESOURCE).unwrap_err().code(), "store.io");
    }
}

/// The largest entry is 256 KiB, and is read back unchanged.
#[tokio::test]
async fn the_largest_entry() {
    let scratch = ScratchDirectory::new();
    let directory = Directory::new(scratch.path().to_owned());
    let name = Name("largest".into());
    let _lock = directory.lock(&name, REQUEST_LOCK_TIMEOUT).await.unwrap();
    let largest = vec![b'x'; 256 * 1024];
    directory.write(&name, &largest).unwrap();
    assert_eq!(*directory.read(&name).unwrap().unwrap(), largest);
    assert_eq!(
        directory.write(&name, &[&largest[..], b"x"].concat()),
        Err(StoreError::TooLarge)
    );
}

/// I7: the temporary file of a killed writer is ignored and replaced.
#[tokio::test]
async fn an_incomplete_temporary_file_is_ignored() {
    let scratch = ScratchDirectory::new();
    let store = CredentialStore::in_directory(scratch.path());
    write(&store, &token("old")).await;
    let temporary = entry_file(&scratch).with_extension("tmp");
    fs::write(&temporary, "{\"version\":1,\"acc").unwrap();
    assert_eq!(read(&store, RESOURCE).unwrap(), ["old"]);
    write(&store, &token("new")).await;
    assert_eq!(read(&store, RESOURCE).unwrap(), ["new"]);
    assert!(!temporary.exists());
}

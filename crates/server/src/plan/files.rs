//! Files that a configuration names.

use std::{fs, io, path::Path};

use anyhow::anyhow;

/// Reads the file that a key names.
///
/// # Errors
/// Fails when it cannot be read. The message begins with the key and names the fix.
pub(super) fn read(key: &str, file: &Path) -> anyhow::Result<Vec<u8>> {
    let shown = file.display();
    if file.is_dir() {
        return Err(anyhow!("{key} = \"{shown}\" is a directory; name the file in it"));
    }
    fs::read(file).map_err(|error| match (error.kind(), std::env::current_dir()) {
        (io::ErrorKind::NotFound, Ok(directory)) if file.is_relative() => anyhow!(
            "{key} = \"{shown}\" cannot be read: there is no such file in the working directory {}; write the absolute path",
            directory.display()
        ),
        (io::ErrorKind::NotFound, _) => anyhow!("{key} = \"{shown}\" cannot be read: there is no such file; correct the path"),
        _ => anyhow!("{key} = \"{shown}\" cannot be read ({error}); let this user read it"),
    })
}

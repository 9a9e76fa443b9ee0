use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use anyhow::anyhow;

use crate::shown_url;

/// The maximum size of a file, in bytes. The certificates that operating systems trust take 0.3 MB.
const MAX_SIZE: u64 = 4 << 20;

/// Reads the file that a key names. Fails when it cannot be read or has more than 4 MiB. The
/// message begins with the key and names the fix.
pub(super) fn read(key: &str, file: &Path) -> anyhow::Result<Vec<u8>> {
    let text = file.to_string_lossy();
    if text.contains("-----BEGIN")
        || text.contains('\n')
        || text.trim_start().starts_with(['<', '{'])
    {
        return Err(anyhow!(
            "{key} is the content of a file; save it to a file, and write its path"
        ));
    }
    if text.contains("://") {
        return Err(anyhow!(
            "{key} = {:?} is a URL; save it to a file on this machine, and write its path",
            shown_url(&text)
        ));
    }
    let shown = file.display();
    if file.is_dir() {
        return Err(anyhow!(
            "{key} = \"{shown}\" is a directory; name the file in it"
        ));
    }
    content(file).map_err(|error| match (error.kind(), std::env::current_dir()) {
        (io::ErrorKind::NotFound, _) if file.starts_with("~") => anyhow!(
            "{key} = \"{shown}\" cannot be read: ~ is not replaced here; write the absolute path"
        ),
        (io::ErrorKind::NotFound, Ok(directory)) if file.is_relative() => anyhow!(
            "{key} = \"{shown}\" cannot be read: there is no such file in the working directory {}; write the absolute path",
            directory.display()
        ),
        (io::ErrorKind::NotFound, _) => anyhow!("{key} = \"{shown}\" cannot be read: there is no such file; correct the path"),
        (io::ErrorKind::FileTooLarge, _) => anyhow!("{key} = \"{shown}\" has more than {MAX_SIZE} bytes; name another file"),
        _ => anyhow!("{key} = \"{shown}\" cannot be read ({error}); let this user read it"),
    })
}

/// Reads a file.
///
/// # Errors
/// Fails when it cannot be read, and with [`io::ErrorKind::FileTooLarge`] when it has more than 4
/// MiB.
pub fn content(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?
        .take(MAX_SIZE + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_SIZE {
        Err(io::ErrorKind::FileTooLarge.into())
    } else {
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J9: a file without an end is not read to its end, and the error names the key and the fix.
    #[test]
    fn the_size_is_bounded() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(MAX_SIZE).unwrap();
        assert_eq!(
            read("jwks_file", file.path()).unwrap().len() as u64,
            MAX_SIZE
        );
        file.as_file().set_len(MAX_SIZE + 1).unwrap();
        for path in [file.path(), Path::new("/dev/zero")] {
            let error = read("jwks_file", path).unwrap_err().to_string();
            let expected = format!(
                "jwks_file = \"{}\" has more than 4194304 bytes; name another file",
                path.display()
            );
            assert_eq!(error, expected);
        }
    }
}

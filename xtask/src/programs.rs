//! Programs that are installed on this machine.

use std::{env, path::PathBuf};

/// Returns the path of an installed program: in a folder of `PATH`, or in `/usr/sbin`, where Debian
/// has servers.
pub fn find(name: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH").unwrap_or_default();
    let mut files = env::split_paths(&folders)
        .chain([PathBuf::from("/usr/sbin")])
        .map(|folder| folder.join(name));
    files.find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installed_programs_are_found() {
        assert!(find("sh").is_some_and(|path| path.is_absolute()));
        assert_eq!(find("no-such-program"), None);
    }
}

//! The folder of a file.

use std::path::Path;

/// Returns the folder of a file; `.` for a path without one.
pub(crate) fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_a_folder() {
        for (file, folder) in [("a", "."), ("./a", "."), ("a/b", "a"), ("/a", "/"), ("../a", "..")] {
            assert_eq!(folder_of(Path::new(file)), Path::new(folder), "{file}");
        }
    }
}

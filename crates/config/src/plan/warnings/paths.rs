//! Paths that are not where they seem to be.

use std::path::Path;

use crate::{Config, file::AuditTarget};

/// Adds warnings about what is written to a folder with the name `~`: no shell expands it.
pub(super) fn warn(config: &Config, warnings: &mut Vec<String>) {
    let audit = config.audit.as_ref().and_then(|audit| match &audit.target {
        AuditTarget::File(file) => Some(file.as_path()),
        AuditTarget::Stdout => None,
    });
    let paths = [
        ("state_dir", config.state_dir.as_deref()),
        ("audit.target.file", audit),
    ];
    for (key, path) in paths {
        warnings.extend(path.and_then(|path| in_tilde(key, path)));
    }
}

fn in_tilde(key: &str, path: &Path) -> Option<String> {
    let rest = path.strip_prefix("~").ok()?;
    let meant = Path::new("/home/NAME").join(rest);
    Some(format!(
        "{key} = {:?} is in a folder with the name ~ in the working directory, because ~ is not replaced here; write the \
         absolute path, such as {meant:?}",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J9: a path in the home directory of a shell is named, and others are not.
    #[test]
    fn a_tilde_is_named() {
        let warned = |path: &str| in_tilde("state_dir", Path::new(path));
        assert!(warned("~/portcullis").is_some_and(|text| {
            text.contains("write the absolute path, such as \"/home/NAME/portcullis\"")
        }));
        assert!(warned("~").is_some());
        for path in ["/var/lib/portcullis", "state", "~portcullis", "/srv/~/a"] {
            assert_eq!(warned(path), None, "{path}");
        }
    }
}

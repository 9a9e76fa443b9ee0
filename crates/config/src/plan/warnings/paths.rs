//! Paths that are not where they seem to be.

use std::path::Path;

use crate::{Config, file::AuditTarget};

const AUDIT: &str = "audit.target.file";

/// Adds warnings about what is written to a folder with the name `~`: no shell expands it.
pub(super) fn warn(config: &Config, warnings: &mut Vec<String>) {
    let audit = config.audit.as_ref().and_then(|audit| match &audit.target {
        AuditTarget::File(file) => Some(file.as_path()),
        AuditTarget::Stdout => None,
    });
    let paths = [("state_dir", config.state_dir.as_deref()), (AUDIT, audit)];
    for (key, path) in paths {
        warnings.extend(path.and_then(|path| in_tilde(key, path)));
        warnings.extend(path.and_then(|path| with_date(key, path)));
    }
}

/// The conversions of `strftime` that dates and times in names of files have. Bytes in percent
/// encoding do not begin with these letters, and names of variables have more of them.
const CONVERSIONS: [char; 8] = ['Y', 'y', 'm', 'j', 'H', 'M', 'S', 's'];

fn with_date(key: &str, path: &Path) -> Option<String> {
    let text = path.to_str()?;
    let mut conversions = text.split('%').skip(1).filter_map(|rest| {
        let mut characters = rest.chars();
        let conversion = characters.next()?;
        let is_word = characters.next().is_some_and(char::is_alphanumeric);
        (!is_word && CONVERSIONS.contains(&conversion)).then_some(conversion)
    });
    let first = conversions.next()?;
    let fix = match key {
        AUDIT => {
            "write a name without it, and set audit.rotate_age: rotated files have the time in their names"
        }
        _ => "write a name without it",
    };
    Some(format!(
        "{key} = {text:?} has %{first}, which is not replaced by a date here; {fix}"
    ))
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

    /// J9: a date in the name of a file is named, and bytes in percent encoding are not.
    #[test]
    fn dates_are_named() {
        let warned = |path: &str| with_date(AUDIT, Path::new(path));
        for path in ["/var/log/audit-%Y-%m-%d.jsonl", "audit.%s"] {
            assert!(warned(path).is_some_and(|text| text.contains("set audit.rotate_age")));
        }
        for path in [
            "/var/log/audit.jsonl",
            "/srv/a%20b%D0%B0",
            "100%",
            "/%HOME%/a",
        ] {
            assert_eq!(warned(path), None, "{path}");
        }
    }

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

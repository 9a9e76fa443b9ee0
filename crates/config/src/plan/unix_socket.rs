//! Unix sockets: their paths, also in the notations of other programs.

use std::{
    fs,
    os::unix::{fs::FileTypeExt as _, net::SocketAddr},
    path::Path,
};

use anyhow::ensure;

/// Where folders exist only while their service runs.
const RUNTIME_FOLDERS: [&str; 2] = ["/run", "/var/run"];

/// Checks that a path is short enough for a socket.
pub(super) fn check_length(path: &Path) -> anyhow::Result<()> {
    ensure!(
        SocketAddr::from_pathname(path).is_ok(),
        "is too long for a Unix socket; choose a path of at most 107 bytes"
    );
    Ok(())
}

/// Checks that a socket can be created, as far as that can be seen without doing so. The service
/// manager may create a folder in `/run` at the start.
pub(super) fn check_place(path: &Path) -> anyhow::Result<()> {
    check_length(path)?;
    let has_folder = path.parent().is_some_and(Path::is_dir);
    let is_created_later = RUNTIME_FOLDERS.iter().any(|run| path.starts_with(run));
    ensure!(
        has_folder || is_created_later,
        "is in a folder that does not exist; create it, or name another one"
    );
    ensure!(
        fs::symlink_metadata(path).map_or(true, |found| found.file_type().is_socket()),
        "is the path of another file, which is not a socket; remove it, or name another path"
    );
    Ok(())
}

/// Returns the value of `upstream.unix` that a text means in place of a URL: `unix:///path`,
/// `http+unix://%2Fpath/target`, nginx's `http://unix:/path:/target`, and a path alone. `None` if
/// it names no socket.
pub(super) fn meant(text: &str) -> Option<String> {
    let rest = ["http+unix://", "http://", "https://"]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme));
    if let Some((host, target)) = rest.map(|rest| rest.split_once('/').unwrap_or((rest, "")))
        && let Some(path) = decoded(host)
    {
        return Some(match target {
            "" => path,
            target => format!("{path}:/{target}"),
        });
    }
    let rest = match rest {
        // A host, unless it is nginx's notation.
        Some(rest) if !text.starts_with("http+unix:") => rest.strip_prefix("unix:")?,
        Some(rest) => rest,
        None => text.strip_prefix("unix:").unwrap_or(text),
    };
    let is_path = rest.starts_with('/') && (text.starts_with("unix:") || !rest.starts_with("//"));
    let path = rest.trim_start_matches('/').trim_end_matches(':');
    (is_path && !path.is_empty()).then(|| format!("/{path}"))
}

/// The path of a socket in the place of a host.
fn decoded(host: &str) -> Option<String> {
    let path = host.replace("%2F", "/").replace("%2f", "/");
    (path.starts_with('/') && !path.contains('%')).then_some(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// J9: a socket needs a short path, in a folder that exists, at which there is no other file.
    #[test]
    fn places_are_checked() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| {
            let checked = check_place(&folder.path().join(name));
            checked.map_err(|error| error.to_string())
        };
        assert_eq!(place("new.sock"), Ok(()));
        let _listener = UnixListener::bind(folder.path().join("old.sock")).unwrap();
        assert_eq!(place("old.sock"), Ok(()));
        fs::write(folder.path().join("file"), "").unwrap();
        for (name, words) in [
            ("file", "is the path of another file"),
            ("file/below", "in a folder that does not exist"),
            ("none/new.sock", "in a folder that does not exist"),
            (&*"x".repeat(108), "is too long"),
        ] {
            let error = place(name).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        assert!(check_place(Path::new("/run/none/new.sock")).is_ok());
        assert!(check_length(Path::new(&"/".repeat(107))).is_ok());
        assert!(check_length(Path::new(&"/".repeat(108))).is_err());
    }

    /// J9: the notations of other programs are recognized, and URLs are not.
    #[test]
    fn sockets_are_recognized() {
        for (text, value) in [
            ("unix:///run/mcp.sock", "/run/mcp.sock"),
            ("unix:/run/mcp.sock", "/run/mcp.sock"),
            ("/run/mcp.sock", "/run/mcp.sock"),
            ("http://unix:/run/mcp.sock", "/run/mcp.sock"),
            ("http://unix:/run/mcp.sock:", "/run/mcp.sock"),
            ("http://unix:/run/mcp.sock:/mcp", "/run/mcp.sock:/mcp"),
            ("http+unix://%2Frun%2Fmcp.sock/mcp", "/run/mcp.sock:/mcp"),
            ("http+unix:///run/mcp.sock", "/run/mcp.sock"),
        ] {
            assert_eq!(meant(text).as_deref(), Some(value), "{text}");
        }
        for text in [
            "",
            "/",
            "unix:",
            "mcp.sock",
            "//mcp.example.com/mcp",
            "http://unix:8000/mcp",
            "http://unix/mcp",
            "http://127.0.0.1:8000/mcp",
            "http://",
        ] {
            assert_eq!(meant(text), None, "{text}");
        }
    }
}

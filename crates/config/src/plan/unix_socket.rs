//! Unix sockets in the notations of other programs.

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
    use super::meant;

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

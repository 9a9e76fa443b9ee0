//! [`shown_url`]: URLs of the configuration in messages.

/// Returns the text of a URL without what may be secret: user, password and query, each replaced by
/// `…`. It need not be a valid URL: everything before the last `@`, except a scheme (RFC 3986
/// section 3.1), counts as user and password.
pub fn shown_url(text: &str) -> String {
    let (scheme, rest) = match text.find("://") {
        Some(at) if is_scheme(&text[..at]) => text.split_at(at + "://".len()),
        _ => ("", text),
    };
    let (user, rest) = rest
        .rsplit_once('@')
        .map_or(("", rest), |(_, rest)| ("…@", rest));
    match rest.split_once('?') {
        Some((rest, _)) => format!("{scheme}{user}{rest}?…"),
        None => format!("{scheme}{user}{rest}"),
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J2: a message shows neither credentials nor a query.
    #[test]
    fn secrets_are_cut() {
        for (text, shown) in [
            ("https://a.example/mcp", "https://a.example/mcp"),
            ("127.0.0.1:8000/mcp", "127.0.0.1:8000/mcp"),
            (
                "https://me:hunter2@a.example/mcp",
                "https://…@a.example/mcp",
            ),
            ("me:hunter2@a.example", "…@a.example"),
            ("https://me:hunt/er2@a.example/", "https://…@a.example/"),
            ("https://me:hunt?er2@a.example/", "https://…@a.example/"),
            ("https://me@x:hunter2@a.example/", "https://…@a.example/"),
            ("http://a.example/?key=hunter2", "http://a.example/?…"),
            ("/run/mcp.sock:/mcp?key=hunter2", "/run/mcp.sock:/mcp?…"),
            (
                "me:hunter2@https://a.example/mcp",
                "…@https://a.example/mcp",
            ),
            (
                "a.example/keys?token=hunter2&next=https://b.example",
                "a.example/keys?…",
            ),
            (
                "/mcp?token=hunter2&next=https://me@b.example",
                "…@b.example",
            ),
            ("git+ssh://me:hunter2@a.example/", "git+ssh://…@a.example/"),
            ("", ""),
        ] {
            assert_eq!(shown_url(text), shown);
        }
    }
}

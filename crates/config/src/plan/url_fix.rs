//! What to write in place of a text that is not a URL of the expected form.

use portcullis_metadata::syntax::is_loopback;
use url::Url;

use crate::shown_url;

/// Returns the fix: the text itself with `scheme` if it names a host, else an example. It repeats
/// neither user, password nor query.
pub(super) fn url_fix(text: &str, scheme: &str, example: &str) -> String {
    fix(with_scheme(text, scheme), example)
}

/// Returns the fix of a URL that is https, or http on loopback.
pub(super) fn web_fix(text: &str, example: &str) -> String {
    fix(web_url(text), example)
}

/// Returns the fix of a URL without path that is https, or http on loopback.
pub(super) fn origin_fix(text: &str, example: &str) -> String {
    let url = web_url(text).and_then(|url| Url::parse(&url).ok());
    fix(url.map(|url| url.origin().ascii_serialization()), example)
}

/// Returns a URL with a host of other letters in the form that is ASCII, `xn--…`. `None` for others.
/// It repeats neither user, password nor query.
pub(super) fn ascii_form(text: &str) -> Option<String> {
    let url = Url::parse(text).ok().filter(|_| !text.is_ascii())?;
    let has_such_host = url.host_str()?.contains("xn--");
    let ascii = url.as_str();
    let ascii = match text.ends_with('/') {
        true => ascii,
        false => ascii.trim_end_matches('/'),
    };
    has_such_host.then(|| shown_url(ascii))
}

fn fix(meant: Option<String>, example: &str) -> String {
    match meant {
        Some(url) => format!("write it as \"{url}\""),
        None => format!("write a URL such as \"{example}\""),
    }
}

fn web_url(text: &str) -> Option<String> {
    let plain = with_scheme(text, "http");
    plain
        .filter(|url| Url::parse(url).is_ok_and(|url| is_loopback(&url)))
        .or_else(|| with_scheme(text, "https"))
}

/// Returns the URL with this scheme. `None` if the text does not begin with a host, apart from
/// another scheme and a user.
fn with_scheme(text: &str, scheme: &str) -> Option<String> {
    let after_user = text.rsplit_once('@').map_or(text, |(_, rest)| rest);
    let rest = match after_user.split_once(":/") {
        Some((other, rest)) if other.bytes().all(|byte| byte.is_ascii_alphabetic()) => {
            rest.trim_start_matches('/')
        }
        _ => after_user.strip_prefix("//").unwrap_or(after_user),
    };
    let is_sound = |byte: u8| byte.is_ascii_graphic() && !b"\"\\<>{}$?#".contains(&byte);
    let host = rest.split('/').next().unwrap_or_default();
    let url = format!("{scheme}://{rest}");
    (rest.bytes().all(is_sound) && is_host(host) && Url::parse(&url).is_ok()).then_some(url)
}

/// Whether a text is certainly meant as a host, with or without port: a word alone is not.
fn is_host(text: &str) -> bool {
    let (name, port) = text.rsplit_once(':').unwrap_or((text, ""));
    let is_in_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_name = name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.bytes().all(is_in_name);
    let is_address = text.starts_with('[');
    is_address
        || (is_name && (name.contains('.') || name == "localhost" || port.parse::<u16>().is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J9: a host of other letters is written as in the tokens.
    #[test]
    fn hosts_have_an_ascii_form() {
        for (text, ascii) in [
            ("https://münchen.example", "https://xn--mnchen-3ya.example"),
            (
                "https://münchen.example/a/",
                "https://xn--mnchen-3ya.example/a/",
            ),
            (
                "https://me:hunter2@münchen.example",
                "https://…@xn--mnchen-3ya.example",
            ),
        ] {
            assert_eq!(ascii_form(text).as_deref(), Some(ascii), "{text}");
        }
        for text in [
            "https://a.example",
            "https://a.example/ü",
            "münchen.example",
        ] {
            assert_eq!(ascii_form(text), None, "{text}");
        }
    }

    /// J2, J9: a text that names a host is completed without credentials; others have an example.
    #[test]
    fn only_hosts_are_completed() {
        for (text, url) in [
            ("127.0.0.1:8000/mcp", "http://127.0.0.1:8000/mcp"),
            ("[::1]:8000", "http://[::1]:8000"),
            ("mcp:8000", "http://mcp:8000"),
            ("mcp.internal/mcp", "http://mcp.internal/mcp"),
            ("localhost", "http://localhost"),
            ("//mcp.internal", "http://mcp.internal"),
            ("ws://mcp.internal:8000/mcp", "http://mcp.internal:8000/mcp"),
            ("http:/mcp.internal", "http://mcp.internal"),
            ("me:hunter2@mcp.internal", "http://mcp.internal"),
        ] {
            let expected = format!("write it as \"{url}\"");
            assert_eq!(url_fix(text, "http", "http://x.example"), expected);
        }
        for text in [
            "",
            "mcp",
            "/mcp.html",
            "file:///etc/mcp.conf",
            "*.example.com",
            "mcp.example.com:x",
            "mcp.example.com/?key=hunter2",
            "${MCP_HOST}:8000",
            "{{ mcp.example.com }}",
            "two words.example",
        ] {
            let expected = "write a URL such as \"http://x.example\"";
            assert_eq!(
                url_fix(text, "http", "http://x.example"),
                expected,
                "{text}"
            );
        }
    }

    /// J9: plain http is suggested on loopback only.
    #[test]
    fn the_scheme_follows_from_the_host() {
        assert_eq!(
            web_fix("collector:4318/v1/traces", ""),
            "write it as \"https://collector:4318/v1/traces\""
        );
        assert_eq!(
            origin_fix("localhost:3000/mcp", ""),
            "write it as \"http://localhost:3000\""
        );
        assert_eq!(
            origin_fix("mcp.example.com/mcp", ""),
            "write it as \"https://mcp.example.com\""
        );
    }
}

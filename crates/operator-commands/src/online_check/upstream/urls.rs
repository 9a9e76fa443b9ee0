//! URLs that are similar to that of an upstream.

use url::Url;

/// Returns the URLs where an MCP endpoint may be instead.
pub(super) fn similar_urls(url: &Url) -> Vec<Url> {
    let path = url.path();
    let toggled = match path.strip_suffix('/') {
        Some(bare) if !bare.is_empty() => bare.to_owned(),
        _ => format!("{}/", path.trim_end_matches('/')),
    };
    let paths = [toggled.as_str(), "/mcp", "/mcp/", "/", "/api/mcp"];
    let mut found: Vec<Url> = Vec::new();
    for other in paths.into_iter().map(|path| with_path(url, path)) {
        if other != *url && !found.contains(&other) {
            found.push(other);
        }
    }
    found
}

/// Returns the URL with another path.
pub(super) fn with_path(url: &Url, path: &str) -> Url {
    let mut other = url.clone();
    other.set_path(path);
    other
}

/// Returns the URL with another scheme and the same port.
pub(super) fn with_scheme(url: &Url, scheme: &str) -> Url {
    let text = format!("{scheme}{}", &url[url::Position::AfterScheme..]);
    Url::parse(&text).unwrap_or_else(|_| url.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn similar_urls_differ() {
        let found = similar_urls(&url("http://127.0.0.1:8000/mcp"));
        let paths: Vec<&str> = found.iter().map(Url::path).collect();
        assert_eq!(paths, ["/mcp/", "/", "/api/mcp"]);
        assert_eq!(
            similar_urls(&url("http://127.0.0.1:8000"))[0].path(),
            "/mcp"
        );
    }

    #[test]
    fn schemes_are_replaced() {
        assert_eq!(
            with_scheme(&url("http://a.example:8443/x"), "https").as_str(),
            "https://a.example:8443/x"
        );
    }
}

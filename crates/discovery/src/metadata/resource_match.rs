//! [`ResourceMatch`]: compares a `resource` with the requested URL.

use portcullis_metadata::ResourceUri;
use url::Url;

/// How the `resource` of a protected resource's metadata matches the requested URL.
///
/// RFC 9728 section 3.3 requires them to be identical. Some MCP servers omit the query or name a
/// resource above their endpoint. The caller decides whether to accept that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResourceMatch {
    /// The same URL, except for a trailing slash of the path.
    Same,
    /// The same URL, except that the resource has no query.
    WithoutQuery,
    /// A path of the same origin that is a prefix of the URL's path and ends at a segment boundary.
    /// A token for it is also valid for the other paths below it, which other parties may serve.
    PathPrefix,
}

impl ResourceMatch {
    /// Compares a resource with the requested URL. Returns `None` if the metadata must not be used
    /// for the URL. A query in the resource must be equal to the URL's.
    pub fn of(resource: &ResourceUri, requested: &Url) -> Option<Self> {
        let resource_url = resource.url();
        if resource.as_str() == requested.as_str() {
            return Some(Self::Same);
        }
        if resource_url.origin() != requested.origin()
            || (resource_url.query().is_some() && resource_url.query() != requested.query())
        {
            return None;
        }
        let rest = requested
            .path()
            .strip_prefix(without_slash(resource_url.path()))?;
        match rest {
            "" | "/" if resource_url.query() == requested.query() => Some(Self::Same),
            "" | "/" => Some(Self::WithoutQuery),
            _ => rest.starts_with('/').then_some(Self::PathPrefix),
        }
    }
}

fn without_slash(path: &str) -> &str {
    path.strip_suffix('/').unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::{ResourceMatch::*, *};

    fn matches(resource: &str, requested: &str) -> Option<ResourceMatch> {
        ResourceMatch::of(
            &ResourceUri::parse(resource).unwrap(),
            &Url::parse(requested).unwrap(),
        )
    }

    /// G2: a resource matches if it is identical, or a prefix at a segment boundary of the same
    /// origin.
    #[test]
    fn a_resource_matches_the_paths_below_it() {
        for (resource, requested, expected) in [
            (
                "https://mcp.example.com/mcp",
                "https://mcp.example.com/mcp",
                Same,
            ),
            (
                "https://mcp.example.com/mcp",
                "https://mcp.example.com/mcp/",
                Same,
            ),
            (
                "https://mcp.example.com/mcp/",
                "https://mcp.example.com/mcp",
                Same,
            ),
            ("https://mcp.example.com", "https://mcp.example.com/", Same),
            (
                "https://MCP.example.com:443/mcp",
                "https://mcp.example.com/mcp",
                Same,
            ),
            (
                "https://mcp.example.com/mcp?a=b",
                "https://mcp.example.com/mcp?a=b",
                Same,
            ),
            (
                "https://mcp.example.com/mcp?a=b",
                "https://mcp.example.com/mcp/?a=b",
                Same,
            ),
            (
                "https://mcp.example.com/mcp",
                "https://mcp.example.com/mcp?a=b",
                WithoutQuery,
            ),
            (
                "https://mcp.example.com/mcp",
                "https://mcp.example.com/mcp/v1?a=b",
                PathPrefix,
            ),
            (
                "https://mcp.example.com/mcp",
                "https://mcp.example.com/mcp//",
                PathPrefix,
            ),
            (
                "https://mcp.example.com",
                "https://mcp.example.com/mcp",
                PathPrefix,
            ),
            (
                "https://MCP.example.com:443/",
                "https://mcp.example.com/mcp",
                PathPrefix,
            ),
            (
                "https://mcp.example.com/?a=b",
                "https://mcp.example.com/mcp?a=b",
                PathPrefix,
            ),
        ] {
            assert_eq!(
                matches(resource, requested),
                Some(expected),
                "{resource} {requested}"
            );
        }
        for (resource, requested) in [
            (
                "https://mcp.example.com/mcp",
                "https://mcp.example.com/mcpx",
            ),
            ("https://mcp.example.com/mcp", "https://mcp.example.com/MCP"),
            ("https://mcp.example.com/mcp", "https://mcp.example.com/"),
            (
                "https://mcp.example.com/mcp",
                "https://mcp.example.com/mcp/../other",
            ),
            (
                "https://mcp.example.com/mcp",
                "https://mcp.example.com/mcp%2Fa",
            ),
            (
                "https://mcp.example.com/mcp",
                "https://mcp.example.com.evil.example/mcp",
            ),
            (
                "https://mcp.example.com/mcp",
                "https://mcp.example.com:444/mcp",
            ),
            ("http://mcp.example.com/mcp", "https://mcp.example.com/mcp"),
            ("https://evil.example/mcp", "https://mcp.example.com/mcp"),
            (
                "https://mcp.example.com/mcp?a=c",
                "https://mcp.example.com/mcp?a=b",
            ),
            (
                "https://mcp.example.com/mcp?a=b",
                "https://mcp.example.com/mcp",
            ),
        ] {
            assert_eq!(matches(resource, requested), None, "{resource} {requested}");
        }
    }
}

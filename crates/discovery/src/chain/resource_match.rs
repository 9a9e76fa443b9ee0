//! How the `resource` of metadata relates to the URL that a client asked for.

use portcullis_metadata::ResourceUri;
use url::Url;

/// How the `resource` of a protected resource's metadata relates to the URL that was asked for.
///
/// RFC 9728 section 3.3 requires both to be identical. Deployed MCP servers also name the resource without the query,
/// or a resource above their endpoint; the caller decides whether it accepts that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResourceMatch {
    /// The same URL, one trailing slash of the path aside.
    Same,
    /// The same URL, except that the resource has no query and the URL has one.
    WithoutQuery,
    /// Another path of the same origin, which is a prefix of the URL's path that ends at a segment boundary. A token
    /// for such a resource also opens the other paths below it, which may belong to others.
    PathPrefix,
}

impl ResourceMatch {
    /// Compares a resource with the URL that was asked for. `None` when metadata with this resource must not be used
    /// for the URL. A query in the resource must be the URL's.
    pub fn of(resource: &ResourceUri, asked: &Url) -> Option<Self> {
        let named = resource.url();
        if resource.as_str() == asked.as_str() {
            return Some(Self::Same);
        }
        if named.origin() != asked.origin() || (named.query().is_some() && named.query() != asked.query()) {
            return None;
        }
        let rest = asked.path().strip_prefix(without_slash(named.path()))?;
        match rest {
            "" | "/" if named.query() == asked.query() => Some(Self::Same),
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

    fn matches(resource: &str, asked: &str) -> Option<ResourceMatch> {
        ResourceMatch::of(&ResourceUri::parse(resource).unwrap(), &Url::parse(asked).unwrap())
    }

    /// G2: identical, or a prefix at a segment border of the same origin.
    #[test]
    fn a_resource_covers_what_lies_below_it() {
        for (resource, asked, expected) in [
            ("https://mcp.example.com/mcp", "https://mcp.example.com/mcp", Same),
            ("https://mcp.example.com/mcp", "https://mcp.example.com/mcp/", Same),
            ("https://mcp.example.com/mcp/", "https://mcp.example.com/mcp", Same),
            ("https://mcp.example.com", "https://mcp.example.com/", Same),
            ("https://MCP.example.com:443/mcp", "https://mcp.example.com/mcp", Same),
            ("https://mcp.example.com/mcp?a=b", "https://mcp.example.com/mcp?a=b", Same),
            ("https://mcp.example.com/mcp?a=b", "https://mcp.example.com/mcp/?a=b", Same),
            ("https://mcp.example.com/mcp", "https://mcp.example.com/mcp?a=b", WithoutQuery),
            ("https://mcp.example.com/mcp", "https://mcp.example.com/mcp/v1?a=b", PathPrefix),
            ("https://mcp.example.com/mcp", "https://mcp.example.com/mcp//", PathPrefix),
            ("https://mcp.example.com", "https://mcp.example.com/mcp", PathPrefix),
            ("https://MCP.example.com:443/", "https://mcp.example.com/mcp", PathPrefix),
            ("https://mcp.example.com/?a=b", "https://mcp.example.com/mcp?a=b", PathPrefix),
        ] {
            assert_eq!(matches(resource, asked), Some(expected), "{resource} {asked}");
        }
        for (resource, asked) in [
            ("https://mcp.example.com/mcp", "https://mcp.example.com/mcpx"),
            ("https://mcp.example.com/mcp", "https://mcp.example.com/MCP"),
            ("https://mcp.example.com/mcp", "https://mcp.example.com/"),
            ("https://mcp.example.com/mcp", "https://mcp.example.com/mcp/../other"),
            ("https://mcp.example.com/mcp", "https://mcp.example.com/mcp%2Fa"),
            ("https://mcp.example.com/mcp", "https://mcp.example.com.evil.example/mcp"),
            ("https://mcp.example.com/mcp", "https://mcp.example.com:444/mcp"),
            ("http://mcp.example.com/mcp", "https://mcp.example.com/mcp"),
            ("https://evil.example/mcp", "https://mcp.example.com/mcp"),
            ("https://mcp.example.com/mcp?a=c", "https://mcp.example.com/mcp?a=b"),
            ("https://mcp.example.com/mcp?a=b", "https://mcp.example.com/mcp"),
        ] {
            assert_eq!(matches(resource, asked), None, "{resource} {asked}");
        }
    }
}

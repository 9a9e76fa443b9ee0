use portcullis_metadata::ResourceUri;
use url::Url;

/// Whether metadata with this `resource` may stand for `asked`: identical, or of the same origin with a path that is a
/// prefix of the asked one at a segment border.
///
/// RFC 9728 section 3.3 wants identity; the prefix is what deployed MCP servers need, whose endpoints lie below the
/// resource that they name. A query in `resource` must be the asked one.
pub fn resource_matches(resource: &ResourceUri, asked: &Url) -> bool {
    let named = resource.url();
    if resource.as_str() == asked.as_str() {
        return true;
    }
    if named.origin() != asked.origin() || (named.query().is_some() && named.query() != asked.query()) {
        return false;
    }
    let prefix = named.path().strip_suffix('/').unwrap_or(named.path());
    asked.path().strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(resource: &str, asked: &str) -> bool {
        resource_matches(&ResourceUri::parse(resource).unwrap(), &Url::parse(asked).unwrap())
    }

    /// G2: identical, or a prefix at a segment border of the same origin.
    #[test]
    fn a_resource_covers_what_lies_below_it() {
        for (resource, asked) in [
            ("https://mcp.example.com/mcp", "https://mcp.example.com/mcp"),
            ("https://mcp.example.com/mcp", "https://mcp.example.com/mcp/"),
            ("https://mcp.example.com/mcp/", "https://mcp.example.com/mcp"),
            ("https://mcp.example.com/mcp", "https://mcp.example.com/mcp/v1?a=b"),
            ("https://mcp.example.com", "https://mcp.example.com/mcp"),
            ("https://MCP.example.com:443/", "https://mcp.example.com/mcp"),
            ("https://mcp.example.com/mcp?a=b", "https://mcp.example.com/mcp?a=b"),
        ] {
            assert!(matches(resource, asked), "{resource} {asked}");
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
        ] {
            assert!(!matches(resource, asked), "{resource} {asked}");
        }
    }
}

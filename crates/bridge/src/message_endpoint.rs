//! The message URL of HTTP with SSE (MCP 2024-11-05).

use portcullis_mcp::sse::Event;
use url::Url;

/// The address that an event names for messages. It receives the token, so it must have the start URL's origin and lie in the
/// folder of its path: a server at `/a/sse` may name `/a/messages`, but not `/b/messages`, which may be somebody else's.
pub(crate) fn message_endpoint(event: &Event, start: &Url) -> Option<Url> {
    if event.event.as_deref() != Some("endpoint") {
        return None;
    }
    let mut endpoint = start.join(event.data.trim()).ok()?;
    endpoint.set_fragment(None);
    if endpoint.origin() != start.origin() || !endpoint.username().is_empty() || endpoint.password().is_some() {
        tracing::warn!("the server names an address of another origin for messages, which is refused");
        return None;
    }
    let folder = start.path().rfind('/').map_or("/", |last| &start.path()[..=last]);
    if !endpoint.path().starts_with(folder) {
        tracing::warn!("the server names an address outside {folder} for messages, which is refused");
        return None;
    }
    Some(endpoint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_to_the_servers_own_origin_alone() {
        let start = Url::parse("https://mcp.example.com/sse?a=1").unwrap();
        let named = |data: &str| {
            let event = Event { event: Some("endpoint".into()), ..Event::message(data) };
            message_endpoint(&event, &start).map(|url| url.to_string())
        };
        assert_eq!(named("/messages?session=1#x").as_deref(), Some("https://mcp.example.com/messages?session=1"));
        assert_eq!(named("messages").as_deref(), Some("https://mcp.example.com/messages"));
        assert_eq!(named("https://mcp.example.com:443/m").as_deref(), Some("https://mcp.example.com/m"));
        for foreign in [
            "https://evil.example/m",
            "//evil.example/m",
            "http://mcp.example.com/m",
            "https://mcp.example.com:444/m",
            "https://user@mcp.example.com/m",
            "data:,x",
            "https://",
        ] {
            assert_eq!(named(foreign), None, "{foreign}");
        }
        assert!(message_endpoint(&Event::message("/messages"), &start).is_none());
    }
}

//! The checks and changes of a response's status and headers.

use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{LOCATION, SET_COOKIE},
};
use portcullis_mcp::header;
use portcullis_metadata::syntax::is_event_stream;

use super::failure::UpstreamFailure;
use crate::{
    address::Target, broker_cookies::remove_set_broker_cookies, hop_by_hop::is_hop_by_hop,
};

/// The header by which nginx decides whether it buffers a response.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// The header by which a script can control more of the origin, which the broker shares.
const NO: HeaderValue = HeaderValue::from_static("no");

/// Checks that a response with this status may be forwarded to the client. Fails for a 401, a 407,
/// a 101 and a redirect, which would refer the client to something other than this gateway.
pub(crate) fn check_status(
    status: StatusCode,
    headers: &HeaderMap,
    target: &Target,
) -> Result<(), UpstreamFailure> {
    match status {
        // The client would relate these to its own token.
        StatusCode::UNAUTHORIZED | StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
            Err(UpstreamFailure::Unauthorized)
        }
        // `Upgrade` is not forwarded, so no client requested it.
        StatusCode::SWITCHING_PROTOCOLS => Err(UpstreamFailure::SwitchingProtocols),
        StatusCode::NOT_MODIFIED => Ok(()),
        // `Location` is an address of the internal network, where a client would bypass the
        // gateway.
        _ if status.is_redirection() => Err(UpstreamFailure::Redirect(
            headers
                .get(LOCATION)
                .and_then(|location| target.redirected(location)),
        )),
        _ => Ok(()),
    }
}

/// Removes the headers that are not forwarded to the client, and disables the buffering of event
/// streams in proxies.
pub(crate) fn remove_headers(headers: &mut HeaderMap, forward_cookies: bool) {
    header::remove_connection_options(headers);
    let is_removed = |name: &&HeaderName| {
        is_hop_by_hop(name.as_str())
            || is_challenge(name.as_str())
            || is_address(name.as_str())
            || affects_origin(name.as_str())
            || (*name == SET_COOKIE && !forward_cookies)
    };
    while let Some(name) = headers.keys().find(is_removed).cloned() {
        headers.remove(name);
    }
    if forward_cookies {
        remove_set_broker_cookies(headers);
    }
    if is_event_stream(headers) {
        headers.insert(X_ACCEL_BUFFERING, NO);
    }
}

/// Returns whether the header belongs to the authentication between gateway and upstream.
fn is_challenge(name: &str) -> bool {
    matches!(
        name,
        "www-authenticate"
            | "proxy-authenticate"
            | "authentication-info"
            | "proxy-authentication-info"
    )
}

/// Returns whether the header affects the whole origin, which the upstream shares with other
/// resources and with the broker.
fn affects_origin(name: &str) -> bool {
    matches!(name, "service-worker-allowed" | "clear-site-data")
}

/// Returns whether the header contains an address, which may be an internal one.
fn is_address(name: &str) -> bool {
    matches!(
        name,
        "location" | "content-location" | "refresh" | "alt-svc"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_removal(
        pairs: &[(&'static str, &'static str)],
        cookies: bool,
    ) -> Vec<(String, String)> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        remove_headers(&mut headers, cookies);
        let mut left: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        left.sort();
        left
    }

    /// L1: hop-by-hop headers and those that `Connection` names are removed.
    #[test]
    fn hop_by_hop_headers_are_removed() {
        let headers = [
            ("connection", "close, X-Internal"),
            ("connection", " x-other "),
            ("x-internal", "1"),
            ("x-other", "1"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "close"),
            ("te", "trailers"),
            ("trailer", "expires"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("content-type", "application/json"),
            ("mcp-session-id", "s"),
        ];
        let left = [
            ("content-type", "application/json"),
            ("mcp-session-id", "s"),
        ];
        assert_eq!(
            after_removal(&headers, false),
            left.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
    }

    /// L1: no challenge of the upstream reaches the client.
    #[test]
    fn challenges_are_removed() {
        let challenges = [
            ("www-authenticate", "Bearer realm=\"other\""),
            ("www-authenticate", "Basic realm=\"other\""),
            ("proxy-authenticate", "Basic"),
            ("authentication-info", "x"),
            ("proxy-authentication-info", "x"),
        ];
        assert_eq!(after_removal(&challenges, true), []);
    }

    /// L10: no address of the upstream reaches the client, with any status.
    #[test]
    fn addresses_are_removed() {
        let addresses = [
            ("location", "http://10.0.0.1/mcp"),
            ("content-location", "/internal"),
            ("refresh", "0; url=http://10.0.0.1/"),
            ("alt-svc", "h2=\"10.0.0.1:443\""),
        ];
        assert_eq!(after_removal(&addresses, true), []);
    }

    /// OR1: no script of the upstream controls the rest of the origin, and no response empties its
    /// storage.
    #[test]
    fn headers_that_affect_the_origin_are_removed() {
        for header in [
            ("service-worker-allowed", "/"),
            ("clear-site-data", "\"*\""),
        ] {
            assert_eq!(after_removal(&[header], true), []);
        }
    }

    /// OR2: the upstream sets no cookie of the broker.
    #[test]
    fn cookies_of_the_broker_are_removed() {
        let cookies = [
            ("set-cookie", "__Host-portcullis-broker-form=1; Path=/"),
            ("set-cookie", "a=1"),
        ];
        assert_eq!(
            after_removal(&cookies, true),
            [("set-cookie".to_owned(), "a=1".to_owned())]
        );
    }

    /// L2: `Set-Cookie` is forwarded only if `Cookie` is.
    #[test]
    fn cookies_only_if_enabled() {
        assert_eq!(after_removal(&[("set-cookie", "a=1")], false), []);
        assert_eq!(
            after_removal(&[("set-cookie", "a=1"), ("set-cookie", "b=2")], true).len(),
            2
        );
    }

    /// Only event streams disable buffering.
    #[test]
    fn event_streams_are_not_buffered() {
        for (value, expected) in [
            ("text/event-stream", true),
            ("Text/Event-Stream ; charset=utf-8", true),
            ("text/event-streams", false),
            ("application/json", false),
        ] {
            let left = after_removal(&[("content-type", value)], false);
            assert_eq!(
                left.contains(&("x-accel-buffering".to_owned(), "no".to_owned())),
                expected,
                "{value}"
            );
        }
    }

    fn checked(status: u16, location: Option<&'static str>) -> Result<(), UpstreamFailure> {
        let url = url::Url::parse("http://10.0.0.1:8000/mcp?key=secret").unwrap();
        let target = Target::new(crate::UpstreamAddress::Tcp(url), None).unwrap();
        let headers = location.map(|location| (LOCATION, HeaderValue::from_static(location)));
        check_status(
            StatusCode::from_u16(status).unwrap(),
            &headers.into_iter().collect(),
            &target,
        )
    }

    /// L1: an upstream's 401 is not forwarded; its 403 is.
    #[test]
    fn statuses_that_are_not_forwarded() {
        for status in [401, 407, 101] {
            assert_eq!(
                checked(status, None).unwrap_err().status(),
                StatusCode::BAD_GATEWAY,
                "{status}"
            );
        }
        for status in [200, 201, 304, 403, 404, 502] {
            assert!(checked(status, Some("/elsewhere")).is_ok(), "{status}");
        }
    }

    /// L10: a redirect is not forwarded, and the log message names the address to configure,
    /// without secrets.
    #[test]
    fn redirects_are_not_forwarded() {
        for (location, expected) in [
            (Some("/mcp/"), "http://10.0.0.1:8000/mcp/"),
            (Some("v2?key=secret#x"), "http://10.0.0.1:8000/v2"),
            (
                Some("https://user:secret@other.example/mcp?key=secret"),
                "https://other.example/mcp",
            ),
            (
                Some("//other.example:9000/a b"),
                "http://other.example:9000/a%20b",
            ),
            (Some("http://[::1"), "an invalid address"),
            (Some("mailto:secret@example.com"), "an invalid address"),
            (None, "an invalid address"),
        ] {
            for status in [300, 301, 302, 303, 305, 307, 308] {
                let failure = checked(status, location).unwrap_err();
                assert_eq!(failure.status(), StatusCode::BAD_GATEWAY);
                assert_eq!(failure.code(), "upstream.redirect");
                let text = failure.to_string();
                assert!(
                    text.contains(&format!("redirects to {expected};")),
                    "{location:?}: {text}"
                );
                assert!(!text.contains("secret"), "{text}");
                assert!(text.contains("`upstream`"), "{text}");
            }
        }
    }
}

use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{LOCATION, SET_COOKIE},
};
use portcullis_metadata::is_event_stream;

use crate::{address::Target, failure::Failure};

const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
const NO: HeaderValue = HeaderValue::from_static("no");

/// Checks whether an answer with this status may be passed on to the client.
pub(crate) fn check(status: StatusCode, headers: &HeaderMap, target: &Target) -> Result<(), Failure> {
    match status {
        // To a client these would be this service's own words about the client's token or connection.
        StatusCode::UNAUTHORIZED | StatusCode::PROXY_AUTHENTICATION_REQUIRED => Err(Failure::Unauthorized),
        // Never asked for: `Upgrade` is not passed on.
        StatusCode::SWITCHING_PROTOCOLS => Err(Failure::SwitchingProtocols),
        StatusCode::NOT_MODIFIED => Ok(()),
        // Its `Location` is an address of the internal network, and a client that followed it would leave the gateway.
        _ if status.is_redirection() => {
            Err(Failure::Redirect(headers.get(LOCATION).and_then(|location| target.redirected(location))))
        }
        _ => Ok(()),
    }
}

/// Makes an upstream's headers the client's.
pub(crate) fn clean(headers: &mut HeaderMap, cookies: bool) {
    let is_dropped = |name: &&HeaderName| {
        is_challenge(name.as_str()) || is_address(name.as_str()) || (*name == SET_COOKIE && !cookies)
    };
    while let Some(name) = headers.keys().find(is_dropped).cloned() {
        headers.remove(name);
    }
    if is_event_stream(headers) {
        headers.insert(X_ACCEL_BUFFERING, NO);
    }
}

/// Whether a header of this name is part of an authentication that the client has no part in.
fn is_challenge(name: &str) -> bool {
    matches!(name, "www-authenticate" | "proxy-authenticate" | "authentication-info" | "proxy-authentication-info")
}

/// Whether a header of this name gives an address. The upstream knows its own, which clients must neither see nor use.
fn is_address(name: &str) -> bool {
    matches!(name, "location" | "content-location" | "refresh" | "alt-svc")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(pairs: &[(&'static str, &'static str)], cookies: bool) -> Vec<(String, String)> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        clean(&mut headers, cookies);
        let mut left: Vec<_> =
            headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
        left.sort();
        left
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
        assert_eq!(cleaned(&challenges, true), []);
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
        assert_eq!(cleaned(&addresses, true), []);
    }

    /// L2: cookies come back only where they go to.
    #[test]
    fn cookies_only_where_allowed() {
        assert_eq!(cleaned(&[("set-cookie", "a=1")], false), []);
        assert_eq!(cleaned(&[("set-cookie", "a=1"), ("set-cookie", "b=2")], true).len(), 2);
    }

    /// Event streams tell proxies not to buffer, other answers do not.
    #[test]
    fn event_streams_are_not_buffered() {
        for (value, expected) in [
            ("text/event-stream", true),
            ("Text/Event-Stream ; charset=utf-8", true),
            ("text/event-streams", false),
            ("application/json", false),
        ] {
            let left = cleaned(&[("content-type", value)], false);
            assert_eq!(left.contains(&("x-accel-buffering".to_owned(), "no".to_owned())), expected, "{value}");
        }
    }

    fn checked(status: u16, location: Option<&'static str>) -> Result<(), Failure> {
        let url = url::Url::parse("http://10.0.0.1:8000/mcp?key=secret").unwrap();
        let target = Target::new(crate::UpstreamAddress::Tcp(url), None).unwrap();
        let headers = location.map(|location| (LOCATION, HeaderValue::from_static(location)));
        check(StatusCode::from_u16(status).unwrap(), &headers.into_iter().collect(), &target)
    }

    /// L1: an upstream's 401 never looks like ours; 403 stays.
    #[test]
    fn statuses_that_are_not_passed_on() {
        for status in [401, 407, 101] {
            assert_eq!(checked(status, None).unwrap_err().status(), StatusCode::BAD_GATEWAY, "{status}");
        }
        for status in [200, 201, 304, 403, 404, 502] {
            assert!(checked(status, Some("/elsewhere")).is_ok(), "{status}");
        }
    }

    /// L10: a redirect is not passed on, and the log names the address to configure, without secrets.
    #[test]
    fn redirects_are_not_passed_on() {
        for (location, expected) in [
            (Some("/mcp/"), "http://10.0.0.1:8000/mcp/"),
            (Some("v2?key=secret#x"), "http://10.0.0.1:8000/v2"),
            (Some("https://user:secret@other.example/mcp?key=secret"), "https://other.example/mcp"),
            (Some("//other.example:9000/a b"), "http://other.example:9000/a%20b"),
            (Some("http://[::1"), "an address that cannot be read"),
            (Some("mailto:secret@example.com"), "an address that cannot be read"),
            (None, "an address that cannot be read"),
        ] {
            for status in [300, 301, 302, 303, 305, 307, 308] {
                let failure = checked(status, location).unwrap_err();
                assert_eq!((failure.status(), failure.code()), (StatusCode::BAD_GATEWAY, "upstream.redirect"));
                let text = failure.to_string();
                assert!(text.contains(&format!("redirects to {expected};")), "{location:?}: {text}");
                assert!(!text.contains("secret") && text.contains("`upstream`"), "{text}");
            }
        }
    }
}

use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{CONTENT_TYPE, SET_COOKIE},
};

use crate::failure::Failure;

const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
const NO: HeaderValue = HeaderValue::from_static("no");

/// What the upstream's status means for the client: nothing, or that the answer is not passed on.
pub(crate) fn judge(status: StatusCode) -> Result<(), Failure> {
    match status {
        // To a client these would be this service's own words about the client's token or connection.
        StatusCode::UNAUTHORIZED | StatusCode::PROXY_AUTHENTICATION_REQUIRED => Err(Failure::Unauthorized),
        // Never asked for: `Upgrade` is not passed on.
        StatusCode::SWITCHING_PROTOCOLS => Err(Failure::SwitchingProtocols),
        _ => Ok(()),
    }
}

/// Makes an upstream's headers the client's.
pub(crate) fn clean(headers: &mut HeaderMap, cookies: bool) {
    let is_dropped = |name: &&HeaderName| is_challenge(name.as_str()) || (*name == SET_COOKIE && !cookies);
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

fn is_event_stream(headers: &HeaderMap) -> bool {
    const EVENT_STREAM: &[u8] = b"text/event-stream";
    headers.get(CONTENT_TYPE).is_some_and(|value| {
        let media_type = value.as_bytes().split(|&b| b == b';').next().unwrap_or_default();
        media_type.trim_ascii().eq_ignore_ascii_case(EVENT_STREAM)
    })
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

    /// L1: an upstream's 401 never looks like ours; 403 stays.
    #[test]
    fn statuses_that_are_not_passed_on() {
        assert_eq!(judge(StatusCode::UNAUTHORIZED).unwrap_err().status(), StatusCode::BAD_GATEWAY);
        assert_eq!(judge(StatusCode::PROXY_AUTHENTICATION_REQUIRED).unwrap_err().status(), StatusCode::BAD_GATEWAY);
        assert_eq!(judge(StatusCode::SWITCHING_PROTOCOLS).unwrap_err().status(), StatusCode::BAD_GATEWAY);
        for status in [StatusCode::OK, StatusCode::FORBIDDEN, StatusCode::NOT_FOUND, StatusCode::BAD_GATEWAY] {
            assert!(judge(status).is_ok());
        }
    }
}

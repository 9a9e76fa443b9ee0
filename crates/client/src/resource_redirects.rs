//! [`ResourceRedirects`]: follows redirects within the resource, and explains the refusal of all
//! others.

use std::fmt;

use http::{HeaderMap, StatusCode, header};
use portcullis_discovery::ResourceMatch;
use portcullis_metadata::{
    EscapedText, ResourceUri,
    syntax::{has_encoded_path_syntax, url_without_secrets},
};
use url::Url;

/// Why a redirect is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedirectRefusal {
    /// The response has no `Location` that is a URL.
    NoTarget,
    /// Only 307 and 308 keep the method and the body (RFC 9110 section 15.4).
    ChangesMethod,
    /// The target has `http` instead of `https`: the server does not know that its proxy terminates
    /// TLS.
    Downgrade,
    /// The target has another scheme, host or port, or user information. The token must not be sent
    /// there.
    OtherOrigin,
    /// The target does not lie under the token's resource.
    OutsideResource,
    /// The request was already redirected three times.
    TooMany,
}

impl fmt::Display for RedirectRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoTarget => "it names no valid target",
            Self::ChangesMethod => "only 307 and 308 are followed",
            Self::Downgrade => {
                "the server does not know that clients use https: its proxy must send X-Forwarded-Proto, and the server \
                 must trust that header"
            }
            Self::OtherOrigin => "the target has another scheme, host or port",
            Self::OutsideResource => "the target is outside the resource of the token",
            Self::TooMany => "the request was already redirected three times",
        })
    }
}

/// A redirect that is not followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the endpoint redirected ({status}){}, which is not followed: {refusal}", target_of(.target.as_deref()))]
#[non_exhaustive]
pub struct RefusedRedirect {
    /// The status.
    pub status: StatusCode,
    /// The target without its query, escaped and truncated. None if the response has no valid
    /// target.
    pub target: Option<String>,
    /// The reason.
    pub refusal: RedirectRefusal,
}

/// The maximum number of redirects of one request.
const MAX_REDIRECTS: u32 = 3;
/// The maximum length of a target in an error.
const MAX_SHOWN: usize = 200;

/// Counts the redirects of one request to a resource.
#[derive(Clone, Debug, Default)]
pub struct ResourceRedirects {
    followed: u32,
}

impl ResourceRedirects {
    /// Returns the URL to which the request must be sent again, with its method and body (RFC 9110
    /// section 15.4). It has the origin of `url` and lies under `resource`: that of the token, or
    /// the start URL if there is no token.
    ///
    /// # Errors
    /// Fails for every other redirect, and for the fourth redirect.
    pub fn follow(
        &mut self,
        status: StatusCode,
        headers: &HeaderMap,
        url: &Url,
        resource: Option<&ResourceUri>,
    ) -> Result<Url, RefusedRedirect> {
        let location = headers
            .get(header::LOCATION)
            .map(|value| String::from_utf8_lossy(value.as_bytes()));
        let target = location
            .as_deref()
            .and_then(|location| url.join(location).ok());
        let refused = |refusal| {
            let target = target.as_ref().map(shown);
            Err(RefusedRedirect {
                status,
                target,
                refusal,
            })
        };
        let Some(target) = &target else {
            return refused(RedirectRefusal::NoTarget);
        };
        if url.scheme() == "https" && target.scheme() == "http" && url.host() == target.host() {
            return refused(RedirectRefusal::Downgrade);
        }
        if !matches!(
            status,
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
        ) {
            return refused(RedirectRefusal::ChangesMethod);
        }
        if target.origin() != url.origin()
            || !target.username().is_empty()
            || target.password().is_some()
        {
            return refused(RedirectRefusal::OtherOrigin);
        }
        if !resource.is_some_and(|resource| is_under(resource, target)) {
            return refused(RedirectRefusal::OutsideResource);
        }
        if self.followed >= MAX_REDIRECTS {
            return refused(RedirectRefusal::TooMany);
        }
        self.followed += 1;
        let mut target = target.clone();
        target.set_fragment(None);
        Ok(target)
    }
}

/// Whether every server resolves the target to a path under the resource.
fn is_under(resource: &ResourceUri, target: &Url) -> bool {
    if ResourceMatch::of(resource, target).is_none() {
        return false;
    }
    let below = target
        .path()
        .get(resource.url().path().trim_end_matches('/').len()..);
    below.is_some_and(|below| !has_encoded_path_syntax(below))
}

fn target_of(target: Option<&str>) -> String {
    target
        .map(|target| format!(" to {target}"))
        .unwrap_or_default()
}

/// The URL without user information, query and fragment, escaped and truncated.
fn shown(target: &Url) -> String {
    EscapedText::first(url_without_secrets(target).as_str(), MAX_SHOWN).to_string()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// The target that is followed, or the reason and the error.
    fn follow(
        start: &str,
        status: u16,
        location: &str,
    ) -> Result<String, (RedirectRefusal, String)> {
        let resource = ResourceUri::parse(start).unwrap();
        let headers =
            HeaderMap::from_iter([(header::LOCATION, HeaderValue::from_str(location).unwrap())]);
        let status = StatusCode::from_u16(status).unwrap();
        let followed =
            ResourceRedirects::default().follow(status, &headers, resource.url(), Some(&resource));
        followed
            .map(Into::into)
            .map_err(|error| (error.refusal, error.to_string()))
    }

    #[test]
    fn a_trailing_slash_is_followed() {
        let with = "https://mcp.example.com/mcp/";
        let without = "https://mcp.example.com/mcp";
        for status in [307, 308] {
            assert_eq!(follow(without, status, with).unwrap(), with);
            assert_eq!(follow(without, status, "/mcp/#x").unwrap(), with);
            assert_eq!(follow(with, status, "../mcp").unwrap(), without);
            assert_eq!(
                follow(without, status, "/mcp/v1?a=b").unwrap(),
                "https://mcp.example.com/mcp/v1?a=b"
            );
        }
    }

    /// I9: a redirect outside the resource is not followed.
    #[test]
    fn every_other_redirect_is_refused() {
        use RedirectRefusal::*;
        let start = "https://mcp.example.com/mcp";
        for (status, location, refusal) in [
            (307, "https://evil.example/mcp/", OtherOrigin),
            (308, "//evil.example/mcp/", OtherOrigin),
            (307, "https://mcp.example.com:444/mcp/", OtherOrigin),
            (
                307,
                "https://mcp.example.com@evil.example/mcp/",
                OtherOrigin,
            ),
            (307, "https://user@mcp.example.com/mcp/", OtherOrigin),
            (307, "ftp://mcp.example.com/mcp/", OtherOrigin),
            (307, "/", OutsideResource),
            (307, "/other", OutsideResource),
            (307, "/mcpx", OutsideResource),
            (307, "/mcp/../other", OutsideResource),
            (307, "/mcp/%2e%2e/other", OutsideResource),
            (307, "/mcp/..%2fother", OutsideResource),
            (307, "/mcp/..%5Cother", OutsideResource),
            (307, "http://mcp.example.com/mcp/", Downgrade),
            (302, "http://mcp.example.com/mcp/", Downgrade),
            (307, "http://evil.example/mcp/", OtherOrigin),
            (301, "/mcp/", ChangesMethod),
            (302, "/mcp/", ChangesMethod),
            (303, "/mcp/", ChangesMethod),
            (304, "/mcp/", ChangesMethod),
            (307, "https://", NoTarget),
        ] {
            assert_eq!(
                follow(start, status, location).unwrap_err().0,
                refusal,
                "{status} {location}"
            );
        }
        // Some servers decode twice.
        assert_eq!(
            follow(start, 307, "/mcp/%252e").unwrap_err().0,
            OutsideResource
        );
        assert_eq!(
            follow(start, 307, "/mcp/%2520").unwrap(),
            "https://mcp.example.com/mcp/%2520"
        );
    }

    /// J2: the error shows the target without its query and without deceptive characters.
    #[test]
    fn the_error_shows_the_target() {
        let (_, text) = follow(
            "https://mcp.example.com/mcp",
            307,
            "https://a:b@evil.example/x?token=hush#y",
        )
        .unwrap_err();
        assert_eq!(
            text,
            "the endpoint redirected (307 Temporary Redirect) to https://evil.example/x, which is not followed: \
             the target has another scheme, host or port"
        );
        let (_, text) = follow(
            "https://mcp.example.com/mcp",
            307,
            "http://mcp.example.com/mcp/",
        )
        .unwrap_err();
        assert!(text.contains("to http://mcp.example.com/mcp/,"), "{text}");
        assert!(text.contains("X-Forwarded-Proto"), "{text}");
        let long = format!("https://evil.example/{}", "x".repeat(5000));
        assert!(
            follow("https://mcp.example.com/mcp", 307, &long)
                .unwrap_err()
                .1
                .len()
                < 400
        );
    }

    #[test]
    fn three_redirects_are_followed() {
        let resource = ResourceUri::parse("https://mcp.example.com/mcp").unwrap();
        let headers = HeaderMap::from_iter([(header::LOCATION, HeaderValue::from_static("/mcp/"))]);
        let mut redirects = ResourceRedirects::default();
        let mut follow = || {
            redirects.follow(
                StatusCode::TEMPORARY_REDIRECT,
                &headers,
                resource.url(),
                Some(&resource),
            )
        };
        assert!((0..3).all(|_| follow().is_ok()));
        assert_eq!(follow().unwrap_err().refusal, RedirectRefusal::TooMany);
    }
}

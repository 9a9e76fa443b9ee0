//! [`CookieJar`]: the cookies of one origin, in memory.

use cookie_store::{Cookie, CookieDomain, CookieStore};
use http::{HeaderMap, HeaderValue, header};
use parking_lot::Mutex;
use url::{Origin, Url};

/// The cookies that one origin has set (RFC 6265). They are sent only to this origin, and end with
/// the process.
///
/// A load balancer uses them to send the requests of a session to the same instance.
pub(crate) struct CookieJar {
    origin: Origin,
    store: Mutex<CookieStore>,
}

/// The maximum number of cookies; further ones are ignored. RFC 6265 section 6.1 recommends at
/// least 50 for each domain.
const MAX_COOKIES: usize = 64;
/// The maximum size of a `Set-Cookie` value, the size that RFC 6265 section 6.1 recommends to
/// support.
const MAX_SIZE: usize = 4096;

impl CookieJar {
    /// An empty jar for the origin of `start`.
    pub(crate) fn new(start: &Url) -> Self {
        Self {
            origin: start.origin(),
            store: Mutex::new(CookieStore::new()),
        }
    }

    /// Adds the cookies for `url` to a request, after those that the request already has.
    pub(crate) fn add_to(&self, url: &Url, headers: &mut HeaderMap) {
        if url.origin() != self.origin {
            return;
        }
        let pairs: Vec<String> = self
            .store
            .lock()
            .get_request_values(url)
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        if pairs.is_empty() {
            return;
        }
        let mut line = headers
            .get(header::COOKIE)
            .map(|own| own.as_bytes().to_vec())
            .unwrap_or_default();
        if !line.is_empty() {
            line.extend_from_slice(b"; ");
        }
        line.extend_from_slice(pairs.join("; ").as_bytes());
        if let Ok(mut value) = HeaderValue::from_bytes(&line) {
            value.set_sensitive(true);
            headers.insert(header::COOKIE, value);
        }
    }

    /// Stores the cookies of a response from `url`. A cookie for another domain than the host is
    /// ignored.
    pub(crate) fn receive(&self, url: &Url, headers: &HeaderMap) {
        if url.origin() != self.origin || !headers.contains_key(header::SET_COOKIE) {
            return;
        }
        let values = headers
            .get_all(header::SET_COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok());
        let cookies = values
            .filter(|value| value.len() <= MAX_SIZE)
            .filter_map(|value| Cookie::parse(value, url).ok());
        let mut store = self.store.lock();
        for cookie in cookies.filter(|cookie| is_for_host(cookie, url)) {
            let is_known = cookie
                .domain
                .as_cow()
                .is_some_and(|domain| store.contains(&domain, &cookie.path, cookie.name()));
            if is_known || store.iter_unexpired().count() < MAX_COOKIES {
                // An expired cookie removes the stored one, and is an error if there is none.
                let _ = store.insert(cookie.into_owned(), url);
            }
        }
        remove_expired(&mut store);
    }
}

fn is_for_host(cookie: &Cookie<'_>, url: &Url) -> bool {
    match &cookie.domain {
        CookieDomain::HostOnly(_) => true,
        CookieDomain::Suffix(_) => cookie.domain.host_is_identical(url),
        CookieDomain::NotPresent | CookieDomain::Empty => false,
    }
}

fn remove_expired(store: &mut CookieStore) {
    let expired: Vec<(String, String, String)> = store
        .iter_any()
        .filter(|cookie| cookie.is_expired())
        .map(|cookie| {
            (
                String::from(&cookie.domain),
                String::from(&cookie.path),
                cookie.name().to_owned(),
            )
        })
        .collect();
    for (domain, path, name) in expired {
        store.remove(&domain, &path, &name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = "https://mcp.example.com/mcp";

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn set(jar: &CookieJar, from: &str, cookies: &[&str]) {
        let cookies = cookies
            .iter()
            .map(|cookie| (header::SET_COOKIE, HeaderValue::from_str(cookie).unwrap()));
        let mut headers = HeaderMap::new();
        for (name, value) in cookies {
            headers.append(name, value);
        }
        jar.receive(&url(from), &headers);
    }

    fn sent(jar: &CookieJar, to: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        jar.add_to(&url(to), &mut headers);
        headers
            .get(header::COOKIE)
            .map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn cookies_return_to_their_paths() {
        let jar = CookieJar::new(&url(START));
        set(
            &jar,
            START,
            &[
                "AWSALB=abc; Path=/",
                "deep=1; Path=/mcp/deep; HttpOnly",
                "gone=1",
            ],
        );
        set(
            &jar,
            START,
            &[
                "gone=; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
                "over=1; Max-Age=0",
            ],
        );
        assert_eq!(sent(&jar, START).unwrap(), "AWSALB=abc");
        assert_eq!(
            jar.store.lock().iter_any().count(),
            2,
            "nothing expired is kept"
        );
        let deep = sent(&jar, "https://mcp.example.com/mcp/deep?a=b").unwrap();
        assert!(deep.contains("AWSALB=abc"), "{deep}");
        assert!(deep.contains("deep=1"), "{deep}");
        set(&jar, START, &["AWSALB=def; Path=/"]);
        assert_eq!(sent(&jar, START).unwrap(), "AWSALB=def");
    }

    /// I9: a cookie is sent only to the origin that set it.
    #[test]
    fn another_origin_neither_sets_nor_gets_cookies() {
        let jar = CookieJar::new(&url(START));
        set(&jar, START, &["a=1; Path=/"]);
        for foreign in [
            "https://evil.example/mcp",
            "https://mcp.example.com:444/mcp",
            "http://mcp.example.com/mcp",
            "https://x.mcp.example.com/mcp",
        ] {
            assert_eq!(sent(&jar, foreign), None, "{foreign}");
            set(&jar, foreign, &["b=2; Path=/", "a=3; Path=/"]);
        }
        for domain in [
            "example.com",
            ".example.com",
            "com",
            "evil.example",
            "x.mcp.example.com",
        ] {
            set(&jar, START, &[&format!("c=3; Path=/; Domain={domain}")]);
        }
        assert_eq!(sent(&jar, START).unwrap(), "a=1");

        set(&jar, START, &["own=4; Path=/; Domain=mcp.example.com"]);
        assert!(sent(&jar, START).unwrap().contains("own=4"));
    }

    #[test]
    fn a_secure_cookie_needs_https() {
        let plain = "http://192.0.2.1/mcp";
        let jar = CookieJar::new(&url(plain));
        set(&jar, plain, &["a=1; Secure", "b=2"]);
        assert_eq!(sent(&jar, plain).unwrap(), "b=2");
    }

    #[test]
    fn number_and_size_are_bounded() {
        let jar = CookieJar::new(&url(START));
        for number in 0..1000 {
            set(&jar, START, &[&format!("c{number}=1; Path=/")]);
        }
        set(&jar, START, &[&format!("large={}", "x".repeat(MAX_SIZE))]);
        assert_eq!(sent(&jar, START).unwrap().split("; ").count(), MAX_COOKIES);
        set(&jar, START, &["c0=; Path=/; Max-Age=0", "next=1; Path=/"]);
        assert!(
            sent(&jar, START).unwrap().contains("next=1"),
            "an expired cookie makes space"
        );
    }

    /// Malformed cookies are ignored, and the user's own cookies stay.
    #[test]
    fn malformed_cookies_are_ignored() {
        let jar = CookieJar::new(&url(START));
        for odd in [
            "",
            "=",
            ";",
            "a",
            "=b; Path",
            "a=b; Domain=",
            "a=b; Domain=.",
            "x=\u{e9}",
            "n=1; Max-Age=-99999999999999999999",
        ] {
            if let Ok(value) = HeaderValue::from_bytes(odd.as_bytes()) {
                jar.receive(
                    &url(START),
                    &HeaderMap::from_iter([(header::SET_COOKIE, value)]),
                );
            }
        }
        set(&jar, START, &["a=1; Path=/"]);
        let mut headers =
            HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_static("mine=0"))]);
        jar.add_to(&url(START), &mut headers);
        let line = headers[header::COOKIE].to_str().unwrap();
        assert!(line.starts_with("mine=0; "), "{line}");
        assert!(line.contains("a=1"), "{line}");
        assert!(headers[header::COOKIE].is_sensitive());
    }
}

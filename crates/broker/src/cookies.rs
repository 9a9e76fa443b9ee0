//! Cookies of the broker.

use std::{fmt::Write as _, time::Duration};

use http::{HeaderMap, HeaderValue, header};
use portcullis_metadata::syntax::BROKER_COOKIE_PREFIX;
pub use portcullis_metadata::syntax::is_broker_cookie;
use url::Url;

/// The cookies of the broker. They bind a form, a transaction or a remembered consent to one
/// browser, and prove nothing else. On `https`, their names have the prefix `__Host-`, so that
/// another host cannot set them (OR3).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cookies {
    is_secure: bool,
}

impl Cookies {
    pub(crate) fn new(base_url: &Url) -> Self {
        Self {
            is_secure: base_url.scheme() == "https",
        }
    }

    /// Returns the value of the cookie with this name. `None` if there is none, or more than one.
    pub(crate) fn get<'h>(self, headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
        let mut values = self.values(headers, name);
        let first = values.next()?;
        values.next().is_none().then_some(first)
    }

    fn values<'h>(self, headers: &'h HeaderMap, name: &str) -> impl Iterator<Item = &'h str> {
        let name = self.name(name);
        pairs(headers).filter_map(move |(found, value)| (found == name).then_some(value))
    }

    /// Returns the names of all cookies of the broker in the order of the request, without their
    /// prefix.
    pub(crate) fn names(self, headers: &HeaderMap) -> impl Iterator<Item = &str> {
        let prefix = self.name("");
        pairs(headers).filter_map(move |(name, _)| name.strip_prefix(&*prefix))
    }

    /// Returns the header that sets a cookie. The name and the value must have only letters,
    /// digits, `-` and `_`.
    pub(crate) fn set(self, name: &str, value: &str, age: Duration) -> Option<HeaderValue> {
        let mut text = format!(
            "{}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={}",
            self.name(name),
            age.as_secs()
        );
        if self.is_secure {
            write!(text, "; Secure").ok()?;
        }
        let mut header = HeaderValue::from_str(&text).ok()?;
        header.set_sensitive(true);
        Some(header)
    }

    /// Returns the header that removes a cookie.
    pub(crate) fn remove(self, name: &str) -> Option<HeaderValue> {
        self.set(name, "", Duration::ZERO)
    }

    fn name(self, name: &str) -> String {
        let prefix = if self.is_secure { "__Host-" } else { "" };
        format!("{prefix}{BROKER_COOKIE_PREFIX}{name}")
    }
}

/// Returns the names and values of all cookies.
fn pairs(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let lines = headers.get_all(header::COOKIE).into_iter();
    lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookies(url: &str) -> Cookies {
        Cookies::new(&Url::parse(url).unwrap())
    }

    fn headers(lines: &[&str]) -> HeaderMap {
        let line = |line: &&str| (header::COOKIE, HeaderValue::from_str(line).unwrap());
        lines.iter().map(line).collect()
    }

    #[test]
    fn a_cookie_on_https_belongs_to_one_host() {
        let set = |url| {
            let header = cookies(url)
                .set("form", "abc", Duration::from_secs(60))
                .unwrap();
            header.to_str().unwrap().to_owned()
        };
        assert_eq!(
            set("https://mcp.example.com"),
            "__Host-portcullis-broker-form=abc; Path=/; HttpOnly; SameSite=Lax; Max-Age=60; Secure"
        );
        assert_eq!(
            set("http://127.0.0.1:3000"),
            "portcullis-broker-form=abc; Path=/; HttpOnly; SameSite=Lax; Max-Age=60"
        );
    }

    /// OR3: of two cookies with one name, none is used.
    #[test]
    fn a_cookie_is_read_only_if_it_is_unambiguous() {
        let cookies = cookies("https://mcp.example.com");
        let get = |lines: &[&str]| cookies.get(&headers(lines), "form").map(str::to_owned);
        let name = "__Host-portcullis-broker-form";
        assert_eq!(
            get(&[&format!("a=b; {name}=abc; c=d")]).as_deref(),
            Some("abc")
        );
        assert_eq!(
            get(&["a=b", &format!("{name}=abc")]).as_deref(),
            Some("abc")
        );
        assert_eq!(get(&[&format!("{name}=abc; {name}=def")]), None);
        assert_eq!(get(&["portcullis-broker-form=abc"]), None);
        assert_eq!(get(&[&format!("{name}2=abc")]), None);
        assert_eq!(get(&[]), None);
    }

    /// OR2
    #[test]
    fn the_names_of_the_broker_are_recognized() {
        for name in [
            "__Host-portcullis-broker-form",
            "__host-Portcullis-Broker-x",
            "portcullis-broker-",
        ] {
            assert!(is_broker_cookie(name), "{name}");
        }
        for name in [
            "",
            "__Host-",
            "portcullis",
            "xportcullis-broker-form",
            "é__Host-portcullis-broker-",
        ] {
            assert!(!is_broker_cookie(name), "{name}");
        }
    }
}

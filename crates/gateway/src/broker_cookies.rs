//! Cookies of the broker, which has the same origin as the upstreams behind this gateway: they stay
//! between the browser and the broker.

use std::borrow::Cow;

use http::{
    HeaderMap, HeaderValue,
    header::{Entry, SET_COOKIE},
};
use portcullis_metadata::syntax::{BROKER_COOKIE_PREFIX, is_broker_cookie};

/// Returns a value of `Cookie` without the cookies of the broker. `None` if nothing is left.
pub(crate) fn without_broker_cookies(value: &HeaderValue) -> Option<Cow<'_, HeaderValue>> {
    if !may_have_broker_cookies(value) {
        return Some(Cow::Borrowed(value));
    }
    let cookies = value.as_bytes().split(|byte| *byte == b';');
    let others: Vec<&[u8]> = cookies
        .map(<[u8]>::trim_ascii)
        .filter(|cookie| !is_broker_cookie(name(cookie)))
        .collect();
    let others = HeaderValue::from_bytes(&others.join(b"; ".as_slice())).ok()?;
    (!others.is_empty()).then_some(Cow::Owned(others))
}

/// Removes the values of `Set-Cookie` that set a cookie of the broker.
pub(crate) fn remove_set_broker_cookies(headers: &mut HeaderMap) {
    let is_set = |value: &HeaderValue| {
        may_have_broker_cookies(value) && is_broker_cookie(name(value.as_bytes()))
    };
    if !headers.get_all(SET_COOKIE).iter().any(is_set) {
        return;
    }
    let Entry::Occupied(entry) = headers.entry(SET_COOKIE) else {
        return;
    };
    let (_, values) = entry.remove_entry_mult();
    let others: Vec<HeaderValue> = values.filter(|value| !is_set(value)).collect();
    for value in others {
        headers.append(SET_COOKIE, value);
    }
}

/// Returns whether the beginning of the names of the broker's cookies is anywhere in the value.
fn may_have_broker_cookies(value: &HeaderValue) -> bool {
    let prefix = BROKER_COOKIE_PREFIX.as_bytes();
    value
        .as_bytes()
        .windows(prefix.len())
        .any(|part| part.eq_ignore_ascii_case(prefix))
}

/// Returns the name at the beginning of a cookie. Browsers send a cookie without a name as its
/// value alone, which servers read as a name and a value again: `=a=b` is `a=b`.
fn name(cookie: &[u8]) -> &[u8] {
    let is_ignored = |byte: &u8| matches!(byte, b'=' | b' ' | b'\t');
    let start = cookie.iter().position(|byte| !is_ignored(byte));
    let cookie = &cookie[start.unwrap_or(cookie.len())..];
    let end = cookie.iter().position(|byte| matches!(byte, b'=' | b';'));
    cookie[..end.unwrap_or(cookie.len())].trim_ascii_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OR2: an upstream gets no cookie of the broker.
    #[test]
    fn cookies_of_the_broker_are_not_forwarded() {
        for (value, expected) in [
            ("a=1; b=2", Some("a=1; b=2")),
            ("a=\"1\";b", Some("a=\"1\";b")),
            ("a=portcullis-broker-x", Some("a=portcullis-broker-x")),
            ("__Host-portcullis-broker-x=1", None),
            ("portcullis-broker-x=1;", None),
            (
                "a=1; __Host-portcullis-broker-x=1;PORTCULLIS-broker-y = 2 ;b=2",
                Some("a=1; b=2"),
            ),
            ("=portcullis-broker-x=1; a=1", Some("a=1")),
            ("portcullis-broker-x; a=1", Some("a=1")),
        ] {
            let value = HeaderValue::from_static(value);
            let left = without_broker_cookies(&value);
            let left = left.as_ref().map(|left| left.to_str().unwrap());
            assert_eq!(left, expected, "{value:?}");
        }
        let binary = HeaderValue::from_bytes(b"portcullis-broker-\xff=1; a=\xff").unwrap();
        assert_eq!(
            without_broker_cookies(&binary).unwrap().as_bytes(),
            b"a=\xff"
        );
    }

    /// OR2: an upstream sets no cookie of the broker.
    #[test]
    fn cookies_of_the_broker_are_not_set() {
        let mut headers = HeaderMap::new();
        for value in [
            "a=portcullis-broker-x",
            "__Host-portcullis-broker-x=1; Path=/; Secure",
            " Portcullis-Broker-x =1",
            "=__Host-portcullis-broker-x=1",
            "b=2; Path=/",
        ] {
            headers.append(SET_COOKIE, HeaderValue::from_static(value));
        }
        remove_set_broker_cookies(&mut headers);
        let left: Vec<_> = headers.get_all(SET_COOKIE).iter().collect();
        assert_eq!(left, ["a=portcullis-broker-x", "b=2; Path=/"]);
    }
}

//! Checks that fail with the expected and the actual value.

use std::fmt::Debug;

use anyhow::{Context as _, bail};
use http::{HeaderMap, StatusCode, header};
use portcullis_discovery::FetchResponse;
use serde_json::Value;

/// Fails unless the values are equal. The error has both.
pub(crate) fn equal<E: Debug, G: Debug + PartialEq<E>>(
    what: &str,
    expected: E,
    got: G,
) -> anyhow::Result<()> {
    if got == expected {
        return Ok(());
    }
    bail!("{what}: expected {expected:?}, got {got:?}")
}

/// Fails unless a condition is true.
pub(crate) fn that(
    condition: bool,
    what: &str,
    expected: &str,
    got: impl Debug,
) -> anyhow::Result<()> {
    if condition {
        return Ok(());
    }
    bail!("{what}: expected {expected}, got {got:?}")
}

/// Fails unless a header field is present with a value in visible ASCII, and returns the first
/// value.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> anyhow::Result<&'a str> {
    let value = headers.get(name);
    let text = value.and_then(|value| value.to_str().ok());
    text.with_context(|| format!("{name}: expected visible ASCII, got {value:?}"))
}

/// Fails unless the headers have this media type. Its parameters are not compared.
pub(crate) fn media_type(what: &str, expected: &str, headers: &HeaderMap) -> anyhow::Result<()> {
    let what = format!("media type of {what}");
    let got = header(headers, header::CONTENT_TYPE.as_str()).with_context(|| what.clone())?;
    let (got, _parameters) = got.split_once(';').unwrap_or((got, ""));
    equal(&what, expected, got.trim())
}

/// Fails unless a response is a JSON document with this status, and returns the document.
pub(crate) fn json(
    what: &str,
    status: StatusCode,
    response: &FetchResponse,
) -> anyhow::Result<Value> {
    equal(&format!("status of {what}"), status, response.status)?;
    media_type(what, "application/json", &response.headers)?;
    serde_json::from_slice(&response.body).with_context(|| format!("{what}: expected JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_both_values() {
        assert!(equal("status", 401, 401).is_ok());
        let message = equal("status", 401, 200).unwrap_err().to_string();
        assert_eq!(message, "status: expected 401, got 200");
    }

    #[test]
    fn the_media_type_is_compared_without_parameters() {
        let check = |headers: &HeaderMap| {
            media_type("it", "text/plain", headers).map_err(|error| format!("{error:#}"))
        };
        let mut headers = HeaderMap::new();
        assert_eq!(
            check(&headers),
            Err("media type of it: content-type: expected visible ASCII, got None".to_owned())
        );
        headers.insert(
            header::CONTENT_TYPE,
            "text/plain ; charset=utf-8".parse().unwrap(),
        );
        assert_eq!(check(&headers), Ok(()));
        headers.insert(header::CONTENT_TYPE, "text/html".parse().unwrap());
        assert_eq!(
            check(&headers),
            Err("media type of it: expected \"text/plain\", got \"text/html\"".to_owned())
        );
    }
}

//! Checks that fail with the expected and the actual value.

use std::fmt::Debug;

use anyhow::{Context as _, bail};
use http::{HeaderMap, StatusCode, header};
use portcullis_discovery::FetchResponse;
use serde_json::Value;

/// Fails unless the values are equal. The error has both.
pub(super) fn equal<E: Debug, G: Debug + PartialEq<E>>(what: &str, expected: E, got: G) -> anyhow::Result<()> {
    if got == expected {
        return Ok(());
    }
    bail!("{what}: expected {expected:?}, got {got:?}")
}

/// Fails unless a condition is true.
pub(super) fn that(condition: bool, what: &str, expected: &str, got: impl Debug) -> anyhow::Result<()> {
    if condition {
        return Ok(());
    }
    bail!("{what}: expected {expected}, got {got:?}")
}

/// Returns the value of a header field, or an empty string if there is none.
pub(super) fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
}

/// Returns the media type without parameters.
pub(super) fn media_type(headers: &HeaderMap) -> &str {
    header(headers, header::CONTENT_TYPE.as_str()).split(';').next().unwrap_or("").trim()
}

/// Fails unless a response is a JSON document with this status, and returns the document.
pub(super) fn json(what: &str, status: StatusCode, response: &FetchResponse) -> anyhow::Result<Value> {
    equal(&format!("status of {what}"), status, response.status)?;
    equal(&format!("media type of {what}"), "application/json", media_type(&response.headers))?;
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
    fn parameters_of_the_media_type_are_removed() {
        let mut headers = HeaderMap::new();
        assert_eq!(media_type(&headers), "");
        headers.insert(header::CONTENT_TYPE, "text/plain; charset=utf-8".parse().unwrap());
        assert_eq!(media_type(&headers), "text/plain");
    }
}

//! The token in the header `Authorization` of a request.

use http::{HeaderMap, header::AUTHORIZATION};
use portcullis_metadata::Secret;

/// Returns the bearer token of a request (RFC 6750 section 2.1). `None` also for several
/// `Authorization` fields.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Option<Secret> {
    let (scheme, token) = authorization(headers)?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| Secret::new(token))
}

/// Returns the scheme and the credentials of a request. `None` also for several `Authorization`
/// fields.
pub(crate) fn authorization(headers: &HeaderMap) -> Option<(&str, &str)> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    value.to_str().ok()?.split_once(' ')
}

//! Strategies for property tests of documents.

use proptest::prelude::*;
use serde_json::{Map, Value};
use url::Url;

use crate::identifier::Issuer;

/// Unknown members: names that no document defines, with values of every type except empty arrays
/// and null.
pub(crate) fn extra() -> impl Strategy<Value = Map<String, Value>> {
    let value = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop::collection::vec(any::<String>(), 1..3).prop_map(Value::from),
        Just(serde_json::json!({"nested": [null, {"deep": []}]})),
    ];
    prop::collection::vec(("x_[a-z#]{0,6}", value), 0..4)
        .prop_map(|members| members.into_iter().collect())
}

/// A list with at least one entry.
pub(crate) fn entries() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(any::<String>(), 1..3)
}

/// The URL of an endpoint in normalized form.
pub(crate) fn endpoint() -> impl Strategy<Value = Url> {
    "https://[a-z]{1,8}\\.example(:8443)?/[a-zA-Z0-9._~%20-]{0,12}(\\?[a-z=&]{0,8})?"
        .prop_filter_map("a URL", |text| Url::parse(&text).ok())
}

/// An issuer with or without a path and a trailing slash.
pub(crate) fn issuer() -> impl Strategy<Value = Issuer> {
    "https://[a-zA-Z]{1,8}\\.example(/[a-z0-9]{1,6}){0,2}/?"
        .prop_map(|text| Issuer::parse(&text).unwrap())
}

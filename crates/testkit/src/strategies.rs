//! Strategies of property tests.

use proptest::prelude::*;
use serde_json::Value;

/// Generates short and long texts, with and without characters that JSON escapes.
pub fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]",
        "[ -~]{1,12}",
        "\\PC{1,6}",
        "(é){120,140}",
        "a(é){510,515}"
    ]
}

/// Generates any JSON value, up to four levels deep.
pub fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            proptest::collection::btree_map(any::<String>(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

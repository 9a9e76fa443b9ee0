//! Values and names of keys.

use crate::{KeyPath, Segment};
use figment::value::Value;

pub(super) fn get<'a>(root: &'a Value, key: &KeyPath) -> Option<&'a Value> {
    key.segments()
        .iter()
        .try_fold(root, |at, segment| match (at, segment) {
            (Value::Dict(_, dict), Segment::Name(name)) => dict.get(name),
            (Value::Dict(_, dict), Segment::Index(position)) => dict.get(&position.to_string()),
            (Value::Array(_, items), Segment::Index(position)) => items.get(*position),
            _ => None,
        })
}

/// Returns the last name of a path; an empty one for the whole configuration.
pub(super) fn last_name(key: &KeyPath) -> &str {
    key.names().next_back().unwrap_or_default()
}

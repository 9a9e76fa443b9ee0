//! What the schema says of a number: its unit, its range and its meaning.

use serde_json::Value;

use super::{node, variants};
use crate::KeyPath;

/// Returns the unit of a number, as in `limits.max_body = 4 is outside 1024 to 1073741824 bytes`:
/// ` bytes`, or nothing.
pub(crate) fn unit(key: &KeyPath) -> &'static str {
    let description = node(key).and_then(|node| node.get("description")?.as_str());
    match description {
        Some(text) if text.contains("in bytes") => " bytes",
        _ => "",
    }
}

/// Returns the least and the greatest value of an integer. `None` if the schema has no such range.
pub(crate) fn range(key: &KeyPath) -> Option<(u64, u64)> {
    let bound = |node: &Value, name: &str| node.get(name)?.as_u64();
    variants(node(key)?)
        .into_iter()
        .find_map(|node| Some((bound(node, "minimum")?, bound(node, "maximum")?)))
}

/// Returns what a key is, in the words of the first sentence of its description, such as `the
/// number of worker threads`. `None` if the sentence does not begin with an article.
pub(crate) fn meaning(key: &KeyPath) -> Option<String> {
    let description = node(key)?.get("description")?.as_str()?;
    let sentence = description
        .split_once(". ")
        .map_or(description, |(first, _)| first);
    let sentence = sentence.split(['.', ';', ':']).next()?;
    let rest = sentence.strip_prefix("The ")?;
    Some(format!(
        "the {}",
        rest.split_whitespace().collect::<Vec<_>>().join(" ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_meanings_are_found() {
        let at = KeyPath::parse;
        assert_eq!(range(&at("workers")), Some((1, 256)));
        assert_eq!(range(&at("limits.max_depth")), Some((8, 127)));
        assert_eq!(range(&at("audit.rotate_size")), None);
        let meaning = |key: &str| meaning(&at(key)).unwrap_or_default();
        assert_eq!(meaning("workers"), "the number of worker threads");
        let streams = "the maximum number of open HTTP/2 streams on a connection";
        assert_eq!(meaning("limits.max_streams"), streams);
        assert_eq!(meaning("session.keys[0]"), "");
    }
}

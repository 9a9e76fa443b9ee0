//! Matching of texts with patterns in which `*` is a wildcard.

/// Returns whether the whole text matches the pattern. `*` matches any run of bytes, including none and including `/`.
/// Every other byte matches itself. ASCII letter case is ignored.
///
/// The time is at most the product of both lengths.
///
/// ```
/// use portcullis_metadata::wildcard_matches;
///
/// assert!(wildcard_matches("file:///*.txt", "file:///notes/Today.TXT"));
/// assert!(!wildcard_matches("admin_*", "list_admins"));
/// ```
pub fn wildcard_matches(pattern: &str, text: &str) -> bool {
    let pattern = pattern.as_bytes();
    let text = text.as_bytes();
    let mut p = 0;
    let mut t = 0;
    // The position after the last star, and the end of the run that this star matches. Earlier stars need no second
    // attempt: the last star can match everything that they could.
    let mut last_star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                last_star = Some((p, t));
            }
            Some(byte) if byte.eq_ignore_ascii_case(&text[t]) => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((after_star, run_end)) = last_star else { return false };
                p = after_star;
                t = run_end + 1;
                last_star = Some((p, t));
            }
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// B9: a star matches any run of bytes, and everything else matches itself.
    #[test]
    fn stars_match_any_run() {
        for (pattern, matching, other) in [
            ("", &[""][..], &["a"][..]),
            ("add", &["add", "ADD"], &["", "ad", "adds", "xadd"]),
            ("*", &["", "x", "tools/call"], &[]),
            ("**", &["", "x"], &[]),
            ("a*b*c", &["abc", "a-b-b-c", "abbcc", "a/b/c"], &["acb", "ab", "abcd"]),
            ("*_write", &["_write", "a_write_write"], &["a_write_", "write"]),
        ] {
            assert!(matching.iter().all(|text| wildcard_matches(pattern, text)), "{pattern}");
            assert!(!other.iter().any(|text| wildcard_matches(pattern, text)), "{pattern}");
        }
    }

    /// The same by recursion.
    fn reference(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|length| reference(rest, &text[length..])),
            Some((byte, rest)) => {
                text.first().is_some_and(|first| first.eq_ignore_ascii_case(byte)) && reference(rest, &text[1..])
            }
        }
    }

    proptest! {
        /// B9: matching agrees with the recursive reference.
        #[test]
        fn matching_agrees_with_recursion(pattern in "[aAb\u{e9}/*]{0,6}", text in "[aAb\u{e9}/*]{0,8}") {
            prop_assert_eq!(wildcard_matches(&pattern, &text), reference(pattern.as_bytes(), text.as_bytes()));
        }
    }
}

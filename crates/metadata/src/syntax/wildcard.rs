//! [`Wildcard`]: patterns in which `*` matches any run of bytes.

/// A pattern in which `*` matches any run of bytes, including none and including `/`. Every other
/// byte matches itself. ASCII letter case is ignored.
///
/// ```
/// use portcullis_metadata::syntax::Wildcard;
///
/// assert!(Wildcard::new("file:///*.txt").matches("file:///notes/Today.TXT"));
/// assert!(!Wildcard::new("admin_*").matches("list_admins"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wildcard {
    /// The bytes before the first star: all of them, if there is none.
    prefix: Box<[u8]>,
    after_star: Option<AfterStar>,
}

/// What follows the first star of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AfterStar {
    /// The runs of bytes between two stars.
    inner: Box<[Run]>,
    /// The bytes after the last star.
    suffix: Box<[u8]>,
}

/// A run of bytes without a star, prepared for the search of Knuth, Morris and Pratt. It is not
/// empty.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    bytes: Box<[u8]>,
    /// For each prefix of `bytes`, the length of the longest shorter prefix that is also its end.
    borders: Box<[usize]>,
}

impl Wildcard {
    /// Returns the pattern with this text. Every text is a pattern.
    pub fn new(pattern: &str) -> Self {
        let pattern = pattern.to_ascii_lowercase();
        let Some((prefix, rest)) = pattern.split_once('*') else {
            return Self {
                prefix: pattern.into_bytes().into(),
                after_star: None,
            };
        };
        let (inner, suffix) = rest.rsplit_once('*').unwrap_or(("", rest));
        let inner = inner
            .split('*')
            .filter(|run| !run.is_empty())
            .map(|run| Run::new(run.as_bytes()))
            .collect();
        Self {
            prefix: prefix.as_bytes().into(),
            after_star: Some(AfterStar {
                inner,
                suffix: suffix.as_bytes().into(),
            }),
        }
    }

    /// Returns whether the whole text matches the pattern.
    ///
    /// At most two bytes are compared for each byte of the text, whatever the pattern is.
    pub fn matches(&self, text: &str) -> bool {
        self.matches_bytes(text.as_bytes(), |wanted, given| {
            wanted == given.to_ascii_lowercase()
        })
    }

    /// The same with another comparison of a byte of the pattern and one of the text.
    fn matches_bytes(&self, text: &[u8], mut equal: impl FnMut(u8, u8) -> bool) -> bool {
        let mut all_equal = |wanted: &[u8], given: &[u8]| {
            wanted
                .iter()
                .zip(given)
                .all(|(wanted, given)| equal(*wanted, *given))
        };
        let Some(AfterStar { inner, suffix }) = &self.after_star else {
            return text.len() == self.prefix.len() && all_equal(&self.prefix, text);
        };
        let Some((start, rest)) = text.split_at_checked(self.prefix.len()) else {
            return false;
        };
        let Some(middle) = rest.len().checked_sub(suffix.len()) else {
            return false;
        };
        let (mut rest, end) = rest.split_at(middle);
        if !all_equal(&self.prefix, start) || !all_equal(suffix, end) {
            return false;
        }
        // The first occurrence of a run leaves the most text for the next runs.
        for run in inner {
            let Some(after) = run.first_end(rest, &mut equal) else {
                return false;
            };
            rest = &rest[after..];
        }
        true
    }
}

impl Run {
    fn new(bytes: &[u8]) -> Self {
        let mut borders = vec![0; bytes.len()];
        let mut matched = 0;
        for index in 1..bytes.len() {
            while matched > 0 && bytes[matched] != bytes[index] {
                matched = borders[matched - 1];
            }
            matched += usize::from(bytes[matched] == bytes[index]);
            borders[index] = matched;
        }
        Self {
            bytes: bytes.into(),
            borders: borders.into(),
        }
    }

    /// Returns the end of the first occurrence in the text.
    fn first_end(&self, text: &[u8], mut equal: impl FnMut(u8, u8) -> bool) -> Option<usize> {
        let mut matched = 0;
        for (index, byte) in text.iter().enumerate() {
            loop {
                if equal(self.bytes[matched], *byte) {
                    matched += 1;
                    break;
                }
                if matched == 0 {
                    break;
                }
                matched = self.borders[matched - 1];
            }
            if matched == self.bytes.len() {
                return Some(index + 1);
            }
        }
        None
    }
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
            ("ADD", &["add", "Add"], &["ad"]),
            ("*", &["", "x", "tools/call"], &[]),
            ("**", &["", "x"], &[]),
            ("a*a", &["aa", "aba"], &["a", ""]),
            (
                "a*b*c",
                &["abc", "a-b-b-c", "abbcc", "a/b/c"],
                &["acb", "ab", "abcd", "ac"],
            ),
            ("*aab*", &["aaab", "xaabx"], &["aa", "abab"]),
            (
                "*_write",
                &["_write", "a_write_write"],
                &["a_write_", "write"],
            ),
        ] {
            let pattern = Wildcard::new(pattern);
            assert!(
                matching.iter().all(|text| pattern.matches(text)),
                "{pattern:?}"
            );
            assert!(
                !other.iter().any(|text| pattern.matches(text)),
                "{pattern:?}"
            );
        }
    }

    /// Returns how many bytes are compared.
    fn comparisons(pattern: &str, text: &str) -> usize {
        let mut count = 0;
        Wildcard::new(pattern).matches_bytes(text.as_bytes(), |wanted, given| {
            count += 1;
            wanted.eq_ignore_ascii_case(&given)
        });
        count
    }

    /// F12: the worst texts for backtracking take two comparisons for each byte.
    #[test]
    fn matching_is_linear() {
        let half = "a".repeat(4096);
        for pattern in [
            "*a*b*".to_owned(),
            "*a*a*a*a*b".to_owned(),
            format!("*{half}b*"),
            format!("{half}*{half}*b*"),
            format!("*{}b*", "*a".repeat(2000)),
        ] {
            for text in [
                "a".repeat(8192),
                "ab".repeat(4096),
                format!("{half}{half}b"),
                format!("{}b", "a".repeat(8000)),
            ] {
                let count = comparisons(&pattern, &text);
                assert!(
                    count <= 2 * text.len(),
                    "{count} comparisons: {} {}",
                    &pattern[..5],
                    &text[..5]
                );
            }
        }
    }

    /// The same by recursion.
    fn reference(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|length| reference(rest, &text[length..])),
            Some((byte, rest)) => {
                text.first()
                    .is_some_and(|first| first.eq_ignore_ascii_case(byte))
                    && reference(rest, &text[1..])
            }
        }
    }

    proptest! {
        /// B9: matching agrees with the recursive reference.
        #[test]
        fn matching_agrees_with_recursion(pattern in "[aAb\u{e9}/*]{0,6}", text in "[aAb\u{e9}/*]{0,8}") {
            let matches = Wildcard::new(&pattern).matches(&text);
            prop_assert_eq!(matches, reference(pattern.as_bytes(), text.as_bytes()));
        }

        /// B9: the same for patterns and texts that repeat themselves, and at most two comparisons
        /// for each byte.
        #[test]
        fn repetitive_texts_agree_with_recursion(pattern in "[ab]{0,2}(\\*[ab]{0,5}){0,3}", text in "[ab]{0,24}") {
            let matches = Wildcard::new(&pattern).matches(&text);
            prop_assert_eq!(matches, reference(pattern.as_bytes(), text.as_bytes()));
            prop_assert!(comparisons(&pattern, &text) <= 2 * text.len());
        }
    }
}

//! [`PathGlob`]: patterns for request paths.

use std::str::FromStr;

use portcullis_metadata::syntax::Wildcard;

use super::unambiguous_path::{UnambiguousPath, is_ambiguous, segments};

/// A pattern for request paths, matched segment by segment.
///
/// `*` matches any characters within a segment. `**` is a whole segment and matches any number of
/// segments, including none.
///
/// ```
/// use portcullis_guard::authorize::PathGlob;
///
/// let one = PathGlob::parse("/reports/*")?;
/// assert!(one.matches_path("/reports/7") && one.matches_path("/Reports/7/"));
/// assert!(!one.matches_path("/reports") && !one.matches_path("/reports/7/pages"));
///
/// let all = PathGlob::parse("/reports/**")?;
/// assert!(all.matches_path("/reports") && all.matches_path("/reports/7/pages"));
/// # Ok::<(), portcullis_guard::authorize::PathGlobError>(())
/// ```
///
/// Matching ignores ASCII letter case and one trailing slash, and percent-encoded characters are
/// decoded first. This is safe because a rule only adds scopes that a request needs. The guard
/// rejects ambiguous paths before it matches them (see [`RouteRule`](crate::authorize::RouteRule)).
///
/// For each segment of the pattern, each byte of the path is compared at most twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathGlob {
    pattern: Box<str>,
    segments: Box<[Segment]>,
}

/// A segment of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    /// `**`
    AnyNumber,
    One(Wildcard),
}

/// The maximum length of a pattern in bytes.
const MAX_BYTES: usize = 8192;

/// Why a string is not a path pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathGlobError {
    /// It is longer than 8,192 bytes.
    #[error("a path pattern must not be longer than {MAX_BYTES} bytes")]
    TooLong,
    /// It does not start with `/`.
    #[error("a path pattern must start with `/`")]
    NoLeadingSlash,
    /// A segment contains `**` and other characters.
    #[error("`**` must be a whole segment of a path pattern, as in `/reports/**`")]
    DoubleStarInSegment,
    /// It contains a character or a segment that no unambiguous path has.
    #[error(
        "a path pattern must not contain `?`, `#`, `%`, `;`, backslashes, control characters, or empty or dot segments"
    )]
    NeverMatches,
}

impl PathGlob {
    /// Parses a pattern.
    ///
    /// # Errors
    /// Fails if the pattern could match no path, is ambiguous, or is longer than 8,192 bytes.
    pub fn parse(pattern: &str) -> Result<Self, PathGlobError> {
        if pattern.len() > MAX_BYTES {
            return Err(PathGlobError::TooLong);
        }
        let Some(inner) = pattern.strip_prefix('/') else {
            return Err(PathGlobError::NoLeadingSlash);
        };
        if inner
            .split('/')
            .any(|segment| segment.contains("**") && segment != "**")
        {
            return Err(PathGlobError::DoubleStarInSegment);
        }
        if pattern.contains(['?', '#', '%', ';']) || is_ambiguous(pattern) {
            return Err(PathGlobError::NeverMatches);
        }
        let segment = |text| {
            if text == "**" {
                Segment::AnyNumber
            } else {
                Segment::One(Wildcard::new(text))
            }
        };
        Ok(Self {
            pattern: pattern.into(),
            segments: segments(pattern).map(segment).collect(),
        })
    }

    /// Returns the pattern as it was parsed.
    pub fn as_str(&self) -> &str {
        &self.pattern
    }

    /// Returns whether the pattern matches a request path. A path that servers interpret in
    /// different ways is matched by no pattern, because the guard rejects it.
    pub fn matches_path(&self, path: &str) -> bool {
        UnambiguousPath::parse(path).is_ok_and(|path| self.matches(&path))
    }

    /// Returns whether the pattern matches a decoded path. At most the product of the numbers of
    /// segments are compared.
    pub(crate) fn matches(&self, path: &UnambiguousPath<'_>) -> bool {
        let mut pattern = self.segments.iter();
        let mut path = path.segments();
        // Where matching continues if the rest after the last `**` does not match: `**` takes one
        // more path segment.
        let mut retry = None;
        loop {
            match (pattern.as_slice().first(), path.clone().next()) {
                (Some(Segment::AnyNumber), _) => {
                    pattern.next();
                    retry = Some((pattern.clone(), path.clone()));
                    continue;
                }
                (Some(Segment::One(wanted)), Some(given)) if wanted.matches(given) => {
                    pattern.next();
                    path.next();
                    continue;
                }
                (None, None) => return true,
                _ => {}
            }
            let Some((after, mut left)) = retry.take() else {
                return false;
            };
            if left.next().is_none() {
                return false;
            }
            pattern = after.clone();
            path = left.clone();
            retry = Some((after, left));
        }
    }
}

impl FromStr for PathGlob {
    type Err = PathGlobError;

    fn from_str(pattern: &str) -> Result<Self, PathGlobError> {
        Self::parse(pattern)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn request_paths_are_matched() {
        let pattern = PathGlob::parse("/reports/**").unwrap();
        assert!(pattern.matches_path("/reports/a/b"));
        assert!(pattern.matches_path("/reports"));
        assert!(!pattern.matches_path("/mcp"));
        assert!(!pattern.matches_path("/reports/../mcp"));
    }

    fn matches(pattern: &str, path: &str) -> bool {
        PathGlob::parse(pattern)
            .unwrap()
            .matches(&UnambiguousPath::parse(path).unwrap())
    }

    #[test]
    fn a_pattern_is_kept_as_written() {
        assert_eq!(PathGlob::parse("/a/**").unwrap().as_str(), "/a/**");
    }

    /// B9: one star matches within a segment, and two stars match any segments.
    #[test]
    fn stars_match_inside_and_across_segments() {
        for (pattern, path) in [
            ("/", "/"),
            ("/**", "/"),
            ("/**", "/a/b"),
            ("/a", "/a"),
            ("/a", "/a/"),
            ("/a", "/A"),
            ("/a", "/%61"),
            ("/a/*", "/a/b"),
            ("/a/x*z", "/a/xyz"),
            ("/a/*b*", "/a/abba"),
            ("/a/**", "/a"),
            ("/a/**", "/a/b/c"),
            ("/**/admin", "/admin"),
            ("/**/admin", "/x/admin/y/admin"),
            ("/a/**/b/**/c", "/a/b/x/b/y/c"),
            ("/r\u{e9}sum\u{e9}", "/r%C3%A9sum%C3%A9"),
        ] {
            assert!(matches(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("/a", "/b"),
            ("/a", "/a/b"),
            ("/a", "/ab"),
            ("/a/*", "/a/b/c"),
            ("/*", "/a/b"),
            ("/**/admin", "/admin/x"),
            ("/a/**/c", "/a/b"),
            ("/a*c", "/abd"),
        ] {
            assert!(!matches(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn invalid_patterns_are_rejected() {
        for (pattern, error) in [
            ("a", PathGlobError::NoLeadingSlash),
            ("", PathGlobError::NoLeadingSlash),
            ("/a**", PathGlobError::DoubleStarInSegment),
            ("/***", PathGlobError::DoubleStarInSegment),
            ("/a?b", PathGlobError::NeverMatches),
            ("/a%20b", PathGlobError::NeverMatches),
            ("/a#b", PathGlobError::NeverMatches),
            ("/a;b", PathGlobError::NeverMatches),
            ("/a\\b", PathGlobError::NeverMatches),
            ("/a\nb", PathGlobError::NeverMatches),
            ("/a//b", PathGlobError::NeverMatches),
            ("/a/../b", PathGlobError::NeverMatches),
        ] {
            assert_eq!(PathGlob::parse(pattern), Err(error), "{pattern}");
        }
        assert!(PathGlob::parse(&format!("/{}", "a".repeat(MAX_BYTES - 1))).is_ok());
        assert_eq!(
            PathGlob::parse(&format!("/{}", "a".repeat(MAX_BYTES))),
            Err(PathGlobError::TooLong)
        );
    }

    /// Matches a segment with stars by recursion.
    fn reference(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|taken| reference(rest, &text[taken..])),
            Some((byte, rest)) => text.first() == Some(byte) && reference(rest, &text[1..]),
        }
    }

    /// Matches all segments by recursion.
    fn reference_path(pattern: &[&str], path: &[&str]) -> bool {
        match pattern.split_first() {
            None => path.is_empty(),
            Some((&"**", rest)) => {
                (0..=path.len()).any(|taken| reference_path(rest, &path[taken..]))
            }
            Some((segment, rest)) => {
                path.first()
                    .is_some_and(|given| reference(segment.as_bytes(), given.as_bytes()))
                    && reference_path(rest, &path[1..])
            }
        }
    }

    fn pattern_segment() -> impl Strategy<Value = String> {
        let with_single_stars =
            "[ab*]{1,4}".prop_filter("`**` is a whole segment", |segment| !segment.contains("**"));
        prop_oneof![with_single_stars, Just("**".to_owned())]
    }

    proptest! {
        #[test]
        fn matching_agrees_with_recursion(
            pattern in prop::collection::vec(pattern_segment(), 1..5),
            path in prop::collection::vec("[ab]{1,4}", 1..6),
        ) {
            let glob = format!("/{}", pattern.join("/"));
            let text = format!("/{}", path.join("/"));
            let pattern: Vec<&str> = pattern.iter().map(String::as_str).collect();
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            prop_assert_eq!(matches(&glob, &text), reference_path(&pattern, &path));
        }

        #[test]
        fn no_path_panics(path in ".{0,64}", raw in "(/|%[0-9a-f]{0,2}|[a-c.]){0,24}") {
            let glob = PathGlob::parse("/**/a*b/**").unwrap();
            for path in [path, raw] {
                let _ = UnambiguousPath::parse(&path).map(|path| glob.matches(&path));
            }
        }
    }
}

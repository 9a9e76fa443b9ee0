//! [`UnambiguousPath`]: a request path that all servers interpret in the same way.

use std::{borrow::Cow, str::Split};

use percent_encoding::percent_decode_str;

/// A decoded request path that all servers interpret in the same way: it has no dot segments and no
/// empty segments.
pub(crate) struct UnambiguousPath<'a>(Cow<'a, str>);

/// Servers may interpret the path in different ways, so no rule can be applied to it.
#[derive(Debug)]
pub(crate) struct AmbiguousPath;

impl<'a> UnambiguousPath<'a> {
    /// Decodes the path of a request. It allocates only for a path with percent-encoded characters.
    /// Fails if servers interpret the path in different ways.
    pub(crate) fn parse(path: &'a str) -> Result<Self, AmbiguousPath> {
        let decoded = percent_decode_str(path)
            .decode_utf8()
            .map_err(|_| AmbiguousPath)?;
        let slashes = |text: &str| text.bytes().filter(|byte| *byte == b'/').count();
        // A remaining `%` was encoded twice, or did not start an escape.
        let suspect = decoded.contains(['%', ';']) || slashes(&decoded) != slashes(path);
        if suspect || is_ambiguous(&decoded) {
            Err(AmbiguousPath)
        } else {
            Ok(Self(decoded))
        }
    }

    pub(super) fn segments(&self) -> Split<'_, char> {
        segments(&self.0)
    }
}

/// Returns whether servers interpret a decoded path in different ways.
pub(super) fn is_ambiguous(path: &str) -> bool {
    let mut inner = path.strip_prefix('/').unwrap_or(path);
    inner = inner.strip_suffix('/').unwrap_or(inner);
    path.contains(|c: char| c == '\\' || c.is_control())
        || path.starts_with("//")
        || (!inner.is_empty()
            && inner
                .split('/')
                .any(|segment| matches!(segment, "" | "." | "..")))
}

/// Splits a path at its slashes, without the first and a last one.
pub(super) fn segments(path: &str) -> Split<'_, char> {
    let inner = path.strip_prefix('/').unwrap_or(path);
    inner.strip_suffix('/').unwrap_or(inner).split('/')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// B9: a path that servers interpret in different ways is ambiguous.
    #[test]
    fn ambiguous_paths_are_detected() {
        for path in [
            "//",
            "//a",
            "/a//b",
            "/a/./b",
            "/a/../b",
            "/..",
            "/a/%2e%2e/b",
            "/a%2Fb",
            "/a%5Cb",
            "/a\\b",
            "/a%00",
            "/a%0a",
            "/%2561",
            "/%zz",
            "/a;x=1",
            "/a%3bx",
            "/%ff",
            "/a//",
        ] {
            assert!(UnambiguousPath::parse(path).is_err(), "{path}");
        }
        for path in [
            "/",
            "/a",
            "/a/",
            "/a/.well-known",
            "/a/..b",
            "/%41",
            "*",
            "",
        ] {
            assert!(UnambiguousPath::parse(path).is_ok(), "{path}");
        }
    }

    proptest! {
        /// B9: a path that is not ambiguous has no segment that a server removes, and decoding it
        /// again changes nothing.
        #[test]
        fn an_unambiguous_path_is_stable(path in "/(%[0-9a-f]{2}|[a-c./]){0,16}") {
            if let Ok(parsed) = UnambiguousPath::parse(&path) {
                prop_assert!(path == "/" || parsed.segments().all(|segment| !matches!(segment, "." | "..")));
                prop_assert_eq!(&*UnambiguousPath::parse(&parsed.0).unwrap().0, &*parsed.0);
            }
        }
    }
}

//! [`has_dot_segment`]: URIs with `.` and `..`.

use super::is_blank;

/// Returns whether a segment is `.` or `..`, also in the query or the fragment: servers may read
/// them as a part of the path. Some read backslashes as slashes, and URL parsers remove tabs, line
/// ends and the blanks around the URI.
pub(super) fn has_dot_segment(uri: &str) -> bool {
    let is_removed = |c: char| matches!(c, '\t' | '\n' | '\r');
    let is_dot_segment = |segment: &str| {
        let mut characters = segment.chars().filter(|c| !is_removed(*c));
        characters.next() == Some('.')
            && matches!(
                (characters.next(), characters.next()),
                (None | Some('.'), None)
            )
    };
    uri.trim_matches(is_blank)
        .split(['/', '\\', ':', '?', '#'])
        .any(is_dot_segment)
}

#[cfg(test)]
mod tests {
    use super::super::{Spellings, UriError};

    /// F12: a URI with a dot segment is rejected, in every encoding.
    #[test]
    fn dot_segments_are_rejected() {
        for uri in [
            "note://public/../secret",
            "note://public/./secret",
            "note://public/%2e%2e/secret",
            "note://public/%252e%252E/secret",
            "note://public/..%2Fsecret",
            "note://public/..%5csecret",
            "note://public/..",
            "note://public/..?q",
            "note://a?/../secret",
            "note:../secret",
            "note:/public/../secret",
            "my_app:../secret",
            "my_app:%2e%2e/secret",
            ".",
            "../secret",
            "public/../secret",
            "file://h h/public/../secret",
            "file:///public/../secret/x",
            "file:///public/./../secret/x",
            "file:///public/%2E./secret/x",
            "file:///public/%25252e%25252e/secret/x",
            "file:///public%2F..%2Fsecret%2Fx",
            "file:///public/..%5csecret%5cx",
            "file:///public//..//../secret/x",
            "file:///secret/x/.",
            "file:///secret/x/y/..",
            "https://host/public/../secret",
        ] {
            assert_eq!(
                Spellings::default().add(uri),
                Err(UriError::DotSegments),
                "{uri}"
            );
        }
        for uri in [
            "note://public/...",
            "note://public/..x",
            "note://a.b/c.d",
            "note:a..b",
            "https://host/x?file=../y",
            "file:///.config/..a/b.",
        ] {
            assert_eq!(Spellings::default().add(uri), Ok(()), "{uri}");
        }
    }

    /// F12: after a drive letter the `url` crate keeps `..` without an effect; other parsers
    /// resolve it.
    #[test]
    fn dot_segments_after_drive_letters_are_rejected() {
        for uri in [
            "file:///public/C:/../../secret/x",
            "file:///public/C|/../../secret/x",
            "file:///C:/../secret/x",
            "file:C:/../secret/x",
            "https://host/public/C:/../../secret/x",
            "file:///public/C:/%2e%2e/%2E./secret/x",
            "file:///public/C%3A/..%2f..%2fsecret/x",
            "file:///public/C%257C/%252e%252e/%252e%252e/secret/x",
            "file:///public/C:/.%09./.%0A./secret/x",
            "file:///public/C:/.%250d./secret/x",
            "file:///secret/C:/..%20",
            "file:///secret/C:/..%01",
        ] {
            assert_eq!(
                Spellings::default().add(uri),
                Err(UriError::DotSegments),
                "{uri}"
            );
        }
    }

    /// F12: a server that does not parse the URL can resolve dot segments in the query and the
    /// fragment.
    #[test]
    fn dot_segments_after_the_path_are_rejected() {
        for uri in [
            "file:///public/x?/../../../secret/x",
            "file:///public/x#/../../../secret/x",
            "file:///public/x?../../secret/x",
            "file:///public/x%3F/%2e%2e/secret/x",
            "file:///public/x#a%2f..%2f..%2fsecret/x",
            "https://host/public/x?/../../secret/x",
        ] {
            assert_eq!(
                Spellings::default().add(uri),
                Err(UriError::DotSegments),
                "{uri}"
            );
        }
    }
}

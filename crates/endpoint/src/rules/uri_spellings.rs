//! [`Spellings`]: the spellings of a URI under which a server could find the same resource.
//!
//! A rule such as `file:///secret/*` must also apply to `file://localhost/%73ecret/x`. Servers differ in how often they
//! decode a URI, whether they use a URL parser, and whether they pass the path to the file system. The endpoint does not
//! know its server, so it compares rules with every spelling that one of these steps can produce, in any order.
//!
//! Two groups of URIs are rejected instead, if a rule with a name could apply to them:
//! - URIs with characters that URL parsers remove or replace ([`UriError::Characters`]).
//! - URIs with a `.` or `..` segment ([`UriError::DotSegments`]), because servers resolve it differently: a parser can read
//!   the segment before it as a host (`note://public/../secret`) or as a drive (`file:///C:/../secret`) that stays, and a
//!   server without a parser can read the query as a part of the path (`file:///public?/../secret`).
//!
//! Aliases that only the server knows are not covered, such as symbolic links and names that differ in letter case.

mod dot_segments;

use percent_encoding::percent_decode_str;
use url::{Position, Url};

use dot_segments::has_dot_segment;

/// The maximum number of spellings of one URI.
const MAX_SPELLINGS: usize = 32;

/// The maximum size of all spellings of a message's URIs together, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// The reason why rules with names cannot be matched with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UriError {
    /// A URI has a control character, a blank at its start or end, or a backslash. URL parsers remove or replace these.
    Characters,
    /// A URI has a `.` or `..` segment, which servers resolve differently.
    DotSegments,
    /// A URI has too many spellings, or the URIs of a message are too long together.
    TooManySpellings,
}

impl UriError {
    /// Returns the stable reason code.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Characters => "message.uri_characters",
            Self::DotSegments => "message.uri_dot_segments",
            Self::TooManySpellings => "message.uri_spellings",
        }
    }
}

/// Checks that a URI has no characters that URL parsers remove or replace.
pub(crate) fn check_characters(uri: &str) -> Result<(), UriError> {
    let is_padded = uri.starts_with(is_blank) || uri.ends_with(is_blank);
    if is_padded || uri.contains(|c: char| c.is_control() || c == '\\') { Err(UriError::Characters) } else { Ok(()) }
}

/// Returns whether a parser can remove a character at the start or the end. JavaScript also trims the byte order mark.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || c.is_control() || c == '\u{FEFF}'
}

/// All spellings of the URIs of one message.
#[derive(Default)]
pub(crate) struct Spellings {
    all: Vec<String>,
    bytes: usize,
}

impl Spellings {
    /// Adds the URI itself, and all spellings that follow from it by percent-decoding, WHATWG normalization, and removal
    /// of the parts that do not select a file.
    ///
    /// # Errors
    /// Fails if a spelling has a dot segment or a NUL, or if the spellings are too many or too long.
    pub(crate) fn add(&mut self, uri: &str) -> Result<(), UriError> {
        let start = self.all.len();
        self.push(start, uri.to_owned())?;
        let mut index = start;
        while let Some(text) = self.all.get(index) {
            if has_dot_segment(text) {
                return Err(UriError::DotSegments);
            }
            let mut others = vec![percent_decode_str(text).decode_utf8_lossy().into_owned()];
            others.extend(single_slashes(text));
            others.extend(without_trailing_slashes(text));
            match Url::parse(text) {
                Ok(url) => others.extend([scheme_host_path(&url), url.into()]),
                Err(_) => {
                    others.extend(file_path(text));
                    others.extend(text.split(['?', '#']).next().map(str::to_owned));
                }
            }
            for other in others {
                self.push(start, other)?;
            }
            index += 1;
        }
        Ok(())
    }

    /// Returns all spellings. A URI itself is one of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(String::as_str)
    }

    /// Adds a spelling of the URI whose spellings begin at `start`, unless it is already there.
    fn push(&mut self, start: usize, spelling: String) -> Result<(), UriError> {
        let of_this_uri = self.all.get(start..).unwrap_or_default();
        if of_this_uri.contains(&spelling) {
            return Ok(());
        }
        // Servers that pass a decoded path to C functions read it up to the NUL only.
        if spelling.contains('\0') {
            return Err(UriError::Characters);
        }
        self.bytes += spelling.len();
        if of_this_uri.len() >= MAX_SPELLINGS || self.bytes > MAX_BYTES {
            return Err(UriError::TooManySpellings);
        }
        self.all.push(spelling);
        Ok(())
    }
}

/// Splits a URI at the colon after its scheme (RFC 3986 section 3.1). `None` if it has none.
fn split_scheme(uri: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = uri.split_once(':')?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    is_scheme.then_some((scheme, rest))
}

/// Replaces every run of slashes by one slash, as file systems do. The two slashes after a scheme remain. If the text before
/// `://` is not a valid scheme (RFC 3986 section 3.1), such as `my_app`, some servers keep them and others do not: there are two
/// results.
fn single_slashes(uri: &str) -> impl Iterator<Item = String> {
    let path_start = uri.find("://").map(|colon| colon + "://".len());
    let has_scheme = split_scheme(uri).is_some_and(|(_, rest)| rest.starts_with("//"));
    let starts = [path_start, (!has_scheme).then_some(0)];
    starts.into_iter().flatten().map(|start| single_slashes_from(uri, start))
}

/// Replaces every run of slashes after the first `start` bytes by one slash.
fn single_slashes_from(uri: &str, start: usize) -> String {
    let (start, path) = uri.split_at(start);
    let mut single = String::with_capacity(uri.len());
    single.push_str(start);
    let mut previous = None;
    for c in path.chars() {
        if !(c == '/' && previous == Some('/')) {
            single.push(c);
        }
        previous = Some(c);
    }
    single
}

/// Removes the slashes at the end, which file systems ignore. `None` if there are none, or no path before them.
fn without_trailing_slashes(uri: &str) -> Option<String> {
    let trimmed = uri.trim_end_matches('/');
    (trimmed.len() < uri.len() && !trimmed.is_empty() && !trimmed.ends_with(':')).then(|| trimmed.to_owned())
}

/// Returns the path of a `file` URI that is not a WHATWG URL, for example because its authority has a port. Some servers
/// use only the path.
fn file_path(uri: &str) -> Option<String> {
    let (scheme, rest) = split_scheme(uri).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("file"))?;
    let authority_and_path = rest.strip_prefix("//")?;
    let path = &authority_and_path[authority_and_path.find('/')?..];
    Some(format!("{}://{path}", scheme.to_ascii_lowercase()))
}

/// Removes user information, query and fragment, and the host of a `file` URL. Servers that use only the path find the
/// same resource.
fn scheme_host_path(url: &Url) -> String {
    let scheme = &url[..Position::AfterScheme];
    let path = &url[Position::BeforePath..Position::AfterPath];
    if url.cannot_be_a_base() {
        return format!("{scheme}:{path}");
    }
    let host = if scheme == "file" { "" } else { &url[Position::BeforeHost..Position::AfterPort] };
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spellings(uri: &str) -> Vec<String> {
        let mut spellings = Spellings::default();
        spellings.add(uri).unwrap_or_else(|error| panic!("{uri}: {error:?}"));
        spellings.all
    }

    fn assert_has_spelling(uri: &str, expected: &str) {
        let spellings = spellings(uri);
        assert!(spellings.iter().any(|spelling| spelling == expected), "{uri}: {spellings:?}");
    }

    /// F12: the spellings of a URI include every form that a server could resolve to the same resource.
    #[test]
    fn equivalent_uris_share_a_spelling() {
        for alias in [
            "file:///secret/x",
            "FILE:///secret/x",
            "file:/secret/x",
            "file:secret/x",
            "file://localhost/secret/x",
            "file://LocalHost/secret/x",
            "file://elsewhere/secret/x",
            "file:///%73ecret/x",
            "file:///%2573ecret/x",
            "file:///secret%2fx",
            "file:///sec%09ret/x",
            "file:///sec%0Aret/x",
            "file:///%25%373ecret/x",
            "file:///secret%255cx",
            "%20file:///secret/x",
            "file:////secret/x",
            "file:///secret//x",
            "file:///secret/x?y",
            "file:///secret/x#y",
            "file:///secret/x%3Fy",
            "file:///secret/x%23y",
            "file:///secret/x/",
            "file:///secret/x//",
            "file:///secret/x%2F",
            "file://u@h/secret/x",
            "file://h:80/secret/x",
            "FILE://h h/secret/%78",
        ] {
            assert_has_spelling(alias, "file:///secret/x");
        }
    }

    /// F12: URIs of other schemes are decoded and normalized, too.
    #[test]
    fn other_schemes_share_a_spelling() {
        for (alias, expected) in [
            ("HTTPS://User:pw@HOST:443/secret?q", "https://host/secret"),
            ("https://host/%73ecret", "https://host/secret"),
            ("note://secret/%61", "note://secret/a"),
            ("note://host//a///b", "note://host/a/b"),
            ("a/b://c//d", "a/b:/c/d"),
            ("a/b://c//d", "a/b://c/d"),
            ("my_app://host//secret/x", "my_app://host/secret/x"),
            ("my_app://host//secret/x", "my_app:/host/secret/x"),
            ("1note:////a//%62", "1note:///a/b"),
            ("my_app://host/secret?q", "my_app://host/secret"),
            ("my_app://host/secret%23q", "my_app://host/secret"),
            ("note:%73ecret", "note:secret"),
            ("secret%2Fx", "secret/x"),
        ] {
            assert_has_spelling(alias, expected);
        }
    }

    /// F12: a plain URI has one spelling. A URI with too many spellings is rejected.
    #[test]
    fn the_work_is_bounded() {
        assert_eq!(spellings("file:///public/readme.txt"), ["file:///public/readme.txt"]);
        let nested_escapes = format!("file:///%{}2e", "25".repeat(40));
        assert_eq!(Spellings::default().add(&nested_escapes), Err(UriError::TooManySpellings));
        let long = format!("file:///{}", "a".repeat(MAX_BYTES));
        assert_eq!(Spellings::default().add(&long), Err(UriError::TooManySpellings));
        let mut many = Spellings::default();
        let results: Vec<_> =
            (0..1000).map(|number| many.add(&format!("file:///{number}{}", "a".repeat(2000)))).collect();
        assert!(results.first() == Some(&Ok(())));
        assert!(results.last() == Some(&Err(UriError::TooManySpellings)));
    }

    /// F12: a URI with an encoded NUL is rejected.
    #[test]
    fn an_encoded_nul_is_rejected() {
        assert_eq!(Spellings::default().add("file:///secret/x%2500.txt"), Err(UriError::Characters));
    }

    /// F12: a URI with characters that URL parsers remove or replace is rejected.
    #[test]
    fn characters_that_parsers_change_are_rejected() {
        for bad in [
            " file:///x",
            "file:///x ",
            "\tfile:///x",
            "file:///\tx",
            "file:///x\n",
            "file:///\r\nx",
            "file:///\u{0}x",
            "file:///\u{7f}x",
            "file:///\u{85}x",
            "file:///public\\..\\x",
            "\u{a0}file:///x",
            "file:///x\u{2028}",
            "\u{feff}file:///x",
        ] {
            assert_eq!(check_characters(bad), Err(UriError::Characters), "{bad:?}");
        }
        for good in ["", "file:///x", "file:///a b", "note:\u{e4}", "file:///{path}"] {
            assert_eq!(check_characters(good), Ok(()), "{good:?}");
        }
    }

    proptest! {
        /// F12: the spellings of a URI include its WHATWG form and the percent-decoded form of that.
        #[test]
        fn the_normal_forms_are_included(path in "[a-c./%2eEfF5-]{0,24}") {
            let uri = format!("file:///{path}");
            let mut found = Spellings::default();
            if found.add(&uri).is_ok() {
                let url = Url::parse(&uri).unwrap();
                let decoded = percent_decode_str(url.as_str()).decode_utf8_lossy();
                prop_assert!(found.iter().any(|spelling| spelling == uri));
                prop_assert!(found.iter().any(|spelling| spelling == url.as_str()));
                prop_assert!(found.iter().any(|spelling| spelling == decoded));
                let path = percent_decode_str(url.path()).decode_utf8_lossy();
                prop_assert!(found.iter().any(|spelling| spelling.strip_prefix("file://") == Some(&*path)));
            }
        }

        #[test]
        fn no_text_panics(uri in any::<String>()) {
            let _ = (check_characters(&uri), Spellings::default().add(&uri));
        }
    }
}

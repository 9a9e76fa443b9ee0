//! [`Spellings`]: the spellings of a URI under which a server could find the same resource.
//!
//! A rule such as `file:///secret/*` must also apply to `file://localhost/%73ecret/x`. Servers
//! differ in how often they decode a URI, whether they use a URL parser, which parts of it select a
//! resource, and whether they pass the path to the file system. The endpoint does not know its
//! server, so it compares rules with every spelling that one of these steps can produce, in any
//! order.
//!
//! Two groups of URIs are rejected instead, if a rule with a name could apply to them:
//! - URIs with characters that URL parsers remove or replace ([`UriError::Characters`]).
//! - URIs with a `.` or `..` segment ([`UriError::DotSegments`]), because servers resolve it
//!   differently: a parser can read the segment before it as a host (`note://public/../secret`) or
//!   as a drive (`file:///C:/../secret`) that stays, and a server without a parser can read the
//!   query as a part of the path (`file:///public?/../secret`).
//!
//! Aliases that only the server knows are not covered, such as symbolic links and names that differ
//! in letter case.

mod dot_segments;
mod host;
mod parameters;
#[cfg(test)]
mod tests;

use percent_encoding::percent_decode_str;
use portcullis_reason_codes::ReasonCodes;
use url::{Position, Url};

use self::{
    dot_segments::has_dot_segment,
    host::{has_long_host, other_hosts},
    parameters::without_parameters,
};

/// The maximum number of spellings of one URI. A host with port and final dot, in two forms, and
/// parameters in the path together multiply the spellings by 16.
const MAX_SPELLINGS: usize = 128;

/// The maximum size of all spellings of a message's URIs together, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// The reason why rules with names cannot be matched with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ReasonCodes)]
pub(crate) enum UriError {
    /// A URI has a control character, a blank at its start or end, or a backslash. URL parsers
    /// remove or replace these.
    #[code = "message.uri_characters"]
    Characters,
    /// A URI has a `.` or `..` segment, which servers resolve differently.
    #[code = "message.uri_dot_segments"]
    DotSegments,
    /// A URI has too many spellings or a host that is too long to convert it, or the URIs of a
    /// message are too long together.
    #[code = "message.uri_spellings"]
    TooManySpellings,
}

/// Checks that a URI has no characters that URL parsers remove or replace.
pub(crate) fn check_characters(uri: &str) -> Result<(), UriError> {
    let is_padded = uri.starts_with(is_blank) || uri.ends_with(is_blank);
    if is_padded || uri.contains(|c: char| c.is_control() || c == '\\') {
        Err(UriError::Characters)
    } else {
        Ok(())
    }
}

/// Returns whether a parser can remove a character at the start or the end. JavaScript also trims
/// the byte order mark.
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
    /// Adds the URI itself, and all spellings that follow from it by percent-decoding, WHATWG
    /// normalization, conversion of the host, and removal of the parts that do not select a
    /// resource. Spellings that differ only in ASCII letter case, which patterns ignore, count as
    /// one. Fails if a spelling has a dot segment, a NUL or a host that is too long, or if the
    /// spellings are too many or too long.
    pub(crate) fn add(&mut self, uri: &str) -> Result<(), UriError> {
        let start = self.all.len();
        self.push(start, uri.to_owned())?;
        let mut index = start;
        while let Some(text) = self.all.get(index) {
            if has_dot_segment(text) {
                return Err(UriError::DotSegments);
            }
            if has_long_host(text) {
                return Err(UriError::TooManySpellings);
            }
            let mut others = vec![percent_decode_str(text).decode_utf8_lossy().into_owned()];
            others.extend(single_slashes(text));
            others.extend(without_trailing_slashes(text));
            others.extend(other_hosts(text));
            others.extend(without_parameters(text));
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
        if of_this_uri
            .iter()
            .any(|known| known.eq_ignore_ascii_case(&spelling))
        {
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
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    is_scheme.then_some((scheme, rest))
}

/// Replaces every run of slashes by one slash, as file systems do. The two slashes after a scheme
/// remain. If the text before `://` is not a valid scheme (RFC 3986 section 3.1), such as `my_app`,
/// some servers keep them and others do not: there are two results.
fn single_slashes(uri: &str) -> impl Iterator<Item = String> {
    let path_start = uri.find("://").map(|colon| colon + "://".len());
    let has_scheme = split_scheme(uri).is_some_and(|(_, rest)| rest.starts_with("//"));
    let starts = [path_start, (!has_scheme).then_some(0)];
    starts
        .into_iter()
        .flatten()
        .map(|start| single_slashes_from(uri, start))
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

/// Removes the slashes at the end, which file systems ignore. `None` if there are none, or no path
/// before them.
fn without_trailing_slashes(uri: &str) -> Option<String> {
    let trimmed = uri.trim_end_matches('/');
    (trimmed.len() < uri.len() && !trimmed.is_empty() && !trimmed.ends_with(':'))
        .then(|| trimmed.to_owned())
}

/// Returns the path of a `file` URI that is not a WHATWG URL, for example because its authority has
/// a port. Some servers use only the path.
fn file_path(uri: &str) -> Option<String> {
    let (scheme, rest) =
        split_scheme(uri).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("file"))?;
    let authority_and_path = rest.strip_prefix("//")?;
    let path = &authority_and_path[authority_and_path.find('/')?..];
    Some(format!("{}://{path}", scheme.to_ascii_lowercase()))
}

/// Removes user information, query and fragment, and the host of a `file` URL. Servers that use
/// only the path find the same resource.
fn scheme_host_path(url: &Url) -> String {
    let scheme = &url[..Position::AfterScheme];
    let path = &url[Position::BeforePath..Position::AfterPath];
    if url.cannot_be_a_base() {
        return format!("{scheme}:{path}");
    }
    let host = if scheme == "file" {
        ""
    } else {
        &url[Position::BeforeHost..Position::AfterPort]
    };
    format!("{scheme}://{host}{path}")
}

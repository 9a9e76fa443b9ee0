use std::{borrow::Cow, ops::Range};

use memchr::memmem;
use url::form_urlencoded;
use zeroize::Zeroizing;

use super::{
    base64_search,
    decoded::{Decoded, Plus},
};

/// What replaces a secret.
pub(crate) const REMOVED: &str = "[removed]";

/// How often a text can be encoded: for a URL, then in JSON, then in HTML.
const MAX_LEVELS: usize = 3;
/// A shorter secret is removed only where it is a whole word.
const MIN_INSIDE_WORDS: usize = 8;
/// The shortest beginning of a secret that is removed at the end of a text.
const MIN_BEGINNING: usize = 8;
/// How many `…` are examined.
const MAX_CUTS: usize = 8;

/// Returns the text without the secrets. See [`SentSecrets::redact`](super::SentSecrets::redact).
pub(super) fn redacted<'t, 's>(
    text: &'t str,
    secrets: impl Iterator<Item = &'s [u8]>,
) -> Cow<'t, str> {
    let mut secrets = secrets.peekable();
    if secrets.peek().is_none() || text.is_empty() {
        return Cow::Borrowed(text);
    }
    let levels = levels(text);
    let mut found = Vec::new();
    for secret in secrets {
        let form: Zeroizing<String> =
            Zeroizing::new(form_urlencoded::byte_serialize(secret).collect());
        for Level { text, base64 } in &levels {
            let mut here = Vec::new();
            find(&text.bytes, secret, &mut here);
            find_beginning(&text.bytes, secret, &mut here);
            base64_search::find(base64, secret, &mut here);
            // Basic credentials are form-encoded first (RFC 6749 section 2.3.1).
            if form.as_bytes() != secret {
                base64_search::find(base64, form.as_bytes(), &mut here);
            }
            found.extend(here.into_iter().map(|range| text.original(range)));
        }
    }
    replaced(text, found)
}

/// A text, decoded a number of times.
struct Level {
    text: Decoded,
    /// The same text for the search in base64.
    base64: Vec<u8>,
}

/// The text at each level of encoding, up to the one at which nothing is encoded.
fn levels(text: &str) -> Vec<Level> {
    let level = |text: Decoded| Level {
        base64: base64_search::standard_alphabet(&text.bytes),
        text,
    };
    let original = Decoded::of(text);
    let mut levels = Vec::new();
    // A `+` encodes a space in a form, which is always the innermost encoding.
    let add_form = |text: &Decoded, levels: &mut Vec<Level>| {
        if text.bytes.contains(&b'+') {
            levels.push(level(text.decoded(Plus::Space)));
        }
    };
    add_form(&original, &mut levels);
    levels.push(level(original));
    for _ in 0..MAX_LEVELS {
        let Some(Level { text: last, .. }) = levels.last() else {
            break;
        };
        let next = last.decoded(Plus::Itself);
        if next.bytes.len() == last.bytes.len() {
            break;
        }
        add_form(&next, &mut levels);
        levels.push(level(next));
    }
    levels
}

/// Adds the ranges that equal the secret.
fn find(text: &[u8], secret: &[u8], found: &mut Vec<Range<usize>>) {
    let is_in_word = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    for start in memmem::find_iter(text, secret) {
        let range = start..start + secret.len();
        let before = start.checked_sub(1).and_then(|before| text.get(before));
        let is_part = is_in_word(before) || is_in_word(text.get(range.end));
        if secret.len() >= MIN_INSIDE_WORDS || !is_part {
            found.push(range);
        }
    }
}

/// Adds the ranges before each `…` and the end of the text that are a beginning of the secret: the
/// text was cut there.
fn find_beginning(text: &[u8], secret: &[u8], found: &mut Vec<Range<usize>>) {
    for end in memmem::find_iter(text, "…")
        .take(MAX_CUTS)
        .chain([text.len()])
    {
        let Some(before) = text.get(..end) else {
            continue;
        };
        let first = end.saturating_sub(secret.len());
        let last = end.saturating_sub(MIN_BEGINNING);
        let start = (first..=last).find(|start| {
            before
                .get(*start..)
                .is_some_and(|tail| secret.starts_with(tail))
        });
        found.extend(
            start
                .filter(|start| end - start >= MIN_BEGINNING)
                .map(|start| start..end),
        );
    }
}

/// Replaces these ranges. Ranges that overlap or touch are replaced once.
fn replaced(text: &str, mut ranges: Vec<Range<usize>>) -> Cow<'_, str> {
    if ranges.is_empty() {
        return Cow::Borrowed(text);
    }
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut shown = String::with_capacity(text.len());
    let mut end = 0;
    for range in ranges {
        let (start, next) = (
            text.floor_char_boundary(range.start),
            text.ceil_char_boundary(range.end),
        );
        if next <= end {
            continue;
        }
        if start > end || end == 0 {
            shown.push_str(text.get(end..start).unwrap_or_default());
            shown.push_str(REMOVED);
        }
        end = next;
    }
    shown.push_str(text.get(end..).unwrap_or_default());
    Cow::Owned(shown)
}

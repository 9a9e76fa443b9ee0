//! Edits of a text: replaced spans, and arrays of strings with new elements.

use std::ops::Range;

use super::jsonc::Item;

/// A replaced span, with the text that is displayed for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) span: Range<usize>,
    pub(super) text: String,
    pub(super) shown: String,
}

impl Edit {
    /// Replaces a string literal.
    pub(super) fn string(span: Range<usize>, text: &str, shown: &str) -> Self {
        Self {
            span,
            text: literal(text),
            shown: literal(shown),
        }
    }
}

/// Applies edits that do not overlap to a part of a text.
pub(super) fn applied<'a>(
    text: &str,
    part: Range<usize>,
    edits: &'a [Edit],
    choose: impl Fn(&'a Edit) -> &'a str,
) -> String {
    let mut edits: Vec<&Edit> = edits
        .iter()
        .filter(|edit| part.start <= edit.span.start && edit.span.end <= part.end)
        .collect();
    edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
    let mut whole = String::with_capacity(part.len());
    let mut at = part.start;
    for edit in edits {
        whole.push_str(text.get(at..edit.span.start).unwrap_or_default());
        whole.push_str(choose(edit));
        at = edit.span.end.max(at);
    }
    whole.push_str(text.get(at..part.end).unwrap_or_default());
    whole
}

/// The edits that give an array the elements `new`. Kept elements keep their spelling, and every
/// comment is kept. `old` and `new` are not empty. `shown` masks the secrets of an element at an
/// index of `new`.
pub(super) fn array(
    text: &str,
    old: &[Item],
    new: &[String],
    shown: impl Fn(usize) -> String,
) -> Vec<Edit> {
    let kept = kept(old, new);
    let mut edits = Vec::new();
    let mut from_old = 0;
    let mut from_new = 0;
    let mut last = None;
    for (at_old, at_new) in kept.iter().copied().chain([(old.len(), new.len())]) {
        let removed = from_old..at_old;
        let inserted = from_new..at_new;
        let separator = old
            .get(removed.start)
            .or(old.last())
            .map_or_else(String::new, |item| separator(text, item));
        let join = |texts: Vec<String>| texts.join(&format!(",{separator}"));
        let texts = join(
            inserted
                .clone()
                .filter_map(|index| new.get(index))
                .map(|it| literal(it))
                .collect(),
        );
        let masked = join(
            inserted
                .clone()
                .map(|index| literal(&shown(index)))
                .collect(),
        );
        let mut rest = removed.clone();
        if !inserted.is_empty() {
            let edit = |span, before: &str, after: &str| Edit {
                span,
                text: format!("{before}{texts}{after}"),
                shown: format!("{before}{masked}{after}"),
            };
            if let Some(item) = rest.next().and_then(|first| old.get(first)) {
                edits.push(edit(item.node.span.clone(), "", ""));
                last = Some(item);
            } else if let Some(next) = old.get(at_old) {
                let start = next.node.span.start;
                edits.push(edit(start..start, "", &format!(",{separator}")));
            } else if let Some(item) = last {
                let end = item.node.span.end;
                edits.push(edit(end..end, &format!(",{separator}"), ""));
            }
        }
        edits.extend(removal(text, old.get(rest).unwrap_or_default()));
        if let Some(item) = old.get(at_old) {
            last = Some(item);
        }
        (from_old, from_new) = (at_old + 1, at_new + 1);
    }
    // Strict parsers reject a comma after the last element.
    let had_trailing = old.last().is_some_and(|item| item.comma.is_some());
    if let Some(comma) = last.and_then(|item| item.comma).filter(|_| !had_trailing) {
        let is_last = last.map(|item| &item.node.span) == old.last().map(|item| &item.node.span);
        if !is_last {
            edits.push(Edit {
                span: comma..comma + 1,
                text: String::new(),
                shown: String::new(),
            });
        }
    }
    edits
}

/// A longest common subsequence, as pairs of indices.
fn kept(old: &[Item], new: &[String]) -> Vec<(usize, usize)> {
    let same = |at_old: usize, at_new: usize| {
        old.get(at_old)
            .and_then(|item| item.node.as_str())
            .is_some_and(|text| new.get(at_new).is_some_and(|it| it == text))
    };
    let width = new.len() + 1;
    let mut lengths = vec![0_u32; (old.len() + 1) * width];
    let length = |lengths: &[u32], at_old: usize, at_new: usize| {
        lengths.get(at_old * width + at_new).copied().unwrap_or(0)
    };
    for at_old in (0..old.len()).rev() {
        for at_new in (0..new.len()).rev() {
            let value = match same(at_old, at_new) {
                true => length(&lengths, at_old + 1, at_new + 1) + 1,
                false => {
                    length(&lengths, at_old + 1, at_new).max(length(&lengths, at_old, at_new + 1))
                }
            };
            if let Some(entry) = lengths.get_mut(at_old * width + at_new) {
                *entry = value;
            }
        }
    }
    let mut pairs = Vec::new();
    let mut at_old = 0;
    let mut at_new = 0;
    while at_old < old.len() && at_new < new.len() {
        if same(at_old, at_new) {
            pairs.push((at_old, at_new));
            (at_old, at_new) = (at_old + 1, at_new + 1);
        } else if length(&lengths, at_old + 1, at_new) >= length(&lengths, at_old, at_new + 1) {
            at_old += 1;
        } else {
            at_new += 1;
        }
    }
    pairs
}

/// Removes adjacent elements with their commas, and the lines that become empty.
fn removal(text: &str, items: &[Item]) -> Vec<Edit> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    let mut add = |span: Range<usize>| match spans.last_mut() {
        Some(last) if is_blank(text, last.end..span.start) => last.end = span.end,
        _ => spans.push(span),
    };
    for item in items {
        add(item.node.span.clone());
        if let Some(comma) = item.comma {
            add(comma..comma + 1);
        }
    }
    let edits = spans.into_iter().map(|span| Edit {
        span: widened(text, span),
        text: String::new(),
        shown: String::new(),
    });
    edits.collect()
}

/// Widens a span to whole lines if nothing else is on them, otherwise by the blanks after or before
/// it.
fn widened(text: &str, span: Range<usize>) -> Range<usize> {
    let before = text.get(..span.start).unwrap_or_default();
    let after = text.get(span.end..).unwrap_or_default();
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    let behind = span.end
        + after
            .find(|next| !" \t".contains(next))
            .unwrap_or(after.len());
    let rest = text.get(behind..).unwrap_or_default();
    let line_end = if rest.starts_with("\r\n") {
        2
    } else {
        usize::from(rest.starts_with('\n'))
    };
    if line_end > 0 && line > 0 && is_blank(text, line..span.start) {
        return line..behind + line_end;
    }
    if line_end > 0 || rest.starts_with(']') {
        let trimmed = before.trim_end_matches([' ', '\t']).len();
        return trimmed.max(line)..span.end;
    }
    span.start..behind
}

fn is_blank(text: &str, span: Range<usize>) -> bool {
    text.get(span)
        .is_some_and(|between| between.bytes().all(|byte| b" \t\r\n".contains(&byte)))
}

/// The text between the elements: a line break with its indentation, or a space.
fn separator(text: &str, item: &Item) -> String {
    let before = text.get(..item.node.span.start).unwrap_or_default();
    let blank = before.trim_end_matches([' ', '\t', '\r', '\n']).len();
    let white = before.get(blank..).unwrap_or_default();
    let end = if white.contains("\r\n") { "\r\n" } else { "\n" };
    white
        .rsplit_once('\n')
        .map_or_else(|| " ".to_owned(), |(_, indent)| format!("{end}{indent}"))
}

/// A JSON string literal.
pub(super) fn literal(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::jsonc::Document, *};

    fn edited(text: &str, new: &[&str]) -> String {
        let document = Document::parse(text).unwrap();
        let new: Vec<String> = new.iter().map(|&text| text.to_owned()).collect();
        let edits = array(text, document.root.as_array().unwrap(), &new, |_| {
            String::new()
        });
        applied(text, 0..text.len(), &edits, |edit| &edit.text)
    }

    #[test]
    fn elements_keep_their_spelling_and_comments_stay() {
        for (text, new, expected) in [
            (
                r#"["-y", "m", "u"]"#,
                &["connect", "u"][..],
                r#"["connect", "u"]"#,
            ),
            (
                r#"["m", "u", "x"]"#,
                &["connect", "u"],
                r#"["connect", "u"]"#,
            ),
            (
                r#"["m", "u", "x", ]"#,
                &["connect", "u"],
                r#"["connect", "u", ]"#,
            ),
            (
                r#"["m", "\u0075"]"#,
                &["connect", "u", "a", "b"],
                r#"["connect", "\u0075", "a", "b"]"#,
            ),
            (
                r#"["u", "9"]"#,
                &["c", "u", "p", "9"],
                r#"["c", "u", "p", "9"]"#,
            ),
            (
                r#"["a", "u", "b", "x"]"#,
                &["c", "u", "d"],
                r#"["c", "u", "d"]"#,
            ),
            (
                "[\n  \"-y\", // yes\n  \"m\",\n  \"u\", // the server\n  \"x\" // why\n]",
                &["connect", "u"],
                "[\n  \"connect\", // yes\n  \"u\" // the server\n  // why\n]",
            ),
            (
                "[\r\n\t\"m\",\r\n\t\"u\"\r\n]",
                &["c", "u", "x"],
                "[\r\n\t\"c\",\r\n\t\"u\",\r\n\t\"x\"\r\n]",
            ),
        ] {
            assert_eq!(edited(text, new), expected, "{text}");
        }
    }

    proptest! {
        /// Every edit yields the new elements, in strict JSON if there were no comments and
        /// trailing commas.
        #[test]
        fn edits_yield_the_new_elements(
            old in prop::collection::vec("[a-d]", 1..8),
            new in prop::collection::vec("[a-f]", 1..8),
            lines in any::<bool>(),
            comments in any::<bool>(),
            trailing in any::<bool>(),
        ) {
            let end = if lines { "\n" } else { " " };
            let (before, comment) = if comments { ("/* b */", "/* c */") } else { ("", "") };
            let elements: Vec<_> = old.iter().map(|text| format!("{end}{before}\"{text}\"{comment}")).collect();
            let text = format!("[{}{}{end}]", elements.join(","), if trailing { "," } else { "" });
            let new: Vec<&str> = new.iter().map(String::as_str).collect();
            let result = edited(&text, &new);
            let document = Document::parse(&result).unwrap();
            let items = document.root.as_array().unwrap();
            let found: Vec<_> = items.iter().filter_map(|item| item.node.as_str()).collect();
            prop_assert_eq!(&found, &new, "{}", result);
            prop_assert_eq!(items.last().unwrap().comma.is_some(), trailing, "{}", result);
            prop_assert_eq!(document.comments.len(), if comments { 2 * old.len() } else { 0 }, "{}", result);
        }
    }
}

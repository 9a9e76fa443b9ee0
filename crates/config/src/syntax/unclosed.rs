//! Lists, tables in braces and texts of several lines that are not closed: a parser finds the error
//! in a later line than the one to correct.

use super::{
    place::{is_header, key_of, table_above},
    tokens::{Token, Tokens},
};
use crate::{KeyPath, schema, toml_lines::line_at};

/// What is not closed, or lacks a comma.
#[derive(Debug)]
pub(super) struct Unclosed {
    /// The line to correct, counted from 1.
    pub(super) line: usize,
    /// The key whose value it is.
    pub(super) key: KeyPath,
    /// What to write.
    pub(super) fix: String,
}

/// Finds what is not closed before the position of a syntax error. The text has no part of a value.
pub(super) fn find(text: &str, position: usize) -> Option<Unclosed> {
    match open_at(text, position)? {
        Open::Text { start, delimiter } => {
            let quote = &delimiter[..1];
            let fix = format!(
                "close the text with {delimiter}, or begin it with {quote} if it has one line"
            );
            Some(unclosed(text, start, line_at(text, start), fix))
        }
        Open::Brackets(starts) => {
            missing_comma(text, position, &starts).or_else(|| bracket(text, position, &starts))
        }
    }
}

fn unclosed(text: &str, start: usize, line: usize, fix: String) -> Unclosed {
    let first = line_at(text, start);
    let key = key_of(text.lines().nth(first - 1).unwrap_or_default());
    Unclosed {
        line,
        key: table_above(text, first).join(&key),
        fix,
    }
}

/// Finds the entry of a list after which there is no comma, if another entry is at the error.
fn missing_comma(text: &str, position: usize, starts: &[usize]) -> Option<Unclosed> {
    let start = *starts.last()?;
    let is_list = text[start..].starts_with('[');
    let is_entry = text[position..]
        .trim_start()
        .starts_with(['"', '\'', '{', '“']);
    let before = text[..position].trim_end();
    let is_after_entry = before.ends_with(['"', '\'', '}']);
    (is_list && is_entry && is_after_entry).then(|| {
        let fix = "separate the entries by commas".to_owned();
        unclosed(text, start, line_at(text, before.len()), fix)
    })
}

/// Finds the bracket that is not closed: one in an earlier line if the line of the error has the
/// next key or header, or one in the last line.
fn bracket(text: &str, position: usize, starts: &[usize]) -> Option<Unclosed> {
    let error_line = line_at(text, position);
    let is_at_end = text[position..].trim().is_empty();
    let innermost = *starts.last()?;
    if text[innermost..].starts_with('{') && line_at(text, innermost) == error_line {
        let has_rest = text[position..]
            .lines()
            .next()
            .is_some_and(|rest| !rest.trim().is_empty());
        // Otherwise the keys are meant to be in the lines below.
        let has_members = !text[..position].trim_end().ends_with(['{', ',']);
        let fix = "close the table with } in the same line".to_owned();
        return (!has_rest && has_members).then(|| unclosed(text, innermost, error_line, fix));
    }
    let mut above = starts.iter().copied();
    let first = above.find(|start| is_at_end || line_at(text, *start) < error_line)?;
    let is_in_list = |start: &usize| text[*start..].starts_with('[');
    let mut in_earlier_lines = starts
        .iter()
        .filter(|start| line_at(text, **start) < error_line);
    if !is_in_list(&first) || !in_earlier_lines.all(is_in_list) {
        return None;
    }
    if is_at_end {
        let fix = "close the list with ]".to_owned();
        return Some(unclosed(text, first, line_at(text, first), fix));
    }
    let line = text.lines().nth(error_line - 1)?;
    let name = key_of(line);
    let fix = format!("close the list with ] before line {error_line}");
    let found = unclosed(text, first, line_at(text, first), fix);
    // A key of a table in the list lacks its braces.
    let is_of_entry = schema::is_known(&found.key.index(0).join(&name)) && !name.is_root();
    (!is_of_entry && (is_header(line) || !name.is_root())).then_some(found)
}

/// What is open at a position.
enum Open {
    /// A text of several lines, which ends nowhere.
    Text {
        start: usize,
        delimiter: &'static str,
    },
    /// The brackets of a value, from the outermost to the innermost.
    Brackets(Vec<usize>),
}

/// Returns what is open at a position of a text that is valid before; `None` if a text of one line
/// is not closed.
fn open_at(text: &str, position: usize) -> Option<Open> {
    let mut starts = Vec::new();
    let mut is_value = false;
    for (start, token) in Tokens::of(text).take_while(|(start, _)| *start < position) {
        let has_lines = token.has_lines();
        match token {
            Token::Text { end: Some(_), .. } => {}
            Token::Text { delimiter, .. } if has_lines => {
                return Some(Open::Text { start, delimiter });
            }
            Token::Text { .. } => return None,
            Token::Mark('=') => is_value = true,
            Token::Mark('\n') if starts.is_empty() => is_value = false,
            Token::Mark('[' | '{') if is_value => starts.push(start),
            Token::Mark(']' | '}') if is_value => {
                starts.pop();
            }
            Token::Mark(_) => {}
        }
    }
    Some(Open::Brackets(starts))
}

#[cfg(test)]
mod tests {
    use toml_edit::ImDocument;

    use super::*;

    fn found(text: &str) -> Option<(usize, String, String)> {
        let error = ImDocument::parse(text).unwrap_err();
        let end = text.trim_end().len();
        let position = error.span().map_or(end, |span| span.start.min(end));
        find(text, position).map(|found| (found.line, found.key.to_string(), found.fix))
    }

    /// J9: what is not closed is named where it begins.
    #[test]
    fn the_line_where_it_begins_is_named() {
        for (text, line, key, fix) in [
            ("a = [\"x\"\nb = 1\n", 1, "a", "] before line 2"),
            ("a = [\"x\"\n\n[[b]]\nc = 1\n", 1, "a", "] before line 3"),
            ("a = [\"x\",\n\n[b]\nc = 1\n", 1, "a", "] before line 3"),
            (
                "[s]\na = [ # [\n  \"]\", # ]\n  'x',\nb = 1\n",
                2,
                "s.a",
                "] before line 5",
            ),
            ("a = [\n  { b = 1 },\nc = 1\n", 1, "a", "] before line 3"),
            ("a = [\n  \"x\",\n", 1, "a", "close the list with ]"),
            ("a = [\"x\"", 1, "a", "close the list with ]"),
            ("a = { b = 1\nc = 1\n", 1, "a", "close the table with }"),
            ("a = { b = [1]", 1, "a", "close the table with }"),
            (
                "a = \"\"\"/mcp\"\nb = 1\n",
                1,
                "a",
                "with \"\"\", or begin it with \" if",
            ),
            (
                "a = '''x'\nb = 1\n",
                1,
                "a",
                "with ''', or begin it with ' if",
            ),
            ("a = [\"x\" \"y\"]\n", 1, "a", "commas"),
            ("a = [\n  \"x\",\n  \"y\"\n  \"z\",\n]\n", 3, "a", "commas"),
            (
                "a = \"\"\"x\"\"\"\"\"\nb = [1\nc = 1\n",
                2,
                "b",
                "] before line 3",
            ),
            (
                "a = \"ä\\\"\" # '\nb = ['ä\\'\nc = 1\n",
                2,
                "b",
                "] before line 3",
            ),
        ] {
            let (found_line, found_key, found_fix) =
                found(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((found_line, found_key.as_str()), (line, key), "{text}");
            assert!(found_fix.contains(fix), "{text}: {found_fix}");
        }
    }

    /// Other mistakes in brackets are none of a missing one.
    #[test]
    fn other_mistakes_are_not_named() {
        for text in [
            "a = {\n  b = 1\n}\n",
            "a = { b = 1,\n  c = 1 }\n",
            "a = [\n  {\n    b = 1,\n  },\n]\n",
            "a = [\"x]\nb = 1\n",
            "a = [x, y]\n",
            "[broker]\nprovider = [\n  kind = \"entra\",\n]\n",
            "a = x\n",
            "[a\n",
            "a = [\"x\"]]\n",
            "",
        ] {
            if ImDocument::parse(text).is_err() {
                let found = found(text);
                assert!(found.is_none(), "{text}: {found:?}");
            }
        }
    }
}

//! Errors of files that are not TOML, with the key, the line and the fix.

mod invisible;
mod line;
mod nesting;
mod place;
mod tables;
mod tokens;
mod unclosed;

use std::ops::Range;

use toml_edit::TomlError;

use super::{Diagnostic, KeyPath, placeholders, schema, size, toml_lines::line_at, toml_text};
use place::{is_header, key_of, table_above};
use tables::{before_its_table, duplicate};
use tokens::{Token, Tokens};

pub(super) use nesting::{MAX_DEPTH, check as check_depth, too_deep};

/// The length of the delimiter of a string of several lines.
const DELIMITER: usize = 3;

/// Returns the line of a syntax error, counted from 1, and the error.
///
/// The text has no part of a value, which may be a misplaced secret.
pub(super) fn diagnostic(text: &str, error: &TomlError) -> (usize, Diagnostic) {
    // An error at the end of the file is in its last line.
    let end = text.trim_end_matches(['\r', '\n', ' ', '\t']).len();
    let position = text.floor_char_boundary(error.span().map_or(end, |span| span.start.min(end)));
    let line_number = line_at(text, position);
    let problem = error
        .message()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let strings = strings_of_lines(text, position);
    if let Some(string) = strings.iter().find(|string| string.contains(&position)) {
        return in_string(text, string, line_number, &problem);
    }
    let text = &*without(text, &strings);
    let line = text.lines().nth(line_number - 1).unwrap_or_default();
    let key = if is_header(line) {
        // It belongs to no table above.
        KeyPath::default()
    } else {
        table_above(text, line_number).join(&key_of(line))
    };
    if let Some(text) = invisible::problem(text, line_number) {
        return at(line_number, key, text);
    }
    if let Some((line_number, text)) = before_its_table(text, line_number, line) {
        return (line_number, Diagnostic { key, text });
    }
    if let Some(unclosed) = unclosed::find(text, position) {
        return at(unclosed.line, unclosed.key, unclosed.fix);
    }
    let text = if problem.contains("duplicate key") {
        duplicate(text, line_number, line)
    } else {
        let rest = text[position..].lines().next().unwrap_or_default();
        explanation(&key, line, rest, &problem)
            .unwrap_or_else(|| format!("{problem}; {}", fix(text, line, &problem)))
    };
    at(line_number, key, text)
}

/// Returns the closed strings of several lines that begin before a position.
fn strings_of_lines(text: &str, position: usize) -> Vec<Range<usize>> {
    let before = Tokens::of(text).take_while(|(start, _)| *start < position);
    before
        .filter(|(_, token)| token.has_lines())
        .filter_map(|(start, token)| match token {
            Token::Text { end, .. } => Some(start..end?),
            Token::Mark(_) => None,
        })
        .collect()
}

/// Returns the text with blanks in place of the content of strings, whose lines can look like keys
/// and headers. All positions and lines stay.
fn without(text: &str, strings: &[Range<usize>]) -> String {
    let mut rest = 0;
    let mut blanked = String::with_capacity(text.len());
    for string in strings {
        let (start, end) = (string.start + DELIMITER, string.end - DELIMITER);
        let blank = |byte: u8| if byte == b'\n' { '\n' } else { ' ' };
        blanked.push_str(&text[rest..start]);
        blanked.extend(text[start..end].bytes().map(blank));
        rest = end;
    }
    blanked + &text[rest..]
}

/// Returns the error within a string of several lines. The key is where the string begins.
fn in_string(
    text: &str,
    string: &Range<usize>,
    line_number: usize,
    problem: &str,
) -> (usize, Diagnostic) {
    let text = &text[..string.start];
    let first = line_at(text, string.start);
    let line = text.lines().nth(first - 1).unwrap_or_default();
    let fix = if problem.contains("escape") || problem.contains("unicode") {
        "write each backslash twice, or begin and end the text with ''' and not with \"\"\""
    } else {
        "remove the character that a text cannot have"
    };
    at(
        line_number,
        table_above(text, first).join(&key_of(line)),
        format!("{problem}; {fix}"),
    )
}

fn at(line_number: usize, key: KeyPath, text: String) -> (usize, Diagnostic) {
    let text = if key.is_root() {
        text
    } else {
        format!("{key}: {text}")
    };
    (line_number, Diagnostic { key, text })
}

/// Returns the problem and its fix in words of the operator instead of the parser's, if the mistake
/// is a well-known one. `rest` is the line from the error on.
fn explanation(key: &KeyPath, line: &str, rest: &str, problem: &str) -> Option<String> {
    let last = key.names().next_back().unwrap_or_default();
    let value = line.split_once('=').map(|(_, value)| value.trim());
    let rest = rest.trim_start();
    if let Some(text) = line::problem(key, line, value) {
        return Some(text);
    }
    if problem.contains("too large") || problem.contains("too small") {
        let example = schema::example(key).and_then(toml_text::value);
        let example = example.map(|example| format!(", such as {last} = {example}"));
        return Some(format!(
            "the number has too many digits; write a smaller one{}",
            example.unwrap_or_default()
        ));
    }
    if let Some(bytes) = value
        .and_then(size::bytes)
        .filter(|_| !schema::unit(key).is_empty())
    {
        return Some(format!("write the number of bytes, {last} = {bytes}"));
    }
    if let Some(problem) = bare_placeholder(value.unwrap_or(line.trim_start())) {
        return Some(problem);
    }
    let is_set = value.is_some_and(|value| !value.is_empty());
    if let Some(mark) = ["//", "--"]
        .iter()
        .find(|mark| is_set && rest.starts_with(**mark))
    {
        return Some(format!("a comment begins with #, not {mark}"));
    }
    if is_set && matches!(rest, ";" | ",") {
        return Some(format!(
            "remove the {rest:?} after the value, and write one key on each line"
        ));
    }
    if rest.starts_with(':') && value.is_some_and(|value| value.starts_with('{')) {
        return Some("write = instead of the colon after a name in braces".to_owned());
    }
    None
}

/// Returns the problem of a value, or of a line without a key, that begins with a placeholder
/// instead of a quote.
fn bare_placeholder(value: &str) -> Option<String> {
    let is_bare = value.starts_with(['$', '%', '<']) || value.starts_with("{{");
    is_bare.then(|| placeholders::problem(value))?
}

/// Returns what to write instead. `text` is the whole file, and `line` the line of the error.
fn fix(text: &str, line: &str, problem: &str) -> &'static str {
    let start = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    let key = key_of(line);
    let value = line
        .split_once('=')
        .map(|(_, value)| value.trim())
        .unwrap_or_default();
    if start.starts_with('{') {
        "the file is JSON and must be TOML; write keys as name = \"value\", tables as [name], and lists of tables as [[name]]"
    } else if start.starts_with("---")
        || (!key.is_root() && !line.contains('=') && line.contains(':'))
    {
        "this is YAML and must be TOML; write key = value"
    } else if problem.contains("duplicate key") {
        "the key or table is already above; remove one, or write [[name]] for several tables"
    } else if line.contains(['“', '”', '„', '‘', '’', '«', '»']) {
        "replace the typographic quotes by \""
    } else if problem.contains("escape") || problem.contains("unicode") {
        "write each backslash twice, or put the value in single quotes"
    } else if is_header(line) {
        "write a header as [table], or [[table]] for one of several, on a line of its own"
    } else if !key.is_root() && value.is_empty() {
        "write a value after the equals sign, such as a text in double quotes"
    } else if matches!(
        value.to_ascii_lowercase().as_str(),
        "yes" | "no" | "on" | "off" | "true" | "false"
    ) {
        "write true or false, in lower case and without quotes"
    } else if value.starts_with(['"', '\'']) {
        "close the text with the quote with which it begins, and write one key on each line"
    } else if value.starts_with(['[', '{']) {
        "close the brackets, and separate the entries by commas; keys in braces stay on one line"
    } else if !key.is_root() && !value.is_empty() {
        "put the value in double quotes, if it is a text, an address or a duration"
    } else if line.trim_start().starts_with(['/', ';']) {
        "begin a comment with #"
    } else {
        "write key = value, with texts in double quotes, and begin a comment with #"
    }
}

#[cfg(test)]
mod tests {
    use toml_edit::ImDocument;

    use super::*;

    fn error(text: &str) -> (usize, String) {
        let error = ImDocument::parse(text).unwrap_err();
        let (line, diagnostic) = diagnostic(text, &error);
        (line, diagnostic.text)
    }

    /// J6, J9: an error of the syntax has the key, the line and the fix, and no part of a value.
    #[test]
    fn mistakes_have_key_line_and_fix() {
        for (text, place, fix) in [
            ("listen = ", "1: listen: ", "write a value"),
            (
                "a = 1\nlisten = 127.0.0.1:3000\n",
                "2: listen: ",
                "double quotes",
            ),
            (
                "[session]\nidle_timeout = 30m\n",
                "2: session.idle_timeout: ",
                "double quotes",
            ),
            (
                "[[issuer]]\n[[issuer]]\nclient_secret = hunter2\n",
                "3: issuer[1].client_secret: ",
                "double quotes",
            ),
            (
                "client_secret = \"hunter2\nlisten = \"a\"\n",
                "1: client_secret: ",
                "close the text",
            ),
            ("base_url: \"https://a\"\n", "1: base_url: ", "YAML"),
            (
                "{\n\"listen\": 1\n}\n",
                "1: ",
                "JSON and must be TOML; write keys as name = \"value\", tables as [name], and lists of tables as [[name]]",
            ),
            ("---\nlisten: 1\n", "1: ", "YAML"),
            (
                "listen = \"a\"\nlisten = \"b\"\n",
                "2: listen: it is already set in line 1",
                "remove one",
            ),
            (
                "[[resource]]\nlisten = 1\n[[resource]]\na = 1\nlisten = \"b\"\nlisten = 1",
                "6: resource[1].listen: it is already set in line 5",
                "remove one",
            ),
            (
                "listen = \"127.0.0.1:3000\"  // hunter2\n",
                "1: listen: a comment begins with #, not //",
                "",
            ),
            (
                "listen = \"a\",\n",
                "1: listen: remove the \",\"",
                "one key on each line",
            ),
            (
                "[[resource]]\nupstream = { \"http\": \"hunter2\" }\n",
                "2: resource[0].upstream: write = instead of the colon",
                "",
            ),
            (
                "[session]\nmax_total = 99999999999999999999\n",
                "2: session.max_total: the number has too many digits",
                "such as max_total = 100000",
            ),
            (
                "[limits]\nmax_body = 4MB\n",
                "2: limits.max_body: ",
                "max_body = 4194304",
            ),
            (
                "[resource]\n[resource]\n",
                "2: [resource] is there twice",
                "write [[resource]] for each",
            ),
            (
                "[broker]\nprovider = \"hunter2\"\n[[broker.provider]]\nkind = \"okta\"\n",
                "3: [[broker.provider]] is already a key in line 2",
                "remove `provider` there",
            ),
            ("realm = “mcp”\n", "1: realm: ", "typographic"),
            (
                "listen\u{a0}= \"127.0.0.1:3000\"\n",
                "1: listen: column 7 has the invisible character U+00A0 (no-break space)",
                "remove it, or write a space",
            ),
            (
                "# ä\u{a0}\n[session]\nidle_timeout = \"ä\u{200b}\"\u{200b}\n",
                "3: session.idle_timeout: column 20 has the invisible character U+200B (zero-width space)",
                "",
            ),
            (
                "\u{feff}a = 1\n\u{feff}b = 1\n",
                "2: b: column 1 has the invisible character U+FEFF (byte order mark)",
                "",
            ),
            (
                "[session]\n\u{2003}keys = 1\n",
                "2: session: column 1 has the invisible character U+2003; remove",
                "",
            ),
            (
                "export CLIENT_SECRET=hunter2\n",
                "1: this is no shell script; remove `export`, ",
                "put the value in quotes",
            ),
            ("key = \"C:\\Users\\x\"\n", "1: key: ", "backslash twice"),
            (
                "require_at_jwt = True\n",
                "1: require_at_jwt: ",
                "lower case",
            ),
            ("default = yes\n", "1: default: ", "true or false"),
            ("a = [\"b\" \"c\"]\n", "1: a: ", "commas"),
            ("[resource\nendpoint = \"/mcp\"\n", "1: ", "header"),
            (
                "[[issuer]]\nleeway = \"5s\"\n\n[[resource]\nendpoint = \"/mcp\"\n",
                "4: invalid table header",
                "[[table]]",
            ),
            (
                "[session]\n[limits]\n[session]\n",
                "3: [session] is already in line 1",
                "move its keys there",
            ),
            ("// comment\n", "1: ", "begin a comment with #"),
            (
                "base_url = {{ .Values.hunter2 | quote }}\n",
                "1: base_url: contains {{ … }}",
                "write the value",
            ),
            (
                "listen = ${LISTEN}\n",
                "1: listen: contains ${…}",
                "write the value",
            ),
            (
                "a = 1\n{{- if .Values.x }}\n",
                "2: contains {{ … }}",
                "write the value",
            ),
            (
                "[issuer.jwks] # comment\n[[resource]]\n[[issuer]]\n",
                "1: [issuer.jwks] stands before the [[issuer]] to which it belongs (line 3)",
                "move it below",
            ),
        ] {
            let (line, message) = error(text);
            let message = format!("{line}: {message}");
            assert!(message.starts_with(place), "{text}: {message}");
            assert!(message.contains(fix), "{text}: {message}");
            assert!(!message.contains("hunter2"), "{message}");
            assert!(!message.contains('\n'), "{message}");
        }
    }

    /// J6: a line of a text is taken neither for a key nor for a header.
    #[test]
    fn texts_of_several_lines_are_no_keys() {
        for (text, place, fix) in [
            (
                "[session]\nkeys = \"\"\"\nhunter2 = \\q\n\"\"\"\n",
                "3: session.keys: ",
                "backslash twice",
            ),
            (
                "[a]\nb = \"\"\"x\n[[hunter2]]\nä\u{1}\"\"\"\n",
                "4: a.b: ",
                "remove the character",
            ),
            (
                "a = '''\n[hunter2]\nhunter2 = 1'''\nb = x\n",
                "4: b: ",
                "double quotes",
            ),
            (
                "[a]\nb = \"\"\"\n[a.hunter2]\nhunter2 = 1\\\"\"\"\"\"\"\nc = 1\nc = 2\n",
                "6: a.c: it is already set in line 5",
                "remove one",
            ),
        ] {
            let (line, message) = error(text);
            let message = format!("{line}: {message}");
            assert!(message.starts_with(place), "{text}: {message}");
            assert!(message.contains(fix), "{text}: {message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
    }

    #[test]
    fn tables_are_counted() {
        let text = "[[resource]]\n[[resource.rule]]\n[[resource]]\n[[resource.rule]]\n[[resource.rule]]\nname = x\n";
        assert!(
            error(text).1.starts_with("resource[1].rule[1].name: "),
            "{}",
            error(text).1
        );
        let long = format!("[{}]\nname = x\n", ["a"; 40].join("."));
        let start = format!("{}.name: ", ["a"; 8].join("."));
        assert!(error(&long).1.starts_with(&start), "{}", error(&long).1);
    }
}

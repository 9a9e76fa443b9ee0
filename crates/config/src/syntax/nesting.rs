//! The depth of a file, measured before it is parsed: parser and reader are recursive.

use super::{
    at,
    tokens::{Token, Tokens},
};
use crate::{Diagnostic, KeyPath, toml_lines::line_at};

/// The most levels of lists and tables in one value, including those of keys with dots.
pub(crate) const MAX_DEPTH: usize = 64;

/// Checks the levels of each value. What follows a string that is not closed is not examined: it is
/// not parsed either.
///
/// Fails with the line and the error of the first value that has too many.
pub(crate) fn check(text: &str) -> Result<(), (usize, Diagnostic)> {
    let mut open = Vec::new();
    let mut depth = 0;
    let mut dots = 0;
    for (position, token) in Tokens::of(text) {
        match token {
            Token::Mark('.') => dots += 1,
            Token::Mark('[' | '{') => {
                open.push(dots + 1);
                depth += dots + 1;
                dots = 0;
            }
            Token::Mark(']' | '}') => {
                depth -= open.pop().unwrap_or_default();
                dots = 0;
            }
            Token::Mark(',') => dots = 0,
            Token::Mark('\n') if open.is_empty() => dots = 0,
            _ => {}
        }
        if depth + dots > MAX_DEPTH {
            let line = line_at(text, position);
            return Err(at(line, KeyPath::default(), too_deep()));
        }
    }
    Ok(())
}

/// Returns the error of a value that has too many levels.
pub(crate) fn too_deep() -> String {
    format!(
        "lists and tables are nested more than {MAX_DEPTH} levels deep, which is deeper than any key; remove the inner ones"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J9: dots, braces and brackets count, those in strings, comments and other lines do not.
    #[test]
    fn levels_are_counted() {
        let nested = |open: &str, close: &str, count: usize| {
            format!("# [\na = {}1{}\n", open.repeat(count), close.repeat(count))
        };
        for (text, line) in [
            (nested("[", "]", MAX_DEPTH), None),
            (nested("[", "]", MAX_DEPTH + 1), Some(2)),
            (nested("{ b = ", "}", MAX_DEPTH + 1), Some(2)),
            (nested("{ b.c.d = ", "}", 21), None),
            (nested("{ b.c.d = ", "}", 22), Some(2)),
            (nested("{ b.'[.'.c = [", "]}", 17), Some(2)),
            (format!("{} = 1\n", ["a"; 66].join(".")), Some(1)),
            ("a.b = [1.5, 2.5]\n".repeat(100), None),
            (format!("a = [{}]\n", "[1.5],\n".repeat(100)), None),
            (format!("a = '{}' # {0}\n", "[".repeat(100)), None),
            (format!("a = \"\"\"\n{}\"\"\"\n", "[.".repeat(100)), None),
            (format!("a = '{}\n", "[".repeat(100)), None),
            ("]".repeat(100), None),
        ] {
            let found = check(&text).err();
            assert_eq!(found.map(|(line, _)| line), line, "{text}");
        }
    }

    /// J9: a small file of many levels is refused before anything recursive sees it.
    #[test]
    fn deep_files_are_refused() {
        let keys = ["a"; 79].join(".");
        let text = (0..76).fold("1".to_owned(), |text, _| format!("{{ {keys} = {text} }}"));
        let error = crate::from_text(&format!("a = {text}\n")).unwrap_err();
        assert!(error.text.contains("more than 64 levels deep"), "{error}");
    }
}

//! Invisible characters at places of a line where TOML allows none.

use super::tokens::{Token, Tokens};
use crate::{invisible::is_invisible, toml_lines::line_at};

/// Returns the problem of the first such character of a line, and its fix. Characters in texts and
/// comments are allowed.
pub(super) fn problem(text: &str, line_number: usize) -> Option<String> {
    let (position, character) = Tokens::of(text).find_map(|(position, token)| match token {
        Token::Mark(character) if is_unseen(character) && position > 0 => {
            (line_at(text, position) == line_number).then_some((position, character))
        }
        _ => None,
    })?;
    let start = text[..position].rfind('\n').map_or(0, |end| end + 1);
    let column = text[start..position].chars().count() + 1;
    Some(format!(
        "column {column} has the invisible character U+{:04X}{}; remove it, or write a space",
        u32::from(character),
        name(character)
    ))
}

/// Whether a character is not seen, or seen as a space. A byte order mark can be the first
/// character of a file.
fn is_unseen(character: char) -> bool {
    is_invisible(character)
        || matches!(character, '\u{ad}' | '\u{200c}' | '\u{200d}')
        || (character.is_whitespace() && !character.is_ascii())
}

fn name(character: char) -> &'static str {
    match character {
        '\u{a0}' => " (no-break space)",
        '\u{200b}' => " (zero-width space)",
        '\u{feff}' => " (byte order mark)",
        _ => "",
    }
}

//! Tables and keys of lines, found without a parser because the file is invalid.

use crate::KeyPath;

/// The most names of a header that are examined. Those of known tables have fewer.
const MAX_PARTS: usize = 8;

/// Returns the table of the last header above a line, found without a parser because the file is
/// invalid.
pub(super) fn table_above(text: &str, line_number: usize) -> KeyPath {
    let above: Vec<&str> = text.lines().take(line_number - 1).collect();
    let header = above
        .iter()
        .rposition(|line| line.trim_start().starts_with('[') && line.trim_end().ends_with(']'));
    let Some(header) = header else {
        return KeyPath::default();
    };
    let name = |line: &str| line.trim().trim_matches(['[', ']']).trim().to_owned();
    let mut path = KeyPath::default();
    let names = name(above[header]);
    let parts: Vec<&str> = names.split('.').map(str::trim).take(MAX_PARTS).collect();
    for end in 1..=parts.len() {
        path = path.name(parts[end - 1]);
        let array = parts[..end].join(".");
        let is_array = |line: &&&str| line.trim_start().starts_with("[[") && name(line) == array;
        // Positions in an inner array begin with the header of the table around it.
        let start = match end {
            1 => 0,
            _ => above[..=header]
                .iter()
                .rposition(|line| name(line) == parts[..end - 1].join("."))
                .unwrap_or(0),
        };
        let count = above[start..=header].iter().filter(is_array).count();
        if count > 0 {
            path = path.index(count - 1);
        }
    }
    path
}

/// Whether a line is a header of a table, possibly without some brackets.
pub(super) fn is_header(line: &str) -> bool {
    let line = line.split('#').next().unwrap_or_default().trim();
    line.starts_with('[') && !line.contains(['=', ',', '{'])
}

/// Returns the key at the start of a line, possibly behind the mark of a diff; the root if there is
/// none.
pub(super) fn key_of(line: &str) -> KeyPath {
    let line = line.trim_start_matches(['\u{feff}', ' ', '\t', '+']);
    let end = line
        .find(|c: char| !c.is_ascii_alphanumeric() && !"_-.".contains(c))
        .unwrap_or(line.len());
    let (key, rest) = line.split_at(end);
    if !key.is_empty() && rest.trim_start().starts_with(['=', ':']) {
        KeyPath::from_names(key.split('.'))
    } else {
        KeyPath::default()
    }
}

/// Returns a line without its comment and the spaces around it.
pub(super) fn bare(line: &str) -> String {
    line.split('#').next().unwrap_or_default().trim().to_owned()
}

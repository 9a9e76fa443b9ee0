//! Tables and keys that are there twice, or in the wrong order.

use super::place::{bare, is_header, key_of, table_above};
use crate::{KeyPath, schema};

/// Returns the line and the error of the first table that stands above the array of tables to which
/// it belongs: `[[resource.rule]]` before `[[resource]]`, whose header is in the line of the error.
pub(super) fn before_its_table(
    text: &str,
    line_number: usize,
    line: &str,
) -> Option<(usize, String)> {
    let name = |header: &str| header.trim_matches(['[', ']']).trim().to_owned();
    let header = bare(line);
    let is_array = is_header(line) && header.starts_with("[[");
    let array = is_array.then(|| name(&header))?;
    let headers = text
        .lines()
        .take(line_number - 1)
        .map(bare)
        .enumerate()
        .filter(|(_, line)| is_header(line));
    let headers: Vec<(usize, String)> = headers.collect();
    if headers.iter().any(|(_, header)| name(header) == array) {
        return None;
    }
    let within = format!("{array}.");
    let (position, inner) = headers
        .iter()
        .find(|(_, header)| name(header).starts_with(&within))?;
    Some((
        position + 1,
        format!(
            "{inner} stands before the {header} to which it belongs (line {line_number}); move it below"
        ),
    ))
}

/// Returns the error about a key or a table that is above already.
pub(super) fn duplicate(text: &str, line_number: usize, line: &str) -> String {
    let above = || text.lines().take(line_number - 1).enumerate();
    if is_header(line) {
        let header = bare(line);
        let name = header.trim_matches(['[', ']']).trim();
        if schema::type_name(&KeyPath::parse(name)) == Some("array") {
            let is_key = |(position, line): &(usize, &str)| {
                let key = key_of(line);
                name.ends_with(key.names().next_back().unwrap_or(header.as_str()))
                    && table_above(text, position + 1).join(&key).header() == name
            };
            return match above().find(is_key) {
                Some((first, line)) => format!(
                    "{header} is already a key in line {}; remove `{}` there",
                    first + 1,
                    key_of(line)
                ),
                None => format!("{header} is there twice; write [[{name}]] for each"),
            };
        }
        if let Some((first, _)) = above().find(|(_, line)| bare(line) == header) {
            return format!(
                "{header} is already in line {}; move its keys there, and remove this header",
                first + 1
            );
        }
        let table = KeyPath::parse(name);
        let sets = |position: usize, line: &str| {
            let key = key_of(line);
            let is_candidate = key.names().next().is_some_and(|first| name.contains(first));
            let around = is_candidate.then(|| table_above(text, position + 1));
            around.is_some_and(|around| {
                !around.starts_with(&table) && around.join(&key).starts_with(&table)
            })
        };
        if let Some((first, _)) = above().find(|(position, line)| sets(*position, line)) {
            return format!(
                "{name} is already in line {}; write it below {header}, and remove it there",
                first + 1
            );
        }
    } else {
        // Keys of one table are below the same header.
        let key = key_of(line);
        let in_table: Vec<_> = above().collect();
        let in_table = in_table
            .into_iter()
            .rev()
            .take_while(|(_, line)| !is_header(line));
        let mut same = in_table.filter(|(_, line)| !key.is_root() && key_of(line) == key);
        if let Some((first, _)) = same.next() {
            return format!("it is already set in line {}; remove one", first + 1);
        }
    }
    "the key or table is already above; remove one, or write [[name]] for several tables".to_owned()
}

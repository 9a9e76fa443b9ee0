//! What patterns of other languages probably mean.

use super::{
    IN_TOOL_NAMES, STRANGE, STRANGE_IN_NAMES, TOOLS_CALL, is_between_slashes, is_in_tool_names,
};
use crate::toml_text;

/// What can be between the method and a name, where both are written in one text.
const AFTER_METHOD: &[char] = &[':', '/', ' '];
/// What begins the negation of a pattern in other languages.
const NEGATIONS: [&str; 3] = ["!", "~", "not "];

/// Returns how to write a pattern of another language. `of_tools` is whether it is for names of
/// tools only.
pub(super) fn fix(pattern: &str, of_tools: bool) -> String {
    if of_tools
        && NEGATIONS
            .iter()
            .any(|not| pattern.trim_start().starts_with(not))
    {
        return "there is no negation; write one rule for each name that needs it".to_owned();
    }
    let meant = if of_tools {
        meant_tools(pattern)
    } else {
        meant(pattern)
    };
    let names: Vec<String> = meant
        .iter()
        .map(|name| format!("name = {}", toml_text::string(name)))
        .collect();
    match &names[..] {
        [] => "write one rule for each name".to_owned(),
        [name] => format!("write {name}"),
        [first, others @ ..] => {
            format!(
                "write a rule with {first}, and another with {}",
                others.join(", another with ")
            )
        }
    }
}

/// Returns the patterns for names of tools that a pattern means. Empty if there is none.
fn meant_tools(pattern: &str) -> Vec<String> {
    let pattern = pattern.trim();
    let bare = pattern
        .strip_prefix(TOOLS_CALL)
        .and_then(|name| name.strip_prefix(AFTER_METHOD))
        .unwrap_or(pattern);
    let bare = if is_between_slashes(bare) {
        bare.trim_matches('/')
    } else {
        bare
    };
    // A title such as `Delete File` is no list of names.
    let is_list = bare.contains(IN_TOOL_NAMES);
    let is_separator = |character: char| {
        matches!(character, ';' | ',' | '|') || (is_list && character.is_whitespace())
    };
    let words: Vec<&str> = bare
        .split(is_separator)
        .map(|word| word.trim().trim_matches(is_quote))
        .filter(|word| !matches!(*word, "" | "or" | "and"))
        .collect();
    // The wildcard of SQL.
    let mut names = meant(&words.join("|").replace('%', "*"));
    if !names.iter().all(|name| name.chars().all(is_in_tool_names)) {
        names.clear();
    }
    names
}

fn is_quote(character: char) -> bool {
    matches!(character, '\'' | '"' | '`' | '\u{2018}'..='\u{201f}')
}

/// Returns the patterns that a list of alternatives or a simple regular expression means. Empty if
/// it is another one.
fn meant(pattern: &str) -> Vec<String> {
    let bare = pattern.trim_start_matches('^').trim_end_matches('$');
    let bare = bare.replace(".*", "*").replace(".+", "*");
    let (open_start, open_end) = open_ends(pattern);
    let is_open = |character: char| matches!(character, '(' | '{');
    let is_closed = |character: char| matches!(character, ')' | '}');
    let (start, alternatives, end) = match bare
        .split_once(is_open)
        .and_then(|(start, rest)| Some((start, rest.split_once(is_closed)?)))
    {
        Some((start, (alternatives, end))) => (start, alternatives, end),
        None => ("", bare.as_str(), ""),
    };
    let names: Vec<String> = alternatives
        .split(['|', ','])
        .map(|alternative| format!("{open_start}{start}{}{end}{open_end}", alternative.trim()))
        .map(|name| name.replace("**", "*"))
        .collect();
    let is_plain = |name: &String| {
        !name.is_empty() && !name.contains(STRANGE) && !name.contains(STRANGE_IN_NAMES)
    };
    if names.iter().all(is_plain) {
        names
    } else {
        Vec::new()
    }
}

/// Returns the wildcards before and after what a pattern means: a regular expression with one
/// anchor is open at its other end.
fn open_ends(pattern: &str) -> (&'static str, &'static str) {
    match (pattern.starts_with('^'), pattern.ends_with('$')) {
        (true, false) => ("", "*"),
        (false, true) => ("*", ""),
        _ => ("", ""),
    }
}

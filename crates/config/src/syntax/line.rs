//! Well-known mistakes in the spelling of one line.

use crate::{
    KeyPath, schema,
    similar::intended_key,
    toml_text,
    type_errors::{meant_choice, no_duration},
};

/// Returns the problem of a line and its fix. `key` is the key of the line, or its table if the
/// parser found no key, and `value` is what follows the equals sign.
pub(super) fn problem(key: &KeyPath, line: &str, value: Option<&str>) -> Option<String> {
    let line = line.trim_start_matches(['\u{feff}', ' ', '\t']);
    if ["<<<<<<<", "=======", ">>>>>>>"]
        .iter()
        .any(|mark| line.starts_with(mark))
    {
        return Some("remove the marks of the merge conflict, and one of the versions".to_owned());
    }
    if line.starts_with('+') {
        return Some("remove the + at the start of the line".to_owned());
    }
    let name = line.split_once('=')?.0.trim();
    if name.starts_with("export ") {
        return Some(
            "this is no shell script; remove `export`, write the name of a key, and put the value in quotes".to_owned(),
        );
    }
    if is_words(name) {
        return Some(name_with_spaces(key, name));
    }
    let value = value?;
    for (has_mark, mark) in [
        (value.starts_with('='), "=="),
        (value.starts_with('>'), "=>"),
        (name.ends_with(':'), ":="),
    ] {
        if has_mark {
            return Some(format!("write = instead of {mark}"));
        }
    }
    if value.starts_with('(') {
        return Some("a list is in square brackets; write [ and ] instead of ( and )".to_owned());
    }
    let plain = value.split('#').next().unwrap_or_default().trim();
    let is_integer = schema::type_name(key) == Some("integer");
    let duration = is_integer.then(|| no_duration(key, plain)).flatten();
    duration.or_else(|| bare_word(key, plain))
}

/// Whether a text is several words of the characters of keys.
fn is_words(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_- \t".contains(c);
    text.contains([' ', '\t']) && text.chars().all(is_plain)
}

fn name_with_spaces(table: &KeyPath, name: &str) -> String {
    let joined = name.split_whitespace().collect::<Vec<_>>().join("_");
    match intended_key(&joined, &schema::keys_of(table)) {
        Some(meant) => format!("a key has no spaces; did you mean `{meant}`?"),
        None => "a key has no spaces; write its name without them".to_owned(),
    }
}

/// Returns the problem of a word without quotes, at a key whose value is a text. It repeats only
/// words that are known.
fn bare_word(key: &KeyPath, value: &str) -> Option<String> {
    let word = value.to_ascii_lowercase();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if !word.starts_with(|c: char| c.is_ascii_alphabetic()) || !word.chars().all(is_plain) {
        return None;
    }
    let last = key.names().next_back()?;
    let choices = schema::choices(key);
    let names: Vec<&str> = choices
        .iter()
        .filter_map(|choice| choice.strip_prefix('"')?.strip_suffix('"'))
        .collect();
    let known = names.iter().copied().find(|name| *name == word);
    let meant = known
        .or_else(|| meant_choice(&word, &names))
        .or((key.header() == "state_dir" && word == "off").then_some("off"));
    if let Some(meant) = meant {
        return Some(format!("a text is in quotes; write {last} = \"{meant}\""));
    }
    if !names.is_empty() {
        return Some(format!("write one of {}", choices.join(", ")));
    }
    let is_switch = ["yes", "no", "on", "off", "true", "false"].contains(&word.as_str());
    if !is_switch || matches!(schema::type_name(key)?, "boolean") {
        return None;
    }
    let example = toml_text::value(schema::example(key)?)?;
    Some(format!(
        "the value is no switch; write one such as {last} = {example}"
    ))
}

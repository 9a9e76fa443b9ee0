//! Reads which requirements the tests name.

use std::{fs, path::Path};

use anyhow::Context;
use xtask::workspace::rust_files;

use super::Tests;

/// The folders with tests, relative to the workspace's root.
const FOLDERS: &[&str] = &["crates", "examples", "fuzz/bodies", "tests", "xtask"];

/// Returns all tests of the workspace by the numbers in their doc comments. Fails if a folder does
/// not exist, or a file cannot be read.
pub(super) fn tests(root: &Path) -> anyhow::Result<Tests> {
    let mut tests = Tests::new();
    for folder in FOLDERS {
        for path in rust_files(&root.join(folder))? {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("{} cannot be read", path.display()))?;
            let file = path
                .strip_prefix(root)
                .unwrap_or(&path)
                .display()
                .to_string();
            for (number, test) in named(&text) {
                tests
                    .entry(number)
                    .or_default()
                    .push(format!("{file}::{test}"));
            }
        }
    }
    for names in tests.values_mut() {
        names.sort();
    }
    Ok(tests)
}

/// Returns the pairs (number, test name) of one file. The numbers are at the start of the doc
/// comment of each test.
fn named(text: &str) -> Vec<(String, String)> {
    let mut named = Vec::new();
    let mut comment = String::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        if let Some(words) = line.strip_prefix("///") {
            comment.push_str(words);
        } else if line.starts_with("#[") {
            is_test |= is_test_attribute(line);
        } else {
            if is_test && let Some(name) = function_name(line) {
                named.extend(
                    numbers(&comment)
                        .into_iter()
                        .map(|number| (number, name.to_owned())),
                );
            }
            comment.clear();
            is_test = false;
        }
    }
    named
}

/// Returns whether an attribute makes a function a test, such as `#[test]` or `#[tokio::test(…)]`.
fn is_test_attribute(line: &str) -> bool {
    let path = line
        .trim_start_matches("#[")
        .split(['(', ']'])
        .next()
        .unwrap_or_default();
    path == "test" || path.ends_with("::test")
}

/// Returns the name of the function that a line declares.
fn function_name(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    line.strip_prefix("fn ")?.split(['(', '<']).next()
}

/// Returns the numbers before the comment's first colon, such as `B2` and `B4` in
/// `B2, B4: the property`. Rules of the broker beside them, such as `TK2`, are skipped.
fn numbers(comment: &str) -> Vec<String> {
    let Some((opening, _)) = comment.split_once(':') else {
        return Vec::new();
    };
    let words: Vec<&str> = opening
        .split([',', ' '])
        .filter(|word| !word.is_empty())
        .collect();
    if words.iter().all(|word| is_number(word) || is_rule(word)) {
        words
            .into_iter()
            .filter(|word| is_number(word))
            .map(str::to_owned)
            .collect()
    } else {
        Vec::new()
    }
}

/// Returns whether a word is a group's letter and digits.
fn is_number(word: &str) -> bool {
    let mut characters = word.chars();
    characters
        .next()
        .is_some_and(|first| ('A'..='N').contains(&first))
        && word.len() > 1
        && characters.all(|digit| digit.is_ascii_digit())
}

/// Returns whether a word is a rule of `docs/use/broker-security.md`: two letters and digits.
fn is_rule(word: &str) -> bool {
    let digits = word.trim_start_matches(|character: char| character.is_ascii_uppercase());
    word.len() - digits.len() == 2
        && !digits.is_empty()
        && digits.bytes().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_at_the_start_of_a_comment_are_found() {
        let text = "/// B2, B4: quoted.\n#[test]\nfn quoted() {}\n/// C1: waits.\n#[tokio::test(start_paused = true)]\nasync fn waits() {}\n";
        let expected = [("B2", "quoted"), ("B4", "quoted"), ("C1", "waits")];
        assert_eq!(
            named(text),
            expected.map(|(number, test)| (number.to_owned(), test.to_owned()))
        );
    }

    #[test]
    fn rules_beside_numbers_are_skipped() {
        let number = |text| named(text).into_iter().next().map(|(number, _)| number);
        let text = "/// M8, TK2: once.\n#[test]\nfn once() {}\n";
        assert_eq!(number(text).as_deref(), Some("M8"));
        assert_eq!(number("/// TK2: once.\n#[test]\nfn once() {}\n"), None);
        assert_eq!(
            number("/// M8 and TK2: once.\n#[test]\nfn once() {}\n"),
            None
        );
    }

    #[test]
    fn other_comments_and_functions_are_ignored() {
        assert!(named("/// B2: not a test.\nfn helper() {}\n").is_empty());
        assert!(named("/// As in B2: prose.\n#[test]\nfn prose() {}\n").is_empty());
        assert!(named("/// B2: of something else.\nstruct A;\n#[test]\nfn bare() {}\n").is_empty());
    }
}

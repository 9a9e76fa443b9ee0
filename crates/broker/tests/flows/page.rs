//! The page of threats names the tests of these files, and these tests name its rules.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// The rules whose tests are in other crates.
const ELSEWHERE: [&str; 3] = ["OR1", "OR2", "ST6"];

/// Each rule of the page, with the names in its last column.
fn rules_of_page(root: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let page = fs::read_to_string(root.join("../../docs/use/broker-security.md")).unwrap();
    let rows = page.lines().filter_map(|line| {
        let line = line.strip_prefix("| ")?.strip_suffix('|')?;
        let (id, rest) = line.split_once(" | ")?;
        let is_rule = id.len() > 2
            && id[..2].bytes().all(|byte| byte.is_ascii_uppercase())
            && id[2..].bytes().all(|byte| byte.is_ascii_digit());
        is_rule.then_some(())?;
        let (_, names) = rest.rsplit_once('|')?;
        let names = names.split('`').skip(1).step_by(2).map(str::to_owned);
        Some((id.to_owned(), names.collect()))
    });
    rows.collect()
}

/// Each rule that the comment of a test names at its beginning, with the names of these tests.
fn rules_of_tests(root: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut rules: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in fs::read_dir(root.join("tests/flows")).unwrap() {
        let path = file.unwrap().path();
        let module = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        // The first line of the comment, and whether an attribute makes the function a test.
        let (mut comment, mut is_test) = (None, false);
        for line in text.lines().map(str::trim) {
            if let Some(text) = line.strip_prefix("/// ") {
                comment = comment.or(Some(text));
            } else if line.starts_with("#[") {
                is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            } else {
                if let (Some(comment), true) = (comment, is_test)
                    && let Some((ids, _)) = comment.split_once(": ")
                    && let Some((_, name)) = line.split_once("fn ")
                {
                    let name = name.split('(').next().unwrap();
                    // Rules have two letters; numbers of requirements beside them have one.
                    let is_rule = |id: &&str| id.chars().nth(1).is_some_and(char::is_alphabetic);
                    for id in ids.split(", ").filter(is_rule) {
                        let names = rules.entry(id.to_owned()).or_default();
                        names.insert(format!("{module}::{name}"));
                    }
                }
                (comment, is_test) = (None, false);
            }
        }
    }
    rules
}

#[test]
fn the_page_names_the_tests_of_each_rule() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (of_page, of_tests) = (rules_of_page(root), rules_of_tests(root));
    assert!(of_page.len() > 80);
    for (id, names) in &of_page {
        assert_eq!(names.is_empty(), ELSEWHERE.contains(&id.as_str()), "{id}");
        let found = of_tests.get(id).cloned().unwrap_or_default();
        assert_eq!(*names, found, "{id}");
    }
    for id in of_tests.keys() {
        assert!(of_page.contains_key(id), "{id}");
    }
}

//! `cargo xtask requirements`: every number in docs/requirements.toml is named by a test, or is marked as later work.

mod scan;

use std::{collections::BTreeMap, fmt::Write, fs};

use anyhow::{Context, bail};
use serde::Deserialize;

use crate::workspace;

const SOURCE: &str = "docs/requirements.toml";
const TABLE: &str = "docs/requirements.md";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Requirements {
    requirement: Vec<Requirement>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Requirement {
    number: String,
    text: String,
    /// The work is still to come, so that no test can name it yet.
    #[serde(default)]
    later: bool,
}

/// Test names by the requirement that they show.
type Tests = BTreeMap<String, Vec<String>>;

pub(crate) fn run(check: bool) -> anyhow::Result<()> {
    let root = workspace::root();
    let source = fs::read_to_string(root.join(SOURCE)).with_context(|| format!("{SOURCE} cannot be read"))?;
    let requirements: Requirements = toml::from_str(&source).with_context(|| format!("{SOURCE} is not as expected"))?;
    let tests = scan::tests(&root)?;

    let faults = faults(&requirements.requirement, &tests);
    if !faults.is_empty() {
        bail!("requirements and tests do not agree:\n  {}", faults.join("\n  "));
    }

    let table = table(&requirements.requirement, &tests);
    let path = root.join(TABLE);
    if check {
        if fs::read_to_string(&path).unwrap_or_default() != table {
            bail!("{TABLE} is out of date; run `cargo xtask requirements` and commit it");
        }
    } else {
        fs::write(&path, &table).with_context(|| format!("{TABLE} cannot be written"))?;
    }
    let shown = requirements.requirement.iter().filter(|requirement| !requirement.later).count();
    println!("requirements: {shown} shown by tests, {} later", requirements.requirement.len() - shown);
    Ok(())
}

fn faults(requirements: &[Requirement], tests: &Tests) -> Vec<String> {
    let mut faults = Vec::new();
    for Requirement { number, later, .. } in requirements {
        match (later, tests.get(number)) {
            (false, None) => faults.push(format!("{number} has no test and is not marked later")),
            (true, Some(tests)) => faults.push(format!("{number} is marked later, but {} names it", tests[0])),
            _ => {}
        }
    }
    for (number, tests) in tests {
        if !requirements.iter().any(|requirement| requirement.number == *number) {
            faults.push(format!("{} names {number}, which {SOURCE} does not have", tests[0]));
        }
    }
    faults
}

fn table(requirements: &[Requirement], tests: &Tests) -> String {
    let mut table = String::from(
        "# Requirements and the tests that show them\n\n\
         Written by `cargo xtask requirements` from `docs/requirements.toml` and the doc comments of the tests.\n\n\
         | number | requirement | tests |\n|---|---|---|\n",
    );
    for Requirement { number, text, later } in requirements {
        let shown = match tests.get(number) {
            Some(tests) => tests.join("<br>"),
            None if *later => "later".to_owned(),
            None => String::new(),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(table, "| {number} | {} | {shown} |", text.replace('|', "\\|"));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirement(number: &str, later: bool) -> Requirement {
        Requirement { number: number.to_owned(), text: "text".to_owned(), later }
    }

    fn tests_of(number: &str) -> Tests {
        Tests::from([(number.to_owned(), vec!["crates/x.rs::shows_it".to_owned()])])
    }

    #[test]
    fn a_number_needs_a_test_or_the_mark() {
        assert_eq!(faults(&[requirement("A1", false)], &Tests::new()).len(), 1);
        assert!(faults(&[requirement("A1", true)], &Tests::new()).is_empty());
        assert!(faults(&[requirement("A1", false)], &tests_of("A1")).is_empty());
    }

    #[test]
    fn a_number_with_both_and_an_unknown_number_are_faults() {
        assert_eq!(faults(&[requirement("A1", true)], &tests_of("A1")).len(), 1);
        assert_eq!(faults(&[requirement("A1", true)], &tests_of("Z9")).len(), 1);
    }

    #[test]
    fn the_table_names_the_tests() {
        let table = table(&[requirement("A1", false), requirement("A2", true)], &tests_of("A1"));
        assert!(table.contains("| A1 | text | crates/x.rs::shows_it |"));
        assert!(table.contains("| A2 | text | later |"));
    }
}

//! `cargo xtask requirements`: checks that a test names every number of
//! docs/contribute/requirements.toml, and prints which.

mod scan;

use std::{collections::BTreeMap, fmt::Write, fs};

use anyhow::{Context, bail};
use serde::Deserialize;

use xtask::workspace;

/// The list of requirements, relative to the workspace's root.
const SOURCE: &str = "docs/contribute/requirements.toml";

/// The content of [`SOURCE`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Requirements {
    group: Vec<Group>,
    requirement: Vec<Requirement>,
}

/// The requirements whose numbers begin with one letter.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    letter: char,
    title: String,
}

/// A requirement: what a user can rely on.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Requirement {
    /// The letter of its group and a number, such as `B2`.
    number: String,
    text: String,
    /// Whether it is planned. No test names it yet.
    #[serde(default)]
    later: bool,
}

/// The tests of each requirement, as `file::test`.
type Tests = BTreeMap<String, Vec<String>>;

/// Compares requirements and tests. With `print`, prints each requirement and its tests.
pub(crate) fn run(print: bool) -> anyhow::Result<()> {
    let root = workspace::root();
    let source = fs::read_to_string(root.join(SOURCE))
        .with_context(|| format!("{SOURCE} cannot be read"))?;
    let requirements: Requirements =
        toml::from_str(&source).with_context(|| format!("{SOURCE} is not as expected"))?;
    let tests = scan::tests(&root)?;

    let problems = problems(&requirements, &tests);
    if !problems.is_empty() {
        bail!(
            "requirements and tests differ:\n  {}",
            problems.join("\n  ")
        );
    }

    if print {
        println!("{}", page(&requirements, &tests));
        return Ok(());
    }
    let tested = requirements
        .requirement
        .iter()
        .filter(|requirement| !requirement.later)
        .count();
    println!(
        "requirements: {tested} tested, {} planned",
        requirements.requirement.len() - tested
    );
    Ok(())
}

/// Returns the differences between requirements and tests.
fn problems(requirements: &Requirements, tests: &Tests) -> Vec<String> {
    let mut problems = Vec::new();
    for Requirement { number, later, .. } in &requirements.requirement {
        match (later, tests.get(number)) {
            (false, None) => {
                problems.push(format!("{number} has no test and is not marked `later`"))
            }
            (true, Some(tests)) => problems.push(format!(
                "{number} is marked `later`, but {} names it",
                tests[0]
            )),
            _ => {}
        }
        if !requirements
            .group
            .iter()
            .any(|group| number.starts_with(group.letter))
        {
            problems.push(format!("{number} belongs to no group of {SOURCE}"));
        }
    }
    for (number, tests) in tests {
        if !requirements
            .requirement
            .iter()
            .any(|requirement| requirement.number == *number)
        {
            problems.push(format!(
                "{} names {number}, which {SOURCE} does not have",
                tests[0]
            ));
        }
    }
    problems
}

/// Returns a page with a section per group and the tests of each requirement by file.
fn page(requirements: &Requirements, tests: &Tests) -> String {
    let mut page = String::from("# Requirements and their tests\n");
    // Writing to a String cannot fail.
    for Group { letter, title } in &requirements.group {
        let _ = write!(page, "\n## {letter}. {title}\n");
        let members = requirements
            .requirement
            .iter()
            .filter(|requirement| requirement.number.starts_with(*letter));
        for Requirement {
            number,
            text,
            later,
        } in members
        {
            let planned = if *later { " (planned)" } else { "" };
            let _ = write!(page, "\n**{number}**{planned} {text}\n\n");
            for (file, names) in by_file(tests.get(number).map_or(&[], Vec::as_slice)) {
                let _ = writeln!(page, "- `{file}`: {}", names.join(", "));
            }
        }
    }
    page
}

/// Groups the names of tests by their file.
fn by_file(tests: &[String]) -> BTreeMap<&str, Vec<String>> {
    let mut files = BTreeMap::<_, Vec<_>>::new();
    for (file, name) in tests.iter().filter_map(|test| test.split_once("::")) {
        files.entry(file).or_default().push(format!("`{name}`"));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirements(numbers: &[(&str, bool)]) -> Requirements {
        let requirement = |&(number, later): &(&str, bool)| Requirement {
            number: number.to_owned(),
            text: "text".to_owned(),
            later,
        };
        Requirements {
            group: vec![Group {
                letter: 'A',
                title: "Metadata".to_owned(),
            }],
            requirement: numbers.iter().map(requirement).collect(),
        }
    }

    fn tests_of(number: &str) -> Tests {
        Tests::from([(
            number.to_owned(),
            vec!["crates/x.rs::one".to_owned(), "crates/x.rs::two".to_owned()],
        )])
    }

    #[test]
    fn a_requirement_has_a_test_or_is_planned() {
        assert_eq!(
            problems(&requirements(&[("A1", false)]), &Tests::new()).len(),
            1
        );
        assert!(problems(&requirements(&[("A1", true)]), &Tests::new()).is_empty());
        assert!(problems(&requirements(&[("A1", false)]), &tests_of("A1")).is_empty());
    }

    #[test]
    fn planned_numbers_with_a_test_unknown_numbers_and_numbers_without_group_are_problems() {
        assert_eq!(
            problems(&requirements(&[("A1", true)]), &tests_of("A1")).len(),
            1
        );
        assert_eq!(
            problems(&requirements(&[("A1", true)]), &tests_of("Z9")).len(),
            1
        );
        assert_eq!(
            problems(&requirements(&[("B1", true)]), &Tests::new()).len(),
            1
        );
    }

    #[test]
    fn the_page_has_a_section_per_group_and_names_the_tests() {
        let page = page(
            &requirements(&[("A1", false), ("A2", true)]),
            &tests_of("A1"),
        );
        assert!(
            page.contains("## A. Metadata\n\n**A1** text\n\n- `crates/x.rs`: `one`, `two`\n"),
            "{page}"
        );
        assert!(page.contains("**A2** (planned) text\n"), "{page}");
    }
}

//! The pages: what docs/contribute/reason-codes.toml says about the codes of the crates.

use std::{fmt::Write, fs};

use anyhow::{Context, ensure};
use serde::Deserialize;
use xtask::workspace;

use crate::codes::{Codes, codes};

/// The texts about the codes, relative to the workspace's root.
const TEXTS: &str = "docs/contribute/reason-codes.toml";

/// The content of [`TEXTS`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Texts {
    page: Vec<Page>,
}

/// A page, with what it says before its sections.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    /// The file, relative to the workspace's root.
    file: String,
    title: String,
    head: String,
    group: Vec<Group>,
}

/// A section of a page.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    title: String,
    code: Vec<ReasonCode>,
}

/// A row of the page.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReasonCode {
    code: String,
    /// The statuses of responses with this code.
    status: Vec<u16>,
    /// Default: what the crate says.
    meaning: Option<String>,
    /// What to do.
    fix: String,
}

/// A file and its current content.
pub(crate) struct Written {
    /// The file, relative to the workspace's root.
    pub(crate) file: String,
    pub(crate) content: String,
}

/// Returns the pages for the current codes. Fails when a code has no text or several, or a text has
/// no code.
pub(crate) fn current() -> anyhow::Result<Vec<Written>> {
    let texts = fs::read_to_string(workspace::root().join(TEXTS))
        .with_context(|| format!("{TEXTS} cannot be read"))?;
    let texts: Texts =
        toml::from_str(&texts).with_context(|| format!("{TEXTS} is not as expected"))?;
    let codes = codes();
    let problems = problems(&texts, &codes);
    ensure!(
        problems.is_empty(),
        "the reason codes in {TEXTS} and of the crates differ:\n  {}",
        problems.join("\n  ")
    );
    let pages = texts.page.iter().map(|page| Written {
        file: page.file.clone(),
        content: content(page, &codes),
    });
    Ok(pages.collect())
}

/// Returns the differences between texts and codes.
fn problems(texts: &Texts, codes: &Codes) -> Vec<String> {
    let listed: Vec<&str> = texts
        .page
        .iter()
        .flat_map(|page| &page.group)
        .flat_map(|group| &group.code)
        .map(|code| code.code.as_str())
        .collect();
    let mut problems = Vec::new();
    for code in codes.keys() {
        match listed.iter().filter(|listed| *listed == code).count() {
            0 => problems.push(format!("`{code}` is not in {TEXTS}: say what to do")),
            1 => {}
            times => problems.push(format!("`{code}` is listed {times} times")),
        }
    }
    let is_gone = |code: &&str| !codes.contains_key(code);
    problems.extend(
        listed
            .into_iter()
            .filter(is_gone)
            .map(|code| format!("no crate has `{code}`")),
    );
    problems
}

/// Returns a page with a section per group.
fn content(page: &Page, codes: &Codes) -> String {
    let Page {
        title, head, group, ..
    } = page;
    let mut page = format!("# {title}\n\n{head}{GENERATED}");
    for Group { title, code } in group {
        let has_status = code.iter().any(|code| !code.status.is_empty());
        let (head, line) = if has_status {
            ("| status ", "|---")
        } else {
            ("", "")
        };
        // Writing to a string does not fail.
        let _ = write!(
            page,
            "\n## {title}\n\n| code {head}| what it means | what to do |\n|---{line}|---|---|\n"
        );
        for ReasonCode {
            code,
            status,
            meaning,
            fix,
        } in code
        {
            let meaning = meaning
                .as_deref()
                .or(codes.get(code.as_str()).copied())
                .unwrap_or_default();
            let status: Vec<String> = status.iter().map(u16::to_string).collect();
            let status = if has_status {
                format!("| {} ", status.join(", "))
            } else {
                String::new()
            };
            let _ = writeln!(page, "| `{code}` {status}| {meaning} | {fix} |");
        }
    }
    page
}

/// The end of what is before the sections.
const GENERATED: &str =
    "\nThis page is generated from the sources by `cargo xtask reason-codes`.\n";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// J1: the pages list every reason code of the crates, and are current.
    #[test]
    fn the_pages_are_current() {
        let pages = current().unwrap();
        let files: BTreeSet<_> = pages.iter().map(|page| &page.file).collect();
        assert_eq!(files.len(), pages.len());
        for Written { file, content } in pages {
            let page = fs::read_to_string(workspace::root().join(&file)).unwrap();
            assert_eq!(page, content, "run `cargo xtask reason-codes`: {file}");
        }
    }

    #[test]
    fn differences_are_problems() {
        let texts: Texts = toml::from_str(
            "[[page]]\nfile = \"F\"\ntitle = \"P\"\nhead = \"H\"\n[[page.group]]\ntitle = \"T\"\ncode = [\n\
             { code = \"c.one\", status = [400, 401], fix = \"F\" },\n{ code = \"c.twice\", status = [], fix = \"F\", meaning = \"M\" },\n\
             { code = \"c.twice\", status = [], fix = \"F\" },\n{ code = \"c.removed\", status = [], fix = \"F\" }]",
        )
        .unwrap();
        let codes = Codes::from(["c.one", "c.twice", "c.new"].map(|code| (code, "Documented.")));
        let problems = problems(&texts, &codes);
        let expected = [
            "`c.new` is not in",
            "`c.twice` is listed 2 times",
            "no crate has `c.removed`",
        ];
        assert_eq!(problems.len(), expected.len(), "{problems:?}");
        assert!(
            problems
                .iter()
                .zip(expected)
                .all(|(problem, expected)| problem.starts_with(expected)),
            "{problems:?}"
        );
        let content = content(&texts.page[0], &codes);
        assert!(content.starts_with("# P\n\nH\n"), "{content}");
        assert!(content.contains("| `c.one` | 400, 401 | Documented. | F |\n"));
    }
}

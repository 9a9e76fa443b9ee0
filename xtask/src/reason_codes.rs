//! `cargo xtask reason-codes`: compares the reason codes in the sources with docs/contribute/reason-codes.toml, and
//! writes docs/use/reason-codes.md.

mod scan;

use std::{collections::BTreeMap, fmt::Write, fs};

use anyhow::{Context, bail};
use serde::Deserialize;

use xtask::workspace;

/// The texts about the codes, relative to the workspace's root.
const TEXTS: &str = "docs/contribute/reason-codes.toml";
/// The page that is written.
const PAGE: &str = "docs/use/reason-codes.md";

/// The content of [`TEXTS`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Texts {
    /// Codes in the sources that are not on the page.
    ignored: Vec<String>,
    group: Vec<Group>,
}

/// A section of the page.
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
    /// Default: the documentation of the variant in the source.
    meaning: Option<String>,
    /// What to do.
    fix: String,
}

/// The codes in the sources, each with the documentation of its variant, if it has one.
type Codes = BTreeMap<String, Option<String>>;

/// Compares texts and sources, and writes the page or, with `check`, compares it.
///
/// # Errors
/// Fails when a code has no text or several, a text has no code, or the page is out of date.
pub(crate) fn run(check: bool) -> anyhow::Result<()> {
    let root = workspace::root();
    let page = current_page()?;
    let path = root.join(PAGE);
    if check {
        if fs::read_to_string(&path).unwrap_or_default() != page {
            bail!("{PAGE} is out of date; run `cargo xtask reason-codes` and commit it");
        }
    } else {
        fs::write(&path, &page).with_context(|| format!("{PAGE} cannot be written"))?;
    }
    println!("reason codes: {}", page.matches("\n| `").count());
    Ok(())
}

/// Returns the page for the current sources.
fn current_page() -> anyhow::Result<String> {
    let root = workspace::root();
    let texts = fs::read_to_string(root.join(TEXTS)).with_context(|| format!("{TEXTS} cannot be read"))?;
    let texts: Texts = toml::from_str(&texts).with_context(|| format!("{TEXTS} is not as expected"))?;
    let codes = scan::codes(&root)?;
    let problems = problems(&texts, &codes);
    if !problems.is_empty() {
        bail!("the reason codes in {TEXTS} and in the sources differ:\n  {}", problems.join("\n  "));
    }
    Ok(page(&texts, &codes))
}

/// Returns the differences between texts and sources.
fn problems(texts: &Texts, codes: &Codes) -> Vec<String> {
    let listed: Vec<&ReasonCode> = texts.group.iter().flat_map(|group| &group.code).collect();
    let mut problems = Vec::new();
    for code in codes.keys() {
        let times = listed.iter().filter(|listed| listed.code == *code).count()
            + texts.ignored.iter().filter(|ignored| *ignored == code).count();
        match times {
            0 => problems.push(format!("`{code}` is not in {TEXTS}: say what it means and what to do")),
            1 => {}
            _ => problems.push(format!("`{code}` is listed {times} times")),
        }
    }
    for ReasonCode { code, meaning, .. } in &listed {
        match codes.get(code) {
            None => problems.push(format!("`{code}` is in no source")),
            Some(None) if meaning.is_none() => {
                problems.push(format!("`{code}` has no documentation; write a `meaning`"))
            }
            Some(_) => {}
        }
    }
    let is_gone = |code: &&String| !codes.contains_key(*code);
    problems.extend(texts.ignored.iter().filter(is_gone).map(|code| format!("`{code}` is ignored, but in no source")));
    problems
}

/// Returns the page with a section per group.
fn page(texts: &Texts, codes: &Codes) -> String {
    let mut page = String::from(HEAD);
    for Group { title, code } in &texts.group {
        let has_status = code.iter().any(|code| !code.status.is_empty());
        let (head, line) = if has_status { ("| status ", "|---") } else { ("", "") };
        // Writing to a string does not fail.
        let _ = write!(page, "\n## {title}\n\n| code {head}| what it means | what to do |\n|---{line}|---|---|\n");
        for ReasonCode { code, status, meaning, fix } in code {
            let meaning = meaning.as_deref().or(codes.get(code).and_then(Option::as_deref)).unwrap_or_default();
            let status: Vec<String> = status.iter().map(u16::to_string).collect();
            let status = if has_status { format!("| {} ", status.join(", ")) } else { String::new() };
            let _ = writeln!(page, "| `{code}` {status}| {meaning} | {fix} |");
        }
    }
    page
}

/// The beginning of the page.
const HEAD: &str = "\
# Reason codes

Clients get a generic text and a request ID. The [access line](configuration.md#logs) with this ID has the reason as `deny.code`, and the
[audit trail](audit.md) has it as `deny.code` or `fail.code`, and as `stream.code` for event streams. Codes are stable. At level
`debug` (`PORTCULLIS_LOG=portcullis=debug`), the log also has what a rejected token contains and what was expected: issuer, audience and
scopes, but never the token.

This page is generated from the sources by `cargo xtask reason-codes`.
";

#[cfg(test)]
mod tests {
    use super::*;

    /// J1: the page lists every reason code of the sources, and is current.
    #[test]
    fn the_page_is_current() {
        let page = fs::read_to_string(workspace::root().join(PAGE)).unwrap();
        assert_eq!(page, current_page().unwrap(), "run `cargo xtask reason-codes`");
    }

    #[test]
    fn differences_are_problems() {
        let texts: Texts = toml::from_str(
            "ignored = [\"c.ignored\", \"c.gone\"]\n[[group]]\ntitle = \"T\"\ncode = [\n\
             { code = \"c.one\", status = [400, 401], fix = \"F\" },\n{ code = \"c.twice\", status = [], fix = \"F\", meaning = \"M\" },\n\
             { code = \"c.twice\", status = [], fix = \"F\" },\n{ code = \"c.removed\", status = [], fix = \"F\" }]",
        )
        .unwrap();
        let documented = Some("Documented.".to_owned());
        let codes: Codes = [("c.one", documented), ("c.twice", None), ("c.ignored", None), ("c.new", None)]
            .map(|(code, text)| (code.to_owned(), text))
            .into();
        let problems = problems(&texts, &codes);
        let expected = [
            "`c.new` is not in",
            "`c.twice` is listed 2 times",
            "`c.twice` has no documentation",
            "`c.removed` is in no source",
            "`c.gone` is ignored",
        ];
        assert_eq!(problems.len(), expected.len(), "{problems:?}");
        assert!(problems.iter().zip(expected).all(|(problem, expected)| problem.starts_with(expected)), "{problems:?}");
        assert!(page(&texts, &codes).contains("| `c.one` | 400, 401 | Documented. | F |\n"));
    }
}

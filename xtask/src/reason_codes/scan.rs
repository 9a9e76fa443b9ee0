//! The reason codes in the sources.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::Context;

use super::Codes;

/// The modules that have the codes of rejected requests and ended streams: each is a file without its `.rs`, and the
/// folder of the same name if there is one.
const MODULES: &[&str] = &[
    "crates/guard/src/respond",
    "crates/guard/src/authenticate/bearer",
    "crates/guard/src/authorize/claim_rule",
    "crates/guard/src/layer",
    "crates/guard/src/origin",
    "crates/endpoint/src/message/collector",
    "crates/endpoint/src/response/rejection",
    "crates/endpoint/src/rules/uri_spellings",
    "crates/endpoint/src/session",
    "crates/endpoint/src/stream",
    "crates/mcp/src/envelope/error",
    "crates/mcp/src/era",
    "crates/verifier/src/error",
    "crates/jose/src/error",
    "crates/metadata/src/claims/error",
    "crates/session/src/error",
    "crates/session/src/journal/ticket",
    "crates/gateway/src/response/failure",
    "crates/serve/src/own_response",
    "crates/serve/src/router",
];

/// Returns the codes in the sources.
///
/// # Errors
/// Fails if a module does not exist, or one of its files cannot be read.
pub(super) fn codes(root: &Path) -> anyhow::Result<Codes> {
    let mut codes = Codes::new();
    for module in MODULES {
        for file in files(&root.join(module)).with_context(|| format!("{module} cannot be read"))? {
            let text = fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))?;
            for (code, documentation) in codes_of(&text) {
                let known = codes.entry(code).or_default();
                *known = known.take().or(documentation);
            }
        }
    }
    Ok(codes)
}

/// Returns the files of a module in order, without those of its tests.
fn files(module: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = vec![module.with_extension("rs")];
    let mut folders = vec![module.to_owned()];
    while let Some(folder) = folders.pop().filter(|folder| folder.is_dir()) {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let is_test = path.file_stem().is_some_and(|name| name == "tests");
            if !is_test {
                let list = if path.is_dir() { &mut folders } else { &mut files };
                list.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the codes of a source without its tests. The code of a match arm has the documentation of its variant.
fn codes_of(text: &str) -> Vec<(String, Option<String>)> {
    let lines: Vec<&str> = text.lines().collect();
    let end = lines.iter().position(|line| line.starts_with("mod tests {")).unwrap_or(lines.len());
    let mut codes = Vec::new();
    for (number, line) in lines.iter().enumerate().take(end) {
        if line.trim_start().starts_with("//") {
            continue;
        }
        for code in line.split('"').skip(1).step_by(2).filter(|text| is_code(text)) {
            let variant = line.split_once("Self::").filter(|_| line.contains("=> \"")).map(|(_, rest)| name(rest));
            let documentation = variant.and_then(|variant| documentation(&lines[..number], variant));
            codes.push((code.to_owned(), documentation));
        }
    }
    codes
}

/// Returns whether a text is two words in lower case with a dot between them.
fn is_code(text: &str) -> bool {
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_lowercase())
            && word.chars().all(|character| matches!(character, 'a'..='z' | '0'..='9' | '_'))
    };
    text.split_once('.').is_some_and(|(first, second)| is_word(first) && is_word(second))
}

/// Returns the identifier at the beginning.
fn name(text: &str) -> &str {
    text.split(|character: char| !character.is_ascii_alphanumeric()).next().unwrap_or_default()
}

/// Returns the first paragraph of the documentation of the last variant with this name, as Markdown without links.
fn documentation(lines: &[&str], variant: &str) -> Option<String> {
    let is_variant =
        |line: &&str| line.strip_prefix("    ").is_some_and(|line| name(line) == variant && !variant.is_empty());
    let declared = lines.iter().rposition(is_variant)?;
    let above = lines[..declared].iter().rev().map(|line| line.trim());
    let mut documentation: Vec<&str> = above
        .take_while(|line| {
            line.starts_with("///") || line.starts_with("#[") || line.starts_with(')') || line.starts_with('"')
        })
        .filter_map(|line| line.strip_prefix("///"))
        .map(str::trim)
        .collect();
    documentation.reverse();
    let paragraph: Vec<&str> = documentation.into_iter().take_while(|line| !line.is_empty()).collect();
    let text = paragraph.join(" ");
    (!text.is_empty()).then(|| without_links(&text))
}

/// Replaces `` [`name`](target) `` and `` [`name`] `` by the name.
fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("[`") {
        let Some((name, after)) = link.split_once("`]") else { break };
        out.push_str(before);
        out.push_str(&format!("`{name}`"));
        rest = match after.strip_prefix('(').and_then(|target| target.split_once(')')) {
            Some((_, after)) => after,
            None => after,
        };
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r#"
#[cfg(test)]
mod tests;

/// An enum.
pub enum Error {
    /// It is [`missing`](crate::missing) or
    /// [`late`].
    ///
    /// More.
    #[error("a text.with dots")]
    Missing { of: u8 },
    Plain,
}

impl Error {
    fn code(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "a.missing",
            Self::Plain | Self::Other => "a.plain",
            // "not.this"
        }
    }
}

fn limit() -> Result<(), &'static str> {
    Err("limit.none")
}

#[cfg(test)]
mod tests {
    const CODE: &str = "a.test";
}
"#;

    #[test]
    fn codes_have_the_documentation_of_their_variant() {
        let documentation = Some("It is `missing` or `late`.".to_owned());
        let expected =
            [("a.missing".to_owned(), documentation), ("a.plain".to_owned(), None), ("limit.none".to_owned(), None)];
        assert_eq!(codes_of(SOURCE), expected);
    }
}

//! `cargo xtask installing`: writes how to install the program into the pages, as
//! docs/contribute/installing.toml says.

use std::{collections::BTreeSet, fs, path::PathBuf};

use anyhow::{Context, bail};
use serde::Deserialize;

use xtask::workspace;

/// The texts and the flag, relative to the workspace's root.
const TEXTS: &str = "docs/contribute/installing.toml";
/// Begins a text on a page. Its name and ` -->` follow.
const BEGIN: &str = "<!-- installing: ";
/// Ends a text on a page.
const END: &str = "<!-- /installing -->";

/// The content of [`TEXTS`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Texts {
    /// Whether the registries have the packages.
    published: bool,
    /// Commands that fetch packages from a registry.
    commands: Vec<String>,
    text: Vec<Text>,
}

/// A text in its two forms.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    name: String,
    unpublished: String,
    published: String,
}

/// Writes the texts into the pages or, with `check`, compares them. Fails when a page cannot be
/// read, names an unknown text, or has a command that fetches a package outside of the texts, when
/// a text is on no page, or when a page is out of date.
pub(crate) fn run(check: bool) -> anyhow::Result<()> {
    let root = workspace::root();
    let texts =
        fs::read_to_string(root.join(TEXTS)).with_context(|| format!("{TEXTS} cannot be read"))?;
    let texts: Texts =
        toml::from_str(&texts).with_context(|| format!("{TEXTS} is not as expected"))?;
    let mut used = BTreeSet::new();
    for path in pages()? {
        let name = path
            .strip_prefix(&root)
            .unwrap_or(&path)
            .display()
            .to_string();
        let page = fs::read_to_string(&path).with_context(|| format!("{name} cannot be read"))?;
        let filled = texts.fill(&page, &mut used).with_context(|| name.clone())?;
        if filled == page {
            continue;
        }
        if check {
            bail!("{name} is out of date; run `cargo xtask installing` and commit it");
        }
        fs::write(&path, filled).with_context(|| format!("{name} cannot be written"))?;
    }
    for Text { name, .. } in &texts.text {
        if !used.contains(name) {
            bail!("no page has `{BEGIN}{name} -->`");
        }
    }
    println!(
        "installing: {}",
        if texts.published {
            "from the registries"
        } else {
            "from a clone"
        }
    );
    Ok(())
}

impl Texts {
    /// Returns the page with the texts between their marks, and adds their names to `used`.
    fn fill(&self, page: &str, used: &mut BTreeSet<String>) -> anyhow::Result<String> {
        let mut filled = String::new();
        let mut lines = page.lines();
        while let Some(line) = lines.next() {
            filled += line;
            filled += "\n";
            if let Some(name) = line
                .strip_prefix(BEGIN)
                .and_then(|rest| rest.strip_suffix(" -->"))
            {
                filled += self.text(name)?;
                filled += END;
                filled += "\n";
                used.insert(name.to_owned());
                if !lines.by_ref().any(|line| line == END) {
                    bail!("`{BEGIN}{name} -->` has no `{END}`");
                }
            } else if let Some(command) = self
                .commands
                .iter()
                .find(|command| line.contains(command.as_str()))
            {
                bail!("`{command}` belongs into {TEXTS}; link to docs/use/installing.md instead");
            }
        }
        Ok(filled)
    }

    /// Returns the form of a text that is true now.
    fn text(&self, name: &str) -> anyhow::Result<&str> {
        let text = self.text.iter().find(|text| text.name == name);
        let text = text.with_context(|| format!("{TEXTS} has no text `{name}`"))?;
        Ok(if self.published {
            &text.published
        } else {
            &text.unpublished
        })
    }
}

/// Returns the Markdown files that say how to install something. The page of the npm package is not
/// among them: only those who have the package see it.
fn pages() -> anyhow::Result<Vec<PathBuf>> {
    let root = workspace::root();
    let mut pages = vec![root.join("README.md")];
    let mut folders = vec![
        root.join("docs"),
        root.join("crates"),
        root.join("examples"),
    ];
    while let Some(folder) = folders.pop() {
        for entry in
            fs::read_dir(&folder).with_context(|| format!("{} cannot be read", folder.display()))?
        {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(published: bool) -> Texts {
        let text = Text {
            name: "a".into(),
            unpublished: "from a clone\n".into(),
            published: "cargo install x\n".into(),
        };
        Texts {
            published,
            commands: vec!["cargo install x".into()],
            text: vec![text],
        }
    }

    fn fill(published: bool, page: &str) -> anyhow::Result<String> {
        texts(published).fill(page, &mut BTreeSet::new())
    }

    #[test]
    fn the_flag_chooses_the_form() {
        let page = |text: &str| {
            format!("before\n<!-- installing: a -->\n{text}<!-- /installing -->\nafter\n")
        };
        for (published, text) in [(false, "from a clone\n"), (true, "cargo install x\n")] {
            for old in ["", "something older\nof two lines\n", text] {
                assert_eq!(fill(published, &page(old)).unwrap(), page(text));
            }
        }
    }

    #[test]
    fn other_places_have_no_such_command() {
        for published in [false, true] {
            let error = fill(published, "run `cargo install x`\n")
                .unwrap_err()
                .to_string();
            assert!(error.contains("belongs into"), "{error}");
        }
    }

    #[test]
    fn wrong_marks_are_rejected() {
        for (page, expected) in [
            (
                "<!-- installing: b -->\n<!-- /installing -->\n",
                "no text `b`",
            ),
            (
                "<!-- installing: a -->\ntext\n",
                "has no `<!-- /installing -->`",
            ),
        ] {
            let error = fill(false, page).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn the_pages_are_up_to_date() {
        run(true).unwrap();
    }
}

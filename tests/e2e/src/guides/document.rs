//! [`Document`]: the pages whose commands are executed.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use xtask::workspace;

/// A Markdown file whose commands are executed.
pub(super) struct Document {
    /// The name on the command line.
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// Whether the page is one of `docs/guides`.
    pub(super) is_guide: bool,
}

/// This page has a run of its own, `cargo xtask e2e --idp keycloak`, with a notation of its own.
const KEYCLOAK: &str = "docs/use/keycloak.md";

impl Document {
    /// Returns the guides, the pages of `docs/use` and the README, ordered by name. Fails when a
    /// folder cannot be read.
    pub(super) fn all() -> io::Result<Vec<Self>> {
        let root = workspace::root();
        let mut documents = vec![Self {
            name: "readme".to_owned(),
            path: root.join("README.md"),
            is_guide: false,
        }];
        for (folder, is_guide) in [(folder_of_guides(), true), (root.join("docs/use"), false)] {
            for path in markdown_files(&folder)? {
                if path != root.join(KEYCLOAK) {
                    let name = path
                        .file_stem()
                        .unwrap_or_default()
                        .to_string_lossy()
                        .into_owned();
                    documents.push(Self {
                        name,
                        path,
                        is_guide,
                    });
                }
            }
        }
        documents.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(documents)
    }
}

pub(super) fn folder_of_guides() -> PathBuf {
    workspace::root().join("docs/guides")
}

/// Returns the Markdown files of a folder and its folders. Fails when a folder cannot be read.
pub(super) fn markdown_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(markdown_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{
        super::page::{Page, Step},
        *,
    };

    /// The Markdown files that a reader of the repository finds.
    fn published() -> Vec<PathBuf> {
        let root = workspace::root();
        let mut found = [
            "README.md",
            "CONTRIBUTING.md",
            "SECURITY.md",
            "RELEASING.md",
        ]
        .map(|page| root.join(page))
        .to_vec();
        for folder in ["docs", "crates", "deploy", "examples"] {
            found.extend(markdown_files(&root.join(folder)).unwrap());
        }
        found
    }

    /// Every command of every page is executed or marked.
    #[test]
    fn every_command_is_executed_or_marked() {
        let root = workspace::root();
        let executed: BTreeSet<_> = Document::all()
            .unwrap()
            .into_iter()
            .map(|document| document.path)
            .collect();
        let mut wrong = Vec::new();
        for path in published()
            .into_iter()
            .filter(|path| *path != root.join(KEYCLOAK))
        {
            let shown = path.strip_prefix(&root).unwrap().display();
            match Page::parse(&fs::read_to_string(&path).unwrap()) {
                Err(error) => wrong.push(format!("{shown}: {error}")),
                Ok(page) if !executed.contains(&path) => {
                    let is_command = |step: &&Step| {
                        matches!(step, Step::Command { .. } | Step::Background { .. })
                    };
                    let commands = page.steps.iter().filter(is_command);
                    wrong.extend(
                        commands.map(|step| format!("{shown} is not executed: mark {step:?}")),
                    );
                }
                Ok(_) => {}
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// A reason can name the test that runs the command instead, which must exist.
    #[test]
    fn the_tests_in_reasons_exist() {
        let root = workspace::root();
        for path in published() {
            let text = fs::read_to_string(&path).unwrap();
            for reason in text.lines().filter(|line| line.contains("<!-- not run:")) {
                for word in reason
                    .split([' ', ',', ';'])
                    .filter(|word| word.ends_with(".rs"))
                {
                    assert!(root.join(word).is_file(), "{}: {word}", path.display());
                }
            }
        }
    }

    #[test]
    fn names_are_unique() {
        let documents = Document::all().unwrap();
        let names: BTreeSet<_> = documents
            .iter()
            .map(|document| document.name.as_str())
            .collect();
        assert_eq!(names.len(), documents.len());
        assert!(
            ["readme", "fastmcp", "packages"]
                .iter()
                .all(|name| names.contains(name))
        );
    }

    /// Each guide says at its head what the reader needs.
    #[test]
    fn every_guide_says_what_is_needed() {
        // These explain, and have no steps.
        let without_steps = ["security", "troubleshooting", "upstream"];
        for document in Document::all().unwrap() {
            if document.is_guide && !without_steps.contains(&&*document.name) {
                let text = fs::read_to_string(&document.path).unwrap();
                let head = text.split("\n## ").next().unwrap_or_default();
                assert!(
                    head.contains("**You need**"),
                    "docs/guides/{}.md",
                    document.name
                );
            }
        }
    }
}
